// SPDX-License-Identifier: Apache-2.0
// The pictures of one small job, written by hand, and that nothing a user writes breaks their form.
#include <stdio.h>

#include "tests/graph/graph_testing.h"

static leat_stream *typed(leat_stream *in, const char *kind, const char *name, uint32_t flags,
                          const leat_type *out, const char *detail)
{
    return leati_graph_add(leati_stream_env(in), in,
                           &(leati_node_spec){.kind = kind,
                                              .name = name,
                                              .flags = flags,
                                              .out_type = out,
                                              .factory = {.create = refuse_create},
                                              .detail = detail});
}

static leat_env *word_count(void)
{
    leat_env *env = new_env(2);
    leat_env_set_name(env, "word count");
    const leat_type *pair = NULL;
    leat_field_spec fields[] = {{"word", leat_type_scalar(LEAT_STR)},
                                {"count", leat_type_scalar(LEAT_I64)}};
    cr_assert(leat_type_struct_create(NULL, "word_count", fields, 2, &pair) == LEAT_OK);
    leat_stream *lines =
        add(env, NULL, "source: text", NULL, LEATI_NODE_SOURCE, LEATI_CHAIN_ALWAYS, str_type());
    leat_stream *words = leat_name(typed(lines, "flat_map", NULL, 0, pair, NULL), "split");
    leat_stream *counts =
        typed(leat_key_by(words, "word"), "reduce", NULL, LEATI_NODE_NEEDS_KEY, pair, "updates");
    leat_uid(leat_buffer_timeout(counts, 0), "wc");
    leat_slot_group(leat_parallelism(typed(counts, "print", NULL, LEATI_NODE_SINK, NULL, NULL), 1),
                    "out");
    typed(leat_shuffle(words), "sink", "other", LEATI_NODE_SINK, NULL, NULL);
    typed(lines, "map", "lost", 0, pair, NULL);
    leat_type_release(pair);
    return env;
}

// `expected` with "@" where the digest stands.
static void expect_plan(leat_env *env, leat_plan_format format, const char *expected)
{
    char digest[33], *text = NULL;
    cr_assert(leat_plan_digest(env, digest) == LEAT_OK);
    cr_assert(leat_plan(env, format, &text) == LEAT_OK);
    char whole[4096];
    const char *at = strchr(expected, '@');
    snprintf(whole, sizeof whole, "%.*s%s%s", (int)(at - expected), expected, digest, at + 1);
    cr_expect_str_eq(text, whole, "%s", text);
    leat_plan_free(env, text);
}

Test(plan, text_shows_vertices_operators_exchanges_and_totals)
{
    static const char expected[] =
        "job word count\n"
        "\n"
        "vertex 0: source: text -> (split, lost)\n"
        "    parallelism 2, max parallelism 128\n"
        "    1  source: text      -> str\n"
        "    2  split (flat_map)  str -> {word: str, count: i64}\n"
        "    6  lost (map)        str -> {word: str, count: i64}  after 1\n"
        "    => vertex 1 by hash of word, from 2, flushed after 100 ms\n"
        "    => vertex 3 by shuffle, from 2, flushed after 100 ms\n"
        "    the output of 6 is not used\n"
        "\n"
        "vertex 1: reduce\n"
        "    parallelism 2, max parallelism 128\n"
        "    3  reduce  {word: str, count: i64} -> {word: str, count: i64}  [updates]  uid wc\n"
        "    => vertex 2 by rebalance, flushed after each record\n"
        "\n"
        "vertex 2: print\n"
        "    parallelism 1, max parallelism 128, slot group out\n"
        "    4  print  {word: str, count: i64}\n"
        "\n"
        "vertex 3: other\n"
        "    parallelism 2, max parallelism 128\n"
        "    5  other (sink)  {word: str, count: i64}\n"
        "\n"
        "tasks   7\n"
        "slots   3\n"
        "digest  @\n";
    leat_env *env = word_count();
    expect_plan(env, LEAT_PLAN_TEXT, expected);
    leat_env_destroy(&env);
}

