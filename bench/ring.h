// SPDX-License-Identifier: Apache-2.0
// What the bare yardsticks hand over: segments of 32 KiB through a ring with one writer and one
// reader. Nobody is woken; who finds the ring full or empty does something else, or relaxes.
#ifndef LEATI_BENCH_RING_H
#define LEATI_BENCH_RING_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

enum { SEGMENT_BYTES = 32 * 1024, RING_SEGMENTS = 64 };

typedef struct segment {
    uint32_t size; // 0: the sender has ended
    uint8_t data[SEGMENT_BYTES];
} segment;

// Positions only grow.
typedef struct ring {
    _Alignas(64) _Atomic uint32_t written; // release by the writer, acquire by the reader
    _Alignas(64) _Atomic uint32_t read;    // the other way round
    segment *segments;                     // RING_SEGMENTS of them
} ring;

// The segment to be filled next, or NULL while the ring is full. Writer.
static inline segment *ring_free_segment(ring *r)
{
    uint32_t written = atomic_load_explicit(&r->written, memory_order_relaxed);
    if (written - atomic_load_explicit(&r->read, memory_order_acquire) == RING_SEGMENTS)
        return NULL;
    return &r->segments[written % RING_SEGMENTS];
}

// Hands over the segment that was filled. Writer.
static inline void ring_publish(ring *r)
{
    uint32_t written = atomic_load_explicit(&r->written, memory_order_relaxed);
    atomic_store_explicit(&r->written, written + 1, memory_order_release);
}

// The segment to be read next, or NULL while the ring is empty. Reader.
static inline const segment *ring_full_segment(ring *r)
{
    uint32_t read = atomic_load_explicit(&r->read, memory_order_relaxed);
    if (atomic_load_explicit(&r->written, memory_order_acquire) == read)
        return NULL;
    return &r->segments[read % RING_SEGMENTS];
}

// Gives back the segment that was read. Reader.
static inline void ring_release(ring *r)
{
    uint32_t read = atomic_load_explicit(&r->read, memory_order_relaxed);
    atomic_store_explicit(&r->read, read + 1, memory_order_release);
}

// Between two looks in vain; `turns` starts at 0.
static inline void relax(unsigned *turns)
{
    if (++*turns < 200)
        __builtin_ia32_pause();
    else
        sched_yield();
}

#endif
