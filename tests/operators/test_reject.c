// SPDX-License-Identifier: Apache-2.0
// The policy for rejected records, apart from the kinds of operators (test_reject_by_kind has
// those).
#include "run.h"

typedef struct {
    int64_t id;
    leat_str name;
} person;
LEAT_RECORD(person, LEAT_FIELD(id, LEAT_I64), LEAT_FIELD(name, LEAT_STR));

typedef struct {
    leat_str error;
    person record;
} bad_person;
LEAT_RECORD(bad_person, LEAT_FIELD(error, LEAT_STR), LEAT_FIELD_STRUCT(record, person));

static const person people[] = {{1, {"ann", 3}}, {-2, {"bob", 3}}, {3, {"", 0}}, {4, {"eve", 3}}};

// Refuses negative ids with a reason and empty names without.
static int check(leat_ctx *ctx, const void *in, void *out)
{
    const person *p = in;
    if (p->id < 0)
        return leat_fail(ctx, "id %d is negative", (int)p->id);
    if (p->name.size == 0)
        return 7;
    *(person *)out = *p;
    return 0;
}

static leat_stream *checked(leat_env *env)
{
    leat_stream *in = leat_from_items(env, LEAT_TYPE(person), people, 4);
    return leat_name(leat_map(in, check, LEAT_TYPE(person)), "check");
}

Test(reject, fails_by_default_with_operator_subtask_and_reason)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_print(checked(env));
    cr_expect_eq(run_execute(&r), LEAT_EUSER);
    cr_expect_str_eq(r.failure, "check (1/1): id -2 is negative\n");
    run_end(&r);
}

Test(reject, skips_when_told_to)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_print(leat_on_error(checked(env), LEAT_ON_ERROR_SKIP));
    run_expect_lines(&r, "1\tann\n4\teve\n", "skip");
}

// The C struct has the layout of the type that the library makes.
static int tell(leat_ctx *ctx, const void *in, void *out)
{
    const bad_person *bad = in;
    size_t size = bad->error.size + bad->record.name.size + 30;
    char *text = leat_ctx_scratch(ctx, size);
    *(leat_str *)out =
        (leat_str){text, (size_t)snprintf(text, size, "%d %.*s: %.*s", (int)bad->record.id,
                                          (int)bad->record.name.size, bad->record.name.data,
                                          (int)bad->error.size, bad->error.data)};
    return 0;
}

Test(reject, goes_to_the_side_with_its_error_chained_or_not)
{
    for (int chained = 0; chained < 2; chained++) {
        run r;
        leat_env *env = run_begin(&r, 1);
        leat_env_set_chaining(env, chained);
        leat_stream *good = checked(env);
        leat_print(good);
        leat_stream *bad = leat_rejects(good);
        leat_print(leat_map(bad, tell, leat_type_scalar(LEAT_STR)));
        run_expect_lines(
            &r, "1\tann\n4\teve\n-2 bob: id -2 is negative\n3 : the map function returned 7\n",
            chained ? "chained" : "unchained");
    }
}

static int refuse_four(leat_ctx *ctx, const void *in)
{
    return ((const person *)in)->id == 4 ? leat_fail(ctx, "no four") : 0;
}

// A function that passes on the failure of what is behind it does not reject its own record.
static int pass_on(leat_ctx *ctx, const void *in, leat_out *out)
{
    return leat_collect(out, in);
}

Test(reject, what_fails_behind_the_operator_fails_the_job)
{
    for (int side = 0; side < 2; side++) {
        run r;
        leat_env *env = run_begin(&r, 1);
        leat_stream *in = leat_from_items(env, LEAT_TYPE(person), people, 4);
        leat_stream *s = leat_flat_map(in, pass_on, LEAT_TYPE(person));
        leat_on_error(s, LEAT_ON_ERROR_SKIP);
        if (side)
            leat_discard(leat_rejects(s));
        leat_sink(s, refuse_four);
        cr_expect_eq(run_execute(&r), LEAT_EUSER);
        cr_expect_str_eq(r.failure, "sink (1/1): no four\n");
        run_end(&r);
    }
}

// A custom operator that gives an error without a reason, behind one that skips.
static leat_err broken_element(leat_operator *self, const void *record, leat_out *out)
{
    return LEAT_EIO;
}

static void broken_dispose(leat_operator *self)
{
    free(self);
}

static leat_err broken_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    static const leat_operator_ops ops = {
        .kind = "broken", .element = broken_element, .dispose = broken_dispose};
    *op = calloc(1, sizeof **op);
    (*op)->ops = &ops;
    return LEAT_OK;
}

Test(reject, a_silent_error_behind_a_skipping_operator_is_not_skipped)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_factory factory = {.create = broken_create};
    leat_stream *in = leat_from_items(env, LEAT_TYPE(person), people, 4);
    leat_stream *s =
        leat_on_error(leat_flat_map(in, pass_on, LEAT_TYPE(person)), LEAT_ON_ERROR_SKIP);
    leat_transform_sink(s, "broken", &factory);
    cr_expect_eq(run_execute(&r), LEAT_EIO);
    run_end(&r);
}

