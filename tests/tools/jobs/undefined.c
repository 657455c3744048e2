// SPDX-License-Identifier: Apache-2.0
// Calls a function that this version of the library does not have.
#include "leat/leat.h"

extern void leat_from_the_future(leat_env *env);

LEAT_JOB(env, argc, argv)
{
    leat_from_the_future(env);
}
