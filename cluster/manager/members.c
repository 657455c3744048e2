// SPDX-License-Identifier: Apache-2.0
// Task managers: who registers, what they say, and how their loss is noticed.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "base/utf8.h"
#include "cluster/manager/manager_impl.h"

#define MS INT64_C(1000000)

static void put(char *to, size_t size, const leat_str *text)
{
    snprintf(to, size, "%.*s", (int)text->size, text->data ? text->data : "");
    leati_text_clean(to);
}

// --- this process itself ---

// When this process was stopped itself, it has not looked, and what was sent to it is still to be
// read: silence counts from now on. Others, who have heard nothing, may give it up all the same.
static void notice_absence(leati_manager *manager, int64_t now_ns)
{
    int64_t interval_ns = leati_setting(manager, LEATI_CONFIG_HEARTBEAT_INTERVAL) * MS;
    int64_t timeout_ns = leati_setting(manager, LEATI_CONFIG_HEARTBEAT_TIMEOUT) * MS;
    int64_t away_ns = now_ns - manager->checked_ns;
    if (!manager->checked_ns || away_ns <= interval_ns + timeout_ns / 2)
        return;
    for (leati_member *member = manager->members; member; member = member->next)
        member->heard_ns = now_ns;
    manager->checked_ns = manager->back_ns = now_ns;
    manager->away_ns = away_ns;
    leati_manager_log(manager, LEAT_LOG_WARN,
                      "the job manager itself was away for %.2g s: it was stopped, or got no"
                      " processor",
                      (double)away_ns / 1e9);
}

// Who is lost soon after that was probably not at fault.
static void add_absence(leati_manager *manager, char *text, size_t size)
{
    int64_t now_ns = leati_clock_ns();
    notice_absence(manager, now_ns);
    int64_t timeout_ns = leati_setting(manager, LEATI_CONFIG_HEARTBEAT_TIMEOUT) * MS;
    if (!manager->away_ns || now_ns - manager->back_ns > timeout_ns)
        return;
    size_t used = strlen(text);
    snprintf(text + used, size - used, "; the job manager itself was away for %.2g s",
             (double)manager->away_ns / 1e9);
}

// --- registration ---

static leati_member *find_member(leati_manager *manager, const char *id)
{
    leati_member *member = manager->members;
    while (member && strcmp(member->id, id) != 0)
        member = member->next;
    return member;
}

// Why it cannot be taken; "" when it can.
static void check_register(const leati_manager *manager, const leati_msg_register *said, char *why,
                           size_t why_size)
{
    const leati_member *first = manager->members;
    why[0] = '\0';
    if (manager->stopping)
        snprintf(why, why_size, "the job manager is about to end");
    else if (said->version.size != strlen(leat_version()) ||
             memcmp(said->version.data, leat_version(), said->version.size) != 0)
        snprintf(why, why_size, "the job manager is version %s, and the task manager %.*s",
                 leat_version(), (int)said->version.size,
                 said->version.data ? said->version.data : "");
    else if (said->id.size == 0 || said->id.size >= LEATI_ID_SIZE || said->data_address.size == 0 ||
             said->data_address.size >= sizeof first->data_address || said->slots == 0)
        snprintf(why, why_size, "the registration is not valid");
    else if (first && first->segment_size != said->segment_size)
        snprintf(why, why_size,
                 "memory.segment-size is %u here, and %u in the task managers that have registered",
                 said->segment_size, first->segment_size);
}

// A task manager that listens everywhere has the address by which it has come to us; others can
// reach it there if they can reach us. What follows the port stays.
static void put_data_address(leati_member *member, const leati_msg_register *said, const char *from)
{
    static const char *const everywhere[] = {"tcp://0.0.0.0:", "tcp://[::]:"};
    put(member->data_address, sizeof member->data_address, &said->data_address);
    const char *port = strrchr(from, ':');
    for (size_t i = 0; i < sizeof everywhere / sizeof *everywhere; i++) {
        size_t size = strlen(everywhere[i]);
        if (!port || strncmp(member->data_address, everywhere[i], size) != 0)
            continue;
        char whole[sizeof member->data_address];
        int length = snprintf(whole, sizeof whole, "%.*s:%s", (int)(port - from), from,
                              member->data_address + size);
        if (length > 0 && (size_t)length < sizeof whole)
            memcpy(member->data_address, whole, (size_t)length + 1);
        return;
    }
}

