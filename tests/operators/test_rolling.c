// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "run.h"

typedef struct {
    leat_str city;
    int64_t delay;
    leat_str note;
} flight;
LEAT_RECORD(flight, LEAT_FIELD(city, LEAT_STR), LEAT_FIELD(delay, LEAT_I64),
            LEAT_FIELD(note, LEAT_STR));

static const flight flights[] = {
    {{"b", 1}, 5, {"one", 3}},   {{"a", 1}, -7, {"two", 3}},  {{"b", 1}, 1, {"three", 5}},
    {{"b", 1}, 1, {"four", 4}},  {{"a", 1}, -7, {"five", 4}}, {{"b", 1}, 9, {"six", 3}},
    {{"b", 1}, 9, {"seven", 5}},
};
enum { FLIGHTS = sizeof flights / sizeof flights[0] };

typedef leat_stream *(*rolling_fn)(leat_stream *keyed, const char *field);

static leat_stream *min_by_last(leat_stream *keyed, const char *field)
{
    return leat_last_on_ties(leat_min_by(keyed, field));
}

static leat_stream *max_by_last(leat_stream *keyed, const char *field)
{
    return leat_last_on_ties(leat_max_by(keyed, field));
}

Test(rolling, each_record_gives_an_update_by_the_rules_of_the_aggregation)
{
    static const struct {
        const char *name;
        rolling_fn fn;
        const char *field, *expected;
    } cases[] = {
        {"sum", leat_sum, "delay",
         "b\t5\tone\na\t-7\ttwo\nb\t6\tone\nb\t7\tone\na\t-14\ttwo\nb\t16\tone\nb\t25\tone\n"},
        {"min", leat_min, "delay",
         "b\t5\tone\na\t-7\ttwo\nb\t1\tone\nb\t1\tone\na\t-7\ttwo\nb\t1\tone\nb\t1\tone\n"},
        {"max", leat_max, "delay",
         "b\t5\tone\na\t-7\ttwo\nb\t5\tone\nb\t5\tone\na\t-7\ttwo\nb\t9\tone\nb\t9\tone\n"},
        {"min_by", leat_min_by, "delay",
         "b\t5\tone\na\t-7\ttwo\nb\t1\tthree\nb\t1\tthree\na\t-7\ttwo\nb\t1\tthree\nb\t1\tthree\n"},
        {"min_by, last", min_by_last, "delay",
         "b\t5\tone\na\t-7\ttwo\nb\t1\tthree\nb\t1\tfour\na\t-7\tfive\nb\t1\tfour\nb\t1\tfour\n"},
        {"max_by", leat_max_by, "delay",
         "b\t5\tone\na\t-7\ttwo\nb\t5\tone\nb\t5\tone\na\t-7\ttwo\nb\t9\tsix\nb\t9\tsix\n"},
        {"max_by, last", max_by_last, "delay",
         "b\t5\tone\na\t-7\ttwo\nb\t5\tone\nb\t5\tone\na\t-7\tfive\nb\t9\tsix\nb\t9\tseven\n"},
        // Texts go by their bytes: five < four < one < seven < six < three < two.
        {"min of a text", leat_min, "note",
         "b\t5\tone\na\t-7\ttwo\nb\t5\tone\nb\t5\tfour\na\t-7\tfive\nb\t5\tfour\nb\t5\tfour\n"},
        {"max_by a text", leat_max_by, "note",
         "b\t5\tone\na\t-7\ttwo\nb\t1\tthree\nb\t1\tthree\na\t-7\ttwo\nb\t1\tthree\nb\t1\tthree\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run r;
        leat_env *env = run_begin(&r, 1);
        leat_stream *in = leat_from_items(env, LEAT_TYPE(flight), flights, FLIGHTS);
        leat_print(cases[i].fn(leat_key_by(in, "city"), cases[i].field));
        cr_assert_eq(run_execute(&r), LEAT_OK, "%s: %s", cases[i].name, r.failure);
        cr_assert_str_eq(leati_strbuf_text(&r.out[0]), cases[i].expected, "%s", cases[i].name);
        run_end(&r);
    }
}

Test(rolling, only_final_values_come_when_asked_for)
{
    static const struct {
        rolling_fn fn;
        const char *expected;
    } cases[] = {
        {leat_sum, "a\t-14\ttwo\nb\t25\tone\n"},
        {leat_max_by, "a\t-7\ttwo\nb\t9\tsix\n"},
    };
    for (uint32_t p = 1; p <= 4; p++) {
        for (size_t i = 0; i < 2; i++) {
            run r;
            leat_env *env = run_begin(&r, p);
            leat_stream *in = leat_from_items(env, LEAT_TYPE(flight), flights, FLIGHTS);
            leat_stream *final = leat_final_only(cases[i].fn(leat_key_by(in, "city"), "delay"));
            leat_parallelism(leat_print(final), 1);
            run_expect_lines(&r, cases[i].expected, i ? "max_by" : "sum");
        }
    }
}

// --- kinds ---

typedef struct {
    int16_t key;
    bool yes;
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
    leat_str text;
    leat_bytes raw;
    int64_t when;
    leat_list list;
    leat_dict map;
} kinds;
LEAT_RECORD(kinds, LEAT_FIELD(key, LEAT_I16), LEAT_FIELD(yes, LEAT_BOOL), LEAT_FIELD(i8, LEAT_I8),
            LEAT_FIELD(i16, LEAT_I16), LEAT_FIELD(i32, LEAT_I32), LEAT_FIELD(i64, LEAT_I64),
            LEAT_FIELD(u8, LEAT_U8), LEAT_FIELD(u16, LEAT_U16), LEAT_FIELD(u32, LEAT_U32),
            LEAT_FIELD(u64, LEAT_U64), LEAT_FIELD(f32, LEAT_F32), LEAT_FIELD(f64, LEAT_F64),
            LEAT_FIELD(text, LEAT_STR), LEAT_FIELD(raw, LEAT_BYTES),
            LEAT_FIELD(when, LEAT_TIMESTAMP), LEAT_FIELD_LIST(list, LEAT_SCALAR(LEAT_I8)),
            LEAT_FIELD_MAP(map, LEAT_SCALAR(LEAT_I8), LEAT_SCALAR(LEAT_I8)));

// Each row: a field, and three records' values of which the third is one too many.
static const struct {
    const char *field;
    kinds start, step;
    const char *sum; // of the first two
} limits[] = {
    {"i8", {.i8 = INT8_MAX - 1}, {.i8 = 1}, "127"},
    {"i8", {.i8 = INT8_MIN + 1}, {.i8 = -1}, "-128"},
    {"i16", {.i16 = INT16_MAX - 1}, {.i16 = 1}, "32767"},
    {"i16", {.i16 = INT16_MIN + 1}, {.i16 = -1}, "-32768"},
    {"i32", {.i32 = INT32_MAX - 1}, {.i32 = 1}, "2147483647"},
    {"i32", {.i32 = INT32_MIN + 1}, {.i32 = -1}, "-2147483648"},
    {"i64", {.i64 = INT64_MAX - 1}, {.i64 = 1}, "9223372036854775807"},
    {"i64", {.i64 = INT64_MIN + 1}, {.i64 = -1}, "-9223372036854775808"},
    {"u8", {.u8 = UINT8_MAX - 1}, {.u8 = 1}, "255"},
    {"u16", {.u16 = UINT16_MAX - 1}, {.u16 = 1}, "65535"},
    {"u32", {.u32 = UINT32_MAX - 1}, {.u32 = 1}, "4294967295"},
    {"u64", {.u64 = UINT64_MAX - 1}, {.u64 = 1}, "18446744073709551615"},
};

// The sum of `count` records, of which only the named field is printed.
static leat_err sum_of_limit(run *r, size_t row, size_t count)
{
    kinds items[3] = {limits[row].start, limits[row].step, limits[row].step};
    leat_env *env = run_begin(r, 1);
    leat_stream *in = leat_from_items(env, LEAT_TYPE(kinds), items, count);
    leat_stream *sums = leat_final_only(leat_sum(leat_key_by(in, "key"), limits[row].field));
    leat_print(leat_project(sums, limits[row].field, NULL));
    return run_execute(r);
}

Test(rolling, a_sum_reaches_the_limits_of_its_type_and_fails_beyond_them)
{
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        char expected[64];
        run r;
        cr_assert_eq(sum_of_limit(&r, i, 2), LEAT_OK, "%s: %s", limits[i].field, r.failure);
        snprintf(expected, sizeof expected, "%s\n", limits[i].sum);
        cr_assert_str_eq(leati_strbuf_text(&r.out[0]), expected, "%s", limits[i].field);
        run_end(&r);
        cr_assert_eq(sum_of_limit(&r, i, 3), LEAT_EUSER, "%s", limits[i].field);
        snprintf(expected, sizeof expected, "the sum of %s of the key 0 does not fit in %s",
                 limits[i].field, limits[i].field);
        cr_assert(strstr(r.failure, expected) != NULL, "%s", r.failure);
        run_end(&r);
    }
}

