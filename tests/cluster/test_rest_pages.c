// SPDX-License-Identifier: Apache-2.0
// What the pages of the REST interface say, and what is taken as a submission.
#include "leat/metrics.h"
#include "runtime/placement.h"
#include "tests/cluster/rest_fixture.h"

#define ID   "0123456789abcdef0123456789abcdef"
#define HASH "00112233445566778899aabbccddeeff"

// --- submission ---

static reply post(const fixture *f, const char *body)
{
    return ask_with(f, "POST", "/v1/jobs", body, strlen(body));
}

// An artifact that may be anything.
static void put_graph(const fixture *f, const char *bytes, size_t size)
{
    char path[512];
    leati_artifact_path(&f->manager, HASH, path);
    FILE *file = fopen(path, "wb");
    cr_assert(fwrite(bytes, 1, size, file) == size);
    fclose(file);
}

static const char whole[] =
    "{\"name\":\"words "
    "\\u00e9\",\"attached\":true,\"job_file\":{\"name\":\"words.so\",\"hash\":\"" HASH
    "\",\"size\":12,\"executable\":true},\"libraries\":[{\"name\":\"libx.so.1\",\"hash\":\"" HASH
    "\",\"size\":0}],\"cached\":[{\"name\":\"dir/a b\",\"hash\":\"" HASH
    "\",\"size\":9007199254740993,\"executable\":true},{\"name\":\"c\",\"hash\":\"" HASH
    "\",\"size\":1}],\"empty_dirs\":[\"dir/empty\"],\"args\":[\"-x\",\"\"],\"settings\":[{\"key\":"
    "\"workers\",\"value\":\"2\"}],\"folder\":\"/tmp\",\"argv0\":\"./words.so\",\"digest\":\"d\","
    "\"graph\":\"" HASH "\",\"unknown\":{}}";

static bool is(leat_str text, const char *expected)
{
    return text.size == strlen(expected) && !memcmp(text.data, expected, text.size);
}

Test(rest_pages, takes_every_member_of_a_submission)
{
    fixture *f = start_with(0);
    put_graph(f, "gr\0ph", 5);
    reply r = post(f, whole);
    json_t *value = json_of(&r, 202);
    cr_assert(!strcmp(text_in(value, "id"), "00000000000000000000000000000007"));
    json_decref(value);
    const leati_msg_job *job = f->submitted;
    cr_assert(f->submitted_attached);
    cr_assert(is(job->name, "words \xc3\xa9") && is(job->job_file.name, "words.so"));
    cr_assert(job->job_file.size == 12 && job->job_file.executable);
    cr_assert(job->libraries.count == 1 && job->cached.count == 2);
    const leati_msg_file *library = job->libraries.items, *cached = job->cached.items;
    cr_assert(is(library->name, "libx.so.1") && is(library->hash, HASH) && !library->executable);
    cr_assert(is(cached[0].name, "dir/a b") && cached[0].size == 9007199254740993u);
    cr_assert(cached[0].executable && is(cached[1].name, "c"));
    const leat_str *args = job->args.items, *dirs = job->empty_dirs.items;
    cr_assert(job->args.count == 2 && is(args[0], "-x") && is(args[1], ""));
    cr_assert(job->empty_dirs.count == 1 && is(dirs[0], "dir/empty"));
    const leati_msg_setting *setting = job->settings.items;
    cr_assert(job->settings.count == 1 && is(setting->key, "workers") && is(setting->value, "2"));
    cr_assert(is(job->folder, "/tmp") && is(job->argv0, "./words.so") && is(job->digest, "d"));
    cr_assert(job->graph.size == 5 && !memcmp(job->graph.data, "gr\0ph", 5));
    stop(f);
}

// `whole` with one piece of it replaced.
static void expect_refused(const fixture *f, const char *piece, const char *by, int status,
                           const char *part)
{
    char body[2048];
    const char *at = strstr(whole, piece);
    cr_assert(at, "%s", piece);
    snprintf(body, sizeof body, "%.*s%s%s", (int)(at - whole), whole, by, at + strlen(piece));
    expect_error(post(f, body), status, part);
}

