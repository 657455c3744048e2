// SPDX-License-Identifier: Apache-2.0
#include "runtime/histogram.h"

// 2^5 buckets for each power of two.
enum { BITS = 5, PER_POWER = 1 << BITS };

uint32_t leati_histogram_bucket(uint64_t magnitude)
{
    if (magnitude < PER_POWER)
        return (uint32_t)magnitude;
    uint32_t shift = 63 - BITS - (uint32_t)__builtin_clzll(magnitude);
    return shift * PER_POWER + (uint32_t)(magnitude >> shift);
}

uint64_t leati_histogram_middle(uint32_t bucket)
{
    if (bucket < 2 * PER_POWER)
        return bucket;
    uint32_t shift = bucket / PER_POWER - 1;
    uint64_t lowest = (uint64_t)(bucket - shift * PER_POWER) << shift;
    return lowest + (((UINT64_C(1) << shift) - 1) >> 1);
}

// --- writing ---

static void bump(_Atomic uint64_t *counter, uint64_t n)
{
    // Release pairs with the acquire of readers: whoever sees a value counted sees the extremes
    // that it has set.
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_release);
}

static void widen(leat_histogram *h, int64_t min, int64_t max)
{
    bool first = atomic_load_explicit(&h->count, memory_order_relaxed) == 0;
    if (first || min < atomic_load_explicit(&h->min, memory_order_relaxed))
        atomic_store_explicit(&h->min, min, memory_order_relaxed);
    if (first || max > atomic_load_explicit(&h->max, memory_order_relaxed))
        atomic_store_explicit(&h->max, max, memory_order_relaxed);
}

static void add_sum(leat_histogram *h, double value)
{
    atomic_store_explicit(&h->sum, atomic_load_explicit(&h->sum, memory_order_relaxed) + value,
                          memory_order_relaxed);
}

void leat_histogram_record(leat_histogram *h, int64_t value)
{
    if (!h)
        return;
    widen(h, value, value);
    add_sum(h, (double)value);
    // -1 - value is the complement, which no negative number lacks.
    uint64_t magnitude = value < 0 ? ~(uint64_t)value : (uint64_t)value;
    bump(&h->buckets[value < 0][leati_histogram_bucket(magnitude)], 1);
    bump(&h->count, 1);
}

void leati_histogram_merge(leat_histogram *to, const leat_histogram *from)
{
    uint64_t total = 0;
    for (int sign = 0; sign < 2; sign++)
        for (uint32_t i = 0; i < LEATI_HISTOGRAM_BUCKETS; i++) {
            uint64_t n = atomic_load_explicit(&from->buckets[sign][i], memory_order_acquire);
            bump(&to->buckets[sign][i], n);
            total += n;
        }
    if (total == 0)
        return;
    widen(to, atomic_load_explicit(&from->min, memory_order_relaxed),
          atomic_load_explicit(&from->max, memory_order_relaxed));
    add_sum(to, atomic_load_explicit(&from->sum, memory_order_relaxed));
    bump(&to->count, total);
}

// --- reading ---

uint64_t leat_histogram_count(const leat_histogram *h)
{
    return h ? atomic_load_explicit(&h->count, memory_order_acquire) : 0;
}

int64_t leat_histogram_min(const leat_histogram *h)
{
    return h ? atomic_load_explicit(&h->min, memory_order_relaxed) : 0;
}

int64_t leat_histogram_max(const leat_histogram *h)
{
    return h ? atomic_load_explicit(&h->max, memory_order_relaxed) : 0;
}

double leat_histogram_mean(const leat_histogram *h)
{
    uint64_t count = leat_histogram_count(h);
    return count ? atomic_load_explicit(&h->sum, memory_order_relaxed) / (double)count : 0;
}

// Buckets from the lowest values to the highest, numbered from 0.
static uint64_t count_at(const leat_histogram *h, uint32_t place)
{
    const _Atomic uint64_t *bucket = place < LEATI_HISTOGRAM_BUCKETS
                                         ? &h->buckets[1][LEATI_HISTOGRAM_BUCKETS - 1 - place]
                                         : &h->buckets[0][place - LEATI_HISTOGRAM_BUCKETS];
    return atomic_load_explicit(bucket, memory_order_acquire);
}

static int64_t value_at(uint32_t place)
{
    if (place >= LEATI_HISTOGRAM_BUCKETS)
        return (int64_t)leati_histogram_middle(place - LEATI_HISTOGRAM_BUCKETS);
    return -1 - (int64_t)leati_histogram_middle(LEATI_HISTOGRAM_BUCKETS - 1 - place);
}

static uint64_t rank_of(double percent, uint64_t count)
{
    // A product that rounding has put just above a whole number must not move on to the next rank.
    double exact = percent / 100 * (double)count * (1 - 1e-12);
    if (!(exact > 1))
        return 1;
    if (percent >= 100)
        return count;
    uint64_t whole = (uint64_t)exact;
    return whole + ((double)whole < exact);
}

int64_t leat_histogram_percentile(const leat_histogram *h, double percent)
{
    enum { PLACES = 2 * LEATI_HISTOGRAM_BUCKETS };
    uint64_t count = 0, below = 0;
    for (uint32_t place = 0; h && place < PLACES; place++)
        count += count_at(h, place);
    if (count == 0)
        return 0;
    int64_t min = leat_histogram_min(h), max = leat_histogram_max(h);
    uint64_t rank = rank_of(percent, count);
    if (rank == 1 || rank == count)
        return rank == 1 ? min : max;
    // Counts only grow, so the rank is reached even if values come in meanwhile.
    uint32_t place = 0;
    while (place < PLACES - 1 && (below += count_at(h, place)) < rank)
        place++;
    int64_t value = value_at(place);
    return value < min ? min : value > max ? max : value;
}
