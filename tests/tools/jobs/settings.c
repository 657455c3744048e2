// SPDX-License-Identifier: Apache-2.0
// Sets in its job function what the options may have set before: parallelism 3.
#include "leat/leat.h"

LEAT_JOB(env, argc, argv)
{
    leat_env_set(env, "parallelism", "3");
    leat_discard(leat_rebalance(leat_sequence(env, 1, 10)));
}
