// SPDX-License-Identifier: Apache-2.0
// A job manager in this process, and task managers that say what a test has them say.
#ifndef TESTS_CLUSTER_MANAGER_TESTING_H
#define TESTS_CLUSTER_MANAGER_TESTING_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"
#include "cluster/manager/manager_impl.h"
#include "tests/graph/graph_testing.h"

enum { LONG_MS = 60000 }; // a test that waits so long has failed

// --- the manager ---

typedef struct boss {
    leati_manager *manager;
    pthread_t thread;
    char folder[64];
    leati_manager_options options;
} boss;

UNUSED static void *boss_main(void *arg)
{
    leati_manager_loop(arg, -1);
    return NULL;
}

UNUSED static void boss_init(boss *b)
{
    *b = (boss){0};
    snprintf(b->folder, sizeof b->folder, "/tmp/leat-manager-XXXXXX");
    cr_assert(mkdtemp(b->folder) != NULL);
    leati_config_init(&b->options.config);
    b->options.bind = "127.0.0.1";
    b->options.folder = b->folder;
}

UNUSED static void boss_set(boss *b, leati_config_key key, int64_t value)
{
    b->options.config.value[key] = value;
}

UNUSED static void boss_start(boss *b)
{
    char why[300] = "";
    leat_err err = leati_manager_open(&b->options, &b->manager, why, sizeof why);
    cr_assert(err == LEAT_OK, "%s", why);
    cr_assert(pthread_create(&b->thread, NULL, boss_main, b->manager) == 0);
}

UNUSED static void boss_stop(boss *b)
{
    leati_manager_stop(b->manager);
    pthread_join(b->thread, NULL);
    leati_manager_close(&b->manager);
    cr_expect(rmdir(b->folder) == 0, "files are left behind");
}

// --- a task manager ---

typedef struct said {
    struct said *next;
    uint32_t kind;
    size_t size;
    uint8_t bytes[];
} said;

typedef struct fake {
    leati_rpc *rpc;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    said *first, **last; // not looked at yet
    said *shown;         // what wait_for gave last
    leat_scratch *scratch;
    bool opened, closed;
    char why[300];
} fake;

