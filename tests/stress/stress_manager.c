// SPDX-License-Identifier: Apache-2.0
// A job manager with task managers that do anything: finish, fail, crash, go away in the middle,
// come back; while jobs are submitted, cancelled, asked about and forgotten at once. Every job
// ends, in a state that fits its failures, and at the end no slot is in use. A watchdog ends the
// program when a job takes too long.
//
//     stress_manager [SECONDS [SEED]]
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "cluster/manager/manager_impl.h"
#include "leat/leat.h"
#include "nng_races.h"
#include "seeded.h"

enum { WORKERS = 3, CLIENTS = 4, PARALLELISM = 2, VERTICES = 2, SLOTS = 2, HELD = 16 };

// The XXH3-128 of "so\n".
#define SO_HASH "2dbb6498ee31e1b3e104480d46a416d9"

static leati_manager *manager;
static leati_msg_job submission;
static _Atomic bool clients_over, workers_over;
static _Atomic int64_t ended[3]; // FINISHED, FAILED, CANCELED

// --- task managers ---

typedef struct worker {
    uint32_t index;
    uint64_t random; // the reader thread's, once it is connected
    leati_rpc *rpc;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closed;
    uint64_t running[HELD]; // attempts that wait for a CANCEL
    leat_scratch *scratch;
} worker;

static void say_over(leati_rpc *rpc, uint64_t attempt, bool finished)
{
    leati_msg_over m = {.attempt = attempt, .finished = finished};
    (void)leati_rpc_send(rpc, LEATI_MESSAGE_OVER, LEAT_TYPE(leati_msg_over), &m);
}

static void say_failed(leati_rpc *rpc, uint32_t kind, uint64_t attempt, bool consequence)
{
    leati_msg_failed m = {attempt, LEAT_EUSER, 0, 0, consequence, leati_text("it went wrong")};
    (void)leati_rpc_send(rpc, kind, LEAT_TYPE(leati_msg_failed), &m);
}

static bool hold(worker *w, uint64_t attempt, bool add)
{
    for (uint32_t i = 0; i < HELD; i++) {
        if (w->running[i] != (add ? 0 : attempt))
            continue;
        w->running[i] = add ? attempt : 0;
        return true;
    }
    return false;
}

static void deployed(worker *w, leati_rpc *rpc, const leati_msg_deploy *deploy)
{
    const uint32_t *process_of = deploy->process_of.items;
    uint64_t attempt = deploy->attempt;
    if (deploy->process_of.count != VERTICES * PARALLELISM)
        wrong("tasks", (int64_t)deploy->process_of.count, 0);
    for (uint32_t i = 0; i < VERTICES * PARALLELISM; i++) {
        leati_msg_stage m = {attempt, i / PARALLELISM, i % PARALLELISM, leati_text("RUNNING")};
        if (process_of[i] == deploy->self)
            (void)leati_rpc_send(rpc, LEATI_MESSAGE_STAGE, LEAT_TYPE(leati_msg_stage), &m);
    }
    static const uint8_t line[] = "printed\n";
    leati_msg_output print = {attempt, 1 + next_random(&w->random, 2), 0, {line, sizeof line - 1}};
    (void)leati_rpc_send(rpc, LEATI_MESSAGE_OUTPUT, LEAT_TYPE(leati_msg_output), &print);
    leati_msg_ask ask = {
        .attempt = attempt, .token = attempt, .process = next_random(&w->random, 3)};
    (void)leati_rpc_send(rpc, LEATI_MESSAGE_ASK, LEAT_TYPE(leati_msg_ask), &ask);
    switch (next_random(&w->random, 12)) {
    case 0:
        say_failed(rpc, LEATI_MESSAGE_FAILED, attempt, false);
        say_over(rpc, attempt, false);
        break;
    case 1:
        say_failed(rpc, LEATI_MESSAGE_FAILED, attempt, true);
        say_over(rpc, attempt, false);
        break;
    case 2:
        say_failed(rpc, LEATI_MESSAGE_CRASH, attempt, false);
        leati_rpc_close(rpc, LEAT_ECLOSED, "crashed");
        break;
    case 3:
        leati_rpc_close(rpc, LEAT_ECLOSED, "gone");
        break;
    case 4:
    case 5:
        if (hold(w, attempt, true))
            break;
        say_over(rpc, attempt, true);
        break;
    default:
        say_over(rpc, attempt, true);
        break;
    }
}

