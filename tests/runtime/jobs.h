// SPDX-License-Identifier: Apache-2.0
// What the tests of the runtime share: environments, a log of letters, and operators that write it.
#ifndef TESTS_RUNTIME_JOBS_H
#define TESTS_RUNTIME_JOBS_H

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat/leat.h"

#define NUMBER leat_type_scalar(LEAT_I64)

static inline leat_env *new_env(const char *workers)
{
    leat_env *env;
    cr_assert(leat_env_create(NULL, &env) == LEAT_OK);
    cr_assert(leat_env_set(env, "workers", workers) == LEAT_OK);
    return env;
}

static inline const char *fault_of(const leat_env *env)
{
    return leat_env_fault_count(env) ? leat_env_fault(env, 0) : "";
}

// --- the log ---

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char log_text[4096];

static inline void clear_log(void)
{
    log_text[0] = '\0';
}

static inline void log_step(char letter, const char *name)
{
    pthread_mutex_lock(&log_lock);
    size_t length = strlen(log_text);
    snprintf(log_text + length, sizeof log_text - length, "%s%c%s", length ? " " : "", letter,
             name);
    pthread_mutex_unlock(&log_lock);
}

// --- operators that log what is asked of them ---

// By letters: create, open, element, watermark, End of input, Finish, Close, dispose.

typedef struct logger_config {
    const char *name;
    char fails_at;  // one of the letters, or 0
    bool says_why;  // by leat_fail
    leat_err error; // what it returns
} logger_config;

typedef struct logger {
    leat_operator base;
    const logger_config *config;
} logger;

static inline leat_err logger_step(leat_operator *self, char letter)
{
    const logger_config *config = ((logger *)self)->config;
    log_step(letter, config->name);
    if (config->fails_at != letter)
        return LEAT_OK;
    if (config->says_why)
        leat_fail(self->ctx, "no luck");
    return config->error;
}

static inline leat_err logger_open(leat_operator *self)
{
    return logger_step(self, 'o');
}

static inline leat_err logger_element(leat_operator *self, const void *record, leat_out *out)
{
    leat_err err = logger_step(self, 'e');
    return err || !leat_ctx_out_type(self->ctx) ? err : leat_collect(out, record);
}

static inline leat_err logger_watermark(leat_operator *self, int64_t watermark, leat_out *out)
{
    leat_err err = logger_step(self, 'w');
    return err ? err : leat_emit_watermark(out, watermark);
}

static inline leat_err logger_end(leat_operator *self, leat_out *out)
{
    return logger_step(self, 'E');
}

static inline leat_err logger_finish(leat_operator *self, leat_out *out)
{
    return logger_step(self, 'F');
}

static inline leat_err logger_close(leat_operator *self)
{
    return logger_step(self, 'C');
}

static inline void logger_dispose(leat_operator *self)
{
    log_step('d', ((logger *)self)->config->name);
    free(self);
}

static const leat_operator_ops logger_ops = {
    .kind = "logger",
    .open = logger_open,
    .element = logger_element,
    .watermark = logger_watermark,
    .end_input = logger_end,
    .finish = logger_finish,
    .close = logger_close,
    .dispose = logger_dispose,
};

static inline leat_err logger_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    const logger_config *config = factory->config;
    log_step('c', config->name);
    if (config->fails_at == 'c') {
        if (config->says_why)
            leat_fail(ctx, "no luck");
        return config->error;
    }
    logger *made = calloc(1, sizeof *made);
    cr_assert_not_null(made);
    made->base.ops = &logger_ops;
    made->config = config;
    *op = &made->base;
    return LEAT_OK;
}

#endif