Test(rest_pages, names_the_member_that_is_wrong)
{
    fixture *f = start_with(0);
    put_graph(f, "graph", 5);
    expect_error(post(f, ""), 400, "the body is not JSON");
    expect_error(post(f, "{\"name\":1,\"name\":2}"), 400, "duplicate");
    expect_error(post(f, "{\"a\":\"\xff\"}"), 400, "the body is not JSON: line 1");
    expect_error(post(f, "[1]"), 400, "the body: is not an object");
    expect_refused(f, "\"name\":\"words", "\"nome\":\"words", 400, "name: is missing");
    expect_refused(f, "\"attached\":true", "\"attached\":1", 400, "attached: is not true or false");
    expect_refused(f, "\"job_file\"", "\"other\"", 400, "job_file: is missing");
    expect_refused(f, "\"size\":12", "\"size\":-12", 400, "job_file.size: is not a number");
    expect_refused(f, "\"size\":12", "\"size\":\"12\"", 400, "job_file.size");
    expect_refused(f, "words.so", "a/b.so", 400, "job_file.name: is not the name of a file");
    expect_refused(f, "libx.so.1", "..", 400, "libraries[0].name");
    expect_refused(f, "dir/a b", "../a b", 400, "cached[0].name");
    expect_refused(f, "dir/a b", "/etc/passwd", 400, "cached[0].name");
    expect_refused(f, "dir/a b", "dir//x", 400, "cached[0].name");
    expect_refused(f, "dir/empty", "dir/.", 400, "empty_dirs[0]");
    expect_refused(f, "\"dir/empty\"", "7", 400, "empty_dirs[0]: is not a string");
    expect_refused(f, "[\"-x\",\"\"]", "{}", 400, "args: is not an array");
    expect_refused(f, "[\"-x\",\"\"]", "[\"a\\u0000b\"]", 400, "the body is not JSON");
    expect_refused(f, "\"value\":\"2\"", "\"value\":2", 400, "settings[0].value");
    expect_refused(f, "\"digest\"", "\"x\"", 400, "digest: is missing");
    expect_refused(f, "\"graph\":\"0", "\"graph\":\"x", 400, "graph: is not the hash");
    expect_refused(f, "\"graph\":\"0", "\"graph\":\"1", 409, "it must be sent first");
    expect_refused(f, "words \\u00e9", "refused", 400, "the graph is refused");
    cr_assert(!f->submitted);
    stop(f);
}

Test(rest_pages, refuses_bodies_that_are_too_large_or_too_deep)
{
    fixture *f = start_with(0);
    size_t size = 1 << 20;
    char *deep = malloc(size);
    memset(deep, '[', size);
    expect_error(ask_with(f, "POST", "/jobs", deep, size), 400, "the body is not JSON");
    free(deep);
    int fd = dial(f);
    send_text(fd, "POST /jobs HTTP/1.1\r\nHost: here\r\nContent-Length: 16777217\r\n\r\n");
    expect_error(receive(fd, true), 413, "larger than 16777216 bytes");
    close(fd);
    stop(f);
}

// --- pages of a job ---

static json_t *page(const fixture *f, const char *path)
{
    reply r = get(f, path);
    return json_of(&r, 200);
}

// The first interval of a task: what it has done in it, in ms, and since when it waits.
static void report(leati_managed_job *job, uint32_t index, uint64_t busy, uint64_t idle,
                   uint64_t held, const char *wait, const char *text)
{
    leati_task_view *t = &job->tasks[index];
    t->figures = (leati_msg_task){
        .records_in = 100 * (index + 1),
        .records_out = 10 * (index + 1),
        .bytes_out = 1000,
        .busy_ns = busy * 1000000,
        .idle_ns = idle * 1000000,
        .hard_ns = held * 1000000,
        .segments_used = 1,
        .segments_limit = 4,
        .wait_ns = INT64_C(7000000000),
        .wait_vertex = UINT32_MAX,
        .wait_subtask = UINT32_MAX,
    };
    snprintf(t->wait, sizeof t->wait, "%s", wait);
    snprintf(t->wait_text, sizeof t->wait_text, "%s", text);
    t->last_ns = leati_clock_ns() - INT64_C(9000000000);
    t->reported_ns = leati_clock_ns();
    leati_task_view_track(t);
}