static void concluding(worker *w, leati_rpc *rpc, uint64_t attempt)
{
    uint32_t what = next_random(&w->random, 20);
    leati_msg_failed m = {attempt, what == 0 ? LEAT_EIO : LEAT_OK,         UINT32_MAX, UINT32_MAX,
                          false,   leati_text(what == 0 ? "no space" : "")};
    if (what == 1)
        leati_rpc_close(rpc, LEAT_ECLOSED, "gone in the end");
    else
        (void)leati_rpc_send(rpc, LEATI_MESSAGE_CONCLUDED, LEAT_TYPE(leati_msg_failed), &m);
}

static leat_err said(leati_rpc *rpc, void *user, uint32_t kind, const uint8_t *bytes, size_t size)
{
    worker *w = user;
    leati_msg_deploy deploy;
    leati_msg_end end;
    leati_msg_ask ask;
    leat_scratch_reset(w->scratch);
    leat_err err = LEAT_OK;
    switch (kind) {
    case LEATI_MESSAGE_DEPLOY:
        err = leati_rpc_decode(LEAT_TYPE(leati_msg_deploy), bytes, size, &deploy, w->scratch);
        if (err == LEAT_OK)
            deployed(w, rpc, &deploy);
        break;
    case LEATI_MESSAGE_CANCEL:
        err = leati_rpc_decode(LEAT_TYPE(leati_msg_end), bytes, size, &end, w->scratch);
        if (err == LEAT_OK && hold(w, end.attempt, false))
            say_over(rpc, end.attempt, false);
        break;
    case LEATI_MESSAGE_CONCLUDE:
        err = leati_rpc_decode(LEAT_TYPE(leati_msg_end), bytes, size, &end, w->scratch);
        if (err == LEAT_OK)
            concluding(w, rpc, end.attempt);
        break;
    case LEATI_MESSAGE_ASK:
        err = leati_rpc_decode(LEAT_TYPE(leati_msg_ask), bytes, size, &ask, w->scratch);
        if (err == LEAT_OK)
            (void)leati_rpc_send(rpc, LEATI_MESSAGE_ANSWER, LEAT_TYPE(leati_msg_ask), &ask);
        break;
    default:
        break;
    }
    if (err != LEAT_OK)
        wrong("a message cannot be read", kind, err);
    return LEAT_OK;
}

