// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdio.h>

#include "samples.h"

Test(type, scalars_have_the_size_of_their_c_type)
{
    static const struct {
        leat_kind kind;
        size_t size;
        const char *name;
    } rows[] = {{LEAT_BOOL, 1, "bool"},    {LEAT_I8, 1, "i8"},
                {LEAT_I16, 2, "i16"},      {LEAT_I32, 4, "i32"},
                {LEAT_I64, 8, "i64"},      {LEAT_U8, 1, "u8"},
                {LEAT_U16, 2, "u16"},      {LEAT_U32, 4, "u32"},
                {LEAT_U64, 8, "u64"},      {LEAT_F32, 4, "f32"},
                {LEAT_F64, 8, "f64"},      {LEAT_STR, 16, "str"},
                {LEAT_BYTES, 16, "bytes"}, {LEAT_TIMESTAMP, 8, "timestamp"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const leat_type *type = leat_type_scalar(rows[i].kind);
        char text[16];
        cr_assert(type && type->kind == rows[i].kind && type->size == rows[i].size);
        cr_assert(leat_type_print(type, text, sizeof text) == strlen(rows[i].name));
        cr_assert_str_eq(text, rows[i].name);
        cr_assert(leat_type_check(type, NULL) == LEAT_OK);
    }
    cr_assert(!leat_type_scalar(LEAT_LIST) && !leat_type_scalar(LEAT_STRUCT));
    cr_assert(!leat_type_scalar((leat_kind)0) && !leat_type_scalar((leat_kind)99));
}

Test(type, a_type_of_run_time_is_laid_out_as_the_compiler_does)
{
    for (int i = 0; i < SAMPLE_TYPES; i++) {
        const leat_type *type = sample_types[i];
        // Its fields stand in another order in memory.
        if (type->kind != LEAT_STRUCT || strcmp(type->name, "shuffled") == 0)
            continue;
        const leat_type *twin = twin_of(NULL, type);
        cr_assert(twin && twin->size == type->size && twin->align == type->align, "%s", type->name);
        for (uint32_t f = 0; f < type->field_count; f++)
            cr_assert(twin->fields[f].offset == type->fields[f].offset, "%s.%s", type->name,
                      type->fields[f].name);
        leat_type_release(twin);
    }
}

Test(type, sameness_is_structure)
{
    for (int i = 0; i < SAMPLE_TYPES; i++) {
        const leat_type *twin = twin_of(NULL, sample_types[i]);
        for (int j = 0; j < SAMPLE_TYPES; j++) {
            cr_assert(leat_type_equal(twin, sample_types[j]) == (i == j));
            cr_assert(leat_type_equal(sample_types[j], twin) == (i == j));
        }
        leat_type_release(twin);
    }
    // The name of the type does not count; names, kinds, order and number of the fields do.
    static const struct {
        leat_field_spec fields[3];
        size_t count;
        bool equal;
    } rows[] = {
        {{{"word", LEAT_SCALAR(LEAT_STR)}, {"count", LEAT_SCALAR(LEAT_I64)}}, 2, true},
        {{{"Word", LEAT_SCALAR(LEAT_STR)}, {"count", LEAT_SCALAR(LEAT_I64)}}, 2, false},
        {{{"word", LEAT_SCALAR(LEAT_BYTES)}, {"count", LEAT_SCALAR(LEAT_I64)}}, 2, false},
        {{{"word", LEAT_SCALAR(LEAT_STR)}, {"count", LEAT_SCALAR(LEAT_TIMESTAMP)}}, 2, false},
        {{{"count", LEAT_SCALAR(LEAT_I64)}, {"word", LEAT_SCALAR(LEAT_STR)}}, 2, false},
        {{{"word", LEAT_SCALAR(LEAT_STR)}}, 1, false},
        {{{"word", LEAT_SCALAR(LEAT_STR)},
          {"count", LEAT_SCALAR(LEAT_I64)},
          {"x", LEAT_SCALAR(LEAT_I64)}},
         3,
         false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const leat_type *type;
        cr_assert(leat_type_struct_create(NULL, "other", rows[i].fields, rows[i].count, &type) ==
                  LEAT_OK);
        cr_assert(leat_type_equal(type, LEAT_TYPE(word_count)) == rows[i].equal, "row %zu", i);
        leat_type_release(type);
    }
    cr_assert(!leat_type_equal(LEAT_TYPE(names), LEAT_TYPE(addresses)));
    cr_assert(!leat_type_equal(LEAT_TYPE(word_count), NULL));
}

Test(type, printing_is_as_snprintf)
{
    static const char whole[] =
        "{first: u8, middle: list<{id: i64, home: {street: str, number: u16, city: str}, "
        "tags: list<str>, aliases: map<str, list<str>>, score: optional<f64>, "
        "past: list<{street: str, number: u16, city: str}>, "
        "work: optional<{street: str, number: u16, city: str}>, "
        "visits: map<{street: str, number: u16, city: str}, list<optional<i64>>>, "
        "active: bool}>, last: i64}";
    char text[512];
    for (size_t room = 0; room < sizeof whole + 3; room++) {
        memset(text, '#', sizeof text);
        cr_assert(leat_type_print(LEAT_TYPE(shuffled), text, room) == sizeof whole - 1);
        size_t kept = room == 0 ? 0 : room < sizeof whole ? room - 1 : sizeof whole - 1;
        cr_assert(memcmp(text, whole, kept) == 0);
        cr_assert(room == 0 || text[kept] == '\0');
        cr_assert(text[room] == '#');
    }
}

Test(type, fields_are_found_by_path)
{
    static const struct {
        const char *path;
        uint32_t offset;
        uint32_t kind;
    } rows[] = {
        {"f3", offsetof(many, f3), LEAT_I8},
        {"who", offsetof(many, who), LEAT_STRUCT},
        {"who.home", offsetof(many, who) + offsetof(person, home), LEAT_STRUCT},
        {"who.home.city", offsetof(many, who) + offsetof(person, home) + offsetof(address, city),
         LEAT_STR},
        {"who.tags", offsetof(many, who) + offsetof(person, tags), LEAT_LIST},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t offset = 1;
        const leat_field *field = leat_type_find(LEAT_TYPE(many), rows[i].path, &offset);
        cr_assert(field && field->kind == rows[i].kind && offset == rows[i].offset, "%s",
                  rows[i].path);
        cr_assert(leat_type_find(LEAT_TYPE(many), rows[i].path, NULL) == field);
    }
    static const char *const unknown[] = {"",     "f",       "f33",           "who.",
                                          ".who", "who.x",   "f3.x",          "who.tags.x",
                                          "WHO",  "who..id", "who.work.city", "who.home.city "};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        cr_assert(!leat_type_find(LEAT_TYPE(many), unknown[i], NULL), "%s", unknown[i]);
    cr_assert(!leat_type_find(LEAT_TYPE(names), "x", NULL));

    // A schema of run time may have dots in its names.
    const leat_type *type;
    leat_field_spec fields[] = {{"a", LEAT_TYPE(address)},
                                {"a.city", LEAT_SCALAR(LEAT_I64)},
                                {"a.b.c", LEAT_SCALAR(LEAT_U8)}};
    cr_assert(leat_type_struct_create(NULL, NULL, fields, 3, &type) == LEAT_OK);
    cr_assert(leat_type_find(type, "a.b.c", NULL)->kind == LEAT_U8);
    cr_assert(leat_type_find(type, "a.number", NULL)->kind == LEAT_U16);
    leat_type_release(type);
}

Test(type, what_cannot_be_a_type_is_refused)
{
    const leat_type *i64 = LEAT_SCALAR(LEAT_I64), *f64 = LEAT_SCALAR(LEAT_F64), *type = NULL;
    leat_field_spec twice[] = {{"a", i64}, {"b", i64}, {"a", f64}};
    leat_field_spec unnamed[] = {{"a", i64}, {"", i64}}, nameless[] = {{NULL, i64}};
    leat_field_spec typeless[] = {{"a", NULL}};
    cr_assert(leat_type_struct_create(NULL, "s", twice, 3, &type) == LEAT_ETYPE);
    cr_assert(leat_type_struct_create(NULL, "s", unnamed, 2, &type) == LEAT_ETYPE);
    cr_assert(leat_type_struct_create(NULL, "s", nameless, 1, &type) == LEAT_ETYPE);
    cr_assert(leat_type_struct_create(NULL, "s", typeless, 1, &type) == LEAT_ETYPE);
    cr_assert(leat_type_struct_create(NULL, "s", twice, 0, &type) == LEAT_ETYPE);
    cr_assert(leat_type_list_create(NULL, NULL, &type) == LEAT_ETYPE);
    cr_assert(leat_type_optional_create(NULL, LEAT_TYPE(maybe_i64), &type) == LEAT_ETYPE);
    const leat_type *not_keys[] = {f64,
                                   LEAT_SCALAR(LEAT_F32),
                                   LEAT_TYPE(names),
                                   LEAT_TYPE(maybe_i64),
                                   LEAT_TYPE(row),
                                   LEAT_TYPE(person),
                                   NULL};
    for (size_t i = 0; i < sizeof not_keys / sizeof *not_keys; i++)
        cr_assert(leat_type_map_create(NULL, not_keys[i], i64, &type) == LEAT_ETYPE, "%zu", i);
    cr_assert(type == NULL, "outputs are written on success only");
    cr_assert(leat_type_map_create(NULL, LEAT_TYPE(address), LEAT_TYPE(person), &type) == LEAT_OK);
    leat_type_release(type);
}

Test(type, static_types_are_checked_too)
{
    static const leat_type recursive = {
        .kind = LEAT_LIST, .size = sizeof(leat_list), .align = 8, .element = &recursive};
    static const leat_field outside[] = {{"a", LEAT_SCALAR(LEAT_I64), 8, LEAT_I64}};
    static const leat_field skewed[] = {{"a", LEAT_SCALAR(LEAT_I64), 4, LEAT_I64}};
    static const leat_field other[] = {{"a", LEAT_SCALAR(LEAT_I64), 0, LEAT_STR}};
    static const leat_field same[] = {{"a", LEAT_SCALAR(LEAT_I64), 0, LEAT_I64},
                                      {"a", LEAT_SCALAR(LEAT_I64), 8, LEAT_I64}};
    static const leat_field fine[] = {{"a", LEAT_SCALAR(LEAT_I64), 0, LEAT_I64}};
    static const struct {
        leat_type type;
        bool ok;
    } rows[] = {
        {{.kind = LEAT_STRUCT, .size = 8, .align = 8, .field_count = 1, .fields = fine}, true},
        // Two bytes on the wire may stand for 80 bytes in memory, not more.
        {{.kind = LEAT_STRUCT, .size = 80, .align = 8, .field_count = 1, .fields = fine}, true},
        {{.kind = LEAT_STRUCT, .size = 88, .align = 8, .field_count = 1, .fields = fine}, false},
        {{.kind = LEAT_STRUCT, .size = 8, .align = 8, .field_count = 1, .fields = outside}, false},
        {{.kind = LEAT_STRUCT, .size = 16, .align = 8, .field_count = 1, .fields = skewed}, false},
        {{.kind = LEAT_STRUCT, .size = 8, .align = 8, .field_count = 1, .fields = other}, false},
        {{.kind = LEAT_STRUCT, .size = 16, .align = 8, .field_count = 2, .fields = same}, false},
        {{.kind = LEAT_STRUCT, .size = 12, .align = 8, .field_count = 1, .fields = fine}, false},
        {{.kind = LEAT_STRUCT, .size = 8, .align = 4, .field_count = 1, .fields = fine}, false},
        {{.kind = LEAT_STRUCT, .size = 64, .align = 64, .field_count = 1, .fields = fine}, false},
        {{.kind = LEAT_STRUCT, .size = 8, .align = 8}, false},
        {{.kind = 0, .size = 8, .align = 8}, false},
        {{.kind = 19, .size = 8, .align = 8}, false},
        {{.kind = LEAT_LIST, .size = 16, .align = 8}, false},
        {{.kind = LEAT_LIST, .size = 8, .align = 8, .element = LEAT_SCALAR(LEAT_I8)}, false},
        {{.kind = LEAT_LIST, .size = 16, .align = 8, .element = &recursive}, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *why = NULL;
        leat_err err = leat_type_check(&rows[i].type, &why);
        cr_assert(err == (rows[i].ok ? LEAT_OK : LEAT_ETYPE), "row %zu", i);
        cr_assert((why == NULL) == rows[i].ok, "row %zu", i);
    }
    for (int i = 0; i < SAMPLE_TYPES; i++)
        cr_assert(leat_type_check(sample_types[i], NULL) == LEAT_OK);
}

Test(type, nesting_ends_at_the_limit)
{
    const leat_type *type = LEAT_SCALAR(LEAT_I64), *next;
    for (int depth = 1; depth <= LEAT_TYPE_MAX_DEPTH; depth++) {
        cr_assert(leat_type_list_create(NULL, type, &next) == LEAT_OK, "depth %d", depth);
        leat_type_release(type);
        type = next;
    }
    cr_assert(leat_type_check(type, NULL) == LEAT_OK);
    cr_assert(leat_type_list_create(NULL, type, &next) == LEAT_ETYPE);
    leat_type_release(type);
}

Test(type, a_type_that_doubles_at_each_step_is_refused_in_time)
{
    // 2^21 parts after 20 steps, though only twenty types.
    const leat_type *type = LEAT_SCALAR(LEAT_I64), *list = NULL, *next = NULL;
    int steps = 0;
    for (leat_err err = LEAT_OK; err == LEAT_OK && steps < 30; steps++) {
        leat_field_spec fields[] = {{"a", type}, {"b", type}};
        err = leat_type_struct_create(NULL, "s", fields, 2, &next);
        if (err == LEAT_OK)
            err = leat_type_list_create(NULL, next, &list);
        leat_type_release(next);
        if (err == LEAT_OK) {
            leat_type_release(type);
            type = list;
        }
        next = NULL;
    }
    cr_assert(steps < 22);
    leat_type_release(type);
}

Test(type, a_struct_may_have_65535_fields)
{
    leat_field_spec *fields = calloc(65536, sizeof *fields);
    char(*names_of)[16] = calloc(65536, sizeof *names_of);
    for (int i = 0; i < 65536; i++) {
        snprintf(names_of[i], sizeof names_of[i], "f%d", i);
        fields[i] = (leat_field_spec){names_of[i], LEAT_SCALAR(LEAT_U8)};
    }
    const leat_type *type;
    cr_assert(leat_type_struct_create(NULL, "s", fields, 65536, &type) == LEAT_ETYPE);
    cr_assert(leat_type_struct_create(NULL, "s", fields, 65535, &type) == LEAT_OK);
    cr_assert(type->size == 65535 && type->align == 1);
    cr_assert(leat_type_find(type, "f65534", NULL)->offset == 65534);
    leat_type_release(type);
    fields[65000].name = "f7";
    cr_assert(leat_type_struct_create(NULL, "s", fields, 65535, &type) == LEAT_ETYPE);
    free(fields);
    free(names_of);
}

Test(type, references_keep_parts_alive)
{
    counter c = {0};
    leat_allocator allocator = counting(&c);
    const leat_type *list, *outer;
    cr_assert(leat_type_list_create(&allocator, LEAT_TYPE(address), &list) == LEAT_OK);
    leat_field_spec fields[] = {{"x", list}, {"y", list}};
    cr_assert(leat_type_struct_create(&allocator, "s", fields, 2, &outer) == LEAT_OK);
    leat_type_release(list);
    cr_assert(c.live == 2);
    cr_assert(outer->fields[1].type->element == LEAT_TYPE(address));
    cr_assert(leat_type_hold(outer) == outer);
    leat_type_release(outer);
    cr_assert(c.live == 2);
    leat_type_release(outer);
    cr_assert(c.live == 0);
    // Static types and NULL have no count.
    cr_assert(leat_type_hold(LEAT_TYPE(person)) == LEAT_TYPE(person));
    leat_type_release(LEAT_TYPE(person));
    leat_type_release(LEAT_SCALAR(LEAT_I64));
    leat_type_release(leat_type_hold(NULL));
}

Test(type, every_failing_allocation_is_reported_and_nothing_leaks)
{
    size_t n = 1;
    for (;; n++) {
        counter c = {.fail_at = n};
        leat_allocator allocator = counting(&c);
        const leat_type *twin = twin_of(&allocator, LEAT_TYPE(shuffled));
        cr_assert((twin == NULL) == (c.calls >= n), "allocation %zu", n);
        leat_type_release(twin);
        cr_assert(c.live == 0, "allocation %zu", n);
        if (twin)
            break;
    }
    cr_assert(n > 20);
}
