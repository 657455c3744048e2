// SPDX-License-Identifier: Apache-2.0
// The codec of {string, i64, f64, i64} with strings of varying length: written by hand for that
// struct, compiled from its field list, and described at run time. Each fills a segment of 32 KiB
// with encoded records, decodes them from it, or does both in turn.
//
// All three must write the same bytes and decode the same values. The goals are for both together:
// compiled at most 2 times, described at run time at most 6 times as long as by hand.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/harness.h"
#include "leat/record.h"

typedef struct row {
    leat_str name;
    int64_t a;
    double d;
    int64_t at;
} row;
LEAT_RECORD(row, LEAT_FIELD(name, LEAT_STR), LEAT_FIELD(a, LEAT_I64), LEAT_FIELD(d, LEAT_F64),
            LEAT_FIELD(at, LEAT_I64));

enum { ROWS = 4096, SEGMENT = 32768, LARGEST = 128, MOST_PER_SEGMENT = 2048 };
enum { DEFAULT_SEGMENTS = 10000, QUICK_SEGMENTS = 10 };

static row rows[ROWS];
static char text[ROWS * 64];

// A segment being filled and emptied. The records are the rows in a circle.
typedef struct work {
    const leat_type *type;
    uint32_t next_row;
    uint32_t filled;                  // records in the segment
    uint16_t sizes[MOST_PER_SEGMENT]; // of them
    uint64_t records, checksum;
    uint8_t segment[SEGMENT];
} work;

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

// FNV-1a over whole words, which is enough to tell the bytes apart.
static void digest(work *w, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i + 8 <= size; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        w->checksum = (w->checksum ^ word) * UINT64_C(0x100000001b3);
    }
}

static uint64_t sum_of(const row *r)
{
    return r->name.size + (uint8_t)r->name.data[0] + (uint64_t)r->a + (uint64_t)r->at +
           (uint64_t)(int64_t)r->d;
}

// Fills the segment; false when a record was refused. Positions are kept in local variables, as
// bytes may be written over anything for all the compiler knows.
#define FILL(encode_one)                                                                           \
    do {                                                                                           \
        uint8_t *to = w->segment, *end = w->segment + SEGMENT;                                     \
        uint32_t next_row = w->next_row, filled = 0;                                               \
        while (end - to >= LARGEST) {                                                              \
            const row *r = &rows[next_row++ % ROWS];                                               \
            uint8_t *next = encode_one;                                                            \
            if (!next)                                                                             \
                return false;                                                                      \
            w->sizes[filled++] = (uint16_t)(next - to);                                            \
            to = next;                                                                             \
        }                                                                                          \
        w->next_row = next_row;                                                                    \
        w->filled = filled;                                                                        \
        return true;                                                                               \
    } while (0)

// Decodes what is in the segment; false when a record was refused.
#define EMPTY(failed)                                                                              \
    do {                                                                                           \
        const uint8_t *from = w->segment;                                                          \
        uint64_t sum = 0;                                                                          \
        uint32_t filled = w->filled;                                                               \
        row r = {0};                                                                               \
        for (uint32_t i = 0; i < filled; i++) {                                                    \
            if (failed)                                                                            \
                return false;                                                                      \
            sum += sum_of(&r);                                                                     \
            from += w->sizes[i];                                                                   \
        }                                                                                          \
        w->checksum += sum;                                                                        \
        return true;                                                                               \
    } while (0)

static __attribute__((noinline)) bool fill_by_hand(work *w)
{
    FILL(hand_encode(r, to, end));
}

static __attribute__((noinline)) bool fill_by_type(work *w)
{
    FILL(leat_record_encode(w->type, r, to, end));
}

static __attribute__((noinline)) bool empty_by_hand(work *w)
{
    EMPTY(hand_decode(from, from + w->sizes[i], &r) != from + w->sizes[i]);
}

static __attribute__((noinline)) bool empty_by_type(work *w)
{
    EMPTY(leat_record_decode(w->type, from, w->sizes[i], &r, NULL) != LEAT_OK);
}

// --- runs ------------------------------------------------------------------------------------

typedef struct task {
    unsigned shortest, longest; // string
    bool encode, decode;
    uint32_t segments;
    const leat_type *described;
} task;

typedef bool (*step)(work *w);

static int run(const task *t, const leat_type *type, step fill, step empty, bench_outcome *outcome)
{
    static work w;
    w = (work){.type = type};
    bool good = fill(&w);
    digest(&w, w.segment, SEGMENT);
    for (uint32_t i = 0; i < t->segments && good; i++) {
        good = (!t->encode || fill(&w)) && (!t->decode || empty(&w));
        w.records += w.filled;
    }
    digest(&w, w.segment, SEGMENT);
    *outcome = (bench_outcome){.items = w.records, .checksum = w.checksum};
    return good ? 0 : -1;
}

static int run_by_hand(void *context, bench_outcome *outcome)
{
    return run(context, NULL, fill_by_hand, empty_by_hand, outcome);
}

static int run_compiled(void *context, bench_outcome *outcome)
{
    return run(context, LEAT_TYPE(row), fill_by_type, empty_by_type, outcome);
}

static int run_described(void *context, bench_outcome *outcome)
{
    const task *t = context;
    return run(t, t->described, fill_by_type, empty_by_type, outcome);
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

static int setup(bench_case *self, const bench_options *options)
{
    task *t = self->context;
    t->segments = options->quick ? QUICK_SEGMENTS : DEFAULT_SEGMENTS;
    make_rows(t->shortest, t->longest);
    return 0;
}

int main(int argc, char **argv)
{
    static const bench_variant parts[] = {
        {"by hand", run_by_hand, 0}, {"compiled", run_compiled, 0}, {"run time", run_described, 0}};
    static const bench_variant both[] = {{"by hand", run_by_hand, 0},
                                         {"compiled", run_compiled, 1.0 / 2},
                                         {"run time", run_described, 1.0 / 6}};
    static const unsigned lengths[][2] = {{8, 8}, {1, 15}, {1, 31}, {10, 50}};
    static const char *const kinds[] = {"encode", "decode", "both"};
    enum { LENGTHS = sizeof lengths / sizeof *lengths, CASES = 3 * LENGTHS };
    const leat_field_spec fields[] = {{"name", LEAT_SCALAR(LEAT_STR)},
                                      {"a", LEAT_SCALAR(LEAT_I64)},
                                      {"d", LEAT_SCALAR(LEAT_F64)},
                                      {"at", LEAT_SCALAR(LEAT_I64)}};
    const leat_type *described;
    if (leat_type_struct_create(NULL, "row", fields, 4, &described) != LEAT_OK)
        return 1;
    task tasks[CASES];
    bench_case cases[CASES];
    char names[CASES][24];
    for (int i = 0; i < CASES; i++) {
        const unsigned *length = lengths[i / 3];
        int kind = i % 3;
        tasks[i] = (task){length[0], length[1], kind != 1, kind != 0, 0, described};
        snprintf(names[i], sizeof names[i], "%s-%u-%u", kinds[kind], length[0], length[1]);
        cases[i] = (bench_case){.name = names[i],
                                .unit = "records",
                                .variants = kind == 2 ? both : parts,
                                .variant_count = 3,
                                .setup = setup,
                                .context = &tasks[i]};
    }
    int status = bench_main(argc, argv, "codec", cases, CASES);
    leat_type_release(described);
    return status;
}
