// SPDX-License-Identifier: Apache-2.0
// The codec of {string, i64, f64, i64} with strings of varying length: written by hand for that
// struct, compiled from its field list, and described at run time. Each encodes records into a
// segment of 32 KiB and decodes them from it.
//
// All three write the same bytes; that, and the sums over what was decoded, are checked before a
// figure is printed. The goals: compiled at most 2 times, described at run time at most 6 times the
// code written by hand.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "leat/record.h"

typedef struct row {
    leat_str name;
    int64_t a;
    double d;
    int64_t at;
} row;
LEAT_RECORD(row, LEAT_FIELD(name, LEAT_STR), LEAT_FIELD(a, LEAT_I64), LEAT_FIELD(d, LEAT_F64),
            LEAT_FIELD(at, LEAT_I64));

enum { ROWS = 4096, SEGMENT = 32768, LARGEST = 128, REPETITIONS = 9, MOST_PER_SEGMENT = 2048 };

static row rows[ROWS];
static char text[ROWS * 64];
static uint8_t segment[SEGMENT];
static uint16_t sizes[MOST_PER_SEGMENT]; // of the records in the segment

// --- by hand ---------------------------------------------------------------------------------

static inline uint8_t *put9(uint8_t *to, uint8_t tag, const void *value)
{
    uint64_t bits;
    memcpy(&bits, value, 8);
    bits = __builtin_bswap64(bits);
    *to = tag;
    memcpy(to + 1, &bits, 8);
    return to + 9;
}

static inline uint8_t *hand_encode(const row *r, uint8_t *to, uint8_t *end)
{
    size_t size = r->name.size;
    if ((size_t)(end - to) < size + 33)
        return NULL;
    *to++ = 0x94;
    if (size < 32) {
        *to++ = (uint8_t)(0xa0 | size);
    } else if (size < 256) {
        *to++ = 0xd9;
        *to++ = (uint8_t)size;
    } else {
        *to++ = 0xdb;
        uint32_t big = __builtin_bswap32((uint32_t)size);
        memcpy(to, &big, 4);
        to += 4;
    }
    memcpy(to, r->name.data, size);
    to += size;
    to = put9(to, 0xd3, &r->a);
    to = put9(to, 0xcb, &r->d);
    return put9(to, 0xd3, &r->at);
}

static inline const uint8_t *get9(const uint8_t *from, const uint8_t *end, uint8_t tag, void *value)
{
    if (!from || end - from < 9 || *from != tag)
        return NULL;
    uint64_t bits;
    memcpy(&bits, from + 1, 8);
    bits = __builtin_bswap64(bits);
    memcpy(value, &bits, 8);
    return from + 9;
}

static inline const uint8_t *hand_decode(const uint8_t *from, const uint8_t *end, row *r)
{
    if (end - from < 2 || *from++ != 0x94)
        return NULL;
    size_t size;
    uint8_t tag = *from++;
    if ((tag & 0xe0) == 0xa0) {
        size = tag & 0x1f;
    } else if (tag == 0xd9 && from < end) {
        size = *from++;
    } else {
        return NULL;
    }
    if ((size_t)(end - from) < size)
        return NULL;
    r->name.data = (const char *)from;
    r->name.size = size;
    from = get9(from + size, end, 0xd3, &r->a);
    from = get9(from, end, 0xcb, &r->d);
    return get9(from, end, 0xd3, &r->at);
}

// --- the three as one ------------------------------------------------------------------------

typedef struct totals {
    uint64_t records, bytes, sum;
} totals;

static void count_row(totals *t, const row *r)
{
    t->records++;
    t->sum += r->name.size + (uint8_t)r->name.data[0] + (uint64_t)r->a + (uint64_t)r->at +
              (uint64_t)(int64_t)r->d;
}

// Encodes all rows, from the start again whenever the segment is full; `filled` records stay in it.
#define ENCODE_ALL(encode_one)                                                                     \
    do {                                                                                           \
        uint8_t *to = segment, *end = segment + SEGMENT;                                           \
        *filled = 0;                                                                               \
        for (int i = 0; i < ROWS; i++) {                                                           \
            const row *r = &rows[i];                                                               \
            if (end - to < LARGEST) {                                                              \
                t->bytes += (uint64_t)(to - segment);                                              \
                to = segment;                                                                      \
                *filled = 0;                                                                       \
            }                                                                                      \
            uint8_t *next = encode_one;                                                            \
            if (!next)                                                                             \
                abort();                                                                           \
            sizes[(*filled)++] = (uint16_t)(next - to);                                            \
            to = next;                                                                             \
            t->records++;                                                                          \
        }                                                                                          \
        t->bytes += (uint64_t)(to - segment);                                                      \
    } while (0)

// Decodes what is in the segment.
#define DECODE_ALL(failed)                                                                         \
    do {                                                                                           \
        const uint8_t *from = segment;                                                             \
        row r = {0};                                                                               \
        for (int i = 0; i < filled; i++) {                                                         \
            if (failed)                                                                            \
                abort();                                                                           \
            count_row(t, &r);                                                                      \
            from += sizes[i];                                                                      \
        }                                                                                          \
    } while (0)

