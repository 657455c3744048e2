// SPDX-License-Identifier: Apache-2.0
#include "base/alloc.h"
#include "jobs.h"
#include "placed.h"

TestSuite(accumulators_wire, .timeout = 120);

typedef struct tools {
    leat_accumulator *sum, *average, *largest, *spread, *numbers, *texts, *never;
} tools;

static int open_tools(leat_ctx *ctx)
{
    tools *t = calloc(1, sizeof *t);
    t->sum = leat_ctx_accumulator(ctx, "sum", LEAT_ACCUMULATOR_SUM_I64);
    t->average = leat_ctx_accumulator(ctx, "average", LEAT_ACCUMULATOR_AVERAGE);
    t->largest = leat_ctx_accumulator(ctx, "largest", LEAT_ACCUMULATOR_MAX_I64);
    t->spread = leat_ctx_accumulator(ctx, "spread", LEAT_ACCUMULATOR_HISTOGRAM);
    t->numbers = leat_ctx_accumulator(ctx, "numbers", LEAT_ACCUMULATOR_LIST_F64);
    t->texts = leat_ctx_accumulator(ctx, "texts", LEAT_ACCUMULATOR_LIST_STR);
    t->never = leat_ctx_accumulator(ctx, "never", LEAT_ACCUMULATOR_MIN_F64);
    leat_ctx_set_local(ctx, t);
    return 0;
}

static int close_tools(leat_ctx *ctx)
{
    free(leat_ctx_local(ctx));
    return 0;
}

static int count(leat_ctx *ctx, const void *in)
{
    const tools *t = leat_ctx_local(ctx);
    int64_t n = *(const int64_t *)in;
    leat_accumulator_add_i64(t->sum, n);
    leat_accumulator_add_f64(t->average, (double)n);
    leat_accumulator_add_i64(t->largest, n);
    leat_accumulator_add_i64(t->spread, n - 50);
    leat_accumulator_add_f64(t->numbers, (double)n / 2);
    char text[20];
    leat_str str = {.data = text, .size = (size_t)snprintf(text, sizeof text, "%d", (int)n)};
    leat_accumulator_add_str(t->texts, n % 10 ? str : (leat_str){0});
    return 0;
}

// The numbers from 1 to 100; subtask i gets each third one.
static void build(leat_env *env, void *user)
{
    leat_stream *sink = leat_sink(leat_rebalance(leat_sequence(env, 1, 100)), count);
    leat_parallelism(leat_rich(sink, open_tools, close_tools), 3);
}

typedef struct part {
    uint8_t *bytes;
    size_t size;
} part;

static placed_run run;

static void run_job(part parts[3])
{
    const uint32_t process_of[] = {0, 0, 1, 2};
    cr_assert(placed_start(&run, 3, process_of, build, NULL) == LEAT_OK, "%s", run.failure_text);
    placed_wait_over(&run);
    for (uint32_t i = 0; i < 3; i++)
        cr_assert(leati_job_accumulators_encode(run.processes[i].job, &parts[i].bytes,
                                                &parts[i].size) == LEAT_OK);
    cr_assert(placed_conclude(&run, true) == LEAT_OK);
}

static void end_job(part parts[3])
{
    for (uint32_t i = 0; i < 3; i++)
        leati_free(leati_allocator_or_default(NULL), parts[i].bytes);
    placed_destroy(&run);
}

static leat_err decode(const part *parts, uint32_t number, leat_accumulators **all)
{
    const uint8_t *bytes[3];
    size_t sizes[3];
    for (uint32_t i = 0; i < number; i++) {
        bytes[i] = parts[i].bytes;
        sizes[i] = parts[i].size;
    }
    return leati_accumulators_decode(NULL, bytes, sizes, number, all);
}

static leat_accumulator_value find(const leat_accumulators *all, const char *name)
{
    leat_accumulator_value value;
    cr_assert(leat_accumulators_find(all, name, &value), "%s", name);
    return value;
}

