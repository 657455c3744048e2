// SPDX-License-Identifier: Apache-2.0
#include "bench/histogram.h"

#include <stddef.h>

// Values below 2^HISTOGRAM_EXACT_BITS have buckets of their own. Above, only the leading
// HISTOGRAM_EXACT_BITS bits count; their top bit is always set, so each further power of two takes
// HISTOGRAM_HALF buckets.
static size_t bucket_of(uint64_t value)
{
    if (value >> HISTOGRAM_EXACT_BITS == 0)
        return (size_t)value;
    unsigned shift = 64 - (unsigned)__builtin_clzll(value) - HISTOGRAM_EXACT_BITS;
    return shift * (size_t)HISTOGRAM_HALF + (size_t)(value >> shift);
}

// The largest value in a bucket.
static int64_t end_of(size_t bucket)
{
    if (bucket >> HISTOGRAM_EXACT_BITS == 0)
        return (int64_t)bucket;
    size_t shift = bucket / HISTOGRAM_HALF - 1;
    uint64_t leading = bucket - shift * HISTOGRAM_HALF;
    return (int64_t)(((leading + 1) << shift) - 1);
}

void histogram_add(histogram *h, int64_t value_ns)
{
    const int64_t limit = (INT64_C(1) << HISTOGRAM_BITS) - 1;
    int64_t value = value_ns < 0 ? 0 : value_ns > limit ? limit : value_ns;
    h->buckets[bucket_of((uint64_t)value)]++;
    h->count++;
    if (value > h->most)
        h->most = value;
}

int64_t histogram_quantile(const histogram *h, double share)
{
    double wanted = share * (double)h->count;
    uint64_t seen = 0;
    for (size_t bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
        seen += h->buckets[bucket];
        if (seen > 0 && (double)seen >= wanted)
            return end_of(bucket) < h->most ? end_of(bucket) : h->most;
    }
    return h->most;
}
