// SPDX-License-Identifier: Apache-2.0
// A graph with three faults.
#include "leat/leat.h"

LEAT_JOB(env, argc, argv)
{
    leat_stream *lines = leat_read_text(env, "-");
    leat_env_fail(env, LEAT_EINVAL, "usage: faults nothing");
    leat_print(leat_key_by(lines, "no_such_field"));
    leat_parallelism(leat_print(lines), 0);
}
