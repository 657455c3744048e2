// SPDX-License-Identifier: Apache-2.0
// Random values of random types, written as JSON and as CSV and read again.
#include <criterion/criterion.h>

#include "leat/csv.h"
#include "model.h"
#include "samples.h"

// --- values that JSON can hold -------------------------------------------------------------------

static void tame_real(model *value)
{
    uint64_t exponent =
        value->type->kind == LEAT_F64 ? UINT64_C(0x7ff) << 52 : UINT64_C(0xff) << 23;
    if ((value->bits & exponent) == exponent)
        value->bits = 0;
}

// Leaves the first of equal keys.
static void drop_doubles(model *map)
{
    for (size_t i = 0; i < map->count; i++)
        for (size_t j = map->count - 1; j > i; j--) {
            if (model_compare(&map->items[2 * i], &map->items[2 * j]) != 0)
                continue;
            size_t last = --map->count;
            model_free(&map->items[2 * j]);
            model_free(&map->items[2 * j + 1]);
            map->items[2 * j] = map->items[2 * last];
            map->items[2 * j + 1] = map->items[2 * last + 1];
        }
}

// Makes reals finite, strings ASCII and keys distinct.
static void tame(model *value)
{
    size_t items = value->type->kind == LEAT_MAP ? 2 * value->count : value->count;
    switch (value->type->kind) {
    case LEAT_F32:
    case LEAT_F64:
        tame_real(value);
        break;
    case LEAT_STR:
        for (size_t i = 0; i < value->count; i++)
            value->data[i] &= 0x7f;
        break;
    case LEAT_LIST:
    case LEAT_MAP:
    case LEAT_OPTIONAL:
    case LEAT_STRUCT:
        for (size_t i = 0; i < items; i++)
            tame(&value->items[i]);
        if (value->type->kind == LEAT_MAP)
            drop_doubles(value);
        break;
    default:
        break;
    }
}

// Only what stands in CSV as JSON must be tame there.
static void tame_composed(model *record)
{
    for (size_t i = 0; i < record->count; i++) {
        model *value = &record->items[i];
        if (value->type->kind == LEAT_OPTIONAL && value->count == 1)
            value = &value->items[0];
        if (value->type->kind >= LEAT_LIST && value->type->kind != LEAT_OPTIONAL)
            tame(value);
    }
}

// --- rounds --------------------------------------------------------------------------------------

static void check_json(const leat_type *type, const void *record, leat_scratch *scratch)
{
    size_t size = leat_record_json(type, record, NULL, 0);
    char *text = malloc(size);
    void *again = calloc(1, type->size);
    leat_parse_error error;
    cr_assert(leat_record_json(type, record, text, size) == size);
    leat_scratch_reset(scratch);
    leat_err err = leat_record_from_json(type, NULL, text, size, again, scratch, &error);
    cr_assert(err == LEAT_OK, "%.*s: %zu: %s", (int)size, text, error.offset, error.text);
    cr_assert(leat_record_equal(type, record, again), "%.*s", (int)size, text);
    free(again);
    free(text);
}

static void check_csv(const leat_type *type, const void *record, leat_scratch *scratch, dice *d)
{
    // The strings of the model are full of bytes below 3.
    leat_csv_options options = {.delimiter = ",;\x01"[roll(d, 3)],
                                .quote = "\"'\x02"[roll(d, 3)],
                                .missing = roll(d, 2) ? "1" : NULL,
                                .no_header = true};
    leat_csv *csv;
    leat_parse_error error;
    cr_assert(leat_csv_create(NULL, type, &options, &csv, &error) == LEAT_OK, "%s", error.text);
    size_t size = leat_csv_write(csv, record, NULL, 0), consumed;
    char *text = malloc(size + 1);
    void *again = calloc(1, type->size);
    cr_assert(leat_csv_write(csv, record, text, size) == size);
    bool at_end = roll(d, 2);
    text[size] = '\n';
    leat_scratch_reset(scratch);
    // An empty text is no record, so there the line break is needed.
    size += !at_end || size == 0;
    leat_csv_result result =
        leat_csv_next(csv, text, size, at_end, &consumed, again, scratch, &error);
    cr_assert(result == LEAT_CSV_RECORD, "%.*s: %zu: %s", (int)size, text, error.offset,
              error.text);
    cr_assert(consumed == size && leat_record_equal(type, record, again), "%.*s", (int)size, text);
    leat_csv_destroy(&csv);
    free(again);
    free(text);
}

static void check_type(const leat_type *type, uint64_t seed, int rounds)
{
    dice d = {seed};
    leat_scratch *scratch;
    cr_assert(leat_scratch_create(NULL, &scratch) == LEAT_OK);
    for (int i = 0; i < rounds; i++) {
        model value;
        void *record = calloc(1, type->size);
        model_random(&value, type, &d, i % 4 == 0 ? 40 : 3);
        if (type->kind == LEAT_STRUCT) {
            tame_composed(&value);
            model_build(&value, record);
            check_csv(type, record, scratch, &d);
            model_unbuild(type, record);
        }
        tame(&value);
        model_build(&value, record);
        check_json(type, record, scratch);
        model_unbuild(type, record);
        free(record);
        model_free(&value);
    }
    leat_scratch_destroy(&scratch);
}

Test(round, random_types_survive_being_written_and_read)
{
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        dice d = {seed};
        const leat_type *type = random_type(&d, 1 + (int)(seed % 5));
        check_type(type, seed * 77, 6);
        leat_type_release(type);
    }
}

Test(round, compiled_types_survive_being_written_and_read)
{
    for (int i = 0; i < SAMPLE_TYPES; i++)
        check_type(sample_types[i], (uint64_t)i + 1, 300);
}