Test(rest_pages, tells_of_a_job_and_its_tasks)
{
    fixture *f = start_with(0);
    leati_managed_job *job = add_job(f, ID, "words");
    report(job, 0, 100, 200, 700, "BUFFER", "no room to \"work\"");
    report(job, 1, 950, 50, 0, "NONE", "");
    snprintf(job->tasks[2].state, sizeof job->tasks[2].state, "FINISHED");
    snprintf(job->tasks[3].state, sizeof job->tasks[3].state, "DEPLOYING");
    json_t *value = page(f, "/v1/jobs/0123");
    cr_assert(!strcmp(text_in(value, "id"), ID) && !strcmp(text_in(value, "name"), "words"));
    cr_assert(!strcmp(text_in(value, "state"), "RUNNING") && !*text_in(value, "failure"));
    cr_assert(number_in(value, "slots") == 2 && number_in(value, "records_in") == 100);
    const json_t *tasks = json_object_get(value, "tasks");
    cr_assert(number_in(tasks, "total") == 4 && number_in(tasks, "running") == 2);
    cr_assert(number_in(tasks, "finished") == 1 && number_in(tasks, "deploying") == 1);
    const json_t *vertices = json_object_get(value, "vertices");
    cr_assert(json_array_size(vertices) == 3);
    const json_t *work = json_array_get(vertices, 1);
    cr_assert(!strcmp(text_in(work, "name"), "work") && number_in(work, "parallelism") == 2);
    const json_t *in = json_array_get(json_object_get(json_array_get(vertices, 0), "tasks"), 0);
    cr_assert(number_in(in, "busy") == 100 && number_in(in, "idle") == 200);
    cr_assert(number_in(in, "hard") == 700 && number_in(in, "soft") == 0);
    cr_assert(!strcmp(text_in(in, "worker"), "taskmanager 1 (here, pid 11)"));
    cr_assert(!strcmp(text_in(in, "wait"), "BUFFER") && number_in(in, "wait_time") >= 7000);
    json_decref(value);
    value = page(f, "/v1/jobs/0123/vertices/1/subtasks/0");
    cr_assert(number_in(value, "busy") == 950 && number_in(value, "records_in") == 200);
    json_decref(value);
    value = page(f, "/jobs/0123/vertices/0/backpressure");
    cr_assert(!strcmp(text_in(value, "level"), "high"));
    json_decref(value);
    expect_error(get(f, "/v1/jobs/0123/vertices/3"), 404,
                 "there is no vertex \"3\": they are 0 to 2");
    expect_error(get(f, "/v1/jobs/0123/vertices/-1"), 404, "there is no vertex \"-1\"");
    expect_error(get(f, "/v1/jobs/0123/vertices/1/subtasks/2"), 404, "there is no subtask \"2\"");
    value = page(f, "/v1/jobs/0123/plan");
    cr_assert(json_array_size(json_object_get(value, "nodes")) == 3);
    json_decref(value);
    value = page(f, "/v1/jobs/0123/config");
    cr_assert(!strcmp(text_in(value, "argv0"), "job.so"));
    json_decref(value);
    stop(f);
}

