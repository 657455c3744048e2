// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>

#include "run.h"

typedef struct {
    leat_str name;
    int64_t value;
} entry;
LEAT_RECORD(entry, LEAT_FIELD(name, LEAT_STR), LEAT_FIELD(value, LEAT_I64));

typedef struct {
    int64_t count, sum, least, most;
} statistics;
LEAT_RECORD(statistics, LEAT_FIELD(count, LEAT_I64), LEAT_FIELD(sum, LEAT_I64),
            LEAT_FIELD(least, LEAT_I64), LEAT_FIELD(most, LEAT_I64));

typedef struct {
    leat_str longest;
    int64_t average;
} summary;
LEAT_RECORD(summary, LEAT_FIELD(longest, LEAT_STR), LEAT_FIELD(average, LEAT_I64));

typedef struct {
    const leat_str *tag;
    int64_t value;
} tagged;
LEAT_RECORD(tagged, LEAT_FIELD_OPTIONAL(tag, LEAT_SCALAR(LEAT_STR)), LEAT_FIELD(value, LEAT_I64));

static const entry entries[] = {
    {{"b", 1}, 5}, {{"a", 1}, -7}, {{"b", 1}, 1}, {{"", 0}, 3}, {{"b", 1}, -2}, {{"a", 1}, 7},
};

static int add(leat_ctx *ctx, void *accumulator, const void *in)
{
    ((entry *)accumulator)->value += ((const entry *)in)->value;
    return 0;
}

Test(folds, reduce_emits_each_update_in_the_order_of_a_key)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_stream *in = leat_from_items(env, LEAT_TYPE(entry), entries, 6);
    leat_print(leat_reduce(leat_key_by(in, "name"), add));
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    cr_assert_str_eq(leati_strbuf_text(&r.out[0]), "b\t5\na\t-7\nb\t6\n\t3\nb\t4\na\t0\n");
    run_end(&r);
}

Test(folds, reduce_gives_only_final_values_when_asked)
{
    for (uint32_t p = 1; p <= 4; p++) {
        run r;
        leat_env *env = run_begin(&r, p);
        leat_stream *in = leat_from_items(env, LEAT_TYPE(entry), entries, 6);
        leat_stream *sums = leat_final_only(leat_reduce(leat_key_by(in, "name"), add));
        leat_parallelism(leat_print(sums), 1);
        run_expect_lines(&r, "b\t4\na\t0\n\t3\n", "sums");
    }
}

Test(folds, an_empty_input_has_no_final_values)
{
    run r;
    leat_env *env = run_begin(&r, 2);
    leat_stream *in = leat_from_items(env, LEAT_TYPE(entry), NULL, 0);
    leat_parallelism(leat_print(leat_final_only(leat_reduce(leat_key_by(in, "name"), add))), 1);
    run_expect_lines(&r, "", "nothing");
}

static int aggregate_create(leat_ctx *ctx, void *accumulator)
{
    *(statistics *)accumulator = (statistics){.least = INT64_MAX, .most = INT64_MIN};
    return 0;
}

static int aggregate_add(leat_ctx *ctx, void *accumulator, const void *in)
{
    statistics *s = accumulator;
    int64_t value = ((const entry *)in)->value;
    s->count++;
    s->sum += value;
    s->least = value < s->least ? value : s->least;
    s->most = value > s->most ? value : s->most;
    return 0;
}

Test(folds, aggregate_starts_where_create_says)
{
    // Negative values show a start of zero; the records of one key come in order.
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_aggregate_fns fns = {.create = aggregate_create, .add = aggregate_add};
    leat_stream *in = leat_from_items(env, LEAT_TYPE(entry), entries, 6);
    leat_print(leat_aggregate(leat_key_by(in, "name"), &fns, LEAT_TYPE(statistics),
                              LEAT_TYPE(statistics)));
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    cr_assert_str_eq(leati_strbuf_text(&r.out[0]), "1\t5\t5\t5\n1\t-7\t-7\t-7\n2\t6\t1\t5\n"
                                                   "1\t3\t3\t3\n3\t4\t-2\t5\n2\t0\t-7\t7\n");
    run_end(&r);
}

