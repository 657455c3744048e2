// SPDX-License-Identifier: Apache-2.0
// Record types that several tests of record/ and the fuzzer share, and an allocator that counts and
// fails on demand.
#ifndef LEAT_TESTS_RECORD_SAMPLES_H
#define LEAT_TESTS_RECORD_SAMPLES_H

#include <stdlib.h>
#include <string.h>

#include "leat/record.h"

#define SAMPLE __attribute__((unused)) static

// --- compiled types ------------------------------------------------------------------------------

typedef struct scalars {
    bool flag;
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    float f32;
    double f64;
    leat_str str;
    leat_bytes bytes;
    int64_t at;
} scalars;
LEAT_RECORD(scalars, LEAT_FIELD(flag, LEAT_BOOL), LEAT_FIELD(i8, LEAT_I8),
            LEAT_FIELD(i16, LEAT_I16), LEAT_FIELD(i32, LEAT_I32), LEAT_FIELD(i64, LEAT_I64),
            LEAT_FIELD(u8, LEAT_U8), LEAT_FIELD(u16, LEAT_U16), LEAT_FIELD(u32, LEAT_U32),
            LEAT_FIELD(u64, LEAT_U64), LEAT_FIELD(f32, LEAT_F32), LEAT_FIELD(f64, LEAT_F64),
            LEAT_FIELD(str, LEAT_STR), LEAT_FIELD(bytes, LEAT_BYTES),
            LEAT_FIELD(at, LEAT_TIMESTAMP));

typedef struct word_count {
    leat_str word;
    int64_t count;
} word_count;
LEAT_RECORD(word_count, LEAT_FIELD(word, LEAT_STR), LEAT_FIELD(count, LEAT_I64));

typedef struct row {
    leat_str name;
    int64_t a;
    double d;
    int64_t at;
} row;
LEAT_RECORD(row, LEAT_FIELD(name, LEAT_STR), LEAT_FIELD(a, LEAT_I64), LEAT_FIELD(d, LEAT_F64),
            LEAT_FIELD(at, LEAT_I64));

typedef struct address {
    leat_str street;
    uint16_t number;
    leat_str city;
} address;
LEAT_RECORD(address, LEAT_FIELD(street, LEAT_STR), LEAT_FIELD(number, LEAT_U16),
            LEAT_FIELD(city, LEAT_STR));

LEAT_LIST_TYPE(names, LEAT_SCALAR(LEAT_STR));
LEAT_LIST_TYPE(addresses, LEAT_TYPE(address));
LEAT_OPTIONAL_TYPE(maybe_i64, LEAT_SCALAR(LEAT_I64));
LEAT_LIST_TYPE(maybe_numbers, LEAT_TYPE(maybe_i64));

typedef struct person {
    int64_t id;
    address home;
    leat_list tags;    // leat_str
    leat_dict aliases; // leat_str to leat_list of leat_str
    const double *score;
    leat_list past; // address
    const address *work;
    leat_dict visits; // address to leat_list of optional i64
    bool active;
} person;
LEAT_RECORD(person, LEAT_FIELD(id, LEAT_I64), LEAT_FIELD_STRUCT(home, address),
            LEAT_FIELD_LIST(tags, LEAT_SCALAR(LEAT_STR)),
            LEAT_FIELD_MAP(aliases, LEAT_SCALAR(LEAT_STR), LEAT_TYPE(names)),
            LEAT_FIELD_OPTIONAL(score, LEAT_SCALAR(LEAT_F64)),
            LEAT_FIELD_LIST(past, LEAT_TYPE(address)),
            LEAT_FIELD_OPTIONAL(work, LEAT_TYPE(address)),
            LEAT_FIELD_MAP(visits, LEAT_TYPE(address), LEAT_TYPE(maybe_numbers)),
            LEAT_FIELD(active, LEAT_BOOL));

// More fields than a header of one byte can count.
typedef struct many {
    int8_t f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16;
    person who;
    leat_str end;
} many;
LEAT_RECORD(many, LEAT_FIELD(f0, LEAT_I8), LEAT_FIELD(f1, LEAT_I8), LEAT_FIELD(f2, LEAT_I8),
            LEAT_FIELD(f3, LEAT_I8), LEAT_FIELD(f4, LEAT_I8), LEAT_FIELD(f5, LEAT_I8),
            LEAT_FIELD(f6, LEAT_I8), LEAT_FIELD(f7, LEAT_I8), LEAT_FIELD(f8, LEAT_I8),
            LEAT_FIELD(f9, LEAT_I8), LEAT_FIELD(f10, LEAT_I8), LEAT_FIELD(f11, LEAT_I8),
            LEAT_FIELD(f12, LEAT_I8), LEAT_FIELD(f13, LEAT_I8), LEAT_FIELD(f14, LEAT_I8),
            LEAT_FIELD(f15, LEAT_I8), LEAT_FIELD(f16, LEAT_I8), LEAT_FIELD_STRUCT(who, person),
            LEAT_FIELD(end, LEAT_STR));

