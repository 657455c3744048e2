// SPDX-License-Identifier: Apache-2.0
#include "bench/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

enum { BUFFER_BYTES = 1 << 20, MAX_WORD = 32, WORDS_A_LINE = 12 };

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// A rank below `vocabulary`, rank r with a share of about 1 / (r + SHIFT)^exponent: the law of Zipf
// and Mandelbrot, by the inverse of its integral. Prose of one kind has an exponent well above 1;
// names, numbers and many tongues bring it near 1.
static uint32_t draw_rank(uint64_t *random, uint32_t vocabulary, double exponent)
{
    enum { SHIFT = 4 };
    double uniform = (double)(next_random(random) >> 11) * 0x1p-53;
    double power = 1 - exponent, first = pow(SHIFT, power);
    double last = pow((double)vocabulary + SHIFT, power);
    double rank = pow(first - uniform * (first - last), 1 / power) - SHIFT;
    return rank > 0 && rank < vocabulary ? (uint32_t)rank : 0;
}

// Spells a rank in syllables of a consonant and a vowel, and an ending without a vowel that the
// rank decides. Frequent words are short, and no two ranks are spelled alike: the syllables tell
// the rank, and where they stop is seen.
static size_t spell(uint32_t rank, char *word)
{
    static const char consonants[] = "bcdfghjklmnprstvwxyz", vowels[] = "aeiou";
    static const char endings[][4] = {"", "n", "r", "s", "st", "nd", "rks", "ngs"};
    const char *ending = endings[(rank * 2654435761u) >> 29];
    size_t size = 0;
    do {
        word[size++] = consonants[rank % 20];
        word[size++] = vowels[rank / 20 % 5];
        rank /= 100;
    } while (rank);
    while (*ending)
        word[size++] = *ending++;
    return size;
}

static int write_all(int fd, const char *data, size_t size)
{
    while (size) {
        ssize_t written = write(fd, data, size);
        if (written <= 0)
            return -1;
        data += written;
        size -= (size_t)written;
    }
    return 0;
}

// `seen` has a byte for each rank; `buffer` takes BUFFER_BYTES.
static int fill(bench_text *text, uint64_t bytes, const bench_words *words, uint8_t *seen,
                char *buffer)
{
    size_t used = 0;
    uint64_t random = words->seed;
    while (text->bytes + used < bytes) {
        uint32_t rank = draw_rank(&random, words->vocabulary, words->exponent);
        size_t size = spell(rank, buffer + used);
        text->checksum += XXH3_64bits(buffer + used, size);
        text->distinct += !seen[rank];
        seen[rank] = 1;
        used += size;
        buffer[used++] = ++text->words % WORDS_A_LINE ? ' ' : '\n';
        if (used > BUFFER_BYTES - MAX_WORD) {
            if (write_all(text->fd, buffer, used) != 0)
                return -1;
            text->bytes += used;
            used = 0;
        }
    }
    if (write_all(text->fd, buffer, used) != 0)
        return -1;
    text->bytes += used;
    return 0;
}

int bench_text_create(uint64_t bytes, const bench_words *words, bench_text *text)
{
    *text = (bench_text){.fd = memfd_create("bench_text", MFD_CLOEXEC)};
    snprintf(text->path, sizeof text->path, "/proc/self/fd/%d", text->fd);
    uint8_t *seen = calloc(words->vocabulary, 1);
    char *buffer = malloc(BUFFER_BYTES);
    int result = -1;
    if (text->fd >= 0 && seen && buffer)
        result = fill(text, bytes, words, seen, buffer);
    if (result != 0)
        perror("the text cannot be made");
    free(buffer);
    free(seen);
    return result;
}

void bench_text_destroy(bench_text *text)
{
    if (text->fd >= 0)
        close(text->fd);
    text->fd = -1;
}
