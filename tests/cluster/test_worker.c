// SPDX-License-Identifier: Apache-2.0
// What a task manager says and does for a job manager that the test plays.
#include <dirent.h>

#include "tests/cluster/worker_testing.h"

#include "leat/metrics.h"
#include "runtime/placement.h"

// The job functions of tests/cluster/jobs, linked in for the client's half.
job_main leati_many_main, leati_brought_main;

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static fake f;
static job j;

static void start(uint32_t workers, const char *setting)
{
    fake_init(&f);
    for (uint32_t i = 1; i <= workers; i++)
        worker_spawn(&f, i, setting);
    for (uint32_t i = 1; i <= workers; i++)
        wait_worker(&f, i, true);
}

static void finish(void)
{
    job_fini(&j);
    fake_fini(&f);
}

static bool is_empty(const char *folder)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", f.folder, folder);
    DIR *entries = opendir(path);
    cr_assert(entries != NULL);
    bool empty = true;
    for (struct dirent *entry; (entry = readdir(entries));)
        empty &= !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
    closedir(entries);
    return empty;
}

// All that is printed in an attempt, in the order in which it comes; of one task manager.
static size_t all_output(uint64_t attempt, char *text, size_t size)
{
    size_t length = 0;
    for (said *s; (s = look_said(&f, LEATI_MESSAGE_OUTPUT, attempt)); free_said(s)) {
        const leati_msg_output *out = s->record;
        cr_assert(length + out->bytes.size < size);
        memcpy(text + length, out->bytes.data, out->bytes.size);
        length += out->bytes.size;
    }
    text[length] = '\0';
    return length;
}

static int64_t accumulated(const leati_msg_over *over)
{
    leat_accumulators *all;
    leat_accumulator_value value = {0};
    const uint8_t *part = over->accumulators.data;
    size_t size = over->accumulators.size;
    cr_assert(leati_accumulators_decode(NULL, &part, &size, 1, &all) == LEAT_OK);
    bool found = leat_accumulators_find(all, "records", &value);
    leat_accumulators_destroy(&all);
    return found ? value.i64 : -1;
}

static bool failed_with(uint64_t attempt, leat_err err, const char *part)
{
    said *s = wait_said(&f, LEATI_MESSAGE_FAILED, attempt);
    const leati_msg_failed *failed = s->record;
    bool good = failed->err == (uint32_t)err && contains(failed->text, part);
    if (!good)
        cr_log_error("%u: %.*s", (unsigned)failed->err, (int)failed->text.size, failed->text.data);
    free_said(s);
    return good;
}

static void wait_stage(uint64_t attempt, const char *stage)
{
    for (bool found = false; !found;) {
        said *s = wait_said(&f, LEATI_MESSAGE_STAGE, attempt);
        found = contains(((leati_msg_stage *)s->record)->stage, stage);
        free_said(s);
    }
}

// --- a job that goes well ---

Test(worker, says_each_step_of_a_job_and_leaves_nothing)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("sum", "1000", "0"), 1);
    uint64_t attempt = deploy(&f, &j, 1);
    wait_stage(attempt, "DEPLOYING");
    wait_stage(attempt, "RUNNING");
    wait_stage(attempt, "FINISHED");
    said *s = wait_said(&f, LEATI_MESSAGE_OVER, attempt);
    cr_expect(((leati_msg_over *)s->record)->finished);
    cr_expect(accumulated(s->record) == 1000);
    free_said(s);
    char text[1000];
    all_output(attempt, text, sizeof text);
    // 0 + 10 + … + 990 is 49500; each further digit adds 100.
    cr_expect(strstr(text, "0\t49500\n") != NULL, "%s", text);
    cr_expect(strstr(text, "9\t50400\n") != NULL, "%s", text);
    cr_expect(!is_empty("1/attempts"));
    conclude(&f, attempt, true);
    cr_expect(is_empty("1/attempts"));
    finish();
}