static leati_member *make_member(leati_manager *manager, leati_peer *peer,
                                 const leati_msg_register *said)
{
    leati_member *member = leati_calloc(manager->allocator, 1, sizeof *member);
    if (!member)
        return NULL;
    char number[16] = "";
    *member = (leati_member){.rpc = peer->rpc,
                             .pid = said->pid,
                             .started_ms = said->started_ms,
                             .registered_ms = leati_now_ms(),
                             .index = said->index,
                             .slots = said->slots,
                             .workers = said->workers,
                             .segment_size = said->segment_size,
                             .memory_network = said->memory_network,
                             .heard_ns = leati_clock_ns(),
                             .local = leati_local_is_child(manager, said->pid, said->index)};
    put(member->id, sizeof member->id, &said->id);
    put(member->host, sizeof member->host, &said->host);
    put_data_address(member, said, leati_rpc_peer(peer->rpc));
    put(member->log_path, sizeof member->log_path, &said->log_path);
    if (said->index)
        snprintf(number, sizeof number, " %u", said->index);
    snprintf(member->name, sizeof member->name, "taskmanager%s (%.36s, pid %" PRId64 ")", number,
             member->host, member->pid);
    return member;
}

static leat_err answer_register(leati_manager *manager, leati_peer *peer, const char *refused)
{
    leati_msg_registered answer = {
        .refused = leati_text(refused),
        .cluster = leati_text(manager->cluster),
        .term = manager->term,
        .heartbeat_interval_ms = leati_setting(manager, LEATI_CONFIG_HEARTBEAT_INTERVAL),
        .heartbeat_timeout_ms = leati_setting(manager, LEATI_CONFIG_HEARTBEAT_TIMEOUT),
    };
    return leati_rpc_send(peer->rpc, LEATI_MESSAGE_REGISTERED, LEAT_TYPE(leati_msg_registered),
                          &answer);
}

static leat_err register_member(leati_peer *peer, const leati_msg_register *said)
{
    leati_manager *manager = peer->manager;
    char why[240];
    if (peer->member)
        return LEAT_ESTATE;
    check_register(manager, said, why, sizeof why);
    leati_member *member = why[0] ? NULL : make_member(manager, peer, said);
    if (!why[0] && !member)
        snprintf(why, sizeof why, "the job manager is out of memory");
    if (!member) {
        leati_manager_log(manager, LEAT_LOG_WARN, "a task manager at %s is refused: %s",
                          leati_rpc_peer(peer->rpc), why);
        return answer_register(manager, peer, why); // it closes the connection, or is closed
    }
    // The end of its former connection may not have been noticed.
    leati_member *before = find_member(manager, member->id);
    if (before) {
        char text[240];
        snprintf(text, sizeof text,
                 "%s was lost: it has given its connection up, and registers anew", before->name);
        add_absence(manager, text, sizeof text);
        leati_member_lose(manager, before, text);
    }
    leat_err err = answer_register(manager, peer, "");
    if (err != LEAT_OK) {
        leati_free(manager->allocator, member);
        return err;
    }
    // In the order of their indices; those that have none come last, by registration.
    leati_member **at = &manager->members;
    while (*at && (member->index == 0 || ((*at)->index != 0 && (*at)->index <= member->index)))
        at = &(*at)->next;
    member->next = *at;
    *at = member;
    peer->member = member;
    leati_manager_log(manager, LEAT_LOG_INFO, "%s has registered: %u slot%s, data at %.*s",
                      member->name, member->slots, member->slots == 1 ? "" : "s",
                      (int)strcspn(member->data_address, " "), member->data_address);
    leati_manager_schedule(manager);
    pthread_cond_broadcast(&manager->changed);
    return LEAT_OK;
}

