// SPDX-License-Identifier: Apache-2.0
// Slots: which jobs get theirs, and where.
//
// A job gets all its slots at once or none. The oldest waiting job comes first; it is passed over
// only when it could not run even with all slots free, for then the others would wait for nothing.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "cluster/manager/manager_impl.h"

typedef struct candidate {
    leati_member *member;
    uint32_t free;    // slots not taken yet
    uint32_t process; // index of the participant, UINT32_MAX while it has no slot
} candidate;

// Where the slots of one job go.
typedef struct plan {
    const leat_allocator *allocator;
    leati_managed_job *job;
    candidate *candidates; // as the list of members
    uint32_t candidate_count, participant_count;
    uint32_t *process_of_slot;
    uint32_t *process_of; // of each task
    leati_participant *participants;
} plan;

static uint32_t free_slots(const leati_member *member)
{
    return member->slots > member->slots_used ? member->slots - member->slots_used : 0;
}

// What there is for one job: of all task managers, or of the largest when it needs one process.
typedef struct supply {
    uint32_t members;
    uint64_t total, free;
} supply;

static void add_up(const leati_manager *manager, supply *all, supply *largest)
{
    *all = *largest = (supply){0};
    for (const leati_member *member = manager->members; member; member = member->next) {
        uint32_t spare = free_slots(member);
        all->members++;
        all->total += member->slots;
        all->free += spare;
        largest->total = member->slots > largest->total ? member->slots : largest->total;
        largest->free = spare > largest->free ? spare : largest->free;
    }
}

// --- placing ---

// The candidate with the most free slots; of those that have as many, the first in the list, which
// is in the order of indices and registration.
static candidate *pick(plan *p)
{
    candidate *best = NULL;
    for (uint32_t i = 0; i < p->candidate_count; i++) {
        candidate *c = &p->candidates[i];
        if (c->free > 0 && (!best || c->free > best->free))
            best = c;
    }
    return best;
}

static void take_slot(plan *p, candidate *c, uint32_t slot)
{
    if (c->process == UINT32_MAX) {
        c->process = p->participant_count++;
        leati_participant *participant = &p->participants[c->process];
        *participant = (leati_participant){.member = c->member};
        memcpy(participant->id, c->member->id, sizeof participant->id);
        memcpy(participant->name, c->member->name, sizeof participant->name);
    }
    c->free--;
    p->participants[c->process].slots++;
    p->process_of_slot[slot] = c->process;
}

static void place_slots(plan *p)
{
    candidate *one = p->job->one_process ? pick(p) : NULL;
    for (uint32_t slot = 0; slot < p->job->slots_needed; slot++)
        take_slot(p, one ? one : pick(p), slot);
}

// Each group has as many slots as its widest vertex has subtasks, group after group in the order of
// their first vertices. Subtask i of a vertex goes to slot i of its group.
static void place_tasks(plan *p)
{
    const leati_job_graph *graph = p->job->graph;
    uint32_t base = 0;
    for (uint32_t v = 0; v < graph->vertex_count; v++) {
        const char *group = graph->vertices[v].slot_group;
        uint32_t first = 0, widest = 0;
        while (strcmp(graph->vertices[first].slot_group, group) != 0)
            first++;
        for (uint32_t w = v; first == v && w < graph->vertex_count; w++) {
            const leati_vertex *vertex = &graph->vertices[w];
            if (strcmp(vertex->slot_group, group) != 0)
                continue;
            widest = vertex->parallelism > widest ? vertex->parallelism : widest;
            for (uint32_t i = 0; i < vertex->parallelism; i++) {
                uint32_t process = p->process_of_slot[base + i];
                p->process_of[p->job->first_task[w] + i] = process;
                p->participants[process].tasks++;
            }
        }
        base += widest;
    }
}

static bool make_plan(const leati_manager *manager, leati_managed_job *job, uint32_t members,
                      plan *p)
{
    *p = (plan){.allocator = manager->allocator, .job = job};
    p->candidates = leati_calloc(p->allocator, members, sizeof *p->candidates);
    p->participants = leati_calloc(p->allocator, members, sizeof *p->participants);
    p->process_of_slot = leati_calloc(p->allocator, job->slots_needed, sizeof(uint32_t));
    p->process_of = leati_calloc(p->allocator, job->task_count, sizeof(uint32_t));
    if (!p->candidates || !p->participants || !p->process_of_slot || !p->process_of)
        return false;
    for (leati_member *member = manager->members; member; member = member->next)
        p->candidates[p->candidate_count++] =
            (candidate){.member = member, .free = free_slots(member), .process = UINT32_MAX};
    return true;
}

