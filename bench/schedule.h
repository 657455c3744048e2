// SPDX-License-Identifier: Apache-2.0
// When a paced source owes each record. A record's latency counts from the moment it was due, not
// from when the source got round to it: a source that is held up does not hide the wait.
#ifndef LEATI_BENCH_SCHEDULE_H
#define LEATI_BENCH_SCHEDULE_H

#include <stdint.h>

#include "bench/histogram.h"

typedef struct schedule {
    uint64_t records;
    double interval_ns; // between two records; 0: all are due at the start
} schedule;

// The time by the monotonic clock at which record `index` is due.
static inline int64_t schedule_due(const schedule *s, int64_t start_ns, uint64_t index)
{
    return start_ns + (int64_t)((double)index * s->interval_ns);
}

// How many records are due at `now_ns`.
static inline uint64_t schedule_owed(const schedule *s, int64_t start_ns, int64_t now_ns)
{
    if (now_ns < start_ns)
        return 0;
    double owed = s->interval_ns > 0 ? (double)(now_ns - start_ns) / s->interval_ns + 1 : 0;
    return s->interval_ns > 0 && owed < (double)s->records ? (uint64_t)owed : s->records;
}

// What arrived. The clock is read for each record whose index has none of the bits of `skip`: at
// tens of millions a second, reading it for all would be what is measured.
typedef struct arrivals {
    uint64_t skip;
    uint64_t records, sum; // of the indices
    histogram latencies;
} arrivals;

// The yardstick: two threads, of which one follows the schedule and puts records into a queue of
// `capacity` slots (a power of two), and the other sleeps until there are some. 0, or -1 after
// saying why.
int bare_latency(const schedule *s, uint32_t capacity, arrivals *result);

#endif
