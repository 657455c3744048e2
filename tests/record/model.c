// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

uint64_t roll(dice *d, uint64_t sides)
{
    d->state = d->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    // The low bits of such a generator repeat soon.
    return (d->state >> 20) % sides;
}

// --- types ---------------------------------------------------------------------------------------

static const leat_type *random_scalar(dice *d, bool key)
{
    for (;;) {
        leat_kind kind = (leat_kind)(1 + roll(d, LEAT_TIMESTAMP));
        if (!key || (kind != LEAT_F32 && kind != LEAT_F64))
            return leat_type_scalar(kind);
    }
}

static const leat_type *random_struct(dice *d, int depth, bool key)
{
    leat_field_spec fields[24];
    char names[24][8];
    size_t count = 1 + roll(d, roll(d, 8) == 0 ? 24 : 5);
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "f%u", (unsigned)i);
        fields[i].name = names[i];
        fields[i].type = key ? random_scalar(d, true) : random_type(d, depth - 1);
    }
    const leat_type *type;
    if (leat_type_struct_create(NULL, "random", fields, count, &type) != LEAT_OK)
        abort();
    for (size_t i = 0; i < count; i++)
        leat_type_release(fields[i].type);
    return type;
}

const leat_type *random_type(dice *d, int depth)
{
    if (depth == 0 || roll(d, 3) == 0)
        return random_scalar(d, false);
    const leat_type *type, *element, *key;
    leat_err err;
    switch (roll(d, 5)) {
    case 0:
        element = random_type(d, depth - 1);
        err = leat_type_list_create(NULL, element, &type);
        break;
    case 1:
        element = random_type(d, depth - 1);
        if (element->kind == LEAT_OPTIONAL)
            return element;
        err = leat_type_optional_create(NULL, element, &type);
        break;
    case 2:
        element = random_type(d, depth - 1);
        key = roll(d, 4) ? random_scalar(d, true) : random_struct(d, 0, true);
        err = leat_type_map_create(NULL, key, element, &type);
        leat_type_release(key);
        break;
    default:
        return random_struct(d, depth, false);
    }
    leat_type_release(element);
    if (err != LEAT_OK)
        abort();
    return type;
}

// --- values --------------------------------------------------------------------------------------

static bool is_signed(uint32_t kind)
{
    return (kind >= LEAT_I8 && kind <= LEAT_I64) || kind == LEAT_TIMESTAMP;
}

// Numbers near the borders of all widths, cut down to what the kind holds.
static uint64_t random_bits(uint32_t kind, uint32_t size, dice *d)
{
    if (kind == LEAT_BOOL)
        return roll(d, 2);
    if (kind == LEAT_F64 || kind == LEAT_F32) {
        static const double some[] = {0, -0.0, 1, -1, 0.5, 1e30, -1e-30, INFINITY, -INFINITY, NAN};
        double real = roll(d, 3) ? some[roll(d, 10)] : (double)roll(d, 1000000) / 7 - 1000;
        float real32 = (float)real;
        uint64_t bits = 0;
        memcpy(&bits, kind == LEAT_F64 ? (void *)&real : (void *)&real32, size);
        return bits;
    }
    uint64_t bits = (UINT64_C(1) << roll(d, 64)) + roll(d, 3) - 1;
    if (roll(d, 2))
        bits = 0 - bits;
    if (roll(d, 4) == 0)
        bits = roll(d, 4);
    if (size == 8)
        return bits;
    uint64_t sign = UINT64_C(1) << (size * 8 - 1);
    bits &= 2 * sign - 1;
    return is_signed(kind) ? (bits ^ sign) - sign : bits;
}

static size_t random_length(dice *d, int size)
{
    static const size_t borders[] = {15, 16, 31, 32, 33, 255, 256, 65535, 65536};
    if (size > 20 && roll(d, 12) == 0)
        return borders[roll(d, roll(d, 20) ? 7 : 9)];
    return roll(d, (uint64_t)size + 1);
}