Test(accumulators_wire, parts_of_several_processes_give_what_one_process_would)
{
    part parts[3];
    run_job(parts);
    leat_accumulators *all, *back;
    // In whatever order the parts come.
    part turned[] = {parts[2], parts[0], parts[1]};
    cr_assert(decode(parts, 3, &all) == LEAT_OK);
    cr_assert(decode(turned, 3, &back) == LEAT_OK);
    cr_assert(leat_accumulators_count(all) == 7);
    cr_assert(find(all, "sum").i64 == 5050 && find(all, "sum").count == 100);
    cr_assert(find(all, "average").f64 == 50.5);
    cr_assert(find(all, "largest").i64 == 100);
    cr_assert(find(all, "never").count == 0);
    const leat_histogram *spread = find(all, "spread").histogram;
    cr_assert(leat_histogram_count(spread) == 100 && leat_histogram_min(spread) == -49 &&
              leat_histogram_max(spread) == 50);
    cr_assert(leat_histogram_percentile(spread, 50) == 0);
    leat_accumulator_value numbers = find(all, "numbers"), again = find(back, "numbers");
    leat_accumulator_value texts = find(all, "texts");
    cr_assert(numbers.count == 100 && texts.count == 100);
    double total = 0;
    for (uint64_t i = 0; i < 100; i++) {
        cr_assert(numbers.f64s[i] == again.f64s[i]);
        total += numbers.f64s[i];
        int64_t n = (int64_t)(numbers.f64s[i] * 2);
        cr_assert(texts.strs[i].size == (n % 10 ? n < 10 ? 1 : 2 : 0));
    }
    cr_assert(total == 2525);
    leat_accumulators_destroy(&all);
    leat_accumulators_destroy(&back);
    end_job(parts);
}

Test(accumulators_wire, nothing_gives_nothing)
{
    leat_accumulators *all;
    cr_assert(leati_accumulators_decode(NULL, NULL, NULL, 0, &all) == LEAT_OK);
    cr_assert(leat_accumulators_count(all) == 0);
    leat_accumulators_destroy(&all);
}

Test(accumulators_wire, bytes_that_were_cut_or_continued_are_refused)
{
    part parts[3];
    run_job(parts);
    uint8_t *longer = calloc(1, parts[0].size + 1);
    memcpy(longer, parts[0].bytes, parts[0].size);
    leat_accumulators *all;
    part bad = {.bytes = longer, .size = parts[0].size + 1};
    cr_assert(decode(&bad, 1, &all) == LEAT_ECORRUPT);
    for (size_t size = 0; size < parts[0].size; size++) {
        // A block of its own, so that reading beyond it is found.
        bad = (part){.bytes = malloc(size + 1), .size = size};
        memcpy(bad.bytes, longer, size);
        cr_assert(decode(&bad, 1, &all) == LEAT_ECORRUPT, "%zu bytes", size);
        free(bad.bytes);
    }
    free(longer);
    end_job(parts);
}

Test(accumulators_wire, whatever_is_changed_it_is_refused_or_gives_something)
{
    part parts[3];
    run_job(parts);
    for (size_t i = 0; i < parts[0].size * 8; i++) {
        parts[0].bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        leat_accumulators *all;
        leat_err err = decode(parts, 3, &all);
        cr_assert(!err || err == LEAT_ECORRUPT || err == LEAT_ETYPE);
        if (!err)
            leat_accumulators_destroy(&all);
        parts[0].bytes[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    end_job(parts);
}

Test(accumulators_wire, one_name_of_two_kinds_is_refused)
{
    // Version, one entry: vertex, operator, subtask, kind, "n", no values.
    uint8_t one[] = {1, 1, 0, 0,   0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                     0, 0, 1, 'n', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    uint8_t other[sizeof one];
    memcpy(other, one, sizeof one);
    other[17] = LEAT_ACCUMULATOR_HISTOGRAM;
    part parts[] = {{one, sizeof one}, {one, sizeof one}};
    leat_accumulators *all;
    cr_assert(decode(parts, 2, &all) == LEAT_OK);
    cr_assert(leat_accumulators_count(all) == 1);
    leat_accumulators_destroy(&all);
    parts[1].bytes = other;
    cr_assert(decode(parts, 2, &all) == LEAT_ETYPE);
}