Test(plan, dot_shows_a_cluster_per_vertex)
{
    static const char expected[] = "digraph \"word count\" {\n"
                                   "  rankdir=LR;\n"
                                   "  node [shape=box];\n"
                                   "  subgraph cluster_0 {\n"
                                   "    label=\"vertex 0, parallelism 2\";\n"
                                   "    op1 [label=\"source: text\"];\n"
                                   "    op2 [label=\"split\\nflat_map\"];\n"
                                   "    op6 [label=\"lost\\nmap\"];\n"
                                   "    op1 -> op2;\n"
                                   "    op1 -> op6;\n"
                                   "  }\n"
                                   "  subgraph cluster_1 {\n"
                                   "    label=\"vertex 1, parallelism 2\";\n"
                                   "    op3 [label=\"reduce\"];\n"
                                   "  }\n"
                                   "  subgraph cluster_2 {\n"
                                   "    label=\"vertex 2, parallelism 1, slot group out\";\n"
                                   "    op4 [label=\"print\"];\n"
                                   "  }\n"
                                   "  subgraph cluster_3 {\n"
                                   "    label=\"vertex 3, parallelism 2\";\n"
                                   "    op5 [label=\"other\\nsink\"];\n"
                                   "  }\n"
                                   "  op2 -> op3 [style=dashed, label=\"HASH\\nword\"];\n"
                                   "  op2 -> op5 [style=dashed, label=\"SHUFFLE\"];\n"
                                   "  op3 -> op4 [style=dashed, label=\"REBALANCE\"];\n"
                                   "  label=\"digest @\";\n"
                                   "}\n";
    leat_env *env = word_count();
    expect_plan(env, LEAT_PLAN_DOT, expected);
    leat_env_destroy(&env);
}

// --- JSON: a checker of its grammar, and what must be in it ---

static const char *json_value(const char *p, int depth);

static const char *blanks(const char *p)
{
    return p + strspn(p, " \n\t\r");
}

static const char *json_string(const char *p)
{
    if (!p || *p++ != '"')
        return NULL;
    while (*p != '"') {
        if ((unsigned char)*p < 0x20)
            return NULL;
        if (*p == '\\' && !strchr("\"\\/bfnrtu", *++p))
            return NULL;
        p++;
    }
    return p + 1;
}

// The items of an array or the members of an object, up to and including `close`.
static const char *json_items(const char *p, char close, int depth)
{
    p = blanks(p);
    if (*p == close)
        return p + 1;
    for (;;) {
        if (close == '}') {
            p = json_string(blanks(p));
            if (!p || *(p = blanks(p)) != ':')
                return NULL;
            p++;
        }
        p = json_value(p, depth);
        if (!p)
            return NULL;
        p = blanks(p);
        if (*p == close)
            return p + 1;
        if (*p++ != ',')
            return NULL;
    }
}

static const char *json_value(const char *p, int depth)
{
    p = blanks(p);
    if (depth == 0)
        return NULL;
    if (*p == '"')
        return json_string(p);
    if (*p == '{')
        return json_items(p + 1, '}', depth - 1);
    if (*p == '[')
        return json_items(p + 1, ']', depth - 1);
    size_t word = strspn(p, "-+.eE0123456789");
    if (word)
        return p + word;
    if (strncmp(p, "false", 5) == 0)
        return p + 5;
    return strncmp(p, "null", 4) == 0 || strncmp(p, "true", 4) == 0 ? p + 4 : NULL;
}

static void expect_json(const char *text)
{
    const char *end = json_value(text, 10);
    cr_assert(end && *blanks(end) == '\0', "%s", text);
}

