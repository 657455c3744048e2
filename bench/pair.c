// SPDX-License-Identifier: Apache-2.0
#include "bench/pair.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/certificates.h"
#include "bench/job.h"
#include "bench/pacer.h"
#include "leat/leat.h"
#include "network/nng/exchange.h"
#include "runtime/execution.h"
#include "runtime/placement.h"

enum { ADDRESS = LEATI_EXCHANGE_ADDRESS, PIECE = 32, PATIENCE_MS = 10000 };

typedef struct row {
    int64_t id;
    leat_str body;
} row;
LEAT_RECORD(row, LEAT_FIELD(id, LEAT_I64), LEAT_FIELD(body, LEAT_STR));

// What the other process is told.
typedef struct order {
    pair_plan plan;
    char folder[64]; // for the socket files
} order;

// What the job of one process is made of.
typedef struct side {
    const pair_plan *plan;
    const char *folder;
    _Atomic uint64_t records, sum;
    _Atomic uint32_t ended; // sinks
    arrivals arrivals;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over, finished; // under the lock
} side;

void pair_expect(const pair_plan *plan, pair_result *result)
{
    *result = (pair_result){0};
    for (uint32_t i = 0; i < plan->sources; i++) {
        uint64_t n = i ? plan->each : plan->first;
        result->records += n;
        result->sum += n * (n - 1) / 2 + n * plan->body;
    }
}

// --- the source ---

typedef struct maker {
    leat_operator base;
    leat_str body;
    uint64_t next, end;
} maker;

static leat_err maker_poll(leat_operator *self, leat_out *out, uint32_t max_records,
                           leat_poll *state)
{
    maker *own = (maker *)self;
    uint64_t left = own->end - own->next, count = left < max_records ? left : max_records, i = 0;
    leat_err err = LEAT_OK;
    while (i < count && !err) {
        row rows[PIECE];
        uint32_t made = count - i < PIECE ? (uint32_t)(count - i) : PIECE, out_of_them = made;
        for (uint32_t k = 0; k < made; k++)
            rows[k] = (row){(int64_t)(own->next + i + k), own->body};
        err = leat_collect_some(self->ctx, out, rows, &out_of_them);
        i += out_of_them;
        if (out_of_them < made || !leat_out_available(self->ctx))
            break;
    }
    own->next += i;
    *state = own->next == own->end ? LEAT_POLL_END : LEAT_POLL_MORE;
    leat_ctx_count_in(self->ctx, i, i * own->body.size);
    return err;
}

static void maker_dispose(leat_operator *self)
{
    maker *own = (maker *)self;
    free((void *)(uintptr_t)own->body.data);
    free(own);
}

static leat_err maker_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    static const leat_operator_ops ops = {
        .kind = "source: rows", .poll = maker_poll, .dispose = maker_dispose};
    const pair_plan *plan = factory->config;
    maker *made = malloc(sizeof *made);
    char *body = malloc(plan->body);
    if (!made || !body) {
        free(made);
        free(body);
        return LEAT_ENOMEM;
    }
    memset(body, 'x', plan->body);
    *made = (maker){.base = {.ops = &ops},
                    .body = {body, plan->body},
                    .end = leat_ctx_subtask(ctx) ? plan->each : plan->first};
    *op = &made->base;
    // cppcheck-suppress memleak; the operator has it
    return LEAT_OK;
}

// --- the sinks ---

typedef struct taker {
    leat_operator base;
    side *side;
    bool stalls;
    uint64_t records, sum;
} taker;

static void await_others(taker *own)
{
    const struct timespec pause = {.tv_nsec = 500000};
    own->stalls = false;
    leat_blocking_begin(own->base.ctx);
    while (atomic_load_explicit(&own->side->ended, memory_order_relaxed) + 1 <
           own->side->plan->sinks)
        nanosleep(&pause, NULL);
    leat_blocking_end(own->base.ctx);
}

static leat_err taker_element(leat_operator *self, const void *record, leat_out *out)
{
    taker *own = (taker *)self;
    const row *in = record;
    if (LEAT_UNLIKELY(own->stalls))
        await_others(own);
    own->records++;
    own->sum += (uint64_t)in->id + in->body.size;
    return LEAT_OK;
}

// Several at once, as folds take them.
static leat_err taker_elements(leat_operator *self, const void *records, uint32_t count,
                               leat_out *out)
{
    taker *own = (taker *)self;
    const row *in = records;
    if (LEAT_UNLIKELY(own->stalls))
        await_others(own);
    own->records += count;
    for (uint32_t i = 0; i < count; i++)
        own->sum += (uint64_t)in[i].id + in[i].body.size;
    return LEAT_OK;
}

static leat_err taker_close(leat_operator *self)
{
    taker *own = (taker *)self;
    atomic_fetch_add_explicit(&own->side->records, own->records, memory_order_relaxed);
    atomic_fetch_add_explicit(&own->side->sum, own->sum, memory_order_relaxed);
    atomic_fetch_add_explicit(&own->side->ended, 1, memory_order_relaxed);
    return LEAT_OK;
}

