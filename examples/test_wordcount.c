// SPDX-License-Identifier: Apache-2.0
// Tests of the word count job with the test kit (docs/testing.md): its functions one by one, and
// the job as a whole.
//
//     cc -o test_wordcount test_wordcount.c $(pkg-config --cflags --libs leat) && ./test_wordcount
// Included, so that its static functions can be called.
#include "wordcount.c" // NOLINT(bugprone-suspicious-include)

#include <stdio.h>
#include <stdlib.h>

static void check(bool good, const leat_harness *h, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s; %s\n", what, leat_harness_why(h));
    exit(1);
}

#define CHECK(condition) check(condition, h, #condition)

static leat_harness *new_harness(void)
{
    leat_harness *h;
    if (leat_harness_create(NULL, &h) != LEAT_OK)
        exit(1);
    return h;
}

static void feed_line(leat_harness *h, const char *input, const char *line)
{
    CHECK(leat_harness_feed(h, input, &(leat_str){line, strlen(line)}) == LEAT_OK);
}

// One function: an operator between an input and an output.
static void test_split(void)
{
    leat_harness *h = new_harness();
    leat_stream *lines = leat_test_input(leat_harness_env(h), "lines", leat_type_scalar(LEAT_STR));
    leat_test_output(leat_flat_map(lines, split, LEAT_TYPE(word_count)), "words");
    static const struct {
        const char *line, *words;
    } cases[] = {{"to be", "to\t1\nbe\t1\n"},
                 {"", ""},
                 {" \t\v ", ""},
                 {"\tone\r", "one\t1\n"},
                 {"it's,ok", "it's,ok\t1\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        feed_line(h, "lines", cases[i].line);
        CHECK(leat_harness_run(h) == LEAT_OK);
        CHECK(strcmp(leat_harness_text(h, "words"), cases[i].words) == 0);
    }
    leat_harness_destroy(&h);
}

// The job as `leat run wordcount.so -- ARGUMENT` makes it, with an input instead of the files. What
// it prints is kept by the harness.
static leat_harness *whole_job(char *argument)
{
    leat_harness *h = new_harness();
    char *argv[] = {(char *)"wordcount.so", argument, NULL};
    leat_job_main(leat_harness_env(h), argument ? 2 : 1, argv);
    CHECK(leat_harness_replace(h, "source: text") == LEAT_OK);
    return h;
}

static void test_final_counts(void)
{
    leat_harness *h = whole_job(NULL);
    feed_line(h, "source: text", "to be or");
    feed_line(h, "source: text", "not to be");
    CHECK(leat_harness_run(h) == LEAT_OK);
    CHECK(strcmp(leat_harness_printed(h, 1), "") == 0); // the end may bring more
    CHECK(leat_harness_end_all(h) == LEAT_OK);
    CHECK(leat_harness_run(h) == LEAT_OK);
    CHECK(strstr(leat_harness_printed(h, 1), "to\t2\n"));
    CHECK(strstr(leat_harness_printed(h, 1), "not\t1\n"));
    CHECK(leat_job_get_state(leat_harness_job(h)) == LEAT_JOB_FINISHED);
    leat_harness_destroy(&h);
}

static void test_updates(void)
{
    leat_harness *h = whole_job((char *)"--updates");
    feed_line(h, "source: text", "a b a");
    CHECK(leat_harness_run(h) == LEAT_OK);
    CHECK(strcmp(leat_harness_printed(h, 1), "a\t1\nb\t1\na\t2\n") == 0);
    leat_harness_destroy(&h);
}

// Whatever allocation fails, the job says so or is right.
static void test_no_memory(void)
{
    bool reached = true;
    for (uint64_t n = 1; reached; n++) {
        leat_harness *h = whole_job((char *)"--updates");
        feed_line(h, "source: text", "a");
        uint64_t before = leat_harness_allocations(h);
        leat_harness_fail_allocations(h, n, 1);
        leat_err err = leat_harness_run(h);
        CHECK(err == LEAT_OK ? strcmp(leat_harness_printed(h, 1), "a\t1\n") == 0
                             : err == LEAT_ENOMEM);
        reached = leat_harness_allocations(h) - before >= n;
        leat_harness_destroy(&h);
    }
}

int main(void)
{
    test_split();
    test_final_counts();
    test_updates();
    test_no_memory();
    puts("word count: all tests passed");
    return 0;
}