// Keeps the longest text seen, as a pointer into the record; the runtime has to make it its own.
typedef struct {
    leat_str longest;
    int64_t count, sum;
} gathered;
LEAT_RECORD(gathered, LEAT_FIELD(longest, LEAT_STR), LEAT_FIELD(count, LEAT_I64),
            LEAT_FIELD(sum, LEAT_I64));

static int gather(leat_ctx *ctx, void *accumulator, const void *in)
{
    gathered *g = accumulator;
    const entry *e = in;
    if (e->name.size > g->longest.size)
        g->longest = e->name;
    g->count++;
    g->sum += e->value;
    return 0;
}

static int summarise(leat_ctx *ctx, const void *accumulator, void *out)
{
    const gathered *g = accumulator;
    *(summary *)out = (summary){g->longest, g->sum / g->count};
    return 0;
}

static int spell(leat_ctx *ctx, const void *in, void *out)
{
    int64_t n = *(const int64_t *)in;
    char *text = leat_ctx_scratch(ctx, 300);
    size_t size = (size_t)snprintf(text, 300, "%d:", (int)(n % 3));
    memset(text + size, 'x', (size_t)(n % 200));
    *(entry *)out = (entry){{text, size + (size_t)(n % 200)}, n};
    return 0;
}

// The key is what stands before the colon.
static int key_before_colon(leat_ctx *ctx, const void *in, void *key)
{
    *(int64_t *)key = ((const entry *)in)->name.data[0] - '0';
    return 0;
}

Test(folds, aggregate_keeps_texts_of_records_that_are_gone)
{
    for (uint32_t p = 1; p <= 3; p += 2) {
        run r;
        leat_env *env = run_begin(&r, p);
        leat_aggregate_fns fns = {.add = gather, .result = summarise};
        leat_stream *named = leat_map(leat_sequence(env, 0, 5999), spell, LEAT_TYPE(entry));
        leat_stream *keyed = leat_key_by_fn(named, key_before_colon, leat_type_scalar(LEAT_I64));
        leat_parallelism(leat_print(leat_final_only(
                             leat_aggregate(keyed, &fns, LEAT_TYPE(gathered), LEAT_TYPE(summary)))),
                         1);
        // n % 200 reaches 199 in each class of n % 3, as 200 and 3 have no common divisor. The
        // averages of 0, 3, … 5997 and its neighbours are 2998.5, 2999.5 and 3000.5.
        char expected[3 * 300], xs[200];
        size_t size = 0;
        memset(xs, 'x', sizeof xs - 1);
        xs[sizeof xs - 1] = 0;
        for (int k = 0; k < 3; k++)
            size += (size_t)snprintf(expected + size, sizeof expected - size, "%d:%s\t%d\n", k, xs,
                                     2998 + k);
        run_expect_lines(&r, expected, "longest");
    }
}

static int add_numbers(leat_ctx *ctx, void *accumulator, const void *in)
{
    *(int64_t *)accumulator += *(const int64_t *)in;
    return 0;
}

static int modulo(leat_ctx *ctx, const void *in, void *key)
{
    *(int64_t *)key = *(const int64_t *)in % 1000;
    return 0;
}

Test(folds, many_final_values_leave_in_slices)
{
    // Far more results than the segments of the exchange hold.
    run r;
    leat_env *env = run_begin(&r, 2);
    leat_env_set(env, "memory.segment-size", "1 KiB");
    leat_stream *sums =
        leat_final_only(leat_reduce(leat_key_by(leat_sequence(env, 1, 100000), ""), add_numbers));
    leat_stream *classes = leat_final_only(
        leat_reduce(leat_key_by_fn(sums, modulo, leat_type_scalar(LEAT_I64)), add_numbers));
    leat_parallelism(leat_print(classes), 1);
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    int64_t total = 0, lines = 0;
    for (char *c = r.out[0].data; *c; c = strchr(c, '\n') + 1, lines++)
        total += strtoll(c, NULL, 10);
    cr_assert_eq(lines, 1000);
    cr_assert_eq(total, INT64_C(100000) * 100001 / 2);
    run_end(&r);
}

