// SPDX-License-Identifier: Apache-2.0
// A job function that takes its time.
#include <unistd.h>

#include "leat/leat.h"

LEAT_JOB(env, argc, argv)
{
    write(STDERR_FILENO, "building\n", 9);
    for (int i = 0; i < 600; i++)
        usleep(100000);
}
