// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    cr_assert(file && fputs(text, file) >= 0);
    fclose(file);
}

Test(sources, lines_of_files_and_directories_arrive_once_at_any_parallelism)
{
    mkdir("d", 0700);
    char *big = calloc(1, 400000), *expected = calloc(1, 400100);
    for (int i = 0; i < 20000; i++)
        snprintf(big + (size_t)i * 12, 13, "line %06d\n", i);
    write_file("d/big", big);
    write_file("d/small", "a\r\n\nb");
    snprintf(expected, 400100, "%sa\n\nb\na\n\nb\n", big);
    for (uint32_t p = 1; p <= 7; p += 3) {
        run r;
        leat_env *env = run_begin(&r, p);
        leat_env_set(env, "source.split-size", "4096");
        const char *paths[] = {"d", "d/small"};
        leat_parallelism(leat_print(leat_read_text_files(env, paths, 2)), 1);
        run_expect_lines(&r, expected, "lines");
    }
    unlink("d/big");
    unlink("d/small");
    rmdir("d");
    free(big);
    free(expected);
}

Test(sources, an_empty_directory_gives_nothing)
{
    mkdir("d", 0700);
    run r;
    leat_parallelism(leat_print(leat_read_text(run_begin(&r, 2), "d")), 1);
    run_expect_lines(&r, "", "empty");
    rmdir("d");
}

Test(sources, a_missing_file_fails_the_job_with_its_name)
{
    run r;
    leat_discard(leat_read_text(run_begin(&r, 2), "not-there"));
    cr_assert_eq(run_execute(&r), LEAT_ENOENT);
    cr_assert(strstr(r.failure, "not-there: No such file or directory"), "%s", r.failure);
    run_end(&r);
}

Test(sources, standard_input_is_read_once_whatever_the_parallelism)
{
    for (uint32_t p = 1; p <= 3; p++) {
        int ends[2];
        cr_assert_eq(pipe(ends), 0);
        cr_assert_eq(dup2(ends[0], 0), 0);
        close(ends[0]);
        run r;
        leat_env *env = run_begin(&r, p);
        const char *paths[] = {"-", "-"};
        leat_parallelism(leat_print(leat_read_text_files(env, paths, 2)), 1);
        cr_assert_eq(write(ends[1], "one\ntwo\r\nthree", 14), 14);
        close(ends[1]);
        run_expect_lines(&r, "one\ntwo\nthree\n", "standard input");
    }
}

Test(sources, a_pipe_that_is_silent_keeps_no_worker_busy)
{
    cr_assert_eq(mkfifo("pipe", 0600), 0);
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_runtime *runtime;
    leat_job *job;
    leat_env_set(env, "workers", "1");
    leat_print(leat_read_text(env, "pipe"));
    cr_assert_eq(leat_runtime_create(env, &runtime, NULL, 0), LEAT_OK);
    cr_assert_eq(leat_start(runtime, env, &job), LEAT_OK);
    // Opening waits until the source has opened its end, so the job is running then.
    FILE *writer = fopen("pipe", "w");
    cr_assert(writer != NULL);
    cr_assert_eq(leat_job_wait(job, 200), LEAT_EAGAIN);
    leat_task_stats stats;
    leat_job_task_stats(job, 0, &stats);
    cr_assert(stats.busy_ns < 50 * 1000 * 1000, "busy %u us", (unsigned)(stats.busy_ns / 1000));
    fputs("at last\n", writer);
    fclose(writer);
    cr_assert_eq(leat_job_wait(job, 10000), LEAT_OK);
    cr_assert_str_eq(leati_strbuf_text(&r.out[0]), "at last\n");
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    run_end(&r);
    unlink("pipe");
}

Test(sources, cancelling_ends_the_wait_for_a_pipe)
{
    cr_assert_eq(mkfifo("pipe", 0600), 0);
    run r;
    leat_env *env = run_begin(&r, 1);
    leat_runtime *runtime;
    leat_job *job;
    leat_print(leat_read_text(env, "pipe"));
    cr_assert_eq(leat_runtime_create(env, &runtime, NULL, 0), LEAT_OK);
    cr_assert_eq(leat_start(runtime, env, &job), LEAT_OK);
    FILE *writer = fopen("pipe", "w");
    leat_job_cancel(job);
    cr_assert_eq(leat_job_wait(job, 10000), LEAT_ECANCELLED);
    fclose(writer);
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    run_end(&r);
    unlink("pipe");
}

typedef struct {
    leat_str text;
    leat_list numbers;
} item;
LEAT_RECORD(item, LEAT_FIELD(text, LEAT_STR), LEAT_FIELD_LIST(numbers, LEAT_SCALAR(LEAT_I64)));

Test(sources, items_are_copied_when_the_graph_is_built)
{
    char text[] = "abc";
    int64_t numbers[] = {1, 2, 3};
    item items[] = {
        {{text, 3}, {numbers, 3}}, {{text, 2}, {numbers, 0}}, {{NULL, 0}, {numbers, 1}}};
    run r;
    leat_print(leat_from_items(run_begin(&r, 4), LEAT_TYPE(item), items, 3));
    memset(text, '#', sizeof text);
    memset(numbers, 0xff, sizeof numbers);
    memset(items, 0xff, sizeof items);
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    run_end(&r);
    // The same at parallelism 1 of the sink, whose lines have no prefix then.
    memcpy(text, "abc", 3);
    memcpy(numbers, (int64_t[]){1, 2, 3}, sizeof numbers);
    memcpy(items, (item[]){{{text, 3}, {numbers, 3}}, {{text, 2}, {numbers, 0}}},
           2 * sizeof *items);
    items[2] = (item){{NULL, 0}, {numbers, 1}};
    leat_parallelism(leat_print(leat_from_items(run_begin(&r, 4), LEAT_TYPE(item), items, 3)), 1);
    memset(text, '#', sizeof text);
    memset(numbers, 0xff, sizeof numbers);
    memset(items, 0xff, sizeof items);
    run_expect_lines(&r, "abc\t[1,2,3]\nab\t[]\n\t[1]\n", "items");
}

static int sum_up(leat_ctx *ctx, void *accumulator, const void *in)
{
    *(int64_t *)accumulator += *(const int64_t *)in;
    return 0;
}

static int one_key(leat_ctx *ctx, const void *in, void *key)
{
    return 0;
}

Test(sources, a_sequence_is_shared_out_completely)
{
    for (uint32_t p = 1; p <= 5; p++) {
        run r;
        leat_stream *numbers = leat_sequence(run_begin(&r, p), -100, 100000);
        leat_stream *keyed = leat_key_by_fn(numbers, one_key, leat_type_scalar(LEAT_I64));
        leat_parallelism(leat_print(leat_final_only(leat_reduce(keyed, sum_up))), 1);
        run_expect_lines(&r, "5000044950\n", "100 000 · 100 001 / 2 − 100 · 101 / 2");
    }
}

// Each test has a folder of its own.
static void enter_folder(void)
{
    char folder[] = "/tmp/leat-sources-XXXXXX";
    cr_assert(mkdtemp(folder) && chdir(folder) == 0);
}

static void leave_folder(void)
{
    char *folder = get_current_dir_name();
    cr_assert(chdir("/") == 0 && rmdir(folder) == 0, "a test left files in %s", folder);
    free(folder);
}

TestSuite(sources, .init = enter_folder, .fini = leave_folder);
