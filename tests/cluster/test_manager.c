// SPDX-License-Identifier: Apache-2.0
// The life of task managers and of jobs, as a job manager sees it.
#include <sched.h>

#include "tests/cluster/manager_testing.h"

// One job of parallelism 2 in two task managers with a slot each.
typedef struct pair {
    boss b;
    fake one, two;
    char id[LEATI_ID_SIZE];
    uint64_t attempt;
} pair;

static void pair_start(pair *p)
{
    boss_init(&p->b);
    boss_start(&p->b);
    put_artifact(&p->b);
    fake_start(&p->one, &p->b, 1, 1);
    fake_start(&p->two, &p->b, 2, 1);
    submit_simple(&p->b, 2, p->id);
    p->attempt = expect_deploy(&p->one);
    cr_assert(expect_deploy(&p->two) == p->attempt);
}

static void pair_stop(pair *p)
{
    fake_stop(&p->one);
    fake_stop(&p->two);
    boss_stop(&p->b);
}

static void expect_failure(pair *p, uint32_t index, const char *text)
{
    char got[LEATI_REASON_SIZE];
    failure_of(&p->b, p->id, index, got);
    cr_expect_str_eq(got, text);
}

// --- task managers ---

static void expect_refused(boss *b, const leati_msg_register *r, const char *part)
{
    fake f;
    leati_msg_registered answer;
    fake_connect(&f, b);
    fake_send(&f, LEATI_MESSAGE_REGISTER, LEAT_TYPE(leati_msg_register), r);
    fake_expect(&f, LEATI_MESSAGE_REGISTERED, LEAT_TYPE(leati_msg_registered), &answer);
    char text[300];
    snprintf(text, sizeof text, "%.*s", (int)answer.refused.size, answer.refused.data);
    cr_expect(strstr(text, part) != NULL, "\"%s\"", text);
    fake_stop(&f);
}

Test(manager, registration_tells_the_cluster_and_the_times)
{
    boss b;
    fake f;
    boss_init(&b);
    boss_set(&b, LEATI_CONFIG_HEARTBEAT_INTERVAL, 123);
    boss_set(&b, LEATI_CONFIG_HEARTBEAT_TIMEOUT, 45678);
    boss_start(&b);
    leati_msg_register r = fake_registration("a", 0, 3);
    leati_msg_registered answer;
    fake_connect(&f, &b);
    fake_send(&f, LEATI_MESSAGE_REGISTER, LEAT_TYPE(leati_msg_register), &r);
    fake_expect(&f, LEATI_MESSAGE_REGISTERED, LEAT_TYPE(leati_msg_registered), &answer);
    cr_expect(answer.refused.size == 0);
    cr_expect(answer.cluster.size == 32);
    cr_expect(answer.heartbeat_interval_ms == 123 && answer.heartbeat_timeout_ms == 45678);
    cr_expect(answer.term == b.manager->term);
    fake_stop(&f);
    boss_stop(&b);
}

Test(manager, refuses_other_versions_and_segment_sizes)
{
    boss b;
    fake f;
    boss_init(&b);
    boss_start(&b);
    fake_start(&f, &b, 1, 1);
    leati_msg_register r = fake_registration("x", 2, 1);
    r.version = leati_text("9.9.9");
    expect_refused(&b, &r, "and the task manager 9.9.9");
    r = fake_registration("x", 2, 1);
    r.segment_size = 4096;
    expect_refused(&b, &r, "memory.segment-size is 4096 here, and 32768");
    r = fake_registration("x", 2, 0);
    expect_refused(&b, &r, "not valid");
    r = fake_registration("123456789012345678901234567890123", 2, 1);
    expect_refused(&b, &r, "not valid");
    wait_members(&b, 1);
    fake_stop(&f);
    boss_stop(&b);
}

Test(manager, heartbeats_come_and_silence_counts_as_loss)
{
    boss b;
    fake f;
    leati_msg_heartbeat beat;
    boss_init(&b);
    boss_set(&b, LEATI_CONFIG_HEARTBEAT_INTERVAL, 20);
    boss_set(&b, LEATI_CONFIG_HEARTBEAT_TIMEOUT, 100);
    boss_start(&b);
    fake_start(&f, &b, 1, 1);
    fake_expect(&f, LEATI_MESSAGE_HEARTBEAT, LEAT_TYPE(leati_msg_heartbeat), &beat);
    fake_wait_closed(&f);
    wait_members(&b, 0);
    fake_stop(&f);
    boss_stop(&b);
}

