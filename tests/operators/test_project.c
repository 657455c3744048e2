// SPDX-License-Identifier: Apache-2.0
#include "run.h"

typedef struct {
    double lat, lon;
} place;
LEAT_RECORD(place, LEAT_FIELD(lat, LEAT_F64), LEAT_FIELD(lon, LEAT_F64));

typedef struct {
    int64_t id;
    leat_str city;
    place where;
    const int32_t *rank;
} town;
LEAT_RECORD(town, LEAT_FIELD(id, LEAT_I64), LEAT_FIELD(city, LEAT_STR),
            LEAT_FIELD_STRUCT(where, place), LEAT_FIELD_OPTIONAL(rank, LEAT_SCALAR(LEAT_I32)));

// The same places, but not in the same places.
typedef struct {
    double lat;
    int64_t hidden;
    double lon;
} wide_place;
LEAT_RECORD(wide_place, LEAT_FIELD(lat, LEAT_F64), LEAT_FIELD(lon, LEAT_F64));

typedef struct {
    wide_place where;
} wide;
LEAT_RECORD(wide, LEAT_FIELD_STRUCT(where, wide_place));

typedef struct {
    double lat;
    leat_str city;
} spot;
LEAT_RECORD(spot, LEAT_FIELD(lat, LEAT_F64), LEAT_FIELD(city, LEAT_STR));

typedef struct {
    leat_str city;
    const int32_t *rank;
} ranked;
LEAT_RECORD(ranked, LEAT_FIELD(city, LEAT_STR), LEAT_FIELD_OPTIONAL(rank, LEAT_SCALAR(LEAT_I32)));

static const int32_t third = 3;
static const town towns[] = {
    {1, {"Oslo", 4}, {59.5, 10.75}, NULL},
    {2, {"Turku", 5}, {60.5, 22.25}, &third},
};

static leat_stream *read_towns(leat_env *env)
{
    return leat_name(leat_from_items(env, LEAT_TYPE(town), towns, 2), "towns");
}

