// SPDX-License-Identifier: Apache-2.0
// What the tests of the test kit share.
#ifndef TESTS_RUNTIME_HARNESS_H
#define TESTS_RUNTIME_HARNESS_H

#include "jobs.h"

static inline leat_harness *new_harness(const leat_harness_options *options)
{
    leat_harness *h;
    cr_assert(leat_harness_create(options, &h) == LEAT_OK);
    return h;
}

static inline void expect_text(leat_harness *h, const char *output, const char *expected)
{
    const char *text = leat_harness_text(h, output);
    cr_assert_not_null(text, "%s", leat_harness_why(h));
    cr_assert_str_eq(text, expected, "%s: %s", output, text);
}

static inline void run_ok(leat_harness *h)
{
    cr_assert(leat_harness_run(h) == LEAT_OK, "%s", leat_harness_why(h));
}

static inline void feed(leat_harness *h, const char *input, int64_t number)
{
    cr_assert(leat_harness_feed(h, input, &number) == LEAT_OK, "%s", leat_harness_why(h));
}

static inline int twice(leat_ctx *ctx, const void *in, void *out)
{
    *(int64_t *)out = 2 * *(const int64_t *)in;
    return 0;
}

#endif
