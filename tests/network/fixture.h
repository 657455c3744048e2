// SPDX-License-Identifier: Apache-2.0
// What the tests of this room share: a task that only counts how often it is woken, and an
// allocator that counts and refuses.
#ifndef TESTS_NETWORK_FIXTURE_H
#define TESTS_NETWORK_FIXTURE_H

#include <criterion/criterion.h>
#include <stdlib.h>

#include "network/segment.h"

typedef struct fake_task {
    leati_waiter waiter; // first
    int wakes;
    int waits;
    // Called while a wait goes on; false ends it as cancelled.
    bool (*meanwhile)(void *arg);
    void *arg;
} fake_task;

static inline void fake_wake(leati_waiter *waiter)
{
    ((fake_task *)waiter)->wakes++;
}

static inline leat_err fake_wait(leati_waiter *waiter, bool (*ready)(void *arg), void *arg)
{
    fake_task *task = (fake_task *)waiter;
    task->waits++;
    while (!ready(arg))
        if (!task->meanwhile || !task->meanwhile(task->arg))
            return LEAT_ECANCELLED;
    return LEAT_OK;
}

static inline fake_task fake_task_make(void)
{
    return (fake_task){.waiter = {.wake = fake_wake, .wait = fake_wait}};
}

// The wakes since the last time this was asked.
static inline int wakes_of(fake_task *task)
{
    int wakes = task->wakes;
    task->wakes = 0;
    return wakes;
}

typedef struct meter {
    leat_allocator hook;
    size_t blocks;  // allocated and not released
    size_t largest; // block asked for
    size_t left;    // allocations until it refuses
} meter;

static inline void *meter_reallocate(void *user, void *ptr, size_t size_bytes)
{
    meter *self = user;
    if (self->left == 0)
        return NULL;
    self->left--;
    if (size_bytes > self->largest)
        self->largest = size_bytes;
    if (!ptr)
        self->blocks++;
    return realloc(ptr, size_bytes);
}

static inline void *meter_allocate(void *user, size_t size_bytes)
{
    return meter_reallocate(user, NULL, size_bytes);
}

static inline void meter_release(void *user, void *ptr)
{
    meter *self = user;
    if (ptr)
        self->blocks--;
    free(ptr);
}

static inline void meter_init(meter *self, size_t left)
{
    *self = (meter){.hook = {.allocate = meter_allocate,
                             .reallocate = meter_reallocate,
                             .release = meter_release,
                             .user = self},
                    .left = left};
}

static inline leati_global_pool *make_global(size_t segment_size, uint32_t count)
{
    leati_global_pool *global = NULL;
    cr_assert(leati_global_pool_create(NULL, segment_size, count, &global) == LEAT_OK);
    return global;
}

static inline leati_local_pool *make_local(leati_global_pool *global, fake_task *task,
                                           uint32_t minimum, uint32_t maximum, uint32_t overdraft)
{
    leati_local_pool *local = NULL;
    leati_local_pool_options options = {
        .minimum = minimum, .maximum = maximum, .overdraft = overdraft, .waiter = &task->waiter};
    cr_assert(leati_global_pool_reserve(global, minimum) == LEAT_OK);
    cr_assert(leati_local_pool_create(global, &options, &local) == LEAT_OK);
    return local;
}

static inline uint32_t used_of(const leati_local_pool *pool)
{
    uint32_t used, limit;
    leati_local_pool_counts(pool, &used, &limit);
    return used;
}

static inline uint32_t limit_of(const leati_local_pool *pool)
{
    uint32_t used, limit;
    leati_local_pool_counts(pool, &used, &limit);
    return limit;
}

static inline uint32_t unreserved_of(leati_global_pool *pool)
{
    uint32_t total, unreserved;
    leati_global_pool_counts(pool, &total, &unreserved);
    return unreserved;
}

static inline void end_local(leati_local_pool **pool)
{
    leati_local_pool_close(*pool);
    cr_assert(used_of(*pool) == 0);
    leati_local_pool_destroy(pool);
}

#endif
