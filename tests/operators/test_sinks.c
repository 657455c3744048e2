// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>

#include "run.h"

typedef struct {
    leat_str text;
    int32_t number;
} line;
LEAT_RECORD(line, LEAT_FIELD(text, LEAT_STR), LEAT_FIELD(number, LEAT_I32));

Test(sinks, print_writes_the_text_form_without_a_prefix_at_parallelism_one)
{
    line lines[] = {{LEAT_STR_LITERAL("a b"), 1},
                    {LEAT_STR_LITERAL("two\nlines"), -2},
                    {LEAT_STR_LITERAL(""), 3}};
    run r;
    leat_stream *in = leat_from_items(run_begin(&r, 1), LEAT_TYPE(line), lines, 3);
    leat_print(in);
    leat_print_to_err(in);
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    for (int fd = 0; fd < 2; fd++)
        cr_assert_str_eq(leati_strbuf_text(&r.out[fd]), "a b\t1\ntwo\nlines\t-2\n\t3\n");
    run_end(&r);
}

Test(sinks, print_puts_the_number_of_the_subtask_in_front_at_higher_parallelism)
{
    run r;
    leat_env *env = run_begin(&r, 3);
    leat_print(leat_sequence(env, 1, 6));
    run_expect_lines(&r, "1> 1\n1> 2\n2> 3\n2> 4\n3> 5\n3> 6\n", "a share of two each");
}

// Sizes around the buffer's: a multiple of lines that fill it exactly, lines longer than it.
Test(sinks, lines_of_any_length_come_out_whole)
{
    static const size_t sizes[] = {0,     1,     100,   65533, 65534,  65535,
                                   65536, 65537, 10000, 60000, 300000, 5};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    line lines[3 * COUNT];
    char *text = malloc(300000);
    memset(text, 'p', 300000);
    leati_strbuf expected;
    leati_strbuf_init(&expected, NULL);
    for (int i = 0; i < 3 * COUNT; i++) {
        lines[i] = (line){{text, sizes[i % COUNT]}, i};
        leati_strbuf_append(&expected, text, sizes[i % COUNT]);
        leati_strbuf_printf(&expected, "\t%d\n", i);
    }
    run r;
    leat_print(leat_from_items(run_begin(&r, 1), LEAT_TYPE(line), lines, 3 * COUNT));
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    cr_assert_eq(r.out[0].size, expected.size);
    cr_assert(memcmp(r.out[0].data, expected.data, expected.size) == 0);
    leati_strbuf_fini(&expected);
    run_end(&r);
    free(text);
}

static int refuse(void *user, int fd, const char *data, size_t size)
{
    return *(int *)user;
}

Test(sinks, output_that_fails_fails_the_job)
{
    static const struct {
        int number;
        leat_err err;
    } cases[] = {{EPIPE, LEAT_EPIPE}, {ENOSPC, LEAT_EIO}};
    for (int i = 0; i < 2; i++) {
        int number = cases[i].number;
        leat_env_options options = {.print = refuse, .print_user = &number};
        leat_env *env;
        cr_assert_eq(leat_env_create(&options, &env), LEAT_OK);
        leat_print(leat_sequence(env, 1, 3));
        cr_assert_eq(leat_execute(env), cases[i].err);
        leat_env_destroy(&env);
    }
}

typedef struct tally {
    int64_t sum[4];
} tally;

static int take(leat_ctx *ctx, const void *in)
{
    tally *t = leat_ctx_user_data(ctx);
    t->sum[leat_ctx_subtask(ctx)] += *(const int64_t *)in;
    return 0;
}

Test(sinks, a_function_sees_every_record_of_its_subtask)
{
    run r;
    tally t = {{0}};
    leat_env *env = run_begin(&r, 4);
    leat_user_data(leat_sink(leat_sequence(env, 1, 400), take), &t);
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    // 1 … 100, 101 … 200 and so on.
    for (int i = 0; i < 4; i++)
        cr_assert_eq(t.sum[i], 5050 + 10000 * i);
    run_end(&r);
}

Test(sinks, discard_takes_everything_and_counts)
{
    run r;
    leat_env *env = run_begin(&r, 2);
    leat_discard(leat_sequence(env, 1, 100000));
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    cr_assert_eq(r.out[0].size, 0);
    run_end(&r);
}
