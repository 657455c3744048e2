// SPDX-License-Identifier: Apache-2.0
// A job manager that a test plays, and task managers as processes that have registered with it.
#ifndef TESTS_CLUSTER_WORKER_TESTING_H
#define TESTS_CLUSTER_WORKER_TESTING_H

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "cluster/message.h"
#include "cluster/rpc.h"
#include "graph/job_graph.h"

#define UNUSED __attribute__((unused))

enum { LONG_MS = 60000, PIECE = 256 * 1024, WORKERS = 3, ARTIFACTS = 24 };

// One message that a task manager has said.
typedef struct said {
    struct said *next;
    uint32_t kind, worker;
    uint64_t attempt; // of those that have one
    void *record;     // of the kind's type
} said;

typedef struct artifact {
    char hash[33];
    uint8_t *bytes;
    size_t size;
    uint32_t asked; // pieces
    bool spoilt;    // is sent with a wrong byte
    bool held;      // is not sent at all
} artifact;

typedef struct fake {
    char folder[64], address[128];
    leati_rpc_server *server;
    leat_scratch *scratch;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    said *first, **end;
    leati_rpc *workers[WORKERS]; // by index - 1; NULL: not there
    leati_msg_register *who[WORKERS];
    leati_rpc *dead[16];
    uint32_t dead_count;
    artifact artifacts[ARTIFACTS];
    uint32_t artifact_count;
    pid_t pids[WORKERS];
    bool take;       // what is printed is acknowledged
    uint64_t prints; // bytes of OUTPUT so far
    uint64_t next_attempt;
} fake;

UNUSED static leat_str str(const char *text)
{
    return (leat_str){text, strlen(text)};
}

UNUSED static bool contains(leat_str text, const char *part)
{
    return memmem(text.data, text.size, part, strlen(part)) != NULL;
}

// --- what is said ---

static const leat_type *type_of(uint32_t kind)
{
    switch (kind) {
    case LEATI_MESSAGE_REGISTER:
        return LEAT_TYPE(leati_msg_register);
    case LEATI_MESSAGE_HEARTBEAT:
        return LEAT_TYPE(leati_msg_heartbeat);
    case LEATI_MESSAGE_STAGE:
        return LEAT_TYPE(leati_msg_stage);
    case LEATI_MESSAGE_FAILED:
    case LEATI_MESSAGE_CRASH:
    case LEATI_MESSAGE_CONCLUDED:
        return LEAT_TYPE(leati_msg_failed);
    case LEATI_MESSAGE_OVER:
        return LEAT_TYPE(leati_msg_over);
    case LEATI_MESSAGE_REPORT:
        return LEAT_TYPE(leati_msg_report);
    case LEATI_MESSAGE_FETCH:
        return LEAT_TYPE(leati_msg_piece);
    case LEATI_MESSAGE_OUTPUT:
        return LEAT_TYPE(leati_msg_output);
    case LEATI_MESSAGE_LOG:
        return LEAT_TYPE(leati_msg_log);
    default:
        return LEAT_TYPE(leati_msg_ask);
    }
}

static void serve_piece(fake *f, leati_rpc *rpc, const leati_msg_piece *wanted)
{
    static uint8_t copy[PIECE];
    leati_msg_piece piece = {.hash = wanted->hash, .offset = wanted->offset};
    artifact *a = NULL;
    for (uint32_t i = 0; i < f->artifact_count && !a; i++)
        if (!memcmp(f->artifacts[i].hash, wanted->hash.data, 32))
            a = &f->artifacts[i];
    if (a && a->held) {
        a->asked++;
        pthread_cond_broadcast(&f->changed);
        return;
    }
    if (a) {
        size_t left = a->size - wanted->offset;
        a->asked++;
        piece.total = a->size;
        piece.bytes.size = left < PIECE ? left : PIECE;
        memcpy(copy, a->bytes + wanted->offset, piece.bytes.size);
        copy[0] ^= a->spoilt;
        piece.bytes.data = copy;
    } else {
        piece.refused = str("there is no such artifact");
    }
    (void)leati_rpc_send(rpc, LEATI_MESSAGE_CHUNK, LEAT_TYPE(leati_msg_piece), &piece);
}