static int keep(leat_ctx *ctx, void *accumulator, const void *in)
{
    return 0;
}

Test(folds, a_null_key_fails_the_job)
{
    leat_str present = LEAT_STR_LITERAL("here");
    tagged items[] = {{&present, 1}, {NULL, 2}};
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_stream *in = leat_from_items(env, LEAT_TYPE(tagged), items, 2);
    leat_discard(leat_reduce(leat_key_by(in, "tag"), keep));
    cr_assert(run_execute(&r) != LEAT_OK);
    cr_assert(strstr(r.failure, "key tag of a record is null") != NULL, "%s", r.failure);
    run_end(&r);
}

static int fail_at_nine(leat_ctx *ctx, void *accumulator, const void *in)
{
    return *(const int64_t *)in == 9 ? leat_fail(ctx, "nine") : 0;
}

static int fail_result(leat_ctx *ctx, const void *accumulator, void *out)
{
    return 4;
}

Test(folds, functions_that_fail_fail_the_job)
{
    const leat_type *type = leat_type_scalar(LEAT_I64);
    leat_aggregate_fns add_fails = {.add = fail_at_nine};
    leat_aggregate_fns result_fails = {.add = add_numbers, .result = fail_result};
    for (int i = 0; i < 4; i++) {
        run r;
        leat_env *env = run_begin(&r, 1);
        int64_t items[] = {9, 9, 9};
        leat_stream *nines = leat_key_by(leat_from_items(env, type, items, 3), "");
        leat_stream *folded =
            i == 0   ? leat_reduce(nines, fail_at_nine)
            : i == 1 ? leat_aggregate(nines, &add_fails, type, type)
            : i == 2 ? leat_aggregate(nines, &result_fails, type, type)
                     : leat_final_only(leat_aggregate(nines, &result_fails, type, type));
        leat_discard(folded);
        cr_assert_eq(run_execute(&r), LEAT_EUSER, "%d: %s", i, r.failure);
        cr_assert(strstr(r.failure, i < 2 ? "nine" : "4") != NULL, "%s", r.failure);
        run_end(&r);
    }
}

Test(folds, only_folds_of_keyed_streams_are_accepted)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_stream *numbers = leat_sequence(env, 1, 2);
    leat_stream *reduced = leat_reduce(leat_key_by(numbers, ""), add_numbers);
    leat_discard(leat_final_only(reduced));
    cr_assert_eq(leat_env_fault_count(env), 0);
    leat_final_only(numbers);
    cr_assert_eq(leat_env_fault_count(env), 1);
    leat_final_only(leat_key_by(reduced, ""));
    cr_assert_eq(leat_env_fault_count(env), 2);
    leat_reduce(numbers, add_numbers);
    cr_assert_eq(leat_env_fault_count(env), 3, "no key");
    cr_assert(strstr(leat_env_fault(env, 0), "leat_final_only") != NULL);
    // An aggregate without a result function emits the accumulator itself.
    leat_aggregate_fns fns = {.add = add_numbers};
    leat_aggregate(leat_key_by(numbers, ""), &fns, leat_type_scalar(LEAT_I64),
                   leat_type_scalar(LEAT_STR));
    cr_assert_eq(leat_env_fault_count(env), 4);
    run_end(&r);
}

Test(folds, the_plan_tells_updates_from_final_values)
{
    for (int final = 0; final < 2; final++) {
        run r;
        leat_env *env = run_begin(&r, 1);
        leat_stream *sums = leat_reduce(leat_key_by(leat_sequence(env, 1, 2), ""), add_numbers);
        leat_discard(final ? leat_final_only(sums) : sums);
        char *text;
        cr_assert_eq(leat_plan(env, LEAT_PLAN_TEXT, &text), LEAT_OK);
        cr_assert_eq(strstr(text, "final") != NULL, final);
        cr_assert_eq(strstr(text, "updates") != NULL, !final);
        leat_plan_free(env, text);
        run_end(&r);
    }
}