Test(project, fields_come_in_the_order_in_which_they_are_named)
{
    static const struct {
        const char *fields, *expected, *type;
    } cases[] = {
        {"city, id", "Oslo\t1\nTurku\t2\n", "{city: str, id: i64}"},
        {" id\t,\n city ", "1\tOslo\n2\tTurku\n", "{id: i64, city: str}"},
        {"where.lon", "10.75\n22.25\n", "{where.lon: f64}"},
        {"where.lat,where.lon,rank", "59.5\t10.75\t\\N\n60.5\t22.25\t3\n",
         "{where.lat: f64, where.lon: f64, rank: optional<i32>}"},
        {"3, 0", "\\N\t1\n3\t2\n", "{rank: optional<i32>, id: i64}"},
        {"where", "{\"lat\":59.5,\"lon\":10.75}\n{\"lat\":60.5,\"lon\":22.25}\n",
         "{where: {lat: f64, lon: f64}}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run r;
        leat_env *env = run_begin(&r, 1);
        leat_stream *out = leat_project(read_towns(env), cases[i].fields, NULL);
        leat_print(out);
        char *text;
        cr_assert_eq(leat_plan(env, LEAT_PLAN_JSON, &text), LEAT_OK);
        cr_assert(strstr(text, cases[i].type) != NULL, "%s: %s", cases[i].type, text);
        leat_plan_free(env, text);
        cr_assert_eq(run_execute(&r), LEAT_OK, "%s: %s", cases[i].fields, r.failure);
        cr_assert_str_eq(leati_strbuf_text(&r.out[0]), cases[i].expected, "%s", cases[i].fields);
        run_end(&r);
    }
}

Test(project, fields_find_their_place_in_a_given_type)
{
    static const struct {
        const char *fields;
        const leat_type *type;
        const char *expected;
    } cases[] = {
        {"city, where.lat", LEAT_TYPE(spot), "59.5\tOslo\n60.5\tTurku\n"},
        {"where.lat, city", LEAT_TYPE(spot), "59.5\tOslo\n60.5\tTurku\n"},
        {NULL, LEAT_TYPE(ranked), "Oslo\t\\N\nTurku\t3\n"},
        {"city", LEAT_SCALAR(LEAT_STR), "Oslo\nTurku\n"},
        {"where", LEAT_TYPE(place), "59.5\t10.75\n60.5\t22.25\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run r;
        leat_env *env = run_begin(&r, 1);
        leat_print(leat_project(read_towns(env), cases[i].fields, cases[i].type));
        cr_assert_eq(run_execute(&r), LEAT_OK, "%zu: %s", i, r.failure);
        cr_assert_str_eq(leati_strbuf_text(&r.out[0]), cases[i].expected, "%zu", i);
        run_end(&r);
    }
}

Test(project, a_projection_is_a_stream_like_any_other)
{
    // Its fields, whose names hold dots, can be keys, be aggregated and be projected again; the
    // records cross an exchange.
    for (uint32_t p = 1; p <= 2; p++) {
        run r;
        leat_env *env = run_begin(&r, p);
        leat_stream *out = leat_project(read_towns(env), "where.lat, id", NULL);
        leat_stream *sums = leat_sum(leat_key_by(out, "where.lat"), "id");
        leat_parallelism(leat_print(leat_project(sums, "id,where.lat", NULL)), 1);
        run_expect_lines(&r, "1\t59.5\n2\t60.5\n", "again");
    }
}

Test(project, what_does_not_fit_is_a_fault_that_names_the_operator)
{
    static const struct {
        const char *fields;
        const leat_type *type;
        const char *fault;
    } cases[] = {
        {"town", NULL, "there is no field \"town\" in {id: i64, city: str, "},
        {"city.name", NULL, "there is no field \"city.name\""},
        {"4", NULL, "there is no field \"4\""},
        {"99999999999999999999999", NULL, "there is no field \"9999"},
        {"", NULL, "there is no field \"\""},
        {"city,", NULL, "there is no field \"\""},
        {"city, id, city", NULL, "twice the field \"city\""},
        {"1, city", NULL, "twice the field \"city\""},
        {NULL, NULL, "no field is named"},
        {NULL, LEAT_SCALAR(LEAT_STR), "no field is named"},
        {"city", LEAT_TYPE(spot), "no field is selected for \"lat\""},
        {"city, where.lat, id", LEAT_TYPE(spot), "the output type has no \"id\""},
        {"city, id", LEAT_SCALAR(LEAT_STR), "the output type has no \"id\""},
        {"id", LEAT_SCALAR(LEAT_STR), "\"id\" is i64, not str"},
        {"rank", LEAT_SCALAR(LEAT_I32), "\"rank\" is optional<i32>, not i32"},
        {"where", LEAT_TYPE(wide), "the C structs of \"where\" differ in their layout"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run r;
        leat_env *env = run_begin(&r, 1);
        leat_print(leat_project(read_towns(env), cases[i].fields, cases[i].type));
        cr_assert_eq(leat_env_fault_count(env), 1, "%zu", i);
        const char *fault = leat_env_fault(env, 0);
        cr_assert(strstr(fault, cases[i].fault) != NULL, "%zu: %s", i, fault);
        cr_assert(strstr(fault, "\"towns\"") != NULL, "%zu: %s", i, fault);
        run_end(&r);
    }
    cr_assert(leat_project(NULL, "city", NULL) != NULL);
}

Test(project, records_that_are_no_structs_have_no_fields)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_print(leat_project(leat_sequence(env, 1, 2), "0", NULL));
    cr_assert_eq(leat_env_fault_count(env), 1);
    cr_assert(strstr(leat_env_fault(env, 0), "there is no field \"0\" in i64") != NULL);
    run_end(&r);
}

// --- memory ---

// Refuses one allocation, and counts those that are alive. Graphs are built by one thread.
typedef struct {
    size_t left; // allocations before the one that is refused
    bool refused;
    size_t alive;
} shortage;

static bool refuses(shortage *s)
{
    return s->left-- == 0 && (s->refused = true);
}

static void *scarce_alloc(void *user, size_t size)
{
    shortage *s = user;
    void *ptr = refuses(s) ? NULL : malloc(size);
    s->alive += ptr != NULL;
    return ptr;
}

static void *scarce_realloc(void *user, void *ptr, size_t size)
{
    shortage *s = user;
    if (refuses(s))
        return NULL;
    void *moved = realloc(ptr, size);
    s->alive += !ptr && moved;
    return moved;
}

static void scarce_free(void *user, void *ptr)
{
    ((shortage *)user)->alive -= ptr != NULL;
    free(ptr);
}

Test(project, running_out_of_memory_while_building_is_a_fault_and_leaks_nothing)
{
    size_t tried = 0;
    for (bool refused = true; refused; tried++) {
        shortage s = {.left = tried};
        leat_allocator allocator = {scarce_alloc, scarce_realloc, scarce_free, &s};
        leat_env_options options = {.allocator = &allocator};
        leat_env *env = NULL;
        leat_err err = leat_env_create(&options, &env);
        if (err == LEAT_OK) {
            leat_stream *out = leat_project(read_towns(env), "city, where.lat, id", NULL);
            leat_stream *best = leat_max_by(leat_key_by(out, "city"), "where.lat");
            leat_discard(leat_sum(leat_key_by(leat_last_on_ties(best), "city"), "id"));
            leat_print(leat_project(out, "city, where.lat", NULL));
            err = leat_env_check(env);
        }
        refused = s.refused;
        cr_assert_eq(err, refused ? LEAT_ENOMEM : LEAT_OK, "%zu: %s", tried, leat_err_name(err));
        leat_env_destroy(&env);
        cr_assert_eq(s.alive, 0, "%zu", tried);
    }
    cr_assert(tried > 10);
}
