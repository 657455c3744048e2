// SPDX-License-Identifier: Apache-2.0
// leat_collect_records: a sink whose records the embedding program takes.
//
// The collection is a queue under a lock. A record is copied into its own block before the lock is
// taken. A task that finds the queue full waits on a condition and looks every POLL_MS whether the
// job was cancelled, since cancelling wakes tasks but not conditions.
#include "leat/collect.h"

#include <errno.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "leat/record.h"
#include "operators/builder.h"
#include "runtime/context.h"

enum { DEFAULT_BYTES = 64 << 20, POLL_MS = 50 };

// A collected record; what it points to stands behind it.
typedef struct item {
    struct item *next;
    size_t size_bytes; // of this block
    _Alignas(max_align_t) char record[];
} item;

struct leat_collection {
    leat_allocator allocator;
    // Immutable after the graph is built.
    size_t max_bytes, max_records;
    bool fail_when_full;
    const leat_type *type; // a reference; NULL until there is a stream
    // Of the one who takes records.
    item *taken; // the last one
    pthread_mutex_t lock;
    pthread_cond_t filled; // for the taker: there is a record, or an end
    pthread_cond_t room;   // for tasks
    // Under the lock.
    item *first, **last;
    size_t bytes, records;
    uint32_t closed; // subtasks of the present run that have come to their end
    bool ended;
};

// --- the program's side ---

leat_err leat_collection_create(const leat_collection_options *options,
                                leat_collection **collection)
{
    static const leat_collection_options defaults;
    if (!options)
        options = &defaults;
    const leat_allocator *allocator = leati_allocator_or_default(options->allocator);
    leat_collection *c = leati_calloc(allocator, 1, sizeof *c);
    if (!c)
        return LEAT_ENOMEM;
    c->allocator = *allocator;
    c->max_bytes = options->max_bytes ? options->max_bytes : DEFAULT_BYTES;
    c->max_records = options->max_records ? options->max_records : SIZE_MAX;
    c->fail_when_full = options->fail_when_full;
    c->last = &c->first;
    pthread_mutex_init(&c->lock, NULL);
    leati_cond_init(&c->filled);
    leati_cond_init(&c->room);
    *collection = c;
    return LEAT_OK;
}

void leat_collection_destroy(leat_collection **collection)
{
    leat_collection *c = *collection;
    if (!c)
        return;
    leat_allocator allocator = c->allocator;
    leati_free(&allocator, c->taken);
    for (item *i = c->first, *next; i; i = next) {
        next = i->next;
        leati_free(&allocator, i);
    }
    leat_type_release(c->type);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->filled);
    pthread_cond_destroy(&c->room);
    leati_free(&allocator, c);
    *collection = NULL;
}

leat_err leat_collection_next(leat_collection *c, int64_t timeout_ms, const void **record)
{
    struct timespec deadline = leati_deadline(timeout_ms > 0 ? timeout_ms : 0);
    bool timed_out = timeout_ms == 0;
    pthread_mutex_lock(&c->lock);
    while (!c->first && !c->ended && !timed_out)
        timed_out = timeout_ms < 0
                        ? pthread_cond_wait(&c->filled, &c->lock) != 0
                        : pthread_cond_timedwait(&c->filled, &c->lock, &deadline) == ETIMEDOUT;
    item *next = c->first;
    leat_err err = next ? LEAT_OK : c->ended ? LEAT_ECLOSED : LEAT_EAGAIN;
    if (next) {
        c->first = next->next;
        if (!c->first)
            c->last = &c->first;
        c->bytes -= next->size_bytes;
        c->records--;
        pthread_cond_signal(&c->room);
    }
    pthread_mutex_unlock(&c->lock);
    if (next) {
        leati_free(&c->allocator, c->taken);
        c->taken = next;
        *record = next->record;
    }
    return err;
}

void leat_collection_end(leat_collection *c)
{
    pthread_mutex_lock(&c->lock);
    c->ended = true;
    pthread_cond_broadcast(&c->filled);
    pthread_mutex_unlock(&c->lock);
}

const leat_type *leat_collection_type(const leat_collection *c)
{
    return c->type;
}

// --- the job's side ---

typedef struct collect_operator {
    leat_operator base;
    leat_collection *collection;
    uint64_t taken, taken_bytes; // not yet added to the task's counts
} collect_operator;

// Whether some subtask of this run has opened.
typedef struct run {
    const leat_allocator *allocator;
    bool begun;
} run;

static leat_err run_create(leat_ctx *ctx, void **object)
{
    run *r = leati_calloc(leat_ctx_allocator(ctx), 1, sizeof *r);
    if (!r)
        return leati_ctx_error(ctx, LEAT_ENOMEM, "no memory to collect records");
    r->allocator = leat_ctx_allocator(ctx);
    *object = r;
    return LEAT_OK;
}

static void run_destroy(void *object)
{
    leati_free(((run *)object)->allocator, object);
}

// A run begins with the collection open; what the one before left is kept.
static leat_err collect_open(leat_operator *self)
{
    static const leati_shared_ops shared = {.create = run_create, .destroy = run_destroy};
    leat_collection *c = ((collect_operator *)self)->collection;
    void *object;
    leat_err err = leati_ctx_shared(self->ctx, &shared, &object);
    if (err)
        return err;
    run *r = object;
    pthread_mutex_lock(&c->lock);
    if (!r->begun) {
        r->begun = true;
        c->closed = 0;
        c->ended = false;
    }
    pthread_mutex_unlock(&c->lock);
    return LEAT_OK;
}

