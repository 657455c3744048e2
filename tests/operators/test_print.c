// SPDX-License-Identifier: Apache-2.0
#include "run.h"

static leat_stream *print_as(leat_stream *in, int fd, const char *identifier)
{
    return fd == 1 ? leat_print_as(in, identifier) : leat_print_to_err_as(in, identifier);
}

Test(print, an_identifier_stands_before_the_number_of_the_subtask)
{
    static const struct {
        uint32_t parallelism;
        const char *identifier, *lines;
    } cases[] = {
        {1, "id", "id> 1\nid> 2\n"}, {2, "id", "id:1> 1\nid:2> 2\n"},
        {1, "", "1\n2\n"},           {1, NULL, "1\n2\n"},
        {2, NULL, "1> 1\n2> 2\n"},   {1, "100 %s", "100 %s> 1\n100 %s> 2\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int fd = 1; fd <= 2; fd++) {
            run r;
            leat_env *env = run_begin(&r, cases[i].parallelism);
            print_as(leat_sequence(env, 1, 2), fd, cases[i].identifier);
            cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
            char *found = strdup(leati_strbuf_text(&r.out[fd - 1]));
            run_sort(found);
            cr_assert_str_eq(found, cases[i].lines);
            // Nothing goes to the other descriptor.
            cr_assert_eq(r.out[2 - fd].size, 0);
            free(found);
            run_end(&r);
        }
}

Test(print, an_identifier_is_copied)
{
    run r;
    char identifier[] = "name";
    leat_print_as(leat_sequence(run_begin(&r, 1), 1, 1), identifier);
    memset(identifier, 'z', 4);
    run_expect_lines(&r, "name> 1\n", "a copy");
}

// The longest subtask number, and an identifier longer than any buffer of the sink.
Test(print, a_prefix_of_any_length_is_whole)
{
    enum { LONG = 70000 };
    run r;
    char *identifier = calloc(1, LONG + 1);
    memset(identifier, 'i', LONG);
    leat_print_as(leat_sequence(run_begin(&r, 1), 1, 3), identifier);
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    const char *at = leati_strbuf_text(&r.out[0]);
    for (int n = 1; n <= 3; n++) {
        char tail[8];
        snprintf(tail, sizeof tail, "> %d\n", n);
        cr_assert(strncmp(at, identifier, LONG) == 0 && strncmp(at + LONG, tail, 4) == 0);
        at += LONG + 4;
    }
    cr_assert_eq(*at, 0);
    run_end(&r);
    free(identifier);
}
