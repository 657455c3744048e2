// SPDX-License-Identifier: Apache-2.0
#include "bench/pacer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench/job.h"

enum { AVAILABLE_EVERY = 64 };

typedef struct pacer {
    leat_operator base;
    schedule plan;
    int timer;
    int64_t start_ns; // 0: not yet
    uint64_t next;
} pacer;

static leat_err pacer_open(leat_operator *self)
{
    pacer *own = (pacer *)self;
    own->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (own->timer >= 0)
        return LEAT_OK;
    leat_fail(self->ctx, "no timer: %s", strerror(errno));
    return LEAT_EIO;
}

// Setting the timer takes back what made its descriptor readable before.
static leat_err wait_until(pacer *own, int64_t at_ns)
{
    struct itimerspec at = {.it_value = {at_ns / 1000000000, at_ns % 1000000000}};
    if (timerfd_settime(own->timer, TFD_TIMER_ABSTIME, &at, NULL) == 0)
        return leat_ctx_wait_readable(own->base.ctx, own->timer);
    leat_fail(own->base.ctx, "the timer cannot be set: %s", strerror(errno));
    return LEAT_EIO;
}

static leat_err pacer_poll(leat_operator *self, leat_out *out, uint32_t max_records,
                           leat_poll *state)
{
    pacer *own = (pacer *)self;
    int64_t now = bench_now_ns();
    if (own->start_ns == 0)
        own->start_ns = now;
    uint64_t owed = schedule_owed(&own->plan, own->start_ns, now), count = owed - own->next, i = 0;
    if (count > max_records)
        count = max_records;
    leat_err err = LEAT_OK;
    while (i < count && !err) {
        uint64_t index = own->next + i;
        stamped record = {(int64_t)index, schedule_due(&own->plan, own->start_ns, index)};
        err = leat_collect(out, &record);
        if (++i % AVAILABLE_EVERY == 0 && !leat_out_available(self->ctx))
            break;
    }
    own->next += i;
    leat_ctx_count_in(self->ctx, i, i * sizeof(stamped));
    *state = own->next == own->plan.records ? LEAT_POLL_END : LEAT_POLL_MORE;
    if (err || own->next < owed || *state == LEAT_POLL_END)
        return err;
    *state = LEAT_POLL_WAIT;
    return wait_until(own, schedule_due(&own->plan, own->start_ns, own->next));
}

static void pacer_dispose(leat_operator *self)
{
    pacer *own = (pacer *)self;
    if (own->timer >= 0)
        close(own->timer);
    free(own);
}

leat_err pacer_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    static const leat_operator_ops ops = {.kind = "source: schedule",
                                          .open = pacer_open,
                                          .poll = pacer_poll,
                                          .dispose = pacer_dispose};
    pacer *made = malloc(sizeof *made);
    if (!made)
        return LEAT_ENOMEM;
    *made = (pacer){.base = {.ops = &ops}, .plan = *(const schedule *)factory->config, .timer = -1};
    *op = &made->base;
    return LEAT_OK;
}
