// SPDX-License-Identifier: Apache-2.0
// The control connection: dialling, and what comes by it.
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "cluster/worker/worker_impl.h"

enum { DIAL_TIMEOUT_MS = 5000 };

static leat_str str(const char *text)
{
    return (leat_str){text, strlen(text)};
}

leat_err leati_control_send(leati_taskmanager *tm, uint64_t session, uint32_t kind,
                            const leat_type *type, const void *record)
{
    pthread_mutex_lock(&tm->wire_lock);
    bool there = tm->rpc && (session == 0 || tm->session == session);
    leat_err err = there ? leati_rpc_send(tm->rpc, kind, type, record) : LEAT_ECLOSED;
    pthread_mutex_unlock(&tm->wire_lock);
    return err;
}

// --- what comes ---

static void opened(leati_rpc *rpc, void *user, const leati_hello *peer)
{
    (void)peer;
    leati_taskmanager *tm = user;
    const leati_worker_options *o = tm->options;
    uint32_t segment_size = (uint32_t)leati_config_get(&o->config, LEATI_CONFIG_SEGMENT_SIZE);
    const leati_msg_register message = {
        .id = str(tm->id),
        .host = str(tm->host),
        .data_address = str(leati_exchange_address(tm->exchange)),
        .version = str(leat_version()),
        .log_path = str(o->log_path ? o->log_path : ""),
        .pid = getpid(),
        .started_ms = tm->started_ms,
        .slots = o->slots,
        .index = o->index,
        .memory_network = (uint64_t)leati_config_get(&o->config, LEATI_CONFIG_NETWORK_MEMORY),
        .segment_size = segment_size,
        .workers = (uint32_t)leati_config_get(&o->config, LEATI_CONFIG_WORKERS),
    };
    leat_err err =
        leati_rpc_send(rpc, LEATI_MESSAGE_REGISTER, LEAT_TYPE(leati_msg_register), &message);
    if (err)
        leati_rpc_close(rpc, err, "the task manager could not say who it is");
}

static leat_err on_registered(leati_taskmanager *tm, const leati_msg_registered *message)
{
    char cluster[LEATI_HELLO_TEXT];
    snprintf(cluster, sizeof cluster, "%.*s", (int)message->cluster.size, message->cluster.data);
    pthread_mutex_lock(&tm->lock);
    if (message->refused.size) {
        tm->refused = true;
        snprintf(tm->loss, sizeof tm->loss, "the job manager refuses this task manager: %.*s",
                 (int)message->refused.size, message->refused.data);
    } else {
        leati_exchange_set_cluster(tm->exchange, cluster);
        leati_exchange_set_silence(tm->exchange, message->heartbeat_interval_ms,
                                   message->heartbeat_timeout_ms);
        tm->heartbeat_interval_ns = message->heartbeat_interval_ms * 1000000;
        tm->heartbeat_timeout_ns = message->heartbeat_timeout_ms * 1000000;
        tm->control = LEATI_CONTROL_UP;
    }
    pthread_mutex_unlock(&tm->lock);
    leati_taskmanager_kick(tm);
    return LEAT_OK;
}

// What is said of an attempt that is not there: it has ended, or could not even be started. The job
// manager is not to wait for it.
static leat_err answer_for_none(leati_taskmanager *tm, uint32_t kind, uint64_t attempt)
{
    if (kind == LEATI_MESSAGE_CANCEL)
        return leati_control_send(tm, tm->session, LEATI_MESSAGE_OVER, LEAT_TYPE(leati_msg_over),
                                  &(leati_msg_over){.attempt = attempt});
    return leati_control_send(
        tm, tm->session, LEATI_MESSAGE_CONCLUDED, LEAT_TYPE(leati_msg_failed),
        &(leati_msg_failed){.attempt = attempt, .vertex = UINT32_MAX, .subtask = UINT32_MAX});
}

