// SPDX-License-Identifier: Apache-2.0
// Records from one task manager to another, in processes of their own on this machine: how fast,
// for which share of what a bare program does with the same records; with many channels over the
// one connection; with a channel that stands still; encrypted; and what a hop adds to the latency.
//
// The speed of a case of bytes is in MB/s, and its processor time is seconds a GB: of both
// processes, with the kernel's share.
#include <stdio.h>
#include <string.h>

#include "bench/bare_remote.h"
#include "bench/certificates.h"
#include "bench/harness.h"
#include "bench/job.h"
#include "bench/pair.h"

// The bodies make records of 100 and of 4,096 bytes when encoded.
enum { SMALL = 100, LARGE = 4096, SMALL_BODY = SMALL - 12, LARGE_BODY = LARGE - 15 };
enum { DEFAULT_MB = 1600, QUICK_MB = 4, PAIRS = 100, RATE = 1000, SECONDS = 3, DEEP = 32 };

static int finish(const pair_plan *plan, const pair_result *got, uint64_t bytes,
                  bench_outcome *outcome)
{
    pair_result expected;
    pair_expect(plan, &expected);
    if (got->records != expected.records || got->sum != expected.sum) {
        fprintf(stderr, "%llu records have come of %llu\n", (unsigned long long)got->records,
                (unsigned long long)expected.records);
        return -1;
    }
    *outcome = (bench_outcome){.items = bytes};
    return 0;
}

// --- the speed of one channel ---

typedef struct speed_load {
    uint64_t records;
    uint32_t size, body;
    char certificates[CERTIFICATES_FOLDER]; // of the case of TLS
} speed_load;

static int run_bare(const speed_load *l, uint32_t plain, bench_outcome *outcome)
{
    bare_result got;
    const bare_load load = {.records = l->records, .body = l->body, .plain = plain};
    if (bare_remote(&load, &got) != 0)
        return -1;
    if (plain) {
        *outcome = (bench_outcome){.items = l->records * l->size};
        return 0;
    }
    const pair_plan plan = {.sources = 1, .each = l->records, .first = l->records, .body = l->body};
    const pair_result result = {.records = got.records, .sum = got.sum};
    return finish(&plan, &result, l->records * l->size, outcome);
}

static int run_nng(void *context, bench_outcome *outcome)
{
    return run_bare(context, 0, outcome);
}

static int run_plain(void *context, bench_outcome *outcome)
{
    return run_bare(context, 1, outcome);
}

static int run_channels(const pair_plan *plan, uint32_t size, bench_outcome *outcome)
{
    static pair_result got;
    pair_result expected;
    if (pair_run(plan, &got) != 0)
        return -1;
    pair_expect(plan, &expected);
    return finish(plan, &got, expected.records * size, outcome);
}

static pair_plan plan_of(const speed_load *l)
{
    return (pair_plan){.sources = 1,
                       .sinks = 1,
                       .forward = true,
                       .workers = 1,
                       .body = l->body,
                       .each = l->records,
                       .first = l->records};
}

static int run_leat(void *context, bench_outcome *outcome)
{
    const speed_load *l = context;
    const pair_plan plan = plan_of(l);
    return run_channels(&plan, l->size, outcome);
}

static int run_deep(void *context, bench_outcome *outcome)
{
    const speed_load *l = context;
    pair_plan plan = plan_of(l);
    plan.floating = DEEP;
    return run_channels(&plan, l->size, outcome);
}

static int run_near(void *context, bench_outcome *outcome)
{
    const speed_load *l = context;
    pair_plan plan = plan_of(l);
    plan.near = true;
    return run_channels(&plan, l->size, outcome);
}

static int run_tls(void *context, bench_outcome *outcome)
{
    const speed_load *l = context;
    pair_plan plan = plan_of(l);
    snprintf(plan.certificates, sizeof plan.certificates, "%s", l->certificates);
    return run_channels(&plan, l->size, outcome);
}

static uint64_t megabytes(const bench_options *options)
{
    return options->quick ? QUICK_MB : options->size ? options->size : DEFAULT_MB;
}

static int setup_speed(bench_case *self, const bench_options *options, speed_load *l)
{
    l->records = megabytes(options) * 1000000 / l->size;
    self->context = l;
    self->expected = (bench_outcome){.items = l->records * l->size};
    return 0;
}