Test(plan, json_has_nodes_operators_and_ship_strategies)
{
    static const char *const parts[] = {
        "{\"name\": \"word count\", \"digest\": \"",
        "\"tasks\": 7, \"slots\": 3,",
        "{\"id\": 0, \"name\": \"source: text -> (split, lost)\", \"parallelism\": 2, "
        "\"max_parallelism\": 128, \"slot_group\": \"default\"",
        "{\"id\": 1, \"kind\": \"source: text\", \"name\": \"source: text\", \"uid\": null, ",
        "\"in_type\": null, \"out_type\": \"str\"}",
        "\"in_type\": \"str\", \"out_type\": \"{word: str, count: i64}\", \"parent\": 1, "
        "\"ship_strategy\": \"FORWARD\"}",
        "\"uid\": \"wc\"",
        "\"detail\": \"updates\"",
        "\"slot_group\": \"out\"",
        "\"inputs\": [\n        {\"node\": 0, \"operator\": 2, \"input\": 0, \"ship_strategy\": "
        "\"HASH\", \"key\": \"word\", \"buffer_timeout_ms\": 100, \"blocking\": false}]",
        "{\"node\": 0, \"operator\": 2, \"input\": 0, \"ship_strategy\": \"SHUFFLE\", \"key\": "
        "null, \"buffer_timeout_ms\": 100, \"blocking\": false}",
        "{\"node\": 1, \"operator\": 3, \"input\": 0, \"ship_strategy\": \"REBALANCE\", \"key\": "
        "null, \"buffer_timeout_ms\": 0, \"blocking\": false}",
    };
    leat_env *env = word_count();
    char *text = NULL;
    cr_assert(leat_plan(env, LEAT_PLAN_JSON, &text) == LEAT_OK);
    expect_json(text);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        cr_expect(strstr(text, parts[i]), "%s is not in %s", parts[i], text);
    leat_plan_free(env, text);
    leat_env_destroy(&env);
}

Test(plan, several_inputs_are_told_apart)
{
    leat_env *env = new_env(1);
    leat_stream *a = leat_rebalance(source(env, "a")), *b = source(env, "b");
    sink(join(a, b, "j", LEATI_CHAIN_HEAD_WITH_SOURCES), "k");
    char *text = NULL;
    cr_assert(leat_plan(env, LEAT_PLAN_TEXT, &text) == LEAT_OK);
    cr_expect(strstr(text, "=> vertex 1 input 0 by rebalance"), "%s", text);
    cr_expect(strstr(text, "b (source: test)  -> str  feeds input 1 of 3"), "%s", text);
    leat_plan_free(env, text);
    cr_assert(leat_plan(env, LEAT_PLAN_DOT, &text) == LEAT_OK);
    cr_expect(strstr(text, "    op2 -> op3;\n") && strstr(text, "    op3 -> op4;\n"), "%s", text);
    leat_plan_free(env, text);
    cr_assert(leat_plan(env, LEAT_PLAN_JSON, &text) == LEAT_OK);
    expect_json(text);
    cr_expect(strstr(text, "\"feeds\": 3, \"input\": 1, \"ship_strategy\": \"FORWARD\""), "%s",
              text);
    leat_plan_free(env, text);
    leat_env_destroy(&env);
}

Test(plan, names_of_any_bytes_keep_the_form)
{
    char nasty[256];
    for (int i = 1; i < 256; i++)
        nasty[i - 1] = (char)i;
    nasty[255] = '\0';
    leat_env *env = new_env(1);
    leat_env_set_name(env, nasty);
    leat_stream *s = leat_uid(leat_name(source(env, "s"), nasty), nasty);
    leat_slot_group(sink(leat_name(map(s, "m"), nasty), "k"), nasty);
    char *text = NULL;
    cr_assert(leat_plan(env, LEAT_PLAN_JSON, &text) == LEAT_OK);
    expect_json(text);
    leat_plan_free(env, text);
    cr_assert(leat_plan(env, LEAT_PLAN_TEXT, &text) == LEAT_OK);
    // job, blank; vertex, parallelism, two operators, exchange, blank; vertex, parallelism,
    // operator, blank; three totals.
    size_t lines = 0;
    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    cr_expect(lines == 15, "%zu", lines);
    leat_plan_free(env, text);
    cr_assert(leat_plan(env, LEAT_PLAN_DOT, &text) == LEAT_OK);
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        size_t quotes = 0;
        for (const char *p = line; p < end; p++) {
            if (*p == '\\')
                p++;
            else
                quotes += *p == '"';
        }
        cr_expect(quotes % 2 == 0, "%.*s", (int)(end - line), line);
    }
    leat_plan_free(env, text);
    leat_env_destroy(&env);
}

Test(plan, an_unknown_format_is_refused)
{
    leat_env *env = word_count();
    char *text = NULL;
    cr_assert(leat_plan(env, (leat_plan_format)7, &text) == LEAT_EINVAL && !text);
    leat_env_destroy(&env);
}
