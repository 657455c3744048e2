// SPDX-License-Identifier: Apache-2.0
// A histogram of durations whose buckets grow with the value, so that any percentile is known to
// better than one part in 64 from a fixed and small memory. One thread at a time.
#ifndef LEATI_BENCH_HISTOGRAM_H
#define LEATI_BENCH_HISTOGRAM_H

#include <stdint.h>

// Values up to 2^40 ns, 18 minutes; larger ones count as that.
enum { HISTOGRAM_EXACT_BITS = 7, HISTOGRAM_BITS = 40 };
enum {
    HISTOGRAM_HALF = 1 << (HISTOGRAM_EXACT_BITS - 1), // buckets of one power of two
    HISTOGRAM_BUCKETS = (HISTOGRAM_BITS - HISTOGRAM_EXACT_BITS + 2) * HISTOGRAM_HALF,
};

typedef struct histogram {
    uint64_t count;
    int64_t most; // the largest value itself
    uint64_t buckets[HISTOGRAM_BUCKETS];
} histogram;

// Negative values count as 0.
void histogram_add(histogram *h, int64_t value_ns);

// The least value that `share` of all values (0 < share ≤ 1) do not exceed, rounded up to its
// bucket's end, but no more than the largest value; 0 when there are none.
int64_t histogram_quantile(const histogram *h, double share);

#endif
