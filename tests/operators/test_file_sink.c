// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "outputs.h"
#include "run.h"

TestSuite(file_sink, .init = enter_outputs, .fini = leave_outputs, .timeout = 120);

typedef struct {
    int64_t id;
    leat_str name;
} row;
LEAT_RECORD(row, LEAT_FIELD(id, LEAT_I64), LEAT_FIELD(name, LEAT_STR));

static const row rows[] = {{1, {"plain", 5}}, {2, {"a,b", 3}}, {3, {"say \"x\"", 7}}};

static leat_stream *table(leat_env *env)
{
    return leat_from_items(env, LEAT_TYPE(row), rows, 3);
}

Test(file_sink, one_subtask_writes_a_file_in_each_format)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_csv_options bare = {.delimiter = ';', .no_header = true};
    leat_write_text(table(env), "out.txt");
    leat_write_csv(table(env), "out.csv", NULL);
    leat_write_csv(table(env), "bare.csv", &bare);
    leat_write_json(table(env), "out.json");
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    expect_file("out.txt", "1\tplain\n2\ta,b\n3\tsay \"x\"\n");
    expect_file("out.csv", "id,name\n1,plain\n2,\"a,b\"\n3,\"say \"\"x\"\"\"\n");
    expect_file("bare.csv", "1;plain\n2;a,b\n3;\"say \"\"x\"\"\"\n");
    expect_file("out.json", "{\"id\":1,\"name\":\"plain\"}\n{\"id\":2,\"name\":\"a,b\"}\n"
                            "{\"id\":3,\"name\":\"say \\\"x\\\"\"}\n");
    cr_assert_eq(count_entries("."), 4);
    run_end(&r);
}

Test(file_sink, several_subtasks_write_a_directory_of_numbered_files)
{
    run r;
    leat_env *env = run_begin(&r, 3);
    leat_write_text(leat_sequence(env, 1, 6), "out");
    // One subtask of these gets nothing.
    leat_write_csv(leat_rescale(table(env)), "rows", NULL);
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    expect_file("out/1", "1\n2\n");
    expect_file("out/2", "3\n4\n");
    expect_file("out/3", "5\n6\n");
    cr_assert(count_entries("out") == 3 && count_entries("rows") == 3 && count_entries(".") == 2);
    for (int i = 1; i <= 3; i++) {
        char path[16];
        snprintf(path, sizeof path, "rows/%d", i);
        char *text = slurp(path);
        cr_assert(text && strncmp(text, "id,name\n", 8) == 0, "%s", path);
        free(text);
    }
    run_end(&r);
}

Test(file_sink, an_empty_stream_makes_an_empty_file)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_write_text(leat_sequence(env, 2, 1), "out");
    leat_write_csv(leat_from_items(env, LEAT_TYPE(row), NULL, 0), "out.csv", NULL);
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    expect_file("out", "");
    expect_file("out.csv", "id,name\n");
    run_end(&r);
}

Test(file_sink, many_records_and_long_ones_are_all_there)
{
    enum { COUNT = 200000, LONG = 300000 };
    run r;
    leat_env *env = run_begin(&r, 4);
    char *text = malloc(LONG + 2);
    memset(text, 'x', LONG);
    leat_str items[] = {{text, LONG}, {"short", 5}, {text, 65536}};
    leat_write_text(leat_sequence(env, 1, COUNT), "numbers");
    leat_write_text(leat_from_items(env, leat_type_scalar(LEAT_STR), items, 3), "lines");
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    int64_t next = 1;
    for (int i = 1; i <= 4; i++) {
        char path[16];
        snprintf(path, sizeof path, "numbers/%d", i);
        char *found = slurp(path), *at = found;
        for (; *at; at = strchr(at, '\n') + 1)
            cr_assert_eq(strtoll(at, NULL, 10), next++);
        free(found);
    }
    cr_assert_eq(next, COUNT + 1);
    // The items come from one subtask; which files they are in is not said.
    size_t size = 0;
    for (int i = 1; i <= 4; i++) {
        char path[16];
        snprintf(path, sizeof path, "lines/%d", i);
        char *found = slurp(path);
        size += strlen(found);
        free(found);
    }
    cr_assert_eq(size, LONG + 1 + 6 + 65536 + 1);
    free(text);
    run_end(&r);
}

