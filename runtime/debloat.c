// SPDX-License-Identifier: Apache-2.0
#include "runtime/debloat.h"

#include "base/alloc.h"
#include "runtime/execution.h"

// The average goes back about so many samples; a change below this share is not announced.
enum { SAMPLES = 20, THRESHOLD_PERCENT = 25 };
// A task that has worked for less says nothing about its speed.
#define SHORTEST_NS 1000000

// --- one gate ---

void leati_debloat_init(leati_debloat *self, int64_t target_ns, uint32_t segment_size)
{
    uint32_t least = segment_size < LEATI_DEBLOAT_LEAST ? segment_size : LEATI_DEBLOAT_LEAST;
    *self = (leati_debloat){
        .target_ns = target_ns,
        .least = least,
        .most = segment_size,
        .average = segment_size,
    };
    atomic_init(&self->size, segment_size);
}

// The average moves by as much up as down at most, so that a moment in which the queue is short
// does not undo what many have brought.
static uint32_t average_with(leati_debloat *self, double wanted)
{
    if (wanted > 2 * self->average)
        wanted = 2 * self->average;
    self->average += (wanted - self->average) * 2 / (SAMPLES + 1);
    if (self->average < self->least)
        self->average = self->least;
    if (self->average > self->most)
        self->average = self->most;
    return (uint32_t)self->average;
}

static bool announces(const leati_debloat *self, uint32_t size, uint32_t before)
{
    if (size == before)
        return false;
    uint32_t change = size > before ? size - before : before - size;
    return size == self->least || size == self->most ||
           (uint64_t)change * 100 >= (uint64_t)before * THRESHOLD_PERCENT;
}

bool leati_debloat_look(leati_debloat *self, uint64_t bytes, int64_t active_ns, uint32_t segments)
{
    int64_t time_ns = active_ns - self->active_ns;
    uint64_t taken = bytes - self->bytes;
    // A task that has taken in nothing may be in the middle of a long turn, of which nothing is
    // published; after the target time it has told enough.
    if (time_ns < SHORTEST_NS || (taken == 0 && time_ns < self->target_ns))
        return false;
    self->bytes = bytes;
    self->active_ns = active_ns;
    double rate = (double)taken / (double)time_ns; // bytes a nanosecond
    double wanted = rate * (double)self->target_ns / (segments > 0 ? segments : 1);
    uint32_t before = atomic_load_explicit(&self->size, memory_order_relaxed);
    uint32_t size = average_with(self, wanted);
    bool news = announces(self, size, before);
    if (news)
        atomic_store_explicit(&self->size, size, memory_order_relaxed);
    double queued = (double)(news ? size : before) * segments;
    atomic_store_explicit(&self->drain_ns, rate > 0 ? (int64_t)(queued / rate) : 0,
                          memory_order_relaxed);
    return news;
}

// --- the tasks of a job ---

struct leati_debloater {
    leati_tick tick;
    leat_job *job;
    leati_debloat gates[]; // one a task
};

static void tick(leati_tick *tick)
{
    leati_debloater_look((leati_debloater *)tick);
}

leat_err leati_debloater_create(leat_job *job, leati_debloater **debloater)
{
    *debloater = NULL;
    if (!leati_config_get(&job->config, LEATI_CONFIG_DEBLOAT))
        return LEAT_OK;
    leati_debloater *made =
        leati_calloc(job->allocator, 1, sizeof *made + job->task_count * sizeof *made->gates);
    if (!made)
        return LEAT_ENOMEM;
    made->job = job;
    made->tick =
        (leati_tick){.interval_ns = LEATI_DEBLOAT_PERIOD_MS * INT64_C(1000000), .run = tick};
    for (uint32_t i = 0; i < job->task_count; i++)
        leati_debloat_init(&made->gates[i],
                           leati_config_get(&job->config, LEATI_CONFIG_DEBLOAT_TARGET) * 1000000,
                           (uint32_t)leati_global_pool_segment_size(job->runtime->pool));
    *debloater = made;
    return LEAT_OK;
}

void leati_debloater_destroy(leati_debloater **debloater)
{
    leati_debloater *gone = *debloater;
    if (!gone)
        return;
    *debloater = NULL;
    leati_free(gone->job->allocator, gone);
}

void leati_debloater_start(leati_debloater *debloater)
{
    leati_service_add_tick(debloater->job->runtime->service, &debloater->tick);
}

void leati_debloater_stop(leati_debloater *debloater)
{
    leati_service_remove_tick(debloater->job->runtime->service, &debloater->tick);
}

static void look_at(leati_debloat *gate, const leat_job *job, uint32_t index)
{
    const leati_task_input *input = &job->tasks[index].input;
    leat_task_stats stats;
    uint32_t segments = 0;
    for (uint32_t i = 0; i < input->channels; i++)
        segments += leati_channel_length(input->readers[i].channel) +
                    leati_channel_backlog(input->readers[i].channel);
    leat_job_task_stats(job, index, &stats);
    int64_t active_ns = (int64_t)(stats.busy_ns + stats.soft_ns + stats.hard_ns);
    if (!leati_debloat_look(gate, stats.bytes_in, active_ns, segments))
        return;
    uint32_t size = atomic_load_explicit(&gate->size, memory_order_relaxed);
    for (uint32_t i = 0; i < input->channels; i++)
        leati_channel_set_limit(input->readers[i].channel, size == gate->most ? 0 : size);
}

void leati_debloater_look(leati_debloater *debloater)
{
    const leat_job *job = debloater->job;
    for (uint32_t i = 0; i < job->task_count; i++)
        if (job->tasks[i].input.channels > 0)
            look_at(&debloater->gates[i], job, i);
}

void leati_job_task_debloat(const leat_job *job, uint32_t index, uint32_t *size_bytes,
                            int64_t *drain_ms)
{
    *size_bytes = (uint32_t)leati_global_pool_segment_size(job->runtime->pool);
    *drain_ms = 0;
    if (!job->debloater)
        return;
    const leati_debloat *gate = &job->debloater->gates[index];
    *size_bytes = atomic_load_explicit(&gate->size, memory_order_relaxed);
    *drain_ms = atomic_load_explicit(&gate->drain_ns, memory_order_relaxed) / 1000000;
}
