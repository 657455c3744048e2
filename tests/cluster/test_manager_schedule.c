// SPDX-License-Identifier: Apache-2.0
// Which jobs get slots, when, and where.
#include "tests/cluster/manager_testing.h"

// The participants' slots as "1:2 3:1" (index of the task manager : slots), in the order of their
// numbers; "" when the job has none.
static void placement(boss *b, const char *id, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    pthread_mutex_lock(&b->manager->lock);
    leati_managed_job *job = job_of(b, id);
    for (uint32_t i = 0; i < job->participant_count && used < size; i++) {
        leati_participant *p = &job->participants[i];
        used += (size_t)snprintf(text + used, size - used, "%s%u:%u", i ? " " : "",
                                 p->member ? p->member->index : 0, p->slots);
    }
    pthread_mutex_unlock(&b->manager->lock);
}

static void expect_placement(boss *b, const char *id, const char *expected)
{
    char text[200];
    placement(b, id, text, sizeof text);
    cr_expect_str_eq(text, expected);
}

static void finish(fake *f, uint64_t attempt)
{
    say_over(f, attempt, true);
    (void)expect_conclude(f, attempt);
    say_concluded(f, attempt, NULL);
}

Test(schedule, slots_are_spread_over_the_task_managers)
{
    boss b;
    fake f[3];
    char id[LEATI_ID_SIZE];
    boss_init(&b);
    boss_start(&b);
    put_artifact(&b);
    // In another order than their indices.
    fake_start(&f[2], &b, 3, 4);
    fake_start(&f[0], &b, 1, 2);
    fake_start(&f[1], &b, 2, 2);
    submit_simple(&b, 1, id);
    expect_placement(&b, id, "3:1");
    // 3 has three left, the others two each.
    submit_simple(&b, 4, id);
    expect_placement(&b, id, "3:2 1:1 2:1");
    submit_simple(&b, 3, id);
    expect_placement(&b, id, "1:1 2:1 3:1");
    submit_simple(&b, 1, id);
    expect_placement(&b, id, "");
    for (int i = 0; i < 3; i++)
        fake_stop(&f[i]);
    boss_stop(&b);
}

Test(schedule, all_slots_or_none_and_the_oldest_first)
{
    boss b;
    fake f;
    char first[LEATI_ID_SIZE], wide[LEATI_ID_SIZE], narrow[LEATI_ID_SIZE], huge[LEATI_ID_SIZE];
    boss_init(&b);
    boss_start(&b);
    put_artifact(&b);
    fake_start(&f, &b, 1, 2);
    submit_simple(&b, 1, first);
    submit_simple(&b, 3, huge); // could not run with all slots free: is passed over
    submit_simple(&b, 2, wide);
    submit_simple(&b, 1, narrow);
    uint64_t attempt = expect_deploy(&f);
    wait_phase(&b, wide, LEATI_PHASE_CREATED);
    wait_phase(&b, narrow, LEATI_PHASE_CREATED);
    finish(&f, attempt);
    wait_phase(&b, first, LEATI_PHASE_FINISHED);
    attempt = expect_deploy(&f);
    expect_placement(&b, wide, "1:2");
    wait_phase(&b, narrow, LEATI_PHASE_CREATED);
    finish(&f, attempt);
    attempt = expect_deploy(&f);
    expect_placement(&b, narrow, "1:1");
    finish(&f, attempt);
    wait_phase(&b, narrow, LEATI_PHASE_FINISHED);
    wait_phase(&b, huge, LEATI_PHASE_CREATED);
    fake g;
    fake_start(&g, &b, 2, 1);
    (void)expect_deploy(&g);
    expect_placement(&b, huge, "1:2 2:1");
    fake_stop(&f);
    fake_stop(&g);
    boss_stop(&b);
}

