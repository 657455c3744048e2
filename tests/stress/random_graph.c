// SPDX-License-Identifier: Apache-2.0
#include "random_graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MANY 12000 // records of a stream that is not to grow any more

void wrong(const graph *g, const char *what, uint64_t a, uint64_t b)
{
    fprintf(stderr, "seed %" PRIu64 ": %s (%" PRIu64 ", %" PRIu64 ")\n", g->seed, what, a, b);
    abort();
}

uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint32_t below(graph *g, uint32_t bound)
{
    g->random += UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)((mix(g->random) >> 32) % bound);
}

static bool chance(graph *g, uint32_t percent)
{
    return below(g, 100) < percent;
}

void add_plain(list *l, plain p)
{
    if (l->count == l->capacity) {
        l->capacity = l->capacity ? l->capacity * 2 : 64;
        l->at = realloc(l->at, l->capacity * sizeof *l->at);
        if (!l->at)
            abort();
    }
    l->at[l->count++] = p;
}

// --- pads ---

uint32_t pad_size(int64_t tag)
{
    if (tag == 0)
        return 0;
    if (tag % 499 == 0)
        return 6000 + (uint32_t)tag % 700;
    return tag % 97 == 0 ? 900 + (uint32_t)tag % 300 : 16 + (uint32_t)tag % 40;
}

void pad_fill(int64_t tag, char *to)
{
    char digits[17];
    snprintf(digits, sizeof digits, "%016" PRIx64, (uint64_t)tag);
    for (uint32_t i = 0; i < pad_size(tag); i++)
        to[i] = i < 16 ? digits[i] : (char)('a' + (tag + i) % 26);
}

// --- what the operators do, for the model and for the job ---

plain from_number(const op *o, int64_t n)
{
    uint64_t h = mix((uint64_t)n + o->salt);
    return (plain){(int64_t)(h % 50), (int64_t)(h >> 8 & 0xffff), (int64_t)((h >> 32) % TAGS)};
}

plain mapped(const op *o, plain p, uint64_t nth)
{
    uint64_t h = mix((uint64_t)p.value + o->salt + nth);
    return (plain){(p.key * 3 + (int64_t)(o->salt % 7)) % 60, (int64_t)(h & 0xffff),
                   (int64_t)(((uint64_t)p.tag + nth + o->salt % 3) % TAGS)};
}

size_t multiplied(const op *o, plain p)
{
    uint64_t h = mix((uint64_t)p.value ^ o->salt);
    if (h % 257 == 0 && o->salt % 3 == 0)
        return 1000 + h % 900;
    return h % 4;
}

bool kept(const op *o, plain p)
{
    return mix((uint64_t)p.value + (uint64_t)p.tag + o->salt) % 3 != 0;
}

bool goes_round(const op *o, plain *p)
{
    if (p->key % 4 == 0)
        return false;
    p->key--;
    p->value = (int64_t)(mix((uint64_t)p->value + o->salt) & 0xffff);
    return true;
}

static int compare_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

int compare_plain(const void *a, const void *b)
{
    const plain *x = a, *y = b;
    int by = compare_i64(x->value, y->value);
    by = by ? by : compare_i64(x->key, y->key);
    return by ? by : compare_i64(x->tag, y->tag);
}

static int compare_group(const plain *a, const plain *b, keying how)
{
    if (how == BY_FUNCTION)
        return compare_i64(a->key % 7, b->key % 7);
    int by = how == BY_PAD ? 0 : compare_i64(a->key, b->key);
    return by || how == BY_KEY ? by : compare_i64(a->tag, b->tag);
}

int compare_grouped(const void *a, const void *b, void *arg)
{
    const op *o = arg;
    int by = compare_group(a, b, o->keying);
    return by ? by : compare_plain(a, b);
}

bool same_group(const plain *a, const plain *b, keying how)
{
    return compare_group(a, b, how) == 0;
}

int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

// --- the model ---

static void fold_model(op *o, list *in)
{
    o->updates = in->count;
    if (in->count == 0)
        return;
    qsort_r(in->at, in->count, sizeof *in->at, compare_grouped, o);
    for (size_t i = 0; i < in->count;) {
        plain sum = in->at[i];
        size_t first = i;
        for (i++; i < in->count && compare_group(&in->at[first], &in->at[i], o->keying) == 0; i++) {
            sum.value += in->at[i].value;
            sum.key = larger(sum.key, in->at[i].key);
            sum.tag = larger(sum.tag, in->at[i].tag);
        }
        if (o->kind == AGGREGATE)
            sum.value += (int64_t)(i - first);
        add_plain(&o->model, sum);
    }
}

