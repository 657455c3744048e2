// SPDX-License-Identifier: Apache-2.0
// The inside of leat_histogram: counts by log-linear buckets, as HDR histograms have them.
//
// A value's magnitude below 64 has a bucket of its own; above that, each power of two is cut into
// 32 buckets of equal width, so a bucket is at most 1/32 of its lowest value wide and its middle at
// most 1/64 off. Negative values have buckets of their own. Memory is bounded by that: 30 KB.
//
// Threading: one writer, any number of readers, see leat/metrics.h.
#ifndef LEATI_RUNTIME_HISTOGRAM_H
#define LEATI_RUNTIME_HISTOGRAM_H

#include <stdatomic.h>

#include "leat/metrics.h"

enum { LEATI_HISTOGRAM_BUCKETS = 32 * 59 };

struct leat_histogram {
    _Atomic uint64_t count;
    _Atomic double sum;
    _Atomic int64_t min, max; // 0 before the first value
    // By sign; [1] holds -1 - value.
    _Atomic uint64_t buckets[2][LEATI_HISTOGRAM_BUCKETS];
};

// The bucket of a magnitude, and the value that stands for all of a bucket.
uint32_t leati_histogram_bucket(uint64_t magnitude);
uint64_t leati_histogram_middle(uint32_t bucket);
// Adds what `from` holds; nobody else may use `to` meanwhile.
void leati_histogram_merge(leat_histogram *to, const leat_histogram *from);

#endif
