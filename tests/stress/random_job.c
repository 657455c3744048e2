// SPDX-License-Identifier: Apache-2.0
// From the description of a random graph to a job: the records, the functions, the builder calls.
#include "random_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct item {
    int64_t key, value;
    leat_str pad; // spells out a tag, see pad_fill
} item;
LEAT_RECORD(item, LEAT_FIELD(key, LEAT_I64), LEAT_FIELD(value, LEAT_I64),
            LEAT_FIELD(pad, LEAT_STR));

typedef struct tally {
    int64_t count, sum, key;
    leat_str pad;
} tally;
LEAT_RECORD(tally, LEAT_FIELD(count, LEAT_I64), LEAT_FIELD(sum, LEAT_I64),
            LEAT_FIELD(key, LEAT_I64), LEAT_FIELD(pad, LEAT_STR));

graph now;

static int64_t pad_tag(leat_str pad)
{
    if (pad.size == 0)
        return 0;
    char digits[17] = "", expected[MAX_PAD];
    memcpy(digits, pad.data, pad.size < 16 ? pad.size : 16);
    int64_t tag = (int64_t)strtoull(digits, NULL, 16);
    if (tag <= 0 || tag >= TAGS || pad.size != pad_size(tag))
        wrong(&now, "a string of the wrong size", (uint64_t)tag, pad.size);
    pad_fill(tag, expected);
    if (memcmp(expected, pad.data, pad.size) != 0)
        wrong(&now, "a string of the wrong bytes", (uint64_t)tag, pad.size);
    return tag;
}

static plain plain_of(const item *i)
{
    return (plain){i->key, i->value, pad_tag(i->pad)};
}

static leat_str pad_of(leat_ctx *ctx, int64_t tag)
{
    uint32_t size = pad_size(tag);
    char *data = leat_ctx_scratch(ctx, size + 1);
    if (!data)
        wrong(&now, "no scratch memory", size, 0);
    pad_fill(tag, data);
    return (leat_str){data, size};
}

// Sleeps now and then, and fails where the graph says so.
static int dawdle(leat_ctx *ctx, const op *o, plain p)
{
    if (o->fails)
        return leat_fail(ctx, "told to fail at %" PRId64, p.value);
    if (o->slow_every && mix((uint64_t)p.value + o->salt) % o->slow_every == 0) {
        if (o->blocking)
            leat_blocking_begin(ctx);
        usleep(o->slow_us);
        if (o->blocking)
            leat_blocking_end(ctx);
    }
    return 0;
}

static int number_fn(leat_ctx *ctx, const void *in, void *out)
{
    plain p = from_number(leat_ctx_user_data(ctx), *(const int64_t *)in);
    *(item *)out = (item){p.key, p.value, pad_of(ctx, p.tag)};
    return 0;
}

static int map_fn(leat_ctx *ctx, const void *in, void *out)
{
    const op *o = leat_ctx_user_data(ctx);
    plain p = plain_of(in);
    int failed = dawdle(ctx, o, p);
    p = mapped(o, p, 0);
    *(item *)out = (item){p.key, p.value, pad_of(ctx, p.tag)};
    return failed;
}

static int flat_map_fn(leat_ctx *ctx, const void *in, leat_out *out)
{
    const op *o = leat_ctx_user_data(ctx);
    plain from = plain_of(in);
    int failed = dawdle(ctx, o, from);
    for (size_t i = 0; i < multiplied(o, from); i++) {
        plain p = mapped(o, from, i);
        char pad[MAX_PAD];
        pad_fill(p.tag, pad);
        item made = {p.key, p.value, {pad, pad_size(p.tag)}};
        // Going on after an error is allowed; every other graph does.
        if (leat_collect(out, &made) && o->salt % 2)
            return -1;
    }
    return failed;
}

static int filter_fn(leat_ctx *ctx, const void *in)
{
    const op *o = leat_ctx_user_data(ctx);
    plain p = plain_of(in);
    return dawdle(ctx, o, p) ? -1 : kept(o, p);
}

// --- two inputs, two outputs, loops ---

static const leat_tag aside = {.name = "aside", .type = LEAT_TYPE(item)};

