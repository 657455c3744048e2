// SPDX-License-Identifier: Apache-2.0
// Which jobs are taken in, how they are found, and when they are forgotten.
#include "tests/cluster/manager_testing.h"

static void expect_not_taken(boss *b, const submission *s, leat_err err, const char *part)
{
    char id[LEATI_ID_SIZE], why[400] = "";
    cr_expect(leati_manager_submit(b->manager, &s->job, false, id, why, sizeof why) == err);
    cr_expect(strstr(why, part) != NULL, "\"%s\"", why);
    pthread_mutex_lock(&b->manager->lock);
    cr_expect(b->manager->jobs == NULL);
    pthread_mutex_unlock(&b->manager->lock);
}

Test(submission, a_submission_that_is_wrong_makes_no_job)
{
    boss b;
    submission s, bad;
    boss_init(&b);
    boss_start(&b);
    simple_submission(&s, 1);
    expect_not_taken(&b, &s, LEAT_ENOENT, "is not in the store: it has not been sent");
    put_artifact(&b);
    bad = s;
    bad.job.job_file.size = 4;
    expect_not_taken(&b, &bad, LEAT_EINVAL, "is said to have 4 bytes, and has 3");
    bad = s;
    bad.job.digest = leati_text("0123456789abcdef0123456789abcdef");
    expect_not_taken(&b, &bad, LEAT_ECORRUPT, "0123456789abcdef0123456789abcdef");
    bad = s;
    bad.job.graph.size--;
    expect_not_taken(&b, &bad, LEAT_ECORRUPT, "the job graph cannot be read");
    static const char *const names[] = {"", "..", "a/b", ".", "/x"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bad = s;
        bad.job.job_file.name = leati_text(names[i]);
        expect_not_taken(&b, &bad, LEAT_EINVAL, "the job file");
    }
    leat_str folder = leati_text("a/../../b");
    bad = s;
    bad.job.empty_dirs = (leat_list){&folder, 1};
    expect_not_taken(&b, &bad, LEAT_EINVAL, "a/../../b");
    free(s.graph);
    leat_env *env = new_env(1);
    sink(add(env, NULL, "source: collection", "c", LEATI_NODE_SOURCE | LEATI_NODE_LOCAL,
             LEATI_CHAIN_ALWAYS, str_type()),
         "k");
    make_submission(&s, env);
    expect_not_taken(&b, &s, LEAT_EGRAPH, "operator \"c\" (source: collection)");
    free(s.graph);
    boss_stop(&b);
}

Test(submission, so_many_jobs_and_no_more)
{
    boss b;
    submission s;
    char id[LEATI_ID_SIZE], why[200] = "";
    boss_init(&b);
    boss_set(&b, LEATI_CONFIG_JOBS_MAX, 2);
    boss_start(&b);
    put_artifact(&b);
    simple_submission(&s, 1);
    submit(&b, &s, false, id);
    submit(&b, &s, false, id);
    char more[LEATI_ID_SIZE];
    cr_expect(leati_manager_submit(b.manager, &s.job, false, more, why, sizeof why) ==
              LEAT_ENOBUFS);
    cr_expect_str_eq(why, "2 jobs have not ended, and no more are taken (cluster.jobs-max)");
    cancel(&b, id);
    submit(&b, &s, false, id);
    free(s.graph);
    boss_stop(&b);
}

Test(submission, finds_jobs_by_the_beginning_of_their_ids)
{
    boss b;
    char id[LEATI_ID_SIZE], other[LEATI_ID_SIZE], part[LEATI_ID_SIZE];
    bool several;
    boss_init(&b);
    boss_start(&b);
    put_artifact(&b);
    submit_simple(&b, 1, id);
    submit_simple(&b, 1, other);
    pthread_mutex_lock(&b.manager->lock);
    memcpy(job_of(&b, other)->id, id, 10); // the first ten digits are alike
    leati_managed_job *job = leati_manager_find(b.manager, id, &several);
    cr_expect(job && !several);
    snprintf(part, sizeof part, "%.11s", id);
    cr_expect(id[10] == other[10] || leati_manager_find(b.manager, part, &several) == job);
    snprintf(part, sizeof part, "%.10s", id);
    cr_expect(!leati_manager_find(b.manager, part, &several) && several);
    snprintf(part, sizeof part, "%.3s", id);
    cr_expect(!leati_manager_find(b.manager, part, &several) && !several);
    cr_expect(!leati_manager_find(b.manager, "zzzz", &several) && !several);
    pthread_mutex_unlock(&b.manager->lock);
    boss_stop(&b);
}

Test(submission, forgets_the_oldest_jobs_that_have_ended)
{
    boss b;
    char ids[5][LEATI_ID_SIZE];
    boss_init(&b);
    boss_set(&b, LEATI_CONFIG_JOBS_KEPT, 2);
    boss_start(&b);
    put_artifact(&b);
    for (int i = 0; i < 5; i++)
        submit_simple(&b, 1, ids[i]);
    // The newest one stays alive; of the others the last two that have ended are kept.
    for (int i = 0; i < 4; i++)
        cancel(&b, ids[i]);
    bool several, there;
    do {
        pthread_mutex_lock(&b.manager->lock);
        there = leati_manager_find(b.manager, ids[1], &several) != NULL;
        pthread_mutex_unlock(&b.manager->lock);
    } while (there);
    pthread_mutex_lock(&b.manager->lock);
    cr_expect(!leati_manager_find(b.manager, ids[0], &several));
    cr_expect(leati_manager_find(b.manager, ids[2], &several));
    cr_expect(leati_manager_find(b.manager, ids[3], &several));
    cr_expect(leati_manager_find(b.manager, ids[4], &several));
    pthread_mutex_unlock(&b.manager->lock);
    boss_stop(&b);
}

Test(submission, a_job_that_has_been_waited_for_stays_a_while)
{
    boss b;
    submission s;
    char waited[LEATI_ID_SIZE], other[LEATI_ID_SIZE];
    bool several, there;
    boss_init(&b);
    boss_set(&b, LEATI_CONFIG_JOBS_KEPT, 0);
    boss_start(&b);
    put_artifact(&b);
    simple_submission(&s, 1);
    submit(&b, &s, true, waited);
    submit(&b, &s, false, other);
    free(s.graph);
    cancel(&b, waited);
    cancel(&b, other);
    do {
        pthread_mutex_lock(&b.manager->lock);
        there = leati_manager_find(b.manager, other, &several) != NULL;
        pthread_mutex_unlock(&b.manager->lock);
    } while (there);
    pthread_mutex_lock(&b.manager->lock);
    leati_managed_job *job = leati_manager_find(b.manager, waited, &several);
    cr_assert(job);
    job->attached_seen_ns -= INT64_C(10000000000); // ten seconds later
    pthread_mutex_unlock(&b.manager->lock);
    leati_managed_forget(b.manager);
    pthread_mutex_lock(&b.manager->lock);
    cr_expect(!leati_manager_find(b.manager, waited, &several));
    pthread_mutex_unlock(&b.manager->lock);
    boss_stop(&b);
}
