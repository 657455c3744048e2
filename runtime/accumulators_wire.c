// SPDX-License-Identifier: Apache-2.0
// Accumulators as bytes that go from one process to another.
//
// What goes over is what each subtask has, with its place in the job, and it is merged in the order
// of places; so the result is the same, bit by bit, as if all had been in one process. Little
// endian:
//
//     version (1 byte), number of entries (4)
//     an entry: vertex (4), operator (4), subtask (4), kind (1), length of the name (1), the name,
//               number of values (8), length of what follows (4), and by kind:
//                   an i64 or f64 (8); nothing when there are no values
//                   a list: its items, 8 bytes each, a text being its length and the text
//                   a histogram: sum (8), min (8), max (8), then place (4) and count (8) of each
//                   bucket that has any, by place
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strbuf.h"
#include "runtime/accumulators_impl.h"
#include "runtime/execution.h"
#include "runtime/histogram.h"
#include "runtime/metrics.h"
#include "runtime/placement.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the items of lists are copied as they are in memory"
#endif

enum { VERSION = 1, ENTRY_MINIMUM = 26, NAMES_MOST = 20000, BUCKET_BYTES = 12 };
enum { PLACES = 2 * LEATI_HISTOGRAM_BUCKETS };

// --- encoding ---

static void put(leati_strbuf *to, uint64_t value, size_t size)
{
    leati_strbuf_append(to, &value, size);
}

static void put_f64(leati_strbuf *to, double value)
{
    leati_strbuf_append(to, &value, sizeof value);
}

static void put_list(leati_strbuf *to, const leat_accumulator *a)
{
    leati_list_chunk *chunk = atomic_load_explicit(&a->first, memory_order_acquire);
    for (; chunk; chunk = atomic_load_explicit(&chunk->next, memory_order_acquire))
        leati_strbuf_append(to, chunk->data,
                            atomic_load_explicit(&chunk->used, memory_order_acquire));
}

static void put_histogram(leati_strbuf *to, const leat_histogram *h)
{
    put_f64(to, atomic_load_explicit(&h->sum, memory_order_relaxed));
    put(to, (uint64_t)atomic_load_explicit(&h->min, memory_order_relaxed), 8);
    put(to, (uint64_t)atomic_load_explicit(&h->max, memory_order_relaxed), 8);
    for (uint32_t place = 0; place < PLACES; place++) {
        const _Atomic uint64_t *bucket =
            &h->buckets[place / LEATI_HISTOGRAM_BUCKETS][place % LEATI_HISTOGRAM_BUCKETS];
        uint64_t n = atomic_load_explicit(bucket, memory_order_acquire);
        if (n) {
            put(to, place, 4);
            put(to, n, 8);
        }
    }
}

static void put_value(leati_strbuf *to, const leat_accumulator *a)
{
    if (leati_accumulator_is_list(a->kind))
        put_list(to, a);
    else if (a->kind == LEAT_ACCUMULATOR_HISTOGRAM)
        put_histogram(to, a->histogram);
    else if (leati_accumulator_is_i64(a->kind))
        put(to, (uint64_t)atomic_load_explicit(&a->i64, memory_order_relaxed), 8);
    else
        put_f64(to, atomic_load_explicit(&a->f64, memory_order_relaxed));
}

typedef struct encoding {
    leati_strbuf bytes;
    uint32_t entries;
    bool too_big;
} encoding;

static void encode_one(void *user, const leat_ctx *ctx, const leati_metric *metric)
{
    encoding *e = user;
    if (!metric->is_accumulator)
        return;
    const leat_accumulator *a = metric->object;
    size_t name_size = strlen(a->name);
    put(&e->bytes, ctx->task->vertex->id, 4);
    put(&e->bytes, (uint64_t)(ctx - ctx->task->chain.ctx), 4);
    put(&e->bytes, ctx->task->subtask, 4);
    put(&e->bytes, (uint64_t)a->kind, 1);
    put(&e->bytes, name_size, 1);
    leati_strbuf_append(&e->bytes, a->name, name_size);
    // Acquire pairs with the release of whoever counts.
    uint64_t count = atomic_load_explicit(&a->count, memory_order_acquire);
    put(&e->bytes, count, 8);
    size_t at = e->bytes.size;
    put(&e->bytes, 0, 4);
    if (count)
        put_value(&e->bytes, a);
    e->entries++;
    if (e->bytes.failed)
        return;
    size_t size = e->bytes.size - at - 4;
    e->too_big |= size > UINT32_MAX;
    uint32_t length = (uint32_t)size;
    memcpy(e->bytes.data + at, &length, sizeof length);
}