// The wire order is not the order in memory.
typedef struct shuffled {
    int64_t last;
    leat_list middle; // person
    uint8_t first;
} shuffled;
LEAT_RECORD(shuffled, LEAT_FIELD(first, LEAT_U8), LEAT_FIELD_LIST(middle, LEAT_TYPE(person)),
            LEAT_FIELD(last, LEAT_I64));

SAMPLE const leat_type *const sample_types[] = {
    LEAT_TYPE(scalars), LEAT_TYPE(word_count), LEAT_TYPE(row),   LEAT_TYPE(address),
    LEAT_TYPE(person),  LEAT_TYPE(many),       LEAT_TYPE(names), LEAT_TYPE(shuffled),
};
enum { SAMPLE_TYPES = sizeof sample_types / sizeof *sample_types };

#ifndef __cplusplus
// --- types of run time ---------------------------------------------------------------------------

// A type of run time with the same structure; NULL when out of memory or refused. The caller owns
// the reference.
SAMPLE const leat_type *twin_of(const leat_allocator *allocator, const leat_type *type)
{
    const leat_type *made = NULL, *element = NULL, *key = NULL;
    leat_err err = LEAT_OK;
    if (type->kind == LEAT_STRUCT) {
        leat_field_spec *fields = calloc(type->field_count, sizeof *fields);
        for (uint32_t i = 0; i < type->field_count; i++) {
            fields[i].name = type->fields[i].name;
            fields[i].type = twin_of(allocator, type->fields[i].type);
            if (!fields[i].type)
                err = LEAT_ENOMEM;
        }
        if (err == LEAT_OK)
            err = leat_type_struct_create(allocator, type->name, fields, type->field_count, &made);
        for (uint32_t i = 0; i < type->field_count; i++)
            leat_type_release(fields[i].type);
        free(fields);
        return err == LEAT_OK ? made : NULL;
    }
    if (type->kind != LEAT_LIST && type->kind != LEAT_MAP && type->kind != LEAT_OPTIONAL)
        return leat_type_scalar((leat_kind)type->kind);
    element = twin_of(allocator, type->element);
    if (type->kind == LEAT_MAP)
        key = twin_of(allocator, type->key);
    if (!element || (type->kind == LEAT_MAP && !key))
        err = LEAT_ENOMEM;
    else if (type->kind == LEAT_LIST)
        err = leat_type_list_create(allocator, element, &made);
    else if (type->kind == LEAT_OPTIONAL)
        err = leat_type_optional_create(allocator, element, &made);
    else
        err = leat_type_map_create(allocator, key, element, &made);
    leat_type_release(element);
    leat_type_release(key);
    return err == LEAT_OK ? made : NULL;
}

// --- a counting allocator ------------------------------------------------------------------------

typedef struct counter {
    size_t calls;   // of allocate and reallocate
    size_t live;    // blocks
    size_t bytes;   // asked for in all
    size_t fail_at; // the call, counted from 1, that fails; 0: none
} counter;

SAMPLE void *counted_allocate(void *user, size_t size_bytes)
{
    counter *c = user;
    if (++c->calls == c->fail_at)
        return NULL;
    c->live++;
    c->bytes += size_bytes;
    return malloc(size_bytes);
}

SAMPLE void *counted_reallocate(void *user, void *ptr, size_t size_bytes)
{
    counter *c = user;
    if (++c->calls == c->fail_at)
        return NULL;
    c->live += !ptr;
    c->bytes += size_bytes;
    return realloc(ptr, size_bytes);
}

SAMPLE void counted_release(void *user, void *ptr)
{
    counter *c = user;
    c->live -= ptr != NULL;
    free(ptr);
}

SAMPLE leat_allocator counting(counter *c)
{
    return (leat_allocator){counted_allocate, counted_reallocate, counted_release, c};
}
#endif // __cplusplus

#endif
