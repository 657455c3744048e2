// SPDX-License-Identifier: Apache-2.0
// Each of two threads makes half of the records {key, value} and sends each as msgpack to the
// thread that owns the key: in 32 KiB segments, through a ring to the other thread and through a
// segment of its own to itself. The receiver decodes, and counts and sums in an open hash table.
//
// A thread that finds the ring to its peer full serves its own ring meanwhile, so the two cannot
// wait for each other.
#include "bench/bare_exchange.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "bench/ring.h"

// An array of two and two 64-bit integers; the table is at most a third full.
enum { RECORD_BYTES = 19, TABLE_SLOTS = 32768 };

typedef struct slot {
    int64_t key, count, sum; // count 0: free
} slot;

typedef struct worker {
    uint64_t from, to; // records that it makes
    unsigned index;
    ring *in, *out;
    segment *open; // of `out`
    segment *own;
    slot *table;
    bool peer_ended, malformed;
    bare_sums result;
} worker;

static void add(worker *w, int64_t key, int64_t value)
{
    uint64_t hash = (uint64_t)key * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t at = hash >> 40 & (TABLE_SLOTS - 1);; at = (at + 1) & (TABLE_SLOTS - 1)) {
        slot *s = &w->table[at];
        if (s->count == 0)
            s->key = key;
        if (s->key == key) {
            s->count++;
            s->sum += value;
            return;
        }
    }
}

static void put(uint8_t *to, int64_t value)
{
    uint64_t big = __builtin_bswap64((uint64_t)value);
    *to = 0xd3;
    memcpy(to + 1, &big, sizeof big);
}

static int64_t get(const uint8_t *from)
{
    uint64_t big;
    memcpy(&big, from + 1, sizeof big);
    return (int64_t)__builtin_bswap64(big);
}

static void fold_segment(worker *w, const segment *s)
{
    const uint8_t *p = s->data, *end = p + s->size;
    for (; end - p >= RECORD_BYTES; p += RECORD_BYTES) {
        if (p[0] != 0x92 || p[1] != 0xd3 || p[10] != 0xd3)
            break;
        add(w, get(p + 1), get(p + 10));
    }
    if (p != end)
        w->malformed = true;
}

// Folds one segment from the peer if there is one.
static bool serve(worker *w)
{
    const segment *s = ring_full_segment(w->in);
    if (!s)
        return false;
    if (s->size == 0)
        w->peer_ended = true;
    fold_segment(w, s);
    ring_release(w->in);
    return true;
}

// The next free segment of the ring to the peer.
static void open_segment(worker *w)
{
    unsigned turns = 0;
    while (!(w->open = ring_free_segment(w->out)))
        if (!serve(w))
            relax(&turns);
    w->open->size = 0;
}

static void send_record(worker *w, int64_t key, int64_t value)
{
    bool mine = exchange_mix((uint64_t)key) >> 63 == w->index;
    segment *s = mine ? w->own : w->open;
    if (s->size + RECORD_BYTES > SEGMENT_BYTES) {
        if (mine) {
            fold_segment(w, s);
            s->size = 0;
        } else {
            ring_publish(w->out);
            serve(w);
            open_segment(w);
            s = w->open;
        }
    }
    uint8_t *to = s->data + s->size;
    to[0] = 0x92;
    put(to + 1, key);
    put(to + 10, value);
    s->size += RECORD_BYTES;
}

static void sum_up(worker *w)
{
    for (size_t i = 0; i < TABLE_SLOTS; i++) {
        const slot *s = &w->table[i];
        if (s->count == 0)
            continue;
        w->result.records += (uint64_t)s->count;
        w->result.checksum += exchange_digest(s->key, s->count, s->sum);
    }
}

static void *work(void *argument)
{
    worker *w = argument;
    open_segment(w);
    for (uint64_t i = w->from; i < w->to; i++)
        send_record(w, exchange_key(i), (int64_t)i);
    fold_segment(w, w->own);
    if (w->open->size) {
        ring_publish(w->out);
        open_segment(w);
    }
    ring_publish(w->out); // an empty segment: the end
    for (unsigned turns = 0; !w->peer_ended;)
        if (!serve(w))
            relax(&turns);
    sum_up(w);
    return NULL;
}

static bool run_workers(worker *workers)
{
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, work, &workers[0]) != 0)
        return false;
    // Without its peer the first would wait for ever, so this thread takes the second's place if
    // need be.
    bool second = pthread_create(&threads[1], NULL, work, &workers[1]) == 0;
    if (!second)
        work(&workers[1]);
    else
        pthread_join(threads[1], NULL);
    pthread_join(threads[0], NULL);
    return !workers[0].malformed && !workers[1].malformed;
}

int bare_exchange(uint64_t records, bare_sums *sums)
{
    ring rings[2] = {0};
    worker workers[2] = {0};
    bool good = true;
    for (unsigned i = 0; i < 2; i++) {
        rings[i].segments = malloc(RING_SEGMENTS * sizeof(segment));
        workers[i] = (worker){.from = i ? records / 2 : 0,
                              .to = i ? records : records / 2,
                              .index = i,
                              .in = &rings[1 - i],
                              .out = &rings[i],
                              .own = malloc(sizeof(segment)),
                              .table = calloc(TABLE_SLOTS, sizeof(slot))};
        good = good && rings[i].segments && workers[i].own && workers[i].table;
        if (good)
            workers[i].own->size = 0;
    }
    good = good && run_workers(workers);
    if (good)
        *sums = (bare_sums){workers[0].result.records + workers[1].result.records,
                            workers[0].result.checksum + workers[1].result.checksum};
    else
        fprintf(stderr, "the bare exchange failed\n");
    for (int i = 0; i < 2; i++) {
        free(workers[i].table);
        free(workers[i].own);
        free(rings[i].segments);
    }
    return good ? 0 : -1;
}
