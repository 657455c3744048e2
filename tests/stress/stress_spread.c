// SPDX-License-Identifier: Apache-2.0
// Jobs that are spread over processes read files, which one process hands out, and write one output
// together; some also gather a broadcast variable from the same files. Each line is written once,
// and of a job that is cancelled nothing is left.
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>

#include "seeded.h"
#include "tests/runtime/placed.h"

enum { FILES_MOST = 60, LINES_MOST = 1000 };

typedef struct round_plan {
    char folder[40]; // the round's own, made by mkdtemp
    char in[48], out[48];
    uint32_t processes, parallelism;
    bool overwrite, gathers;
    int64_t lines; // 0, 1, … lines - 1, each once
} round_plan;

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    return remove(path);
}

static void write_files(round_plan *plan)
{
    uint32_t files = 1 + below(FILES_MOST);
    char path[80];
    if (mkdir(plan->in, 0700) != 0)
        wrong("mkdir", errno, 0);
    for (uint32_t f = 0; f < files; f++) {
        snprintf(path, sizeof path, "%s/%u", plan->in, f);
        FILE *file = fopen(path, "w");
        for (uint32_t i = below(LINES_MOST); file && i > 0; i--)
            fprintf(file, "%" PRId64 "\n", plan->lines++);
        if (!file || fclose(file) != 0)
            wrong("writing a file", errno, 0);
    }
}

static int all_there(leat_ctx *ctx)
{
    const round_plan *plan = leat_ctx_user_data(ctx);
    size_t count;
    if (!leat_ctx_broadcast(ctx, "lines", &count))
        return -1;
    return (int64_t)count == plan->lines ? 0 : leat_fail(ctx, "%zu lines", count);
}

static int keep(leat_ctx *ctx, const void *in)
{
    return 1;
}

static void build_job(leat_env *env, void *user)
{
    const round_plan *plan = user;
    const char *path = plan->in;
    leat_env_set_parallelism(env, plan->parallelism);
    leat_env_set(env, "workers", "2");
    leat_env_set(env, "memory.network", "8MiB");
    leat_env_set(env, "memory.segment-size", "4KiB");
    leat_env_set(env, "source.split-size", "4KiB");
    leat_file_options options = {.paths = &path, .path_count = 1, .format = leat_text_format()};
    leat_file_sink_options sink = {.overwrite = plan->overwrite, .no_sync = true};
    leat_stream *lines = leat_read_files(env, &options, leat_type_scalar(LEAT_STR));
    leat_stream *kept = leat_filter(lines, keep);
    if (plan->gathers) {
        leat_rich(leat_user_data(kept, user), all_there, NULL);
        leat_broadcast_variable(kept, "lines", lines);
    }
    leat_write_file(kept, plan->out, &sink);
}

static void read_part(const char *path, uint8_t *seen, const round_plan *plan)
{
    FILE *file = fopen(path, "r");
    char line[64];
    if (!file)
        wrong("no part", errno, 0);
    while (fgets(line, sizeof line, file)) {
        int64_t number = strtoll(line, NULL, 10);
        if (number < 0 || number >= plan->lines || seen[number]++)
            wrong("a line that is none, or twice there", number, plan->lines);
    }
    fclose(file);
}

static void check_output(const round_plan *plan)
{
    uint8_t *seen = calloc((size_t)plan->lines + 1, 1);
    char path[80];
    for (uint32_t i = 1; seen && i <= plan->parallelism; i++) {
        snprintf(path, sizeof path, "%s/%u", plan->out, i);
        read_part(plan->parallelism == 1 ? plan->out : path, seen, plan);
    }
    for (int64_t i = 0; i < plan->lines; i++)
        if (!seen || !seen[i])
            wrong("a line is missing", i, plan->lines);
    free(seen);
}

static int64_t count_entries(const char *path)
{
    DIR *directory = opendir(path);
    int64_t count = -2; // . and ..
    while (directory && readdir(directory))
        count++;
    if (directory)
        closedir(directory);
    return count;
}

static void run_round(round_plan *plan)
{
    leat_env *env;
    if (leat_env_create(NULL, &env) != LEAT_OK)
        wrong("no memory", 0, 0);
    build_job(env, plan);
    uint32_t *process_of = placed_by_subtask(env, plan->processes);
    leat_env_destroy(&env);
    static placed_run run;
    if (placed_start(&run, plan->processes, process_of, build_job, plan) != LEAT_OK)
        wrong("no start", 0, 0);
    bool cancels = below(4) == 0;
    if (cancels) {
        usleep(below(3000));
        placed_cancel(&run);
    }
    placed_wait_over(&run);
    leat_err err = placed_conclude(&run, true);
    placed_destroy(&run);
    free(process_of);
    if (err != LEAT_OK && !cancels) {
        fprintf(stderr, "%s\n", run.failure_text);
        wrong("the job has failed", err, 0);
    }
    if (err == LEAT_OK && !cancels)
        check_output(plan);
    int64_t entries = count_entries(plan->folder);
    if (entries > 2 || (entries < 2 && !cancels))
        wrong("files beside the input and the output", entries, cancels);
}

static void prepare(round_plan *plan)
{
    *plan = (round_plan){.folder = "/tmp/leat-spread-XXXXXX"};
    if (!mkdtemp(plan->folder))
        wrong("mkdtemp", errno, 0);
    snprintf(plan->in, sizeof plan->in, "%s/in", plan->folder);
    snprintf(plan->out, sizeof plan->out, "%s/out", plan->folder);
    plan->processes = 1 + below(PROCESSES_MOST);
    plan->parallelism = plan->processes + below(4);
    plan->overwrite = below(2);
    plan->gathers = below(3) == 0;
    write_files(plan);
}

int main(int argc, char **argv)
{
    int64_t seconds = argc > 1 ? strtoll(argv[1], NULL, 10) : 5;
    seed_now = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int64_t end_s = clock_s() + seconds;
    start_watchdog();
    uint64_t jobs = 0;
    for (; clock_s() <= end_s; seed_now++, jobs++) {
        round_plan plan;
        random_now = seed_now * UINT64_C(0x9e3779b97f4a7c15);
        prepare(&plan);
        run_round(&plan);
        // The folder that prepare has made, by its absolute name, and nothing else.
        if (strncmp(plan.folder, "/tmp/leat-spread-", 17) != 0 ||
            nftw(plan.folder, remove_one, 20, FTW_DEPTH | FTW_PHYS) != 0)
            wrong("nftw", errno, 0);
        feed_watchdog();
    }
    printf("%" PRIu64 " jobs up to seed %" PRIu64 "\n", jobs, seed_now - 1);
    return 0;
}
