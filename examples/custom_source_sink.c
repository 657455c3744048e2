// SPDX-License-Identifier: Apache-2.0
// A source and a sink of one's own. The job file custom_source_sink.so:
//
//     leat run custom_source_sink.so -- 5 100 ticks.txt
//
// The source ticks so many times, once in so many milliseconds, in each of its subtasks. It shares
// its thread with others, so it never waits itself: it asks to be called again when the next tick
// is due. The sink writes a line for each tick to a file.
#include <inttypes.h>
#include <leat/leat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t subtask, number;
} tick;
LEAT_RECORD(tick, LEAT_FIELD(subtask, LEAT_I64), LEAT_FIELD(number, LEAT_I64));

// Of the job; the factories point to it. It lives as long as the environment.
typedef struct {
    int64_t count, interval_ms;
    char path[];
} settings;

// --- the source ---

typedef struct {
    leat_operator base; // comes first in every operator
    const settings *settings;
    int64_t next, due_ns; // the next tick's number, and when it is due
} ticker;

static void schedule_next(ticker *t, int64_t after_ns)
{
    t->next++;
    t->due_ns = after_ns + t->settings->interval_ms * 1000000;
}

static leat_err ticker_open(leat_operator *self)
{
    schedule_next((ticker *)self, leat_ctx_now_ns(self->ctx));
    return LEAT_OK;
}

static leat_err ticker_poll(leat_operator *self, leat_out *out, uint32_t max_records,
                            leat_poll *state)
{
    ticker *t = (ticker *)self;
    int64_t now_ns = leat_ctx_now_ns(self->ctx), count = t->settings->count;
    for (uint32_t i = 0; i < max_records && t->due_ns <= now_ns && t->next <= count; i++) {
        tick made = {leat_ctx_subtask(self->ctx), t->next};
        leat_err err = leat_collect(out, &made);
        if (err != LEAT_OK)
            return err;
        schedule_next(t, t->due_ns);
    }
    if (t->next > count) {
        *state = LEAT_POLL_END;
    } else if (t->due_ns <= now_ns) {
        *state = LEAT_POLL_MORE;
    } else {
        *state = LEAT_POLL_WAIT;
        leat_ctx_wake_at(self->ctx, t->due_ns);
    }
    return LEAT_OK;
}

// Called whatever has happened; the only hook that is after a failure.
static void ticker_dispose(leat_operator *self)
{
    free(self);
}

static const leat_operator_ops ticker_ops = {
    .kind = "ticker",
    .open = ticker_open,
    .poll = ticker_poll,
    .dispose = ticker_dispose,
};

static leat_err ticker_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    ticker *made = calloc(1, sizeof *made);
    if (!made)
        return LEAT_ENOMEM;
    *made = (ticker){.base = {.ops = &ticker_ops}, .settings = factory->config};
    *op = &made->base;
    return LEAT_OK;
}

// --- the sink ---

typedef struct {
    leat_operator base;
    const settings *settings;
    FILE *file; // NULL while it is not open
} writer;

static leat_err file_failed(writer *w)
{
    leat_fail(w->base.ctx, "%s cannot be written", w->settings->path);
    return LEAT_EIO;
}

static leat_err writer_open(leat_operator *self)
{
    writer *w = (writer *)self;
    // A relative path is meant from the folder in which the job was submitted; on a cluster this
    // process has another one.
    char path[4096];
    const char *folder = leat_ctx_folder(self->ctx);
    if (!folder)
        return LEAT_EIO;
    bool whole = w->settings->path[0] == '/';
    int size = snprintf(path, sizeof path, "%s%s%s", whole ? "" : folder, whole ? "" : "/",
                        w->settings->path);
    w->file = size < (int)sizeof path ? fopen(path, "w") : NULL;
    return w->file ? LEAT_OK : file_failed(w);
}

static leat_err writer_element(leat_operator *self, const void *record, leat_out *out)
{
    writer *w = (writer *)self;
    const tick *t = record;
    return fprintf(w->file, "tick %" PRId64 " of subtask %" PRId64 "\n", t->number, t->subtask) < 0
               ? file_failed(w)
               : LEAT_OK;
}

// There is no more input for now, so nobody waits for lines in the buffer.
static leat_err writer_flush(leat_operator *self)
{
    writer *w = (writer *)self;
    return fflush(w->file) ? file_failed(w) : LEAT_OK;
}

// All has been written; what goes wrong now still fails the job.
static leat_err writer_close(leat_operator *self)
{
    writer *w = (writer *)self;
    FILE *file = w->file;
    w->file = NULL;
    return fclose(file) ? file_failed(w) : LEAT_OK;
}

static void writer_dispose(leat_operator *self)
{
    writer *w = (writer *)self;
    if (w->file)
        fclose(w->file);
    free(w);
}

static const leat_operator_ops writer_ops = {
    .kind = "writer",
    .open = writer_open,
    .element = writer_element,
    .flush = writer_flush,
    .close = writer_close,
    .dispose = writer_dispose,
};

static leat_err writer_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    writer *made = calloc(1, sizeof *made);
    if (!made)
        return LEAT_ENOMEM;
    *made = (writer){.base = {.ops = &writer_ops}, .settings = factory->config};
    *op = &made->base;
    return LEAT_OK;
}

// --- the job ---

LEAT_JOB(env, argc, argv)
{
    int64_t count = argc == 4 ? strtoll(argv[1], NULL, 10) : 0;
    int64_t interval_ms = argc == 4 ? strtoll(argv[2], NULL, 10) : 0;
    if (count < 1 || interval_ms < 1) {
        leat_env_fail(env, LEAT_EINVAL, "usage: custom_source_sink.so -- TICKS MILLISECONDS FILE");
        return;
    }
    size_t size = strlen(argv[3]) + 1;
    settings *s = leat_env_alloc(env, sizeof *s + size);
    if (!s)
        return;
    s->count = count;
    s->interval_ms = interval_ms;
    memcpy(s->path, argv[3], size);
    leat_factory source = {.create = ticker_create, .config = s};
    leat_factory sink = {.create = writer_create, .config = s};
    leat_env_set_name(env, "ticks");
    leat_stream *ticks = leat_source(env, "ticker", &source, LEAT_TYPE(tick));
    leat_parallelism(leat_transform_sink(ticks, "writer", &sink), 1);
}
