// SPDX-License-Identifier: Apache-2.0
// A scheduler without threads: its owner gives the turns.
//
// There is one worker, whose queue has a lock all the same, since threads of the program and of
// sources may wake runnables. A runnable that waits in the middle of its turn has others run from
// inside it, on the same stack. It cannot go on before they have ended their turns; so those whose
// waits it might have to end itself are kept from running meanwhile (may_run).
#include "runtime/scheduler_impl.h"

leat_err leati_scheduler_create_stepped(const leat_allocator *allocator,
                                        leati_scheduler **scheduler)
{
    leati_scheduler *s;
    leat_err err = leati_scheduler_alloc(allocator, 1, &s);
    if (err)
        return err;
    s->stepped = true;
    *scheduler = s;
    return LEAT_OK;
}

bool leati_scheduler_is_stepped(const leati_scheduler *s)
{
    return s->stepped;
}

void leati_scheduler_shuffle(leati_scheduler *s, uint64_t seed)
{
    s->random = seed;
}

void leati_scheduler_set_may_run(leati_scheduler *s, leati_may_run_fn may_run, void *user)
{
    s->may_run = may_run;
    s->may_run_user = user;
}

static bool may_run(const leati_scheduler *s, const leati_runnable *waiting,
                    const leati_runnable *candidate)
{
    return !waiting || !s->may_run || s->may_run(s->may_run_user, waiting, candidate);
}

// A xorshift generator, which never gets to 0 from another number.
static uint64_t draw(leati_scheduler *s)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return s->random;
}

static leati_runnable **find_locked(leati_scheduler *s, const leati_runnable *waiting,
                                    uint64_t index)
{
    leati_runnable **at = &s->workers[0].head;
    for (; *at; at = &(*at)->next)
        if (may_run(s, waiting, *at) && index-- == 0)
            break;
    return at;
}

static leati_runnable *choose_locked(leati_scheduler *s, const leati_runnable *waiting)
{
    leati_worker *w = &s->workers[0];
    uint64_t count = 0;
    for (const leati_runnable *r = w->head; r && s->random; r = r->next)
        count += may_run(s, waiting, r);
    leati_runnable **at = find_locked(s, waiting, count > 1 ? draw(s) % count : 0);
    leati_runnable *chosen = *at;
    if (!chosen)
        return NULL;
    *at = chosen->next;
    atomic_fetch_sub_explicit(&w->length, 1, memory_order_relaxed);
    w->tail = NULL;
    for (leati_runnable *r = w->head; r; r = r->next)
        w->tail = r;
    return chosen;
}

static leati_runnable *step(leati_scheduler *s, const leati_runnable *waiting)
{
    leati_worker *w = &s->workers[0];
    pthread_mutex_lock(&w->lock);
    leati_runnable *chosen = choose_locked(s, waiting);
    pthread_mutex_unlock(&w->lock);
    if (chosen)
        leati_runnable_turn(chosen);
    return chosen;
}

leati_runnable *leati_scheduler_step(leati_scheduler *s)
{
    return step(s, NULL);
}

bool leati_scheduler_is_ready(const leati_scheduler *s)
{
    return atomic_load_explicit(&s->workers[0].length, memory_order_acquire) > 0;
}

leat_err leati_step_wait(leati_runnable *r, bool (*ready)(void *), void *arg, bool (*stop)(void *),
                         void *stop_arg)
{
    for (;;) {
        if (stop(stop_arg))
            return LEAT_ECANCELLED;
        if (ready(arg))
            return LEAT_OK;
        if (!step(r->scheduler, r))
            return LEAT_EAGAIN;
    }
}
