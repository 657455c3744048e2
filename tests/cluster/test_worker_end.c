// SPDX-License-Identifier: Apache-2.0
// How task managers stop jobs, lose their job manager, and die.
#include "tests/cluster/worker_start.h"

// --- stopping ---

Test(worker, stops_fetching_when_it_is_cancelled)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("sum", "10", "0"), 1);
    f.artifacts[0].held = true;
    uint64_t attempt = deploy(&f, &j, 1);
    pthread_mutex_lock(&f.lock);
    while (f.artifacts[0].asked == 0)
        pthread_cond_wait(&f.changed, &f.lock);
    pthread_mutex_unlock(&f.lock);
    tell_end(&f, LEATI_MESSAGE_CANCEL, attempt, false);
    cr_expect(!wait_over(&f, attempt));
    conclude(&f, attempt, false);
    cr_expect(look_said(&f, LEATI_MESSAGE_FAILED, attempt) == NULL);
    finish();
}

Test(worker, prints_no_further_ahead_than_the_window)
{
    start(1, NULL);
    f.take = false;
    // A million lines; the sums come at the end, so the numbers themselves are printed.
    job_init(&f, &j, leati_many_main, "many.so", ARGS("print", "1000000"), 1);
    uint64_t attempt = deploy(&f, &j, 1);
    pthread_mutex_lock(&f.lock);
    while (f.prints < LEATI_OUTPUT_WINDOW)
        pthread_cond_wait(&f.changed, &f.lock);
    pthread_mutex_unlock(&f.lock);
    // It has had time to send more when it has said how it is doing, twice.
    free_said(wait_said(&f, LEATI_MESSAGE_REPORT, attempt));
    free_said(wait_said(&f, LEATI_MESSAGE_REPORT, attempt));
    cr_expect(f.prints == LEATI_OUTPUT_WINDOW);
    tell_end(&f, LEATI_MESSAGE_CANCEL, attempt, false);
    cr_expect(!wait_over(&f, attempt));
    conclude(&f, attempt, false);
    cr_expect(look_said(&f, LEATI_MESSAGE_FAILED, attempt) == NULL);
    finish();
}

Test(worker, ends_itself_when_a_task_does_not_stop)
{
    start(1, "taskmanager.cancel-timeout=200 ms");
    job_init(&f, &j, leati_many_main, "many.so", ARGS("stuck"), 1);
    uint64_t attempt = deploy(&f, &j, 1);
    wait_stage(attempt, "RUNNING");
    wait_stage(attempt, "RUNNING");
    free_said(wait_said(&f, LEATI_MESSAGE_REPORT, attempt));
    tell_end(&f, LEATI_MESSAGE_CANCEL, attempt, false);
    said *s = wait_said(&f, LEATI_MESSAGE_CRASH, attempt);
    const leati_msg_failed *crash = s->record;
    cr_expect(contains(crash->text, "slow sink") && contains(crash->text, "200 ms"), "%.*s",
              (int)crash->text.size, crash->text.data);
    free_said(s);
    int status = wait_end(&f, 1);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 70);
    finish();
}

Test(worker, ends_well_in_the_middle_of_a_job)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("slow", "1000"), 1);
    uint64_t attempt = deploy(&f, &j, 1);
    wait_stage(attempt, "RUNNING");
    kill(f.pids[0], SIGTERM);
    int status = wait_end(&f, 1);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_expect(is_empty("1/attempts"));
    wait_worker(&f, 1, false); // all that it has said has come
    said *s = wait_said(&f, LEATI_MESSAGE_FAILED, attempt);
    const leati_msg_failed *failed = s->record;
    cr_expect(!failed->consequence && contains(failed->text, " was told to end"), "%.*s",
              (int)failed->text.size, failed->text.data);
    free_said(s);
    cr_expect(!wait_over(&f, attempt));
    finish();
}

Test(worker, says_that_it_was_told_to_end_at_every_moment)
{
    for (useconds_t i = 0; i < 10; i++) {
        start(1, NULL);
        job_init(&f, &j, leati_many_main, "many.so", ARGS("slow", "1000"), 1);
        uint64_t attempt = deploy(&f, &j, 1);
        wait_stage(attempt, "DEPLOYING");
        usleep(i * 1000);
        kill(f.pids[0], SIGTERM);
        int status = wait_end(&f, 1);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        cr_expect(failed_with(attempt, LEAT_ECANCELLED, " was told to end"));
        finish();
    }
}

Test(worker, that_the_job_manager_lets_go_gives_no_reason)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("slow", "1000"), 1);
    uint64_t attempt = deploy(&f, &j, 1);
    wait_stage(attempt, "RUNNING");
    pthread_mutex_lock(&f.lock);
    cr_expect(leati_rpc_send(f.workers[0], LEATI_MESSAGE_SHUTDOWN, NULL, NULL) == LEAT_OK);
    pthread_mutex_unlock(&f.lock);
    int status = wait_end(&f, 1);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_expect(!wait_over(&f, attempt));
    cr_expect(!look_said(&f, LEATI_MESSAGE_FAILED, attempt));
    finish();
}

