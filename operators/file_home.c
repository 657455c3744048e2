// SPDX-License-Identifier: Apache-2.0
#include "operators/file_home.h"

#include <pthread.h>

#include "base/alloc.h"
#include "runtime/context.h"

// Splits are handed out together as long as they are small and there are plenty: a way through
// other processes for each of a million small files would take longer than reading them.
enum { BATCH_BYTES = 256 * 1024, BATCHES_A_SUBTASK = 4 };

typedef struct asker asker;
struct asker {
    asker *next;
    uint32_t process;
    uint64_t token;
};

struct leati_file_home {
    const leat_allocator *allocator;
    leat_job *job;
    uint32_t parallelism;
    uint64_t machine;
    leati_file_splits *splits;
    pthread_mutex_t lock;
    asker *first, **last; // who waits, in order; under the lock
};

// --- what there is to hand out ---

// How many more splits may go along with the first one: so that all subtasks still have something
// to do in the end, the fewer the fewer are left.
static uint32_t company(const leati_file_home *home)
{
    size_t share =
        leati_file_splits_left(home->splits) / ((size_t)home->parallelism * BATCHES_A_SUBTASK);
    return share < LEATI_FILE_BATCH ? (uint32_t)share : LEATI_FILE_BATCH - 1;
}

static int64_t size_of(const leati_file_split *split)
{
    return split->end == INT64_MAX ? BATCH_BYTES : split->end - split->start;
}

static leati_split_result take_batch(leati_file_home *home, leati_file_batch *batch)
{
    leati_split_result result = leati_file_splits_take(home->splits, &batch->splits[0]);
    batch->count = result == LEATI_SPLIT_FOUND || result == LEATI_SPLIT_LOST;
    batch->lost = result == LEATI_SPLIT_LOST;
    if (result != LEATI_SPLIT_FOUND)
        return result;
    int64_t room = BATCH_BYTES - size_of(&batch->splits[0]);
    uint32_t most = 1 + company(home);
    while (batch->count < most && room > 0 &&
           leati_file_splits_take_small(home->splits, room, &batch->splits[batch->count]))
        room -= size_of(&batch->splits[batch->count++]);
    return result;
}

static void answer(leati_file_home *home, const asker *to, leati_file_batch *batch)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    leat_err err = leati_file_batch_encode(home->allocator, home->machine, batch, &bytes, &size);
    leati_shared_answer(home->job, to->process, to->token, err, bytes, size);
    leati_free(home->allocator, bytes);
    // They live on where they are read.
    while (batch->count)
        leati_file_splits_release(home->splits, &batch->splits[--batch->count]);
}

void leati_file_home_serve(leati_file_home *home)
{
    for (;;) {
        leati_file_batch batch = {.count = 0};
        pthread_mutex_lock(&home->lock);
        asker *served = home->first;
        if (served && take_batch(home, &batch) == LEATI_SPLIT_WAIT)
            served = NULL;
        if (served) {
            home->first = served->next;
            if (!home->first)
                home->last = &home->first;
        }
        pthread_mutex_unlock(&home->lock);
        if (!served)
            return;
        answer(home, served, &batch);
        leati_free(home->allocator, served);
    }
}

// --- the shared object ---

// The question says nothing beyond who asks.
static void asked(void *object, uint32_t process, uint64_t token, const uint8_t *question,
                  size_t size)
{
    leati_file_home *home = object;
    asker *waiting = leati_calloc(home->allocator, 1, sizeof *waiting);
    if (!waiting) {
        leati_shared_answer(home->job, process, token, LEAT_ENOMEM, NULL, 0);
        return;
    }
    *waiting = (asker){.process = process, .token = token};
    pthread_mutex_lock(&home->lock);
    *home->last = waiting;
    home->last = &waiting->next;
    pthread_mutex_unlock(&home->lock);
    leati_file_home_serve(home);
}

static void destroy(void *object)
{
    leati_file_home *home = object;
    for (asker *waiting; (waiting = home->first) != NULL;) {
        home->first = waiting->next;
        leati_free(home->allocator, waiting);
    }
    leati_file_splits_destroy(&home->splits);
    pthread_mutex_destroy(&home->lock);
    leati_free(home->allocator, home);
}

static leat_err create(leat_ctx *ctx, void **object)
{
    const leat_allocator *allocator = leat_ctx_allocator(ctx);
    int64_t split_size = leati_config_get(leati_ctx_config(ctx), LEATI_CONFIG_SPLIT_SIZE);
    leati_file_home *home = leati_calloc(allocator, 1, sizeof *home);
    leat_err err =
        home ? leati_file_splits_create(allocator, split_size, &home->splits) : LEAT_ENOMEM;
    if (err != LEAT_OK) {
        leati_free(allocator, home);
        return leati_ctx_error(ctx, err, "no memory for the list of files");
    }
    home->allocator = allocator;
    home->job = leati_ctx_job(ctx);
    home->parallelism = leat_ctx_parallelism(ctx);
    home->machine = leati_ctx_is_alone(ctx) ? 0 : leati_file_machine();
    home->last = &home->first;
    pthread_mutex_init(&home->lock, NULL);
    *object = home;
    return LEAT_OK;
}

leat_err leati_file_home_get(leat_ctx *ctx, leati_file_home **home)
{
    static const leati_shared_ops shared = {.create = create, .destroy = destroy, .asked = asked};
    void *object;
    leat_err err = leati_ctx_shared(ctx, &shared, &object);
    if (err == LEAT_OK)
        *home = object;
    return err;
}

leati_file_splits *leati_file_home_splits(const leati_file_home *home)
{
    return home->splits;
}

uint64_t leati_file_home_machine(const leati_file_home *home)
{
    return home->machine;
}