UNUSED static void fake_opened(leati_rpc *rpc, void *user, const leati_hello *peer)
{
    fake *f = user;
    pthread_mutex_lock(&f->lock);
    f->opened = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

UNUSED static leat_err fake_message(leati_rpc *rpc, void *user, uint32_t kind, const uint8_t *bytes,
                                    size_t size)
{
    fake *f = user;
    said *s = malloc(sizeof *s + size);
    s->next = NULL;
    s->kind = kind;
    s->size = size;
    memcpy(s->bytes, bytes, size);
    pthread_mutex_lock(&f->lock);
    *f->last = s;
    f->last = &s->next;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return LEAT_OK;
}

UNUSED static void fake_closed(leati_rpc *rpc, void *user, leat_err err, const char *why)
{
    fake *f = user;
    pthread_mutex_lock(&f->lock);
    f->closed = true;
    snprintf(f->why, sizeof f->why, "%s", why);
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

UNUSED static const leati_rpc_handlers fake_handlers = {
    .opened = fake_opened, .message = fake_message, .closed = fake_closed};

// Takes the first message of that kind out of the queue, and what came before it as well unless
// `keep`. NULL: the connection has ended.
UNUSED static said *fake_take(fake *f, uint32_t kind)
{
    struct timespec deadline = leati_deadline(LONG_MS);
    pthread_mutex_lock(&f->lock);
    for (;;) {
        for (said **at = &f->first; *at; at = &(*at)->next) {
            if ((*at)->kind != kind)
                continue;
            said *s = *at;
            *at = s->next;
            if (!*at)
                f->last = at;
            pthread_mutex_unlock(&f->lock);
            return s;
        }
        if (f->closed)
            break;
        int waited = pthread_cond_timedwait(&f->changed, &f->lock, &deadline);
        cr_assert(waited == 0, "message %u has not come", kind);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

// Whether such a message is there already.
UNUSED static bool fake_has(fake *f, uint32_t kind)
{
    bool has = false;
    pthread_mutex_lock(&f->lock);
    for (said *s = f->first; s; s = s->next)
        has = has || s->kind == kind;
    pthread_mutex_unlock(&f->lock);
    return has;
}

// Decodes the next message of that kind; what it points to lives until the next call.
UNUSED static void fake_expect(fake *f, uint32_t kind, const leat_type *type, void *record)
{
    free(f->shown);
    f->shown = fake_take(f, kind);
    cr_assert(f->shown, "the connection ended before message %u: %s", kind, f->why);
    leat_scratch_reset(f->scratch);
    cr_assert(leati_rpc_decode(type, f->shown->bytes, f->shown->size, record, f->scratch) ==
              LEAT_OK);
}

UNUSED static void fake_wait_closed(fake *f)
{
    struct timespec deadline = leati_deadline(LONG_MS);
    pthread_mutex_lock(&f->lock);
    while (!f->closed)
        cr_assert(pthread_cond_timedwait(&f->changed, &f->lock, &deadline) == 0);
    pthread_mutex_unlock(&f->lock);
}

UNUSED static void fake_send(fake *f, uint32_t kind, const leat_type *type, const void *record)
{
    cr_assert(leati_rpc_send(f->rpc, kind, type, record) == LEAT_OK);
}

UNUSED static void fake_connect(fake *f, const boss *b)
{
    char address[160], why[200] = "";
    memset(f, 0, sizeof *f);
    f->last = &f->first;
    pthread_mutex_init(&f->lock, NULL);
    leati_cond_init(&f->changed);
    cr_assert(leat_scratch_create(NULL, &f->scratch) == LEAT_OK);
    snprintf(address, sizeof address, "tcp://%s", b->manager->rpc_address);
    leati_rpc_options options = {.allocator = leat_allocator_default(),
                                 .address = address,
                                 .hello = {.abi = LEAT_ABI},
                                 .dial_timeout_ms = LONG_MS,
                                 .hello_timeout_ms = LONG_MS,
                                 .handlers = &fake_handlers,
                                 .user = f};
    snprintf(options.hello.version, sizeof options.hello.version, "%s", leat_version());
    snprintf(options.hello.process, sizeof options.hello.process, "fake");
    cr_assert(leati_rpc_dial(&options, &f->rpc, why, sizeof why) == LEAT_OK, "%s", why);
}

UNUSED static leati_msg_register fake_registration(const char *id, uint32_t index, uint32_t slots)
{
    return (leati_msg_register){.id = leati_text(id),
                                .host = leati_text("host"),
                                .data_address = leati_text("tcp://127.0.0.1:1"),
                                .version = leati_text(leat_version()),
                                .pid = 4700 + index,
                                .index = index,
                                .slots = slots,
                                .segment_size = 32768};
}

// Connects and registers as "taskmanager INDEX (host, pid 4700 + INDEX)".
UNUSED static void fake_start(fake *f, const boss *b, uint32_t index, uint32_t slots)
{
    char id[LEATI_ID_SIZE];
    snprintf(id, sizeof id, "%032u", index);
    leati_msg_register r = fake_registration(id, index, slots);
    leati_msg_registered answer;
    fake_connect(f, b);
    fake_send(f, LEATI_MESSAGE_REGISTER, LEAT_TYPE(leati_msg_register), &r);
    fake_expect(f, LEATI_MESSAGE_REGISTERED, LEAT_TYPE(leati_msg_registered), &answer);
    cr_assert(answer.refused.size == 0, "%.*s", (int)answer.refused.size, answer.refused.data);
}

UNUSED static void fake_stop(fake *f)
{
    leati_rpc_destroy(&f->rpc);
    for (said *s = f->first, *next; s; s = next) {
        next = s->next;
        free(s);
    }
    free(f->shown);
    leat_scratch_destroy(&f->scratch);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
}

// --- what task managers say of an attempt ---

UNUSED static void say_stage(fake *f, uint64_t attempt, uint32_t vertex, uint32_t subtask,
                             const char *stage)
{
    leati_msg_stage m = {attempt, vertex, subtask, leati_text(stage)};
    fake_send(f, LEATI_MESSAGE_STAGE, LEAT_TYPE(leati_msg_stage), &m);
}

UNUSED static void say_failed(fake *f, uint64_t attempt, bool consequence, const char *text)
{
    leati_msg_failed m = {attempt, LEAT_EUSER, 0, 0, consequence, leati_text(text)};
    fake_send(f, LEATI_MESSAGE_FAILED, LEAT_TYPE(leati_msg_failed), &m);
}

UNUSED static void say_over(fake *f, uint64_t attempt, bool finished)
{
    leati_msg_over m = {.attempt = attempt, .finished = finished};
    fake_send(f, LEATI_MESSAGE_OVER, LEAT_TYPE(leati_msg_over), &m);
}

UNUSED static void say_concluded(fake *f, uint64_t attempt, const char *failure)
{
    leati_msg_failed m = {attempt, failure ? LEAT_EIO : LEAT_OK,      UINT32_MAX, UINT32_MAX,
                          false,   leati_text(failure ? failure : "")};
    fake_send(f, LEATI_MESSAGE_CONCLUDED, LEAT_TYPE(leati_msg_failed), &m);
}

// The attempt's id.
UNUSED static uint64_t expect_deploy(fake *f)
{
    leati_msg_deploy deploy;
    fake_expect(f, LEATI_MESSAGE_DEPLOY, LEAT_TYPE(leati_msg_deploy), &deploy);
    return deploy.attempt;
}

UNUSED static bool expect_conclude(fake *f, uint64_t attempt)
{
    leati_msg_end end;
    fake_expect(f, LEATI_MESSAGE_CONCLUDE, LEAT_TYPE(leati_msg_end), &end);
    cr_expect(end.attempt == attempt);
    return end.commit;
}

UNUSED static void expect_cancel(fake *f, uint64_t attempt)
{
    leati_msg_end end;
    fake_expect(f, LEATI_MESSAGE_CANCEL, LEAT_TYPE(leati_msg_end), &end);
    cr_expect(end.attempt == attempt);
}

// --- jobs ---

typedef struct submission {
    leati_msg_job job;
    uint8_t *graph;
    char digest[LEATI_ID_SIZE];
} submission;

// The XXH3-128 of the three bytes "so\n", from the reference program.
#define SO_HASH "2dbb6498ee31e1b3e104480d46a416d9"

UNUSED static void put_artifact(const boss *b)
{
    char path[128], why[300] = "";
    snprintf(path, sizeof path, "%s/upload", b->folder);
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs("so\n", file) >= 0 && fclose(file) == 0);
    cr_assert(leati_artifact_put(b->manager, SO_HASH, path, why, sizeof why) == LEAT_OK, "%s", why);
}

UNUSED static void make_submission(submission *s, leat_env *env)
{
    leati_job_graph *graph = job_graph_of(env);
    size_t size = 0;
    cr_assert(leati_job_graph_encode(graph, &s->graph, &size) == LEAT_OK);
    snprintf(s->digest, sizeof s->digest, "%s", graph->digest);
    s->job = (leati_msg_job){
        .name = leati_text("job"),
        .job_file = {.name = leati_text("job.so"), .hash = leati_text(SO_HASH), .size = 3},
        .folder = leati_text("/"),
        .digest = leati_text(s->digest),
        .graph = {s->graph, size},
    };
    leati_job_graph_destroy(&graph);
    leat_env_destroy(&env);
}

// source -> keyed reduce -> sink: two vertices of that parallelism.
UNUSED static void simple_submission(submission *s, uint32_t parallelism)
{
    leat_env *env = new_env(parallelism);
    sink(keyed_op(leat_key_by(source(env, "s"), ""), "r"), "k");
    make_submission(s, env);
}

UNUSED static void submit(boss *b, const submission *s, bool attached, char id[LEATI_ID_SIZE])
{
    char why[400] = "";
    leat_err err = leati_manager_submit(b->manager, &s->job, attached, id, why, sizeof why);
    cr_assert(err == LEAT_OK, "%s", why);
}

UNUSED static void submit_simple(boss *b, uint32_t parallelism, char id[LEATI_ID_SIZE])
{
    submission s;
    simple_submission(&s, parallelism);
    submit(b, &s, false, id);
    free(s.graph);
}

// The job; with the manager's lock held.
UNUSED static leati_managed_job *job_of(boss *b, const char *id)
{
    bool several;
    leati_managed_job *job = leati_manager_find(b->manager, id, &several);
    cr_assert(job, "job %s is not known", id);
    return job;
}

UNUSED static void wait_phase(boss *b, const char *id, leati_job_phase phase)
{
    struct timespec deadline = leati_deadline(LONG_MS);
    pthread_mutex_lock(&b->manager->lock);
    for (leati_managed_job *job; (job = job_of(b, id))->phase != phase;) {
        cr_assert(!leati_phase_is_final(job->phase), "the job is %s: %s",
                  leati_phase_name(job->phase), job->failures[0].text);
        cr_assert(pthread_cond_timedwait(&b->manager->changed, &b->manager->lock, &deadline) == 0,
                  "the job is still %s", leati_phase_name(job->phase));
    }
    pthread_mutex_unlock(&b->manager->lock);
}

// The text of failure `index` in `to`, "" when there is none.
UNUSED static void failure_of(boss *b, const char *id, uint32_t index, char to[LEATI_REASON_SIZE])
{
    pthread_mutex_lock(&b->manager->lock);
    leati_managed_job *job = job_of(b, id);
    snprintf(to, LEATI_REASON_SIZE, "%s",
             index < job->failure_count ? job->failures[index].text : "");
    pthread_mutex_unlock(&b->manager->lock);
}

UNUSED static void cancel(boss *b, const char *id)
{
    pthread_mutex_lock(&b->manager->lock);
    cr_assert(leati_manager_cancel(b->manager, job_of(b, id)) == LEAT_OK);
    pthread_mutex_unlock(&b->manager->lock);
}

UNUSED static void wait_members(boss *b, uint32_t count)
{
    struct timespec deadline = leati_deadline(LONG_MS);
    pthread_mutex_lock(&b->manager->lock);
    for (;;) {
        uint32_t there = 0;
        for (leati_member *m = b->manager->members; m; m = m->next)
            there++;
        if (there == count)
            break;
        cr_assert(pthread_cond_timedwait(&b->manager->changed, &b->manager->lock, &deadline) == 0);
    }
    pthread_mutex_unlock(&b->manager->lock);
}

UNUSED static uint32_t slots_used(boss *b)
{
    uint32_t used = 0;
    pthread_mutex_lock(&b->manager->lock);
    for (leati_member *m = b->manager->members; m; m = m->next)
        used += m->slots_used;
    pthread_mutex_unlock(&b->manager->lock);
    return used;
}

#endif