Test(manager, who_does_not_register_is_not_kept)
{
    boss b;
    fake f;
    boss_init(&b);
    boss_set(&b, LEATI_CONFIG_HEARTBEAT_INTERVAL, 20);
    boss_set(&b, LEATI_CONFIG_HEARTBEAT_TIMEOUT, 100);
    boss_start(&b);
    fake_connect(&f, &b);
    fake_wait_closed(&f);
    fake_stop(&f);
    boss_stop(&b);
}

Test(manager, who_registers_anew_replaces_itself)
{
    boss b;
    fake before, after;
    boss_init(&b);
    boss_start(&b);
    fake_start(&before, &b, 1, 1);
    fake_start(&after, &b, 1, 1);
    fake_wait_closed(&before);
    wait_members(&b, 1);
    fake_stop(&before);
    fake_stop(&after);
    boss_stop(&b);
}

Test(manager, messages_that_are_none_end_the_connection)
{
    boss b;
    boss_init(&b);
    boss_start(&b);
    for (int i = 0; i < 3; i++) {
        fake f;
        leati_msg_end end = {.attempt = 1};
        fake_start(&f, &b, 1, 1);
        if (i == 0) // of a kind that only the job manager sends
            fake_send(&f, LEATI_MESSAGE_CANCEL, LEAT_TYPE(leati_msg_end), &end);
        else if (i == 1) // of another shape
            fake_send(&f, LEATI_MESSAGE_REPORT, LEAT_TYPE(leati_msg_end), &end);
        else // twice
            fake_send(&f, LEATI_MESSAGE_REGISTER, LEAT_TYPE(leati_msg_end), &end);
        fake_wait_closed(&f);
        wait_members(&b, 0);
        fake_stop(&f);
    }
    boss_stop(&b);
}

// --- jobs that finish ---

Test(manager, a_job_finishes_when_all_have_committed)
{
    pair p;
    pair_start(&p);
    wait_phase(&p.b, p.id, LEATI_PHASE_DEPLOYING);
    cr_expect(slots_used(&p.b) == 2);
    for (uint32_t vertex = 0; vertex < 2; vertex++) {
        say_stage(&p.one, p.attempt, vertex, 0, "RUNNING");
        say_stage(&p.two, p.attempt, vertex, 1, "RUNNING");
    }
    wait_phase(&p.b, p.id, LEATI_PHASE_RUNNING);
    say_over(&p.one, p.attempt, true);
    say_over(&p.two, p.attempt, true);
    cr_expect(expect_conclude(&p.one, p.attempt) && expect_conclude(&p.two, p.attempt));
    wait_phase(&p.b, p.id, LEATI_PHASE_CONCLUDING);
    say_concluded(&p.one, p.attempt, NULL);
    say_concluded(&p.two, p.attempt, NULL);
    wait_phase(&p.b, p.id, LEATI_PHASE_FINISHED);
    cr_expect(slots_used(&p.b) == 0);
    expect_failure(&p, 0, "");
    cr_expect(!fake_has(&p.one, LEATI_MESSAGE_CANCEL));
    pair_stop(&p);
}

Test(manager, stages_of_tasks_elsewhere_and_of_none_are_not_taken)
{
    pair p;
    pair_start(&p);
    say_stage(&p.one, p.attempt, 0, 1, "RUNNING"); // the other's
    say_stage(&p.one, p.attempt, 7, 0, "RUNNING");
    say_stage(&p.one, p.attempt, 0, 9, "RUNNING");
    say_stage(&p.one, p.attempt + 1, 0, 0, "RUNNING");
    say_stage(&p.one, p.attempt, 0, 0, "RUNNING");
    struct timespec deadline = leati_deadline(LONG_MS);
    pthread_mutex_lock(&p.b.manager->lock);
    leati_managed_job *job = job_of(&p.b, p.id);
    while (job->tasks_started == 0)
        cr_assert(pthread_cond_timedwait(&p.b.manager->changed, &p.b.manager->lock, &deadline) ==
                  0);
    cr_expect(job->tasks_started == 1);
    cr_expect_str_eq(job->tasks[0].state, "RUNNING");
    cr_expect_str_eq(job->tasks[1].state, "DEPLOYING");
    pthread_mutex_unlock(&p.b.manager->lock);
    pair_stop(&p);
}