static leat_err on_end(leati_taskmanager *tm, uint32_t kind, const leati_msg_end *message)
{
    leati_attempt *attempt = leati_attempt_find(tm, message->attempt);
    if (!attempt)
        return answer_for_none(tm, kind, message->attempt);
    if (kind == LEATI_MESSAGE_CANCEL)
        leati_attempt_cancel(attempt, false);
    else
        leati_attempt_conclude(attempt, message->commit);
    leati_attempt_release(attempt);
    return LEAT_OK;
}

static leat_err on_ask(leati_taskmanager *tm, uint32_t kind, const leati_msg_ask *message)
{
    leati_attempt *attempt = leati_attempt_find(tm, message->attempt);
    leat_err err = LEAT_OK;
    if (attempt && kind == LEATI_MESSAGE_ASK)
        leati_attempt_asked(attempt, message);
    else if (attempt)
        err = leati_attempt_answered(attempt, message);
    else if (kind == LEATI_MESSAGE_ASK)
        // The asker's tasks are told to stop as well; it need not wait until then.
        err = leati_control_send(tm, tm->session, LEATI_MESSAGE_ANSWER, LEAT_TYPE(leati_msg_ask),
                                 &(leati_msg_ask){.attempt = message->attempt,
                                                  .token = message->token,
                                                  .process = message->process,
                                                  .node = message->node,
                                                  .err = LEAT_ECLOSED});
    if (attempt)
        leati_attempt_release(attempt);
    return err;
}

static leat_err on_taken(leati_taskmanager *tm, const leati_msg_output *message)
{
    leati_attempt *attempt = leati_attempt_find(tm, message->attempt);
    if (attempt) {
        leati_attempt_taken(attempt, message->offset);
        leati_attempt_release(attempt);
    }
    return LEAT_OK;
}

static void on_shutdown(leati_taskmanager *tm)
{
    pthread_mutex_lock(&tm->lock);
    tm->shutdown = true;
    pthread_mutex_unlock(&tm->lock);
    leati_taskmanager_kick(tm);
}

typedef union leati_incoming {
    leati_msg_registered registered;
    leati_msg_deploy deploy;
    leati_msg_end end;
    leati_msg_piece piece;
    leati_msg_output taken;
    leati_msg_ask ask;
} leati_incoming;

static const leat_type *incoming_type(uint32_t kind)
{
    switch (kind) {
    case LEATI_MESSAGE_REGISTERED:
        return LEAT_TYPE(leati_msg_registered);
    case LEATI_MESSAGE_DEPLOY:
        return LEAT_TYPE(leati_msg_deploy);
    case LEATI_MESSAGE_CANCEL:
    case LEATI_MESSAGE_CONCLUDE:
        return LEAT_TYPE(leati_msg_end);
    case LEATI_MESSAGE_CHUNK:
        return LEAT_TYPE(leati_msg_piece);
    case LEATI_MESSAGE_TAKEN:
        return LEAT_TYPE(leati_msg_output);
    case LEATI_MESSAGE_ASK:
    case LEATI_MESSAGE_ANSWER:
        return LEAT_TYPE(leati_msg_ask);
    default:
        return NULL;
    }
}

static leat_err handle(leati_taskmanager *tm, uint32_t kind, const leati_incoming *message)
{
    switch (kind) {
    case LEATI_MESSAGE_REGISTERED:
        return on_registered(tm, &message->registered);
    case LEATI_MESSAGE_DEPLOY:
        return leati_attempt_deploy(tm, tm->session, &message->deploy);
    case LEATI_MESSAGE_CANCEL:
    case LEATI_MESSAGE_CONCLUDE:
        return on_end(tm, kind, &message->end);
    case LEATI_MESSAGE_CHUNK:
        leati_artifact_cache_piece(tm->cache, &message->piece);
        return LEAT_OK;
    case LEATI_MESSAGE_TAKEN:
        return on_taken(tm, &message->taken);
    default:
        return on_ask(tm, kind, &message->ask);
    }
}

