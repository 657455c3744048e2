// SPDX-License-Identifier: Apache-2.0
// Runs a small job and keeps what it prints.
#ifndef LEATI_TESTS_OPERATORS_RUN_H
#define LEATI_TESTS_OPERATORS_RUN_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "leat/leat.h"

typedef struct run {
    leat_env *env;
    leati_strbuf out[2]; // what print sinks printed to descriptor 1 and 2
    char failure[2000];
} run;

// The print hook is called by one thread at a time.
static int run_print(void *user, int fd, const char *data, size_t size)
{
    leati_strbuf_append(&((run *)user)->out[fd - 1], data, size);
    return 0;
}

static inline leat_env *run_begin(run *r, uint32_t parallelism)
{
    *r = (run){.env = NULL};
    leati_strbuf_init(&r->out[0], NULL);
    leati_strbuf_init(&r->out[1], NULL);
    leat_env_options options = {.print = run_print, .print_user = r};
    cr_assert_eq(leat_env_create(&options, &r->env), LEAT_OK);
    leat_env_set_parallelism(r->env, parallelism);
    leat_env_set(r->env, "workers", "2");
    return r->env;
}

// Executes the job; `failure` then holds its faults, a line each.
static inline leat_err run_execute(run *r)
{
    leat_err err = leat_execute(r->env);
    size_t at = 0;
    for (size_t i = 0; i < leat_env_fault_count(r->env) && at < sizeof r->failure; i++)
        at += (size_t)snprintf(r->failure + at, sizeof r->failure - at, "%s\n",
                               leat_env_fault(r->env, i));
    return err;
}

static inline void run_end(run *r)
{
    leati_strbuf_fini(&r->out[0]);
    leati_strbuf_fini(&r->out[1]);
    leat_env_destroy(&r->env);
}

static int run_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// Sorts the lines of a text, which must end in LF and hold no NUL, where they stand.
static inline void run_sort(char *text)
{
    size_t count = 0, size = strlen(text);
    char *copy = strdup(text), **line = calloc(size + 1, sizeof *line), *at = text;
    for (char *c = copy, *lf; *c && (lf = strchr(c, '\n')) != NULL; c = lf + 1) {
        *lf = 0;
        line[count++] = c;
    }
    qsort(line, count, sizeof *line, run_compare);
    for (size_t i = 0; i < count; i++) {
        size_t size_bytes = strlen(line[i]);
        memcpy(at, line[i], size_bytes);
        at[size_bytes] = '\n';
        at += size_bytes + 1;
    }
    free(line);
    free(copy);
}

// Executes the job, which must succeed and print these lines, in any order.
static inline void run_expect_lines(run *r, const char *expected, const char *what)
{
    cr_assert_eq(run_execute(r), LEAT_OK, "%s: %s", what, r->failure);
    char *found = strdup(leati_strbuf_text(&r->out[0])), *sorted = strdup(expected);
    run_sort(found);
    run_sort(sorted);
    cr_assert_str_eq(found, sorted, "%s", what);
    free(found);
    free(sorted);
    run_end(r);
}

#endif
