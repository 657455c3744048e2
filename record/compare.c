// SPDX-License-Identifier: Apache-2.0
// Equality, which agrees with the hash, and the total order of values.
#include <string.h>

#include "record/value_impl.h"

// --- equality ------------------------------------------------------------------------------------

static bool entries_equal(const leat_type *type, const leat_dict *a, size_t i, const leat_dict *b,
                          size_t j)
{
    return leat_codec_equal(type->key, leati_item(a->keys, type->key, i),
                            leati_item(b->keys, type->key, j)) &&
           leat_codec_equal(type->element, leati_item(a->values, type->element, i),
                            leati_item(b->values, type->element, j));
}

static size_t occurrences(const leat_type *type, const leat_dict *of, size_t i, const leat_dict *in)
{
    size_t count = 0;
    for (size_t j = 0; j < in->count; j++)
        count += entries_equal(type, of, i, in, j);
    return count;
}

// Maps are equal when each entry occurs in both equally often; counting keeps that true for maps
// with a key twice, which decoding lets through. Entries in the same order, the usual case, are
// compared once; others take quadratic time.
static bool maps_equal(const leat_type *type, const leat_dict *a, const leat_dict *b)
{
    if (a->count != b->count)
        return false;
    size_t same = 0;
    while (same < a->count && entries_equal(type, a, same, b, same))
        same++;
    // What stood in the same place on both sides counts the same on both.
    for (size_t i = same; i < a->count; i++)
        if (occurrences(type, a, i, a) != occurrences(type, a, i, b))
            return false;
    return true;
}

static bool lists_equal(const leat_type *element, const leat_list *a, const leat_list *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!leat_codec_equal(element, leati_item(a->items, element, i),
                              leati_item(b->items, element, i)))
            return false;
    return true;
}

static bool optionals_equal(const leat_type *element, const void *a, const void *b)
{
    return a && b ? leat_codec_equal(element, a, b) : a == b;
}

static bool structs_equal(const leat_type *type, const void *a, const void *b)
{
    for (uint32_t i = 0; i < type->field_count; i++) {
        const leat_field *field = &type->fields[i];
        if (!leat_codec_equal(field->type, leati_field_of(a, field), leati_field_of(b, field)))
            return false;
    }
    return true;
}

bool leat_codec_equal(const leat_type *type, const void *a, const void *b)
{
    switch (type->kind) {
#define EQUAL(K)                                                                                   \
    case K:                                                                                        \
        return leati_equal_##K(a, b);
        LEATI_SCALAR_KINDS(EQUAL)
#undef EQUAL
    case LEAT_LIST:
        return lists_equal(type->element, a, b);
    case LEAT_MAP:
        return maps_equal(type, a, b);
    case LEAT_OPTIONAL:
        return optionals_equal(type->element, leati_present(a), leati_present(b));
    default:
        return type->codec ? type->codec->equal(type, a, b) : structs_equal(type, a, b);
    }
}

bool leat_record_equal(const leat_type *type, const void *a, const void *b)
{
    return leat_codec_equal(type, a, b);
}

// --- order ---------------------------------------------------------------------------------------

static int compare_values(const leat_type *type, const void *a, const void *b);

static int compare_f64(double a, double b)
{
    if (a < b)
        return -1;
    if (a > b)
        return 1;
    // Equal, or at least one is NaN.
    return (a != a) - (b != b);
}

