// SPDX-License-Identifier: Apache-2.0
// A program of a user that is both C11 and C++17: check_macros.sh compiles and runs it. With
// -DWRONG=n one field does not have the C type of its kind, which must be a compile error.
#include <stdio.h>
#include <string.h>

#ifndef WRONG
#define WRONG 0
#endif
#if WRONG
#include "leat/record.h"
typedef struct address {
    int64_t number;
} address;
LEAT_RECORD(address, LEAT_FIELD(number, LEAT_I64));
#else
#include "samples.h"
#endif

typedef struct wrong {
#if WRONG == 1
    int32_t bad;
#elif WRONG == 2
    uint64_t bad;
#elif WRONG == 3
    float bad;
#elif WRONG == 4
    const char *bad;
#elif WRONG == 5
    leat_bytes bad;
#elif WRONG == 6
    char bad[16];
#elif WRONG == 7
    leat_list bad;
#elif WRONG == 8
    leat_str bad;
#elif WRONG == 9
    int64_t bad;
#else
    int64_t bad;
#endif
    int64_t good;
} wrong;

// clang-format off
#if WRONG == 7
LEAT_RECORD(wrong, LEAT_FIELD_MAP(bad, LEAT_SCALAR(LEAT_STR), LEAT_SCALAR(LEAT_STR)),
    LEAT_FIELD(good, LEAT_I64));
#elif WRONG == 8
LEAT_RECORD(wrong, LEAT_FIELD_LIST(bad, LEAT_SCALAR(LEAT_STR)), LEAT_FIELD(good, LEAT_I64));
#elif WRONG == 9
LEAT_RECORD(wrong, LEAT_FIELD_STRUCT(bad, address), LEAT_FIELD(good, LEAT_I64));
#elif WRONG == 5 || WRONG == 4
LEAT_RECORD(wrong, LEAT_FIELD(bad, LEAT_STR), LEAT_FIELD(good, LEAT_I64));
#else
LEAT_RECORD(wrong, LEAT_FIELD(bad, LEAT_I64), LEAT_FIELD(good, LEAT_I64));
#endif

#if WRONG == 0
// As many fields as fit, and one.
typedef struct most {
    int8_t a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7;
    int8_t c0, c1, c2, c3, c4, c5, c6, c7, d0, d1, d2, d3, d4, d5, d6, d7;
    int8_t e0, e1, e2, e3, e4, e5, e6, e7, f0, f1, f2, f3, f4, f5, f6, f7;
    int8_t g0, g1, g2, g3, g4, g5, g6, g7, h0, h1, h2, h3, h4, h5, h6, h7;
} most;
#define B(name) LEAT_FIELD(name, LEAT_I8)
LEAT_RECORD(most,
    B(a0), B(a1), B(a2), B(a3), B(a4), B(a5), B(a6), B(a7),
    B(b0), B(b1), B(b2), B(b3), B(b4), B(b5), B(b6), B(b7),
    B(c0), B(c1), B(c2), B(c3), B(c4), B(c5), B(c6), B(c7),
    B(d0), B(d1), B(d2), B(d3), B(d4), B(d5), B(d6), B(d7),
    B(e0), B(e1), B(e2), B(e3), B(e4), B(e5), B(e6), B(e7),
    B(f0), B(f1), B(f2), B(f3), B(f4), B(f5), B(f6), B(f7),
    B(g0), B(g1), B(g2), B(g3), B(g4), B(g5), B(g6), B(g7),
    B(h0), B(h1), B(h2), B(h3), B(h4), B(h5), B(h6), B(h7));
typedef struct one_field { leat_str only; } one_field;
LEAT_RECORD(one_field, LEAT_FIELD(only, LEAT_STR));

// Types and fields may be called as users like, also as what stands in the functions.
#define NAMED(T) \
    typedef struct T { int64_t to; leat_str end; leat_list r; } T; \
    LEAT_RECORD(T, LEAT_FIELD(to, LEAT_I64), LEAT_FIELD(end, LEAT_STR), \
                LEAT_FIELD_LIST(r, LEAT_SCALAR(LEAT_STR)))
NAMED(r); NAMED(record); NAMED(at); NAMED(end); NAMED(to); NAMED(from); NAMED(need);
NAMED(type); NAMED(size); NAMED(a); NAMED(b); NAMED(block); NAMED(next); NAMED(rest);
NAMED(room); NAMED(decoder); NAMED(hash);
// clang-format on

static int check(const leat_type *what, const void *value, void *back, size_t bytes)
{
    uint8_t wire[512];
    uint8_t *stop = leat_record_encode(what, value, wire, wire + sizeof wire);
    leat_scratch *scratch;
    if (leat_type_check(what, NULL) != LEAT_OK || !stop || (size_t)(stop - wire) != bytes)
        return 1;
    if (leat_scratch_create(NULL, &scratch) != LEAT_OK)
        return 1;
    int failed = leat_record_decode(what, wire, bytes, back, scratch) != LEAT_OK ||
                 !leat_record_equal(what, value, back) ||
                 leat_record_hash(what, value) != leat_record_hash(what, back);
    leat_scratch_destroy(&scratch);
    return failed;
}

int main(void)
{
    static const leat_str tag[] = {{"x", 1}};
    person who, got_who;
    memset(&who, 0, sizeof who);
    who.home.city = LEAT_STR_LITERAL("Delft");
    who.tags.items = tag;
    who.tags.count = 1;
    most full, got_full;
    memset(&full, 1, sizeof full);
    one_field one = {LEAT_STR_LITERAL("one")}, got_one;
    int failed = check(LEAT_TYPE(person), &who, &got_who, 1 + 9 + 11 + 3 + 6);
    failed |= check(LEAT_TYPE(most), &full, &got_full, 3 + 64 * 2) << 1;
    failed |= check(LEAT_TYPE(one_field), &one, &got_one, 1 + 4) << 2;
    // The types of list and map and the others exist for C++ too.
    for (int i = 0; i < SAMPLE_TYPES; i++)
        failed |= (leat_type_check(sample_types[i], NULL) != LEAT_OK) << 3;
    failed |= (leat_type_check(LEAT_TYPE(wrong), NULL) != LEAT_OK) << 4;
    if (failed)
        printf("failed: %d\n", failed);
    return failed;
}
#endif // WRONG