static void welcome_locked(fake *f, leati_rpc *rpc, const leati_msg_register *who)
{
    uint32_t i = who->index - 1;
    void *copy;
    if (i >= WORKERS || leat_record_copy(NULL, LEAT_TYPE(leati_msg_register), who, &copy))
        return;
    if (f->workers[i])
        f->dead[f->dead_count++] = f->workers[i];
    f->workers[i] = rpc;
    leat_record_free(NULL, f->who[i]);
    f->who[i] = copy;
    (void)leati_rpc_send(rpc, LEATI_MESSAGE_REGISTERED, LEAT_TYPE(leati_msg_registered),
                         &(leati_msg_registered){.cluster = str("test"),
                                                 .heartbeat_interval_ms = 50,
                                                 .heartbeat_timeout_ms = LONG_MS});
}

static uint32_t index_of(const fake *f, const leati_rpc *rpc)
{
    uint32_t i = 0;
    while (i < WORKERS && f->workers[i] != rpc)
        i++;
    return i;
}

static void keep_locked(fake *f, leati_rpc *rpc, uint32_t kind, const void *record)
{
    said *s = calloc(1, sizeof *s);
    if (!s || leat_record_copy(NULL, type_of(kind), record, &s->record))
        abort();
    s->kind = kind;
    s->worker = index_of(f, rpc);
    memcpy(&s->attempt, record, sizeof s->attempt); // the first member of those that have one
    *f->end = s;
    f->end = &s->next;
}

static leat_err on_message(leati_rpc *rpc, void *user, uint32_t kind, const uint8_t *bytes,
                           size_t size)
{
    fake *f = user;
    union {
        leati_msg_register who;
        leati_msg_piece piece;
        leati_msg_output output;
        uint8_t any[512];
    } m;
    pthread_mutex_lock(&f->lock);
    leat_scratch_reset(f->scratch);
    leat_err err = leati_rpc_decode(type_of(kind), bytes, size, &m, f->scratch);
    if (!err && kind == LEATI_MESSAGE_REGISTER)
        welcome_locked(f, rpc, &m.who);
    else if (!err && kind == LEATI_MESSAGE_FETCH)
        serve_piece(f, rpc, &m.piece);
    else if (!err)
        keep_locked(f, rpc, kind, &m);
    if (!err && kind == LEATI_MESSAGE_OUTPUT) {
        f->prints += m.output.bytes.size;
        m.output.offset += m.output.bytes.size;
        m.output.bytes.size = 0;
        if (f->take)
            (void)leati_rpc_send(rpc, LEATI_MESSAGE_TAKEN, LEAT_TYPE(leati_msg_output), &m.output);
    }
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return err;
}

static void on_opened(leati_rpc *rpc, void *user, const leati_hello *peer)
{
}