leat_err leati_member_tell(leati_member *member, uint32_t kind, const leat_type *type,
                           const void *record)
{
    leat_err err = leati_rpc_send(member->rpc, kind, type, record);
    if (err != LEAT_OK && err != LEAT_ECLOSED) {
        char why[200];
        snprintf(why, sizeof why, "it cannot be told what to do: %s", leat_err_message(err));
        leati_rpc_close(member->rpc, err, why);
    }
    return err;
}

// --- loss ---

static leati_peer *peer_of(leati_manager *manager, const leati_member *member)
{
    leati_peer *peer = manager->peers;
    while (peer && peer->member != member)
        peer = peer->next;
    return peer;
}

void leati_member_lose(leati_manager *manager, leati_member *member, const char *text)
{
    // First out of the list: what becomes free below must not be given to it.
    leati_member **at = &manager->members;
    while (*at != member)
        at = &(*at)->next;
    *at = member->next;
    leati_peer *peer = peer_of(manager, member);
    if (peer)
        peer->member = NULL;
    leati_manager_log(manager, manager->stopping ? LEAT_LOG_INFO : LEAT_LOG_WARN, "%s", text);
    for (leati_managed_job *job = manager->jobs; job; job = job->next) {
        uint32_t participant = leati_managed_participant(job, member);
        if (participant != UINT32_MAX)
            leati_managed_lost(manager, job, participant, text);
    }
    leati_rpc_close(member->rpc, LEAT_ECLOSED, text);
    leati_free(manager->allocator, member);
    leati_manager_schedule(manager); // a job that was in the way may not be any more
    pthread_cond_broadcast(&manager->changed);
    leati_manager_kick(manager);
}

// A task of it runs in user code that has crashed. Its connection ends in a moment.
static void crashed(leati_manager *manager, leati_member *member, const leati_msg_failed *crash)
{
    char text[LEATI_REASON_SIZE];
    put(member->crash, sizeof member->crash, &crash->text);
    member->crash_attempt = crash->attempt;
    leati_managed_job *job = leati_managed_by_attempt(manager, crash->attempt);
    uint32_t participant = job ? leati_managed_participant(job, member) : UINT32_MAX;
    if (participant == UINT32_MAX)
        return;
    snprintf(text, sizeof text, "%s died of %s", member->name, member->crash);
    leati_managed_fail(manager, job,
                       &(leati_job_fault){.vertex = crash->vertex,
                                          .subtask = crash->subtask,
                                          .worker = member->name,
                                          .text = text});
}

// --- messages ---

typedef union message {
    leati_msg_register registration;
    leati_msg_heartbeat heartbeat;
    leati_msg_stage stage;
    leati_msg_failed failed;
    leati_msg_over over;
    leati_msg_report report;
    leati_msg_piece piece;
    leati_msg_output output;
    leati_msg_log log;
    leati_msg_ask ask;
} message;

// NULL: no kind that a task manager sends.
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
    case LEATI_MESSAGE_ASK:
    case LEATI_MESSAGE_ANSWER:
        return LEAT_TYPE(leati_msg_ask);
    default:
        return NULL;
    }
}

// Each of the messages about an attempt begins with its id.
_Static_assert(offsetof(leati_msg_stage, attempt) == 0 &&
                   offsetof(leati_msg_failed, attempt) == 0 &&
                   offsetof(leati_msg_over, attempt) == 0 &&
                   offsetof(leati_msg_report, attempt) == 0 &&
                   offsetof(leati_msg_log, attempt) == 0 && offsetof(leati_msg_ask, attempt) == 0,
               "the attempt comes first");

static void about_attempt(leati_manager *manager, leati_member *member, uint32_t kind,
                          const message *said)
{
    leati_managed_job *job = leati_managed_by_attempt(manager, said->stage.attempt);
    uint32_t from = job ? leati_managed_participant(job, member) : UINT32_MAX;
    // Of an older attempt, or of one that has ended: comes too late.
    if (from == UINT32_MAX || (leati_phase_is_final(job->phase) && kind != LEATI_MESSAGE_LOG))
        return;
    char line[1400];
    switch (kind) {
    case LEATI_MESSAGE_STAGE:
        leati_managed_stage(manager, job, from, &said->stage);
        break;
    case LEATI_MESSAGE_FAILED:
        leati_managed_failed(manager, job, from, &said->failed);
        break;
    case LEATI_MESSAGE_OVER:
        leati_managed_over(manager, job, from, &said->over);
        break;
    case LEATI_MESSAGE_CONCLUDED:
        leati_managed_concluded(manager, job, from, &said->failed);
        break;
    case LEATI_MESSAGE_REPORT:
        leati_managed_report(manager, job, from, &said->report);
        break;
    case LEATI_MESSAGE_LOG:
        put(line, sizeof line, &said->log.line);
        leati_managed_log_at(manager, job, (leat_log_level)said->log.level, said->log.time_ms,
                             member->name, line);
        break;
    default:
        leati_managed_ask(manager, job, from, kind, &said->ask);
        break;
    }
}

