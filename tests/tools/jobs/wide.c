// SPDX-License-Identifier: Apache-2.0
// An exchange from every subtask to every subtask.
#include "leat/leat.h"

LEAT_JOB(env, argc, argv)
{
    leat_discard(leat_rebalance(leat_sequence(env, 1, 1000)));
}