Test(rolling, floats_follow_their_own_rules)
{
    // The order of keys: NaN above all numbers. A sum that was NaN once stays so.
    static const struct {
        rolling_fn fn;
        const char *field;
        double values[3];
        const char *expected;
    } cases[] = {
        {leat_sum, "f64", {0.5, 0.25, -2}, "-1.25\n"},
        {leat_sum, "f32", {0.5, 0.25, -2}, "-1.25\n"},
        {leat_sum, "f64", {1, NAN, 2}, "nan\n"},
        {leat_sum, "f64", {1e308, 1e308, -1e308}, "inf\n"},
        {leat_min, "f64", {3, NAN, 2}, "2\n"},
        {leat_min, "f64", {NAN, NAN, 2}, "2\n"},
        {leat_max, "f64", {3, NAN, 2}, "nan\n"},
        {leat_max, "f64", {3, INFINITY, 2}, "inf\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        kinds items[3] = {{.key = 1}, {.key = 1}, {.key = 1}};
        for (int k = 0; k < 3; k++) {
            items[k].f64 = cases[i].values[k];
            items[k].f32 = (float)(fabs(cases[i].values[k]) < 1e30 ? cases[i].values[k] : 0);
        }
        run r;
        leat_env *env = run_begin(&r, 1);
        leat_stream *in = leat_from_items(env, LEAT_TYPE(kinds), items, 3);
        leat_stream *final = leat_final_only(cases[i].fn(leat_key_by(in, "key"), cases[i].field));
        leat_print(leat_project(final, cases[i].field, NULL));
        cr_assert_eq(run_execute(&r), LEAT_OK, "%zu: %s", i, r.failure);
        const char *found = leati_strbuf_text(&r.out[0]);
        // The sign of NaN is nobody's business.
        cr_assert_str_eq(found + (strcmp(found, "-nan\n") == 0), cases[i].expected, "%zu", i);
        run_end(&r);
    }
}

Test(rolling, extremes_know_every_kind_but_maps)
{
    static const int8_t low[] = {1, 2}, high[] = {1, 3};
    static const kinds small = {.i8 = -1,
                                .i16 = -1,
                                .i32 = -1,
                                .i64 = -1,
                                .f32 = -1,
                                .f64 = -1,
                                .text = {"ab", 2},
                                .raw = {(const uint8_t *)"x", 1},
                                .when = -1,
                                .list = {low, 2}};
    static const kinds large = {.yes = true,
                                .i8 = 1,
                                .i16 = 1,
                                .i32 = 1,
                                .i64 = 1,
                                .u8 = 1,
                                .u16 = 1,
                                .u32 = 1,
                                .u64 = 1,
                                .f32 = 1,
                                .f64 = 1,
                                .text = {"b", 1},
                                .raw = {(const uint8_t *)"xy", 2},
                                .when = 1,
                                .list = {high, 2}};
    static const struct {
        const char *field, *least, *most;
    } cases[] = {
        {"yes", "false\n", "true\n"}, {"i8", "-1\n", "1\n"},   {"i16", "-1\n", "1\n"},
        {"i32", "-1\n", "1\n"},       {"i64", "-1\n", "1\n"},  {"u8", "0\n", "1\n"},
        {"u16", "0\n", "1\n"},        {"u32", "0\n", "1\n"},   {"u64", "0\n", "1\n"},
        {"f32", "-1\n", "1\n"},       {"f64", "-1\n", "1\n"},  {"text", "ab\n", "b\n"},
        {"raw", "x\n", "xy\n"},       {"when", "-1\n", "1\n"}, {"list", "[1,2]\n", "[1,3]\n"},
    };
    static const rolling_fn fns[] = {leat_min, leat_max, leat_min_by, leat_max_by};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int f = 0; f < 4; f++) {
            kinds items[] = {f % 2 ? small : large, f % 2 ? large : small};
            run r;
            leat_env *env = run_begin(&r, 1);
            leat_stream *in = leat_from_items(env, LEAT_TYPE(kinds), items, 2);
            leat_stream *final = leat_final_only(fns[f](leat_key_by(in, "key"), cases[i].field));
            leat_print(leat_project(final, cases[i].field, NULL));
            cr_assert_eq(run_execute(&r), LEAT_OK, "%s: %s", cases[i].field, r.failure);
            cr_assert_str_eq(leati_strbuf_text(&r.out[0]), f % 2 ? cases[i].most : cases[i].least,
                             "%s, %d", cases[i].field, f);
            run_end(&r);
        }
    }
}

