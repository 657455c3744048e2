// SPDX-License-Identifier: Apache-2.0
// Directories that are watched: first the splits alone, under a clock of the test's own, then whole
// jobs.
#include <fcntl.h>
#include <pthread.h>
#include <time.h>

#include "base/strbuf.h"
#include "files.h"

// --- the splits alone ---

enum { INTERVAL_MS = 1000 };
#define INTERVAL_NS (INT64_C(1000000) * INTERVAL_MS)

typedef struct watch {
    const char *paths[2];
    leati_file_rules rules;
    leati_file_splits *splits;
    leati_file_sleeper sleepers[3];
    leati_file_listing listing;
    int64_t now_ns;
    char why[400];
} watch;

static leat_err watch_start(watch *w, const char *first, const char *second)
{
    *w = (watch){.paths = {first, second}, .now_ns = 5};
    w->rules = (leati_file_rules){
        .paths = w->paths, .path_count = second ? 2 : 1, .watch_interval_ms = INTERVAL_MS};
    w->listing = (leati_file_listing){.watching = true, .why = w->why, .why_size = sizeof w->why};
    cr_assert_eq(leati_file_splits_create(NULL, 10, &w->splits), LEAT_OK);
    for (int i = 0; i < 3; i++)
        leati_file_splits_join(w->splits, &w->sleepers[i]);
    return leati_file_splits_start(w->splits, &w->rules, &w->listing, w->now_ns);
}

static void watch_end(watch *w)
{
    for (int i = 0; i < 3; i++)
        leati_file_splits_leave(w->splits, &w->sleepers[i]);
    leati_file_splits_destroy(&w->splits);
}

// Lets the interval pass (listing takes time, too) and lists again.
static leat_err watch_again(watch *w)
{
    w->now_ns += 100 * INTERVAL_NS;
    return leati_file_splits_scan(w->splits, &w->listing, w->now_ns);
}

// Takes all splits there are now: "path start-end;", and "path lost from start;".
static const char *watch_take(watch *w)
{
    static char text[2000];
    size_t at = 0;
    leati_file_split split;
    text[0] = 0;
    leati_split_result found;
    while ((found = leati_file_splits_next(w->splits, &w->sleepers[0], &split)) ==
               LEATI_SPLIT_FOUND ||
           found == LEATI_SPLIT_LOST) {
        if (found == LEATI_SPLIT_LOST)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s lost from %d;",
                                   split.file->path, (int)split.start);
        else
            at += (size_t)snprintf(text + at, sizeof text - at, "%s %d-%d;", split.file->path,
                                   (int)split.start, (int)split.end);
        leati_file_splits_release(w->splits, &split);
    }
    return text;
}