static int64_t records_out(leat_job *job)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < leat_job_task_count(job); i++) {
        leat_task_stats stats;
        leat_job_task_stats(job, i, &stats);
        sum += (int64_t)stats.records_out;
    }
    return sum;
}

Test(file_sink, what_is_written_is_counted)
{
    run r;
    leat_runtime *runtime;
    leat_job *job;
    leat_env *env = run_begin(&r, 2);
    leat_write_csv(leat_from_items(env, LEAT_TYPE(row), rows, 3), "rows", NULL);
    leat_write_text(leat_sequence(env, 1, 10), "numbers");
    cr_assert_eq(leat_runtime_create(env, &runtime, NULL, 0), LEAT_OK);
    cr_assert_eq(leat_start(runtime, env, &job), LEAT_OK);
    cr_assert_eq(leat_job_wait(job, -1), LEAT_OK);
    // Three that the items source sends to the sink's tasks, and 13 lines; headers do not count.
    cr_assert_eq(records_out(job), 3 + 13);
    // The output is there when the job has ended, not when it is destroyed.
    cr_assert(access("rows/1", F_OK) == 0 && access("numbers/2", F_OK) == 0);
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    run_end(&r);
}

// --- what is there already ---

Test(file_sink, an_existing_target_is_refused_unless_overwriting_is_asked)
{
    for (uint32_t p = 1; p <= 3; p += 2) {
        spill("out", "old");
        for (int overwrite = 0; overwrite < 2; overwrite++) {
            run r;
            leat_env *env = run_begin(&r, p);
            leat_file_sink_options options = {.overwrite = overwrite};
            leat_write_file(leat_sequence(env, 1, 3), "out", &options);
            leat_err err = run_execute(&r);
            cr_assert_eq(err, overwrite ? LEAT_OK : LEAT_EEXIST, "%s", r.failure);
            if (!overwrite) {
                cr_assert(strstr(r.failure, "file (") && strstr(r.failure, "out exists already"),
                          "%s", r.failure);
                expect_file("out", "old");
            }
            run_end(&r);
        }
        expect_file(p == 1 ? "out" : "out/1", p == 1 ? "1\n2\n3\n" : "1\n");
        cr_assert_eq(count_entries("."), 1);
        leave_outputs();
        enter_outputs();
    }
}

// --- jobs that do not finish ---

static int fail_at(leat_ctx *ctx, const void *in)
{
    return *(const int64_t *)in == 150000 ? leat_fail(ctx, "enough") : 0;
}

// The sink itself is before the failure in one job, and has nothing to do with it in the other.
Test(file_sink, a_job_that_fails_anywhere_leaves_nothing)
{
    for (int beside = 0; beside < 2; beside++)
        for (uint32_t p = 1; p <= 2; p++) {
            run r;
            leat_env *env = run_begin(&r, p);
            leat_stream *numbers = leat_sequence(env, 1, 300000);
            leat_write_text(beside ? leat_sequence(env, 1, 3) : numbers, "out");
            leat_sink(numbers, fail_at);
            cr_assert_eq(run_execute(&r), LEAT_EUSER, "%s", r.failure);
            cr_assert_eq(count_entries("."), 0);
            run_end(&r);
        }
}

static int generate(leat_ctx *ctx, int64_t index, void *out)
{
    *(int64_t *)out = index;
    return 0;
}

Test(file_sink, a_cancelled_job_leaves_nothing)
{
    run r;
    leat_runtime *runtime;
    leat_job *job;
    leat_env *env = run_begin(&r, 2);
    leat_write_text(leat_generate(env, generate, LEAT_UNBOUNDED, 0, leat_type_scalar(LEAT_I64)),
                    "out");
    cr_assert_eq(leat_runtime_create(env, &runtime, NULL, 0), LEAT_OK);
    cr_assert_eq(leat_start(runtime, env, &job), LEAT_OK);
    while (records_out(job) < 100000)
        usleep(1000);
    cr_assert_eq(count_entries("."), 1);
    leat_job_cancel(job);
    cr_assert_eq(leat_job_wait(job, -1), LEAT_ECANCELLED);
    leat_job_destroy(&job);
    cr_assert_eq(count_entries("."), 0);
    leat_runtime_destroy(&runtime);
    run_end(&r);
}