typedef struct rejected {
    leat_str error;
    item record;
} rejected;
LEAT_RECORD(rejected, LEAT_FIELD(error, LEAT_STR), LEAT_FIELD_STRUCT(record, item));

static int co_fn(leat_ctx *ctx, const void *in, leat_out *out, uint64_t nth)
{
    const op *o = leat_ctx_user_data(ctx);
    plain p = plain_of(in);
    int failed = dawdle(ctx, o, p);
    p = mapped(o, p, nth);
    item made = {p.key, p.value, pad_of(ctx, p.tag)};
    return leat_collect(out, &made) ? -1 : failed;
}

static int first_fn(leat_ctx *ctx, const void *in, leat_out *out)
{
    return co_fn(ctx, in, out, 0);
}

static int second_fn(leat_ctx *ctx, const void *in, leat_out *out)
{
    return co_fn(ctx, in, out, 1);
}

static int parts_fn(leat_ctx *ctx, const void *in, leat_out *out)
{
    const op *o = leat_ctx_user_data(ctx);
    plain p = plain_of(in);
    int failed = dawdle(ctx, o, p);
    leat_err err = kept(o, p) ? leat_collect(out, in) : leat_collect_side(ctx, &aside, in);
    return err ? -1 : failed;
}

static int rejecting_fn(leat_ctx *ctx, const void *in, void *out)
{
    const op *o = leat_ctx_user_data(ctx);
    plain p = plain_of(in);
    *(item *)out = *(const item *)in;
    if (!kept(o, p))
        return o->salt % 2 ? -7 : leat_fail(ctx, "%" PRId64 " is refused", p.value);
    return dawdle(ctx, o, p);
}

static int unwrap_fn(leat_ctx *ctx, const void *in, void *out)
{
    const rejected *r = in;
    if (r->error.size == 0)
        return leat_fail(ctx, "a rejected record without an error");
    *(item *)out = r->record;
    return 0;
}

static int loop_fn(leat_ctx *ctx, const void *in, leat_out *out)
{
    const op *o = leat_ctx_user_data(ctx);
    plain p = plain_of(in);
    int failed = dawdle(ctx, o, p);
    bool again = goes_round(o, &p);
    item made = {p.key, p.value, ((const item *)in)->pad};
    leat_err err = again ? leat_collect_side(ctx, &aside, &made) : leat_collect(out, &made);
    return err ? -1 : failed;
}

static leat_stream *parts_of(leat_stream *in, const op *o)
{
    if (o->rejects)
        return leat_map(in, rejecting_fn, LEAT_TYPE(item));
    return leat_process(in, &(leat_process_fns){.element = parts_fn}, LEAT_TYPE(item));
}

static leat_stream *side_of(leat_stream *parts, const op *o)
{
    if (o->rejects)
        return leat_map(leat_rejects(parts), unwrap_fn, LEAT_TYPE(item));
    return leat_side_output(parts, &aside);
}

static leat_stream *loop_of(leat_stream *in, const op *o)
{
    bool own = o->route == BROADCAST || o->route == FORWARD;
    leat_stream *head = leat_iterate(in, 1500);
    leat_parallelism(head, own ? o->parallelism : 1 + (uint32_t)(o->salt % 3));
    leat_stream *body =
        leat_process(head, &(leat_process_fns){.element = loop_fn}, LEAT_TYPE(item));
    leat_close_with(head, leat_side_output(body, &aside));
    // With -1, which others may have, nothing would come round.
    leat_buffer_timeout(head, o->timeout_ms < 0 ? 2 : o->timeout_ms);
    leat_buffer_timeout(body, 1);
    return body;
}

static int key_fn(leat_ctx *ctx, const void *in, void *key)
{
    *(int64_t *)key = ((const item *)in)->key % 7;
    return 0;
}

static int reduce_fn(leat_ctx *ctx, void *accumulator, const void *in)
{
    item *to = accumulator;
    const item *from = in;
    to->value += from->value;
    to->key = larger(to->key, from->key);
    if (pad_tag(from->pad) > pad_tag(to->pad))
        to->pad = from->pad;
    return 0;
}

