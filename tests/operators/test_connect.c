// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>

#include "run.h"

typedef struct {
    leat_str key;
    int64_t value;
} pair;
LEAT_RECORD(pair, LEAT_FIELD(key, LEAT_STR), LEAT_FIELD(value, LEAT_I64));

static const leat_type *number(void)
{
    return leat_type_scalar(LEAT_I64);
}

static int number_text(leat_ctx *ctx, const void *in, void *out)
{
    char *text = leat_ctx_scratch(ctx, 32);
    *(leat_str *)out =
        (leat_str){text, (size_t)snprintf(text, 32, "n%d", (int)*(const int64_t *)in)};
    return 0;
}

static int same_text(leat_ctx *ctx, const void *in, void *out)
{
    *(leat_str *)out = *(const leat_str *)in;
    return 0;
}

static leat_stream *texts(leat_env *env)
{
    static const leat_str items[] = {{"a", 1}, {"b", 1}, {"", 0}};
    return leat_from_items(env, leat_type_scalar(LEAT_STR), items, 3);
}

Test(connect, co_map_takes_two_types)
{
    for (uint32_t p = 1; p <= 4; p++)
        for (int chained = 0; chained < 2; chained++) {
            run r;
            leat_env *env = run_begin(&r, p);
            leat_env_set_chaining(env, chained);
            leat_connected *both = leat_connect(leat_sequence(env, 1, 3), texts(env));
            leat_stream *out =
                leat_co_map(both, number_text, same_text, leat_type_scalar(LEAT_STR));
            leat_parallelism(leat_print(out), 1);
            run_expect_lines(&r, "n1\nn2\nn3\na\nb\n\n", "co_map");
        }
}

// --- keyed: records of both inputs with the same key meet in one subtask ---

static int first_of_pair(leat_ctx *ctx, const void *in, leat_out *out)
{
    pair p = *(const pair *)in;
    p.value = p.value * 100 + leat_ctx_subtask(ctx);
    return leat_collect(out, &p);
}

static int second_of_pair(leat_ctx *ctx, const void *in, leat_out *out)
{
    pair p = {*(const leat_str *)in, 900 + leat_ctx_subtask(ctx)};
    return leat_collect(out, &p);
}

static int same_subtask(leat_ctx *ctx, const void *in, void *out)
{
    const pair *p = in;
    *(pair *)out = (pair){p->key, p->value % 100};
    return 0;
}

static int keep_max(leat_ctx *ctx, void *accumulator, const void *in)
{
    pair *a = accumulator;
    const pair *p = in;
    if (a->value != p->value)
        return leat_fail(ctx, "key on two subtasks: %d and %d", (int)a->value, (int)p->value);
    return 0;
}

Test(connect, equal_keys_of_both_inputs_meet_in_one_subtask)
{
    enum { KEYS = 200 };
    static char names[KEYS][8];
    static pair pairs[KEYS];
    static leat_str keys[KEYS];
    for (int i = 0; i < KEYS; i++) {
        keys[i] = (leat_str){names[i], (size_t)snprintf(names[i], 8, "k%d", i)};
        pairs[i] = (pair){keys[i], i};
    }
    run r;
    leat_env *env = run_begin(&r, 4);
    leat_stream *a = leat_key_by(leat_from_items(env, LEAT_TYPE(pair), pairs, KEYS), "key");
    leat_stream *b = leat_key_by(leat_from_items(env, leat_type_scalar(LEAT_STR), keys, KEYS), "");
    leat_stream *out =
        leat_co_flat_map(leat_connect(a, b), first_of_pair, second_of_pair, LEAT_TYPE(pair));
    leat_stream *where = leat_map(out, same_subtask, LEAT_TYPE(pair));
    leat_discard(leat_reduce(leat_key_by(where, "key"), keep_max));
    cr_expect_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    run_end(&r);
}

// --- neither input starves ---

typedef struct starve {
    atomic_bool seen; // the one record of the second input
} starve;

static int endless(const leat_ctx *ctx, leat_source_out *out)
{
    starve *s = leat_ctx_user_data(ctx);
    for (int64_t i = 0; !s->seen && i < INT64_C(4000000000); i++)
        if (leat_source_emit(out, &i) != LEAT_OK)
            return 0;
    return 0;
}

static int count_flood(leat_ctx *ctx, const void *in, leat_out *out)
{
    return 0;
}

static int see(leat_ctx *ctx, const void *in, leat_out *out)
{
    ((starve *)leat_ctx_user_data(ctx))->seen = true;
    return leat_collect(out, in);
}

