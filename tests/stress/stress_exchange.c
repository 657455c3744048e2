// SPDX-License-Identifier: Apache-2.0
// Exchanges between processes, three of them in this one, with several jobs at a time: seeded
// random flows between all of them, over channels with little memory, with consumers that stop for
// a while. Jobs end well, or are cancelled, or close one process's share at any moment; connections
// are cut. A job that nobody disturbed has to end with all bytes and events, once and in order;
// whatever happens all segments are home at the end, and no close hangs.
//
//     stress_exchange SECONDS [SEED]
#include <unistd.h>

#include "tests/network/nng/flow.h"
#include "tests/stress/nng_races.h"
#include "tests/stress/seeded.h"

#include "network/nng/exchange_impl.h"

enum { NODES = 3, JOBS = 3, FLOWS = 8 };

typedef enum ending {
    ENDS_WELL = 0,
    IS_CANCELLED = 1,
    CLOSES_EARLY = 2, // one share of it, before the others have finished
    IS_CUT_OFF = 3,   // some connection is closed
} ending;

typedef struct job {
    share shares[NODES];
    flow flows[FLOWS];
    uint32_t flow_count;
    ending ending;
} job;

static node nodes[NODES];
static job jobs[JOBS];
static uint64_t attempts;
static uint64_t finished, failed;

static void start_job(job *self)
{
    uint64_t attempt = ++attempts;
    for (uint32_t i = 0; i < NODES; i++)
        share_open(&self->shares[i], nodes, NODES, i, attempt);
    self->flow_count = 1 + below(FLOWS);
    for (uint32_t i = 0; i < self->flow_count; i++) {
        uint32_t from = below(NODES), to = (from + 1 + below(NODES - 1)) % NODES;
        flow *f = &self->flows[i];
        flow_init(f, &self->shares[from], &self->shares[to], i, below(5) ? below(300000) : 0);
        f->producer.random = seed_now * 100 + i;
        f->events = below(5);
        f->urgent = below(8);
        bool receiver_first = below(2);
        if (!receiver_first)
            flow_send(f, to);
        flow_receive(f, from, 2 + below(10));
        flow_start_consumer(f);
        if (receiver_first)
            flow_send(f, to);
        flow_start_producer(f);
    }
}

// Closes some connection that is open.
static void cut_some(void)
{
    leati_exchange *exchange = (leati_exchange *)nodes[below(NODES)].transport;
    pthread_mutex_lock(&exchange->lock);
    for (leati_wire *wire = exchange->wires; wire; wire = wire->next)
        if (!wire->over && atomic_load_explicit(&wire->peer, memory_order_acquire)) {
            leati_connection_close(wire->connection, LEAT_EIO, "cut");
            break;
        }
    pthread_mutex_unlock(&exchange->lock);
}

static bool job_is_over(job *self, bool *failure)
{
    *failure = false;
    for (uint32_t i = 0; i < NODES; i++) {
        pthread_mutex_lock(&self->shares[i].lock);
        *failure |= self->shares[i].failures > 0;
        pthread_mutex_unlock(&self->shares[i].lock);
    }
    for (uint32_t i = 0; i < self->flow_count && !*failure; i++)
        if (!atomic_load(&self->flows[i].ended))
            return false;
    return true;
}

static void *close_share(void *arg)
{
    share_close(arg);
    return NULL;
}

// At the same time, as processes do: one that has something left to send waits for the other to
// take it, or to close.
static void close_shares(job *self)
{
    pthread_t threads[NODES];
    for (uint32_t i = 0; i < NODES; i++)
        FLOW_CHECK(pthread_create(&threads[i], NULL, close_share, &self->shares[i]) == 0);
    for (uint32_t i = 0; i < NODES; i++)
        pthread_join(threads[i], NULL);
}