static leat_err arrived(leati_rpc *rpc, void *user, uint32_t kind, const uint8_t *bytes,
                        size_t size)
{
    (void)rpc;
    leati_taskmanager *tm = user;
    // The main thread compares it with the time.
    atomic_store_explicit(&tm->heard_ns, leati_clock_ns(), memory_order_relaxed);
    if (kind == LEATI_MESSAGE_HEARTBEAT)
        return LEAT_OK;
    if (kind == LEATI_MESSAGE_SHUTDOWN) {
        on_shutdown(tm);
        return LEAT_OK;
    }
    const leat_type *type = incoming_type(kind);
    if (!type)
        return LEAT_ECORRUPT;
    leati_incoming message;
    leat_scratch_reset(tm->scratch);
    leat_err err = leati_rpc_decode(type, bytes, size, &message, tm->scratch);
    return err ? err : handle(tm, kind, &message);
}

static void closed(leati_rpc *rpc, void *user, leat_err err, const char *why)
{
    (void)rpc;
    leati_taskmanager *tm = user;
    pthread_mutex_lock(&tm->lock);
    if (!tm->refused)
        snprintf(tm->loss, sizeof tm->loss, "%s", why);
    // Another version is not going to fit later.
    if (err == LEAT_EABI)
        tm->refused = true;
    tm->control = LEATI_CONTROL_LOST;
    pthread_mutex_unlock(&tm->lock);
    leati_taskmanager_kick(tm);
}

// --- the connection ---

static const leati_rpc_handlers handlers = {.opened = opened, .message = arrived, .closed = closed};

void leati_control_dial(leati_taskmanager *tm)
{
    char address[300], why[300];
    snprintf(address, sizeof address, "tcp://%s", tm->options->manager);
    leati_rpc_options options = {
        .allocator = tm->allocator,
        .address = address,
        .hello.abi = LEAT_ABI,
        .auth = &tm->auth,
        .dial_timeout_ms = DIAL_TIMEOUT_MS,
        .hello_timeout_ms = DIAL_TIMEOUT_MS,
        .handlers = &handlers,
        .user = tm,
    };
    snprintf(options.hello.version, sizeof options.hello.version, "%s", leat_version());
    snprintf(options.hello.process, sizeof options.hello.process, "%s", tm->id);
    pthread_mutex_lock(&tm->lock);
    tm->control = LEATI_CONTROL_DIALLING;
    pthread_mutex_unlock(&tm->lock);
    atomic_store_explicit(&tm->heard_ns, leati_clock_ns(), memory_order_relaxed);
    // Handlers may run before the dialling returns; what they send waits for this lock.
    pthread_mutex_lock(&tm->wire_lock);
    tm->session++;
    leat_err err = leati_rpc_dial(&options, &tm->rpc, why, sizeof why);
    pthread_mutex_unlock(&tm->wire_lock);
    if (err)
        closed(NULL, tm, err, why);
}

void leati_control_flush(leati_taskmanager *tm, int64_t most_ms)
{
    int64_t end_ns = leati_clock_ns() + most_ms * 1000000;
    for (;;) {
        pthread_mutex_lock(&tm->wire_lock);
        size_t queued = tm->rpc ? leati_rpc_queued(tm->rpc) : 0;
        pthread_mutex_unlock(&tm->wire_lock);
        if (queued == 0 || leati_clock_ns() >= end_ns)
            return;
        (void)poll(NULL, 0, 2); // nobody tells that a message has gone
    }
}

void leati_control_drop(leati_taskmanager *tm, const char *why)
{
    pthread_mutex_lock(&tm->wire_lock);
    leati_rpc *rpc = tm->rpc;
    tm->rpc = NULL;
    pthread_mutex_unlock(&tm->wire_lock);
    if (rpc) {
        leati_rpc_close(rpc, LEAT_ECLOSED, why);
        leati_rpc_destroy(&rpc);
    }
    pthread_mutex_lock(&tm->lock);
    tm->control = LEATI_CONTROL_NONE;
    pthread_mutex_unlock(&tm->lock);
}