static leat_err take_locked(leati_peer *peer, uint32_t kind, const message *said)
{
    leati_manager *manager = peer->manager;
    leati_member *member = peer->member;
    if (kind == LEATI_MESSAGE_REGISTER)
        return register_member(peer, &said->registration);
    if (!member) // refused, or given up: what it still sends means nothing
        return LEAT_OK;
    member->heard_ns = leati_clock_ns();
    switch (kind) {
    case LEATI_MESSAGE_FETCH: // needs files, so not here
        break;
    case LEATI_MESSAGE_HEARTBEAT:
        member->beat = said->heartbeat;
        break;
    case LEATI_MESSAGE_CRASH:
        crashed(manager, member, &said->failed);
        break;
    default:
        about_attempt(manager, member, kind, said);
        break;
    }
    return LEAT_OK;
}

static leat_err on_message(leati_rpc *rpc, void *user, uint32_t kind, const uint8_t *bytes,
                           size_t size)
{
    leati_peer *peer = user;
    const leat_type *type = type_of(kind);
    if (!peer || !type)
        return LEAT_ECORRUPT;
    message said;
    leat_scratch_reset(peer->scratch);
    leat_err err = leati_rpc_decode(type, bytes, size, &said, peer->scratch);
    if (err != LEAT_OK)
        return err;
    if (kind == LEATI_MESSAGE_OUTPUT) {
        leati_manager_output(peer->manager, peer, &said.output);
        return LEAT_OK;
    }
    if (kind == LEATI_MESSAGE_OVER)
        leati_manager_output_over(peer->manager, peer, said.over.attempt);
    pthread_mutex_lock(&peer->manager->lock);
    err = take_locked(peer, kind, &said);
    pthread_mutex_unlock(&peer->manager->lock);
    if (kind == LEATI_MESSAGE_FETCH)
        err = leati_artifact_fetched(peer->manager, rpc, &said.piece);
    return err;
}

// --- connections ---

static void on_opened(leati_rpc *rpc, void *user, const leati_hello *hello)
{
    leati_manager *manager = user;
    (void)hello;
    leati_peer *peer = leati_calloc(manager->allocator, 1, sizeof *peer);
    if (peer && leat_scratch_create(manager->allocator, &peer->scratch) != LEAT_OK) {
        leati_free(manager->allocator, peer);
        peer = NULL;
    }
    leati_rpc_set_user(rpc, peer);
    if (!peer) {
        leati_rpc_close(rpc, LEAT_ENOMEM, "the job manager is out of memory");
        return;
    }
    peer->manager = manager;
    peer->rpc = rpc;
    peer->opened_ns = leati_clock_ns();
    pthread_mutex_lock(&manager->lock);
    peer->next = manager->peers;
    manager->peers = peer;
    pthread_mutex_unlock(&manager->lock);
}

static void on_closed(leati_rpc *rpc, void *user, leat_err err, const char *why)
{
    (void)rpc, (void)err;
    leati_peer *peer = user;
    if (!peer)
        return;
    leati_manager *manager = peer->manager;
    char text[LEATI_REASON_SIZE], death[200];
    pthread_mutex_lock(&manager->lock);
    // A child's connection ends a moment before its death can be seen. The lock is given up
    // meanwhile: the member may be gone afterwards.
    int64_t pid = peer->member && peer->member->local ? peer->member->pid : 0;
    bool died = pid && leati_local_death(manager, pid, death, sizeof death);
    leati_member *member = peer->member;
    if (member) {
        if (member->crash[0])
            snprintf(text, sizeof text, "%s died of %s", member->name, member->crash);
        else if (died)
            snprintf(text, sizeof text, "%s %s", member->name, death);
        else
            snprintf(text, sizeof text, "%s was lost: %s", member->name, why);
        if (!member->crash[0] && !died)
            add_absence(manager, text, sizeof text);
        leati_member_lose(manager, member, text);
    }
    peer->dead = true;
    pthread_cond_broadcast(&manager->changed);
    leati_manager_kick(manager);
    pthread_mutex_unlock(&manager->lock);
}

