// SPDX-License-Identifier: Apache-2.0
// A function that does not return within any time that a user waits: cancelling cannot end it.
#include <unistd.h>

#include "leat/leat.h"

static int hang(leat_ctx *ctx, const void *in)
{
    write(STDERR_FILENO, "hanging\n", 8);
    for (int i = 0; i < 600; i++)
        usleep(100000);
    return 0;
}

LEAT_JOB(env, argc, argv)
{
    leat_sink(leat_sequence(env, 1, 1), hang);
}
