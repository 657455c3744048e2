// SPDX-License-Identifier: Apache-2.0
// The life of task managers and of jobs, as a job manager sees it.
#include "tests/cluster/manager_pair.h"

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

// The address that others are given.
Test(manager, who_listens_everywhere_is_reached_where_it_has_come_from)
{
    static const char *const addresses[][2] = {
        {"tcp://0.0.0.0:4711", "tcp://127.0.0.1:4711"},
        {"tcp://[::]:4711 ipc:///a b", "tcp://127.0.0.1:4711 ipc:///a b"},
        {"tcp://10.1.2.3:4711", "tcp://10.1.2.3:4711"},
    };
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        boss b;
        fake f;
        leati_msg_registered answer;
        boss_init(&b);
        boss_start(&b);
        fake_connect(&f, &b);
        leati_msg_register r = fake_registration("0123456789abcdef0123456789abcdef", 1, 1);
        r.data_address = leati_text(addresses[i][0]);
        fake_send(&f, LEATI_MESSAGE_REGISTER, LEAT_TYPE(leati_msg_register), &r);
        fake_expect(&f, LEATI_MESSAGE_REGISTERED, LEAT_TYPE(leati_msg_registered), &answer);
        wait_members(&b, 1);
        pthread_mutex_lock(&b.manager->lock);
        cr_expect_str_eq(b.manager->members->data_address, addresses[i][1]);
        pthread_mutex_unlock(&b.manager->lock);
        fake_stop(&f);
        boss_stop(&b);
    }
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