Test(manager, a_commit_that_fails_fails_the_job)
{
    pair p;
    pair_start(&p);
    say_over(&p.one, p.attempt, true);
    say_over(&p.two, p.attempt, true);
    cr_expect(expect_conclude(&p.one, p.attempt) && expect_conclude(&p.two, p.attempt));
    say_concluded(&p.one, p.attempt, "no space left");
    say_concluded(&p.two, p.attempt, NULL);
    wait_phase(&p.b, p.id, LEATI_PHASE_FAILED);
    expect_failure(&p, 0, "no space left");
    pair_stop(&p);
}

Test(manager, accumulators_and_figures_are_kept)
{
    pair p;
    pair_start(&p);
    leati_msg_task task = {.vertex = 0, .subtask = 0, .records_out = 11, .wait = {"INPUT", 5}};
    leati_msg_metric metric = {.op = {"map", 3}, .name = {"seen", 4}, .count = 5};
    leati_msg_report report = {.attempt = p.attempt,
                               .tasks = {&task, 1},
                               .metrics = {&metric, 1},
                               .accumulators = {(const uint8_t *)"old", 3}};
    fake_send(&p.one, LEATI_MESSAGE_REPORT, LEAT_TYPE(leati_msg_report), &report);
    task.records_out = 31;
    fake_send(&p.one, LEATI_MESSAGE_REPORT, LEAT_TYPE(leati_msg_report), &report);
    leati_msg_over over = {p.attempt, true, {(const uint8_t *)"new!", 4}};
    fake_send(&p.one, LEATI_MESSAGE_OVER, LEAT_TYPE(leati_msg_over), &over);
    say_over(&p.two, p.attempt, true);
    (void)expect_conclude(&p.one, p.attempt);
    pthread_mutex_lock(&p.b.manager->lock);
    leati_managed_job *job = job_of(&p.b, p.id);
    cr_expect(job->tasks[0].figures.records_out == 31 && job->tasks[0].last_records_out == 11);
    cr_expect_str_eq(job->tasks[0].wait, "INPUT");
    const leati_participant *one = &job->participants[0];
    cr_expect(one->accumulators_size == 4 && !memcmp(one->accumulators, "new!", 4));
    cr_assert(one->metric_count == 1);
    cr_expect_str_eq(one->metrics[0].op.data, "map");
    cr_expect(one->metrics[0].count == 5);
    pthread_mutex_unlock(&p.b.manager->lock);
    pair_stop(&p);
}

// --- jobs that fail ---

static void end_without_commit(pair *p, fake *f)
{
    say_over(f, p->attempt, false);
    cr_expect(!expect_conclude(f, p->attempt));
    say_concluded(f, p->attempt, NULL);
}

Test(manager, a_failure_stops_the_others_and_is_the_root)
{
    pair p;
    pair_start(&p);
    say_failed(&p.one, p.attempt, false, "operator \"split\" (1/2): boom");
    expect_cancel(&p.two, p.attempt);
    wait_phase(&p.b, p.id, LEATI_PHASE_FAILING);
    say_failed(&p.two, p.attempt, false, "later");
    say_over(&p.one, p.attempt, false);
    say_over(&p.two, p.attempt, false);
    cr_expect(!expect_conclude(&p.one, p.attempt) && !expect_conclude(&p.two, p.attempt));
    say_concluded(&p.one, p.attempt, NULL);
    wait_phase(&p.b, p.id, LEATI_PHASE_FAILING);
    say_concluded(&p.two, p.attempt, NULL);
    wait_phase(&p.b, p.id, LEATI_PHASE_FAILED);
    expect_failure(&p, 0, "operator \"split\" (1/2): boom");
    expect_failure(&p, 1, "later");
    pair_stop(&p);
}