static void on_refused(void *user, leat_err err, const char *why)
{
    (void)err;
    leati_manager_tell_refused(user, why);
}

const leati_rpc_handlers leati_manager_handlers = {
    .opened = on_opened, .message = on_message, .closed = on_closed, .refused = on_refused};

static leati_peer *take_dead(leati_manager *manager)
{
    leati_peer **at = &manager->peers;
    while (*at && !(*at)->dead)
        at = &(*at)->next;
    leati_peer *peer = *at;
    if (peer)
        *at = peer->next;
    return peer;
}

void leati_peers_reap(leati_manager *manager, bool all)
{
    pthread_mutex_lock(&manager->lock);
    for (leati_peer *peer = manager->peers; all && peer; peer = peer->next)
        leati_rpc_close(peer->rpc, LEAT_ECLOSED, "the job manager ends");
    for (;;) {
        leati_peer *peer = take_dead(manager);
        if (peer) {
            pthread_mutex_unlock(&manager->lock);
            leati_rpc_destroy(&peer->rpc);
            leat_scratch_destroy(&peer->scratch);
            leati_free(manager->allocator, peer);
            pthread_mutex_lock(&manager->lock);
        } else if (all && manager->peers) {
            pthread_cond_wait(&manager->changed, &manager->lock);
        } else {
            break;
        }
    }
    pthread_mutex_unlock(&manager->lock);
}

// --- silence ---

static void send_heartbeats(leati_manager *manager, int64_t now_ns)
{
    leati_msg_heartbeat beat = {.sent_ns = now_ns};
    for (leati_member *member = manager->members; member; member = member->next)
        (void)leati_member_tell(member, LEATI_MESSAGE_HEARTBEAT, LEAT_TYPE(leati_msg_heartbeat),
                                &beat);
}

static int64_t give_up_silent(leati_manager *manager, int64_t now_ns)
{
    int64_t timeout_ms = leati_setting(manager, LEATI_CONFIG_HEARTBEAT_TIMEOUT);
    int64_t next_ns = INT64_MAX;
    for (leati_member *member = manager->members, *next; member; member = next) {
        next = member->next;
        int64_t lost_ns = member->heard_ns + timeout_ms * MS;
        if (now_ns >= lost_ns) {
            char text[LEATI_REASON_SIZE];
            snprintf(text, sizeof text, "%s was lost: it has not been heard of for %.3g s",
                     member->name, (double)(now_ns - member->heard_ns) / 1e9);
            add_absence(manager, text, sizeof text);
            leati_member_lose(manager, member, text);
        } else if (lost_ns < next_ns) {
            next_ns = lost_ns;
        }
    }
    for (leati_peer *peer = manager->peers; peer; peer = peer->next)
        if (!peer->member && !peer->dead && now_ns >= peer->opened_ns + timeout_ms * MS)
            leati_rpc_close(peer->rpc, LEAT_ECLOSED, "it has not registered");
    return next_ns;
}

int64_t leati_members_check(leati_manager *manager, int64_t now_ns)
{
    int64_t interval_ns = leati_setting(manager, LEATI_CONFIG_HEARTBEAT_INTERVAL) * MS;
    notice_absence(manager, now_ns);
    manager->checked_ns = now_ns;
    if (now_ns >= manager->next_beat_ns) {
        send_heartbeats(manager, now_ns);
        manager->next_beat_ns = now_ns + interval_ns;
    }
    int64_t next_ns = give_up_silent(manager, now_ns);
    return next_ns < manager->next_beat_ns ? next_ns : manager->next_beat_ns;
}