Test(rest_pages, tells_why_a_job_is_slow)
{
    fixture *f = start_with(0);
    leati_managed_job *job = add_job(f, ID, "words");
    report(job, 0, 100, 0, 900, "BUFFER", "no room to \"work\"");
    report(job, 1, 990, 10, 0, "NONE", "");
    report(job, 2, 980, 20, 0, "NONE", "");
    report(job, 3, 10, 990, 0, "INPUT", "no input from \"work\"");
    json_t *value = page(f, "/v1/jobs/0123/why");
    const json_t *found = json_object_get(value, "bottleneck");
    cr_assert(number_in(found, "vertex") == 1 && !strcmp(text_in(found, "name"), "work"));
    cr_assert(!strcmp(text_in(found, "cause"), "slow"));
    cr_assert(json_array_size(json_object_get(found, "subtasks")) == 2);
    cr_assert(strstr(text_in(found, "text"), "\"work\" (all 2 subtasks) on taskmanager 1 and "
                                             "taskmanager 2"),
              "%s", text_in(found, "text"));
    // Since the beginning of the interval, some 9 s ago.
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    long long ago_ms = now.tv_sec * 1000LL + now.tv_nsec / 1000000 - number_in(found, "since");
    cr_assert(ago_ms >= 8900 && ago_ms < 60000, "%lld", ago_ms);
    const json_t *tasks = json_object_get(value, "tasks");
    cr_assert(json_array_size(tasks) == 4);
    const json_t *last = json_array_get(tasks, 3);
    cr_assert(!strcmp(text_in(last, "text"), "no input from \"work\""));
    cr_assert(!strcmp(text_in(last, "wait"), "INPUT") && number_in(last, "idle") == 990);
    json_decref(value);
    job->phase = LEATI_PHASE_FINISHED;
    value = page(f, "/v1/jobs/0123/why");
    cr_assert(json_is_null(json_object_get(value, "bottleneck")));
    json_decref(value);
    job->phase = LEATI_PHASE_CREATED;
    value = page(f, "/v1/jobs/0123/why");
    found = json_object_get(value, "bottleneck");
    cr_assert(!strcmp(text_in(found, "cause"), "slots"));
    cr_assert(strstr(text_in(found, "text"), "waits for 2 slots: 0 of 0 are free"), "%s",
              text_in(found, "text"));
    json_decref(value);
    value = page(f, "/v1/jobs/0123");
    cr_assert(!strcmp(text_in(value, "waiting_for"), "2 slots, 0 are free"));
    json_decref(value);
    job->one_process = true;
    value = page(f, "/v1/jobs/0123");
    cr_assert(!strcmp(text_in(value, "waiting_for"),
                      "2 slots in one task manager, as it has a loop;"
                      " the largest has 0 (at most 0 free in one)"),
              "%s", text_in(value, "waiting_for"));
    json_decref(value);
    value = page(f, "/v1/jobs/0123/why");
    found = json_object_get(value, "bottleneck");
    cr_assert(strstr(text_in(found, "text"), "waits for 2 slots in one task manager"), "%s",
              text_in(found, "text"));
    json_decref(value);
    stop(f);
}

// Its process has stopped before it could say anything of the job.
Test(rest_pages, a_task_that_runs_and_has_never_reported_is_silent)
{
    struct timespec now;
    fixture *f = start_with(0);
    leati_managed_job *job = add_job(f, ID, "words");
    clock_gettime(CLOCK_REALTIME, &now);
    for (uint32_t i = 0; i < 4; i++) {
        leati_task_view *task = &job->tasks[i];
        report(job, i, 10, 990, 0, "INPUT", "no input");
        snprintf(task->state, sizeof task->state, "RUNNING");
        if (i == 1) {
            task->reported_ns = task->last_ns = 0;
            task->wait[0] = '\0';
            task->state_ms = now.tv_sec * 1000LL - 20000;
        }
    }
    json_t *value = page(f, "/v1/jobs/0123/why");
    const json_t *found = json_object_get(value, "bottleneck");
    cr_assert_str_eq(text_in(found, "cause"), "silent");
    long long ago_ms = now.tv_sec * 1000LL - number_in(found, "since");
    cr_assert(ago_ms >= 19000 && ago_ms <= 21000, "%lld", ago_ms);
    json_decref(value);
    stop(f);
}

