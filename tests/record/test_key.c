// SPDX-License-Identifier: Apache-2.0
// Keys of chosen fields, and the order of values.
#include <criterion/criterion.h>
#include <math.h>

#include "samples.h"

Test(key, names_choose_fields_in_their_order)
{
    static const struct {
        const char *names;
        uint32_t count, offsets[3], kinds[3];
    } rows[] = {
        {"id", 1, {offsetof(person, id)}, {LEAT_I64}},
        {" id ", 1, {offsetof(person, id)}, {LEAT_I64}},
        {"active,id", 2, {offsetof(person, active), offsetof(person, id)}, {LEAT_BOOL, LEAT_I64}},
        {"home.city, tags ,score",
         3,
         {offsetof(person, home.city), offsetof(person, tags), offsetof(person, score)},
         {LEAT_STR, LEAT_LIST, LEAT_OPTIONAL}},
        {"home, home.street",
         2,
         {offsetof(person, home), offsetof(person, home.street)},
         {LEAT_STRUCT, LEAT_STR}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        leat_key key;
        cr_assert(leat_key_init(&key, LEAT_TYPE(person), rows[i].names, NULL, NULL) == LEAT_OK);
        cr_assert(key.type == LEAT_TYPE(person) && key.count == rows[i].count, "row %zu", i);
        for (uint32_t p = 0; p < key.count; p++)
            cr_assert(key.part[p].offset == rows[i].offsets[p] &&
                          key.part[p].type->kind == rows[i].kinds[p],
                      "row %zu", i);
    }
    leat_key key;
    cr_assert(leat_key_init(&key, LEAT_TYPE(row), NULL, NULL, NULL) == LEAT_OK);
    cr_assert(key.count == 4 && key.part[3].offset == offsetof(row, at));
    cr_assert(leat_key_init(&key, LEAT_TYPE(row), "", NULL, NULL) == LEAT_OK && key.count == 4);
    cr_assert(leat_key_init(&key, LEAT_SCALAR(LEAT_STR), NULL, NULL, NULL) == LEAT_OK);
    cr_assert(key.count == 1 && key.part[0].offset == 0);
}

Test(key, wrong_names_are_refused_with_their_place)
{
    static const struct {
        const char *names;
        size_t at;
    } rows[] = {
        {"nobody", 0},
        {"id, nobody", 4},
        {"id,,active", 3},
        {"id,", 3},
        {" ", 1},
        {"id,id", 3},
        {"aliases", 0},
        {"id , visits", 5},
        {"home.aliases", 0},
        {"id, home.city.x", 4},
        {"work.city", 0},
        {"id active", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        leat_key key = {.count = 77};
        const char *why = NULL, *at = NULL;
        cr_assert(leat_key_init(&key, LEAT_TYPE(person), rows[i].names, &why, &at) == LEAT_ETYPE,
                  "row %zu", i);
        cr_assert(why && at == rows[i].names + rows[i].at, "row %zu", i);
        cr_assert(key.count == 77);
    }
    leat_key key;
    const char *why, *at;
    // Every field of person would include maps.
    cr_assert(leat_key_init(&key, LEAT_TYPE(person), NULL, &why, &at) == LEAT_ETYPE);
    cr_assert(leat_key_init(&key, LEAT_TYPE(shuffled), "middle", &why, &at) == LEAT_ETYPE);
    char path[2000];
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    cr_assert(leat_key_init(&key, LEAT_TYPE(person), path, &why, &at) == LEAT_ETYPE);
}

Test(key, sixteen_fields_are_the_most)
{
    leat_field_spec fields[17];
    static const char *const names_of[17] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",
                                             "j", "k", "l", "m", "n", "o", "p", "q"};
    int64_t record[17];
    for (int i = 0; i < 17; i++) {
        fields[i] = (leat_field_spec){names_of[i], LEAT_SCALAR(LEAT_I64)};
        record[i] = i * i;
    }
    const leat_type *type;
    cr_assert(leat_type_struct_create(NULL, "s", fields, 17, &type) == LEAT_OK);
    leat_key key;
    cr_assert(leat_key_init(&key, type, "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p", NULL, NULL) == LEAT_OK);
    cr_assert(key.count == 16);
    cr_assert(leat_key_init(&key, type, "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", NULL, NULL) ==
              LEAT_ETYPE);
    // All of them are taken as one part, which hashes alike.
    cr_assert(leat_key_init(&key, type, "", NULL, NULL) == LEAT_OK && key.count == 1);
    uint64_t hash = leat_hash_u64(0);
    for (int i = 1; i < 17; i++)
        hash = leat_hash_combine(hash, leat_hash_u64((uint64_t)record[i]));
    cr_assert(leat_key_hash(&key, record) == hash && leat_record_hash(type, record) == hash);
    leat_type_release(type);
}

Test(key, only_the_chosen_fields_count)
{
    row a = {{"k", 1}, 1, NAN, 3}, b = {{"k", 1}, 2, NAN, 3}, c = {{"kk", 2}, 1, -0.0, 3};
    leat_key name, both, real;
    cr_assert(leat_key_init(&name, LEAT_TYPE(row), "name", NULL, NULL) == LEAT_OK);
    cr_assert(leat_key_init(&both, LEAT_TYPE(row), "at, a", NULL, NULL) == LEAT_OK);
    cr_assert(leat_key_init(&real, LEAT_TYPE(row), "d", NULL, NULL) == LEAT_OK);
    cr_assert(leat_key_equal(&name, &a, &name, &b) && !leat_key_equal(&name, &a, &name, &c));
    cr_assert(!leat_key_equal(&both, &a, &both, &b) && leat_key_equal(&both, &a, &both, &c));
    cr_assert(leat_key_equal(&real, &a, &real, &b) && !leat_key_equal(&real, &a, &real, &c));
    cr_assert(!leat_key_equal(&name, &a, &both, &a));
    cr_assert(leat_key_hash(&name, &a) == leat_hash_bytes("k", 1));
    cr_assert(leat_key_hash(&both, &b) == leat_hash_combine(leat_hash_u64(3), leat_hash_u64(2)));
    cr_assert(leat_key_compare(&name, &a, &b) == 0 && leat_key_compare(&name, &a, &c) < 0);
    cr_assert(leat_key_compare(&both, &b, &a) > 0 && leat_key_compare(&real, &a, &c) > 0);
}

// The same structure as address, laid out otherwise.
typedef struct backwards {
    leat_str city;
    uint16_t number;
    leat_str street;
} backwards;
LEAT_RECORD(backwards, LEAT_FIELD(street, LEAT_STR), LEAT_FIELD(number, LEAT_U16),
            LEAT_FIELD(city, LEAT_STR));
typedef struct trip {
    leat_list stops;
    const backwards *from;
    backwards to;
    leat_str note;
} trip;
LEAT_LIST_TYPE(backwards_list, LEAT_TYPE(backwards));
LEAT_RECORD(trip, LEAT_FIELD_LIST(stops, LEAT_TYPE(backwards)),
            LEAT_FIELD_OPTIONAL(from, LEAT_TYPE(backwards)), LEAT_FIELD_STRUCT(to, backwards),
            LEAT_FIELD(note, LEAT_STR));

Test(key, records_of_two_types_can_agree)
{
    cr_assert(leat_type_equal(LEAT_TYPE(address), LEAT_TYPE(backwards)));
    address here = {{"street", 6}, 7, {"city", 4}};
    backwards there = {{"city", 4}, 7, {"street", 6}};
    person p = {.past = {&here, 1}, .work = &here, .home = here, .tags = {&here.city, 1}};
    trip o = {{&there, 1}, &there, there, {"city", 4}};
    static const struct {
        const char *of_person, *of_order;
    } rows[] = {{"past", "stops"}, {"work", "from"}, {"home", "to"}, {"home.city", "note"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        leat_key a, b;
        cr_assert(leat_key_init(&a, LEAT_TYPE(person), rows[i].of_person, NULL, NULL) == LEAT_OK);
        cr_assert(leat_key_init(&b, LEAT_TYPE(trip), rows[i].of_order, NULL, NULL) == LEAT_OK);
        there.number = 7;
        o.to.number = 7;
        o.note.size = 4;
        cr_assert(leat_key_equal(&a, &p, &b, &o) && leat_key_equal(&b, &o, &a, &p), "row %zu", i);
        cr_assert(leat_key_hash(&a, &p) == leat_key_hash(&b, &o), "row %zu", i);
        there.number = 8;
        o.to.number = 8;
        o.note.size = 3;
        cr_assert(!leat_key_equal(&a, &p, &b, &o) && !leat_key_equal(&b, &o, &a, &p), "row %zu", i);
    }
    leat_key work_key, from;
    cr_assert(leat_key_init(&work_key, LEAT_TYPE(person), "work", NULL, NULL) == LEAT_OK);
    cr_assert(leat_key_init(&from, LEAT_TYPE(trip), "from", NULL, NULL) == LEAT_OK);
    o.from = NULL;
    cr_assert(!leat_key_equal(&work_key, &p, &from, &o));
    leat_key plain;
    cr_assert(leat_key_init(&plain, leat_type_scalar(LEAT_I64), "", NULL, NULL) == LEAT_OK);
    cr_assert(leat_key_can_be_null(&from) && leat_key_can_be_null(&work_key));
    cr_assert(!leat_key_can_be_null(&plain));
    cr_assert(leat_key_has_null(&from, &o) && !leat_key_has_null(&work_key, &p));
    p.work = NULL;
    cr_assert(leat_key_equal(&work_key, &p, &from, &o) && leat_key_has_null(&work_key, &p));
}

// --- order ---------------------------------------------------------------------------------------

// Values in ascending order, each smaller than all after it.
static void expect_ascending(const leat_type *type, const void *values, size_t count)
{
    const leat_type *both[] = {type, twin_of(NULL, type)};
    for (int t = 0; t < 2; t++)
        for (size_t i = 0; i < count; i++)
            for (size_t j = 0; j < count; j++) {
                const char *a = (const char *)values + i * type->size;
                const char *b = (const char *)values + j * type->size;
                int order = leat_record_compare(both[t], a, b);
                cr_assert((order > 0) - (order < 0) == (i > j) - (i < j), "%zu, %zu", i, j);
                cr_assert(leat_record_equal(both[t], a, b) == (i == j), "%zu, %zu", i, j);
            }
    leat_type_release(both[1]);
}

#define EXPECT_ASCENDING(type, ...)                                                                \
    expect_ascending(type, __VA_ARGS__, sizeof __VA_ARGS__ / sizeof *__VA_ARGS__)

LEAT_LIST_TYPE(numbers, LEAT_SCALAR(LEAT_I8));
LEAT_MAP_TYPE(counts, LEAT_SCALAR(LEAT_I8), LEAT_SCALAR(LEAT_F32));

Test(order, is_total_for_every_kind)
{
    static const bool flags[] = {false, true};
    static const int8_t i8s[] = {-128, -1, 0, 127};
    static const int16_t i16s[] = {-32768, -1, 0, 32767};
    static const int32_t i32s[] = {INT32_MIN, -1, 0, INT32_MAX};
    static const int64_t i64s[] = {INT64_MIN, -1, 0, INT64_MAX};
    static const uint8_t u8s[] = {0, 1, 255};
    static const uint16_t u16s[] = {0, 1, 65535};
    static const uint32_t u32s[] = {0, 1, UINT32_MAX};
    static const uint64_t u64s[] = {0, 1, UINT64_MAX};
    static const float f32s[] = {-INFINITY, -1, 0, 1, INFINITY, NAN};
    static const double f64s[] = {-INFINITY, -1e300, -1, -0.0, 1e-300, 1, INFINITY, NAN};
    static const leat_str strs[] = {{NULL, 0}, {"\0", 1}, {"a", 1},    {"a\0", 2},
                                    {"ab", 2}, {"b", 1},  {"\x80", 1}, {"\xff", 1}};
    static const int64_t *const optionals[] = {NULL, &i64s[0], &i64s[3]};
    static const leat_list lists[] = {{NULL, 0}, {i8s, 1}, {i8s, 2}, {i8s + 1, 1}, {i8s + 2, 2}};
    static const address structs[] = {{{"a", 1}, 1, {"b", 1}},
                                      {{"a", 1}, 1, {"c", 1}},
                                      {{"a", 1}, 2, {"a", 1}},
                                      {{"b", 1}, 0, {NULL, 0}}};
    EXPECT_ASCENDING(LEAT_SCALAR(LEAT_BOOL), flags);
    EXPECT_ASCENDING(LEAT_SCALAR(LEAT_I8), i8s);
    EXPECT_ASCENDING(LEAT_SCALAR(LEAT_I16), i16s);
    EXPECT_ASCENDING(LEAT_SCALAR(LEAT_I32), i32s);
    EXPECT_ASCENDING(LEAT_SCALAR(LEAT_I64), i64s);
    EXPECT_ASCENDING(LEAT_SCALAR(LEAT_TIMESTAMP), i64s);
    EXPECT_ASCENDING(LEAT_SCALAR(LEAT_U8), u8s);
    EXPECT_ASCENDING(LEAT_SCALAR(LEAT_U16), u16s);
    EXPECT_ASCENDING(LEAT_SCALAR(LEAT_U32), u32s);
    EXPECT_ASCENDING(LEAT_SCALAR(LEAT_U64), u64s);
    EXPECT_ASCENDING(LEAT_SCALAR(LEAT_F32), f32s);
    EXPECT_ASCENDING(LEAT_SCALAR(LEAT_F64), f64s);
    EXPECT_ASCENDING(LEAT_SCALAR(LEAT_STR), strs);
    EXPECT_ASCENDING(LEAT_SCALAR(LEAT_BYTES), strs);
    EXPECT_ASCENDING(LEAT_TYPE(maybe_i64), optionals);
    EXPECT_ASCENDING(LEAT_TYPE(numbers), lists);
    EXPECT_ASCENDING(LEAT_TYPE(address), structs);
}

Test(order, maps_go_by_count_and_then_by_sorted_entries)
{
    static const int8_t k12[] = {1, 2}, k21[] = {2, 1}, k13[] = {1, 3}, k11[] = {1, 1},
                        k112[] = {1, 1, 2}, k122[] = {1, 2, 2}, k211[] = {2, 1, 1};
    static const float v00[] = {0, 0}, v10[] = {1, 0}, v01[] = {0, 1}, v000[] = {0, 0, 0};
    static const leat_dict ascending[] = {{NULL, NULL, 0}, {k12, v00, 1},  {k12, v10, 1},
                                          {k21, v00, 1},   {k11, v00, 2},  {k12, v00, 2},
                                          {k12, v01, 2},   {k13, v00, 2},  {k12, v10, 2},
                                          {k112, v000, 3}, {k122, v000, 3}};
    EXPECT_ASCENDING(LEAT_TYPE(counts), ascending);
    // The order of the entries does not count, not even with a key twice.
    static const leat_dict a[] = {{k12, v01, 2}, {k112, v000, 3}};
    static const leat_dict b[] = {{k21, v10, 2}, {k211, v000, 3}};
    for (int i = 0; i < 2; i++) {
        cr_assert(leat_record_equal(LEAT_TYPE(counts), &a[i], &b[i]));
        cr_assert(leat_record_compare(LEAT_TYPE(counts), &a[i], &b[i]) == 0);
        cr_assert(leat_record_hash(LEAT_TYPE(counts), &a[i]) ==
                  leat_record_hash(LEAT_TYPE(counts), &b[i]));
    }
}
