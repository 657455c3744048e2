// SPDX-License-Identifier: Apache-2.0
// Faults of each kind are planted in random graphs: the search has to name vertex, subtasks, cause
// and beginning, and nothing where nothing is planted.
#include "tests/cluster/why_testing.h"

enum { ROUNDS = 400 };

typedef struct fault {
    leati_why_cause cause;
    uint32_t vertex;
    bool named[MAX_PARALLELISM];
    int64_t since_ms;
} fault;

static void check(const scene *s, const fault *f, uint64_t seed)
{
    leati_why_result r;
    cr_assert(leati_why(NULL, &s->in, &r) == LEAT_OK);
    cr_assert(r.cause == f->cause, "seed %llu: \"%s\" (%s) instead of \"%s\"",
              (unsigned long long)seed, leati_why_cause_name(r.cause), r.text,
              leati_why_cause_name(f->cause));
    if (f->cause == LEATI_WHY_NOTHING) {
        cr_assert(r.vertex == UINT32_MAX && r.text[0] == '\0');
        leati_why_fini(&r);
        return;
    }
    cr_assert(r.vertex == f->vertex, "seed %llu: vertex %u instead of %u: %s",
              (unsigned long long)seed, r.vertex, f->vertex, r.text);
    for (uint32_t i = 0; i < s->vertices[f->vertex].parallelism; i++)
        cr_assert(r.named[s->first_task[f->vertex] + i] == f->named[i], "seed %llu: subtask %u: %s",
                  (unsigned long long)seed, i, r.text);
    cr_assert(r.since_ms == f->since_ms, "seed %llu: since %lld instead of %lld: %s",
              (unsigned long long)seed, (long long)r.since_ms, (long long)f->since_ms, r.text);
    cr_assert(strstr(r.text, s->names[f->vertex]), "%s", r.text);
    leati_why_fini(&r);
}

// A vertex of those that `fits` takes; UINT32_MAX: there is none.
static uint32_t pick_vertex(scene *s, bool (*fits)(const scene *s, uint32_t vertex))
{
    uint32_t found[MAX_VERTICES], count = 0;
    for (uint32_t v = 0; v < s->graph.vertex_count; v++)
        if (fits(s, v))
            found[count++] = v;
    return count ? found[pick(s, count)] : UINT32_MAX;
}

static bool any_vertex(const scene *s, uint32_t vertex)
{
    return true;
}

static bool is_fed(const scene *s, uint32_t vertex)
{
    return !is_source_vertex(s, vertex);
}

static bool has_siblings(const scene *s, uint32_t vertex)
{
    return is_fed(s, vertex) && s->vertices[vertex].parallelism > 1;
}

static bool is_last(const scene *s, uint32_t vertex)
{
    return is_last_vertex(s, vertex);
}

// One subtask, from then on; those before it wait. False: the graph has no place for it.
static bool plant(scene *s, fault *f, leati_why_cause cause,
                  bool (*fits)(const scene *s, uint32_t vertex), leati_why_task **task)
{
    *f = (fault){.cause = cause, .vertex = pick_vertex(s, fits)};
    if (f->vertex == UINT32_MAX)
        return false;
    uint32_t subtask = pick(s, s->vertices[f->vertex].parallelism);
    f->named[subtask] = true;
    f->since_ms = 10000 + pick(s, 1000000);
    hold_upstream(s, f->vertex, subtask, f->since_ms);
    *task = task_of(s, f->vertex, subtask);
    return true;
}

static void set_wait(leati_why_task *t, leati_wait_kind kind, int64_t ms, const char *text)
{
    t->wait = kind;
    t->silent_ms = 300;
    t->wait_ms = ms - t->silent_ms;
    t->wait_text = text;
}

static void set_busy(leati_why_task *t, uint32_t busy, double records_per_s)
{
    t->busy = busy;
    t->idle = 1000 - busy;
    t->held = 0;
    t->wait = LEATI_WAIT_NONE;
    t->wait_ms = 0;
    t->records_per_s = records_per_s;
}

Test(why, names_nothing_on_healthy_jobs)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        scene s;
        make_scene(&s, seed);
        for (uint32_t i = 0; i < s.in.task_count; i++)
            if (pick(&s, 6) == 0) {
                s.tasks[i].state = pick(&s, 2) ? "FINISHED" : "CANCELED";
                s.tasks[i].silent_ms = 100000;
            }
        check(&s, &(fault){.cause = LEATI_WHY_NOTHING}, seed);
    }
}