// As on a full disk: the system takes no more than so much. The signal that comes with it must not
// end the process.
Test(file_sink, a_write_that_fails_fails_the_job_and_names_the_file)
{
    struct rlimit limit = {.rlim_cur = 100000, .rlim_max = RLIM_INFINITY};
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    static const char *const says[] = {"cannot write out: File too large",
                                       "cannot write out/1: File too large"};
    for (uint32_t p = 1; p <= 2; p++) {
        run r;
        leat_env *env = run_begin(&r, p);
        leat_write_text(leat_global(leat_sequence(env, 1, 100000)), "out");
        cr_assert_eq(run_execute(&r), LEAT_EIO, "%s", r.failure);
        cr_assert(strstr(r.failure, says[p - 1]), "%s", r.failure);
        cr_assert_eq(count_entries("."), 0);
        run_end(&r);
    }
}

static int remove_folder(leat_ctx *ctx, const void *in)
{
    if (*(const int64_t *)in == 1000)
        cr_assert_eq(nftw("sub", outputs_remove, 20, FTW_DEPTH | FTW_PHYS), 0);
    return 1;
}

Test(file_sink, a_directory_removed_meanwhile_fails_the_job)
{
    run r;
    mkdir("sub", 0755);
    leat_env *env = run_begin(&r, 1);
    leat_write_text(leat_filter(leat_sequence(env, 1, 200000), remove_folder), "sub/out");
    cr_assert_eq(run_execute(&r), LEAT_ENOENT, "%s", r.failure);
    cr_assert(strstr(r.failure, "file (end of the job): sub/ was removed while the job ran"), "%s",
              r.failure);
    cr_assert_eq(count_entries("."), 0);
    run_end(&r);
}

Test(file_sink, a_missing_directory_fails_the_job)
{
    run r;
    leat_env *env = run_begin(&r, 2);
    leat_name(leat_write_json(leat_sequence(env, 1, 2), "none/out"), "archive");
    cr_assert_eq(run_execute(&r), LEAT_ENOENT, "%s", r.failure);
    cr_assert(strstr(r.failure, "archive (") && strstr(r.failure, "none/"), "%s", r.failure);
    run_end(&r);
}

// --- several sinks ---

Test(file_sink, two_sinks_of_one_path_are_a_fault)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_file_sink_options replacing = {.overwrite = true};
    leat_name(leat_write_text(leat_sequence(env, 1, 2), "same"), "first");
    leat_write_text(leat_sequence(env, 1, 2), "other");
    leat_name(leat_write_file(leat_sequence(env, 1, 2), "same", &replacing), "second");
    cr_assert_eq(run_execute(&r), LEAT_EINVAL, "%s", r.failure);
    cr_assert(strstr(r.failure, "\"second\" (file, operator 6): leat_write_file: same is also what "
                                "\"first\" (operator 2) writes"),
              "%s", r.failure);
    cr_assert_eq(count_entries("."), 0);
    run_end(&r);
}

Test(file_sink, two_sinks_of_one_file_spelt_differently_fail_when_they_open)
{
    static const char *const spelt[] = {"./same", "sub/../same", "same/", "link/same"};
    cr_assert(mkdir("sub", 0755) == 0 && symlink(".", "link") == 0);
    for (int i = 0; i < 4; i++)
        for (uint32_t p = 1; p <= 2; p++) {
            run r;
            leat_env *env = run_begin(&r, p);
            leat_file_sink_options replacing = {.overwrite = true};
            leat_name(leat_write_file(leat_sequence(env, 1, 2), "same", &replacing), "first");
            leat_name(leat_write_file(leat_sequence(env, 1, 2), spelt[i], &replacing), "second");
            cr_assert_eq(run_execute(&r), LEAT_EINVAL, "%s: %s", spelt[i], r.failure);
            // Whichever opens first, both are named.
            cr_assert(strstr(r.failure, "first") && strstr(r.failure, "second") &&
                          strstr(r.failure, "same is also what"),
                      "%s", r.failure);
            cr_assert_eq(count_entries("."), 2, "%s", spelt[i]);
            run_end(&r);
        }
}

static int make_in_the_way(leat_ctx *ctx, const void *in)
{
    if (*(const int64_t *)in == 1000)
        spill("two", "of another");
    return 1;
}

