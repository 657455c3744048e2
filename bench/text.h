// SPDX-License-Identifier: Apache-2.0
// Text for the word benches, made anew from a seed: word frequencies fall with the rank as in
// natural language, and lengths, spaces and lines are those of prose.
#ifndef LEATI_BENCH_TEXT_H
#define LEATI_BENCH_TEXT_H

#include <stdint.h>

typedef struct bench_words {
    uint32_t vocabulary; // words that may occur
    double exponent;     // how fast frequency falls with rank; not 1
    uint64_t seed;
} bench_words;

typedef struct bench_text {
    int fd;         // a file in memory, so that no disk is measured and nothing is left behind
    char path[32];  // how this process opens it
    uint64_t bytes; // at least what was asked for
    // What a word count must find; the sum is that of the XXH3 hashes of all words, modulo 2^64.
    uint64_t words, distinct, checksum;
} bench_text;

// 0, or -1 after saying why on stderr.
int bench_text_create(uint64_t bytes, const bench_words *words, bench_text *text);
void bench_text_destroy(bench_text *text);

#endif