Test(why, lets_sources_wait_as_long_as_they_like)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        scene s;
        make_scene(&s, seed);
        for (uint32_t v = 0; v < s.graph.vertex_count; v++) {
            leati_why_task *t = task_of(&s, v, 0);
            if (is_source_vertex(&s, v))
                set_wait(t, pick(&s, 2) ? LEATI_WAIT_BLOCKING : LEATI_WAIT_TIMER, 3600000, "");
        }
        check(&s, &(fault){.cause = LEATI_WHY_NOTHING}, seed);
    }
}

// All subtasks of a vertex, or the only one.
static bool plant_slow(scene *s, fault *f, leati_why_cause cause)
{
    *f = (fault){.cause = cause, .vertex = pick_vertex(s, is_fed)};
    f->since_ms = 10000 + pick(s, 1000000);
    for (uint32_t i = 0; i < s->vertices[f->vertex].parallelism; i++) {
        leati_why_task *t = task_of(s, f->vertex, i);
        f->named[i] = true;
        hold_upstream(s, f->vertex, i, f->since_ms);
        set_busy(t, 700 + pick(s, 300), 10);
        if (cause == LEATI_WHY_BLOCKING)
            set_wait(t, LEATI_WAIT_BLOCKING, 800, "a blocking call of \"op\"");
    }
    return true;
}

Test(why, names_a_slow_user_function)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        scene s;
        fault f;
        make_scene(&s, seed);
        plant_slow(&s, &f, LEATI_WHY_SLOW);
        check(&s, &f, seed);
    }
}

Test(why, names_a_blocking_user_function)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        scene s;
        fault f;
        make_scene(&s, seed);
        plant_slow(&s, &f, LEATI_WHY_BLOCKING);
        check(&s, &f, seed);
    }
}

Test(why, names_the_subtask_that_gets_most_records)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        scene s;
        fault f;
        leati_why_task *t;
        make_scene(&s, seed);
        if (!plant(&s, &f, LEATI_WHY_SKEW, has_siblings, &t))
            continue;
        set_busy(t, 950, 5000);
        check(&s, &f, seed);
    }
}

Test(why, names_the_subtask_that_is_slower_than_its_siblings)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        scene s;
        fault f;
        leati_why_task *t;
        make_scene(&s, seed);
        if (!plant(&s, &f, LEATI_WHY_SLOW_TASK, has_siblings, &t))
            continue;
        set_busy(t, 950, 1000);
        check(&s, &f, seed);
    }
}

// While the slow one holds up those that feed all of them, its siblings get nothing for an interval
// or two; then a whole segment at once.
Test(why, counts_the_records_of_siblings_since_they_began)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        scene s;
        fault f;
        leati_why_task *t;
        make_scene(&s, seed);
        if (!plant(&s, &f, LEATI_WHY_SLOW_TASK, has_siblings, &t))
            continue;
        for (uint32_t i = 0; i < s.vertices[f.vertex].parallelism; i++) {
            task_of(&s, f.vertex, i)->records = 93243;
            task_of(&s, f.vertex, i)->records_per_s = 0;
        }
        set_busy(t, 1000, 10);
        t->records = 2257;
        check(&s, &f, seed);
        // The other way round: what it gets now is as much, but it has got far more.
        f.cause = LEATI_WHY_SKEW;
        t->records = 932430;
        for (uint32_t i = 0; i < s.vertices[f.vertex].parallelism; i++)
            task_of(&s, f.vertex, i)->records_per_s = 10;
        check(&s, &f, seed);
    }
}

Test(why, names_a_user_function_that_does_not_return)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        scene s;
        fault f;
        leati_why_task *t;
        make_scene(&s, seed);
        bool blocking = pick(&s, 2);
        plant(&s, &f, LEATI_WHY_STUCK, blocking ? is_fed : any_vertex, &t);
        set_busy(t, 1000, 0);
        set_wait(t, blocking ? LEATI_WAIT_BLOCKING : LEATI_WAIT_USER, f.since_ms, "a function");
        check(&s, &f, seed);
    }
}

