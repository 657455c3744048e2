// SPDX-License-Identifier: Apache-2.0
// What a task waits for, as somebody else sees it.
//
// A task notes only when it goes to sleep, and why (its gap): what exactly it lacks is found out
// here, by looking at its channels, its pools and the transport at the time of asking.
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "runtime/broadcast.h"
#include "runtime/deploy_impl.h"

// A turn, or a wait for a worker, that is shorter is nothing that anybody waits for.
enum { LONG_NS = 50000000 };

const char *leati_wait_name(leati_wait_kind kind)
{
    static const char *const names[] = {"NONE",  "INPUT", "BUFFER",   "CREDIT",
                                        "TIMER", "USER",  "BLOCKING", "WORKER"};
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : "?";
}

static void say(leati_wait *wait, const char *format, ...) LEAT_PRINTF(2, 3);
static void say(leati_wait *wait, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(wait->text, sizeof wait->text, format, args);
    va_end(args);
}

// The other end of the wait: one subtask of a vertex, or (UINT32_MAX) several of them.
static void say_end(leati_wait *wait, const leati_vertex *vertex, uint32_t subtask,
                    const char *before, const char *after)
{
    wait->vertex = vertex->id;
    wait->subtask = subtask;
    if (subtask == UINT32_MAX)
        say(wait, "%s \"%.80s\"%s", before, vertex->name, after);
    else
        say(wait, "%s \"%.80s\" (%u/%u)%s", before, vertex->name, subtask + 1, vertex->parallelism,
            after);
}

// --- output ---

// The channels of one writer: the fullest of them, and whether they keep the task from going on.
typedef struct output_look {
    uint32_t most;        // segments in the fullest
    uint32_t fullest;     // the first of those that have that many
    uint32_t count;       // how many have
    bool blocked;         // one is at its bound, or the pool is used up
    bool no_credit;       // the fullest has no credit
    int64_t no_credit_ns; // since when
} output_look;

// What the transport has of a channel that leads to another process. False when it leads to none,
// or there is no link any more.
static bool look_at_link(const leat_job *job, const leati_task_exchange *exchange, uint32_t channel,
                         leati_link_wait *link_wait)
{
    leati_placed *placed = job->placed;
    if (leati_job_has_task(job, exchange->edge->to_vertex, exchange->first + channel))
        return false;
    pthread_mutex_lock(&placed->link_lock);
    bool open = placed->link != NULL;
    if (open)
        placed->transport->look(placed->link, exchange->number + channel, link_wait);
    pthread_mutex_unlock(&placed->link_lock);
    return open;
}

static output_look look_at_output(const leati_task *t, uint32_t exit)
{
    const leat_job *job = t->job;
    const leati_task_exchange *exchange = &t->exchanges[exit];
    uint32_t bound = (uint32_t)leati_config_get(&job->config, LEATI_CONFIG_MAX_BUFFERS_PER_CHANNEL);
    output_look look = {0};
    for (uint32_t c = 0; c < exchange->count; c++) {
        leati_link_wait link_wait = {0};
        bool sent = look_at_link(job, exchange, c, &link_wait);
        uint32_t length = leati_channel_length(exchange->channels[c]);
        look.blocked |= length >= bound;
        if (sent && link_wait.backlog > length)
            length = link_wait.backlog;
        bool fuller = c == 0 || length > look.most;
        if (fuller)
            look.count = 0;
        // Of two that are equally full the one without credit tells more.
        if (fuller || (length == look.most && link_wait.no_credit && !look.no_credit)) {
            look.most = length;
            look.fullest = c;
            look.no_credit = link_wait.no_credit;
            look.no_credit_ns = link_wait.since_ns;
        }
        look.count += length == look.most;
    }
    uint32_t used, limit;
    leati_local_pool_counts(t->pools[exit], &used, &limit);
    look.blocked |= used >= limit;
    return look;
}