static void drop_plan(plan *p)
{
    leati_free(p->allocator, p->candidates);
    leati_free(p->allocator, p->participants);
    leati_free(p->allocator, p->process_of_slot);
    leati_free(p->allocator, p->process_of);
}

// The slots are there.
static void give_slots(leati_manager *manager, leati_managed_job *job, uint32_t members)
{
    plan p;
    if (!make_plan(manager, job, members, &p)) {
        drop_plan(&p);
        leati_managed_fail(manager, job,
                           &(leati_job_fault){.vertex = UINT32_MAX,
                                              .subtask = UINT32_MAX,
                                              .text = "the job manager is out of memory"});
        return;
    }
    place_slots(&p);
    place_tasks(&p);
    for (uint32_t i = 0; i < p.participant_count; i++)
        p.participants[i].member->slots_used += p.participants[i].slots;
    job->participants = p.participants;
    job->participant_count = p.participant_count;
    p.participants = NULL;
    leati_managed_deploy(manager, job, p.process_of);
    drop_plan(&p);
}

// --- choosing ---

// The oldest job that waits for slots and could have them if all were free.
static leati_managed_job *next_waiting(leati_manager *manager, const supply *all,
                                       const supply *largest)
{
    leati_managed_job *oldest = NULL;
    for (leati_managed_job *job = manager->jobs; job; job = job->next)
        if (job->phase == LEATI_PHASE_CREATED &&
            job->slots_needed <= (job->one_process ? largest->total : all->total))
            oldest = job;
    return oldest;
}

void leati_manager_schedule(leati_manager *manager)
{
    // Deploying may fail a job, whose slots are free again: the outermost call goes on with them.
    manager->schedule_again = true;
    if (manager->scheduling)
        return;
    manager->scheduling = true;
    while (manager->schedule_again && !manager->stopping) {
        supply all, largest;
        manager->schedule_again = false;
        add_up(manager, &all, &largest);
        leati_managed_job *job = next_waiting(manager, &all, &largest);
        if (!job || job->slots_needed > (job->one_process ? largest.free : all.free))
            continue;
        manager->schedule_again = true; // for the next job
        give_slots(manager, job, all.members);
    }
    manager->scheduling = false;
}

// --- waiting too long ---

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void fail_for_slots(leati_manager *manager, leati_managed_job *job)
{
    supply all, largest;
    char text[240];
    add_up(manager, &all, &largest);
    int used = snprintf(text, sizeof text, "needs %u slot%s%s, and ", job->slots_needed,
                        plural(job->slots_needed),
                        job->one_process ? " in one task manager, as it has a loop" : "");
    size_t at = (size_t)used, room = sizeof text - at;
    if (all.members == 0)
        snprintf(text + at, room, "no task manager has registered");
    else if (job->one_process)
        snprintf(text + at, room,
                 "the largest offers %" PRIu64 " (at most %" PRIu64 " free in one)", largest.total,
                 largest.free);
    else
        snprintf(text + at, room,
                 "%u task manager%s offer%s %" PRIu64 " (%" PRIu64 " of them free)", all.members,
                 plural(all.members), all.members == 1 ? "s" : "", all.total, all.free);
    leati_managed_fail(
        manager, job,
        &(leati_job_fault){.vertex = UINT32_MAX, .subtask = UINT32_MAX, .text = text});
}

int64_t leati_manager_slot_timeouts(leati_manager *manager, int64_t now_ns)
{
    int64_t timeout_ns = leati_setting(manager, LEATI_CONFIG_SLOT_TIMEOUT) * 1000000;
    int64_t next_ns = INT64_MAX;
    bool freed = false;
    for (leati_managed_job *job = manager->jobs; job; job = job->next) {
        if (job->phase != LEATI_PHASE_CREATED)
            continue;
        int64_t due_ns = job->submitted_ns + timeout_ns;
        if (now_ns >= due_ns) {
            fail_for_slots(manager, job);
            freed = true;
        } else if (due_ns < next_ns) {
            next_ns = due_ns;
        }
    }
    if (freed) // it may have been in the way of others
        leati_manager_schedule(manager);
    return next_ns;
}