Test(manager, what_names_no_task_is_taken_as_of_none)
{
    pair p;
    pair_start(&p);
    leati_msg_task task = {.vertex = 0, .wait_vertex = 1, .wait_subtask = 2};
    leati_msg_task wild = {.vertex = 1, .wait_vertex = 2, .wait_subtask = 0};
    leati_msg_task none = {.vertex = 9, .subtask = 9};
    leati_msg_task tasks[] = {task, wild, none};
    leati_msg_report report = {.attempt = p.attempt, .tasks = {tasks, 3}};
    fake_send(&p.one, LEATI_MESSAGE_REPORT, LEAT_TYPE(leati_msg_report), &report);
    leati_msg_failed m = {p.attempt, LEAT_EUSER, 2, 0, false, leati_text("boom")};
    fake_send(&p.one, LEATI_MESSAGE_FAILED, LEAT_TYPE(leati_msg_failed), &m);
    m = (leati_msg_failed){p.attempt, LEAT_EUSER, 1, 1, false, leati_text("bang")};
    fake_send(&p.one, LEATI_MESSAGE_FAILED, LEAT_TYPE(leati_msg_failed), &m);
    say_over(&p.one, p.attempt, false);
    end_without_commit(&p, &p.two);
    pthread_mutex_lock(&p.b.manager->lock);
    const leati_managed_job *job = job_of(&p.b, p.id);
    cr_expect(job->failures[0].vertex == UINT32_MAX && job->failures[0].subtask == UINT32_MAX);
    cr_expect(job->failures[1].vertex == 1 && job->failures[1].subtask == 1);
    cr_expect(job->tasks[0].figures.wait_vertex == 1);
    cr_expect(job->tasks[0].figures.wait_subtask == UINT32_MAX);
    cr_expect(job->tasks[2].figures.wait_vertex == UINT32_MAX);
    pthread_mutex_unlock(&p.b.manager->lock);
    pair_stop(&p);
}

Test(manager, a_consequence_is_not_the_root_when_the_cause_comes_later)
{
    pair p;
    pair_start(&p);
    say_failed(&p.two, p.attempt, true, "connection lost");
    wait_phase(&p.b, p.id, LEATI_PHASE_FAILING);
    say_failed(&p.one, p.attempt, false, "boom");
    say_over(&p.one, p.attempt, false);
    end_without_commit(&p, &p.two);
    (void)expect_conclude(&p.one, p.attempt);
    say_concluded(&p.one, p.attempt, NULL);
    wait_phase(&p.b, p.id, LEATI_PHASE_FAILED);
    expect_failure(&p, 0, "boom");
    expect_failure(&p, 1, "connection lost");
    pthread_mutex_lock(&p.b.manager->lock);
    leati_managed_job *job = job_of(&p.b, p.id);
    cr_expect(job->failure_count == 2 && job->failures[0].root && !job->failures[1].root);
    pthread_mutex_unlock(&p.b.manager->lock);
    pair_stop(&p);
}

Test(manager, a_consequence_is_the_root_when_nothing_else_comes)
{
    pair p;
    pair_start(&p);
    say_failed(&p.two, p.attempt, true, "connection lost");
    say_over(&p.one, p.attempt, false);
    end_without_commit(&p, &p.two);
    (void)expect_conclude(&p.one, p.attempt);
    say_concluded(&p.one, p.attempt, NULL);
    wait_phase(&p.b, p.id, LEATI_PHASE_FAILED);
    expect_failure(&p, 0, "connection lost");
    pair_stop(&p);
}

Test(manager, at_most_sixteen_failures_are_kept_and_the_root_among_them)
{
    pair p;
    pair_start(&p);
    char text[32];
    for (int i = 0; i < 20; i++) {
        snprintf(text, sizeof text, "consequence %d", i);
        say_failed(&p.two, p.attempt, true, text);
    }
    say_failed(&p.two, p.attempt, false, "cause");
    say_failed(&p.two, p.attempt, false, "more");
    say_over(&p.one, p.attempt, false);
    end_without_commit(&p, &p.two);
    (void)expect_conclude(&p.one, p.attempt);
    say_concluded(&p.one, p.attempt, NULL);
    wait_phase(&p.b, p.id, LEATI_PHASE_FAILED);
    expect_failure(&p, 0, "cause");
    expect_failure(&p, 1, "consequence 0");
    expect_failure(&p, 15, "consequence 14");
    pair_stop(&p);
}

