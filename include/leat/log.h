// SPDX-License-Identifier: Apache-2.0
// The log hook. The library prints nothing itself; without a hook, log lines are dropped.
#ifndef LEAT_LOG_H
#define LEAT_LOG_H

#include "leat/base.h"

LEAT_BEGIN_DECLS

typedef enum leat_log_level {
    LEAT_LOG_ERROR = 0,
    LEAT_LOG_WARN = 1,
    LEAT_LOG_INFO = 2,
    LEAT_LOG_DEBUG = 3,
} leat_log_level;

// `write` gets one line without a line break, valid for the call. It is called from any thread,
// concurrently, and must not call back into the library. Lines above `level` are not formatted at
// all.
typedef struct leat_logger {
    void (*write)(void *user, leat_log_level level, const char *line);
    void *user;
    leat_log_level level;
} leat_logger;

LEAT_END_DECLS

#endif
