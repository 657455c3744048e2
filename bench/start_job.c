// SPDX-License-Identifier: Apache-2.0
// The job of bench_start: some numbers cross an exchange, and the sink notes the time at which the
// first of them arrived.
//
//     leat run start_job.so -- FD     writes that time by the monotonic clock, in ns, to FD
#include <leat/leat.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef struct arrival {
    int fd;
    bool noted;
} arrival;

// The sink has one subtask, so nobody else looks at the flag.
static int note_first(leat_ctx *ctx, const void *in)
{
    arrival *a = leat_ctx_user_data(ctx);
    if (a->noted)
        return 0;
    a->noted = true;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    return write(a->fd, &ns, sizeof ns) == sizeof ns ? 0 : leat_fail(ctx, "nobody wants the time");
}

LEAT_JOB(env, argc, argv)
{
    arrival *a = leat_env_alloc(env, sizeof *a);
    if (!a)
        return;
    if (argc != 2) {
        leat_env_fail(env, LEAT_EINVAL, "usage: start_job.so FD");
        return;
    }
    a->fd = (int)strtol(argv[1], NULL, 10);
    leat_stream *numbers = leat_rebalance(leat_sequence(env, 1, 1000));
    leat_user_data(leat_parallelism(leat_sink(numbers, note_first), 1), a);
}