// Nobody has had to wait for it yet.
Test(why, names_a_function_that_hangs_before_anybody_waits)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        scene s;
        make_scene(&s, seed);
        fault f = {
            .cause = LEATI_WHY_STUCK, .vertex = pick(&s, s.graph.vertex_count), .named = {true}};
        f.since_ms = 7000;
        set_wait(task_of(&s, f.vertex, 0), LEATI_WAIT_USER, f.since_ms, "a function");
        check(&s, &f, seed);
    }
}

Test(why, names_a_print_sink_whose_reader_does_not_read)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        scene s;
        fault f;
        leati_why_task *t;
        char text[64];
        make_scene(&s, seed);
        plant(&s, &f, LEATI_WHY_OUTPUT, is_last, &t);
        s.ops[f.vertex].kind = "print";
        s.ops[f.vertex].flags = 0; // a sink behind a source, in one chain, at most
        snprintf(text, sizeof text, "a blocking call of \"%s\"", s.names[f.vertex]);
        set_busy(t, 1000, 0);
        set_wait(t, LEATI_WAIT_BLOCKING, f.since_ms, text);
        check(&s, &f, seed);
    }
}

Test(why, names_a_sink_that_is_held_back_from_outside)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        scene s;
        fault f;
        leati_why_task *t;
        make_scene(&s, seed);
        plant(&s, &f, LEATI_WHY_OUTPUT, is_last, &t);
        set_busy(t, 100, 10);
        t->held = 900;
        t->idle = 0;
        t->held_ms = f.since_ms;
        check(&s, &f, seed);
    }
}

Test(why, names_a_task_that_no_worker_takes)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        scene s;
        fault f;
        leati_why_task *t;
        make_scene(&s, seed);
        plant(&s, &f, LEATI_WHY_WORKER, any_vertex, &t);
        set_busy(t, 1000, 0); // waiting for a worker counts as busy
        set_wait(t, LEATI_WAIT_WORKER, f.since_ms, "a worker thread: all are busy");
        check(&s, &f, seed);
    }
}

Test(why, names_records_that_do_not_arrive)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        scene s;
        fault f;
        leati_why_task *t;
        make_scene(&s, seed);
        if (!plant(&s, &f, LEATI_WHY_NETWORK, is_fed, &t))
            continue;
        set_busy(t, 0, 0);
        set_wait(t, LEATI_WAIT_INPUT, f.since_ms, "no input");
        t->process = 1;
        for (uint32_t i = 0; i < s.in.task_count; i++) {
            leati_why_task *from = &s.tasks[i];
            if (from->held_ms != f.since_ms)
                continue;
            from->process = 0;
            from->wait = LEATI_WAIT_CREDIT;
            from->wait_ms = LEATI_WHY_NETWORK_MS;
            from->wait_vertex = f.vertex;
            from->wait_subtask = (uint32_t)(t - task_of(&s, f.vertex, 0));
        }
        check(&s, &f, seed);
    }
}

Test(why, names_a_task_that_does_not_begin)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        scene s;
        fault f;
        leati_why_task *t;
        make_scene(&s, seed);
        plant(&s, &f, LEATI_WHY_OPENING, any_vertex, &t);
        set_busy(t, 1000, 0);
        t->state = pick(&s, 2) ? "OPENING" : "DEPLOYING";
        t->state_ms = f.since_ms;
        check(&s, &f, seed);
    }
}

Test(why, lets_tasks_read_their_broadcast_variables)
{
    static const char *variables[] = {"rates"};
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        scene s;
        fault f;
        leati_why_task *t;
        make_scene(&s, seed);
        plant(&s, &f, LEATI_WHY_NOTHING, is_fed, &t);
        s.ops[f.vertex].variables = variables;
        s.ops[f.vertex].variable_count = 1;
        set_busy(t, 1000, 0);
        t->wait = pick(&s, 2) ? LEATI_WAIT_NONE : LEATI_WAIT_INPUT;
        t->state = pick(&s, 2) ? "OPENING" : "DEPLOYING";
        t->state_ms = f.since_ms;
        check(&s, &(fault){.cause = LEATI_WHY_NOTHING}, seed);
    }
}

Test(why, names_a_task_manager_that_does_not_report)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        scene s;
        fault f;
        leati_why_task *t;
        make_scene(&s, seed);
        plant(&s, &f, LEATI_WHY_SILENT, any_vertex, &t);
        t->silent_ms = f.since_ms;
        t->slow_report = true;
        check(&s, &f, seed);
    }
}