static void closed(leati_rpc *rpc, void *user, leat_err err, const char *why)
{
    (void)rpc, (void)err, (void)why;
    worker *w = user;
    pthread_mutex_lock(&w->lock);
    w->closed = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void opened(leati_rpc *rpc, void *user, const leati_hello *peer)
{
    (void)rpc, (void)user, (void)peer;
}

static const leati_rpc_handlers handlers = {.opened = opened, .message = said, .closed = closed};

// One life of a task manager.
static void live(worker *w, uint64_t life)
{
    char address[160], why[200], id[LEATI_ID_SIZE];
    snprintf(address, sizeof address, "tcp://%s", manager->rpc_address);
    snprintf(id, sizeof id, "%u-%llu", w->index, (unsigned long long)life);
    leati_rpc_options options = {.allocator = leat_allocator_default(),
                                 .address = address,
                                 .hello = {.abi = LEAT_ABI},
                                 .dial_timeout_ms = 10000,
                                 .hello_timeout_ms = 10000,
                                 .handlers = &handlers,
                                 .user = w};
    snprintf(options.hello.version, sizeof options.hello.version, "%s", leat_version());
    snprintf(options.hello.process, sizeof options.hello.process, "%s", id);
    memset(w->running, 0, sizeof w->running);
    w->closed = false;
    if (leati_rpc_dial(&options, &w->rpc, why, sizeof why) != LEAT_OK)
        return;
    leati_msg_register m = {.id = leati_text(id),
                            .host = leati_text("host"),
                            .data_address = leati_text("tcp://127.0.0.1:1"),
                            .version = leati_text(leat_version()),
                            .index = w->index,
                            .slots = SLOTS,
                            .segment_size = 1};
    (void)leati_rpc_send(w->rpc, LEATI_MESSAGE_REGISTER, LEAT_TYPE(leati_msg_register), &m);
    pthread_mutex_lock(&w->lock);
    while (!w->closed && !atomic_load(&workers_over)) {
        struct timespec soon = leati_deadline(20);
        (void)pthread_cond_timedwait(&w->changed, &w->lock, &soon);
        if (!w->closed) {
            leati_msg_heartbeat beat = {.threads = 1};
            (void)leati_rpc_send(w->rpc, LEATI_MESSAGE_HEARTBEAT, LEAT_TYPE(leati_msg_heartbeat),
                                 &beat);
        }
    }
    pthread_mutex_unlock(&w->lock);
    leati_rpc_destroy(&w->rpc);
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    for (uint64_t life = 0; !atomic_load(&workers_over); life++)
        live(w, life);
    return NULL;
}

// --- clients ---

// The job has ended: its state and its failures fit each other.
static void check_ended(const leati_managed_job *job)
{
    bool failed = job->phase == LEATI_PHASE_FAILED;
    if (job->phase == LEATI_PHASE_FINISHED && job->failure_count > 0)
        wrong("finished with a failure", job->failure_count, 0);
    if (failed && (job->failure_count == 0 || !job->failures[0].root || !job->failures[0].text[0]))
        wrong("failed without a root", job->failure_count, 0);
    for (uint32_t i = 1; i < job->failure_count; i++)
        if (job->failures[i].root)
            wrong("two roots", i, 0);
    for (uint32_t i = 0; i < job->participant_count; i++)
        if (!job->participants[i].concluded)
            wrong("ended before a participant has concluded", i, 0);
    atomic_fetch_add(&ended[job->phase - LEATI_PHASE_FINISHED], 1);
}

// Whether it has ended, or is forgotten already.
static bool look(const char *id, bool attached)
{
    bool several, done = true;
    char text[64];
    uint64_t first;
    struct timespec soon = leati_deadline(5);
    pthread_mutex_lock(&manager->lock);
    leati_managed_job *job = leati_manager_find(manager, id, &several);
    if (job && !leati_phase_is_final(job->phase)) {
        (void)pthread_cond_timedwait(&manager->changed, &manager->lock, &soon);
        job = leati_manager_find(manager, id, &several);
    }
    if (job) {
        size_t size = leati_job_output(job, 0, text, sizeof text, &first);
        if (attached)
            leati_job_output_read(manager, job, first + size);
        done = leati_phase_is_final(job->phase);
        if (done)
            check_ended(job);
    }
    pthread_mutex_unlock(&manager->lock);
    return done;
}

static void cancel(const char *id)
{
    bool several;
    pthread_mutex_lock(&manager->lock);
    leati_managed_job *job = leati_manager_find(manager, id, &several);
    if (job)
        (void)leati_manager_cancel(manager, job);
    pthread_mutex_unlock(&manager->lock);
}

static void *client_main(void *arg)
{
    uint64_t random = *(const uint64_t *)arg;
    while (!atomic_load(&clients_over)) {
        char id[LEATI_ID_SIZE], why[300];
        bool attached = next_random(&random, 2);
        if (leati_manager_submit(manager, &submission, attached, id, why, sizeof why) != LEAT_OK) {
            fprintf(stderr, "%s\n", why);
            wrong("a job is not taken", 0, 0);
        }
        if (next_random(&random, 4) == 0)
            cancel(id);
        // Some wait for a CANCEL only.
        for (int looks = 0; !look(id, attached); looks++)
            if (looks >= 10)
                cancel(id);
        feed_watchdog();
    }
    return NULL;
}

// --- the round ---

static int make(leat_ctx *ctx, int64_t index, void *out)
{
    (void)ctx;
    *(int64_t *)out = index;
    return 0;
}

static int add(leat_ctx *ctx, void *acc, const void *in)
{
    (void)ctx;
    *(int64_t *)acc += *(const int64_t *)in;
    return 0;
}

static void make_submission(void)
{
    static uint8_t *bytes;
    static char digest[LEATI_ID_SIZE];
    leat_env *env = NULL;
    leati_job_graph *graph = NULL;
    size_t size = 0;
    if (leat_env_create(NULL, &env) != LEAT_OK)
        wrong("no environment", 0, 0);
    leat_env_set_parallelism(env, PARALLELISM);
    leat_stream *numbers = leat_generate(env, make, 10, 0, leat_type_scalar(LEAT_I64));
    leat_discard(leat_reduce(leat_key_by(numbers, ""), add));
    if (leati_job_graph_create(env, &graph) != LEAT_OK || graph->vertex_count != VERTICES ||
        leati_job_graph_encode(graph, &bytes, &size) != LEAT_OK)
        wrong("no graph", graph ? graph->vertex_count : 0, 0);
    snprintf(digest, sizeof digest, "%s", graph->digest);
    submission = (leati_msg_job){
        .name = leati_text("job"),
        .job_file = {.name = leati_text("job.so"), .hash = leati_text(SO_HASH), .size = 3},
        .digest = leati_text(digest),
        .graph = {bytes, size}};
    leati_job_graph_destroy(&graph);
    leat_env_destroy(&env);
}

static void put_artifact(const char *folder)
{
    char path[128], why[300];
    snprintf(path, sizeof path, "%s/upload", folder);
    FILE *file = fopen(path, "w");
    if (!file || fputs("so\n", file) < 0 || fclose(file) != 0 ||
        leati_artifact_put(manager, SO_HASH, path, why, sizeof why) != LEAT_OK)
        wrong("no artifact", 0, 0);
}

static void *loop_main(void *arg)
{
    leati_manager_loop(arg, -1);
    return NULL;
}

static void check_slots(void)
{
    pthread_mutex_lock(&manager->lock);
    for (const leati_member *member = manager->members; member; member = member->next)
        if (member->slots_used)
            wrong("slots are in use", member->slots_used, member->index);
    pthread_mutex_unlock(&manager->lock);
}

static void run(int seconds)
{
    char folder[] = "/tmp/leat-stress-XXXXXX", why[300] = "";
    leati_manager_options options = {.bind = "127.0.0.1", .folder = mkdtemp(folder)};
    leati_config_init(&options.config);
    options.config.value[LEATI_CONFIG_JOBS_KEPT] = 10;
    options.config.value[LEATI_CONFIG_JOB_OUTPUT] = 4096;
    options.config.value[LEATI_CONFIG_HEARTBEAT_INTERVAL] = 50;
    options.config.value[LEATI_CONFIG_HEARTBEAT_TIMEOUT] = 5000;
    if (leati_manager_open(&options, &manager, why, sizeof why) != LEAT_OK)
        wrong(why, 0, 0);
    make_submission();
    put_artifact(folder);
    static worker workers[WORKERS];
    uint64_t seeds[CLIENTS];
    pthread_t loop, threads[WORKERS + CLIENTS];
    pthread_create(&loop, NULL, loop_main, manager);
    for (uint32_t i = 0; i < WORKERS; i++) {
        workers[i].index = i + 1;
        workers[i].random = seed_now * 31 + i;
        pthread_mutex_init(&workers[i].lock, NULL);
        leati_cond_init(&workers[i].changed);
        if (leat_scratch_create(NULL, &workers[i].scratch) != LEAT_OK)
            wrong("no memory", 0, 0);
        pthread_create(&threads[i], NULL, worker_main, &workers[i]);
    }
    for (uint32_t i = 0; i < CLIENTS; i++) {
        seeds[i] = seed_now * 77 + i;
        pthread_create(&threads[WORKERS + i], NULL, client_main, &seeds[i]);
    }
    sleep((unsigned)seconds);
    // The clients end first: their jobs need the task managers.
    atomic_store(&clients_over, true);
    for (uint32_t i = 0; i < CLIENTS; i++)
        pthread_join(threads[WORKERS + i], NULL);
    check_slots();
    atomic_store(&workers_over, true);
    for (uint32_t i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    leati_manager_stop(manager);
    pthread_join(loop, NULL);
    leati_manager_close(&manager);
    if (rmdir(folder) != 0)
        wrong("files are left behind", 0, 0);
    leati_free(leat_allocator_default(), (void *)submission.graph.data);
    for (uint32_t i = 0; i < WORKERS; i++)
        leat_scratch_destroy(&workers[i].scratch);
}

int main(int argc, char **argv)
{
    int seconds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 5;
    seed_now = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
    start_watchdog();
    run(seconds);
    printf("seed %" PRIu64 ": %" PRId64 " jobs finished, %" PRId64 " failed, %" PRId64
           " were cancelled\n",
           seed_now, atomic_load(&ended[0]), atomic_load(&ended[1]), atomic_load(&ended[2]));
    return 0;
}