// The first input floods until the second has been seen: the job ends only if it is.
Test(connect, a_flood_on_one_input_does_not_starve_the_other)
{
    for (int swapped = 0; swapped < 2; swapped++) {
        run r;
        starve s = {0};
        leat_env *env = run_begin(&r, 1);
        leat_env_set(env, "workers", swapped ? "1" : "2");
        leat_blocking_source_fns fns = {.run = endless};
        leat_stream *flood = leat_user_data(leat_blocking_source(env, "flood", &fns, number()), &s);
        leat_stream *one = leat_sequence(env, 5, 5);
        leat_connected *both = swapped ? leat_connect(one, flood) : leat_connect(flood, one);
        leat_stream *out = swapped ? leat_co_flat_map(both, see, count_flood, number())
                                   : leat_co_flat_map(both, count_flood, see, number());
        leat_print(leat_user_data(out, &s));
        run_expect_lines(&r, "5\n", "starve");
    }
}

// --- ends of inputs ---

static int note(leat_ctx *ctx, leat_out *out, int64_t what)
{
    return leat_collect(out, &what);
}

static int add_first(leat_ctx *ctx, const void *in, leat_out *out)
{
    return 0;
}

static int end_first(leat_ctx *ctx, leat_out *out)
{
    return note(ctx, out, 1);
}

static int end_second(leat_ctx *ctx, leat_out *out)
{
    return note(ctx, out, 2);
}

static int end_both(leat_ctx *ctx, leat_out *out)
{
    return note(ctx, out, 3);
}

Test(connect, each_end_is_told_once_and_the_last_comes_last)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_co_process_fns fns = {.first = add_first,
                               .second = add_first,
                               .first_end = end_first,
                               .second_end = end_second,
                               .end = end_both};
    leat_connected *both = leat_connect(leat_sequence(env, 1, 1000), leat_sequence(env, 1, 10));
    leat_print(leat_co_process(both, &fns, number()));
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    const char *got = leati_strbuf_text(&r.out[0]);
    cr_expect(!strcmp(got, "1\n2\n3\n") || !strcmp(got, "2\n1\n3\n"), "%s", got);
    run_end(&r);
}

// --- a control stream that is broadcast; the state is the subtask's ---

static int control_open(leat_ctx *ctx)
{
    leat_ctx_set_local(ctx, calloc(1, sizeof(int64_t)));
    return leat_ctx_local(ctx) ? 0 : -1;
}

static int control_close(leat_ctx *ctx)
{
    free(leat_ctx_local(ctx));
    return 0;
}

static int control_element(leat_ctx *ctx, const void *in, leat_out *out)
{
    *(int64_t *)leat_ctx_local(ctx) += *(const int64_t *)in;
    return 0;
}

static int tell_sum(leat_ctx *ctx, leat_out *out)
{
    return leat_collect(out, leat_ctx_local(ctx));
}

static int ignore(leat_ctx *ctx, const void *in, leat_out *out)
{
    return 0;
}

Test(connect, a_broadcast_input_reaches_every_subtask)
{
    run r;
    leat_env *env = run_begin(&r, 3);
    leat_co_process_fns fns = {.first = ignore, .second = control_element, .end = tell_sum};
    leat_stream *control = leat_broadcast(leat_parallelism(leat_sequence(env, 1, 10), 1));
    leat_stream *out =
        leat_co_process(leat_connect(leat_sequence(env, 1, 20), control), &fns, number());
    leat_rich(out, control_open, control_close);
    leat_parallelism(leat_print(out), 1);
    run_expect_lines(&r, "55\n55\n55\n", "broadcast");
}

// --- event time: the smaller of both inputs' ---

// Emits watermarks, each with a record that says what it is.
static int emit_clocked(const leat_ctx *ctx, leat_source_out *out)
{
    const int64_t *times = leat_ctx_user_data(ctx);
    for (; *times; times++)
        if (leat_source_emit_watermark(out, *times) || leat_source_emit(out, times))
            return -1;
    return 0;
}

// The watermark of a record came just before it, so the clock is at most that; it may be ahead of
// the records of the other input, by a watermark whose record is still to come, but not behind
// both.
static int check_clock(leat_ctx *ctx, int input, int64_t watermark)
{
    int64_t *seen = leat_ctx_local(ctx), now = leat_ctx_watermark(ctx);
    seen[input] = watermark;
    int64_t least = seen[0] < seen[1] ? seen[0] : seen[1];
    if (now > watermark || now < least || now < seen[2])
        return leat_fail(ctx, "%d at %d after %d", (int)now, (int)watermark, (int)seen[2]);
    seen[2] = now;
    return 0;
}

static int first_clock(leat_ctx *ctx, const void *in, leat_out *out)
{
    return check_clock(ctx, 0, *(const int64_t *)in);
}

static int second_clock(leat_ctx *ctx, const void *in, leat_out *out)
{
    return check_clock(ctx, 1, *(const int64_t *)in);
}

