// SPDX-License-Identifier: Apache-2.0
// leat_split and leat_select, over side outputs: a selection is a side output of the split, named
// by the texts it was asked for. A record goes once to each selection that has one of its names.
// The main output has all records.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "leat/side_output.h"
#include "operators/builder.h"
#include "runtime/context.h"

enum { MOST_NAMES = 64 };
// Has a blank, so no tag of a user's is called so.
static const char prefix[] = "select ";

struct leat_choice {
    uint32_t count; // may be above MOST_NAMES
    bool without_name;
    const char *names[MOST_NAMES];
};

typedef struct split_config {
    leat_split_fn fn;
} split_config;

typedef struct split_operator {
    leat_operator base;
    leat_split_fn fn;
    leat_choice choice;
} split_operator;

void leat_choose(leat_choice *choice, const char *name)
{
    choice->without_name |= !name;
    if (choice->count < MOST_NAMES)
        choice->names[choice->count] = name;
    choice->count++;
}

// Whether `names`, "even, large" say, has one of the chosen.
static bool selects(const char *names, const leat_choice *choice)
{
    while (*names) {
        size_t size = strcspn(names, ",");
        for (uint32_t i = 0; i < choice->count; i++)
            if (strncmp(names, choice->names[i], size) == 0 && choice->names[i][size] == '\0')
                return true;
        names += size;
        names += strspn(names, ", ");
    }
    return false;
}

static leat_err split_element(leat_operator *self, const void *record, leat_out *out)
{
    split_operator *op = (split_operator *)self;
    leat_ctx *ctx = self->ctx;
    op->choice.count = 0;
    op->choice.without_name = false;
    int result = op->fn(ctx, record, &op->choice);
    if (LEAT_UNLIKELY(result != 0))
        return leati_ctx_reject(ctx, record, "the split function", result);
    if (LEAT_UNLIKELY(op->choice.count > MOST_NAMES))
        return leat_reject(ctx, record, "the split function chose %u names, above %d",
                           op->choice.count, MOST_NAMES);
    if (LEAT_UNLIKELY(op->choice.without_name))
        return leat_reject(ctx, record, "the split function chose a name that is NULL");
    for (uint32_t i = 0; i < leati_ctx_side_count(ctx); i++) {
        const char *side = leati_ctx_side_name(ctx, i);
        if (strncmp(side, prefix, strlen(prefix)) != 0 ||
            !selects(side + strlen(prefix), &op->choice))
            continue;
        leat_err err = leati_ctx_collect_side(ctx, i, record);
        if (LEAT_UNLIKELY(err != LEAT_OK))
            return err;
    }
    return leat_collect(out, record);
}

static const leat_operator_ops split_ops = {
    .kind = "split",
    .element = split_element,
    .dispose = leati_operator_dispose,
};

static leat_err split_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    const split_config *config = factory->config;
    split_operator *made = leati_operator_create(ctx, sizeof *made, &split_ops);
    if (!made)
        return LEAT_ENOMEM;
    made->fn = config->fn;
    *op = &made->base;
    return LEAT_OK;
}

leat_stream *leat_split(leat_stream *in, leat_split_fn fn)
{
    leat_env *env = leati_stream_env(in);
    if (!leati_builder_input(in))
        return leati_graph_inert(env);
    if (!fn)
        return leati_builder_fault_on(in, "leat_split", "the function is NULL");
    split_config *config = leat_env_alloc(env, sizeof *config);
    if (!config)
        return leati_graph_inert(env);
    config->fn = fn;
    return leati_graph_add(env, in,
                           &(leati_node_spec){.kind = "split",
                                              .out_type = leati_stream_type(in),
                                              .factory = {split_create, config}});
}

// "even, large" in one form, whatever the blanks around the names were. `*wrong` says that a name
// is empty or has blanks inside.
static char *side_of(leat_env *env, const char *names, bool *wrong)
{
    static const char blanks[] = " \t\r\n";
    char *side = leat_env_alloc(env, sizeof prefix + 2 * strlen(names) + 1);
    char *to = side;
    *wrong = false;
    if (!side)
        return NULL;
    memcpy(to, prefix, sizeof prefix - 1);
    to += sizeof prefix - 1;
    for (;;) {
        names += strspn(names, blanks);
        size_t whole = strcspn(names, ","), size = whole;
        while (size > 0 && strchr(blanks, names[size - 1]))
            size--;
        *wrong |= size == 0 || strcspn(names, blanks) < size;
        memcpy(to, names, size);
        to += size;
        if (names[whole] == '\0')
            break;
        *to++ = ',';
        *to++ = ' ';
        names += whole + 1;
    }
    *to = '\0';
    return side;
}

leat_stream *leat_select(leat_stream *split, const char *names)
{
    leat_env *env = leati_stream_env(split);
    leati_node *node = leati_stream_node(split);
    if (!leati_builder_input(split))
        return leati_graph_inert(env);
    if (!node || node->factory.create != split_create)
        return leati_builder_fault_on(split, "leat_select", "the stream is not that of a split");
    bool wrong = true;
    const char *side = names ? side_of(env, names, &wrong) : NULL;
    if (wrong)
        return leati_builder_fault_on(split, "leat_select", "a name is empty or has blanks");
    return side ? leati_graph_side(split, side, node->out_type) : leati_graph_inert(env);
}