static int compare_runs(const leat_str *a, const leat_str *b)
{
    size_t common = a->size < b->size ? a->size : b->size;
    int order = common ? memcmp(a->data, b->data, common) : 0;
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

static int compare_lists(const leat_type *element, const leat_list *a, const leat_list *b)
{
    size_t common = a->count < b->count ? a->count : b->count;
    for (size_t i = 0; i < common; i++) {
        int order = compare_values(element, leati_item(a->items, element, i),
                                   leati_item(b->items, element, i));
        if (order)
            return order;
    }
    return (a->count > b->count) - (a->count < b->count);
}

static int compare_entries(const leat_type *type, const leat_dict *a, size_t i, const leat_dict *b,
                           size_t j)
{
    int order = compare_values(type->key, leati_item(a->keys, type->key, i),
                               leati_item(b->keys, type->key, j));
    if (order)
        return order;
    return compare_values(type->element, leati_item(a->values, type->element, i),
                          leati_item(b->values, type->element, j));
}

#define NO_ENTRY SIZE_MAX

// The smallest entry that is larger than the entry `above` (NO_ENTRY: than nothing), and how often
// it occurs.
static size_t next_entry(const leat_type *type, const leat_dict *map, size_t above, size_t *times)
{
    size_t best = NO_ENTRY;
    for (size_t i = 0; i < map->count; i++) {
        if (above != NO_ENTRY && compare_entries(type, map, i, map, above) <= 0)
            continue;
        int order = best == NO_ENTRY ? -1 : compare_entries(type, map, i, map, best);
        if (order < 0) {
            best = i;
            *times = 1;
        } else if (order == 0) {
            ++*times;
        }
    }
    return best;
}

// By count, then as sorted lists of entries. Nothing may be allocated here, so the entries are
// picked in order one after the other, in quadratic time.
static int compare_maps(const leat_type *type, const leat_dict *a, const leat_dict *b)
{
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    size_t i = NO_ENTRY, j = NO_ENTRY;
    for (size_t done = 0; done < a->count;) {
        size_t a_times = 0, b_times = 0;
        i = next_entry(type, a, i, &a_times);
        j = next_entry(type, b, j, &b_times);
        int order = compare_entries(type, a, i, b, j);
        if (order)
            return order;
        // The side that has this entry once more has the smaller one at that place.
        if (a_times != b_times)
            return a_times > b_times ? -1 : 1;
        done += a_times;
    }
    return 0;
}

static int compare_structs(const leat_type *type, const void *a, const void *b)
{
    for (uint32_t i = 0; i < type->field_count; i++) {
        const leat_field *field = &type->fields[i];
        int order = compare_values(field->type, leati_field_of(a, field), leati_field_of(b, field));
        if (order)
            return order;
    }
    return 0;
}

static int compare_optionals(const leat_type *element, const void *a, const void *b)
{
    return a && b ? compare_values(element, a, b) : (a != NULL) - (b != NULL);
}

static int compare_values(const leat_type *type, const void *a, const void *b)
{
    switch (type->kind) {
#define COMPARE(K)                                                                                 \
    case K:                                                                                        \
        return (*(const leati_ctype_##K *)a > *(const leati_ctype_##K *)b) -                       \
               (*(const leati_ctype_##K *)a < *(const leati_ctype_##K *)b);
        COMPARE(LEAT_BOOL)
        COMPARE(LEAT_I8)
        COMPARE(LEAT_I16)
        COMPARE(LEAT_I32)
        COMPARE(LEAT_I64)
        COMPARE(LEAT_TIMESTAMP)
        COMPARE(LEAT_U8)
        COMPARE(LEAT_U16)
        COMPARE(LEAT_U32)
        COMPARE(LEAT_U64)
#undef COMPARE
    case LEAT_F32:
        return compare_f64((double)*(const float *)a, (double)*(const float *)b);
    case LEAT_F64:
        return compare_f64(*(const double *)a, *(const double *)b);
    case LEAT_STR:
    case LEAT_BYTES:
        return compare_runs(a, b);
    case LEAT_LIST:
        return compare_lists(type->element, a, b);
    case LEAT_MAP:
        return compare_maps(type, a, b);
    case LEAT_OPTIONAL:
        return compare_optionals(type->element, leati_present(a), leati_present(b));
    default:
        return compare_structs(type, a, b);
    }
}

int leat_record_compare(const leat_type *type, const void *a, const void *b)
{
    return compare_values(type, a, b);
}

// --- keys ----------------------------------------------------------------------------------------

static bool equal_across(const leat_type *a_type, const void *a, const leat_type *b_type,
                         const void *b);

static bool lists_equal_across(const leat_type *a_type, const leat_list *a, const leat_type *b_type,
                               const leat_list *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!equal_across(a_type, leati_item(a->items, a_type, i), b_type,
                          leati_item(b->items, b_type, i)))
            return false;
    return true;
}

// Equality of values whose types are equal but may be laid out in memory differently. Keys hold no
// maps.
static bool equal_across(const leat_type *a_type, const void *a, const leat_type *b_type,
                         const void *b)
{
    if (a_type == b_type || leati_is_scalar(a_type->kind))
        return leat_codec_equal(a_type, a, b);
    if (a_type->kind == LEAT_LIST)
        return lists_equal_across(a_type->element, a, b_type->element, b);
    if (a_type->kind == LEAT_OPTIONAL) {
        const void *a_present = leati_present(a), *b_present = leati_present(b);
        if (!a_present || !b_present)
            return a_present == b_present;
        return equal_across(a_type->element, a_present, b_type->element, b_present);
    }
    for (uint32_t i = 0; i < a_type->field_count; i++) {
        const leat_field *a_field = &a_type->fields[i], *b_field = &b_type->fields[i];
        if (!equal_across(a_field->type, leati_field_of(a, a_field), b_field->type,
                          leati_field_of(b, b_field)))
            return false;
    }
    return true;
}

bool leat_key_equal(const leat_key *a_key, const void *a, const leat_key *b_key, const void *b)
{
    if (a_key->count != b_key->count)
        return false;
    for (uint32_t i = 0; i < a_key->count; i++)
        if (!equal_across(a_key->part[i].type, (const char *)a + a_key->part[i].offset,
                          b_key->part[i].type, (const char *)b + b_key->part[i].offset))
            return false;
    return true;
}

int leat_key_compare(const leat_key *key, const void *a, const void *b)
{
    for (uint32_t i = 0; i < key->count; i++) {
        int order = compare_values(key->part[i].type, (const char *)a + key->part[i].offset,
                                   (const char *)b + key->part[i].offset);
        if (order)
            return order;
    }
    return 0;
}
