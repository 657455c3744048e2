// SPDX-License-Identifier: Apache-2.0
// Watched directories under a writer that makes, renames, replaces and removes files meanwhile: at
// a random parallelism and interval, with files of many splits and compressed ones. Each version of
// a file has numbers of its own. All numbers of versions that stayed must have been read, each
// once; those of versions that were replaced or removed at most once. Jobs are cancelled at a
// random moment of their own as well. A watchdog ends the program when a job takes too long.
//
//     stress_watch [SECONDS [SEED]]
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "leat/leat.h"
#include "seeded.h"

enum { FILES = 12, NUMBERS = 1 << 20 };

static bool has_birth; // the file system keeps the time

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    return remove(path);
}

// What is read of one job.
typedef struct reading {
    _Atomic uint8_t *seen; // by number
    _Atomic int64_t sure;  // numbers of the versions that will stay
    _Atomic int64_t arrived;
    uint8_t *stays; // by number; of the writer until the job has ended
} reading;

static int read_number(leat_ctx *ctx, const void *in)
{
    reading *r = leat_ctx_user_data(ctx);
    const leat_str *line = in;
    int64_t number = 0;
    if (line->size == 0)
        return 0;
    for (size_t i = 0; i < line->size; i++) {
        if (line->data[i] < '0' || line->data[i] > '9')
            wrong("not a number", (int64_t)i, line->data[i]);
        number = number * 10 + (line->data[i] - '0');
    }
    if (number >= NUMBERS)
        wrong("a number nobody wrote", number, 0);
    if (atomic_fetch_add(&r->seen[number], 1) != 0)
        wrong("a number read twice", number, 0);
    atomic_fetch_add(&r->arrived, 1);
    return 0;
}

// --- the writer ---

typedef struct version {
    int64_t first, count; // its numbers
    bool packed;
    uint32_t step;
} version;

static void write_file(const char *path, const version *v)
{
    gzFile file = gzopen(path, v->packed ? "wb1" : "wbT");
    if (!file)
        wrong("gzopen", errno, 0);
    for (int64_t n = v->first; n < v->first + v->count; n++)
        if (gzprintf(file, "%" PRId64 "\n", n) <= 0)
            wrong("gzprintf", n, 0);
    if (gzclose(file) != Z_OK)
        wrong("gzclose", errno, 0);
    // Many are of one size, and a new file may get the inode of one that was removed. Where files
    // have no time of birth either, only sizes tell versions apart.
    FILE *padding = fopen(path, "ab");
    if (!padding || fseek(padding, 0, SEEK_END) != 0)
        wrong("fopen", errno, 0);
    while (ftell(padding) % 128 != (has_birth ? 0 : v->step))
        fputc(v->packed ? 0 : '\n', padding);
    if (fclose(padding) != 0)
        wrong("fclose", errno, 0);
}

static void nap(void)
{
    struct timespec time = {.tv_nsec = below(3) * 1000000 + below(1000) * 1000};
    nanosleep(&time, NULL);
}

// Gives each name one version after another; those that are not the last may or may not be read.
static void write_versions(const char *folder, reading *r)
{
    version now[FILES] = {{.first = 0}};
    int64_t next = 0;
    char hidden[300], path[300];
    uint32_t steps = 10 + below(60);
    for (uint32_t i = 0; i < steps; i++) {
        uint32_t name = below(FILES);
        version v = {
            .first = next, .count = 1 + below(below(4) ? 50 : 8000), .packed = name % 3 == 0};
        snprintf(hidden, sizeof hidden, "%s/.new", folder);
        snprintf(path, sizeof path, "%s/%s%u%s", folder, name % 2 ? "sub/" : "", name,
                 v.packed ? ".gz" : "");
        if (next + v.count >= NUMBERS)
            break;
        next += v.count;
        if (now[name].count && below(4) == 0) {
            unlink(path);
            now[name].count = 0;
        } else {
            write_file(hidden, &v);
            if (rename(hidden, path) != 0)
                wrong("rename", errno, 0);
            now[name] = v;
        }
        if (below(3) == 0)
            nap();
    }
    for (int name = 0; name < FILES; name++) {
        for (int64_t n = 0; n < now[name].count; n++)
            r->stays[now[name].first + n] = 1;
        atomic_fetch_add(&r->sure, now[name].count);
    }
}

// --- one job ---

static int64_t sure_arrived(const reading *r)
{
    int64_t arrived = 0;
    for (int64_t n = 0; n < NUMBERS; n++)
        arrived += r->stays[n] && atomic_load(&r->seen[n]);
    return arrived;
}

static void run_job(const char *folder)
{
    reading r = {.seen = calloc(NUMBERS, sizeof *r.seen), .stays = calloc(NUMBERS, 1)};
    leat_env *env;
    leat_runtime *runtime;
    leat_job *job;
    if (!r.seen || !r.stays || leat_env_create(NULL, &env) != LEAT_OK)
        wrong("no memory", 0, 0);
    leat_env_set_parallelism(env, 1 + below(5));
    leat_env_set(env, "workers", below(2) ? "1" : "2");
    leat_env_set(env, "source.split-size", "4096");
    const leat_file_options options = {.paths = &folder,
                                       .path_count = 1,
                                       .format = leat_text_format(),
                                       .watch_interval_ms = 1 + below(5)};
    leat_stream *lines = leat_read_files(env, &options, leat_type_scalar(LEAT_STR));
    if (below(2))
        lines = leat_rebalance(lines);
    leat_user_data(leat_sink(lines, read_number), &r);
    if (leat_runtime_create(env, &runtime, NULL, 0) != LEAT_OK ||
        leat_start(runtime, env, &job) != LEAT_OK)
        wrong("no start", 0, 0);
    write_versions(folder, &r);
    bool waits = below(4) != 0;
    while (waits && sure_arrived(&r) < atomic_load(&r.sure)) {
        leat_err err = leat_job_wait(job, 2);
        if (err != LEAT_EAGAIN)
            wrong("the job has ended", err, 0);
    }
    leat_job_cancel(job);
    leat_err err = leat_job_wait(job, -1);
    if (err != LEAT_ECANCELLED)
        wrong("not cancelled", err, 0);
    leat_job_destroy(&job);
    leat_runtime_destroy(&runtime);
    leat_env_destroy(&env);
    free(r.seen);
    free(r.stays);
}

int main(int argc, char **argv)
{
    int64_t seconds = argc > 1 ? strtoll(argv[1], NULL, 10) : 5;
    seed_now = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int64_t end_s = clock_s() + seconds;
    start_watchdog();
    struct statx status;
    has_birth =
        statx(AT_FDCWD, "/tmp", 0, STATX_BTIME, &status) == 0 && status.stx_mask & STATX_BTIME;
    uint64_t jobs = 0;
    for (; clock_s() <= end_s; seed_now++, jobs++) {
        char folder[] = "/tmp/leat-watch-XXXXXX", sub[40];
        random_now = seed_now * UINT64_C(0x9e3779b97f4a7c15);
        if (!mkdtemp(folder))
            wrong("mkdtemp", errno, 0);
        snprintf(sub, sizeof sub, "%s/sub", folder);
        if (mkdir(sub, 0700) != 0)
            wrong("mkdir", errno, 0);
        run_job(folder);
        if (nftw(folder, remove_one, 20, FTW_DEPTH | FTW_PHYS) != 0)
            wrong("nftw", errno, 0);
        feed_watchdog();
    }
    printf("%" PRIu64 " jobs up to seed %" PRIu64 "\n", jobs, seed_now - 1);
    return 0;
}