static void set_time(const char *path, time_t seconds)
{
    struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

Test(file_watch, each_file_is_handed_out_once_in_the_order_of_last_change)
{
    watch w;
    mkdir("d", 0700);
    put_text("d/a", "123456789012");
    put_text("d/b", "x");
    set_time("d/a", 2000);
    set_time("d/b", 1000);
    cr_assert_eq(watch_start(&w, "d", NULL), LEAT_OK);
    cr_assert_str_eq(watch_take(&w), "d/b 0-1;d/a 0-10;d/a 10-12;");
    cr_assert_eq(watch_again(&w), LEAT_OK);
    cr_assert_str_eq(watch_take(&w), "");
    // One that is new is read however old it says it is; what is hidden or empty is not.
    mkdir("d/sub", 0700);
    put_text("d/sub/old", "xy");
    set_time("d/sub/old", 10);
    put_text("d/.hidden", "x");
    put_text("d/_hidden", "x");
    put_text("d/empty", "");
    cr_assert_eq(watch_again(&w), LEAT_OK);
    cr_assert_str_eq(watch_take(&w), "d/sub/old 0-2;");
    // A name is given to what is complete; and an empty file gets its content.
    cr_assert_eq(rename("d/.hidden", "d/shown"), 0);
    put_text("d/empty", "no more");
    set_time("d/shown", 1);
    cr_assert_eq(watch_again(&w), LEAT_OK);
    cr_assert_str_eq(watch_take(&w), "d/shown 0-1;d/empty 0-7;");
    // Only touched: still the same.
    set_time("d/shown", 5000);
    cr_assert_eq(watch_again(&w), LEAT_OK);
    cr_assert_str_eq(watch_take(&w), "");
    watch_end(&w);
}

Test(file_watch, what_has_changed_is_handed_out_as_a_whole_once_more)
{
    watch w;
    mkdir("d", 0700);
    put_text("d/a", "123456789012");
    put_text("d/b", "1");
    cr_assert_eq(watch_start(&w, "d", NULL), LEAT_OK);
    cr_assert(strstr(watch_take(&w), "d/b 0-1;"));
    put_text("d/b", "12"); // grown
    put_text("other", "123456789012");
    rename("other", "d/a"); // replaced by one of the same size
    set_time("d/a", 1);
    cr_assert_eq(watch_again(&w), LEAT_OK);
    cr_assert_str_eq(watch_take(&w), "d/a 0-10;d/a 10-12;d/b 0-2;");
    // One that went and came back is new.
    unlink("d/b");
    cr_assert_eq(watch_again(&w), LEAT_OK);
    put_text("d/b", "12");
    cr_assert_eq(watch_again(&w), LEAT_OK);
    cr_assert_str_eq(watch_take(&w), "d/b 0-2;");
    watch_end(&w);
}

// A file that changes when `taken` of its splits are handed out.
static void change_file(size_t taken, const char *content, bool replaced, const char *expected)
{
    watch w;
    leati_file_split split;
    put_text("d/a", "123456789012345678901");
    cr_assert_eq(watch_start(&w, "d", NULL), LEAT_OK);
    for (size_t i = 0; i < taken; i++) {
        cr_assert_eq(leati_file_splits_next(w.splits, &w.sleepers[0], &split), LEATI_SPLIT_FOUND);
        leati_file_splits_release(w.splits, &split);
    }
    put_text(replaced ? "new" : "d/a", content);
    cr_assert(!replaced || rename("new", "d/a") == 0);
    cr_assert_eq(watch_again(&w), LEAT_OK);
    cr_assert_str_eq(watch_take(&w), expected);
    watch_end(&w);
}

Test(file_watch, the_rest_of_a_file_that_has_changed_is_not_handed_out_but_told_to_be_lost)
{
    static const char same_size[] = "abcdefghijklmnopqrstu", grown[] = "123456789012345678901234";
    mkdir("d", 0700);
    change_file(1, "12345", false, "d/a lost from 10;d/a 0-5;");
    change_file(2, same_size, true, "d/a lost from 20;d/a 0-10;d/a 10-20;d/a 20-21;");
    change_file(1, grown, false, "d/a lost from 10;d/a 0-10;d/a 10-20;d/a 20-24;");
    // Nothing was read of these; only what has grown loses nothing.
    change_file(0, "12345", false, "d/a lost from 0;d/a 0-5;");
    change_file(0, same_size, true, "d/a lost from 0;d/a 0-10;d/a 10-20;d/a 20-21;");
    change_file(0, grown, false, "d/a 0-10;d/a 10-20;d/a 20-24;");
    // All of it was handed out.
    change_file(3, "12345", false, "d/a 0-5;");
}

Test(file_watch, a_pipe_or_a_device_that_is_named_is_refused)
{
    static const char *const paths[] = {"pipe", "/dev/null"};
    cr_assert_eq(mkfifo("pipe", 0600), 0);
    for (int i = 0; i < 2; i++) {
        watch w;
        char why[100];
        snprintf(why, sizeof why, "%s is a pipe or a device, which cannot be watched", paths[i]);
        cr_assert_eq(watch_start(&w, paths[i], NULL), LEAT_EINVAL);
        cr_assert_str_eq(w.why, why);
        watch_end(&w);
    }
    // In a directory they are no files.
    watch w;
    mkdir("d", 0700);
    cr_assert_eq(rename("pipe", "d/pipe"), 0);
    cr_assert_eq(watch_start(&w, "d", NULL), LEAT_OK);
    cr_assert_str_eq(watch_take(&w), "");
    watch_end(&w);
}

Test(file_watch, what_is_named_twice_is_watched_once)
{
    watch w;
    mkdir("d", 0700);
    put_text("d/a", "1");
    cr_assert_eq(watch_start(&w, "d/a", "d/a"), LEAT_OK);
    cr_assert_str_eq(watch_take(&w), "d/a 0-1;");
    watch_end(&w);
}

Test(file_watch, a_path_that_has_gone_is_an_error_but_what_vanishes_inside_is_not)
{
    watch w;
    mkdir("d", 0700);
    mkdir("d/sub", 0700);
    put_text("d/sub/a", "1");
    cr_assert_eq(symlink("nowhere", "d/dangling"), 0);
    cr_assert_eq(watch_start(&w, "d", NULL), LEAT_OK);
    unlink("d/sub/a");
    rmdir("d/sub");
    cr_assert_eq(watch_again(&w), LEAT_OK);
    unlink("d/dangling");
    rmdir("d");
    cr_assert_eq(watch_again(&w), LEAT_ENOENT);
    cr_assert_str_eq(w.why, "cannot read d: No such file or directory");
    watch_end(&w);
    cr_assert_eq(watch_start(&w, "d", NULL), LEAT_ENOENT, "nor is it there at the start");
    watch_end(&w);
}

Test(file_watch, a_listing_is_made_when_it_is_due_and_no_earlier)
{
    watch w;
    mkdir("d", 0700);
    cr_assert_eq(watch_start(&w, "d", NULL), LEAT_OK);
    put_text("d/a", "1");
    int64_t due = leati_file_splits_due_ns(w.splits);
    cr_assert_eq(due, 5 + INTERVAL_NS);
    cr_assert(!leati_file_splits_due(w.splits, due - 1) && leati_file_splits_due(w.splits, due));
    cr_assert_eq(leati_file_splits_scan(w.splits, &w.listing, due - 1), LEAT_OK);
    cr_assert_str_eq(watch_take(&w), "");
    cr_assert_eq(leati_file_splits_scan(w.splits, &w.listing, due), LEAT_OK);
    cr_assert_str_eq(watch_take(&w), "d/a 0-1;");
    cr_assert(leati_file_splits_due_ns(w.splits) >= due + INTERVAL_NS);
    watch_end(&w);
}

Test(file_watch, one_of_the_sleepers_is_the_watchman_until_it_gets_a_split)
{
    watch w;
    leati_file_split split;
    mkdir("d", 0700);
    cr_assert_eq(watch_start(&w, "d", NULL), LEAT_OK);
    leati_file_sleeper *a = &w.sleepers[0], *b = &w.sleepers[1], *c = &w.sleepers[2];
    cr_assert_eq(leati_file_splits_next(w.splits, a, &split), LEATI_SPLIT_WATCH);
    cr_assert_eq(leati_file_splits_next(w.splits, b, &split), LEATI_SPLIT_WAIT);
    cr_assert_eq(leati_file_splits_next(w.splits, a, &split), LEATI_SPLIT_WATCH, "still");
    // Nothing new: nobody but the watchman is woken.
    cr_assert_eq(watch_again(&w), LEAT_OK);
    cr_assert(!a->sleeping && b->sleeping);
    cr_assert_eq(leati_file_splits_next(w.splits, a, &split), LEATI_SPLIT_WATCH);
    // Something new: all are.
    put_text("d/a", "1");
    cr_assert_eq(watch_again(&w), LEAT_OK);
    cr_assert(!a->sleeping && !b->sleeping);
    cr_assert_eq(leati_file_splits_next(w.splits, b, &split), LEATI_SPLIT_FOUND);
    leati_file_splits_release(w.splits, &split);
    cr_assert_eq(leati_file_splits_next(w.splits, a, &split), LEATI_SPLIT_WATCH);
    cr_assert_eq(leati_file_splits_next(w.splits, b, &split), LEATI_SPLIT_WAIT);
    // The watchman has something to read: a sleeper is woken and takes over.
    put_text("d/b", "1");
    cr_assert_eq(watch_again(&w), LEAT_OK);
    cr_assert_eq(leati_file_splits_next(w.splits, b, &split), LEATI_SPLIT_FOUND);
    leati_file_splits_release(w.splits, &split);
    cr_assert_eq(leati_file_splits_next(w.splits, b, &split), LEATI_SPLIT_WAIT);
    put_text("d/c", "1");
    cr_assert_eq(watch_again(&w), LEAT_OK);
    cr_assert_eq(leati_file_splits_next(w.splits, a, &split), LEATI_SPLIT_FOUND);
    leati_file_splits_release(w.splits, &split);
    cr_assert_eq(leati_file_splits_next(w.splits, c, &split), LEATI_SPLIT_WATCH);
    // So it is when the watchman leaves.
    cr_assert_eq(leati_file_splits_next(w.splits, b, &split), LEATI_SPLIT_WAIT);
    leati_file_splits_leave(w.splits, c);
    cr_assert(!b->sleeping);
    cr_assert_eq(leati_file_splits_next(w.splits, b, &split), LEATI_SPLIT_WATCH);
    watch_end(&w);
}

// --- jobs ---

// What a job has read so far.
typedef struct tally {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    leati_strbuf lines; // each with an LF
    size_t count;
} tally;

typedef struct job {
    tally tally;
    leat_env *env;
    leat_runtime *runtime;
    leat_job *job;
} job;

static int note(leat_ctx *ctx, const void *in)
{
    tally *t = leat_ctx_user_data(ctx);
    const leat_str *line = in;
    pthread_mutex_lock(&t->lock);
    leati_strbuf_append(&t->lines, line->data, line->size);
    leati_strbuf_putc(&t->lines, '\n');
    t->count++;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return 0;
}

static void job_start(job *j, const char *path, uint32_t parallelism)
{
    *j = (job){.env = NULL};
    pthread_mutex_init(&j->tally.lock, NULL);
    pthread_cond_init(&j->tally.changed, NULL);
    leati_strbuf_init(&j->tally.lines, NULL);
    cr_assert_eq(leat_env_create(NULL, &j->env), LEAT_OK);
    leat_env_set_parallelism(j->env, parallelism);
    leat_env_set(j->env, "workers", "2");
    leat_file_options options = {
        .paths = &path, .path_count = 1, .format = leat_text_format(), .watch_interval_ms = 3};
    leat_stream *lines = leat_read_files(j->env, &options, leat_type_scalar(LEAT_STR));
    leat_user_data(leat_sink(lines, note), &j->tally);
    cr_assert_eq(leat_runtime_create(j->env, &j->runtime, NULL, 0), LEAT_OK);
    cr_assert_eq(leat_start(j->runtime, j->env, &j->job), LEAT_OK);
}

// Waits until so many lines have come; they must be these, in any order.
static void job_expect(job *j, size_t count, const char *expected)
{
    tally *t = &j->tally;
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 30;
    pthread_mutex_lock(&t->lock);
    while (t->count < count)
        cr_assert_eq(pthread_cond_timedwait(&t->changed, &t->lock, &limit), 0, "%zu lines: %s",
                     t->count, leati_strbuf_text(&t->lines));
    size_t size = strlen(expected);
    cr_assert_eq(t->lines.size, size, "%s", leati_strbuf_text(&t->lines));
    for (const char *at = expected; *at; at = strchr(at, '\n') + 1) {
        char line[100];
        snprintf(line, sizeof line, "%.*s", (int)(strchr(at, '\n') - at + 1), at);
        cr_assert(strstr(leati_strbuf_text(&t->lines), line), "%s", line);
    }
    t->lines.size = 0;
    t->count = 0;
    pthread_mutex_unlock(&t->lock);
}

static leat_err job_end(job *j)
{
    leat_job_cancel(j->job);
    leat_err err = leat_job_wait(j->job, 30000);
    leat_job_destroy(&j->job);
    leat_runtime_destroy(&j->runtime);
    leati_strbuf_fini(&j->tally.lines);
    leat_env_destroy(&j->env);
    return err;
}

Test(file_watch, a_job_reads_what_appears_until_it_is_cancelled)
{
    static const uint32_t parallelisms[] = {1, 2, 4, 7};
    mkdir("d", 0700);
    for (int i = 0; i < 4; i++) {
        job j;
        put_text("d/first", "one\ntwo\n");
        job_start(&j, "d", parallelisms[i]);
        job_expect(&j, 2, "one\ntwo\n");
        put_text("d/.tmp", "three\n");
        set_time("d/.tmp", 10);
        rename("d/.tmp", "d/second");
        job_expect(&j, 1, "three\n");
        mkdir("d/.dir", 0700);
        put_text("d/.dir/a", "four\n");
        put_text("d/.dir/b", "five\n");
        rename("d/.dir", "d/dir");
        job_expect(&j, 2, "four\nfive\n");
        put_text(".tmp", "one\ntwo\nmore\n");
        rename(".tmp", "d/first");
        job_expect(&j, 3, "one\ntwo\nmore\n");
        cr_assert_eq(job_end(&j), LEAT_ECANCELLED);
        cr_assert(unlink("d/first") == 0 && unlink("d/second") == 0 && unlink("d/dir/a") == 0 &&
                  unlink("d/dir/b") == 0 && rmdir("d/dir") == 0);
    }
}

// By a clock that the test moves, with three subtasks of which one looks at the directory.
Test(file_watch, a_new_file_is_found_when_the_interval_is_over)
{
    leat_harness *h;
    mkdir("d", 0700);
    put_text("d/first", "one\n");
    cr_assert_eq(leat_harness_create(NULL, &h), LEAT_OK);
    leat_env *env = leat_harness_env(h);
    leat_env_set_parallelism(env, 3);
    const char *path = "d";
    leat_file_options options = {.paths = &path,
                                 .path_count = 1,
                                 .format = leat_text_format(),
                                 .watch_interval_ms = INTERVAL_MS};
    leat_stream *lines = leat_read_files(env, &options, leat_type_scalar(LEAT_STR));
    leat_test_output(leat_parallelism(lines, 3), "lines");
    for (int64_t round = 1; round <= 4; round++) {
        cr_assert_eq(leat_harness_run(h), LEAT_OK, "%s", leat_harness_why(h));
        cr_assert_eq((int64_t)leat_harness_count(h, "lines"), round);
        char name[] = "d/0";
        name[2] = (char)('0' + round);
        put_text(name, "more\n");
        cr_assert_eq(leat_harness_advance(h, INTERVAL_NS - 1), LEAT_OK);
        cr_assert_eq((int64_t)leat_harness_count(h, "lines"), round);
        cr_assert_eq(leat_harness_advance(h, 1), LEAT_OK);
    }
    leat_harness_destroy(&h);
}

Test(file_watch, a_directory_that_is_removed_fails_the_job)
{
    job j;
    mkdir("d", 0700);
    put_text("d/a", "one\n");
    job_start(&j, "d", 3);
    job_expect(&j, 1, "one\n");
    rename("d", "gone");
    cr_assert_eq(leat_job_wait(j.job, 30000), LEAT_ENOENT);
    cr_assert_eq(job_end(&j), LEAT_ENOENT);
}

Test(file_watch, what_may_not_be_read_fails_the_job)
{
    job j;
    mkdir("d", 0755);
    chmod(".", 0755);
    put_text("d/secret", "one\n");
    chmod("d/secret", 0);
    // The superuser may read everything.
    bool root = geteuid() == 0;
    if (root && seteuid(65534) != 0)
        cr_skip("another user cannot be taken on");
    job_start(&j, "d", 2);
    cr_assert_eq(leat_job_wait(j.job, 30000), LEAT_EIO);
    cr_assert_eq(job_end(&j), LEAT_EIO);
    if (root)
        cr_assert_eq(seteuid(0), 0);
}

typedef struct warnings {
    pthread_mutex_t lock;
    char text[4000];
} warnings;

static void keep_warning(void *user, leat_log_level level, const char *line)
{
    warnings *kept = user;
    pthread_mutex_lock(&kept->lock);
    size_t at = strlen(kept->text);
    snprintf(kept->text + at, sizeof kept->text - at, "%s\n", line);
    pthread_mutex_unlock(&kept->lock);
}

static int times(const char *text, const char *wanted)
{
    int count = 0;
    for (; (text = strstr(text, wanted)) != NULL; text++)
        count++;
    return count;
}

// By a clock that the test moves, so that the number of listings is known.
Test(file_watch, links_that_lead_nowhere_are_passed_over_with_one_warning_until_they_lead_somewhere)
{
    warnings kept = {.lock = PTHREAD_MUTEX_INITIALIZER};
    leat_harness_options with_log = {.logger = {keep_warning, &kept, LEAT_LOG_WARN}};
    leat_harness *h;
    mkdir("d", 0700);
    put_text("d/first", "one\n");
    cr_assert(symlink("nowhere", "d/dangling") == 0 && symlink("d/first/x", "d/through") == 0);
    cr_assert_eq(leat_harness_create(&with_log, &h), LEAT_OK);
    const char *path = "d";
    leat_file_options options = {.paths = &path,
                                 .path_count = 1,
                                 .format = leat_text_format(),
                                 .watch_interval_ms = INTERVAL_MS};
    leat_stream *lines = leat_read_files(leat_harness_env(h), &options, leat_type_scalar(LEAT_STR));
    leat_test_output(lines, "lines");
    cr_assert_eq(leat_harness_run(h), LEAT_OK, "%s", leat_harness_why(h));
    cr_assert(symlink("loop", "d/loop") == 0);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(leat_harness_advance(h, INTERVAL_NS), LEAT_OK, "%s", leat_harness_why(h));
    cr_assert_eq(leat_harness_count(h, "lines"), 1);
    cr_assert_eq(times(kept.text, "\n"), 3, "%s", kept.text);
    cr_assert(strstr(kept.text, "d/dangling: passed over, as the link leads nowhere or to itself"),
              "%s", kept.text);
    cr_assert(strstr(kept.text, "d/loop: ") && strstr(kept.text, "d/through: "), "%s", kept.text);
    put_text("d/nowhere", "two\nthree\n");
    cr_assert_eq(leat_harness_advance(h, INTERVAL_NS), LEAT_OK);
    cr_assert_eq(leat_harness_count(h, "lines"), 5, "the file by both its names");
    cr_assert_eq(times(kept.text, "\n"), 3, "%s", kept.text);
    leat_harness_destroy(&h);
}

TestSuite(file_watch, .init = enter_folder, .fini = leave_folder);
