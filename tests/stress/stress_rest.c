// SPDX-License-Identifier: Apache-2.0
// The REST interface under many clients: requests of all kinds, whole and broken off, while jobs
// come, print, change their states and are forgotten. Every answer must be whole and of a status
// that fits; at the end of a round the server stops while clients wait.
//
//     stress_rest [SECONDS [SEED]]
#include "seeded.h"

// With or without words for the failure, which are not used.
#define FIRST(condition, ...) (condition)
#define cr_assert(...)                                                                             \
    do {                                                                                           \
        if (!FIRST(__VA_ARGS__, 0))                                                                \
            wrong(#__VA_ARGS__, __LINE__, 0);                                                      \
    } while (0)
#include "tests/cluster/rest_fixture.h"

enum { CLIENTS = 8, JOBS = 6, ROUND_MS = 700 };

typedef struct client {
    fixture *f;
    uint64_t random;
    pthread_t thread;
} client;

static _Atomic bool round_ends;
static _Atomic uint64_t answers;

// --- jobs that change ---

static void forget_one(fixture *f)
{
    pthread_mutex_lock(&f->manager.lock);
    leati_managed_job *gone = f->manager.jobs;
    if (gone)
        f->manager.jobs = gone->next;
    pthread_cond_broadcast(&f->manager.changed);
    pthread_mutex_unlock(&f->manager.lock);
    if (gone)
        destroy_job(gone);
}

static void change(fixture *f, uint64_t *random)
{
    pthread_mutex_lock(&f->manager.lock);
    for (leati_managed_job *job = f->manager.jobs; job; job = job->next) {
        if (next_random(random, 3) == 0 && job->phase < LEATI_PHASE_CANCELED)
            job->phase++;
        job->output_end += next_random(random, 3000);
        if (job->output_end - job->output_first > sizeof f->output)
            job->output_first = job->output_end - sizeof f->output;
        leati_task_view *task = &job->tasks[next_random(random, job->task_count)];
        task->figures.busy_ns += next_random(random, 1000000);
        task->figures.records_in += next_random(random, 1000);
        task->reported_ns = leati_clock_ns();
        leati_task_view_track(task);
    }
    pthread_cond_broadcast(&f->manager.changed);
    pthread_mutex_unlock(&f->manager.lock);
}

static void *mutate(void *arg)
{
    client *c = arg;
    uint32_t jobs = 0;
    while (!atomic_load(&round_ends)) {
        char id[LEATI_ID_SIZE];
        if (jobs < JOBS && next_random(&c->random, 4) == 0) {
            snprintf(id, sizeof id, "%04x%028x", next_random(&c->random, 8), 7u);
            add_job(c->f, id, "a job");
            jobs++;
        } else if (jobs && next_random(&c->random, 8) == 0) {
            forget_one(c->f);
            jobs--;
        }
        change(c->f, &c->random);
        usleep(1000);
    }
    return NULL;
}

// --- clients ---

// False: the connection is of no use any more.
static bool ask_for(client *c, int fd)
{
    static const char *const below[] = {
        "",
        "/why",
        "/metrics",
        "/plan",
        "/exceptions",
        "/config",
        "/accumulators",
        "/execution-result",
        "/vertices/1/backpressure",
        "/log",
        "/status?wait=20&not=RUNNING",
        "/output?wait=20&offset=0",
        "/output?wait=30000&attached=1&offset=0",
        "/vertices/9",
    };
    static const char *const others[] = {"/overview", "/jobs",    "/metrics", "/health",
                                         "/config",   "/nothing", "/",        "/taskmanagers"};
    char text[300], path[200];
    if (next_random(&c->random, 3))
        snprintf(path, sizeof path, "/v1/jobs/%04x%s", next_random(&c->random, 8),
                 below[next_random(&c->random, sizeof below / sizeof *below)]);
    else
        snprintf(path, sizeof path, "%s", others[next_random(&c->random, 8)]);
    bool cancels = next_random(&c->random, 20) == 0;
    const char *mode = !cancels ? "" : strchr(path, '?') ? "&mode=cancel" : "?mode=cancel";
    int size = snprintf(text, sizeof text, "%s %s%s HTTP/1.1\r\nHost: here\r\n\r\n",
                        cancels ? "PATCH" : "GET", path, mode);
    // Broken off now and then.
    bool whole = next_random(&c->random, 10) != 0;
    send_all(fd, text, whole ? (size_t)size : next_random(&c->random, (uint32_t)size));
    if (!whole)
        return false;
    reply r = receive(fd, true);
    cr_assert(r.status == 0 || r.status == 200 || r.status == 202 || r.status == 404 ||
              r.status == 405 || r.status == 409);
    bool answered = r.status != 0;
    atomic_fetch_add(&answers, answered);
    done(&r);
    return answered;
}

static bool put_one(client *c, int fd)
{
    char data[5000], hash[33], head[200];
    size_t size = next_random(&c->random, sizeof data);
    memset(data, (int)next_random(&c->random, 256), sizeof data);
    hash_of(data, size, hash);
    snprintf(head, sizeof head,
             "PUT /artifacts/%s HTTP/1.1\r\nHost: here\r\nContent-Length: %zu\r\n\r\n", hash, size);
    bool whole = next_random(&c->random, 4) != 0;
    send_text(fd, head);
    send_all(fd, data, whole ? size : size / 2);
    if (!whole)
        return false;
    reply r = receive(fd, true);
    cr_assert(r.status == 0 || r.status == 200 || r.status == 201);
    bool answered = r.status != 0;
    done(&r);
    return answered;
}

static void *be_client(void *arg)
{
    client *c = arg;
    while (!atomic_load(&round_ends)) {
        int fd = dial(c->f);
        bool open = true;
        for (uint32_t i = next_random(&c->random, 3); open && !atomic_load(&round_ends); i--) {
            open = next_random(&c->random, 6) == 0 ? put_one(c, fd) : ask_for(c, fd);
            open &= i > 0;
        }
        close(fd);
    }
    return NULL;
}

static void run_round(void)
{
    fixture *f = start_with(0);
    client clients[CLIENTS + 1];
    atomic_store(&round_ends, false);
    for (int i = 0; i <= CLIENTS; i++) {
        clients[i] = (client){.f = f, .random = seed_now * 1000 + (uint64_t)i};
        cr_assert(pthread_create(&clients[i].thread, NULL, i ? be_client : mutate, &clients[i]) ==
                  0);
    }
    usleep(ROUND_MS * 1000);
    // Those who wait are let go; those who come find nobody, so they must have ended first.
    atomic_store(&round_ends, true);
    pthread_join(clients[0].thread, NULL);
    while (f->manager.jobs)
        forget_one(f);
    for (int i = 1; i <= CLIENTS; i++)
        pthread_join(clients[i].thread, NULL);
    stop(f);
}

int main(int argc, char **argv)
{
    int64_t seconds = argc > 1 ? strtoll(argv[1], NULL, 10) : 5;
    seed_now = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int64_t end_s = clock_s() + seconds;
    start_watchdog();
    for (; clock_s() <= end_s; seed_now++) {
        run_round();
        feed_watchdog();
    }
    cr_assert(atomic_load(&answers) > 0);
    printf("%" PRIu64 " answers up to seed %" PRIu64 "\n", atomic_load(&answers), seed_now - 1);
    return 0;
}