void model_random(model *value, const leat_type *type, dice *d, int size)
{
    *value = (model){.type = type};
    switch (type->kind) {
    case LEAT_STR:
    case LEAT_BYTES:
        value->count = random_length(d, size);
        value->data = malloc(value->count + 1);
        for (size_t i = 0; i < value->count; i++)
            value->data[i] = (char)roll(d, roll(d, 8) ? 3 : 256);
        return;
    case LEAT_LIST:
    case LEAT_MAP:
        value->count = roll(d, (uint64_t)size / 4 + 2);
        break;
    case LEAT_OPTIONAL:
        value->count = roll(d, 2);
        break;
    case LEAT_STRUCT:
        value->count = type->field_count;
        break;
    default:
        value->bits = random_bits(type->kind, type->size, d);
        return;
    }
    bool is_map = type->kind == LEAT_MAP;
    size_t items = is_map ? 2 * value->count : value->count;
    value->items = calloc(items + 1, sizeof *value->items);
    for (size_t i = 0; i < items; i++) {
        const leat_type *part = type->kind == LEAT_STRUCT ? type->fields[i].type
                                : is_map && i % 2 == 0    ? type->key
                                                          : type->element;
        model_random(&value->items[i], part, d, type->kind == LEAT_STRUCT ? size : size / 2);
    }
}

static size_t item_count(const model *value)
{
    return value->items ? value->type->kind == LEAT_MAP ? 2 * value->count : value->count : 0;
}

void model_free(model *value)
{
    for (size_t i = 0; i < item_count(value); i++)
        model_free(&value->items[i]);
    free(value->items);
    free(value->data);
}

// --- C values ------------------------------------------------------------------------------------

static void *build_items(const model *value, const leat_type *type, size_t first, size_t step)
{
    char *built = calloc(value->count + 1, type->size);
    for (size_t i = 0; i < value->count; i++)
        model_build(&value->items[first + i * step], built + i * type->size);
    return built;
}

void model_build(const model *value, void *to)
{
    const leat_type *type = value->type;
    switch (type->kind) {
    case LEAT_STR:
    case LEAT_BYTES: {
        // A block of its own, so that reading beyond it is noticed.
        char *data = value->count ? malloc(value->count) : NULL;
        if (data)
            memcpy(data, value->data, value->count);
        *(leat_str *)to = (leat_str){data, value->count};
        break;
    }
    case LEAT_LIST:
        *(leat_list *)to = (leat_list){build_items(value, type->element, 0, 1), value->count};
        break;
    case LEAT_MAP:
        *(leat_dict *)to = (leat_dict){build_items(value, type->key, 0, 2),
                                       build_items(value, type->element, 1, 2), value->count};
        break;
    case LEAT_OPTIONAL:
        *(void **)to = value->count ? build_items(value, type->element, 0, 1) : NULL;
        break;
    case LEAT_STRUCT:
        for (uint32_t i = 0; i < type->field_count; i++)
            model_build(&value->items[i], (char *)to + type->fields[i].offset);
        break;
    default:
        // Little-endian machines only, as is enough for a test.
        memcpy(to, &value->bits, type->size);
    }
}

static void unbuild_items(const leat_type *type, const void *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        model_unbuild(type, (char *)(uintptr_t)items + i * type->size);
    free((void *)(uintptr_t)items);
}

void model_unbuild(const leat_type *type, void *built)
{
    switch (type->kind) {
    case LEAT_STR:
    case LEAT_BYTES:
        free((void *)(uintptr_t)((leat_str *)built)->data);
        break;
    case LEAT_LIST:
        unbuild_items(type->element, ((leat_list *)built)->items, ((leat_list *)built)->count);
        break;
    case LEAT_MAP:
        unbuild_items(type->key, ((leat_dict *)built)->keys, ((leat_dict *)built)->count);
        unbuild_items(type->element, ((leat_dict *)built)->values, ((leat_dict *)built)->count);
        break;
    case LEAT_OPTIONAL:
        if (*(void **)built)
            unbuild_items(type->element, *(void **)built, 1);
        break;
    case LEAT_STRUCT:
        for (uint32_t i = 0; i < type->field_count; i++)
            model_unbuild(type->fields[i].type, (char *)built + type->fields[i].offset);
        break;
    default:
        break;
    }
}

// --- wire form -----------------------------------------------------------------------------------

static uint8_t *put_big(uint8_t *to, uint64_t value, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        *to++ = (uint8_t)(value >> 8 * i);
    return to;
}