Test(worker, reports_figures_with_each_heartbeat)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("sum", "100000000", "1000"), 1);
    uint64_t attempt = deploy(&f, &j, 1);
    uint64_t records = 0;
    while (records < 100) {
        said *s = wait_said(&f, LEATI_MESSAGE_REPORT, attempt);
        const leati_msg_report *report = s->record;
        const leati_msg_task *tasks = report->tasks.items;
        cr_assert(report->tasks.count == leati_job_graph_tasks(j.graph));
        records = tasks[0].records_out;
        cr_expect(contains(tasks[0].state, "ING") && tasks[0].wait.size > 0);
        free_said(s);
    }
    said *beat = wait_said(&f, LEATI_MESSAGE_HEARTBEAT, 0);
    const leati_msg_heartbeat *figures = beat->record;
    cr_expect(figures->resident_bytes > 1 << 20 && figures->threads > 3 && figures->files > 3);
    cr_expect(figures->segments_total == 256);
    free_said(beat);
    tell_end(&f, LEATI_MESSAGE_CANCEL, attempt, false);
    cr_expect(!wait_over(&f, attempt));
    conclude(&f, attempt, false);
    finish();
}

Test(worker, splits_a_job_with_others)
{
    start(3, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("sum", "30000", "0"), 3);
    uint64_t attempt = deploy(&f, &j, 3);
    int64_t records = 0;
    for (int i = 0; i < 3; i++) {
        said *s = wait_said(&f, LEATI_MESSAGE_OVER, attempt);
        cr_expect(((leati_msg_over *)s->record)->finished);
        int64_t part = accumulated(s->record);
        records += part > 0 ? part : 0;
        free_said(s);
    }
    cr_expect(records == 30000);
    char text[1000];
    all_output(attempt, text, sizeof text);
    // 3000 numbers each: 0 + 10 + … + 29990.
    cr_expect(strstr(text, "0\t44985000\n") != NULL, "%s", text);
    cr_expect(strstr(text, "9\t45012000\n") != NULL, "%s", text);
    tell_end(&f, LEATI_MESSAGE_CONCLUDE, attempt, true);
    for (int i = 0; i < 3; i++)
        free_said(wait_said(&f, LEATI_MESSAGE_CONCLUDED, attempt));
    finish();
}

Test(worker, brings_libraries_and_cached_files_along)
{
    start(1, NULL);
    job_init(&f, &j, leati_brought_main, "brought.so", ARGS("x"), 1);
    char path[128], tool[128];
    snprintf(path, sizeof path, "%s/table", f.folder);
    snprintf(tool, sizeof tool, "%s/tool", f.folder);
    FILE *table = fopen(path, "w"), *script = fopen(tool, "w");
    cr_assert(table && script);
    fputs("first\nsecond\n", table);
    fputs("#!/bin/sh\necho tooled\n", script);
    fclose(table);
    fclose(script);
    j.libraries[0] = bring(&f, "libbrought_number.so", job_path("libbrought_number.so"), 0);
    j.cached[0] = bring(&f, "table", path, 0);
    j.cached[1] = bring(&f, "bin/deep/tool", tool, 0);
    j.cached[1].executable = true;
    static const leat_str empty[] = {{"bin/empty", 9}};
    j.message.libraries = (leat_list){j.libraries, 1};
    j.message.cached = (leat_list){j.cached, 2};
    j.message.empty_dirs = (leat_list){empty, 1};
    uint64_t attempt = deploy(&f, &j, 1);
    cr_expect(wait_over(&f, attempt));
    char text[1000];
    all_output(attempt, text, sizeof text);
    cr_expect_str_eq(text, "0 4711 first tooled\n1 4711 first tooled\n2 4711 first tooled\n");
    conclude(&f, attempt, true);
    finish();
}

// What a job writes to its cached files stays in that job.
Test(worker, gives_each_job_its_own_cached_files)
{
    start(1, NULL);
    char path[128], copy[256], text[8];
    snprintf(path, sizeof path, "%s/table", f.folder);
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs("first\n", file) >= 0 && fclose(file) == 0);
    for (int i = 0; i < 3; i++) {
        if (i > 0)
            job_fini(&j);
        job_init(&f, &j, leati_many_main, "many.so", ARGS("sum", "10", "0"), 1);
        j.cached[0] = bring(&f, "table", path, 0);
        j.message.cached = (leat_list){j.cached, 1};
        uint64_t attempt = deploy(&f, &j, 1);
        cr_expect(wait_over(&f, attempt));
        snprintf(copy, sizeof copy, "%s/1/attempts/%016llx/files/table", f.folder,
                 (unsigned long long)attempt);
        file = fopen(copy, "r");
        cr_assert(file && fgets(text, sizeof text, file) && fclose(file) == 0);
        cr_expect_str_eq(text, "first\n");
        cr_assert(chmod(copy, 0644) == 0);
        file = fopen(copy, "r+");
        cr_assert(file && fputs("other", file) >= 0 && fclose(file) == 0);
        conclude(&f, attempt, true);
    }
    finish();
}