Test(rest_pages, gives_failures_and_the_log)
{
    fixture *f = start_with(0);
    leati_managed_job *job = add_job(f, ID, "words");
    job->phase = LEATI_PHASE_FAILED;
    job->ended_ms = 5000;
    job->failure_count = 2;
    job->failures[0] = (leati_failure){.time_ms = 4000, .vertex = 1, .subtask = 1, .root = true};
    snprintf(job->failures[0].text, LEATI_REASON_SIZE, "it \"broke\"");
    job->failures[1] = (leati_failure){.time_ms = 3000, .vertex = UINT32_MAX};
    char line[] = "one line", other[] = "another";
    job->log[0] = line;
    job->log[1] = other;
    job->log_count = 2;
    json_t *value = page(f, "/v1/jobs/0123/exceptions");
    cr_assert(!strcmp(text_in(value, "root"), "it \"broke\""));
    const json_t *first = json_array_get(json_object_get(value, "entries"), 0);
    cr_assert(!strcmp(text_in(first, "task"), "work (2/2)"));
    cr_assert(json_is_true(json_object_get(first, "root")) && number_in(first, "time") == 4000);
    cr_assert(!*text_in(json_array_get(json_object_get(value, "entries"), 1), "task"));
    json_decref(value);
    leati_msg_metric three[3];
    for (uint32_t i = 0; i < 3; i++)
        three[i] = (leati_msg_metric){.op = {"work", 4},
                                      .op_id = job->graph->vertices[1].ops[0].node_id,
                                      .subtask = i,
                                      .name = {"rejected", 8},
                                      .kind = LEAT_METRIC_COUNTER,
                                      .count = 5,
                                      // The last is of a user function that has such a counter.
                                      .built_in = i < 2};
    job->participants[0].metrics = three;
    job->participants[0].metric_count = 3;
    value = page(f, "/v1/jobs/0123/execution-result");
    const json_t *rejected = json_object_get(value, "rejected");
    cr_assert(json_array_size(rejected) == 1);
    cr_assert(!strcmp(text_in(json_array_get(rejected, 0), "operator"), "work"));
    cr_assert(number_in(json_array_get(rejected, 0), "count") == 10);
    job->participants[0].metric_count = 0;
    cr_assert(!strcmp(text_in(value, "status"), "COMPLETED") &&
              number_in(value, "duration") == 4000);
    cr_assert(!strcmp(text_in(value, "failure"), "it \"broke\""));
    json_decref(value);
    reply r = get(f, "/v1/jobs/0123/log");
    cr_assert(r.status == 200 && !strcmp(r.body, "one line\nanother\n"));
    done(&r);
    stop(f);
}

Test(rest_pages, gives_the_job_managers_log_where_it_is_a_file)
{
    fixture *f = start_with(0);
    char path[] = "log-XXXXXX", line[1001];
    int before = dup(STDERR_FILENO), log = mkostemp(path, O_APPEND | O_CLOEXEC);
    cr_assert(before >= 0 && log >= 0 && unlink(path) == 0);
    memset(line, 'x', sizeof line - 1);
    line[0] = '\n';
    for (int i = 0; i < 2000; i++)
        cr_assert(write(log, line, 1000) == 1000);
    cr_assert(write(log, "end\n", 4) == 4);
    cr_assert(dup2(log, STDERR_FILENO) >= 0);
    reply r = get(f, "/jobmanager/log");
    cr_assert(dup2(before, STDERR_FILENO) >= 0);
    cr_assert(r.status == 200 && r.size == 1 << 20, "%zu", r.size);
    cr_assert(!memcmp(r.body + r.size - 5, "xend\n", 5));
    done(&r);
    close(log);
    int pipes[2];
    cr_assert(pipe(pipes) == 0 && dup2(pipes[1], STDERR_FILENO) >= 0);
    r = get(f, "/jobmanager/log");
    cr_assert(dup2(before, STDERR_FILENO) >= 0);
    expect_error(r, 404, "does not log to a file");
    close(pipes[0]);
    close(pipes[1]);
    close(before);
    stop(f);
}

// --- metrics ---

static const char *value_of(const json_t *list, const char *id)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!strcmp(text_in(json_array_get(list, i), "id"), id))
            return text_in(json_array_get(list, i), "value");
    return "";
}

static bool has_id(const json_t *list, const char *id)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!strcmp(text_in(json_array_get(list, i), "id"), id))
            return true;
    return false;
}

