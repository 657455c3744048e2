// SPDX-License-Identifier: Apache-2.0
// Producers and consumers on threads of their own exchange records over writers, channels, gates
// and readers, in seeded random set-ups with tiny pools; two such jobs at a time share one global
// pool. Each consumer checks every record it gets: order in the channel, contents, watermarks; at
// the end all records are there and all segments are home. Consumers and producers sleep without a
// time limit until they are woken, so a lost wake-up stops the run and the watchdog reports it.
//
//     stress_network [SECONDS [SEED]]
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "leat/record.h"
#include "network/reader.h"
#include "network/writer.h"

#define JOBS          2
#define MAX_SIDE      4
#define SEGMENT       256
#define MAX_RECORD    20000
#define MAX_PAYLOAD   (MAX_RECORD + 8)
#define STALL_SECONDS 20

typedef struct item {
    int64_t sequence;
    uint32_t producer;
    leat_str text;
} item;
LEAT_RECORD(item, LEAT_FIELD(sequence, LEAT_I64), LEAT_FIELD(producer, LEAT_U32),
            LEAT_FIELD(text, LEAT_STR));

static _Atomic uint64_t progress;
static _Atomic bool over;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

// --- a task's end of things -------------------------------------------------------------------

typedef struct task {
    leati_waiter waiter;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool woken;
    _Atomic bool *cancelled;
    uint64_t random;
} task;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint32_t below(uint64_t *state, uint32_t bound)
{
    return (uint32_t)((next_random(state) >> 32) % bound);
}