// Both of one chain reject, each by its own policy.
Test(reject, policies_of_a_chain_do_not_mix)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_stream *good = checked(env);
    leat_stream *sink = leat_on_error(leat_sink(good, refuse_four), LEAT_ON_ERROR_SKIP);
    leat_print(leat_map(leat_rejects(good), tell, leat_type_scalar(LEAT_STR)));
    leat_print(leat_map(leat_rejects(sink), tell, leat_type_scalar(LEAT_STR)));
    run_expect_lines(&r,
                     "-2 bob: id -2 is negative\n3 : the map function returned 7\n4 eve: no four\n",
                     "two policies");
}

// --- what leat_fail has said ---

// Says something about the second record and lets it pass; refuses the third without a reason.
static int forgetful(leat_ctx *ctx, const void *in, void *out)
{
    int64_t n = *(const int64_t *)in;
    *(int64_t *)out = n;
    if (n == 2)
        (void)leat_fail(ctx, "about the second");
    return n == 3 ? -1 : 0;
}

Test(reject, what_was_said_of_one_record_is_not_said_of_the_next)
{
    for (int chained = 0; chained < 2; chained++) {
        run r;
        leat_env *env = run_begin(&r, 1);
        leat_env_set_chaining(env, chained);
        leat_stream *s = leat_map(leat_sequence(env, 1, 4), forgetful, leat_type_scalar(LEAT_I64));
        leat_print(s);
        leat_print(leat_rejects(s));
        run_expect_lines(&r, "1\n2\n4\nthe map function returned -1\t3\n", "forgetful");
    }
}

static int refuse_key(leat_ctx *ctx, const void *in, void *key)
{
    return *(const int64_t *)in == 2 ? leat_fail(ctx, "no key for two") : 0;
}

static int64_t refuse_channel(leat_ctx *ctx, const void *in, uint32_t channels)
{
    return *(const int64_t *)in == 2 ? leat_fail(ctx, "no way for two") : 0;
}

static int same(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = *(const int64_t *)in;
    return 0;
}

// These fail the job whatever the policy of the operator before, with their reason.
Test(reject, key_functions_and_partitioners_say_why_they_fail)
{
    for (int how = 0; how < 4; how++) {
        run r;
        leat_env *env = run_begin(&r, 2);
        const leat_type *number = leat_type_scalar(LEAT_I64);
        leat_stream *s = leat_name(leat_map(leat_sequence(env, 1, 4), same, number), "before");
        leat_on_error(s, how & 1 ? LEAT_ON_ERROR_SKIP : LEAT_ON_ERROR_FAIL);
        leat_discard(how & 2 ? leat_partition_custom(s, refuse_channel)
                             : leat_key_by_fn(s, refuse_key, number));
        cr_expect_eq(run_execute(&r), LEAT_EUSER);
        cr_expect(strstr(r.failure,
                         how & 2 ? "before (1/2): no way for two" : "before (1/2): no key for two"),
                  "%d: %s", how, r.failure);
        run_end(&r);
    }
}

static int rude(leat_ctx *ctx, const void *in)
{
    return leat_fail(ctx, "a\nb\x1b[31mc\xff\xc3\xa9");
}

// Data must not get at the terminal of whoever reads the failure.
Test(reject, failures_are_one_line_of_text)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_sink(leat_sequence(env, 1, 1), rude);
    cr_expect_eq(run_execute(&r), LEAT_EUSER);
    cr_expect_str_eq(r.failure, "sink (1/1): a?b?[31mc?\xc3\xa9\n");
    run_end(&r);
}

// Operators of several inputs tell their rejects as JSON.
static int refuse_ann(leat_ctx *ctx, const void *in, leat_out *out)
{
    const person *p = in;
    if (p->id == 1)
        return leat_fail(ctx, "not ann");
    return leat_collect(out, &p->id);
}

static int refuse_seven(leat_ctx *ctx, const void *in, leat_out *out)
{
    if (*(const int64_t *)in == 7)
        return -1;
    return leat_collect(out, in);
}

Test(reject, two_inputs_give_their_records_as_json)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_stream *in = leat_from_items(env, LEAT_TYPE(person), people, 4);
    leat_connected *both = leat_connect(in, leat_sequence(env, 6, 8));
    leat_stream *s = leat_co_flat_map(both, refuse_ann, refuse_seven, leat_type_scalar(LEAT_I64));
    leat_print(s);
    leat_print(leat_rejects(s));
    run_expect_lines(&r,
                     "-2\n3\n4\n6\n8\nnot ann\t{\"id\":1,\"name\":\"ann\"}\n"
                     "the function of the second input returned -1\t7\n",
                     "json");
}