Test(worker, refuses_another_library_of_the_same_name_while_one_is_loaded)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("slow", "1000"), 1);
    j.libraries[0] = bring(&f, "libbrought_number.so", job_path("libbrought_number.so"), 0);
    j.message.libraries = (leat_list){j.libraries, 1};
    uint64_t first = deploy(&f, &j, 1);
    wait_stage(first, "RUNNING");
    leati_msg_file other = bring(&f, "libbrought_number.so", job_path("libbrought_number.so"), 16);
    j.libraries[0] = other;
    uint64_t second = deploy(&f, &j, 1);
    cr_expect(failed_with(second, LEAT_EEXIST, "is loaded already with other contents"));
    cr_expect(!wait_over(&f, second));
    conclude(&f, second, false);
    tell_end(&f, LEATI_MESSAGE_CANCEL, first, false);
    cr_expect(!wait_over(&f, first));
    conclude(&f, first, false);
    uint64_t third = deploy(&f, &j, 1);
    wait_stage(third, "RUNNING");
    tell_end(&f, LEATI_MESSAGE_CANCEL, third, false);
    cr_expect(!wait_over(&f, third));
    conclude(&f, third, false);
    finish();
}

// --- failures ---

Test(worker, tells_the_failure_of_a_task)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("fail", "10"), 1);
    uint64_t attempt = deploy(&f, &j, 1);
    said *s = wait_said(&f, LEATI_MESSAGE_FAILED, attempt);
    const leati_msg_failed *failed = s->record;
    cr_expect(failed->err == LEAT_EUSER && !failed->consequence && failed->vertex != UINT32_MAX);
    cr_expect(contains(failed->text, "boom") && contains(failed->text, "record 10 is the one"));
    free_said(s);
    cr_expect(!wait_over(&f, attempt));
    conclude(&f, attempt, false);
    cr_expect(is_empty("1/attempts"));
    finish();
}

Test(worker, refuses_a_job_function_that_is_not_deterministic)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("random"), 1);
    uint64_t attempt = deploy(&f, &j, 1);
    cr_expect(failed_with(attempt, LEAT_EGRAPH, "the job function is not deterministic"));
    cr_expect(!wait_over(&f, attempt));
    conclude(&f, attempt, false);
    finish();
}

Test(worker, tells_the_faults_of_a_job_function)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("build", "fail"), 1);
    uint64_t attempt = deploy(&f, &j, 1);
    char text[400];
    // The name is the one that DEPLOY has.
    snprintf(text, sizeof text, "the job function on %.*s: no such job: \"build\"",
             (int)f.who[0]->host.size, f.who[0]->host.data);
    cr_expect(failed_with(attempt, LEAT_EINVAL, text));
    cr_expect(!wait_over(&f, attempt));
    conclude(&f, attempt, false);
    finish();
}

Test(worker, tells_how_many_lines_of_the_log_it_has_dropped)
{
    enum { LINES = 3000 };
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("chat", "3000"), 1);
    uint64_t attempt = deploy(&f, &j, 1);
    cr_expect(wait_over(&f, attempt));
    unsigned shown = 0, dropped = 0;
    for (said *s; (s = look_said(&f, LEATI_MESSAGE_LOG, attempt)); free_said(s)) {
        const leati_msg_log *log = s->record;
        char line[400];
        snprintf(line, sizeof line, "%.*s", (int)log->line.size, log->line.data);
        shown += strstr(line, "chatter") != NULL;
        if (strstr(line, "dropped: more than 200 in a second"))
            dropped += (unsigned)strtoul(line, NULL, 10);
    }
    // Lines of the runtime are dropped as well.
    cr_expect(dropped > 0 && shown + dropped >= LINES && shown + dropped < LINES + 20, "%u and %u",
              shown, dropped);
    conclude(&f, attempt, true);
    finish();
}