static __attribute__((noinline)) void encode_by_hand(const leat_type *type, totals *t, int *filled)
{
    (void)type;
    ENCODE_ALL(hand_encode(r, to, end));
}

static __attribute__((noinline)) void encode_by_type(const leat_type *type, totals *t, int *filled)
{
    ENCODE_ALL(leat_record_encode(type, r, to, end));
}

static __attribute__((noinline)) void decode_by_hand(const leat_type *type, totals *t, int filled)
{
    (void)type;
    DECODE_ALL(hand_decode(from, from + sizes[i], &r) != from + sizes[i]);
}

static __attribute__((noinline)) void decode_by_type(const leat_type *type, totals *t, int filled)
{
    DECODE_ALL(leat_record_decode(type, from, sizes[i], &r, NULL) != LEAT_OK);
}

typedef struct subject {
    const char *name;
    const leat_type *type;
    void (*encode)(const leat_type *type, totals *t, int *filled);
    void (*decode)(const leat_type *type, totals *t, int filled);
    double encode_ns[REPETITIONS], decode_ns[REPETITIONS];
    totals encoded, decoded;
} subject;

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void run(subject *s, int repetition, int rounds)
{
    totals encoded = {0}, decoded = {0};
    int filled = 0;
    double start = now_ns();
    for (int i = 0; i < rounds; i++)
        s->encode(s->type, &encoded, &filled);
    double middle = now_ns();
    for (int i = 0; i < rounds * 8; i++)
        s->decode(s->type, &decoded, filled);
    double end = now_ns();
    s->encode_ns[repetition] = (middle - start) / (double)encoded.records;
    s->decode_ns[repetition] = (end - middle) / (double)decoded.records;
    s->encoded = encoded;
    s->decoded = decoded;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, REPETITIONS, sizeof *values, by_value);
    return values[REPETITIONS / 2];
}

static void make_rows(unsigned shortest, unsigned longest)
{
    uint64_t seed = 42;
    char *at = text;
    for (int i = 0; i < ROWS; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        size_t size = shortest + (size_t)(seed >> 33) % (longest - shortest + 1);
        memset(at, 'a' + i % 26, size);
        rows[i] =
            (row){{at, size}, (int64_t)(seed >> 40), (double)i / 3, INT64_C(1700000000000) + i};
        at += size;
    }
}

static int measure(subject *subjects, int count, int rounds)
{
    for (int s = 0; s < count; s++)
        run(&subjects[s], 0, rounds / 10 + 1);
    for (int repetition = 0; repetition < REPETITIONS; repetition++)
        for (int s = 0; s < count; s++)
            run(&subjects[s], repetition, rounds);
    for (int s = 1; s < count; s++)
        if (memcmp(&subjects[s].encoded, &subjects[0].encoded, sizeof(totals)) != 0 ||
            memcmp(&subjects[s].decoded, &subjects[0].decoded, sizeof(totals)) != 0) {
            fprintf(stderr, "bench_codec: %s does not agree with %s\n", subjects[s].name,
                    subjects[0].name);
            return 1;
        }
    double hand_encode_ns = median(subjects[0].encode_ns);
    double hand_decode_ns = median(subjects[0].decode_ns);
    for (int s = 0; s < count; s++) {
        double encode_ns = median(subjects[s].encode_ns), decode_ns = median(subjects[s].decode_ns);
        printf("%-10s encode %6.2f ns (%.2f)  decode %6.2f ns (%.2f)  both %6.2f ns (%.2f)\n",
               subjects[s].name, encode_ns, encode_ns / hand_encode_ns, decode_ns,
               decode_ns / hand_decode_ns, encode_ns + decode_ns,
               (encode_ns + decode_ns) / (hand_encode_ns + hand_decode_ns));
    }
    return 0;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 && strcmp(argv[1], "--quick") == 0 ? 1 : 300;
    const leat_field_spec fields[] = {{"name", LEAT_SCALAR(LEAT_STR)},
                                      {"a", LEAT_SCALAR(LEAT_I64)},
                                      {"d", LEAT_SCALAR(LEAT_F64)},
                                      {"at", LEAT_SCALAR(LEAT_I64)}};
    const leat_type *described;
    if (leat_type_struct_create(NULL, "row", fields, 4, &described) != LEAT_OK)
        return 1;
    static const unsigned lengths[][2] = {{8, 8}, {1, 15}, {1, 31}, {10, 50}};
    int failed = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        subject subjects[] = {
            {.name = "by hand", .encode = encode_by_hand, .decode = decode_by_hand},
            {.name = "compiled", LEAT_TYPE(row), encode_by_type, decode_by_type},
            {.name = "run time", described, encode_by_type, decode_by_type},
        };
        make_rows(lengths[i][0], lengths[i][1]);
        printf("{str of %u to %u bytes, i64, f64, i64}, ns per record (times by hand)\n",
               lengths[i][0], lengths[i][1]);
        failed |= measure(subjects, 3, rounds);
    }
    leat_type_release(described);
    return failed;
}