static uint32_t copies(const op *o)
{
    return o->route == BROADCAST ? o->parallelism : 1;
}

// Everything that reaches an operator.
static list inputs_of(graph *g, const op *o)
{
    list in = {0};
    for (uint32_t copy = 0; copy < copies(o); copy++)
        for (int i = 0; i < o->input_count; i++) {
            const op *input = &g->ops[o->inputs[i]];
            const list *from = o->kind == SIDE ? &input->aside : &input->model;
            for (size_t r = 0; r < from->count; r++)
                add_plain(&in, from->at[r]);
        }
    return in;
}

// `input` is the ordinal of the input that the record comes by.
static void evaluate_one(op *o, plain p, uint64_t input)
{
    switch (o->kind) {
    case MAP:
    case CO:
        add_plain(&o->model, mapped(o, p, input));
        break;
    case FLAT_MAP:
        for (size_t n = 0; n < multiplied(o, p); n++)
            add_plain(&o->model, mapped(o, p, n));
        break;
    case FILTER:
        if (kept(o, p))
            add_plain(&o->model, p);
        break;
    case PARTS:
        add_plain(kept(o, p) ? &o->model : &o->aside, p);
        break;
    case LOOP:
        while (goes_round(o, &p))
            ;
        add_plain(&o->model, p);
        break;
    default:
        add_plain(&o->model, p);
    }
}

static void evaluate(graph *g, op *o)
{
    list in = inputs_of(g, o);
    size_t first = o->kind == CO ? g->ops[o->inputs[0]].model.count : in.count;
    if (o->kind == REDUCE || o->kind == AGGREGATE)
        fold_model(o, &in);
    else
        // Of two inputs the records alternate with the copies of a broadcast.
        for (size_t i = 0; i < in.count; i++)
            evaluate_one(o, in.at[i],
                         i % (o->kind == CO ? in.count / copies(o) : in.count) >= first);
    free(in.at);
}

// --- describing a graph ---

// As chance, but of the operator's own, so that the rest of a seed's graph does not change with it.
static bool own_chance(const op *o, uint64_t which, uint32_t percent)
{
    return mix(o->salt + which) % 100 < percent;
}

static op *new_op(graph *g, kind what)
{
    op *o = &g->ops[g->count];
    *o = (op){.kind = what, .index = g->count++};
    pthread_mutex_init(&o->lock, NULL);
    o->salt = mix(g->seed + (uint64_t)o->index * 77);
    o->parallelism = 1 + below(g, chance(g, 50) ? 2 : 5);
    o->new_chain = chance(g, 15);
    o->alone = chance(g, 15);
    o->variable = -1;
    o->own_worker = own_chance(o, 1, 8);
    o->spooled = own_chance(o, 2, 12);
    o->sets_timeout = chance(g, 20);
    o->timeout_ms = (const int64_t[]){0, -1, 1, 100}[below(g, 4)];
    if (chance(g, 15)) {
        o->slow_every = 100 + below(g, 400);
        o->slow_us = 1 + below(g, 300);
        o->blocking = chance(g, 50);
    }
    return o;
}

static void describe_source(graph *g)
{
    op *o = new_op(g, chance(g, 60) ? SEQUENCE : ITEMS);
    size_t count = chance(g, 10) ? 0 : below(g, chance(g, 15) ? 4000 : 400);
    for (size_t n = 0; n < count; n++)
        add_plain(&o->model, from_number(o, (int64_t)n));
    o->threaded = o->kind == ITEMS && own_chance(o, 3, 60);
    if (o->kind == ITEMS)
        o->parallelism = o->threaded ? 1 + (uint32_t)(o->salt % 3) : 1;
}

// An earlier stream that something may read; folds that emit updates have only sinks.
static int choose_input(graph *g)
{
    for (;;) {
        int i = (int)below(g, (uint32_t)g->count);
        const op *o = &g->ops[i];
        bool updates = (o->kind == REDUCE || o->kind == AGGREGATE) && !o->final;
        if (o->kind != SINK && !updates)
            return i;
    }
}

static route choose_route(graph *g, const op *o)
{
    route r = (route)below(g, 7);
    if (r == BROADCAST && g->ops[o->inputs[0]].model.count > MANY / 4)
        r = REBALANCE;
    for (int i = 0; i < o->input_count; i++)
        if (r == FORWARD && g->ops[o->inputs[i]].parallelism != o->parallelism)
            r = SHUFFLE;
    if (r == SHUFFLE && own_chance(o, 4, 50))
        r = CUSTOM;
    return chance(g, 40) ? DEFAULT : r;
}

