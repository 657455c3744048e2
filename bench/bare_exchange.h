// SPDX-License-Identifier: Apache-2.0
// The yardstick of bench_exchange, and what it shares with the subject.
#ifndef LEATI_BENCH_BARE_EXCHANGE_H
#define LEATI_BENCH_BARE_EXCHANGE_H

#include <stdint.h>

enum { EXCHANGE_KEYS = 10000 };

static inline uint64_t exchange_mix(uint64_t x)
{
    x = (x + 1) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

// The key of record `i`; its value is `i` itself.
static inline int64_t exchange_key(uint64_t i)
{
    return (int64_t)((exchange_mix(i) >> 32) * EXCHANGE_KEYS >> 32);
}

// What a key's result adds to the checksum.
static inline uint64_t exchange_digest(int64_t key, int64_t count, int64_t sum)
{
    return exchange_mix((uint64_t)key ^
                        exchange_mix((uint64_t)count ^ exchange_mix((uint64_t)sum)));
}

typedef struct bare_sums {
    uint64_t records;  // all counts together
    uint64_t checksum; // of all keys
} bare_sums;

// Makes the records 0 … records - 1, each thread half of them, and counts and sums by key. 0, or -1
// after saying why.
int bare_exchange(uint64_t records, bare_sums *sums);

#endif