static int tally_add(leat_ctx *ctx, void *accumulator, const void *in)
{
    tally *to = accumulator;
    const item *from = in;
    to->count++;
    to->sum += from->value;
    to->key = larger(to->key, from->key);
    if (pad_tag(from->pad) > pad_tag(to->pad))
        to->pad = from->pad;
    return 0;
}

static int tally_result(leat_ctx *ctx, const void *accumulator, void *out)
{
    const tally *from = accumulator;
    *(item *)out = (item){from->key, from->sum + from->count, from->pad};
    return 0;
}

static int sink_fn(leat_ctx *ctx, const void *in)
{
    op *o = leat_ctx_user_data(ctx);
    plain p = plain_of(in);
    pthread_mutex_lock(&o->lock);
    add_plain(&o->got, p);
    pthread_mutex_unlock(&o->lock);
    return dawdle(ctx, o, p);
}

// The variable has what the model says, in any order.
static int open_fn(leat_ctx *ctx)
{
    const op *o = leat_ctx_user_data(ctx);
    const list *expected = &now.ops[o->variable].model;
    size_t count;
    const item *items = leat_ctx_broadcast(ctx, "earlier", &count);
    if (!items)
        return -1;
    if (count != expected->count)
        wrong(&now, "the records of a broadcast variable", count, expected->count);
    plain sum = {0};
    for (size_t i = 0; i < count; i++) {
        plain p = plain_of(&items[i]);
        sum.key += p.key - expected->at[i].key;
        sum.value += p.value - expected->at[i].value;
        sum.tag += p.tag - expected->at[i].tag;
    }
    if (sum.key || sum.value || sum.tag)
        wrong(&now, "what is in a broadcast variable", (uint64_t)o->index, (uint64_t)o->variable);
    return 0;
}

// --- building ---

static int64_t partition_fn(leat_ctx *ctx, const void *in, uint32_t channels)
{
    const item *i = in;
    return (int64_t)(mix((uint64_t)(i->value ^ i->key)) % channels);
}

static leat_stream *partitioned(leat_stream *in, route how)
{
    switch (how) {
    case FORWARD:
        return leat_forward(in);
    case REBALANCE:
        return leat_rebalance(in);
    case RESCALE:
        return leat_rescale(in);
    case SHUFFLE:
        return leat_shuffle(in);
    case BROADCAST:
        return leat_broadcast(in);
    case GLOBAL:
        return leat_global(in);
    case CUSTOM:
        return leat_partition_custom(in, partition_fn);
    default:
        return in;
    }
}

// A source that blocks a little, now and then.
static int emit_items(const leat_ctx *ctx, leat_source_out *out)
{
    const op *o = leat_ctx_user_data(ctx);
    char *pad = malloc(MAX_PAD);
    leat_err err = LEAT_OK;
    for (size_t i = leat_ctx_subtask(ctx); i < o->model.count && !err; i += o->parallelism) {
        plain p = o->model.at[i];
        pad_fill(p.tag, pad);
        err = leat_source_emit(out, &(item){p.key, p.value, {pad, pad_size(p.tag)}});
        if (o->slow_every && i % o->slow_every == 0)
            usleep(o->slow_us);
    }
    free(pad);
    return err ? -1 : 0;
}

static leat_stream *source_of(leat_env *env, op *o)
{
    if (o->kind == SEQUENCE) {
        leat_stream *numbers = leat_sequence(env, 0, (int64_t)o->model.count - 1);
        leat_parallelism(numbers, o->parallelism);
        return leat_map(numbers, number_fn, LEAT_TYPE(item));
    }
    if (o->threaded)
        return leat_blocking_source(env, "items", &(leat_blocking_source_fns){.run = emit_items},
                                    LEAT_TYPE(item));
    item *items = calloc(o->model.count + 1, sizeof *items);
    for (size_t i = 0; i < o->model.count; i++) {
        plain p = o->model.at[i];
        char *pad = malloc(MAX_PAD);
        pad_fill(p.tag, pad);
        items[i] = (item){p.key, p.value, {pad, pad_size(p.tag)}};
    }
    leat_stream *made = leat_from_items(env, LEAT_TYPE(item), items, o->model.count);
    for (size_t i = 0; i < o->model.count; i++)
        free((void *)(uintptr_t)items[i].pad.data);
    free(items);
    return made;
}