// "lines, all" of the operator of "work", a counter of each subtask.
static void add_user_metrics(leati_managed_job *job, leati_msg_metric *two)
{
    uint32_t id = job->graph->vertices[1].ops[0].node_id;
    for (uint32_t i = 0; i < 2; i++)
        two[i] = (leati_msg_metric){.op = {"work", 4},
                                    .op_id = id,
                                    .subtask = i,
                                    .name = {"lines, \"all\"\n", 13},
                                    .kind = LEAT_METRIC_COUNTER,
                                    .count = 5 + 2 * i};
    job->participants[0].metrics = two;
    job->participants[0].metric_count = 2;
}

Test(rest_pages, gives_metrics_by_flinks_names)
{
    fixture *f = start_with(0);
    leati_managed_job *job = add_job(f, ID, "words");
    leati_msg_metric two[2];
    report(job, 1, 950, 50, 0, "NONE", "");
    report(job, 2, 450, 50, 500, "NONE", "");
    add_user_metrics(job, two);
    json_t *value = page(f, "/v1/jobs/0123/metrics");
    cr_assert(has_id(value, "uptime") && has_id(value, "work.1.numRecordsIn"));
    cr_assert(has_id(value, "work.0.lines_ \"all\"\n"));
    json_decref(value);
    value = page(f, "/v1/jobs/0123/metrics?get=work.1.numRecordsIn,numRestarts,nothing");
    cr_assert(json_array_size(value) == 2);
    cr_assert(!strcmp(value_of(value, "work.1.numRecordsIn"), "300"));
    cr_assert(!strcmp(value_of(value, "numRestarts"), "0"));
    json_decref(value);
    value = page(f, "/v1/jobs/0123/vertices/1/metrics?get=0.busyTimeMsPerSecond,1.isBackPressured");
    cr_assert(!strcmp(value_of(value, "0.busyTimeMsPerSecond"), "950"));
    cr_assert(!strcmp(value_of(value, "1.isBackPressured"), "1"));
    json_decref(value);
    value = page(f, "/v1/jobs/0123/vertices/1/subtasks/1/metrics?get=outPoolUsage");
    cr_assert(!strcmp(value_of(value, "outPoolUsage"), "0.25"));
    json_decref(value);
    value =
        page(f, "/v1/jobs/0123/vertices/1/subtasks/metrics?get=numRecordsIn&agg=min,max,sum,avg");
    const json_t *first = json_array_get(value, 0);
    cr_assert(json_number_value(json_object_get(first, "min")) == 200);
    cr_assert(json_number_value(json_object_get(first, "max")) == 300);
    cr_assert(json_number_value(json_object_get(first, "sum")) == 500);
    cr_assert(json_number_value(json_object_get(first, "avg")) == 250);
    json_decref(value);
    value = page(f, "/jobs/0123/metrics?get=work.lines_+%22all%22%0a&agg=sum");
    cr_assert(json_number_value(json_object_get(json_array_get(value, 0), "sum")) == 12);
    json_decref(value);
    expect_error(get(f, "/jobs/0123/metrics?agg=median"), 400, "agg: \"median\"");
    value = page(f, "/jobmanager/metrics?get=numRunningJobs");
    cr_assert(!strcmp(value_of(value, "numRunningJobs"), "1"));
    json_decref(value);
    job->participants[0].metric_count = 0;
    stop(f);
}

Test(rest_pages, tells_metrics_of_the_same_name_apart)
{
    fixture *f = start_with(0);
    leati_managed_job *job = add_job(f, ID, "words");
    leati_msg_metric two[2];
    leati_job_graph *graph = (leati_job_graph *)job->graph;
    uint32_t id = graph->vertices[1].ops[0].node_id;
    char expected[100];
    add_user_metrics(job, two);
    // The last vertex, and its operator, get the name of the one before.
    ((leati_vertex *)graph->vertices)[2].name = graph->vertices[1].name;
    ((leati_chain_op *)graph->vertices[2].ops)[0].name = graph->vertices[1].ops[0].name;
    json_t *value = page(f, "/v1/jobs/0123/metrics");
    cr_assert(has_id(value, "work#1.1.numRecordsIn") && has_id(value, "work#2.0.numRecordsIn"));
    cr_assert(!has_id(value, "work.0.numRecordsIn"));
    snprintf(expected, sizeof expected, "work#%u.0.lines_ \"all\"\n", (unsigned)id);
    cr_assert(has_id(value, expected));
    for (size_t i = 0; i < json_array_size(value); i++)
        for (size_t k = 0; k < i; k++)
            cr_assert(strcmp(text_in(json_array_get(value, i), "id"),
                             text_in(json_array_get(value, k), "id")) != 0);
    json_decref(value);
    value = page(f, "/v1/jobs/0123/metrics?get=work%231.1.numRecordsIn");
    cr_assert(json_array_size(value) == 1);
    json_decref(value);
    job->participants[0].metric_count = 0;
    stop(f);
}

