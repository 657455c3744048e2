// SPDX-License-Identifier: Apache-2.0
// What a task manager says and does for a job manager that the test plays.
#include "tests/cluster/worker_start.h"

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