Test(why, tells_of_slots_that_are_missing)
{
    scene s;
    leati_why_result r;
    make_scene(&s, 1);
    s.in.tasks = NULL;
    s.in.slots_needed = 4;
    s.in.slots_free = 1;
    s.in.slots_total = 6;
    s.in.slots_ms = 12345;
    cr_assert(leati_why(NULL, &s.in, &r) == LEAT_OK && r.cause == LEATI_WHY_SLOTS);
    cr_assert(!strcmp(r.text, "the job waits for 4 slots: 1 of 6 is free, for 12 s"), "%s", r.text);
    cr_assert(r.since_ms == 12345 && r.vertex == UINT32_MAX);
    leati_why_fini(&r);
    s.in.one_process = true;
    s.in.slots_free = 1;
    s.in.slots_total = 3;
    cr_assert(leati_why(NULL, &s.in, &r) == LEAT_OK && r.cause == LEATI_WHY_SLOTS);
    cr_assert(!strcmp(r.text, "the job waits for 4 slots in one task manager, as it has a loop; the"
                              " largest has 3 (at most 1 free in one), for 12 s"),
              "%s", r.text);
    leati_why_fini(&r);
}

// --- the words ---

static void two_vertices(scene *s)
{
    do
        make_scene(s, s->seed + 1);
    while (s->graph.vertex_count != 2 || s->vertices[0].parallelism != 1 ||
           s->vertices[1].parallelism != 3);
    s->edges[0].partitioner = LEATI_PARTITION_HASH;
    for (uint32_t i = 0; i < 4; i++)
        s->tasks[i].process = i % 2;
}

Test(why, speaks_plainly)
{
    scene s = {0};
    leati_why_result r;
    two_vertices(&s);
    hold_upstream(&s, 1, 1, 12000);
    set_busy(task_of(&s, 1, 0), 100, 500);
    set_busy(task_of(&s, 1, 1), 990, 4000);
    set_busy(task_of(&s, 1, 2), 100, 500);
    cr_assert(leati_why(NULL, &s.in, &r) == LEAT_OK);
    cr_assert(!strcmp(r.text, "\"op 1\" (subtask 2/3) on taskmanager 1 is busy 99 %, its siblings "
                              "10 %, as it gets 8.0 times as many records, and its input has been "
                              "full for 12 s; \"op 0\" upstream waits for it"),
              "%s", r.text);
    leati_why_fini(&r);
    set_wait(task_of(&s, 1, 1), LEATI_WAIT_USER, 9000, "a user function of \"op 1\"");
    cr_assert(leati_why(NULL, &s.in, &r) == LEAT_OK);
    cr_assert(!strcmp(r.text,
                      "\"op 1\" (subtask 2/3) on taskmanager 1 hangs: a user function of "
                      "\"op 1\" has not returned, for 9.0 s; \"op 0\" upstream waits for it"),
              "%s", r.text);
    leati_why_fini(&r);
    char text[100];
    leati_why_task_text(&s.in, 1, 1, text, sizeof text);
    cr_assert(!strcmp(text, "a user function of \"op 1\""));
    leati_why_task_text(&s.in, 1, 1, text, 8);
    cr_assert(!strcmp(text, "a user "));
}

Test(why, writes_durations)
{
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {{-5, "0 ms"},      {999, "999 ms"},
                 {1000, "1.0 s"},   {9999, "9.9 s"},
                 {10000, "10 s"},   {119999, "119 s"},
                 {120000, "2 min"}, {7199999, "119 min"},
                 {7200000, "2 h"},  {INT64_MAX, "2562047788015 h"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        leati_why_duration(cases[i].ms, text, sizeof text);
        cr_assert(!strcmp(text, cases[i].text), "%s instead of %s", text, cases[i].text);
    }
}

Test(why, has_a_name_for_each_cause)
{
    for (int cause = LEATI_WHY_SLOTS; cause <= LEATI_WHY_SLOW; cause++)
        cr_assert(strlen(leati_why_cause_name(cause)) > 3);
    cr_assert(!strcmp(leati_why_cause_name(LEATI_WHY_SLOW), "slow"));
    cr_assert(!strcmp(leati_why_cause_name(LEATI_WHY_SKEW), "skew"));
    cr_assert(!strcmp(leati_why_cause_name(LEATI_WHY_NETWORK), "network"));
    cr_assert(!strcmp(leati_why_cause_name(LEATI_WHY_SLOW + 1), "?"));
}