// Each family: HELP and TYPE once, before its samples, which are not scattered.
static void check_exposition(const char *text)
{
    char family[300] = "", seen[200][300];
    int families = 0;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        cr_assert(strchr(line, '\n'), "the last line has no end");
        char name[300];
        if (!strncmp(line, "# HELP ", 7)) {
            cr_assert(sscanf(line + 7, "%299s", family) == 1);
            for (int i = 0; i < families; i++)
                cr_assert(strcmp(seen[i], family) != 0, "%s comes twice", family);
            snprintf(seen[families++], 300, "%s", family);
            continue;
        }
        if (!strncmp(line, "# TYPE ", 7)) {
            cr_assert(sscanf(line + 7, "%299s", name) == 1 && !strcmp(name, family));
            continue;
        }
        cr_assert(sscanf(line, "%299[a-zA-Z0-9_]", name) == 1 && !strcmp(name, family), "%.80s",
                  line);
        const char *value = strrchr(strndupa(line, strcspn(line, "\n")), ' ');
        char *end;
        cr_assert(value, "%.80s", line);
        (void)strtod(value, &end);
        cr_assert(*end == '\0', "%.80s", line);
    }
    cr_assert(families > 30);
}

Test(rest_pages, gives_prometheus_its_format)
{
    fixture *f = start_with(0);
    leati_managed_job *job = add_job(f, ID, "the \"job\"\\");
    leati_msg_metric two[2];
    leati_member member = {
        .rpc = (leati_rpc *)f, .id = "abc", .host = "here", .slots = 3, .index = 1};
    snprintf(member.data_address, sizeof member.data_address,
             "tcp://here:7000 ipc:///a path/of it");
    f->manager.members = &member;
    report(job, 1, 950, 50, 0, "NONE", "");
    add_user_metrics(job, two);
    reply r = get(f, "/metrics");
    cr_assert(r.status == 200 &&
              !strncmp(header(&r, "Content-Type"), "text/plain; version=0.0.4", 25));
    check_exposition(r.body);
    cr_assert(strstr(r.body, "leat_task_records_in_total{job=\"" ID
                             "\",job_name=\"the \\\"job\\\"\\\\\",vertex=\"1\",task=\"work\","
                             "subtask=\"0\"} 200\n"),
              "%s", r.body);
    cr_assert(strstr(r.body, "leat_user_counter_lines___all__{"));
    cr_assert(strstr(r.body, "name=\"lines, \\\"all\\\"\\n\"} 7\n"));
    cr_assert(strstr(r.body, "\nleat_jobs{state=\"RUNNING\"} 1\n"));
    cr_assert(strstr(
        r.body, "\nleat_taskmanager_slots{taskmanager=\"abc\",host=\"here\",index=\"1\"} 3\n"));
    done(&r);
    json_t *value = page(f, "/taskmanagers");
    const json_t *first = json_array_get(json_object_get(value, "taskmanagers"), 0);
    cr_assert(!strcmp(text_in(first, "id"), "abc") && number_in(first, "slots_free") == 3);
    cr_assert_str_eq(text_in(first, "data_address"), "tcp://here:7000");
    cr_assert_str_eq(text_in(first, "data_socket"), "/a path/of it");
    json_decref(value);
    value = page(f, "/taskmanagers/1/metrics?get=taskSlotsTotal");
    cr_assert(!strcmp(value_of(value, "taskSlotsTotal"), "3"));
    json_decref(value);
    f->manager.members = NULL;
    job->participants[0].metric_count = 0;
    stop(f);
}