static int open_clocks(leat_ctx *ctx)
{
    int64_t *seen = malloc(3 * sizeof *seen);
    leat_ctx_set_local(ctx, seen);
    if (!seen)
        return -1;
    seen[0] = seen[1] = seen[2] = INT64_MIN;
    return 0;
}

Test(connect, its_event_time_is_the_smaller_of_its_inputs)
{
    static int64_t slow[] = {5, 9, 9, 20, 0}, fast[] = {3, 8, 30, 40, 50, 0};
    for (int chained = 0; chained < 2; chained++) {
        run r;
        leat_env *env = run_begin(&r, 1);
        leat_env_set_chaining(env, chained);
        leat_blocking_source_fns fns = {.run = emit_clocked};
        leat_stream *a = leat_user_data(leat_blocking_source(env, "a", &fns, number()), slow);
        leat_stream *b = leat_user_data(leat_blocking_source(env, "b", &fns, number()), fast);
        leat_stream *out =
            leat_co_flat_map(leat_connect(a, b), first_clock, second_clock, number());
        leat_discard(leat_rich(out, open_clocks, control_close));
        cr_expect_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
        run_end(&r);
    }
}

// --- faults ---

Test(connect, wrong_uses_are_faults)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_stream *n = leat_sequence(env, 1, 3);
    leat_stream *t = texts(env);
    leat_discard(leat_co_map(leat_connect(leat_key_by(n, ""), t), number_text, same_text,
                             leat_type_scalar(LEAT_STR)));
    leat_discard(leat_co_map(leat_connect(leat_key_by(n, ""), leat_key_by(t, "")), number_text,
                             same_text, leat_type_scalar(LEAT_STR)));
    leat_discard(leat_co_map(leat_connect(n, NULL), number_text, same_text, number()));
    leat_discard(leat_co_map(leat_connect(n, t), number_text, NULL, number()));
    leat_discard(leat_co_process(leat_connect(n, t), NULL, number()));
    leat_discard(leat_co_map(leat_connect(NULL, NULL), number_text, same_text, number()));
    cr_expect_eq(run_execute(&r), LEAT_EINVAL);
    cr_expect(strstr(r.failure, "only one of the streams is keyed"), "%s", r.failure);
    cr_expect(
        strstr(r.failure, "the keys <record> and <record> are of different types: i64 and str"));
    cr_expect(strstr(r.failure, "one of the streams is NULL"));
    cr_expect(strstr(r.failure, "leat_co_map on the output of"));
    cr_expect(strstr(r.failure, "leat_co_process on the output of"));
    run_end(&r);
}

// --- an operator with three inputs of its own, which takes in its sources ---

static leat_err three_element(leat_operator *self, uint32_t input, const void *record,
                              leat_out *out)
{
    int64_t n = *(const int64_t *)record + 1000 * (int64_t)input;
    return leat_collect(out, &n);
}

static leat_err three_ended(leat_operator *self, uint32_t input, leat_out *out)
{
    int64_t n = -1 - (int64_t)input;
    return leat_collect(out, &n);
}

static leat_err three_end(leat_operator *self, leat_out *out)
{
    int64_t n = leat_ctx_watermark(self->ctx) == LEAT_WATERMARK_MAX ? -10 : -11;
    return leat_collect(out, &n);
}

static void three_dispose(leat_operator *self)
{
    free(self);
}

static leat_err three_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    static const leat_operator_ops ops = {.kind = "three",
                                          .element_of = three_element,
                                          .input_ended = three_ended,
                                          .end_input = three_end,
                                          .dispose = three_dispose};
    *op = calloc(1, sizeof **op);
    (*op)->ops = &ops;
    return LEAT_OK;
}

Test(connect, sources_of_an_operator_with_several_inputs_run_in_its_task)
{
    // All inputs absorbed, some, none.
    for (int how = 0; how < 3; how++) {
        run r;
        leat_env *env = run_begin(&r, 1);
        leat_env_set_chaining(env, how < 2);
        leat_stream *third = leat_sequence(env, 7, 7);
        leat_stream *in[] = {leat_sequence(env, 1, 2), leat_sequence(env, 3, 3),
                             how == 1 ? leat_rebalance(third) : third};
        leat_factory factory = {.create = three_create};
        leat_stream *out = leat_transform_inputs(in, 3, "three", &factory, number());
        leat_print(leat_chain_with_sources(out));
        char *plan = NULL;
        cr_assert_eq(leat_plan(env, LEAT_PLAN_TEXT, &plan), LEAT_OK);
        cr_expect_eq(strstr(plan, "tasks   1\n") != NULL, how == 0, "%s", plan);
        cr_expect_eq(strstr(plan, "tasks   2\n") != NULL, how == 1, "%s", plan);
        leat_plan_free(env, plan);
        run_expect_lines(&r, "1\n2\n1003\n2007\n-1\n-2\n-3\n-10\n", "three inputs");
    }
}