static void task_wake(leati_waiter *waiter)
{
    task *self = (task *)waiter;
    pthread_mutex_lock(&self->lock);
    self->woken = true;
    pthread_cond_signal(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static void task_sleep(task *self)
{
    pthread_mutex_lock(&self->lock);
    while (!self->woken)
        pthread_cond_wait(&self->changed, &self->lock);
    self->woken = false;
    pthread_mutex_unlock(&self->lock);
}

static leat_err task_wait(leati_waiter *waiter, bool (*ready)(void *arg), void *arg)
{
    task *self = (task *)waiter;
    while (!ready(arg)) {
        if (atomic_load(self->cancelled))
            return LEAT_ECANCELLED;
        task_sleep(self);
    }
    return LEAT_OK;
}

static void task_init(task *self, _Atomic bool *cancelled, uint64_t seed)
{
    *self = (task){.waiter = {.wake = task_wake, .wait = task_wait},
                   .cancelled = cancelled,
                   .random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1};
    CHECK(pthread_mutex_init(&self->lock, NULL) == 0);
    CHECK(pthread_cond_init(&self->changed, NULL) == 0);
}

static void task_fini(task *self)
{
    pthread_mutex_destroy(&self->lock);
    pthread_cond_destroy(&self->changed);
}

// --- a job ------------------------------------------------------------------------------------

typedef struct job job;

typedef struct producer {
    task base; // first
    job *of;
    uint32_t index;
    leati_local_pool *pool;
    leati_writer *writer;
    leati_channel *channels[MAX_SIDE];
    leati_record_time time;
    bool maybe_blocked;
    _Atomic bool may_tick;
    uint64_t sent[MAX_SIDE]; // hash: how many records each consumer must get
} producer;

typedef struct consumer {
    task base; // first
    job *of;
    uint32_t index;
    leati_gate *gate;
    leati_reader readers[MAX_SIDE]; // one a producer
    int64_t last[MAX_SIDE], watermark[MAX_SIDE];
    uint64_t urgent[MAX_SIDE];
    uint64_t received[MAX_SIDE];
    uint32_t ended;
} consumer;

struct job {
    leati_global_pool *global;
    uint64_t random;
    uint32_t producers, consumers;
    leati_partitioner partitioner;
    int64_t timeout;
    int64_t records; // of each producer
    uint32_t large;  // one record in so many spans segments
    uint32_t urgent; // priority events that each producer sends
    leati_key_selector key;
    _Atomic bool cancelled;
    bool will_cancel;
    _Atomic bool timer_ends;
    producer producer[MAX_SIDE];
    consumer consumer[MAX_SIDE];
};

static leat_err on_failure(leat_ctx *ctx, leat_err err, const char *format, ...)
{
    fprintf(stderr, "writer failed: %s\n", leat_err_name(err));
    _exit(1);
}

// The text of a record follows from its number, so that the reader can check it.
static void fill_text(char *text, size_t size, int64_t sequence)
{
    for (size_t i = 0; i < size; i++)
        text[i] = (char)(sequence * 31 + (int64_t)i * 7);
}

// The runtime's way: register, look again, hand out what is there, sleep.
static leat_err until_available(producer *self)
{
    if (!self->maybe_blocked)
        return LEAT_OK;
    self->maybe_blocked = false;
    while (!leati_writer_available(self->writer)) {
        leati_writer_await(self->writer);
        if (leati_writer_available(self->writer))
            break;
        leati_writer_flush(self->writer);
        if (atomic_load(self->base.cancelled))
            return LEAT_ECANCELLED;
        task_sleep(&self->base);
    }
    return LEAT_OK;
}

static leat_err send_one(producer *self, int64_t sequence, char *text)
{
    job *of = self->of;
    uint64_t *random = &self->base.random;
    size_t size =
        below(random, of->large) == 0 ? below(random, MAX_RECORD - 100) : below(random, 60);
    fill_text(text, size, sequence);
    item record = {sequence, self->index, {text, size}};
    self->time.present = below(random, 2) == 0;
    self->time.timestamp = sequence;
    if (of->partitioner == LEATI_PARTITION_HASH) {
        uint64_t hash = leat_key_hash(&of->key.fields, &record);
        self->sent[leat_key_group_to_subtask(leat_key_group(hash, 128), of->consumers, 128)]++;
    }
    leat_operator *op = leati_writer_operator(self->writer);
    leat_err err = op->ops->element(op, &record, NULL);
    if (err == LEAT_OK && below(random, 50) == 0)
        err = op->ops->watermark(op, sequence, NULL);
    if (err == LEAT_OK && below(random, 40) == 0)
        leati_writer_flush(self->writer);
    return err;
}

static leat_err send_all(producer *self, char *text)
{
    job *of = self->of;
    uint32_t urgent = 0;
    for (int64_t i = 1; i <= of->records; i++) {
        leat_err err = until_available(self);
        if (err == LEAT_OK)
            err = send_one(self, i, text);
        if (err == LEAT_OK && urgent < of->urgent && below(&self->base.random, 300) == 0) {
            leati_event event = {.tag = LEATI_TAG_BARRIER, .priority = 1, .checkpoint = ++urgent};
            err = leati_writer_broadcast_event(self->writer, &event);
        }
        if (err != LEAT_OK)
            return err;
        atomic_fetch_add_explicit(&progress, 1, memory_order_relaxed);
    }
    for (; urgent < of->urgent;) {
        leati_event event = {.tag = LEATI_TAG_BARRIER, .priority = 1, .checkpoint = ++urgent};
        leat_err err = leati_writer_broadcast_event(self->writer, &event);
        if (err != LEAT_OK)
            return err;
    }
    for (int tag = LEATI_TAG_END_OF_DATA; tag <= LEATI_TAG_END_OF_PARTITION; tag++) {
        leati_event event = {.tag = (uint8_t)tag};
        leat_err err = leati_writer_broadcast_event(self->writer, &event);
        if (err != LEAT_OK)
            return err;
    }
    return LEAT_OK;
}

static void *produce(void *arg)
{
    producer *self = arg;
    char *text = malloc(MAX_RECORD);
    CHECK(text);
    leat_err err = send_all(self, text);
    CHECK(err == LEAT_OK || (err == LEAT_ECANCELLED && self->of->will_cancel));
    free(text);
    atomic_store(&self->may_tick, false);
    leati_local_pool_close(self->pool);
    return NULL;
}

static void check_record(consumer *self, uint32_t from, const leati_element *element)
{
    const uint8_t *bytes = element->payload;
    size_t size = element->size;
    int64_t stamp = 0;
    if (element->tag == LEATI_TAG_RECORD_AT) {
        stamp = leati_element_get_i64(bytes);
        bytes += 8;
        size -= 8;
    }
    item record;
    CHECK(leat_record_decode(LEAT_TYPE(item), bytes, size, &record, NULL) == LEAT_OK);
    CHECK(record.producer == from);
    CHECK(record.sequence > self->last[from] && record.sequence > self->watermark[from]);
    CHECK(element->tag == LEATI_TAG_RECORD || stamp == record.sequence);
    if (self->of->partitioner == LEATI_PARTITION_BROADCAST)
        CHECK(record.sequence == self->last[from] + 1);
    for (size_t i = 0; i < record.text.size; i++)
        CHECK(record.text.data[i] == (char)(record.sequence * 31 + (int64_t)i * 7));
    self->last[from] = record.sequence;
    self->received[from]++;
    atomic_fetch_add_explicit(&progress, 1, memory_order_relaxed);
}

static void take_event(consumer *self, uint32_t from, const leati_event *event)
{
    if (event->tag == LEATI_TAG_BARRIER)
        CHECK(event->checkpoint == ++self->urgent[from]);
    else if (event->tag == LEATI_TAG_END_OF_PARTITION)
        self->ended++;
    else
        CHECK(event->tag == LEATI_TAG_END_OF_DATA);
}

// Reads a channel for a turn; false when it has no more.
static bool read_some(consumer *self, uint32_t from)
{
    uint32_t budget = 1 + below(&self->base.random, 100);
    leati_element element;
    while (budget-- > 0) {
        switch (leati_reader_next(&self->readers[from], &element)) {
        case LEATI_READ_NONE:
            return false;
        case LEATI_READ_ELEMENT:
            if (element.tag == LEATI_TAG_WATERMARK) {
                int64_t watermark = leati_element_get_i64(element.payload);
                CHECK(watermark > self->watermark[from] && watermark >= self->last[from]);
                self->watermark[from] = watermark;
            } else {
                check_record(self, from, &element);
            }
            break;
        case LEATI_READ_EVENT:
            take_event(self, from, &element.event);
            break;
        default:
            CHECK(!"the channel is readable");
        }
    }
    return true;
}

static void *consume(void *arg)
{
    consumer *self = arg;
    while (self->ended < self->of->producers && !atomic_load(&self->of->cancelled)) {
        leati_channel *channel = leati_gate_poll(self->gate);
        if (!channel) {
            if (!leati_gate_has_data(self->gate))
                task_sleep(&self->base);
            continue;
        }
        bool more = read_some(self, leati_channel_index(channel));
        leati_gate_done(self->gate, channel, more);
        if (below(&self->base.random, 2000) == 0)
            usleep(1000);
    }
    return NULL;
}

static void *tick(void *arg)
{
    job *of = arg;
    while (!atomic_load(&of->timer_ends)) {
        for (uint32_t i = 0; i < of->producers; i++)
            leati_writer_tick(of->producer[i].writer);
        usleep(300);
    }
    return NULL;
}

// --- rounds -----------------------------------------------------------------------------------

static void choose(job *of)
{
    static const leati_partitioner all[] = {
        LEATI_PARTITION_REBALANCE, LEATI_PARTITION_RESCALE, LEATI_PARTITION_SHUFFLE,
        LEATI_PARTITION_BROADCAST, LEATI_PARTITION_GLOBAL,  LEATI_PARTITION_HASH,
    };
    static const int64_t timeouts[] = {-1, 0, 1};
    uint64_t *random = &of->random;
    of->producers = 1 + below(random, MAX_SIDE);
    of->consumers = 1 + below(random, MAX_SIDE);
    of->partitioner = all[below(random, sizeof all / sizeof all[0])];
    of->timeout = timeouts[below(random, 3)];
    of->records = 200 + below(random, 3000);
    of->large = below(random, 3) == 0 ? 5 : 100;
    of->urgent = below(random, 2) * 8;
    of->will_cancel = below(random, 6) == 0;
    atomic_store(&of->cancelled, false);
    atomic_store(&of->timer_ends, false);
}

static void make_producer(job *of, uint32_t index)
{
    producer *made = &of->producer[index];
    *made = (producer){.of = of, .index = index, .time = {.timestamp = INT64_MIN}};
    task_init(&made->base, &of->cancelled, next_random(&of->random));
    leati_local_pool_options pool = {.minimum = of->consumers + 1,
                                     .maximum = of->consumers + 1 + below(&of->random, 20),
                                     .overdraft = below(&of->random, 4),
                                     .waiter = &made->base.waiter};
    while (leati_global_pool_reserve(of->global, pool.minimum) != LEAT_OK)
        usleep(1000); // the other job will end
    CHECK(leati_local_pool_create(of->global, &pool, &made->pool) == LEAT_OK);
    uint32_t bound = 1 + below(&of->random, 10);
    for (uint32_t i = 0; i < of->consumers; i++) {
        CHECK(leati_channel_create(NULL, made->pool, bound, 0, &made->channels[i]) == LEAT_OK);
        leati_gate_attach(of->consumer[i].gate, index, made->channels[i]);
        leati_reader_init(&of->consumer[i].readers[index], NULL, made->channels[i], MAX_PAYLOAD);
    }
    leati_writer_options options = {
        .type = LEAT_TYPE(item),
        .partitioner = of->partitioner,
        .key = &of->key,
        .subtask = index,
        .channels = of->consumers,
        .consumers = of->consumers,
        .max_parallelism = 128,
        .buffer_timeout_ms = of->timeout,
        .max_segments = bound,
        .max_record_size = MAX_RECORD,
        .pool = made->pool,
        .waiter = &made->base.waiter,
        .time = &made->time,
        .maybe_blocked = &made->maybe_blocked,
        .failed = on_failure,
    };
    CHECK(leati_writer_create(&options, made->channels, &made->writer) == LEAT_OK);
}

static void make_parts(job *of)
{
    for (uint32_t i = 0; i < of->consumers; i++) {
        consumer *made = &of->consumer[i];
        *made = (consumer){.of = of, .index = i};
        task_init(&made->base, &of->cancelled, next_random(&of->random));
        CHECK(leati_gate_create(NULL, &made->base.waiter, of->producers, &made->gate) == LEAT_OK);
    }
    for (uint32_t i = 0; i < of->producers; i++)
        make_producer(of, i);
}

static void check_counts(job *of)
{
    for (uint32_t p = 0; p < of->producers; p++) {
        uint64_t sum = 0;
        for (uint32_t c = 0; c < of->consumers; c++) {
            uint64_t got = of->consumer[c].received[p];
            sum += got;
            CHECK(of->consumer[c].urgent[p] == of->urgent);
            if (of->partitioner == LEATI_PARTITION_BROADCAST)
                CHECK(got == (uint64_t)of->records);
            if (of->partitioner == LEATI_PARTITION_HASH)
                CHECK(got == of->producer[p].sent[c]);
            if (of->partitioner == LEATI_PARTITION_GLOBAL)
                CHECK(got == (c == 0 ? (uint64_t)of->records : 0));
        }
        if (of->partitioner != LEATI_PARTITION_BROADCAST)
            CHECK(sum == (uint64_t)of->records);
    }
}

static void free_parts(job *of)
{
    for (uint32_t i = 0; i < of->consumers; i++)
        for (uint32_t p = 0; p < of->producers; p++)
            leati_reader_fini(&of->consumer[i].readers[p]);
    for (uint32_t i = 0; i < of->producers; i++) {
        producer *gone = &of->producer[i];
        leati_writer_destroy(&gone->writer);
        for (uint32_t c = 0; c < of->consumers; c++)
            leati_channel_destroy(&gone->channels[c]);
        uint32_t used, limit;
        leati_local_pool_counts(gone->pool, &used, &limit);
        CHECK(used == 0);
        leati_local_pool_destroy(&gone->pool);
        task_fini(&gone->base);
    }
    for (uint32_t i = 0; i < of->consumers; i++) {
        leati_gate_destroy(&of->consumer[i].gate);
        task_fini(&of->consumer[i].base);
    }
}

static void cancel(job *of)
{
    usleep(below(&of->random, 3000));
    atomic_store(&of->cancelled, true);
    for (uint32_t i = 0; i < of->producers; i++)
        task_wake(&of->producer[i].base.waiter);
    for (uint32_t i = 0; i < of->consumers; i++)
        task_wake(&of->consumer[i].base.waiter);
}

static void run_round(job *of)
{
    choose(of);
    make_parts(of);
    pthread_t timer, producers[MAX_SIDE] = {0}, consumers[MAX_SIDE] = {0};
    CHECK(pthread_create(&timer, NULL, tick, of) == 0);
    for (uint32_t i = 0; i < of->consumers; i++)
        CHECK(pthread_create(&consumers[i], NULL, consume, &of->consumer[i]) == 0);
    for (uint32_t i = 0; i < of->producers; i++)
        CHECK(pthread_create(&producers[i], NULL, produce, &of->producer[i]) == 0);
    if (of->will_cancel)
        cancel(of);
    for (uint32_t i = 0; i < of->producers; i++)
        pthread_join(producers[i], NULL);
    for (uint32_t i = 0; i < of->consumers; i++)
        pthread_join(consumers[i], NULL);
    atomic_store(&of->timer_ends, true);
    pthread_join(timer, NULL);
    if (!of->will_cancel)
        check_counts(of);
    free_parts(of);
}

typedef struct runner {
    job job;
    uint64_t rounds;
} runner;

static void *run_rounds(void *arg)
{
    runner *self = arg;
    while (!atomic_load(&over)) {
        run_round(&self->job);
        self->rounds++;
    }
    return NULL;
}

static void *watch(void *arg)
{
    uint64_t seen = 0;
    for (int idle = 0; idle < STALL_SECONDS * 10;) {
        usleep(100000);
        if (*(_Atomic bool *)arg)
            return NULL;
        uint64_t now = atomic_load(&progress);
        idle = now == seen ? idle + 1 : 0;
        seen = now;
    }
    fprintf(stderr, "no progress for %d seconds: a wake-up was lost\n", STALL_SECONDS);
    _exit(1);
}

int main(int argc, char **argv)
{
    unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 10;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    static runner runners[JOBS];
    static _Atomic bool finished;
    leati_global_pool *global;
    CHECK(leati_global_pool_create(NULL, SEGMENT, JOBS * MAX_SIDE * (MAX_SIDE + 1) + 10, &global) ==
          LEAT_OK);
    pthread_t threads[JOBS], watchdog;
    CHECK(pthread_create(&watchdog, NULL, watch, &finished) == 0);
    for (uint64_t i = 0; i < JOBS; i++) {
        job *of = &runners[i].job;
        of->global = global;
        of->random = (seed * JOBS + i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        const char *why, *at;
        CHECK(leat_key_init(&of->key.fields, LEAT_TYPE(item), "sequence", &why, &at) == LEAT_OK);
        CHECK(pthread_create(&threads[i], NULL, run_rounds, &runners[i]) == 0);
    }
    struct timespec end, now;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += seconds;
    do {
        usleep(50000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < end.tv_sec);
    atomic_store(&over, true);
    uint64_t rounds = 0;
    for (int i = 0; i < JOBS; i++) {
        pthread_join(threads[i], NULL);
        rounds += runners[i].rounds;
    }
    atomic_store(&finished, true);
    pthread_join(watchdog, NULL);
    uint32_t total, unreserved;
    leati_global_pool_counts(global, &total, &unreserved);
    CHECK(total == unreserved);
    leati_global_pool_destroy(&global);
    printf("seed %llu: %llu rounds, %llu records written and read\n", (unsigned long long)seed,
           (unsigned long long)rounds, (unsigned long long)atomic_load(&progress));
    return 0;
}