// The one that cannot get its name is the second of three.
Test(file_sink, when_one_output_cannot_be_put_in_its_place_none_is)
{
    for (uint32_t p = 1; p <= 2; p++) {
        run r;
        leat_env *env = run_begin(&r, p);
        leat_write_text(leat_sequence(env, 1, 3), "one");
        leat_name(leat_write_text(leat_filter(leat_sequence(env, 1, 2000), make_in_the_way), "two"),
                  "archive");
        leat_write_text(leat_sequence(env, 1, 3), "three");
        cr_assert_eq(run_execute(&r), LEAT_EEXIST, "%s", r.failure);
        cr_assert(strstr(r.failure, "archive (end of the job): two was made by somebody else"),
                  "%s", r.failure);
        expect_file("two", "of another");
        cr_assert(count_entries(".") == 1 && unlink("two") == 0);
        run_end(&r);
    }
}

// Nothing tells beforehand that in a directory such as /tmp the file of somebody else cannot be
// replaced.
Test(file_sink, what_fails_between_two_renames_says_which_outputs_are_in_place)
{
    if (geteuid() != 0)
        cr_skip_test("only the superuser can make a file of somebody else's");
    cr_assert(chmod(".", 0777) == 0 && mkdir("shared", 0755) == 0 && chmod("shared", 01777) == 0);
    spill("shared/out", "old");
    cr_assert_eq(seteuid(65534), 0);
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_file_sink_options replacing = {.overwrite = true};
    leat_write_text(leat_sequence(env, 1, 2), "one");
    leat_write_text(leat_sequence(env, 1, 2), "two");
    leat_write_file(leat_sequence(env, 1, 2), "shared/out", &replacing);
    leat_write_text(leat_sequence(env, 1, 2), "four");
    cr_assert_eq(run_execute(&r), LEAT_EIO, "%s", r.failure);
    cr_assert(strstr(r.failure, "file (end of the job): cannot rename shared/.out.leat-") &&
                  strstr(r.failure, " to shared/out: Operation not permitted; in place already: "
                                    "one, two\n"),
              "%s", r.failure);
    run_end(&r);
    cr_assert_eq(seteuid(0), 0);
    expect_file("one", "1\n2\n");
    expect_file("shared/out", "old");
    cr_assert(count_entries(".") == 3 && count_entries("shared") == 1);
}

// Removes the hidden file of "two", or the second part in the hidden directory.
static int remove_hidden(leat_ctx *ctx, const void *in)
{
    if (*(const int64_t *)in != 1999)
        return 1;
    DIR *folder = opendir(".");
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[300];
        snprintf(path, sizeof path, "%s/2", entry->d_name);
        if (strncmp(entry->d_name, ".two.leat-", 10) == 0 && unlink(path) != 0)
            cr_assert_eq(unlink(entry->d_name), 0);
    }
    closedir(folder);
    return 1;
}

Test(file_sink, a_hidden_output_that_was_removed_meanwhile_fails_the_job)
{
    for (uint32_t p = 1; p <= 2; p++) {
        run r;
        leat_env *env = run_begin(&r, p);
        leat_write_text(leat_sequence(env, 1, 3), "one");
        leat_write_text(leat_filter(leat_sequence(env, 1, 2000), remove_hidden), "two");
        cr_assert_eq(run_execute(&r), LEAT_ENOENT, "%s", r.failure);
        cr_assert(strstr(r.failure, "file (end of the job): .two.leat-") &&
                      strstr(r.failure, p == 1 ? ", which was" : "/2, which was") &&
                      strstr(r.failure, "was removed while the job ran"),
                  "%s", r.failure);
        cr_assert_eq(count_entries("."), 0);
        run_end(&r);
    }
}

// The size that the sink has counted is that of the file.
static int cut_hidden(leat_ctx *ctx, const void *in)
{
    if (*(const int64_t *)in != 150000)
        return 1;
    DIR *folder = opendir(".");
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (strncmp(entry->d_name, ".two.leat-", 10) == 0)
            cr_assert_eq(truncate(entry->d_name, 0), 0);
    closedir(folder);
    return 1;
}

