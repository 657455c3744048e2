// SPDX-License-Identifier: Apache-2.0
// Prints numbers for longer than anybody waits; with the argument "drop" drops them.
#include <string.h>

#include "leat/leat.h"

LEAT_JOB(env, argc, argv)
{
    leat_stream *numbers = leat_sequence(env, 0, INT64_MAX);
    if (argc > 1 && !strcmp(argv[1], "drop"))
        leat_discard(numbers);
    else
        leat_print(numbers);
}
