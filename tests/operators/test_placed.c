// SPDX-License-Identifier: Apache-2.0
// File sources and sinks whose subtasks are in two processes.
#include "placed.h"

#include <zlib.h>

#include "outputs.h"

TestSuite(placed, .init = enter_outputs, .fini = leave_outputs, .timeout = 120);

// Subtasks 0 and 2 in the first process, 1 and 3 in the second.
static void alternate(placed *p)
{
    for (uint32_t i = 0; i < PLACED_TASKS; i++)
        p->process_of[i] = i % PLACED_SIDES;
}

// The lines that print sinks have printed, without "N> ".
static void expect_lines(placed *p, const char *expected)
{
    char *lines = placed_lines(p), *bare = calloc(1, strlen(lines) + 1), *at = bare;
    for (char *line = lines, *end; *line && (end = strchr(line, '\n')); line = end + 1) {
        char *text = strstr(line, "> ") + 2;
        memcpy(at, text, (size_t)(end + 1 - text));
        at += end + 1 - text;
    }
    run_sort(bare);
    cr_assert_str_eq(bare, expected);
    free(bare);
    free(lines);
}

static void read_and_print(placed *p, const char *path, int64_t watch_ms)
{
    leat_file_options options = {.paths = &path,
                                 .path_count = 1,
                                 .format = leat_text_format(),
                                 .watch_interval_ms = watch_ms};
    for (int i = 0; i < PLACED_SIDES; i++) {
        leat_env *env = p->sides[i].run.env;
        leat_print(leat_read_files(env, &options, leat_type_scalar(LEAT_STR)));
    }
}

// --- sources ---

Test(placed, every_line_of_every_file_is_read_once)
{
    enum { FILES = 40 };
    char expected[FILES * 8 + 1] = "", path[32], text[16];
    placed p;
    cr_assert(mkdir("in", 0777) == 0);
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "in/%d", i);
        snprintf(text, sizeof text, "%03d\n", i);
        spill(path, text);
        memcpy(expected + strlen(expected), text, strlen(text));
    }
    placed_begin(&p, 4);
    alternate(&p);
    read_and_print(&p, "in", 0);
    cr_assert(placed_run(&p, NULL), "%s%s", p.sides[0].failure, p.sides[1].failure);
    expect_lines(&p, expected);
    cr_assert(p.questions >= 2 && p.questions <= FILES + 2, "%u questions", p.questions);
    placed_end(&p);
}

Test(placed, splits_of_one_file_go_to_both_and_bad_lines_keep_their_numbers)
{
    enum { LINES = 20000 };
    placed p;
    FILE *file = fopen("big", "w");
    for (int i = 1; i <= LINES; i++)
        fprintf(file, "%d\n", i);
    fclose(file);
    placed_begin(&p, 4);
    alternate(&p);
    for (int i = 0; i < PLACED_SIDES; i++)
        leat_env_set(p.sides[i].run.env, "source.split-size", "4KiB");
    read_and_print(&p, "big", 0);
    cr_assert(placed_run(&p, NULL), "%s%s", p.sides[0].failure, p.sides[1].failure);
    char *lines = placed_lines(&p);
    uint64_t sum = 0, count = 0;
    for (char *at = lines; (at = strstr(at, "> ")); at++, count++)
        sum += strtoull(at + 2, NULL, 10);
    free(lines);
    cr_assert(count == LINES && sum == (uint64_t)LINES * (LINES + 1) / 2);
    placed_end(&p);
}

Test(placed, compressed_files_are_read_whole_by_one)
{
    placed p;
    cr_assert(mkdir("in", 0777) == 0);
    spill("in/a", "a\n");
    gzFile packed = gzopen("in/b.gz", "wb");
    cr_assert(packed && gzputs(packed, "b\nc\n") == 4 && gzclose(packed) == Z_OK);
    placed_begin(&p, 4);
    alternate(&p);
    read_and_print(&p, "in", 0);
    cr_assert(placed_run(&p, NULL), "%s%s", p.sides[0].failure, p.sides[1].failure);
    expect_lines(&p, "a\nb\nc\n");
    placed_end(&p);
}

Test(placed, a_missing_file_fails_the_job_with_its_name)
{
    placed p;
    placed_begin(&p, 4);
    alternate(&p);
    read_and_print(&p, "nowhere", 0);
    cr_assert(!placed_run(&p, NULL));
    cr_expect(strstr(p.sides[0].failure, "cannot read nowhere: No such file"), "%s",
              p.sides[0].failure);
    placed_end(&p);
}

static bool both_have_read;

static uint64_t lines_of(const placed_side *side)
{
    uint64_t lines = 0;
    for (uint32_t t = 0; t < leat_job_task_count(side->handle); t++) {
        leat_task_stats stats;
        leat_job_task_stats(side->handle, t, &stats);
        lines += stats.records_in;
    }
    return lines;
}