// All that an earlier operator emits, as a broadcast variable; whatever else reads that.
static void describe_variable(const graph *g, op *o)
{
    int i = (int)(mix(o->salt + 7) % (uint64_t)o->index);
    const op *from = &g->ops[i];
    bool updates = (from->kind == REDUCE || from->kind == AGGREGATE) && !from->final;
    bool may = o->kind == MAP || o->kind == FLAT_MAP || o->kind == FILTER || o->kind == CO ||
               o->kind == PARTS || o->kind == SINK;
    if (may && from->kind != SINK && !updates && own_chance(o, 7, 25))
        o->variable = i;
}

static void describe_operator(graph *g)
{
    kind what = (kind)(MAP + (int)below(g, SINK - MAP));
    op *o = new_op(g, what);
    g->count--; // it cannot read itself
    // A loop takes its time to end.
    if (what == LOOP && own_chance(o, 5, 85))
        what = o->kind = MAP;
    o->rejects = own_chance(o, 6, 40);
    o->input_count = what == UNION ? 2 + (int)below(g, MAX_INPUTS - 1) : what == CO ? 2 : 1;
    size_t total = 0;
    for (int i = 0; i < o->input_count; i++) {
        o->inputs[i] = choose_input(g);
        total += g->ops[o->inputs[i]].model.count;
    }
    g->count++;
    if (what == UNION) {
        if (total > MANY)
            o->input_count = 1;
        o->parallelism = 0;
    } else if (what == FLAT_MAP && total > MANY / 4) {
        o->kind = FILTER;
    }
    o->keying = (keying)below(g, 4);
    o->final = chance(g, 60);
    if (what != UNION && what != REDUCE && what != AGGREGATE)
        o->route = choose_route(g, o);
    evaluate(g, o);
    describe_variable(g, o);
    if (what == PARTS) {
        op *side = new_op(g, SIDE);
        side->parallelism = o->rejects ? 1 : o->parallelism;
        side->inputs[0] = o->index;
        side->input_count = 1;
        evaluate(g, side);
    }
}

static void describe_sink(graph *g, int input)
{
    op *o = new_op(g, SINK);
    o->inputs[0] = input;
    o->input_count = 1;
    o->route = choose_route(g, o);
    evaluate(g, o);
    describe_variable(g, o);
}

static void describe_sinks(graph *g)
{
    bool read[MAX_OPS] = {0};
    int operators = g->count;
    for (int i = 0; i < operators; i++)
        for (int n = 0; n < g->ops[i].input_count; n++)
            read[g->ops[i].inputs[n]] = true;
    for (int i = 0; i < operators; i++)
        if (!read[i] || chance(g, 15))
            describe_sink(g, i);
}

// Chooses an operator that sees records, which then fails at the first of them.
static void describe_failure(graph *g)
{
    op *o = &g->ops[below(g, (uint32_t)g->count)];
    bool calls = o->kind == MAP || o->kind == FLAT_MAP || o->kind == FILTER || o->kind == SINK;
    bool sees = o->input_count > 0 && g->ops[o->inputs[0]].model.count > 0;
    o->fails = g->fails = calls && sees;
}

void describe_graph(graph *g, uint64_t seed)
{
    *g = (graph){.seed = seed, .random = mix(seed)};
    g->chaining = chance(g, 75);
    g->workers = 1 + below(g, 4);
    g->segment_size = (const uint32_t[]){1024, 1024, 4096, 32768}[below(g, 4)];
    g->timeout_ms = (const int64_t[]){0, -1, 1, 100}[below(g, 4)];
    g->buffers = 1 + below(g, 3);
    g->floating = below(g, 9);
    g->most = 1 + below(g, 10);
    g->overdraft = below(g, 6);
    g->segments = chance(g, 30) ? 100 + below(g, 2000) : 0;
    for (uint32_t n = 1 + below(g, 3); n > 0; n--)
        describe_source(g);
    for (uint32_t n = 1 + below(g, 8); n > 0; n--)
        describe_operator(g);
    describe_sinks(g);
    if (chance(g, 10))
        describe_failure(g);
    g->cancels = chance(g, 12);
    g->cancel_us = below(g, chance(g, 50) ? 300 : 10000);
    g->two_calls = below(g, 2);
}

void free_graph(graph *g)
{
    for (int i = 0; i < g->count; i++) {
        free(g->ops[i].model.at);
        free(g->ops[i].aside.at);
        free(g->ops[i].got.at);
        pthread_mutex_destroy(&g->ops[i].lock);
    }
}
