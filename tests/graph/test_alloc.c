// SPDX-License-Identifier: Apache-2.0
// The n-th allocation fails, for every n of building, checking, printing and encoding a small job:
// no crash, no leak (AddressSanitizer looks), and out of memory is what is reported.
#include "tests/graph/graph_testing.h"

typedef struct failing {
    size_t left; // allocations until the one that fails, which all later ones do too if `for_good`
    bool for_good;
    bool failed;
    size_t alive;
} failing;

static bool refuses(failing *f)
{
    if (f->left > 0) {
        f->left--;
        return false;
    }
    bool refused = f->for_good || !f->failed;
    f->failed = true;
    return refused;
}

static void *failing_alloc(void *user, size_t size)
{
    failing *f = user;
    if (refuses(f))
        return NULL;
    void *ptr = malloc(size);
    f->alive += ptr != NULL;
    return ptr;
}

static void *failing_realloc(void *user, void *ptr, size_t size)
{
    failing *f = user;
    if (refuses(f))
        return NULL;
    void *moved = realloc(ptr, size);
    f->alive += !ptr && moved;
    return moved;
}

static void failing_free(void *user, void *ptr)
{
    failing *f = user;
    f->alive -= ptr != NULL;
    free(ptr);
}

static int some_key(leat_ctx *ctx, const void *in, void *key)
{
    return 0;
}

static void build(leat_env *env)
{
    leat_env_set_name(env, "job");
    const leat_type *pair = NULL;
    leat_field_spec fields[] = {{"word", leat_type_scalar(LEAT_STR)},
                                {"count", leat_type_scalar(LEAT_I64)}};
    if (leat_type_struct_create(leat_env_allocator(env), "pair", fields, 2, &pair) != LEAT_OK) {
        leat_env_fail(env, LEAT_ENOMEM, "no memory");
        return;
    }
    leat_stream *a = source_of(env, "a", pair), *b = source_of(env, "b", pair);
    leat_stream *u = leat_key_by(union_of(a, leat_rebalance(b)), "word, count");
    leat_stream *r = leat_uid(leat_name(keyed_op(u, "r"), "count words"), "counts");
    leat_stream *t = keyed_op(leat_key_by_fn(r, some_key, pair), "t");
    leat_stream *j = leat_slot_group(join(t, r, "j", LEATI_CHAIN_ALWAYS), "group");
    sink(leat_broadcast_variable(leat_broadcast_variable(j, "v", a), "w", b), "k");
    leat_err ignored = leati_env_set_folder(env, "/folder");
    leat_cache_file(env, "file", "data");
    ignored = ignored ? ignored : leati_env_set_cache(env, "other", "/data");
    (void)ignored; // it is a fault as well
    (void)leat_env_alloc(env, 5000);
    leat_type_release(pair);
}

static leat_err use(leat_env *env)
{
    leati_job_graph *graph = NULL, *copy = NULL;
    uint8_t *bytes = NULL;
    size_t size = 0;
    char why[100], *text = NULL;
    leat_err err = leati_job_graph_create(env, &graph);
    if (err != LEAT_OK) {
        cr_assert(leat_env_fault_count(env) > 0 && leat_env_fault(env, 0));
        return err;
    }
    err = leati_job_graph_encode(graph, &bytes, &size);
    if (err == LEAT_OK)
        err = leati_job_graph_decode(leat_env_allocator(env), bytes, size, &copy, why, sizeof why);
    leati_job_graph_destroy(&graph);
    leati_job_graph_destroy(&copy);
    if (bytes)
        leat_env_allocator(env)->release(leat_env_allocator(env)->user, bytes);
    for (int format = LEAT_PLAN_TEXT; format <= LEAT_PLAN_DOT && err == LEAT_OK; format++) {
        err = leat_plan(env, (leat_plan_format)format, &text);
        if (err == LEAT_OK)
            leat_plan_free(env, text);
    }
    return err;
}

static leat_err run(failing *f)
{
    leat_allocator allocator = {failing_alloc, failing_realloc, failing_free, f};
    leat_env_options options = {.allocator = &allocator};
    leat_env *env = NULL;
    leat_err err = leat_env_create(&options, &env);
    if (err == LEAT_OK) {
        build(env);
        err = use(env);
    }
    leat_env_destroy(&env);
    cr_assert(f->alive == 0, "%zu blocks are left", f->alive);
    return err;
}

static void fail_each_in_turn(bool for_good)
{
    for (size_t n = 0;; n++) {
        failing f = {.left = n, .for_good = for_good};
        leat_err err = run(&f);
        cr_assert(err == (f.failed ? LEAT_ENOMEM : LEAT_OK), "allocation %zu: %s", n,
                  leat_err_name(err));
        if (!f.failed) {
            cr_assert(n > 50, "only %zu allocations", n);
            return;
        }
    }
}

Test(alloc, one_failed_allocation_is_reported_and_leaks_nothing)
{
    fail_each_in_turn(false);
}

Test(alloc, memory_that_stays_exhausted_is_reported_and_leaks_nothing)
{
    fail_each_in_turn(true);
}

// What made validation fail is gone, so the next try succeeds.
Test(alloc, a_check_that_ran_out_of_memory_can_be_repeated)
{
    failing f = {.left = SIZE_MAX};
    leat_allocator allocator = {failing_alloc, failing_realloc, failing_free, &f};
    leat_env_options options = {.allocator = &allocator};
    leat_env *env = NULL;
    cr_assert(leat_env_create(&options, &env) == LEAT_OK);
    build(env);
    f.left = 0;
    f.for_good = true;
    cr_assert(leat_env_check(env) == LEAT_ENOMEM);
    cr_assert(leat_env_fault_count(env) == 1);
    cr_assert(strstr(leat_env_fault(env, 0), "out of memory"));
    f.left = SIZE_MAX;
    cr_assert(leat_env_check(env) == LEAT_OK);
    cr_assert(leat_env_fault_count(env) == 0);
    leat_env_destroy(&env);
}
