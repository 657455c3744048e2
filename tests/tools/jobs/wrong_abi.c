// SPDX-License-Identifier: Apache-2.0
// A job file of another age.
#include "leat/base.h"
#include "leat/env.h"

LEAT_API extern const uint32_t leat_job_abi;
LEAT_API void leat_job_main(leat_env *env, int argc, char **argv);
const uint32_t leat_job_abi = 4242;

void leat_job_main(leat_env *env, int argc, char **argv)
{
    leat_env_fail(env, LEAT_EINVAL, "this must not be called");
}