Test(worker, refuses_artifacts_with_other_bytes)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("sum", "10", "0"), 1);
    f.artifacts[0].spoilt = true;
    uint64_t attempt = deploy(&f, &j, 1);
    cr_expect(failed_with(attempt, LEAT_ECORRUPT, "\"many.so\" cannot be had"));
    cr_expect(!wait_over(&f, attempt));
    conclude(&f, attempt, false);
    cr_expect(is_empty("1/cache"));
    f.artifacts[0].spoilt = false;
    attempt = deploy(&f, &j, 1);
    cr_expect(wait_over(&f, attempt));
    conclude(&f, attempt, true);
    finish();
}

Test(worker, refuses_files_outside_of_its_folder)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("sum", "10", "0"), 1);
    static const char *const names[] = {"../x", "/etc/x", "a/../../x", "", "a//b", "."};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        j.cached[0] = j.message.job_file;
        j.cached[0].name = str(names[i]);
        j.message.cached = (leat_list){j.cached, 1};
        uint64_t attempt = deploy(&f, &j, 1);
        cr_expect(failed_with(attempt, LEAT_EINVAL, "cannot be the name of a file"), "%s",
                  names[i]);
        cr_expect(!wait_over(&f, attempt));
        conclude(&f, attempt, false);
    }
    finish();
}

Test(worker, says_what_the_artifact_cache_lacks)
{
    start(1, "taskmanager.artifact-cache=64 KiB");
    job_init(&f, &j, leati_many_main, "many.so", ARGS("sum", "10", "0"), 1);
    char path[128];
    snprintf(path, sizeof path, "%s/empty", f.folder);
    FILE *empty = fopen(path, "w");
    cr_assert(empty);
    fclose(empty);
    j.cached[0] = bring(&f, "large", path, 65537);
    j.message.cached = (leat_list){j.cached, 1};
    uint64_t attempt = deploy(&f, &j, 1);
    cr_expect(failed_with(attempt, LEAT_ETOOBIG, "the artifact cache is full"));
    cr_expect(!wait_over(&f, attempt));
    conclude(&f, attempt, false);
    finish();
}

Test(worker, keeps_artifacts_for_the_next_job_and_makes_room_for_others)
{
    start(1, "taskmanager.artifact-cache=1 MiB");
    job_init(&f, &j, leati_many_main, "many.so", ARGS("sum", "10", "0"), 1);
    char path[128];
    snprintf(path, sizeof path, "%s/empty", f.folder);
    FILE *empty = fopen(path, "w");
    cr_assert(empty);
    fclose(empty);
    leati_msg_file first = bring(&f, "large", path, 700000),
                   second = bring(&f, "large", path, 700001);
    const leati_msg_file *order[] = {&first, &first, &second, &first};
    const uint32_t asked[] = {3, 3, 3, 6}; // pieces of the first, of 256 KiB
    for (int i = 0; i < 4; i++) {
        j.cached[0] = *order[i];
        j.message.cached = (leat_list){j.cached, 1};
        uint64_t attempt = deploy(&f, &j, 1);
        cr_expect(wait_over(&f, attempt));
        conclude(&f, attempt, true);
        cr_expect(f.artifacts[1].asked == asked[i], "%u after %d", (unsigned)f.artifacts[1].asked,
                  i);
    }
    finish();
}

// --- stopping ---

Test(worker, stops_fetching_when_it_is_cancelled)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("sum", "10", "0"), 1);
    f.artifacts[0].held = true;
    uint64_t attempt = deploy(&f, &j, 1);
    pthread_mutex_lock(&f.lock);
    while (f.artifacts[0].asked == 0)
        pthread_cond_wait(&f.changed, &f.lock);
    pthread_mutex_unlock(&f.lock);
    tell_end(&f, LEATI_MESSAGE_CANCEL, attempt, false);
    cr_expect(!wait_over(&f, attempt));
    conclude(&f, attempt, false);
    cr_expect(look_said(&f, LEATI_MESSAGE_FAILED, attempt) == NULL);
    finish();
}

