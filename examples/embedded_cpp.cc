// SPDX-License-Identifier: Apache-2.0
// A job inside a C++ program: its own allocator, its own log, two jobs at once on one runtime, and
// the results of both collected.
//
//     embedded_cpp        sums of squares and of cubes
#include <leat/leat.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace
{

struct total {
    int64_t key;
    int64_t sum;
};
LEAT_RECORD(total, LEAT_FIELD(key, LEAT_I64), LEAT_FIELD(sum, LEAT_I64));

// Counts what is in use, so that the program can see that all of it came back.
std::atomic<long> blocks{0};

void *allocate(void *, size_t size)
{
    void *block = std::malloc(size);
    blocks += block != nullptr;
    return block;
}

void *reallocate(void *, void *block, size_t size)
{
    void *grown = std::realloc(block, size);
    blocks += !block && grown;
    return grown;
}

void release(void *, void *block)
{
    blocks -= block != nullptr;
    std::free(block);
}

void log_line(void *, leat_log_level, const char *line)
{
    std::fprintf(stderr, "%s\n", line);
}

template <int power> int raise(leat_ctx *, const void *in, void *out)
{
    int64_t n = *static_cast<const int64_t *>(in), value = 1;
    for (int i = 0; i < power; i++)
        value *= n;
    *static_cast<total *>(out) = total{n % 2, value};
    return 0;
}

// One job: its graph, where its results go, and the job itself.
class job
{
  public:
    job(leat_runtime *runtime, const leat_allocator *allocator, const char *name, leat_map_fn power)
    {
        leat_env_options options = {};
        options.allocator = allocator;
        options.logger.write = log_line;
        options.logger.level = LEAT_LOG_WARN;
        leat_collection_options collecting = {};
        collecting.allocator = allocator;
        if (leat_env_create(&options, &env) || leat_collection_create(&collecting, &totals))
            return;
        leat_env_set_name(env, name);
        leat_env_set_parallelism(env, 2);
        leat_stream *powers = leat_map(leat_sequence(env, 1, 100), power, LEAT_TYPE(total));
        leat_stream *sums = leat_final_only(leat_sum(leat_key_by(powers, "key"), "sum"));
        leat_collect_records(sums, totals);
        if (leat_start(runtime, env, &running) != LEAT_OK)
            std::fprintf(stderr, "%s: %s\n", name, leat_env_fault(env, 0));
    }

    ~job()
    {
        leat_job_destroy(&running);
        leat_collection_destroy(&totals);
        leat_env_destroy(&env);
    }

    job(const job &) = delete;
    job &operator=(const job &) = delete;

    // The sum over both keys, or -1.
    int64_t wait()
    {
        if (!running)
            return -1;
        int64_t sum = 0;
        const void *record;
        while (leat_collection_next(totals, -1, &record) == LEAT_OK)
            sum += static_cast<const total *>(record)->sum;
        return leat_job_wait(running, -1) == LEAT_OK ? sum : -1;
    }

  private:
    leat_env *env = nullptr;
    leat_collection *totals = nullptr;
    leat_job *running = nullptr;
};

int run(const leat_allocator *allocator)
{
    leat_env_options options = {};
    options.allocator = allocator;
    leat_env *settings = nullptr;
    leat_runtime *runtime = nullptr;
    char why[200] = "";
    leat_err err = leat_env_create(&options, &settings);
    if (!err)
        err = leat_runtime_create(settings, &runtime, why, sizeof why);
    leat_env_destroy(&settings);
    if (err) {
        std::fprintf(stderr, "%s: %s\n", leat_err_message(err), why);
        return 1;
    }
    int64_t squared, cubed;
    {
        job squares(runtime, allocator, "squares", raise<2>);
        job cubes(runtime, allocator, "cubes", raise<3>);
        squared = squares.wait();
        cubed = cubes.wait();
    }
    leat_runtime_destroy(&runtime);
    std::printf("squares %lld\ncubes %lld\n", static_cast<long long>(squared),
                static_cast<long long>(cubed));
    return squared < 0 || cubed < 0;
}

} // namespace

int main()
{
    leat_allocator allocator = {allocate, reallocate, release, nullptr};
    int status = run(&allocator);
    if (blocks != 0) {
        std::fprintf(stderr, "%ld blocks were not freed\n", blocks.load());
        status = 1;
    }
    return status;
}