static int setup_small(bench_case *self, const bench_options *options)
{
    static speed_load load = {.size = SMALL, .body = SMALL_BODY};
    return setup_speed(self, options, &load);
}

static int setup_large(bench_case *self, const bench_options *options)
{
    static speed_load load = {.size = LARGE, .body = LARGE_BODY};
    return setup_speed(self, options, &load);
}

static speed_load tls_load = {.size = LARGE, .body = LARGE_BODY};

static int setup_tls(bench_case *self, const bench_options *options)
{
    return certificates_make(tls_load.certificates) != 0 ? -1
                                                         : setup_speed(self, options, &tls_load);
}

static void teardown_tls(bench_case *self)
{
    certificates_remove(tls_load.certificates);
}

// --- many channels ---

// A thousand, and the same records over four.
static int run_few(void *context, bench_outcome *outcome)
{
    uint64_t records = *(const uint64_t *)context;
    const pair_plan plan = {.sources = 2,
                            .sinks = 2,
                            .workers = 1,
                            .body = SMALL_BODY,
                            .each = records / 2,
                            .first = records / 2};
    return run_channels(&plan, SMALL, outcome);
}

static int run_many(void *context, bench_outcome *outcome)
{
    uint64_t records = *(const uint64_t *)context;
    const pair_plan plan = {.sources = 25,
                            .sinks = 40,
                            .workers = 1,
                            .body = SMALL_BODY,
                            .each = records / 25,
                            .first = records / 25};
    return run_channels(&plan, SMALL, outcome);
}

static int setup_many(bench_case *self, const bench_options *options)
{
    static uint64_t records;
    records = megabytes(options) * 1000000 / SMALL / 1000 * 1000;
    self->context = &records;
    self->expected = (bench_outcome){.items = records * SMALL};
    return 0;
}

// --- one that stands still ---

static int run_pairs(const uint64_t *records, bool stalls, bench_outcome *outcome)
{
    // Of the pair that may stand still there is more than fits its buffers, and little else.
    const pair_plan plan = {.sources = PAIRS,
                            .sinks = PAIRS,
                            .forward = true,
                            .stalls = stalls,
                            .workers = 1,
                            .body = SMALL_BODY,
                            .each = *records / PAIRS,
                            .first = *records / PAIRS / 2};
    return run_channels(&plan, SMALL, outcome);
}

static int run_flowing(void *context, bench_outcome *outcome)
{
    return run_pairs(context, false, outcome);
}

static int run_stalled(void *context, bench_outcome *outcome)
{
    return run_pairs(context, true, outcome);
}

static int setup_stalled(bench_case *self, const bench_options *options)
{
    static uint64_t records;
    records = megabytes(options) * 1000000 / SMALL / (2 * PAIRS) * (2 * PAIRS);
    self->context = &records;
    self->expected = (bench_outcome){.items = (records - records / PAIRS / 2) * SMALL};
    return 0;
}

// --- latency ---

static const bench_figure hop_figures[] = {
    {"p50", "µs", 0}, {"p99", "µs", 0}, {"CPU", "% of a core", 0}};

typedef struct hop_load {
    uint64_t records;
    double seconds;
} hop_load;

static int run_trips(void *context, bench_outcome *outcome)
{
    const hop_load *l = context;
    bare_halves halves;
    const bare_trips trips = {.count = l->records, .interval_ns = 1000000000 / RATE};
    if (bare_round_trips(&trips, &halves) != 0)
        return -1;
    *outcome = (bench_outcome){.items = l->records, .figures = {halves.p50, halves.p99, 0}};
    return 0;
}

static int run_paced(const hop_load *l, bool alone, double figures[2])
{
    static pair_result got;
    const pair_plan plan = {.sources = 1,
                            .sinks = 1,
                            .alone = alone,
                            .workers = alone ? 2 : 1,
                            .pace = {l->records, 1e9 / RATE}};
    if (pair_run(&plan, &got) != 0 || got.arrivals.records != l->records)
        return -1;
    figures[0] = (double)histogram_quantile(&got.arrivals.latencies, 0.5) * 1e-3;
    figures[1] = (double)histogram_quantile(&got.arrivals.latencies, 0.99) * 1e-3;
    return 0;
}