Test(manager, a_task_manager_that_is_lost_fails_its_jobs)
{
    pair p;
    pair_start(&p);
    fake_stop(&p.one);
    expect_cancel(&p.two, p.attempt);
    end_without_commit(&p, &p.two);
    wait_phase(&p.b, p.id, LEATI_PHASE_FAILED);
    char text[LEATI_REASON_SIZE];
    failure_of(&p.b, p.id, 0, text);
    cr_expect(strstr(text, "taskmanager 1 (host, pid 4701) was lost: ") == text, "\"%s\"", text);
    fake_stop(&p.two);
    boss_stop(&p.b);
}

Test(manager, a_crash_is_the_root_and_is_told_once)
{
    pair p;
    pair_start(&p);
    leati_msg_failed crash = {
        p.attempt, LEAT_EUSER, 0,
        0,         false,      leati_text("signal 11 (SIGSEGV) in operator \"split\" (1/2)")};
    fake_send(&p.one, LEATI_MESSAGE_CRASH, LEAT_TYPE(leati_msg_failed), &crash);
    expect_cancel(&p.one, p.attempt);
    fake_stop(&p.one);
    say_failed(&p.two, p.attempt, true, "connection lost");
    end_without_commit(&p, &p.two);
    wait_phase(&p.b, p.id, LEATI_PHASE_FAILED);
    expect_failure(&p, 0,
                   "taskmanager 1 (host, pid 4701) died of signal 11 (SIGSEGV) in operator"
                   " \"split\" (1/2)");
    expect_failure(&p, 1, "connection lost");
    expect_failure(&p, 2, "");
    fake_stop(&p.two);
    boss_stop(&p.b);
}

Test(manager, a_loss_while_outputs_are_made_visible_is_told_so)
{
    pair p;
    pair_start(&p);
    say_over(&p.one, p.attempt, true);
    say_over(&p.two, p.attempt, true);
    (void)expect_conclude(&p.one, p.attempt);
    (void)expect_conclude(&p.two, p.attempt);
    fake_stop(&p.one);
    say_concluded(&p.two, p.attempt, NULL);
    wait_phase(&p.b, p.id, LEATI_PHASE_FAILED);
    char text[LEATI_REASON_SIZE];
    failure_of(&p.b, p.id, 0, text);
    cr_expect(strstr(text, "some of them may be, and others not") != NULL, "\"%s\"", text);
    fake_stop(&p.two);
    boss_stop(&p.b);
}

Test(manager, a_loss_after_the_last_word_does_no_harm)
{
    pair p;
    pair_start(&p);
    say_over(&p.one, p.attempt, true);
    say_over(&p.two, p.attempt, true);
    (void)expect_conclude(&p.one, p.attempt);
    (void)expect_conclude(&p.two, p.attempt);
    say_concluded(&p.one, p.attempt, NULL);
    while (slots_used(&p.b) == 2) // what was not sent yet would be dropped
        sched_yield();
    fake_stop(&p.one);
    wait_members(&p.b, 1);
    say_concluded(&p.two, p.attempt, NULL);
    wait_phase(&p.b, p.id, LEATI_PHASE_FINISHED);
    fake_stop(&p.two);
    boss_stop(&p.b);
}

Test(manager, tasks_that_stop_without_a_word_fail_the_job)
{
    pair p;
    pair_start(&p);
    say_over(&p.one, p.attempt, true);
    say_over(&p.two, p.attempt, false);
    cr_expect(!expect_conclude(&p.one, p.attempt) && !expect_conclude(&p.two, p.attempt));
    say_concluded(&p.one, p.attempt, NULL);
    say_concluded(&p.two, p.attempt, NULL);
    wait_phase(&p.b, p.id, LEATI_PHASE_FAILED);
    expect_failure(&p, 0, "its tasks have stopped, and no task manager has said why");
    pair_stop(&p);
}