// A header whose count may be in the tag (below `limit`) or in 1, 2 or 4 bytes behind tags from
// `tag8`; tag8 is 0 where there is no such form.
static uint8_t *put_header(uint8_t *to, size_t count, unsigned fixed, size_t limit, unsigned tag8,
                           unsigned tag16, dice *d)
{
    int form = count < limit ? 0 : count < 256 && tag8 ? 1 : count < 65536 ? 2 : 3;
    if (d)
        form += (int)roll(d, 4 - (uint64_t)form);
    if (form == 1 && !tag8)
        form = 2;
    switch (form) {
    case 0:
        *to++ = (uint8_t)(fixed | count);
        return to;
    case 1:
        *to++ = (uint8_t)tag8;
        return put_big(to, count, 1);
    case 2:
        *to++ = (uint8_t)tag16;
        return put_big(to, count, 2);
    default:
        *to++ = (uint8_t)(tag16 + 1);
        return put_big(to, count, 4);
    }
}

static const struct {
    unsigned tag, bytes;
} integer_forms[] = {[LEAT_I8] = {0xd0, 1},  [LEAT_I16] = {0xd1, 2}, [LEAT_I32] = {0xd2, 4},
                     [LEAT_I64] = {0xd3, 8}, [LEAT_U8] = {0xcc, 1},  [LEAT_U16] = {0xcd, 2},
                     [LEAT_U32] = {0xce, 4}, [LEAT_U64] = {0xcf, 8}, [LEAT_TIMESTAMP] = {0xd3, 8}};

static uint8_t *put_integer(uint8_t *to, uint32_t kind, uint64_t bits, dice *d)
{
    unsigned tag = integer_forms[kind].tag, bytes = integer_forms[kind].bytes;
    bool negative = is_signed(kind) && bits >> 63;
    // A form picked at random that holds the value; the usual one stands when none is found.
    for (int tries = 0; d && tries < 5; tries++) {
        unsigned other = 0xcc + (unsigned)roll(d, 8), width = 1u << (other & 3);
        bool other_signed = other >= 0xd0;
        uint64_t top = UINT64_C(1) << (width * 8 - 1);
        if (negative ? other_signed && ~bits < top
                     : bits <= (other_signed ? top - 1 : 2 * (top - 1) + 1)) {
            tag = other;
            bytes = width;
            break;
        }
    }
    if (d && roll(d, 2) && (negative ? bits >= (uint64_t)-32 : bits < 128)) {
        *to++ = (uint8_t)bits;
        return to;
    }
    *to++ = (uint8_t)tag;
    return put_big(to, bits, (int)bytes);
}

static uint8_t *put_real(uint8_t *to, uint32_t kind, uint64_t bits, dice *d)
{
    if (kind == LEAT_F32 && d && roll(d, 2)) {
        float real32;
        memcpy(&real32, &bits, sizeof real32);
        double real = (double)real32;
        memcpy(&bits, &real, sizeof bits);
        kind = LEAT_F64;
    }
    *to++ = kind == LEAT_F32 ? 0xca : 0xcb;
    return put_big(to, bits, kind == LEAT_F32 ? 4 : 8);
}

uint8_t *model_encode(const model *value, uint8_t *to, dice *d)
{
    switch (value->type->kind) {
    case LEAT_BOOL:
        *to++ = (uint8_t)(0xc2 + value->bits);
        return to;
    case LEAT_F32:
    case LEAT_F64:
        return put_real(to, value->type->kind, value->bits, d);
    case LEAT_STR:
    case LEAT_BYTES:
        to = value->type->kind == LEAT_STR ? put_header(to, value->count, 0xa0, 32, 0xd9, 0xda, d)
                                           : put_header(to, value->count, 0, 0, 0xc4, 0xc5, d);
        memcpy(to, value->data, value->count);
        return to + value->count;
    case LEAT_MAP:
        to = put_header(to, value->count, 0x80, 16, 0, 0xde, d);
        break;
    case LEAT_OPTIONAL:
        if (value->count == 0)
            *to++ = 0xc0;
        break;
    case LEAT_LIST:
    case LEAT_STRUCT:
        to = put_header(to, value->count, 0x90, 16, 0, 0xdc, d);
        break;
    default:
        return put_integer(to, value->type->kind, value->bits, d);
    }
    for (size_t i = 0; i < item_count(value); i++)
        to = model_encode(&value->items[i], to, d);
    return to;
}