// From before the job file is there to after the last record; the moments are further apart on a
// busy machine, and others then.
Test(worker, can_be_cancelled_at_every_moment)
{
    start(2, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("sum", "20000", "0"), 2);
    for (useconds_t i = 0; i < 100; i++) {
        uint64_t attempt = deploy(&f, &j, 2);
        usleep(i * 250);
        tell_end(&f, LEATI_MESSAGE_CANCEL, attempt, false);
        wait_over(&f, attempt);
        wait_over(&f, attempt);
        tell_end(&f, LEATI_MESSAGE_CONCLUDE, attempt, false);
        free_said(wait_said(&f, LEATI_MESSAGE_CONCLUDED, attempt));
        free_said(wait_said(&f, LEATI_MESSAGE_CONCLUDED, attempt));
    }
    cr_expect(is_empty("1/attempts") && is_empty("2/attempts"));
    finish();
}

Test(worker, answers_for_attempts_that_it_does_not_have)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("sum", "10", "0"), 1);
    tell_end(&f, LEATI_MESSAGE_CANCEL, 4711, false);
    cr_expect(!wait_over(&f, 4711));
    conclude(&f, 4711, false);
    finish();
}

// --- the job manager ---

Test(worker, drops_its_attempts_with_the_job_manager_and_comes_back)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("slow", "1000"), 1);
    uint64_t lost = deploy(&f, &j, 1);
    wait_stage(lost, "RUNNING");
    char address[128];
    memcpy(address, f.address, sizeof address);
    fake_vanish(&f);
    fake_listen(&f, address);
    wait_worker(&f, 1, true);
    cr_expect(is_empty("1/attempts"));
    job_fini(&j);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("sum", "10", "0"), 1);
    uint64_t attempt = deploy(&f, &j, 1);
    cr_expect(wait_over(&f, attempt));
    conclude(&f, attempt, true);
    finish();
}

Test(worker, can_lose_the_job_manager_at_every_moment)
{
    start(2, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("sum", "20000", "0"), 2);
    char address[128];
    memcpy(address, f.address, sizeof address);
    for (useconds_t i = 0; i < 20; i++) {
        deploy(&f, &j, 2);
        usleep(i * 1500);
        fake_vanish(&f);
        fake_listen(&f, address);
        wait_worker(&f, 1, true);
        wait_worker(&f, 2, true);
    }
    uint64_t attempt = deploy(&f, &j, 2);
    cr_expect(wait_over(&f, attempt));
    cr_expect(wait_over(&f, attempt));
    tell_end(&f, LEATI_MESSAGE_CONCLUDE, attempt, true);
    free_said(wait_said(&f, LEATI_MESSAGE_CONCLUDED, attempt));
    free_said(wait_said(&f, LEATI_MESSAGE_CONCLUDED, attempt));
    cr_expect(is_empty("1/attempts") && is_empty("2/attempts"));
    finish();
}

Test(worker, gives_up_when_there_is_no_job_manager)
{
    fake_init(&f);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("sum", "10", "0"), 1);
    fake_vanish(&f);
    worker_spawn(&f, 1, "taskmanager.registration-timeout=300 ms");
    int status = wait_end(&f, 1);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    finish();
}

// --- crashes ---

// A recursion that has filled the stack may hide which operator of the chain has begun it.
#define BOOMS_TASK " in one of the operators of \"boom -> discard\" (1/1)"

// `or_where` is what may stand there as well.
static void crash(const char *how, int signal, const char *said_of_it, const char *or_where)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("crash", how, "5"), 1);
    uint64_t attempt = deploy(&f, &j, 1);
    said *s = wait_said(&f, LEATI_MESSAGE_CRASH, attempt);
    const leati_msg_failed *crash = s->record;
    cr_expect(contains(crash->text, said_of_it), "%.*s", (int)crash->text.size, crash->text.data);
    cr_expect(contains(crash->text, " in operator \"boom\" (1/1)") ||
                  (or_where && contains(crash->text, or_where)),
              "%.*s", (int)crash->text.size, crash->text.data);
    free_said(s);
    int status = wait_end(&f, 1);
    if (signal)
        cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == signal, "status %x", status);
    else
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 70, "status %x", status);
    finish();
}

Test(worker, tells_a_segmentation_fault)
{
    crash("segv", SIGSEGV, "signal 11 (SIGSEGV)", NULL);
}

Test(worker, tells_an_abort)
{
    crash("abort", SIGABRT, "signal 6 (SIGABRT)", NULL);
}

Test(worker, tells_an_arithmetic_fault)
{
    crash("fpe", SIGFPE, "signal 8 (SIGFPE)", NULL);
}

Test(worker, tells_a_stack_overflow)
{
    crash("overflow", SIGSEGV, "its stack has overflowed", BOOMS_TASK);
}

// By frames of which each is larger than a page, and could begin beyond a small guard.
Test(worker, tells_a_stack_overflow_by_large_frames)
{
    crash("leap", SIGSEGV, "its stack has overflowed", BOOMS_TASK);
}

Test(worker, tells_a_call_of_exit)
{
    crash("exit", 0, "a call of exit()", NULL);
}

Test(worker, tells_a_crash_in_the_job_function)
{
    start(1, NULL);
    job_init(&f, &j, leati_many_main, "many.so", ARGS("build", "crash"), 1);
    uint64_t attempt = deploy(&f, &j, 1);
    said *s = wait_said(&f, LEATI_MESSAGE_CRASH, attempt);
    const leati_msg_failed *crash = s->record;
    cr_expect(contains(crash->text, "signal 11 (SIGSEGV) in the job function"));
    free_said(s);
    cr_expect(WIFSIGNALED(wait_end(&f, 1)));
    finish();
}