static int run_hop(void *context, bool alone, bench_outcome *outcome)
{
    const hop_load *l = context;
    double figures[2], cpu = bench_all_cpu_seconds();
    if (run_paced(l, alone, figures) != 0)
        return -1;
    cpu = bench_all_cpu_seconds() - cpu;
    *outcome = (bench_outcome){.items = l->records,
                               .figures = {figures[0], figures[1], cpu / l->seconds * 100}};
    return 0;
}

static int run_local(void *context, bench_outcome *outcome)
{
    return run_hop(context, true, outcome);
}

static int run_remote(void *context, bench_outcome *outcome)
{
    return run_hop(context, false, outcome);
}

// What the remote one takes longer.
static int run_added(void *context, bench_outcome *outcome)
{
    bench_outcome local, remote;
    if (run_local(context, &local) != 0 || run_remote(context, &remote) != 0)
        return -1;
    *outcome = remote;
    for (int i = 0; i < 3; i++)
        outcome->figures[i] -= local.figures[i];
    return 0;
}

static int setup_hop(bench_case *self, const bench_options *options)
{
    static hop_load load;
    load.seconds = options->quick ? 0.1 : SECONDS;
    load.records = (uint64_t)(RATE * load.seconds);
    self->context = &load;
    self->expected = (bench_outcome){.items = load.records};
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--pair") == 0)
        return pair_far_main();
    if (argc == 2 && strcmp(argv[1], "--bare") == 0)
        return bare_far_main();
    if (argc == 2 && strcmp(argv[1], "--echo") == 0)
        return bare_echo_main();
    static const char pools[] =
        "segments of a channel: 10 at the sender and 10 at the receiver; deep: 34 and 34, the bare "
        "programs' being 16, 2 and what the system holds";
    static const bench_variant small[] = {{"bare nng", run_nng, 0},
                                          {"bare sockets", run_plain, 0},
                                          {"leat", run_leat, 0.7},
                                          {"leat, deep", run_deep, 0.7},
                                          {"leat over ipc", run_near, 0}};
    static const bench_variant large[] = {{"bare nng", run_nng, 0},
                                          {"bare sockets", run_plain, 0},
                                          {"leat", run_leat, 0.8},
                                          {"leat, deep", run_deep, 0.8},
                                          {"leat over ipc", run_near, 0}};
    static const bench_variant tls[] = {{"leat", run_leat, 0}, {"leat over TLS", run_tls, 0}};
    static const bench_variant channels[] = {{"4 channels", run_few, 0},
                                             {"1000 channels", run_many, 0.6}};
    static const bench_variant stalled[] = {{"all flow", run_flowing, 0},
                                            {"one stands", run_stalled, 0.95}};
    static const bench_variant hops[] = {{"half a trip", run_trips, 0},
                                         {"local", run_local, 0},
                                         {"remote", run_remote, 0},
                                         {"added", run_added, 0}};
    bench_case cases[] = {
        {.name = "100 bytes",
         .unit = "bytes",
         .variants = small,
         .variant_count = 5,
         .note = pools,
         .setup = setup_small},
        {.name = "4096 bytes",
         .unit = "bytes",
         .variants = large,
         .variant_count = 5,
         .note = pools,
         .setup = setup_large},
        {.name = "tls",
         .unit = "bytes",
         .variants = tls,
         .variant_count = 2,
         .setup = setup_tls,
         .teardown = teardown_tls,
         .note = "records of 4,096 bytes; TLS of both sides by certificates"},
        {.name = "channels",
         .unit = "bytes",
         .variants = channels,
         .variant_count = 2,
         .setup = setup_many,
         .note = "records of 100 bytes; 2 x 2 and 25 x 40 tasks; memory.network of 64 MiB, 2,048 "
                 "segments, in each process"},
        {.name = "stalled",
         .unit = "bytes",
         .variants = stalled,
         .variant_count = 2,
         .setup = setup_stalled,
         .note = "records of 100 bytes; 100 pairs over one connection"},
        {.name = "hop",
         .unit = "records",
         .variants = hops,
         .variant_count = 4,
         .figures = hop_figures,
         .figure_count = 3,
         .setup = setup_hop,
         .note = "1,000 records a second; the goal for p50 added is twice half a bare round trip"},
    };
    return bench_main(argc, argv, "remote", cases, sizeof cases / sizeof *cases);
}