leat_err leati_job_accumulators_encode(const leat_job *job, uint8_t **bytes, size_t *size)
{
    encoding e = {0};
    leati_strbuf_init(&e.bytes, job->allocator);
    put(&e.bytes, VERSION, 1);
    put(&e.bytes, 0, 4);
    leati_metrics_each(job, encode_one, &e);
    if (e.bytes.failed || e.too_big) {
        leati_strbuf_fini(&e.bytes);
        return e.too_big ? LEAT_ETOOBIG : LEAT_ENOMEM;
    }
    memcpy(e.bytes.data + 1, &e.entries, sizeof e.entries);
    *size = e.bytes.size;
    *bytes = (uint8_t *)leati_strbuf_take(&e.bytes);
    return *bytes ? LEAT_OK : LEAT_ENOMEM;
}

// --- decoding ---

typedef struct entry {
    uint32_t vertex, op, subtask;
    size_t order; // in the parts
    leat_accumulator_kind kind;
    char name[LEATI_METRIC_NAME_MAX + 1];
    uint64_t count;
    const uint8_t *data;
    uint32_t size;
} entry;

typedef struct decoding {
    const leat_allocator *allocator;
    entry *entries;
    size_t count, capacity;
    leat_histogram *histogram; // of the entry at hand
} decoding;

typedef struct cursor {
    const uint8_t *at, *end;
    bool failed;
} cursor;

static uint64_t get(cursor *from, size_t size)
{
    uint64_t value = 0;
    if (from->failed || (size_t)(from->end - from->at) < size) {
        from->failed = true;
        return 0;
    }
    memcpy(&value, from->at, size);
    from->at += size;
    return value;
}

static const uint8_t *get_bytes(cursor *from, size_t size)
{
    const uint8_t *bytes = from->at;
    if (from->failed || (size_t)(from->end - from->at) < size) {
        from->failed = true;
        return NULL;
    }
    from->at += size;
    return bytes;
}

static bool is_list_sound(const entry *e)
{
    cursor items = {.at = e->data, .end = e->data + e->size};
    while (items.at < items.end && !items.failed) {
        uint64_t item = get(&items, 8);
        if (e->kind == LEAT_ACCUMULATOR_LIST_STR)
            get_bytes(&items, item);
    }
    return !items.failed;
}

static bool is_histogram_sound(const entry *e)
{
    cursor buckets = {.at = e->data, .end = e->data + e->size};
    get_bytes(&buckets, 24);
    uint64_t next = 0;
    while (buckets.at < buckets.end && !buckets.failed) {
        uint64_t place = get(&buckets, 4);
        get(&buckets, 8);
        if (place < next || place >= PLACES)
            return false;
        next = place + 1;
    }
    return !buckets.failed;
}

static bool is_value_sound(const entry *e)
{
    if (e->count == 0)
        return e->size == 0;
    if (leati_accumulator_is_list(e->kind))
        return is_list_sound(e);
    if (e->kind == LEAT_ACCUMULATOR_HISTOGRAM)
        return is_histogram_sound(e);
    return e->size == 8;
}

static leat_err read_entry(decoding *d, cursor *from)
{
    if (!leati_grow(d->allocator, (void **)&d->entries, &d->capacity, d->count + 1,
                    sizeof *d->entries))
        return LEAT_ENOMEM;
    entry *e = &d->entries[d->count];
    *e = (entry){.order = d->count};
    e->vertex = (uint32_t)get(from, 4);
    e->op = (uint32_t)get(from, 4);
    e->subtask = (uint32_t)get(from, 4);
    uint64_t kind = get(from, 1);
    e->kind = (leat_accumulator_kind)kind;
    size_t name_size = get(from, 1);
    const uint8_t *name = get_bytes(from, name_size);
    e->count = get(from, 8);
    e->size = (uint32_t)get(from, 4);
    e->data = get_bytes(from, e->size);
    if (from->failed || name_size == 0 || memchr(name, 0, name_size) ||
        kind > LEAT_ACCUMULATOR_LIST_STR || !is_value_sound(e))
        return LEAT_ECORRUPT;
    memcpy(e->name, name, name_size);
    d->count++;
    return LEAT_OK;
}