Test(worker, prints_no_further_ahead_than_the_window)
{
    start(1, NULL);
    f.take = false;
    // A million lines; the sums come at the end, so the numbers themselves are printed.
    job_init(&f, &j, leati_many_main, "many.so", ARGS("print", "1000000"), 1);
    uint64_t attempt = deploy(&f, &j, 1);
    pthread_mutex_lock(&f.lock);
    while (f.prints < LEATI_OUTPUT_WINDOW)
        pthread_cond_wait(&f.changed, &f.lock);
    pthread_mutex_unlock(&f.lock);
    // It has had time to send more when it has said how it is doing, twice.
    free_said(wait_said(&f, LEATI_MESSAGE_REPORT, attempt));
    free_said(wait_said(&f, LEATI_MESSAGE_REPORT, attempt));
    cr_expect(f.prints == LEATI_OUTPUT_WINDOW);
    tell_end(&f, LEATI_MESSAGE_CANCEL, attempt, false);
    cr_expect(!wait_over(&f, attempt));
    conclude(&f, attempt, false);
    cr_expect(look_said(&f, LEATI_MESSAGE_FAILED, attempt) == NULL);
    finish();
}

Test(worker, ends_itself_when_a_task_does_not_stop)
{
    start(1, "taskmanager.cancel-timeout=200 ms");
    job_init(&f, &j, leati_many_main, "many.so", ARGS("stuck"), 1);
    uint64_t attempt = deploy(&f, &j, 1);
    wait_stage(attempt, "RUNNING");
    wait_stage(attempt, "RUNNING");
    free_said(wait_said(&f, LEATI_MESSAGE_REPORT, attempt));
    tell_end(&f, LEATI_MESSAGE_CANCEL, attempt, false);
    said *s = wait_said(&f, LEATI_MESSAGE_CRASH, attempt);
    const leati_msg_failed *crash = s->record;
    cr_expect(contains(crash->text, "slow sink") && contains(crash->text, "200 ms"), "%.*s",
              (int)crash->text.size, crash->text.data);
    free_said(s);
    int status = wait_end(&f, 1);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 70);
    finish();
}

Test(worker, ends_well_in_the_middle_of_a_job)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("slow", "1000"), 1);
    uint64_t attempt = deploy(&f, &j, 1);
    wait_stage(attempt, "RUNNING");
    kill(f.pids[0], SIGTERM);
    int status = wait_end(&f, 1);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_expect(is_empty("1/attempts"));
    wait_worker(&f, 1, false); // all that it has said has come
    said *s = wait_said(&f, LEATI_MESSAGE_FAILED, attempt);
    const leati_msg_failed *failed = s->record;
    cr_expect(!failed->consequence && contains(failed->text, " was told to end"), "%.*s",
              (int)failed->text.size, failed->text.data);
    free_said(s);
    cr_expect(!wait_over(&f, attempt));
    finish();
}

Test(worker, says_that_it_was_told_to_end_at_every_moment)
{
    for (useconds_t i = 0; i < 10; i++) {
        start(1, NULL);
        job_init(&f, &j, leati_many_main, "many.so", ARGS("slow", "1000"), 1);
        uint64_t attempt = deploy(&f, &j, 1);
        wait_stage(attempt, "DEPLOYING");
        usleep(i * 1000);
        kill(f.pids[0], SIGTERM);
        int status = wait_end(&f, 1);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        cr_expect(failed_with(attempt, LEAT_ECANCELLED, " was told to end"));
        finish();
    }
}

Test(worker, that_the_job_manager_lets_go_gives_no_reason)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("slow", "1000"), 1);
    uint64_t attempt = deploy(&f, &j, 1);
    wait_stage(attempt, "RUNNING");
    pthread_mutex_lock(&f.lock);
    cr_expect(leati_rpc_send(f.workers[0], LEATI_MESSAGE_SHUTDOWN, NULL, NULL) == LEAT_OK);
    pthread_mutex_unlock(&f.lock);
    int status = wait_end(&f, 1);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_expect(!wait_over(&f, attempt));
    cr_expect(!look_said(&f, LEATI_MESSAGE_FAILED, attempt));
    finish();
}

// From before the job file is there to after the last record; the moments are further apart on a
// busy machine, and others then.
Test(worker, can_be_cancelled_at_every_moment)
{
    start(2, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("sum", "20000", "0"), 2);
    for (useconds_t i = 0; i < 100; i++) {
        uint64_t attempt = deploy(&f, &j, 2);
        usleep(i * 250);
        tell_end(&f, LEATI_MESSAGE_CANCEL, attempt, false);
        wait_over(&f, attempt);
        wait_over(&f, attempt);
        tell_end(&f, LEATI_MESSAGE_CONCLUDE, attempt, false);
        free_said(wait_said(&f, LEATI_MESSAGE_CONCLUDED, attempt));
        free_said(wait_said(&f, LEATI_MESSAGE_CONCLUDED, attempt));
    }
    cr_expect(is_empty("1/attempts") && is_empty("2/attempts"));
    finish();
}

