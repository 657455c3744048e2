// SPDX-License-Identifier: Apache-2.0
// The error codes of every fallible call. Zero is success; outputs are written only on success.
#ifndef LEAT_ERROR_H
#define LEAT_ERROR_H

#include "leat/base.h"

LEAT_BEGIN_DECLS

// code, value, message. Values are frozen: they are exit statuses of nothing, but they appear in
// logs and in JSON.
#define LEAT_ERRORS(E)                                                                             \
    E(LEAT_OK, 0, "success")                                                                       \
    E(LEAT_ENOMEM, 1, "out of memory")                                                             \
    E(LEAT_EINVAL, 2, "invalid argument")                                                          \
    E(LEAT_ETYPE, 3, "type mismatch")                                                              \
    E(LEAT_EGRAPH, 4, "the job graph is wrong")                                                    \
    E(LEAT_EIO, 5, "input or output failed")                                                       \
    E(LEAT_ENOENT, 6, "no such file or object")                                                    \
    E(LEAT_ECORRUPT, 7, "the bytes are not a valid encoding")                                      \
    E(LEAT_ETOOBIG, 8, "larger than the configured limit")                                         \
    E(LEAT_EUSER, 9, "a user function failed")                                                     \
    E(LEAT_ECANCELLED, 10, "cancelled")                                                            \
    E(LEAT_ECLOSED, 11, "closed")                                                                  \
    E(LEAT_ENOBUFS, 12, "not enough memory segments")                                              \
    E(LEAT_EAGAIN, 13, "not now, try again")                                                       \
    E(LEAT_EABI, 14, "built for another version of the library")                                   \
    E(LEAT_ETHREAD, 15, "a thread could not be created")                                           \
    E(LEAT_ESTATE, 16, "not allowed in this state")                                                \
    E(LEAT_EEXIST, 17, "exists already")                                                           \
    E(LEAT_EPIPE, 18, "the reader of the output has gone")

typedef enum leat_err {
#define LEAT_ERR_ENUM(code, value, message) code = value,
    LEAT_ERRORS(LEAT_ERR_ENUM)
#undef LEAT_ERR_ENUM
} leat_err;

// The name of a code, "LEAT_EINVAL" say, or "LEAT_?" for a number that is none. Any thread; static
// storage.
LEAT_API const char *leat_err_name(leat_err err);

// One line in plain words without a final dot. Any thread; static storage.
LEAT_API const char *leat_err_message(leat_err err);

LEAT_END_DECLS

#endif
