// SPDX-License-Identifier: Apache-2.0
// The output of jobs: the newest of it is kept, and all of it while somebody reads.
#include <sched.h>

#include "tests/cluster/manager_testing.h"

enum { KIB = 1024, MIB = 1024 * KIB };

// Byte N of what a worker prints: every second one ends a line, so that nothing waits for long.
static uint8_t byte_at(uint64_t n)
{
    return n % 2 ? '\n' : (uint8_t)(n * 7 + n / 251);
}

typedef struct scene {
    boss b;
    fake f;
    char id[LEATI_ID_SIZE];
    uint64_t attempt, sent;
} scene;

static void scene_start(scene *s, int64_t limit, bool attached)
{
    submission job;
    s->sent = 0;
    boss_init(&s->b);
    boss_set(&s->b, LEATI_CONFIG_JOB_OUTPUT, limit);
    boss_start(&s->b);
    put_artifact(&s->b);
    fake_start(&s->f, &s->b, 1, 1);
    simple_submission(&job, 1);
    submit(&s->b, &job, attached, s->id);
    free(job.graph);
    s->attempt = expect_deploy(&s->f);
}

static void scene_stop(scene *s)
{
    fake_stop(&s->f);
    boss_stop(&s->b);
}

static void print_to(scene *s, uint32_t fd, size_t size)
{
    uint8_t *bytes = malloc(size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = byte_at(s->sent + i);
    leati_msg_output m = {s->attempt, fd, s->sent, {bytes, size}};
    fake_send(&s->f, LEATI_MESSAGE_OUTPUT, LEAT_TYPE(leati_msg_output), &m);
    s->sent += size;
    free(bytes);
}

static void wait_end(scene *s, uint64_t end)
{
    struct timespec deadline = leati_deadline(LONG_MS);
    pthread_mutex_lock(&s->b.manager->lock);
    while (job_of(&s->b, s->id)->output_end < end)
        cr_assert(pthread_cond_timedwait(&s->b.manager->changed, &s->b.manager->lock, &deadline) ==
                  0);
    pthread_mutex_unlock(&s->b.manager->lock);
}

static uint64_t next_taken(scene *s)
{
    leati_msg_output taken;
    fake_expect(&s->f, LEATI_MESSAGE_TAKEN, LEAT_TYPE(leati_msg_output), &taken);
    cr_expect(taken.attempt == s->attempt);
    return taken.offset;
}

// Everything from `offset` on is read and checked; gives where it began.
static uint64_t read_from(scene *s, uint64_t offset)
{
    uint8_t buffer[3000];
    uint64_t first = 0, began = UINT64_MAX;
    size_t size;
    do {
        pthread_mutex_lock(&s->b.manager->lock);
        size = leati_job_output(job_of(&s->b, s->id), offset, buffer, sizeof buffer, &first);
        pthread_mutex_unlock(&s->b.manager->lock);
        began = began == UINT64_MAX ? first : began;
        for (size_t i = 0; i < size; i++)
            cr_assert(buffer[i] == byte_at(first + i), "byte %zu is wrong", (size_t)first + i);
        offset = first + size;
    } while (size > 0);
    cr_expect(offset == s->sent);
    return began;
}

static void has_read(scene *s, uint64_t offset)
{
    pthread_mutex_lock(&s->b.manager->lock);
    leati_job_output_read(s->b.manager, job_of(&s->b, s->id), offset);
    pthread_mutex_unlock(&s->b.manager->lock);
}

Test(output, is_kept_as_it_was_printed)
{
    scene s;
    scene_start(&s, MIB, false);
    print_to(&s, 1, 1);
    print_to(&s, 1, 9999);
    wait_end(&s, 10000);
    cr_expect(read_from(&s, 0) == 0);
    cr_expect(read_from(&s, 1234) == 1234);
    cr_expect(read_from(&s, 10000) == 10000);
    scene_stop(&s);
}

Test(output, of_a_job_that_nobody_waits_for_its_end_is_kept)
{
    scene s;
    scene_start(&s, 5000, false);
    for (int i = 0; i < 100; i++)
        print_to(&s, 1, 777);
    wait_end(&s, s.sent);
    cr_expect(read_from(&s, 0) == s.sent - 5000);
    print_to(&s, 1, 12346); // more than is kept, at once
    wait_end(&s, s.sent);
    cr_expect(read_from(&s, 0) == s.sent - 5000);
    scene_stop(&s);
}

Test(output, is_there_after_the_job_has_ended_and_goes_with_it)
{
    scene s;
    char path[LEATI_PATH_SIZE];
    scene_start(&s, MIB, false);
    print_to(&s, 1, 4000);
    say_over(&s.f, s.attempt, true);
    (void)expect_conclude(&s.f, s.attempt);
    say_concluded(&s.f, s.attempt, NULL);
    wait_phase(&s.b, s.id, LEATI_PHASE_FINISHED);
    cr_expect(read_from(&s, 0) == 0);
    pthread_mutex_lock(&s.b.manager->lock);
    leati_managed_job *job = job_of(&s.b, s.id);
    cr_expect(job->output_fd < 0);
    leati_output_path(job, path);
    pthread_mutex_unlock(&s.b.manager->lock);
    cr_expect(access(path, F_OK) == 0);
    // The manager's thread takes part: it does the same at times.
    s.b.manager->options.config.value[LEATI_CONFIG_JOBS_KEPT] = 0;
    leati_managed_forget(s.b.manager);
    while (access(path, F_OK) == 0)
        sched_yield();
    scene_stop(&s);
}

Test(output, is_taken_at_once_when_nobody_waits)
{
    scene s;
    uint64_t taken = 0;
    scene_start(&s, 4096, false);
    for (int i = 0; i < 64; i++)
        print_to(&s, 1, 64 * KIB);
    // Less than an eighth of a window may stay untold.
    while (taken + LEATI_OUTPUT_WINDOW / 8 <= s.sent)
        taken = next_taken(&s);
    cr_expect(taken <= s.sent);
    scene_stop(&s);
}

Test(output, is_held_back_until_the_client_has_read_it)
{
    scene s;
    scene_start(&s, 4096, true);
    for (int i = 0; i < 16; i++)
        print_to(&s, 1, LEATI_OUTPUT_WINDOW / 16);
    wait_end(&s, LEATI_OUTPUT_WINDOW);
    cr_expect(!fake_has(&s.f, LEATI_MESSAGE_TAKEN));
    cr_expect(read_from(&s, 0) == 0, "more is kept than cluster.job-output");
    has_read(&s, LEATI_OUTPUT_WINDOW / 2);
    cr_expect(next_taken(&s) == LEATI_OUTPUT_WINDOW / 2);
    print_to(&s, 1, LEATI_OUTPUT_WINDOW / 2);
    wait_end(&s, s.sent);
    cr_expect(read_from(&s, LEATI_OUTPUT_WINDOW / 2) == LEATI_OUTPUT_WINDOW / 2);
    has_read(&s, s.sent);
    cr_expect(next_taken(&s) == s.sent);
    scene_stop(&s);
}

Test(output, is_taken_once_the_client_counts_as_gone)
{
    scene s;
    scene_start(&s, 4096, true);
    print_to(&s, 1, LEATI_OUTPUT_WINDOW);
    wait_end(&s, s.sent);
    cr_expect(!fake_has(&s.f, LEATI_MESSAGE_TAKEN));
    pthread_mutex_lock(&s.b.manager->lock);
    leati_managed_job *job = job_of(&s.b, s.id);
    job->attached_seen_ns -= (LEATI_ATTACHED_GONE_MS - 1000) * INT64_C(1000000);
    (void)leati_manager_attached_check(s.b.manager, leati_clock_ns());
    cr_expect(job->attached);
    job->attached_seen_ns -= 1000 * INT64_C(1000000);
    (void)leati_manager_attached_check(s.b.manager, leati_clock_ns());
    cr_expect(!job->attached);
    pthread_mutex_unlock(&s.b.manager->lock);
    cr_expect(next_taken(&s) == s.sent);
    scene_stop(&s);
}

static void say(fake *f, uint64_t attempt, uint64_t *sent, const char *text, size_t size)
{
    leati_msg_output m = {attempt, 1, *sent, {(const uint8_t *)text, size}};
    fake_send(f, LEATI_MESSAGE_OUTPUT, LEAT_TYPE(leati_msg_output), &m);
    *sent += size;
}

Test(output, does_not_mix_the_lines_of_task_managers)
{
    enum { LONG_LINE = LEATI_OUTPUT_WINDOW / 2 + 1 };
    boss b;
    fake one, two;
    scene s;
    uint64_t sent[2] = {0}, first;
    static char longer[LONG_LINE];
    char got[20];
    boss_init(&b);
    boss_start(&b);
    put_artifact(&b);
    fake_start(&one, &b, 1, 1);
    fake_start(&two, &b, 2, 1);
    submit_simple(&b, 2, s.id);
    uint64_t attempt = expect_deploy(&one);
    s.b = b;
    say(&two, attempt, &sent[1], "x\ny", 3);
    wait_end(&s, 2);
    say(&one, attempt, &sent[0], "abc", 3);
    say(&one, attempt, &sent[0], "def\ntail", 8);
    wait_end(&s, 9);
    say_over(&one, attempt, true);
    wait_end(&s, 13);
    pthread_mutex_lock(&b.manager->lock);
    cr_expect(leati_job_output(job_of(&b, s.id), 0, got, sizeof got, &first) == 13);
    pthread_mutex_unlock(&b.manager->lock);
    cr_expect(memcmp(got, "x\nabcdef\ntail", 13) == 0);
    // One that is too long to be kept back; the line that was cut off ends before it.
    memset(longer, 'z', sizeof longer);
    say(&two, attempt, &sent[1], longer, sizeof longer);
    wait_end(&s, 15 + sizeof longer);
    fake_stop(&one);
    fake_stop(&two);
    boss_stop(&b);
}

// Task manager 1 is in the middle of a line too long to be kept, and 2 has printed two lines since.
static void begin_long_line(scene *s, fake *one, fake *two, uint64_t sent[2])
{
    static char longer[LEATI_OUTPUT_WINDOW / 2 + 1];
    struct timespec deadline = leati_deadline(LONG_MS);
    boss_init(&s->b);
    boss_start(&s->b);
    put_artifact(&s->b);
    fake_start(one, &s->b, 1, 1);
    fake_start(two, &s->b, 2, 1);
    submit_simple(&s->b, 2, s->id);
    s->attempt = expect_deploy(one);
    memset(longer, 'z', sizeof longer);
    say(one, s->attempt, &sent[0], longer, sizeof longer);
    wait_end(s, sizeof longer);
    say(two, s->attempt, &sent[1], "x\n", 2);
    say(two, s->attempt, &sent[1], "y\nw", 3);
    pthread_mutex_lock(&s->b.manager->lock);
    while (job_of(&s->b, s->id)->participants[1].output_seen < 5)
        cr_assert(pthread_cond_timedwait(&s->b.manager->changed, &s->b.manager->lock, &deadline) ==
                  0);
    cr_expect(job_of(&s->b, s->id)->output_end == sizeof longer);
    pthread_mutex_unlock(&s->b.manager->lock);
}

static bool ends_with(scene *s, const char *text)
{
    char got[100];
    uint64_t first;
    size_t size = strlen(text);
    pthread_mutex_lock(&s->b.manager->lock);
    leati_managed_job *job = job_of(&s->b, s->id);
    cr_assert(leati_job_output(job, job->output_end - size, got, size, &first) == size);
    pthread_mutex_unlock(&s->b.manager->lock);
    return !memcmp(got, text, size);
}

Test(output, is_not_mixed_into_a_line_too_long_to_be_kept)
{
    fake one, two;
    scene s;
    uint64_t sent[2] = {0};
    begin_long_line(&s, &one, &two, sent);
    say(&one, s.attempt, &sent[0], "a", 1);
    say(&one, s.attempt, &sent[0], "b\nc", 3);
    wait_end(&s, sent[0] - 1 + 4);
    cr_expect(ends_with(&s, "zab\nx\ny\n"));
    say(&two, s.attempt, &sent[1], "v\n", 2);
    wait_end(&s, sent[0] - 1 + sent[1]);
    cr_expect(ends_with(&s, "y\nwv\n"));
    fake_stop(&one);
    fake_stop(&two);
    boss_stop(&s.b);
}

Test(output, goes_on_after_a_long_line_whose_task_manager_is_over)
{
    fake one, two;
    scene s;
    uint64_t sent[2] = {0};
    begin_long_line(&s, &one, &two, sent);
    say_over(&one, s.attempt, true);
    wait_end(&s, sent[0] + 1 + 4);
    cr_expect(ends_with(&s, "z\nx\ny\n"));
    fake_stop(&one);
    fake_stop(&two);
    boss_stop(&s.b);
}

Test(output, goes_on_after_a_long_line_whose_task_manager_was_lost)
{
    fake one, two;
    scene s;
    uint64_t sent[2] = {0};
    begin_long_line(&s, &one, &two, sent);
    fake_stop(&one);
    wait_phase(&s.b, s.id, LEATI_PHASE_FAILING);
    say_over(&two, s.attempt, false);
    wait_end(&s, sent[0] + 1 + sent[1]);
    cr_expect(ends_with(&s, "z\nx\ny\nw"));
    fake_stop(&two);
    boss_stop(&s.b);
}

Test(output, to_standard_error_goes_to_the_log_of_the_job)
{
    scene s;
    scene_start(&s, MIB, false);
    leati_msg_output m = {s.attempt, 2, 0, {(const uint8_t *)"oh\ndear\n", 8}};
    fake_send(&s.f, LEATI_MESSAGE_OUTPUT, LEAT_TYPE(leati_msg_output), &m);
    s.sent = 8;
    print_to(&s, 1, 10);
    wait_end(&s, 10);
    pthread_mutex_lock(&s.b.manager->lock);
    leati_managed_job *job = job_of(&s.b, s.id);
    cr_expect(job->output_end == 10);
    cr_assert(job->log_count >= 2);
    const char *last = job->log[job->log_count - 1], *before = job->log[job->log_count - 2];
    cr_expect(strstr(last, "INFO  taskmanager 1 (host, pid 4701): dear") != NULL, "%s", last);
    cr_expect(strstr(before, ": oh") != NULL, "%s", before);
    pthread_mutex_unlock(&s.b.manager->lock);
    scene_stop(&s);
}

Test(output, that_comes_late_is_not_taken)
{
    scene s;
    scene_start(&s, MIB, false);
    leati_msg_output m = {s.attempt - 1, 1, 0, {(const uint8_t *)"late", 4}};
    fake_send(&s.f, LEATI_MESSAGE_OUTPUT, LEAT_TYPE(leati_msg_output), &m);
    print_to(&s, 1, 4);
    wait_end(&s, 4);
    cr_expect(read_from(&s, 0) == 0);
    scene_stop(&s);
}

Test(output, that_cannot_be_written_fails_the_job)
{
    scene s;
    char path[LEATI_PATH_SIZE], text[LEATI_REASON_SIZE];
    scene_start(&s, MIB, false);
    snprintf(path, sizeof path, "%s/outputs", s.b.folder);
    leati_remove_tree(path);
    print_to(&s, 1, 4);
    wait_phase(&s.b, s.id, LEATI_PHASE_FAILING);
    failure_of(&s.b, s.id, 0, text);
    cr_expect_str_eq(text, "the output of the job cannot be kept: No such file or directory");
    scene_stop(&s);
}

Test(output, only_the_newest_lines_of_a_log_are_kept)
{
    scene s;
    scene_start(&s, MIB, false);
    for (int i = 0; i < 2 * LEATI_LOG_LINES_KEPT; i++) {
        char line[32];
        snprintf(line, sizeof line, "line %d\n", i);
        leati_msg_log m = {s.attempt, LEAT_LOG_WARN, INT64_C(1700000000123), leati_text(line)};
        fake_send(&s.f, LEATI_MESSAGE_LOG, LEAT_TYPE(leati_msg_log), &m);
    }
    print_to(&s, 1, 2); // what comes before it has been taken
    wait_end(&s, 2);
    pthread_mutex_lock(&s.b.manager->lock);
    leati_managed_job *job = job_of(&s.b, s.id);
    const char *last = job->log[(job->log_count - 1) % LEATI_LOG_LINES_KEPT];
    cr_expect_str_eq(last, "2023-11-14T22:13:20.123Z WARN  taskmanager 1 (host, pid 4701): line"
                           " 999?");
    pthread_mutex_unlock(&s.b.manager->lock);
    scene_stop(&s);
}