static void find_output(const leati_task *t, leati_wait *wait)
{
    output_look worst = {0};
    uint32_t exit = UINT32_MAX;
    for (uint32_t i = 0; i < t->exit_count; i++) {
        output_look look = look_at_output(t, i);
        if (exit == UINT32_MAX || (look.blocked && !worst.blocked) ||
            (look.blocked == worst.blocked && look.most > worst.most)) {
            worst = look;
            exit = i;
        }
    }
    wait->kind = LEATI_WAIT_BUFFER;
    if (exit == UINT32_MAX)
        return;
    const leati_task_exchange *exchange = &t->exchanges[exit];
    const leati_vertex *to = &t->job->graph->vertices[exchange->edge->to_vertex];
    uint32_t subtask =
        worst.count > 1 && !worst.no_credit ? UINT32_MAX : exchange->first + worst.fullest;
    char after[48];
    snprintf(after, sizeof after, ": %u segments are queued", worst.most);
    if (worst.no_credit) {
        wait->kind = LEATI_WAIT_CREDIT;
        wait->since_ns = worst.no_credit_ns;
        say_end(wait, to, subtask, "credit from", after);
    } else {
        say_end(wait, to, subtask, "room in its output to", after);
    }
}

// --- input ---

// The exchanges whose channels have not all ended.
typedef struct input_look {
    const leati_job_edge *edge; // the first of them
    uint32_t edges;             // how many
    uint32_t open, channels;    // of the first
    uint32_t producer;          // the first that has not ended
} input_look;

static void look_at_edge(const leati_task_input *in, const leati_job_edge *edge, uint32_t base,
                         uint32_t first, uint32_t count, input_look *look)
{
    uint32_t open = 0, producer = 0;
    for (uint32_t i = count; i-- > 0;)
        if (!atomic_load_explicit(&in->ended[base + i], memory_order_relaxed)) {
            open++;
            producer = first + i;
        }
    if (open == 0 || look->edges++ > 0)
        return;
    *look = (input_look){
        .edge = edge, .edges = 1, .open = open, .channels = count, .producer = producer};
}

// Before it opens it reads its broadcast variables, which come behind the inputs.
static bool gathers_broadcasts(const leati_task *t)
{
    return t->broadcasts &&
           atomic_load_explicit(&t->stage, memory_order_relaxed) == LEATI_STAGE_OPENING;
}

static input_look look_at_input(const leati_task *t)
{
    const leati_job_graph *graph = t->job->graph;
    const leati_task_input *in = &t->input;
    input_look look = {0};
    uint32_t base = 0, first_input = 0;
    if (gathers_broadcasts(t)) {
        in = leati_broadcasts_input(t->broadcasts);
        first_input = t->vertex->ops[0].input_count;
    }
    // In the order of the gate's channels: by input, then by edge.
    for (uint32_t input = 0; input < in->port_count; input++)
        for (uint32_t e = 0; e < graph->edge_count; e++) {
            const leati_job_edge *edge = &graph->edges[e];
            if (edge->to_vertex != t->vertex->id || edge->input != first_input + input)
                continue;
            uint32_t first, count = leati_deploy_producers(graph, edge, t->subtask, &first);
            look_at_edge(in, edge, base, first, count, &look);
            base += count;
        }
    return look;
}

// True when there is an exchange that it waits for.
static bool find_input(const leati_task *t, leati_wait *wait)
{
    input_look look = look_at_input(t);
    if (look.edges == 0)
        return false;
    const leati_vertex *from = &t->job->graph->vertices[look.edge->from_vertex];
    char after[64] = "";
    if (look.edges > 1)
        snprintf(after, sizeof after, " nor from %u other exchange%s", look.edges - 1,
                 look.edges == 2 ? "" : "s");
    else if (look.open == look.channels && look.open > 1)
        snprintf(after, sizeof after, " (all %u subtasks)", look.open);
    else if (look.open > 1)
        snprintf(after, sizeof after, " (%u subtasks, the other %u have ended)", look.open,
                 look.channels - look.open);
    say_end(wait, from, look.edges == 1 && look.open == 1 ? look.producer : UINT32_MAX,
            look.edge->blocking ? "the end of" : "no input from", after);
    if (look.edges > 1)
        wait->vertex = UINT32_MAX;
    return true;
}