static bool fits_locked(const leat_collection *c, const item *i)
{
    return !c->first || (c->records < c->max_records && c->bytes + i->size_bytes <= c->max_bytes);
}

static void append_locked(leat_collection *c, item *i)
{
    if (!c->first)
        pthread_cond_signal(&c->filled);
    *c->last = i;
    c->last = &i->next;
    c->bytes += i->size_bytes;
    c->records++;
}

// Waits until the record fits and appends it; false when the job is ending.
static bool append_when_room(collect_operator *op, item *i)
{
    leat_collection *c = op->collection;
    leat_blocking_begin(op->base.ctx);
    pthread_mutex_lock(&c->lock);
    bool fits;
    while (!(fits = fits_locked(c, i)) && !leat_ctx_cancelled(op->base.ctx)) {
        struct timespec deadline = leati_deadline(POLL_MS);
        pthread_cond_timedwait(&c->room, &c->lock, &deadline);
    }
    if (fits)
        append_locked(c, i);
    // Another task may fit as well.
    pthread_cond_signal(&c->room);
    pthread_mutex_unlock(&c->lock);
    leat_blocking_end(op->base.ctx);
    return fits;
}

static leat_err put(collect_operator *op, item *i)
{
    leat_collection *c = op->collection;
    pthread_mutex_lock(&c->lock);
    bool fits = fits_locked(c, i);
    if (fits)
        append_locked(c, i);
    size_t records = c->records, bytes = c->bytes;
    pthread_mutex_unlock(&c->lock);
    if (fits)
        return LEAT_OK;
    if (!c->fail_when_full)
        return append_when_room(op, i) ? LEAT_OK : LEAT_ECANCELLED;
    return leati_ctx_error(op->base.ctx, LEAT_ETOOBIG,
                           "the collection is full: it holds %zu records in %zu bytes", records,
                           bytes);
}

static leat_err collect_element(leat_operator *self, const void *record, leat_out *out)
{
    collect_operator *op = (collect_operator *)self;
    leat_collection *c = op->collection;
    size_t own = (c->type->size + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
    size_t size = sizeof(item) + own + leat_record_extra_size(c->type, record);
    item *i = leati_alloc(&c->allocator, size);
    if (!i)
        return leati_ctx_error(self->ctx, LEAT_ENOMEM, "no memory for a record of %zu bytes", size);
    i->next = NULL;
    i->size_bytes = size;
    leat_record_copy_into(c->type, record, i->record, i->record + own);
    leat_err err = put(op, i);
    if (err) {
        leati_free(&c->allocator, i);
        return err;
    }
    op->taken++;
    op->taken_bytes += size;
    return LEAT_OK;
}

static leat_err collect_flush(leat_operator *self)
{
    collect_operator *op = (collect_operator *)self;
    leat_ctx_count_out(self->ctx, op->taken, op->taken_bytes);
    op->taken = op->taken_bytes = 0;
    return LEAT_OK;
}

// The last subtask ends the stream for whoever takes the records.
static leat_err collect_close(leat_operator *self)
{
    leat_collection *c = ((collect_operator *)self)->collection;
    pthread_mutex_lock(&c->lock);
    bool last = ++c->closed == leat_ctx_parallelism(self->ctx);
    pthread_mutex_unlock(&c->lock);
    if (last)
        leat_collection_end(c);
    return collect_flush(self);
}

static void collect_dispose(leat_operator *self)
{
    (void)collect_flush(self);
    leati_operator_dispose(self);
}

static const leat_operator_ops collect_ops = {
    .kind = "collect",
    .open = collect_open,
    .element = collect_element,
    .flush = collect_flush,
    .close = collect_close,
    .dispose = collect_dispose,
};

static leat_err collect_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    collect_operator *collect = leati_operator_create(ctx, sizeof *collect, &collect_ops);
    if (!collect)
        return LEAT_ENOMEM;
    // The collection is the program's; the graph only passes it through.
    collect->collection = *(leat_collection *const *)factory->config;
    *op = &collect->base;
    return LEAT_OK;
}

static void job_over(const void *config)
{
    leat_collection_end(*(leat_collection *const *)config);
}

leat_stream *leat_collect_records(leat_stream *in, leat_collection *collection)
{
    static const char call[] = "leat_collect_records";
    leat_env *env = leati_stream_env(in);
    if (!leati_builder_input(in))
        return leati_graph_inert(env);
    if (!collection)
        return leati_builder_fault_on(in, call, "the collection is NULL");
    if (collection->type)
        return leati_builder_fault_on(in, call, "the collection has a stream already");
    leat_collection **config = leat_env_alloc(env, sizeof *config);
    if (!config)
        return leati_graph_inert(env);
    *config = collection;
    collection->type = leat_type_hold(leati_stream_type(in));
    return leati_graph_add(env, in,
                           &(leati_node_spec){.kind = "collect",
                                              .flags = LEATI_NODE_SINK | LEATI_NODE_LOCAL,
                                              .factory = {collect_create, config},
                                              .job_over = job_over});
}