Test(manager, a_task_manager_that_gave_up_without_a_word_fails_its_jobs_when_it_goes)
{
    pair p;
    pair_start(&p);
    say_over(&p.one, p.attempt, false);
    say_concluded(&p.one, p.attempt, NULL);
    while (slots_used(&p.b) == 2)
        sched_yield();
    fake_stop(&p.one);
    expect_cancel(&p.two, p.attempt);
    say_over(&p.two, p.attempt, false);
    (void)expect_conclude(&p.two, p.attempt);
    say_concluded(&p.two, p.attempt, NULL);
    wait_phase(&p.b, p.id, LEATI_PHASE_FAILED);
    char got[LEATI_REASON_SIZE];
    failure_of(&p.b, p.id, 0, got);
    cr_expect(strstr(got, "taskmanager 1 (host, pid 4701) was lost: ") == got, "%s", got);
    fake_stop(&p.two);
    boss_stop(&p.b);
}

// --- cancelling ---

Test(manager, cancels_in_every_phase)
{
    pair p;
    pair_start(&p);
    char waiting[LEATI_ID_SIZE];
    submit_simple(&p.b, 1, waiting);
    wait_phase(&p.b, waiting, LEATI_PHASE_CREATED);
    cancel(&p.b, waiting);
    wait_phase(&p.b, waiting, LEATI_PHASE_CANCELED);
    cancel(&p.b, p.id);
    wait_phase(&p.b, p.id, LEATI_PHASE_CANCELLING);
    cancel(&p.b, p.id);
    expect_cancel(&p.one, p.attempt);
    expect_cancel(&p.two, p.attempt);
    say_failed(&p.one, p.attempt, false, "in the meantime");
    say_over(&p.one, p.attempt, true);
    end_without_commit(&p, &p.two);
    cr_expect(!expect_conclude(&p.one, p.attempt));
    cancel(&p.b, p.id);
    say_concluded(&p.one, p.attempt, NULL);
    wait_phase(&p.b, p.id, LEATI_PHASE_CANCELED);
    pthread_mutex_lock(&p.b.manager->lock);
    cr_expect(leati_manager_cancel(p.b.manager, job_of(&p.b, p.id)) == LEAT_ESTATE);
    pthread_mutex_unlock(&p.b.manager->lock);
    cr_expect(slots_used(&p.b) == 0);
    pair_stop(&p);
}

Test(manager, a_loss_in_cancelling_ends_in_canceled)
{
    pair p;
    pair_start(&p);
    cancel(&p.b, p.id);
    fake_stop(&p.one);
    end_without_commit(&p, &p.two);
    wait_phase(&p.b, p.id, LEATI_PHASE_CANCELED);
    fake_stop(&p.two);
    boss_stop(&p.b);
}

Test(manager, a_commit_under_way_is_not_cancelled)
{
    pair p;
    pair_start(&p);
    say_over(&p.one, p.attempt, true);
    say_over(&p.two, p.attempt, true);
    (void)expect_conclude(&p.one, p.attempt);
    (void)expect_conclude(&p.two, p.attempt);
    cancel(&p.b, p.id);
    say_concluded(&p.one, p.attempt, NULL);
    say_concluded(&p.two, p.attempt, NULL);
    wait_phase(&p.b, p.id, LEATI_PHASE_FINISHED);
    pair_stop(&p);
}

// --- questions ---

Test(manager, questions_and_answers_are_passed_on)
{
    pair p;
    pair_start(&p);
    leati_msg_ask ask = {p.attempt, 77, 1, 5, 0, {(const uint8_t *)"?", 1}}, got;
    fake_send(&p.one, LEATI_MESSAGE_ASK, LEAT_TYPE(leati_msg_ask), &ask);
    fake_expect(&p.two, LEATI_MESSAGE_ASK, LEAT_TYPE(leati_msg_ask), &got);
    cr_expect(got.process == 0 && got.token == 77 && got.node == 5 && got.bytes.size == 1);
    got.bytes = (leat_bytes){(const uint8_t *)"!!", 2};
    fake_send(&p.two, LEATI_MESSAGE_ANSWER, LEAT_TYPE(leati_msg_ask), &got);
    fake_expect(&p.one, LEATI_MESSAGE_ANSWER, LEAT_TYPE(leati_msg_ask), &got);
    cr_expect(got.token == 77 && got.err == 0 && got.bytes.size == 2);
    ask.process = 2; // there is none
    fake_send(&p.one, LEATI_MESSAGE_ASK, LEAT_TYPE(leati_msg_ask), &ask);
    fake_expect(&p.one, LEATI_MESSAGE_ANSWER, LEAT_TYPE(leati_msg_ask), &got);
    cr_expect(got.token == 77 && got.err == LEAT_EINVAL);
    fake_stop(&p.two);
    wait_members(&p.b, 1);
    ask.process = 1;
    fake_send(&p.one, LEATI_MESSAGE_ASK, LEAT_TYPE(leati_msg_ask), &ask);
    fake_expect(&p.one, LEATI_MESSAGE_ANSWER, LEAT_TYPE(leati_msg_ask), &got);
    cr_expect(got.err == LEAT_ECLOSED);
    fake_stop(&p.one);
    boss_stop(&p.b);
}