static leat_stream *fold_of(leat_stream *in, const op *o)
{
    static const leat_aggregate_fns fns = {.add = tally_add, .result = tally_result};
    static const char *const fields[] = {
        [BY_KEY] = "key", [BY_PAD] = "pad", [BY_BOTH] = "key, pad"};
    leat_stream *keyed = o->keying == BY_FUNCTION
                             ? leat_key_by_fn(in, key_fn, leat_type_scalar(LEAT_I64))
                             : leat_key_by(in, fields[o->keying]);
    leat_stream *made = o->kind == REDUCE
                            ? leat_reduce(keyed, reduce_fn)
                            : leat_aggregate(keyed, &fns, LEAT_TYPE(tally), LEAT_TYPE(item));
    return o->final ? leat_final_only(made) : made;
}

static leat_stream *stream_of(leat_env *env, leat_stream *const *made, op *o)
{
    leat_stream *ins[MAX_INPUTS] = {NULL};
    for (int i = 0; i < o->input_count; i++)
        ins[i] = partitioned(made[o->inputs[i]], o->route);
    // A union's first input only, so that both kinds meet.
    if (o->spooled && o->input_count)
        ins[0] = leat_blocking_exchange(ins[0]);
    switch (o->kind) {
    case MAP:
        return leat_map(ins[0], map_fn, LEAT_TYPE(item));
    case FLAT_MAP:
        return leat_flat_map(ins[0], flat_map_fn, LEAT_TYPE(item));
    case FILTER:
        return leat_filter(ins[0], filter_fn);
    case REDUCE:
    case AGGREGATE:
        return fold_of(ins[0], o);
    case UNION:
        return leat_union(ins, (size_t)o->input_count);
    case CO:
        return leat_co_flat_map(leat_connect(ins[0], ins[1]), first_fn, second_fn, LEAT_TYPE(item));
    case PARTS:
        return parts_of(ins[0], o);
    case SIDE:
        return side_of(made[o->inputs[0]], &now.ops[o->inputs[0]]);
    case LOOP:
        return loop_of(ins[0], o);
    case SINK:
        return leat_sink(ins[0], sink_fn);
    default:
        return source_of(env, o);
    }
}

static void configure(leat_env *env, const graph *g)
{
    const struct {
        const char *key;
        uint64_t value;
    } settings[] = {
        {"workers", g->workers},
        {"memory.segment-size", g->segment_size},
        {"memory.network", g->segments * g->segment_size},
        {"network.buffers-per-channel", g->buffers},
        {"network.floating-buffers", g->floating},
        {"network.max-buffers-per-channel", g->most},
        {"network.overdraft-buffers", g->overdraft},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        char text[32];
        snprintf(text, sizeof text, "%" PRIu64, settings[i].value);
        leat_env_set(env, settings[i].key, text);
    }
    leat_env_set_chaining(env, g->chaining);
    leat_env_set_buffer_timeout(env, g->timeout_ms);
}

void build_job_in(leat_env *env, graph *g)
{
    configure(env, g);
    leat_stream *made[MAX_OPS];
    for (int i = 0; i < g->count; i++) {
        op *o = &g->ops[i];
        made[i] = stream_of(env, made, o);
        if (o->kind == UNION || o->kind == SIDE)
            continue;
        char name[16];
        snprintf(name, sizeof name, "op %d", i);
        leat_user_data(leat_name(made[i], name), o);
        if (o->kind != ITEMS || o->threaded)
            leat_parallelism(made[i], o->parallelism);
        if (o->variable >= 0) {
            leat_rich(made[i], open_fn, NULL);
            leat_broadcast_variable(made[i], "earlier", made[o->variable]);
        }
        if (o->new_chain)
            leat_start_new_chain(made[i]);
        if (o->alone)
            leat_disable_chaining(made[i]);
        if (o->own_worker)
            leat_own_worker(made[i]);
        if (o->sets_timeout && o->kind != LOOP)
            leat_buffer_timeout(made[i], o->timeout_ms);
    }
}

leat_env *build_job(graph *g)
{
    leat_env *env;
    if (leat_env_create(NULL, &env))
        wrong(g, "no environment", 0, 0);
    build_job_in(env, g);
    return env;
}
