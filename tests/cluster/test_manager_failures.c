// SPDX-License-Identifier: Apache-2.0
// Jobs that fail or are cancelled, as a job manager sees it.
#include <sched.h>

#include "tests/cluster/manager_pair.h"

// --- jobs that fail ---

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