static leat_err read_part(decoding *d, const uint8_t *bytes, size_t size)
{
    cursor from = {.at = bytes, .end = bytes + size};
    uint64_t version = get(&from, 1), count = get(&from, 4);
    // A count is believed only if the bytes can hold it.
    if (from.failed || version != VERSION || count > (uint64_t)(from.end - from.at) / ENTRY_MINIMUM)
        return LEAT_ECORRUPT;
    leat_err err = LEAT_OK;
    for (uint64_t i = 0; i < count && !err; i++)
        err = read_entry(d, &from);
    return !err && from.at != from.end ? LEAT_ECORRUPT : err;
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_entries(const void *one, const void *other)
{
    const entry *a = one, *b = other;
    int order = compare_u64(a->vertex, b->vertex);
    order = order ? order : compare_u64(a->op, b->op);
    order = order ? order : compare_u64(a->subtask, b->subtask);
    return order ? order : compare_u64(a->order, b->order);
}

static leat_err merge_list(leat_accumulators *all, leati_merged *m, const entry *e)
{
    leat_err err = LEAT_OK;
    size_t size;
    for (size_t at = 0; at < e->size && !err; at += size)
        err = leati_accumulators_add_item(all, m, (const char *)e->data + at, &size);
    return err;
}

static leat_err merge_histogram(decoding *d, leati_merged *m, const entry *e)
{
    if (!d->histogram)
        d->histogram = leati_alloc(d->allocator, sizeof *d->histogram);
    if (!d->histogram)
        return LEAT_ENOMEM;
    leat_histogram *h = d->histogram;
    memset(h, 0, sizeof *h);
    double sum;
    memcpy(&sum, e->data, sizeof sum);
    cursor from = {.at = e->data + 8, .end = e->data + e->size};
    // Nobody else sees it, so the order of these does not matter.
    atomic_store_explicit(&h->sum, sum, memory_order_relaxed);
    atomic_store_explicit(&h->min, (int64_t)get(&from, 8), memory_order_relaxed);
    atomic_store_explicit(&h->max, (int64_t)get(&from, 8), memory_order_relaxed);
    while (from.at < from.end) {
        uint64_t place = get(&from, 4);
        atomic_store_explicit(
            &h->buckets[place / LEATI_HISTOGRAM_BUCKETS][place % LEATI_HISTOGRAM_BUCKETS],
            get(&from, 8), memory_order_relaxed);
    }
    leati_histogram_merge(m->histogram, h);
    m->value.count = leat_histogram_count(m->histogram);
    return LEAT_OK;
}

static leat_err merge_number(leati_merged *m, const entry *e)
{
    if (e->count > UINT64_MAX - m->value.count)
        return LEAT_ECORRUPT;
    int64_t i64;
    double f64;
    memcpy(&i64, e->data, sizeof i64);
    memcpy(&f64, e->data, sizeof f64);
    if (leati_accumulator_is_i64(e->kind))
        leati_merge_i64(m, i64);
    else
        leati_merge_f64(m, f64);
    m->value.count += e->count;
    return LEAT_OK;
}

static leat_err merge_entry(decoding *d, leat_accumulators *all, const entry *e)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].value.kind != e->kind && !strcmp(all->items[i].value.name, e->name))
            return LEAT_ETYPE;
    leati_merged *m = leati_accumulators_find(all, e->name, e->kind);
    if (!m)
        return LEAT_ENOMEM;
    if (all->count > NAMES_MOST)
        return LEAT_ECORRUPT;
    if (e->count == 0)
        return LEAT_OK;
    if (leati_accumulator_is_list(e->kind))
        return merge_list(all, m, e);
    return e->kind == LEAT_ACCUMULATOR_HISTOGRAM ? merge_histogram(d, m, e) : merge_number(m, e);
}

static leat_err decode(decoding *d, const uint8_t *const *parts, const size_t *sizes,
                       uint32_t count, leat_accumulators *all)
{
    leat_err err = LEAT_OK;
    for (uint32_t i = 0; i < count && !err; i++)
        err = read_part(d, parts[i], sizes[i]);
    if (err)
        return err;
    if (d->count > 1)
        qsort(d->entries, d->count, sizeof *d->entries, compare_entries);
    for (size_t i = 0; i < d->count && !err; i++)
        err = merge_entry(d, all, &d->entries[i]);
    return err;
}

leat_err leati_accumulators_decode(const leat_allocator *allocator, const uint8_t *const *parts,
                                   const size_t *sizes, uint32_t count,
                                   leat_accumulators **accumulators)
{
    leat_accumulators *all;
    leat_err err = leati_accumulators_create(leati_allocator_or_default(allocator), &all);
    if (err)
        return err;
    decoding d = {.allocator = &all->allocator};
    err = decode(&d, parts, sizes, count, all);
    leati_free(&all->allocator, d.entries);
    leati_free(&all->allocator, d.histogram);
    if (err) {
        leat_accumulators_destroy(&all);
        return err;
    }
    leati_accumulators_complete(all);
    *accumulators = all;
    return LEAT_OK;
}