// --- order ---------------------------------------------------------------------------------------

static double real_of(const model *value)
{
    if (value->type->kind == LEAT_F64) {
        double real;
        memcpy(&real, &value->bits, sizeof real);
        return real;
    }
    float real;
    memcpy(&real, &value->bits, sizeof real);
    return (double)real;
}

static int compare_items(const model *a, size_t a_count, const model *b, size_t b_count)
{
    for (size_t i = 0; i < a_count && i < b_count; i++) {
        int order = model_compare(&a[i], &b[i]);
        if (order)
            return order;
    }
    return (a_count > b_count) - (a_count < b_count);
}

static int by_entry(const void *a, const void *b)
{
    return compare_items(a, 2, b, 2);
}

static int compare_maps(const model *a, const model *b)
{
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    size_t size = 2 * a->count * sizeof(model);
    model *a_sorted = malloc(size + 1), *b_sorted = malloc(size + 1);
    memcpy(a_sorted, a->items, size);
    memcpy(b_sorted, b->items, size);
    qsort(a_sorted, a->count, 2 * sizeof(model), by_entry);
    qsort(b_sorted, b->count, 2 * sizeof(model), by_entry);
    int order = compare_items(a_sorted, 2 * a->count, b_sorted, 2 * b->count);
    free(a_sorted);
    free(b_sorted);
    return order;
}

int model_compare(const model *a, const model *b)
{
    uint32_t kind = a->type->kind;
    if (kind == LEAT_F32 || kind == LEAT_F64) {
        double x = real_of(a), y = real_of(b);
        if (isnan(x) || isnan(y))
            return isnan(x) - isnan(y);
        return (x > y) - (x < y);
    }
    if (kind == LEAT_STR || kind == LEAT_BYTES) {
        size_t common = a->count < b->count ? a->count : b->count;
        int order = memcmp(a->data, b->data, common);
        return order ? (order > 0) - (order < 0) : (a->count > b->count) - (a->count < b->count);
    }
    if (kind == LEAT_MAP)
        return compare_maps(a, b);
    if (kind >= LEAT_LIST)
        return compare_items(a->items, a->count, b->items, b->count);
    if (is_signed(kind))
        return ((int64_t)a->bits > (int64_t)b->bits) - ((int64_t)a->bits < (int64_t)b->bits);
    return (a->bits > b->bits) - (a->bits < b->bits);
}

// --- hash ----------------------------------------------------------------------------------------

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9;
    x ^= x >> 27;
    x *= 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static uint64_t combine(uint64_t h, uint64_t g)
{
    return mix(h * 0x9e3779b97f4a7c15 + g);
}

static uint64_t hash_real(double real)
{
    uint64_t bits = 0x7ff8000000000000;
    if (real == 0)
        bits = 0;
    else if (!isnan(real))
        memcpy(&bits, &real, sizeof bits);
    return mix(bits);
}

uint64_t model_hash(const model *value)
{
    uint64_t hash = 0x6c6561742e6c7374, sum = 0;
    switch (value->type->kind) {
    case LEAT_F32:
    case LEAT_F64:
        return hash_real(real_of(value));
    case LEAT_STR:
    case LEAT_BYTES:
        return XXH3_64bits(value->data, value->count);
    case LEAT_LIST:
        for (size_t i = 0; i < value->count; i++)
            hash = combine(hash, model_hash(&value->items[i]));
        return hash;
    case LEAT_MAP:
        for (size_t i = 0; i < value->count; i++)
            sum += combine(model_hash(&value->items[2 * i]), model_hash(&value->items[2 * i + 1]));
        return combine(combine(0x6c6561742e6d6170, value->count), sum);
    case LEAT_OPTIONAL:
        return value->count ? model_hash(&value->items[0]) : 0x6c6561742e6e696c;
    case LEAT_STRUCT:
        hash = model_hash(&value->items[0]);
        for (size_t i = 1; i < value->count; i++)
            hash = combine(hash, model_hash(&value->items[i]));
        return hash;
    default:
        return mix(value->bits);
    }
}