Test(worker, answers_for_attempts_that_it_does_not_have)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("sum", "10", "0"), 1);
    tell_end(&f, LEATI_MESSAGE_CANCEL, 4711, false);
    cr_expect(!wait_over(&f, 4711));
    conclude(&f, 4711, false);
    finish();
}

// --- the job manager ---

Test(worker, drops_its_attempts_with_the_job_manager_and_comes_back)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("slow", "1000"), 1);
    uint64_t lost = deploy(&f, &j, 1);
    wait_stage(lost, "RUNNING");
    char address[128];
    memcpy(address, f.address, sizeof address);
    fake_vanish(&f);
    fake_listen(&f, address);
    wait_worker(&f, 1, true);
    cr_expect(is_empty("1/attempts"));
    job_fini(&j);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("sum", "10", "0"), 1);
    uint64_t attempt = deploy(&f, &j, 1);
    cr_expect(wait_over(&f, attempt));
    conclude(&f, attempt, true);
    finish();
}

Test(worker, can_lose_the_job_manager_at_every_moment)
{
    start(2, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("sum", "20000", "0"), 2);
    char address[128];
    memcpy(address, f.address, sizeof address);
    for (useconds_t i = 0; i < 20; i++) {
        deploy(&f, &j, 2);
        usleep(i * 1500);
        fake_vanish(&f);
        fake_listen(&f, address);
        wait_worker(&f, 1, true);
        wait_worker(&f, 2, true);
    }
    uint64_t attempt = deploy(&f, &j, 2);
    cr_expect(wait_over(&f, attempt));
    cr_expect(wait_over(&f, attempt));
    tell_end(&f, LEATI_MESSAGE_CONCLUDE, attempt, true);
    free_said(wait_said(&f, LEATI_MESSAGE_CONCLUDED, attempt));
    free_said(wait_said(&f, LEATI_MESSAGE_CONCLUDED, attempt));
    cr_expect(is_empty("1/attempts") && is_empty("2/attempts"));
    finish();
}

Test(worker, gives_up_when_there_is_no_job_manager)
{
    fake_init(&f);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("sum", "10", "0"), 1);
    fake_vanish(&f);
    worker_spawn(&f, 1, "taskmanager.registration-timeout=300 ms");
    int status = wait_end(&f, 1);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    finish();
}

// --- crashes ---

static void crash(const char *how, int signal, const char *said_of_it)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("crash", how, "5"), 1);
    uint64_t attempt = deploy(&f, &j, 1);
    said *s = wait_said(&f, LEATI_MESSAGE_CRASH, attempt);
    const leati_msg_failed *crash = s->record;
    cr_expect(contains(crash->text, said_of_it) && contains(crash->text, "\"boom\" (1/1)"), "%.*s",
              (int)crash->text.size, crash->text.data);
    free_said(s);
    int status = wait_end(&f, 1);
    if (signal)
        cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == signal, "status %x", status);
    else
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 70, "status %x", status);
    finish();
}

Test(worker, tells_a_segmentation_fault)
{
    crash("segv", SIGSEGV, "signal 11 (SIGSEGV)");
}

Test(worker, tells_an_abort)
{
    crash("abort", SIGABRT, "signal 6 (SIGABRT)");
}

Test(worker, tells_an_arithmetic_fault)
{
    crash("fpe", SIGFPE, "signal 8 (SIGFPE)");
}

Test(worker, tells_a_stack_overflow)
{
    crash("overflow", SIGSEGV, "its stack has overflowed");
}

Test(worker, tells_a_call_of_exit)
{
    crash("exit", 0, "a call of exit()");
}

Test(worker, tells_a_crash_in_the_job_function)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("build", "crash"), 1);
    uint64_t attempt = deploy(&f, &j, 1);
    said *s = wait_said(&f, LEATI_MESSAGE_CRASH, attempt);
    const leati_msg_failed *crash = s->record;
    cr_expect(contains(crash->text, "signal 11 (SIGSEGV) in the job function"));
    free_said(s);
    cr_expect(WIFSIGNALED(wait_end(&f, 1)));
    finish();
}