// --- missing values ---

typedef struct {
    leat_str name;
    const int64_t *value;
    const leat_str *label;
} sample;
LEAT_RECORD(sample, LEAT_FIELD(name, LEAT_STR), LEAT_FIELD_OPTIONAL(value, LEAT_SCALAR(LEAT_I64)),
            LEAT_FIELD_OPTIONAL(label, LEAT_SCALAR(LEAT_STR)));

Test(rolling, missing_values_do_not_count)
{
    static const int64_t two = 2, three = 3;
    static const leat_str x = {"x", 1}, y = {"y", 1};
    static const sample samples[] = {
        {{"k", 1}, NULL, NULL}, {{"k", 1}, &three, &y}, {{"k", 1}, NULL, &x},
        {{"k", 1}, &two, NULL}, {{"k", 1}, NULL, NULL},
    };
    static const struct {
        const char *name;
        rolling_fn fn;
        const char *expected;
    } cases[] = {
        {"sum", leat_sum, "k\t\\N\t\\N\nk\t3\t\\N\nk\t3\t\\N\nk\t5\t\\N\nk\t5\t\\N\n"},
        {"min", leat_min, "k\t\\N\t\\N\nk\t3\t\\N\nk\t3\t\\N\nk\t2\t\\N\nk\t2\t\\N\n"},
        {"max", leat_max, "k\t\\N\t\\N\nk\t3\t\\N\nk\t3\t\\N\nk\t3\t\\N\nk\t3\t\\N\n"},
        {"min_by", leat_min_by, "k\t\\N\t\\N\nk\t3\ty\nk\t3\ty\nk\t2\t\\N\nk\t2\t\\N\n"},
        {"max_by", max_by_last, "k\t\\N\t\\N\nk\t3\ty\nk\t3\ty\nk\t3\ty\nk\t3\ty\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run r;
        leat_env *env = run_begin(&r, 1);
        leat_stream *in = leat_from_items(env, LEAT_TYPE(sample), samples, 5);
        leat_print(cases[i].fn(leat_key_by(in, "name"), "value"));
        cr_assert_eq(run_execute(&r), LEAT_OK, "%s: %s", cases[i].name, r.failure);
        cr_assert_str_eq(leati_strbuf_text(&r.out[0]), cases[i].expected, "%s", cases[i].name);
        run_end(&r);
    }
}

Test(rolling, several_records_without_a_value_are_ties)
{
    static const leat_str x = {"x", 1}, y = {"y", 1};
    static const sample samples[] = {{{"k", 1}, NULL, &x}, {{"k", 1}, NULL, &y}};
    static const rolling_fn fns[] = {leat_min_by, min_by_last, leat_max_by, max_by_last};
    for (int i = 0; i < 4; i++) {
        run r;
        leat_env *env = run_begin(&r, 1);
        leat_stream *in = leat_from_items(env, LEAT_TYPE(sample), samples, 2);
        leat_print(leat_final_only(fns[i](leat_key_by(in, "name"), "value")));
        run_expect_lines(&r, i % 2 ? "k\t\\N\ty\n" : "k\t\\N\tx\n", "ties");
    }
}

Test(rolling, a_sum_over_the_key_itself_leaves_the_key_alone)
{
    // The sums of the key 2 must not turn it into the key 4.
    static const int64_t two = 2, four = 4;
    static const sample samples[] = {{{"", 0}, &two, NULL},
                                     {{"", 0}, &two, NULL},
                                     {{"", 0}, &four, NULL},
                                     {{"", 0}, &two, NULL}};
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_stream *in = leat_from_items(env, LEAT_TYPE(sample), samples, 4);
    leat_print(leat_project(leat_sum(leat_key_by(in, "value"), "value"), "value", NULL));
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    cr_assert_str_eq(leati_strbuf_text(&r.out[0]), "2\n4\n4\n6\n");
    run_end(&r);
}

// --- places of fields ---

typedef struct {
    int32_t delay;
    const int32_t *taxi;
} times;
LEAT_RECORD(times, LEAT_FIELD(delay, LEAT_I32), LEAT_FIELD_OPTIONAL(taxi, LEAT_SCALAR(LEAT_I32)));

typedef struct {
    int64_t id;
    times at;
} trip;
LEAT_RECORD(trip, LEAT_FIELD(id, LEAT_I64), LEAT_FIELD_STRUCT(at, times));

Test(rolling, a_field_may_lie_in_nested_structs)
{
    static const int32_t one = 1, five = 5;
    static const trip trips[] = {{7, {10, &one}}, {7, {-4, NULL}}, {7, {2, &five}}};
    static const struct {
        const char *field, *expected;
    } cases[] = {
        {"at.delay", "7\t10\t1\n7\t6\t1\n7\t8\t1\n"},
        {"at.taxi", "7\t10\t1\n7\t10\t1\n7\t10\t6\n"},
    };
    for (int i = 0; i < 2; i++) {
        run r;
        leat_env *env = run_begin(&r, 1);
        leat_stream *in = leat_from_items(env, LEAT_TYPE(trip), trips, 3);
        leat_print(leat_project(leat_sum(leat_key_by(in, "id"), cases[i].field),
                                "id, at.delay, at.taxi", NULL));
        cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
        cr_assert_str_eq(leati_strbuf_text(&r.out[0]), cases[i].expected, "%s", cases[i].field);
        run_end(&r);
    }
}

static int modulo_three(leat_ctx *ctx, const void *in, void *key)
{
    *(int64_t *)key = *(const int64_t *)in % 3;
    return 0;
}

Test(rolling, records_without_fields_are_aggregated_themselves)
{
    static const struct {
        rolling_fn fn;
        const char *expected;
    } cases[] = {
        {leat_sum, "18\n12\n15\n"}, // 0+3+6+9, 1+4+7, 2+5+8
        {leat_min, "0\n1\n2\n"},
        {leat_max_by, "9\n7\n8\n"},
    };
    for (size_t i = 0; i < 3; i++) {
        for (int named = 0; named < 2; named++) {
            run r;
            leat_env *env = run_begin(&r, 2);
            leat_stream *keyed =
                leat_key_by_fn(leat_sequence(env, 0, 9), modulo_three, leat_type_scalar(LEAT_I64));
            leat_stream *final = leat_final_only(cases[i].fn(keyed, named ? "" : NULL));
            leat_parallelism(leat_print(final), 1);
            run_expect_lines(&r, cases[i].expected, "numbers");
        }
    }
}

Test(rolling, an_overflow_names_the_result_of_a_key_function)
{
    static const int64_t items[] = {INT64_MAX - 1, 4};
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_stream *in = leat_from_items(env, leat_type_scalar(LEAT_I64), items, 2);
    leat_discard(leat_sum(leat_key_by_fn(in, modulo_three, leat_type_scalar(LEAT_I64)), NULL));
    leat_env_set_name(env, "overflow");
    // Both are 0 or 1 modulo 3: 2^63 - 2 = 8 - 2 = 0, and 4 = 1, so nothing overflows here.
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    run_end(&r);
    static const int64_t same[] = {INT64_MAX - 1, 3};
    env = run_begin(&r, 1);
    in = leat_from_items(env, leat_type_scalar(LEAT_I64), same, 2);
    leat_discard(leat_sum(leat_key_by_fn(in, modulo_three, leat_type_scalar(LEAT_I64)), NULL));
    cr_assert_eq(run_execute(&r), LEAT_EUSER);
    cr_assert(strstr(r.failure, "the sum of the records of the key 0 does not fit in i64") != NULL,
              "%s", r.failure);
    run_end(&r);
}

// --- a naive model ---

enum { KEYS = 13, NUMBERS = 4000 };

static int64_t value_of(int64_t n)
{
    return (int64_t)((uint64_t)n * 2654435761u % 1009) - 500;
}

static bool has_value(int64_t n)
{
    return n % 5 != 0;
}

// The text is made anew for each record, so an aggregate that kept a pointer would show it.
static int make_sample(leat_ctx *ctx, const void *in, void *out)
{
    int64_t n = *(const int64_t *)in;
    sample *s = out;
    char *text = leat_ctx_scratch(ctx, 80);
    int64_t *value = leat_ctx_scratch(ctx, sizeof *value);
    leat_str *label = leat_ctx_scratch(ctx, sizeof *label);
    if (!text || !value || !label)
        return leat_fail(ctx, "out of memory");
    int name = snprintf(text, 40, "key %" PRId64, n % KEYS);
    int size = snprintf(text + 40, 40, "label %" PRId64, n);
    *value = value_of(n);
    *label = (leat_str){text + 40, (size_t)size};
    *s = (sample){{text, (size_t)name}, has_value(n) ? value : NULL, label};
    return 0;
}

// Prints what the aggregation leaves of each key, worked out record by record.
static size_t model(rolling_fn fn, char *out, size_t size)
{
    size_t at = 0;
    for (int64_t key = 0; key < KEYS; key++) {
        bool any = false, by = fn != leat_sum && fn != leat_min && fn != leat_max;
        int64_t kept = key, result = 0;
        for (int64_t n = key; n < NUMBERS; n += KEYS) {
            int64_t v = value_of(n);
            bool better = fn == leat_min || fn == leat_min_by   ? v < result
                          : fn == leat_max || fn == leat_max_by ? v > result
                                                                : v >= result;
            if (!has_value(n))
                continue;
            if (fn == leat_sum)
                result += v;
            else if (!any || better)
                result = v;
            if (by && (!any || better))
                kept = n;
            any = true;
        }
        at += (size_t)snprintf(out + at, size - at,
                               "key %" PRId64 "\t%" PRId64 "\tlabel %" PRId64 "\n", key, result,
                               kept);
    }
    return at;
}

Test(rolling, aggregations_agree_with_a_naive_model)
{
    static const rolling_fn fns[] = {leat_sum,    leat_min,    leat_max,
                                     leat_min_by, leat_max_by, max_by_last};
    for (size_t i = 0; i < sizeof fns / sizeof fns[0]; i++) {
        for (uint32_t p = 1; p <= 3; p++) {
            char expected[KEYS * 80];
            run r;
            leat_env *env = run_begin(&r, p);
            leat_stream *numbers = leat_parallelism(leat_sequence(env, 0, NUMBERS - 1), 1);
            leat_stream *samples = leat_map(numbers, make_sample, LEAT_TYPE(sample));
            leat_parallelism(samples, 1);
            leat_stream *final = leat_final_only(fns[i](leat_key_by(samples, "name"), "value"));
            leat_parallelism(leat_print(final), 1);
            model(fns[i], expected, sizeof expected);
            run_expect_lines(&r, expected, "model");
        }
    }
}

// --- mistakes ---

Test(rolling, wrong_fields_are_faults_that_name_the_operator)
{
    static const struct {
        rolling_fn fn;
        const char *field, *fault;
    } cases[] = {
        {leat_sum, "dealy", "leat_sum: there is no field \"dealy\" in {key: i16,"},
        {leat_min_by, "i8.x", "leat_min_by: there is no field \"i8.x\""},
        {leat_sum, "text", "leat_sum: \"text\" is str, which cannot be summed"},
        {leat_sum, "when", "leat_sum: \"when\" is timestamp, which cannot be summed"},
        {leat_sum, "yes", "leat_sum: \"yes\" is bool, which cannot be summed"},
        {leat_sum, "", "leat_sum: the record is {key: i16,"},
        {leat_max, "map", "leat_max: \"map\" is map<i8, i8>, which has no order"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run r;
        leat_env *env = run_begin(&r, 1);
        leat_stream *in = leat_name(leat_from_items(env, LEAT_TYPE(kinds), NULL, 0), "readings");
        leat_print(leat_final_only(cases[i].fn(leat_key_by(in, "key"), cases[i].field)));
        cr_assert_eq(leat_env_fault_count(env), 1, "%zu", i);
        const char *fault = leat_env_fault(env, 0);
        cr_assert(strstr(fault, cases[i].fault) != NULL, "%s", fault);
        cr_assert(strstr(fault, "\"readings\"") != NULL, "%s", fault);
        run_end(&r);
    }
}

Test(rolling, ties_concern_chosen_records_only)
{
    for (int i = 0; i < 4; i++) {
        run r;
        leat_env *env = run_begin(&r, 1);
        leat_stream *in = leat_from_items(env, LEAT_TYPE(flight), flights, FLIGHTS);
        leat_stream *keyed = leat_key_by(in, "city");
        leat_stream *wrong = i == 0   ? in
                             : i == 1 ? keyed
                             : i == 2 ? leat_min(keyed, "delay")
                                      : leat_reduce(keyed, NULL);
        size_t before = leat_env_fault_count(env);
        cr_assert_eq(leat_last_on_ties(wrong), wrong);
        // What is inert has had its fault already.
        cr_assert_eq(leat_env_fault_count(env), i == 3 ? before : 1, "%d", i);
        if (i < 3)
            cr_assert(strstr(leat_env_fault(env, 0), "leat_last_on_ties") != NULL);
        run_end(&r);
    }
    cr_assert(leat_last_on_ties(NULL) != NULL);
}

Test(rolling, only_keyed_streams_are_aggregated)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_sum(leat_from_items(env, LEAT_TYPE(flight), flights, FLIGHTS), "delay");
    cr_assert_eq(leat_env_fault_count(env), 1);
    cr_assert(leat_sum(NULL, "delay") != NULL);
    run_end(&r);
}

Test(rolling, the_plan_shows_field_ties_and_values)
{
    static const struct {
        bool final, last;
        const char *detail;
    } cases[] = {
        {false, false, "updates of delay, first of ties"},
        {true, false, "final of delay, first of ties"},
        {false, true, "updates of delay, last of ties"},
        {true, true, "final of delay, last of ties"},
    };
    for (size_t i = 0; i < 4; i++) {
        run r;
        leat_env *env = run_begin(&r, 1);
        leat_stream *in = leat_from_items(env, LEAT_TYPE(flight), flights, FLIGHTS);
        leat_stream *best = leat_max_by(leat_key_by(in, "city"), "delay");
        if (cases[i].last)
            leat_last_on_ties(leat_last_on_ties(best));
        if (cases[i].final)
            leat_final_only(leat_final_only(best));
        leat_discard(best);
        char *text;
        cr_assert_eq(leat_plan(env, LEAT_PLAN_TEXT, &text), LEAT_OK);
        cr_assert(strstr(text, cases[i].detail) != NULL, "%s", text);
        leat_plan_free(env, text);
        run_end(&r);
    }
}
