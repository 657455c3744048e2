// SPDX-License-Identifier: Apache-2.0
// Looking at every channel on each message would cost too much with hundreds of channels, so the
// minimum is searched only when the channel that held it has moved.
#include "runtime/valve.h"

#include <assert.h>

#include "base/alloc.h"

typedef struct channel {
    int64_t watermark;
    bool idle;
    bool aligned; // counts for the minimum
    bool finished;
    bool drained; // finished after the last watermark, not cut off
} channel;

struct leati_valve {
    const leat_allocator *allocator;
    int64_t output; // the last watermark that was let through
    bool idle;      // the last status that was let through
    uint32_t count;
    channel channels[];
};

leat_err leati_valve_create(const leat_allocator *allocator, uint32_t channels, leati_valve **valve)
{
    leati_valve *v = leati_calloc(allocator, 1, sizeof *v + channels * sizeof *v->channels);
    if (!v)
        return LEAT_ENOMEM;
    v->allocator = allocator;
    v->output = INT64_MIN;
    v->count = channels;
    for (uint32_t i = 0; i < channels; i++)
        v->channels[i] = (channel){.watermark = INT64_MIN, .aligned = true};
    *valve = v;
    return LEAT_OK;
}

void leati_valve_destroy(leati_valve **valve)
{
    if (*valve)
        leati_free((*valve)->allocator, *valve);
    *valve = NULL;
}

static void let_through(leati_valve *v, int64_t watermark, leati_valve_output *out)
{
    if (watermark > v->output) {
        v->output = watermark;
        out->watermark_advanced = true;
        out->watermark = watermark;
    }
}

// The minimum over aligned channels; with none of them there is none.
static void let_minimum_through(leati_valve *v, leati_valve_output *out)
{
    int64_t minimum = INT64_MAX;
    bool any = false;
    for (uint32_t i = 0; i < v->count; i++) {
        const channel *c = &v->channels[i];
        if (c->aligned && !c->finished) {
            any = true;
            if (c->watermark < minimum)
                minimum = c->watermark;
        }
    }
    if (any)
        let_through(v, minimum, out);
}

static leati_valve_output finish(leati_valve *v, channel *c, bool drained);

leati_valve_output leati_valve_watermark(leati_valve *v, uint32_t index, int64_t watermark)
{
    assert(index < v->count);
    leati_valve_output out = {0};
    channel *c = &v->channels[index];
    // The last watermark ends the channel for our purpose. Were it kept as a number, one channel at
    // its end and all others idle would make it the minimum.
    if (watermark == INT64_MAX)
        return finish(v, c, true);
    if (v->idle || c->idle || c->finished || watermark <= c->watermark)
        return out;
    bool held_minimum = c->aligned && c->watermark <= v->output;
    c->watermark = watermark;
    if (!c->aligned && watermark >= v->output) {
        c->aligned = true;
        held_minimum = true;
    }
    // A channel ahead of the output cannot change the minimum by going further ahead, unless
    // nothing was let through at its former position.
    if (held_minimum || v->count == 1)
        let_minimum_through(v, &out);
    return out;
}

// All unfinished channels are idle: what they hold back will not come soon, so event time goes to
// the furthest.
static void flush_maximum(leati_valve *v, leati_valve_output *out)
{
    int64_t maximum = INT64_MIN;
    for (uint32_t i = 0; i < v->count; i++)
        if (!v->channels[i].finished && v->channels[i].watermark > maximum)
            maximum = v->channels[i].watermark;
    let_through(v, maximum, out);
}

typedef struct census {
    uint32_t unfinished, active, drained;
} census;

static census count_channels(const leati_valve *v)
{
    census counts = {0};
    for (uint32_t i = 0; i < v->count; i++) {
        counts.unfinished += !v->channels[i].finished;
        counts.active += !v->channels[i].finished && !v->channels[i].idle;
        counts.drained += v->channels[i].drained;
    }
    return counts;
}

// A channel has gone idle or ended: the rest decides.
static leati_valve_output channel_left(leati_valve *v)
{
    leati_valve_output out = {0};
    census counts = count_channels(v);
    if (counts.unfinished == 0) {
        if (counts.drained == v->count)
            let_through(v, INT64_MAX, &out);
    } else if (counts.active > 0) {
        let_minimum_through(v, &out);
    } else if (!v->idle) {
        flush_maximum(v, &out);
        v->idle = true;
        out.status_changed = out.idle = true;
    }
    return out;
}

leati_valve_output leati_valve_status(leati_valve *v, uint32_t index, bool idle)
{
    assert(index < v->count);
    channel *c = &v->channels[index];
    if (c->finished || c->idle == idle)
        return (leati_valve_output){0};
    c->idle = idle;
    if (idle) {
        c->aligned = false;
        return channel_left(v);
    }
    leati_valve_output out = {0};
    c->aligned = c->watermark >= v->output;
    if (v->idle) {
        v->idle = false;
        out.status_changed = true;
    }
    let_minimum_through(v, &out);
    return out;
}

static leati_valve_output finish(leati_valve *v, channel *c, bool drained)
{
    if (c->finished)
        return (leati_valve_output){0};
    c->finished = true;
    c->drained = drained;
    c->aligned = false;
    return channel_left(v);
}

leati_valve_output leati_valve_finished(leati_valve *v, uint32_t index)
{
    assert(index < v->count);
    return finish(v, &v->channels[index], false);
}