// The time that a source waits for; INT64_MAX when it waits for something else.
static int64_t alarm_of(const leati_task *t, const leat_ctx **source)
{
    int64_t due = INT64_MAX;
    for (uint32_t i = 0; i < t->chain.count; i++) {
        const leat_ctx *ctx = &t->chain.ctx[i];
        if (!(t->vertex->ops[i].flags & LEATI_NODE_SOURCE))
            continue;
        *source = ctx;
        if (atomic_load_explicit(&ctx->watching, memory_order_relaxed))
            return INT64_MAX;
        int64_t alarm = atomic_load_explicit(&ctx->alarm_ns, memory_order_relaxed);
        due = alarm < due ? alarm : due;
    }
    return due;
}

static void find_source(leat_job *job, const leati_task *t, leati_wait *wait)
{
    const leat_ctx *source = &t->chain.ctx[0];
    int64_t due = alarm_of(t, &source);
    if (leati_asking_is_pending(job, t)) {
        say(wait, "the answer of another process to \"%.80s\"", source->node->name);
    } else if (due != INT64_MAX) {
        wait->kind = LEATI_WAIT_TIMER;
        int64_t left_ms = (due - leati_service_now_ns(job->runtime->service)) / 1000000;
        say(wait, "an alarm of \"%.80s\", due in %lld ms", source->node->name,
            (long long)(left_ms > 0 ? left_ms : 0));
    } else {
        say(wait, "nothing from outside for \"%.80s\"", source->node->name);
    }
}

// --- user code ---

static void find_user(const leati_task *t, int64_t now, int64_t turn_ns, leati_wait *wait)
{
    const leat_ctx *blocking = atomic_load_explicit(&t->blocking, memory_order_acquire);
    int64_t blocking_ns = atomic_load_explicit(&t->blocking_ns, memory_order_relaxed);
    wait->since_ns = atomic_load_explicit(&t->busy_since_ns, memory_order_relaxed);
    if (blocking && now - blocking_ns >= LONG_NS) {
        wait->kind = LEATI_WAIT_BLOCKING;
        wait->since_ns = blocking_ns;
        say(wait, "a blocking call of \"%.100s\"", blocking->node->name);
    } else if (now - turn_ns >= LONG_NS) {
        int stage = atomic_load_explicit(&t->stage, memory_order_relaxed);
        wait->kind = LEATI_WAIT_USER;
        wait->since_ns = turn_ns;
        say(wait, "%s of \"%.100s\"",
            stage == LEATI_STAGE_OPENING ? "an open function" : "a user function", t->vertex->name);
    }
}

// --- the whole ---

void leati_job_task_wait(const leat_job *job, uint32_t index, leati_wait *wait)
{
    const leati_task *t = &job->tasks[index];
    *wait = (leati_wait){.vertex = UINT32_MAX, .subtask = UINT32_MAX};
    int64_t now = leati_clock_ns();
    // Acquire pairs with the release in account: what was noted about the gap is there.
    leati_gap gap = (leati_gap)atomic_load_explicit(&t->gap, memory_order_acquire);
    int64_t stamp = atomic_load_explicit(&t->stamp_ns, memory_order_relaxed);
    uint32_t phase = atomic_load_explicit(&t->run.state, memory_order_relaxed);
    bool ended = atomic_load_explicit(&t->stage, memory_order_relaxed) >= LEATI_STAGE_FINISHED;
    wait->since_ns = stamp;
    if (ended)
        return;
    if (gap == LEATI_GAP_HARD) {
        find_output(t, wait);
    } else if (gap == LEATI_GAP_READY && !leati_runnable_is_ready(phase)) {
        find_user(t, now, stamp, wait);
    } else if (gap == LEATI_GAP_READY) {
        wait->kind = now - stamp >= LONG_NS ? LEATI_WAIT_WORKER : LEATI_WAIT_NONE;
        if (wait->kind == LEATI_WAIT_WORKER)
            say(wait, "a worker thread: all are busy");
    } else if (!leati_runnable_is_ready(phase)) { // else it has just been woken
        wait->since_ns = atomic_load_explicit(&t->wait_since_ns, memory_order_relaxed);
        wait->kind = LEATI_WAIT_INPUT;
        if (gap == LEATI_GAP_SOFT)
            find_output(t, wait);
        else if (!find_input(t, wait))
            find_source((leat_job *)job, t, wait);
    }
    // It may read at this moment: it waits for the end all the same.
    if (wait->kind == LEATI_WAIT_NONE && gathers_broadcasts(t) && find_input(t, wait))
        wait->kind = LEATI_WAIT_INPUT;
}
