// SPDX-License-Identifier: Apache-2.0
// A job file: a shared object with one job function, for `leat run` and `leat plan`, or called from
// a program's own main.
//
//     LEAT_JOB(env, argc, argv)
//     {
//         leat_print(leat_read_text(env, argc > 1 ? argv[1] : "-"));
//     }
#ifndef LEAT_JOB_H
#define LEAT_JOB_H

#include "leat/env.h"

LEAT_BEGIN_DECLS

// The job function, for programs that are linked with a job file's source: a test calls it with the
// environment of a harness, say. Not part of the library.
LEAT_API void leat_job_main(leat_env *env, int argc, char **argv);

LEAT_END_DECLS

// Defines the job function and, beside it, the number of the interface it was compiled against. The
// arguments are those behind `--`, with the job file's path as argv[0]. It builds the graph only;
// wrong arguments are reported with leat_env_fail.
#define LEAT_JOB(env, argc, argv)                                                                  \
    LEAT_BEGIN_DECLS                                                                               \
    LEAT_API extern const uint32_t leat_job_abi;                                                   \
    LEAT_API void leat_job_main(leat_env *env, int argc, char **argv);                             \
    LEAT_END_DECLS                                                                                 \
    const uint32_t leat_job_abi = LEAT_ABI;                                                        \
    void leat_job_main(leat_env *env, int argc, char **argv)

#endif
