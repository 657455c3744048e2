// SPDX-License-Identifier: Apache-2.0
// Prints what the job function was given: its arguments behind the first, and the parallelism.
#include <stdio.h>
#include <string.h>

#include "leat/leat.h"

enum { MOST = 16 };

LEAT_JOB(env, argc, argv)
{
    leat_str items[MOST];
    char parallelism[32];
    int count = 0;
    snprintf(parallelism, sizeof parallelism, "parallelism=%u",
             (unsigned)leat_env_parallelism(env));
    items[count++] = (leat_str){parallelism, strlen(parallelism)};
    if (argc < 1 || !argv[0][0] || argv[argc])
        leat_env_fail(env, LEAT_EINVAL, "argv is not as main has it");
    for (int i = 1; i < argc && count < MOST; i++)
        items[count++] = (leat_str){argv[i], strlen(argv[i])};
    leat_stream *all = leat_from_items(env, leat_type_scalar(LEAT_STR), items, (size_t)count);
    leat_parallelism(leat_print(all), 1);
}