static void end_job(job *self, bool disturbed)
{
    bool failure;
    if (self->ending == IS_CANCELLED || self->ending == CLOSES_EARLY)
        usleep(below(5000));
    else
        while (!job_is_over(self, &failure))
            usleep(500);
    if (self->ending == ENDS_WELL && !disturbed && failure)
        for (uint32_t i = 0; i < NODES; i++)
            if (self->shares[i].failures > 0)
                wrong(self->shares[i].text, i, self->shares[i].err);
    bool ended = job_is_over(self, &failure) && !failure;
    finished += ended;
    failed += failure;
    for (uint32_t i = 0; i < self->flow_count; i++)
        if (!ended)
            flow_cancel(&self->flows[i]);
    for (uint32_t i = 0; i < self->flow_count; i++)
        flow_join(&self->flows[i]);
    close_shares(self);
    for (uint32_t i = 0; i < self->flow_count; i++)
        flow_fini(&self->flows[i]);
}

static void hold_some(job *self)
{
    for (uint32_t i = 0; i < self->flow_count; i++)
        if (below(4) == 0)
            flow_hold(&self->flows[i], true);
    if (below(2))
        usleep(below(3000));
    for (uint32_t i = 0; i < self->flow_count; i++)
        flow_hold(&self->flows[i], false);
}

// A share whose tasks go on while it is closed would be a mistake of the runtime's, so the flows
// that it has to do with are stopped first.
static void close_one(job *self)
{
    share *gone = &self->shares[below(NODES)];
    for (uint32_t i = 0; i < self->flow_count; i++)
        if (self->flows[i].from == gone || self->flows[i].to == gone) {
            flow_cancel(&self->flows[i]);
            flow_join(&self->flows[i]);
        }
    gone->of->transport->close(&gone->link);
}

static void round_of_jobs(uint64_t seed, bool *disturbed)
{
    seed_now = seed;
    random_now = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    bool cut = false;
    for (uint32_t i = 0; i < JOBS; i++) {
        uint32_t dice = below(10);
        jobs[i].ending = dice < 6   ? ENDS_WELL
                         : dice < 8 ? IS_CANCELLED
                         : dice < 9 ? CLOSES_EARLY
                                    : IS_CUT_OFF;
        cut |= jobs[i].ending == IS_CUT_OFF;
        start_job(&jobs[i]);
    }
    for (uint32_t i = 0; i < JOBS; i++) {
        if (below(2))
            hold_some(&jobs[i]);
        if (jobs[i].ending == CLOSES_EARLY)
            close_one(&jobs[i]);
        if (jobs[i].ending == IS_CUT_OFF)
            cut_some();
    }
    for (uint32_t i = 0; i < JOBS; i++)
        end_job(&jobs[i], cut || *disturbed);
    // The next ones may still find a connection of which one side does not know that it is over.
    *disturbed = cut;
}

int main(int argc, char **argv)
{
    int64_t seconds = argc > 1 ? atoll(argv[1]) : 5;
    uint64_t seed = argc > 2 ? (uint64_t)atoll(argv[2]) : 1, rounds = 0;
    int64_t end = clock_s() + seconds;
    bool disturbed = false;
    char folder[] = "/tmp/leat-stress-XXXXXX";
    FLOW_CHECK(mkdtemp(folder));
    start_watchdog();
    // Two of them talk over a socket file.
    for (uint32_t i = 0; i < NODES; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%u", folder, i);
        node_open_at(&nodes[i], (const char *[NODES]){"b", "a", "c"}[i], 10000, i < 2 ? path : NULL,
                     NULL);
    }
    do {
        feed_watchdog();
        round_of_jobs(seed++, &disturbed);
        rounds++;
    } while (clock_s() < end);
    for (uint32_t i = 0; i < NODES; i++)
        node_close(&nodes[i]);
    FLOW_CHECK(rmdir(folder) == 0);
    printf("%llu rounds, %llu jobs have ended well, %llu have failed\n", (unsigned long long)rounds,
           (unsigned long long)finished, (unsigned long long)failed);
    return finished == 0;
}