Test(file_sink, a_hidden_output_that_was_cut_meanwhile_fails_the_job)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_write_text(leat_filter(leat_sequence(env, 1, 200000), cut_hidden), "two");
    cr_assert_eq(run_execute(&r), LEAT_EIO, "%s", r.failure);
    // Nine lines of a digit, 90 of two and so on: 9 * 2 + 90 * 3 + 900 * 4 + 9000 * 5 + 90000 * 6 +
    // 100001 * 7.
    cr_assert(strstr(r.failure, "bytes instead of 1288895) while the job ran"), "%s", r.failure);
    cr_assert_eq(count_entries("."), 0);
    run_end(&r);
}

// --- faults ---

Test(file_sink, wrong_arguments_are_faults)
{
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_stream *numbers = leat_sequence(env, 1, 2), *in = table(env);
    leat_column columns[] = {{"none", "x"}};
    leat_file_sink_options cases[] = {
        {.format = (leat_line_format)7},
        {.format = LEAT_LINE_CSV, .csv = &(leat_csv_options){.delimiter = '"'}},
        {.format = LEAT_LINE_CSV,
         .csv = &(leat_csv_options){.columns = columns, .column_count = 1}},
    };
    leat_write_text(in, NULL);
    leat_write_text(in, "");
    leat_write_text(in, "a/..");
    leat_write_csv(numbers, "out", NULL);
    for (int i = 0; i < 3; i++)
        leat_write_file(in, "out", &cases[i]);
    cr_assert_eq(leat_env_fault_count(env), 7);
    for (size_t i = 0; i < 7; i++)
        cr_assert(strstr(leat_env_fault(env, i), "leat_write_file on the output of \"source: "),
                  "%s", leat_env_fault(env, i));
    run_end(&r);
}

Test(file_sink, options_are_copied)
{
    run r;
    char path[] = "out", column[] = "number";
    leat_column columns[] = {{"id", column}};
    leat_csv_options csv = {.columns = columns, .column_count = 1};
    leat_write_csv(table(run_begin(&r, 1)), path, &csv);
    memset(path, 'z', 3);
    memset(column, 'z', 6);
    memset(columns, 0, sizeof columns);
    csv.delimiter = ';';
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    char *text = slurp("out");
    cr_assert(text && strncmp(text, "number,name\n", 12) == 0);
    free(text);
    run_end(&r);
}

// --- allocations that fail ---

static leat_err scarce_job(const leat_allocator *allocator)
{
    leat_env_options options = {.allocator = allocator};
    leat_env *env;
    leat_err err = leat_env_create(&options, &env);
    if (err)
        return err;
    leat_env_set(env, "workers", "1");
    leat_env_set(env, "memory.network", "128 KiB");
    leat_env_set(env, "memory.segment-size", "1 KiB");
    leat_env_set_parallelism(env, 2);
    leat_column columns[] = {{"id", "number"}};
    leat_csv_options csv = {.columns = columns, .column_count = 1, .missing = "-"};
    leat_write_csv(table(env), "rows", &csv);
    leat_write_json(leat_generate(env, generate, 2, 0, leat_type_scalar(LEAT_I64)), "numbers");
    err = leat_execute(env);
    cr_assert_eq(err != LEAT_OK, leat_env_fault_count(env) > 0);
    leat_env_destroy(&env);
    return err;
}

Test(file_sink, any_allocation_may_fail)
{
    for (uint64_t n = 1, failed = 1; failed; n++) {
        leat_test_allocator *scarce;
        cr_assert_eq(leat_test_allocator_create(NULL, &scarce), LEAT_OK);
        leat_test_allocator_fail(scarce, n, 1);
        leat_err err = scarce_job(leat_test_allocator_hook(scarce));
        failed = leat_test_allocator_failed(scarce);
        cr_assert(leat_test_allocator_live(scarce) == 0, "allocation %" PRIu64, n);
        leat_test_allocator_destroy(&scarce);
        cr_assert_eq(count_entries("."), err ? 0 : 2, "allocation %" PRIu64, n);
        cr_assert(!err || (failed && err == LEAT_ENOMEM), "allocation %" PRIu64 ": %s", n,
                  leat_err_name(err));
        cr_assert(failed || n > 50);
        if (err)
            continue; // it could do without otherwise
        leave_outputs();
        enter_outputs();
    }
}