static void on_closed(leati_rpc *rpc, void *user, leat_err err, const char *why)
{
    fake *f = user;
    pthread_mutex_lock(&f->lock);
    uint32_t i = index_of(f, rpc);
    if (i < WORKERS) {
        f->workers[i] = NULL;
        f->dead[f->dead_count++] = rpc;
    }
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static const leati_rpc_handlers fake_handlers = {
    .opened = on_opened, .message = on_message, .closed = on_closed};

// --- waiting ---

UNUSED static void free_said(said *s)
{
    if (s) {
        leat_record_free(NULL, s->record);
        free(s);
    }
}

static said *take_locked(fake *f, uint32_t kind, uint64_t attempt)
{
    for (said **at = &f->first; *at; at = &(*at)->next) {
        said *s = *at;
        if (s->kind != kind || (attempt && s->attempt != attempt))
            continue;
        *at = s->next;
        if (!s->next)
            f->end = at;
        return s;
    }
    return NULL;
}

// The first message of that kind (and attempt, unless 0), in the order in which they came; NULL
// when none comes.
UNUSED static said *wait_said(fake *f, uint32_t kind, uint64_t attempt)
{
    struct timespec deadline = leati_deadline(LONG_MS);
    pthread_mutex_lock(&f->lock);
    said *s;
    while (!(s = take_locked(f, kind, attempt)) &&
           pthread_cond_timedwait(&f->changed, &f->lock, &deadline) == 0)
        ;
    pthread_mutex_unlock(&f->lock);
    cr_assert(s != NULL, "no message %u of attempt %llu has come", (unsigned)kind,
              (unsigned long long)attempt);
    return s;
}

// What has come already, or NULL.
UNUSED static said *look_said(fake *f, uint32_t kind, uint64_t attempt)
{
    pthread_mutex_lock(&f->lock);
    said *s = take_locked(f, kind, attempt);
    pthread_mutex_unlock(&f->lock);
    return s;
}

UNUSED static void wait_worker(fake *f, uint32_t index, bool there)
{
    struct timespec deadline = leati_deadline(LONG_MS);
    int error = 0;
    pthread_mutex_lock(&f->lock);
    while ((f->workers[index - 1] != NULL) != there && !error)
        error = pthread_cond_timedwait(&f->changed, &f->lock, &deadline);
    pthread_mutex_unlock(&f->lock);
    cr_assert(error == 0, "task manager %u does not %s", (unsigned)index, there ? "come" : "go");
}

// --- processes ---

UNUSED static void fake_listen(fake *f, const char *address)
{
    char why[200];
    leati_rpc_options options = {.address = address,
                                 .hello = {.abi = LEAT_ABI, .process = "fake manager"},
                                 .hello_timeout_ms = 10000,
                                 .handlers = &fake_handlers,
                                 .user = f};
    snprintf(options.hello.version, sizeof options.hello.version, "%s", leat_version());
    leat_err err = leati_rpc_serve(&options, 16, &f->server, why, sizeof why);
    cr_assert(err == LEAT_OK, "%s", why);
    snprintf(f->address, sizeof f->address, "%s", leati_rpc_server_address(f->server));
}

UNUSED static void fake_init(fake *f)
{
    *f = (fake){.take = true, .next_attempt = 1};
    f->end = &f->first;
    snprintf(f->folder, sizeof f->folder, "/tmp/leat-worker-XXXXXX");
    cr_assert(mkdtemp(f->folder) != NULL);
    cr_assert(leat_scratch_create(NULL, &f->scratch) == LEAT_OK);
    pthread_mutex_init(&f->lock, NULL);
    leati_cond_init(&f->changed);
    fake_listen(f, "tcp://127.0.0.1:0");
}

// Closes all connections; nobody can connect any more.
UNUSED static void fake_vanish(fake *f)
{
    leati_rpc_server_destroy(&f->server);
    for (uint32_t i = 0; i < WORKERS; i++) {
        pthread_mutex_lock(&f->lock);
        if (f->workers[i])
            f->dead[f->dead_count++] = f->workers[i];
        f->workers[i] = NULL;
        pthread_mutex_unlock(&f->lock);
    }
    for (uint32_t i = 0; i < f->dead_count; i++)
        leati_rpc_destroy(&f->dead[i]);
    f->dead_count = 0;
}

extern char **environ;

UNUSED static void worker_spawn(fake *f, uint32_t index, const char *setting)
{
    char folder[100], number[12], own[100], memory[] = "memory.network=8 MiB";
    snprintf(folder, sizeof folder, "%s/%u", f->folder, (unsigned)index);
    snprintf(number, sizeof number, "%u", (unsigned)index);
    snprintf(own, sizeof own, "%s", setting ? setting : "workers=2");
    char *argv[] = {getenv("LEAT_WORKER_PROCESS"),
                    f->address + strlen("tcp://"),
                    folder,
                    number,
                    memory,
                    own,
                    NULL};
    cr_assert(argv[0] != NULL, "LEAT_WORKER_PROCESS is not set");
    unsetenv("LEAT_JOB_CLIENT"); // the job files' tests ask whether they are built here
    cr_assert(posix_spawn(&f->pids[index - 1], argv[0], NULL, NULL, argv, environ) == 0);
    setenv("LEAT_JOB_CLIENT", "1", 1);
}

UNUSED static int wait_end(fake *f, uint32_t index)
{
    int status = -1;
    for (int i = 0; i < LONG_MS / 10; i++) {
        pid_t done = waitpid(f->pids[index - 1], &status, WNOHANG);
        if (done == f->pids[index - 1]) {
            f->pids[index - 1] = 0;
            return status;
        }
        usleep(10000);
    }
    cr_assert(false, "task manager %u does not end", (unsigned)index);
    return status;
}

UNUSED static void remove_tree(const char *path)
{
    char place[200], rm[] = "rm", all[] = "-rf", end[] = "--";
    snprintf(place, sizeof place, "%s", path);
    char *argv[] = {rm, all, end, place, NULL};
    pid_t pid;
    if (posix_spawnp(&pid, "rm", NULL, NULL, argv, environ) == 0)
        waitpid(pid, NULL, 0);
}

// Task managers that still run are to end well.
UNUSED static void fake_fini(fake *f)
{
    for (uint32_t i = 1; i <= WORKERS; i++)
        if (f->pids[i - 1] > 0) {
            kill(f->pids[i - 1], SIGTERM);
            int status = wait_end(f, i);
            cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
        }
    fake_vanish(f);
    for (said *s; (s = f->first);) {
        f->first = s->next;
        free_said(s);
    }
    for (uint32_t i = 0; i < f->artifact_count; i++)
        free(f->artifacts[i].bytes);
    for (uint32_t i = 0; i < WORKERS; i++)
        leat_record_free(NULL, f->who[i]);
    leat_scratch_destroy(&f->scratch);
    remove_tree(f->folder);
}

// --- jobs ---

typedef void job_main(leat_env *env, int argc, char **argv);

typedef struct job {
    leat_env *env;
    leati_job_graph *graph;
    uint8_t *bytes;
    leat_str args[8];
    leati_msg_file libraries[4], cached[8];
    uint32_t process_of[64];
    leati_msg_job message;
} job;

// The file becomes an artifact, under that name.
UNUSED static leati_msg_file bring(fake *f, const char *name, const char *path, size_t tail)
{
    artifact *a = &f->artifacts[f->artifact_count++];
    struct stat info;
    int fd = open(path, O_RDONLY);
    cr_assert(fd >= 0 && fstat(fd, &info) == 0, "%s: %s", path, strerror(errno));
    a->size = (size_t)info.st_size + tail;
    a->bytes = calloc(1, a->size + 1);
    cr_assert(read(fd, a->bytes, (size_t)info.st_size) == info.st_size);
    close(fd);
    XXH128_hash_t hash = XXH3_128bits(a->bytes, a->size);
    snprintf(a->hash, sizeof a->hash, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64,
             (uint64_t)hash.low64);
    return (leati_msg_file){.name = str(name), .hash = str(a->hash), .size = a->size};
}

UNUSED static const char *job_path(const char *name)
{
    static char path[512];
    cr_assert(getenv("LEAT_JOBS") != NULL, "LEAT_JOBS is not set");
    snprintf(path, sizeof path, "%s/%s", getenv("LEAT_JOBS"), name);
    return path;
}

// Builds the graph here, as a client does. Arguments end in NULL.
UNUSED static void job_init(fake *f, job *j, job_main *build, const char *file,
                            const char *const *args, uint32_t parallelism)
{
    *j = (job){0};
    char name[] = "job.so", *argv[10] = {name};
    int argc = 1;
    for (; args[argc - 1]; argc++) {
        argv[argc] = (char *)args[argc - 1];
        j->args[argc - 1] = str(args[argc - 1]);
    }
    setenv("LEAT_JOB_CLIENT", "1", 1);
    cr_assert(leat_env_create(NULL, &j->env) == LEAT_OK);
    leat_env_set_parallelism(j->env, parallelism);
    leat_env_set_name(j->env, "job");
    build(j->env, argc, argv);
    cr_assert(leati_job_graph_create(j->env, &j->graph) == LEAT_OK);
    size_t size;
    cr_assert(leati_job_graph_encode(j->graph, &j->bytes, &size) == LEAT_OK);
    static const leati_msg_setting settings[] = {
        {{"parallelism", 11}, {"1", 1}},
        {{"parallelism", 11}, {"2", 1}},
        {{"parallelism", 11}, {"3", 1}},
    };
    j->message = (leati_msg_job){.name = LEAT_STR_LITERAL("job"),
                                 .job_file = bring(f, file, job_path(file), 0),
                                 .args = {j->args, (size_t)argc - 1},
                                 .settings = {settings + parallelism - 1, 1},
                                 .argv0 = LEAT_STR_LITERAL("job.so"),
                                 .folder = str(f->folder),
                                 .digest = str(j->graph->digest),
                                 .graph = {j->bytes, size}};
}

UNUSED static void job_fini(job *j)
{
    leati_free(j->graph->allocator, j->bytes);
    leati_job_graph_destroy(&j->graph);
    leat_env_destroy(&j->env);
}

// Tasks go to the first `processes` task managers in turn. Gives the attempt.
UNUSED static uint64_t deploy(fake *f, job *j, uint32_t processes)
{
    leati_msg_process list[WORKERS];
    uint32_t tasks = (uint32_t)leati_job_graph_tasks(j->graph);
    for (uint32_t i = 0; i < tasks; i++)
        j->process_of[i] = i % processes;
    pthread_mutex_lock(&f->lock);
    for (uint32_t i = 0; i < processes; i++)
        list[i] = (leati_msg_process){f->who[i]->id, f->who[i]->host, f->who[i]->data_address};
    uint64_t attempt = f->next_attempt++;
    for (uint32_t i = 0; i < processes; i++) {
        const leati_msg_deploy message = {.attempt = attempt,
                                          .self = i,
                                          .job_id = LEAT_STR_LITERAL("0123"),
                                          .processes = {list, processes},
                                          .process_of = {j->process_of, tasks},
                                          .job = j->message};
        (void)leati_rpc_send(f->workers[i], LEATI_MESSAGE_DEPLOY, LEAT_TYPE(leati_msg_deploy),
                             &message);
    }
    pthread_mutex_unlock(&f->lock);
    return attempt;
}

UNUSED static void tell_end(fake *f, uint32_t kind, uint64_t attempt, bool commit)
{
    pthread_mutex_lock(&f->lock);
    for (uint32_t i = 0; i < WORKERS; i++)
        if (f->workers[i])
            (void)leati_rpc_send(f->workers[i], kind, LEAT_TYPE(leati_msg_end),
                                 &(leati_msg_end){.attempt = attempt, .commit = commit});
    pthread_mutex_unlock(&f->lock);
}

// Waits for OVER of one, and says whether its tasks have finished.
UNUSED static bool wait_over(fake *f, uint64_t attempt)
{
    said *s = wait_said(f, LEATI_MESSAGE_OVER, attempt);
    bool finished = ((leati_msg_over *)s->record)->finished;
    free_said(s);
    return finished;
}

// CONCLUDE, and CONCLUDED of one without an error.
UNUSED static void conclude(fake *f, uint64_t attempt, bool commit)
{
    tell_end(f, LEATI_MESSAGE_CONCLUDE, attempt, commit);
    said *s = wait_said(f, LEATI_MESSAGE_CONCLUDED, attempt);
    leati_msg_failed *end = s->record;
    cr_expect(end->err == LEAT_OK, "%.*s", (int)end->text.size, end->text.data);
    free_said(s);
}

#endif