static void taker_dispose(leat_operator *self)
{
    free(self);
}

static leat_err taker_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    static const leat_operator_ops ops = {.kind = "take",
                                          .element = taker_element,
                                          .elements = taker_elements,
                                          .close = taker_close,
                                          .dispose = taker_dispose};
    taker *made = calloc(1, sizeof *made);
    if (!made)
        return LEAT_ENOMEM;
    made->base.ops = &ops;
    // A factory's settings are const to it; what it writes to is not.
    made->side = (side *)(uintptr_t)factory->config;
    made->stalls = made->side->plan->stalls && leat_ctx_subtask(ctx) == 0;
    *op = &made->base;
    return LEAT_OK;
}

static int arrive(leat_ctx *ctx, const void *in)
{
    const stamped *record = in;
    arrivals *result = leat_ctx_user_data(ctx);
    result->records++;
    result->sum += (uint64_t)record->index;
    histogram_add(&result->latencies, bench_now_ns() - record->due_ns);
    return 0;
}

// --- the job ---

static leat_env *build(side *s)
{
    const pair_plan *plan = s->plan;
    leat_env *env = bench_env(plan->workers, plan->sources);
    if (!env)
        return NULL;
    if (plan->floating > 0) {
        char text[16];
        snprintf(text, sizeof text, "%" PRIu32, plan->floating);
        // Should one fail, it becomes a fault, which stops the job.
        (void)leat_env_set(env, "network.floating-buffers", text);
        (void)leat_env_set(env, "network.max-buffers-per-channel", text);
    }
    if (plan->pace.records > 0) {
        leat_stream *due = leat_source(env, "schedule", &(leat_factory){pacer_create, &plan->pace},
                                       LEAT_TYPE(stamped));
        leat_user_data(leat_disable_chaining(leat_sink(leat_rebalance(due), arrive)), &s->arrivals);
        return env;
    }
    leat_stream *rows = leat_parallelism(
        leat_source(env, "rows", &(leat_factory){maker_create, plan}, LEAT_TYPE(row)),
        plan->sources);
    rows = plan->forward ? leat_forward(rows) : leat_rebalance(rows);
    leat_stream *end = leat_transform_sink(rows, "take", &(leat_factory){taker_create, s});
    leat_disable_chaining(leat_parallelism(end, plan->sinks));
    return env;
}

static void on_stage(void *user, uint32_t vertex, uint32_t subtask, leati_stage stage)
{
}

static void on_failed(void *user, leat_err err, const char *text, uint32_t vertex, uint32_t subtask)
{
    fprintf(stderr, "%s\n", text);
}