Test(schedule, subtasks_of_one_index_share_a_slot_and_groups_do_not)
{
    boss b;
    fake f[3];
    submission s;
    char id[LEATI_ID_SIZE];
    leat_env *env = new_env(1);
    // Vertices: source (1), middle (2) of the default group; sink (1) of its own.
    leat_stream *in = source(env, "s");
    leat_stream *middle = leat_parallelism(map(leat_rebalance(in), "m"), 2);
    leat_slot_group(sink(leat_rebalance(middle), "k"), "own");
    make_submission(&s, env);
    boss_init(&b);
    boss_start(&b);
    put_artifact(&b);
    for (uint32_t i = 0; i < 3; i++)
        fake_start(&f[i], &b, i + 1, 1);
    submit(&b, &s, false, id);
    leati_msg_deploy deploy;
    fake_expect(&f[1], LEATI_MESSAGE_DEPLOY, LEAT_TYPE(leati_msg_deploy), &deploy);
    const uint32_t *of = deploy.process_of.items;
    cr_assert(deploy.process_of.count == 4 && deploy.processes.count == 3);
    cr_expect(deploy.self == 1 && deploy.number == 0);
    cr_expect(of[0] == 0 && of[1] == 0 && of[2] == 1 && of[3] == 2);
    const leati_msg_process *processes = deploy.processes.items;
    cr_expect(processes[2].name.size == strlen("taskmanager 3 (host, pid 4703)"));
    cr_expect(deploy.job.graph.size == s.job.graph.size && deploy.job_id.size == 32);
    free(s.graph);
    for (int i = 0; i < 3; i++)
        fake_stop(&f[i]);
    boss_stop(&b);
}

Test(schedule, a_loop_stays_in_one_process)
{
    boss b;
    fake f[2];
    submission s;
    char id[LEATI_ID_SIZE], text[LEATI_REASON_SIZE];
    leat_env *env = new_env(2);
    leat_stream *loop = leat_iterate(source(env, "s"), 1000);
    leat_stream *body = map(loop, "body");
    leat_close_with(loop, body);
    sink(body, "k");
    make_submission(&s, env);
    boss_init(&b);
    boss_set(&b, LEATI_CONFIG_SLOT_TIMEOUT, 200);
    boss_start(&b);
    put_artifact(&b);
    fake_start(&f[0], &b, 1, 1);
    submit(&b, &s, false, id);
    wait_phase(&b, id, LEATI_PHASE_FAILED);
    failure_of(&b, id, 0, text);
    cr_expect_str_eq(text, "needs 2 slots in one task manager, as it has a loop, and the largest"
                           " offers 1 (at most 1 free in one)");
    fake_start(&f[1], &b, 2, 3);
    submit(&b, &s, false, id);
    (void)expect_deploy(&f[1]);
    expect_placement(&b, id, "2:2");
    free(s.graph);
    fake_stop(&f[0]);
    fake_stop(&f[1]);
    boss_stop(&b);
}

Test(schedule, a_job_that_gets_no_slots_fails_with_what_there_is)
{
    boss b;
    fake f[2];
    char busy[LEATI_ID_SIZE], id[LEATI_ID_SIZE], text[LEATI_REASON_SIZE];
    boss_init(&b);
    boss_set(&b, LEATI_CONFIG_SLOT_TIMEOUT, 100);
    boss_start(&b);
    put_artifact(&b);
    submit_simple(&b, 1, id);
    wait_phase(&b, id, LEATI_PHASE_FAILED);
    failure_of(&b, id, 0, text);
    cr_expect_str_eq(text, "needs 1 slot, and no task manager has registered");
    fake_start(&f[0], &b, 1, 1);
    fake_start(&f[1], &b, 2, 2);
    submit_simple(&b, 2, busy);
    submit_simple(&b, 4, id);
    wait_phase(&b, id, LEATI_PHASE_FAILED);
    failure_of(&b, id, 0, text);
    cr_expect_str_eq(text, "needs 4 slots, and 2 task managers offer 3 (1 of them free)");
    fake_stop(&f[0]);
    fake_stop(&f[1]);
    boss_stop(&b);
}

Test(schedule, two_hundred_jobs_at_once_all_end)
{
    enum { JOBS = 200 };
    boss b;
    fake f;
    static char ids[JOBS][LEATI_ID_SIZE];
    boss_init(&b);
    boss_set(&b, LEATI_CONFIG_JOBS_KEPT, JOBS);
    boss_start(&b);
    put_artifact(&b);
    fake_start(&f, &b, 1, 3);
    for (int i = 0; i < JOBS; i++)
        submit_simple(&b, 1, ids[i]);
    for (int i = 0; i < JOBS; i++)
        finish(&f, expect_deploy(&f));
    for (int i = 0; i < JOBS; i++)
        wait_phase(&b, ids[i], LEATI_PHASE_FINISHED);
    cr_expect(slots_used(&b) == 0);
    fake_stop(&f);
    boss_stop(&b);
}