// --- times ---

Test(manager, refuses_heartbeats_too_rare_for_their_timeout)
{
    boss b;
    char why[300] = "";
    boss_init(&b);
    boss_set(&b, LEATI_CONFIG_HEARTBEAT_INTERVAL, 2501); // of 5000
    cr_expect(leati_manager_open(&b.options, &b.manager, why, sizeof why) == LEAT_EINVAL);
    cr_expect_str_eq(why, "cluster.heartbeat-interval (2501 ms) is more than half of "
                          "cluster.heartbeat-timeout (5 s)");
    boss_set(&b, LEATI_CONFIG_HEARTBEAT_INTERVAL, 2500);
    boss_start(&b);
    boss_stop(&b);
}

Test(manager, tells_of_its_own_absence_when_it_loses_a_task_manager_after_it)
{
    pair p;
    char got[LEATI_REASON_SIZE];
    pair_start(&p);
    pthread_mutex_lock(&p.b.manager->lock);
    while (p.b.manager->checked_ns == 0) // its thread has not looked yet
        pthread_cond_wait(&p.b.manager->changed, &p.b.manager->lock);
    p.b.manager->checked_ns -= INT64_C(20000000000);
    pthread_mutex_unlock(&p.b.manager->lock);
    fake_stop(&p.one);
    wait_phase(&p.b, p.id, LEATI_PHASE_FAILING);
    failure_of(&p.b, p.id, 0, got);
    cr_expect(strstr(got, "taskmanager 1 (host, pid 4701) was lost: ") == got, "%s", got);
    cr_expect(strstr(got, "; the job manager itself was away for 2") != NULL, "%s", got);
    fake_stop(&p.two);
    boss_stop(&p.b);
}

// --- the end ---

Test(manager, its_end_cancels_all_jobs)
{
    pair p;
    pair_start(&p);
    leati_manager_stop(p.b.manager);
    expect_cancel(&p.one, p.attempt);
    expect_cancel(&p.two, p.attempt);
    char id[LEATI_ID_SIZE], why[200] = "";
    submission s;
    simple_submission(&s, 1);
    cr_expect(leati_manager_submit(p.b.manager, &s.job, false, id, why, sizeof why) ==
              LEAT_ECLOSED);
    free(s.graph);
    say_over(&p.one, p.attempt, false);
    end_without_commit(&p, &p.two);
    (void)expect_conclude(&p.one, p.attempt);
    say_concluded(&p.one, p.attempt, NULL);
    wait_phase(&p.b, p.id, LEATI_PHASE_CANCELED);
    boss_stop(&p.b);
    fake_wait_closed(&p.one);
    fake_stop(&p.one);
    fake_stop(&p.two);
}

Test(manager, a_folder_is_of_one_manager_only)
{
    boss b;
    leati_manager *second = NULL;
    char why[300] = "";
    boss_init(&b);
    boss_start(&b);
    put_artifact(&b);
    cr_expect(leati_manager_open(&b.options, &second, why, sizeof why) == LEAT_EEXIST);
    cr_expect(strstr(why, "is in use by another job manager") != NULL, "\"%s\"", why);
    char path[LEATI_PATH_SIZE];
    cr_expect(leati_artifact_path(b.manager, SO_HASH, path) && access(path, R_OK) == 0);
    boss_stop(&b);
}