// A file a round, until both processes have read some.
static void feed(placed *p)
{
    for (int i = 0; i < 10000 && !both_have_read; i++) {
        char path[32], to[32];
        snprintf(path, sizeof path, "in/.%d", i);
        spill(path, "fed\n");
        snprintf(to, sizeof to, "in/%d", i);
        cr_assert(rename(path, to) == 0);
        usleep(1000);
        both_have_read = lines_of(&p->sides[0]) >= 3 && lines_of(&p->sides[1]) >= 3;
    }
    for (int i = 0; i < PLACED_SIDES; i++)
        leat_job_cancel(p->sides[i].handle);
}

Test(placed, a_watched_folder_feeds_both)
{
    placed p;
    cr_assert(mkdir("in", 0777) == 0);
    placed_begin(&p, 4);
    alternate(&p);
    read_and_print(&p, "in", 1);
    (void)placed_run(&p, feed);
    cr_assert(both_have_read && p.questions >= 3, "%u questions", p.questions);
    placed_end(&p);
}

static void cut(uint8_t *bytes, size_t *size)
{
    *size = *size / 2;
}

static void garble(uint8_t *bytes, size_t *size)
{
    memset(bytes, 0xa5, *size);
}

Test(placed, damaged_answers_fail_the_job)
{
    void (*const tampers[])(uint8_t *, size_t *) = {cut, garble};
    for (size_t i = 0; i < sizeof tampers / sizeof *tampers; i++) {
        placed p;
        spill("a", "x\n");
        placed_begin(&p, 4);
        alternate(&p);
        p.tamper = tampers[i];
        read_and_print(&p, "a", 0);
        cr_assert(!placed_run(&p, NULL));
        cr_expect(strstr(p.sides[1].failure, "the next file could not be had from the process"),
                  "%s", p.sides[1].failure);
        placed_end(&p);
    }
}

// --- sinks ---

static void write_numbers(placed *p, const char *path, bool overwrite)
{
    leat_file_sink_options options = {.overwrite = overwrite};
    for (int i = 0; i < PLACED_SIDES; i++)
        leat_write_file(leat_sequence(p->sides[i].run.env, 1, 8), path, &options);
}

Test(placed, parts_of_both_end_up_in_one_directory)
{
    placed p;
    placed_begin(&p, 4);
    alternate(&p);
    write_numbers(&p, "out", false);
    cr_assert(placed_run(&p, NULL), "%s%s", p.sides[0].failure, p.sides[1].failure);
    expect_file("out/1", "1\n2\n");
    expect_file("out/2", "3\n4\n");
    expect_file("out/3", "5\n6\n");
    expect_file("out/4", "7\n8\n");
    cr_assert(count_entries("out") == 4 && count_entries(".") == 1);
    placed_end(&p);
}

Test(placed, they_replace_what_was_there_together)
{
    placed p;
    placed_begin(&p, 4);
    alternate(&p);
    cr_assert(mkdir("out", 0750) == 0);
    spill("out/1", "old\n");
    spill("out/7", "old\n");
    write_numbers(&p, "out", true);
    cr_assert(placed_run(&p, NULL), "%s%s", p.sides[0].failure, p.sides[1].failure);
    expect_file("out/1", "1\n2\n");
    expect_file("out/4", "7\n8\n");
    struct stat status;
    cr_assert(stat("out", &status) == 0 && (status.st_mode & 07777) == 0750);
    cr_assert(count_entries("out") == 4 && count_entries(".") == 1);
    placed_end(&p);
}

static int fail_at_five(leat_ctx *ctx, const void *in)
{
    return *(const int64_t *)in == 5 ? leat_fail(ctx, "five") : 1;
}

Test(placed, a_failure_in_one_leaves_nothing_of_either)
{
    placed p;
    placed_begin(&p, 4);
    alternate(&p);
    for (int i = 0; i < PLACED_SIDES; i++)
        leat_write_text(leat_filter(leat_sequence(p.sides[i].run.env, 1, 8), fail_at_five), "out");
    cr_assert(!placed_run(&p, NULL));
    cr_expect(strstr(p.sides[0].failure, "five"), "%s", p.sides[0].failure);
    cr_assert_eq(count_entries("."), 0);
    placed_end(&p);
}

// Two sinks that share no process: only their files can tell.
Test(placed, two_sinks_with_one_output_are_refused_across_processes)
{
    placed p;
    placed_begin(&p, 2);
    cr_assert(mkdir("sub", 0777) == 0);
    uint32_t places[] = {0, 0, 1, 1};
    memcpy(p.process_of, places, sizeof places);
    for (int i = 0; i < PLACED_SIDES; i++) {
        leat_env *env = p.sides[i].run.env;
        leat_write_text(leat_sequence(env, 1, 2), "out");
        leat_write_text(leat_sequence(env, 1, 2), "sub/../out");
    }
    cr_assert(!placed_run(&p, NULL));
    const char *failure = p.sides[0].failure[0] ? p.sides[0].failure : p.sides[1].failure;
    cr_expect(strstr(failure, "another sink of the job writes the same output"), "%s", failure);
    cr_assert_eq(count_entries("."), 1);
    placed_end(&p);
}