static void on_tasks_over(void *user, bool finished)
{
    side *s = user;
    pthread_mutex_lock(&s->lock);
    s->over = true;
    s->finished = finished;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static leat_err on_ask(void *user, uint32_t process, uint32_t node, uint64_t token,
                       const uint8_t *question, size_t size)
{
    return LEAT_EINVAL;
}

static void on_answer(void *user, uint32_t process, uint64_t token, leat_err err,
                      const uint8_t *answer, size_t size)
{
}

static const leati_placement_hooks hooks = {
    .task_stage = on_stage,
    .failed = on_failed,
    .tasks_over = on_tasks_over,
    .ask = on_ask,
    .answer = on_answer,
};

static bool await_end(side *s)
{
    pthread_mutex_lock(&s->lock);
    while (!s->over)
        pthread_cond_wait(&s->changed, &s->lock);
    bool finished = s->finished;
    pthread_mutex_unlock(&s->lock);
    return finished;
}

// Deploys this process's share and runs it to its end.
static int run_job(side *s, leat_env *env, leat_runtime *runtime, leati_transport *exchange,
                   uint32_t self, const char addresses[2][ADDRESS])
{
    static const char *const names[] = {"the near process", "the far process"};
    static const char *const ids[] = {"0", "1"};
    const char *at[] = {addresses[0], addresses[1]};
    const pair_plan *plan = s->plan;
    uint32_t tasks = plan->pace.records ? 2 : plan->sources + plan->sinks;
    uint32_t sources = plan->pace.records ? 1 : plan->sources;
    uint32_t *process_of = calloc(tasks, sizeof *process_of);
    if (!process_of)
        return -1;
    for (uint32_t i = sources; i < tasks; i++)
        process_of[i] = 1;
    const leati_placement placement = {
        .attempt = 1,
        .self = self,
        .process_of = process_of,
        .transport = exchange,
        .link = {.process_count = 2, .self = self, .names = names, .ids = ids, .addresses = at},
        .hooks = &hooks,
        .user = s,
    };
    leat_job *job;
    char why[256] = "";
    leat_err err = leati_start_placed(runtime, env, &placement, &job);
    free(process_of);
    if (err) {
        fprintf(stderr, "the job cannot be started: %s\n",
                leat_env_fault_count(env) ? leat_env_fault(env, 0) : leat_err_message(err));
        return -1;
    }
    bool finished = await_end(s);
    err = leati_job_conclude(job, finished, why, sizeof why);
    leat_job_destroy(&job);
    if (err)
        fprintf(stderr, "%s\n", why);
    return err || !finished ? -1 : 0;
}

// Where the two are to meet, `at`: at the socket file only, where that is wanted.
static int open_exchange(const side *s, uint32_t self, uint32_t segment_size,
                         const leati_auth *auth, leati_transport **exchange, char at[ADDRESS])
{
    static const char *const ids[] = {"0", "1"};
    char why[400] = "", path[80];
    snprintf(path, sizeof path, "%s/%u", s->folder, self);
    const leati_exchange_options options = {
        .address = "tcp://127.0.0.1:0",
        .socket_path = s->plan->near ? path : NULL,
        .process = ids[self],
        .auth = auth,
        .segment_size = segment_size,
        .connect_timeout_ms = PATIENCE_MS,
    };
    leat_err err = leati_exchange_create(&options, exchange, why, sizeof why);
    if (err || *why) {
        fprintf(stderr, "%s\n", why);
        if (!err)
            leati_exchange_destroy(exchange);
        return -1;
    }
    if (s->plan->near) // with a port at which nobody listens
        snprintf(at, ADDRESS, "tcp://127.0.0.1:1 ipc://%s", path);
    else
        snprintf(at, ADDRESS, "%s", leati_exchange_address(*exchange));
    return 0;
}

static int run_with_exchange(side *s, leat_env *env, leat_runtime *runtime, uint32_t self,
                             int socket, const leati_auth *auth)
{
    char addresses[2][ADDRESS] = {"", ""};
    leati_transport *exchange;
    if (open_exchange(s, self, (uint32_t)leati_global_pool_segment_size(runtime->pool), auth,
                      &exchange, addresses[self]) != 0)
        return -1;
    int result = far_put(socket, addresses[self], ADDRESS);
    if (!result)
        result = far_get(socket, addresses[1 - self], ADDRESS);
    if (!result)
        result =
            run_job(s, env, runtime, exchange, self, (const char(*)[ADDRESS])(void *)addresses);
    // A task manager outlives its jobs: neither goes before the other has ended.
    char done = 0;
    if (!result)
        result = far_put(socket, &done, sizeof done);
    if (!result)
        result = far_get(socket, &done, sizeof done);
    leati_exchange_destroy(&exchange);
    return result;
}

static int run_with_certificates(side *s, leat_env *env, leat_runtime *runtime, uint32_t self,
                                 int socket)
{
    char why[400];
    certificate_paths paths = {0};
    leati_auth auth = {0};
    const char *folder = s->plan->certificates;
    const leati_auth_files files = certificates_files(folder, &paths);
    if (*folder && leati_auth_open(&auth, &files, why, sizeof why)) {
        fprintf(stderr, "%s\n", why);
        return -1;
    }
    int result = run_with_exchange(s, env, runtime, self, socket, &auth);
    leati_auth_close(&auth);
    return result;
}

static int run_side(const order *o, uint32_t self, int socket, pair_result *result)
{
    static side s; // the histogram is large
    const pair_plan *plan = &o->plan;
    char why[256] = "";
    s = (side){.plan = plan, .folder = o->folder};
    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.changed, NULL);
    leat_env *env = build(&s);
    leat_runtime *runtime = NULL;
    if (!env)
        return -1;
    int status = 0;
    if (plan->alone) {
        status = bench_execute(&env);
    } else if (leat_runtime_create(env, &runtime, why, sizeof why)) {
        fprintf(stderr, "%s\n", why);
        status = -1;
    } else {
        status = run_with_certificates(&s, env, runtime, self, socket);
        leat_runtime_destroy(&runtime);
    }
    leat_env_destroy(&env);
    *result = (pair_result){.records = s.records, .sum = s.sum, .arrivals = s.arrivals};
    return status;
}

int pair_run(const pair_plan *plan, pair_result *result)
{
    static order o;
    o = (order){.plan = *plan};
    if (plan->alone)
        return run_side(&o, 0, -1, result);
    snprintf(o.folder, sizeof o.folder, "/tmp/leat-bench-XXXXXX");
    if (plan->near && !mkdtemp(o.folder)) {
        perror(o.folder);
        return -1;
    }
    static pair_result nothing;
    far_process far;
    int status = far_start(&far, "--pair");
    if (!status) {
        status = far_put(far.socket, &o, sizeof o);
        if (!status)
            status = run_side(&o, 0, far.socket, &nothing);
        if (!status)
            status = far_get(far.socket, result, sizeof *result);
        status = far_finish(&far) == 0 ? status : -1;
    }
    if (plan->near)
        rmdir(o.folder);
    return status;
}

int pair_far_main(void)
{
    static order o;
    static pair_result result;
    if (far_get(0, &o, sizeof o) != 0 || run_side(&o, 1, 0, &result) != 0)
        return 1;
    return far_put(0, &result, sizeof result) == 0 ? 0 : 1;
}
