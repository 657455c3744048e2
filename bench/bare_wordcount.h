// SPDX-License-Identifier: Apache-2.0
// The yardstick of the word count: two bare threads that do what the job does, and nothing else.
#ifndef LEATI_BENCH_BARE_WORDCOUNT_H
#define LEATI_BENCH_BARE_WORDCOUNT_H

#include <stdint.h>

typedef struct bare_count {
    uint64_t words, distinct;
    uint64_t checksum; // of the words' XXH3 hashes times their counts, modulo 2^64
} bare_count;

// 0, or -1 after saying why on stderr. Words have at most 16 KiB.
int bare_wordcount(const char *path, bare_count *count);

#endif
