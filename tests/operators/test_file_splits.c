// SPDX-License-Identifier: Apache-2.0
#include <utime.h>

#include "files.h"

static void write_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "wb");
    cr_assert(file != NULL);
    for (size_t i = 0; i < size; i++)
        fputc('x', file);
    fclose(file);
}

// The splits of some paths as "path start-end;" or "path stream;".
static leat_err list(const char *const *paths, size_t count, int64_t split_size, char *text,
                     size_t size)
{
    leati_file_splits *splits;
    leati_file_split split;
    leati_file_sleeper sleeper = {.waker = NULL};
    leati_file_rules rules = {.paths = paths, .path_count = count};
    leati_file_listing listing = {.why = text, .why_size = size};
    size_t at = 0;
    cr_assert_eq(leati_file_splits_create(NULL, split_size, &splits), LEAT_OK);
    leati_file_splits_join(splits, &sleeper);
    leat_err err = leati_file_splits_start(splits, &rules, &listing, 0);
    if (err == LEAT_OK) {
        text[0] = 0;
        while (leati_file_splits_next(splits, &sleeper, &split) == LEATI_SPLIT_FOUND) {
            at += (size_t)snprintf(text + at, size - at, "%s ", split.file->path);
            at += split.file->stream ? (size_t)snprintf(text + at, size - at, "stream;")
                                     : (size_t)snprintf(text + at, size - at, "%d-%d;",
                                                        (int)split.start, (int)split.end);
            leati_file_splits_release(splits, &split);
        }
        cr_assert_eq(leati_file_splits_next(splits, &sleeper, &split), LEATI_SPLIT_NONE);
    }
    leati_file_splits_leave(splits, &sleeper);
    leati_file_splits_destroy(&splits);
    return err;
}

Test(file_splits, files_are_cut_and_directories_walked_in_order)
{
    char text[4096];
    mkdir("d", 0700);
    mkdir("d/sub", 0700);
    mkdir("d/.hidden", 0700);
    mkdir("d/_skipped", 0700);
    write_file("d/b", 25);
    write_file("d/a", 10);
    write_file("d/sub/z", 1);
    write_file("d/Z", 3);
    write_file("d/empty", 0);
    write_file("d/.dot", 5);
    write_file("d/_under", 5);
    write_file("d/.hidden/x", 5);
    write_file("d/_skipped/x", 5);
    write_file(".named", 4);
    cr_assert_eq(mkfifo("d/pipe", 0600), 0);
    const char *paths[] = {"d", "-", ".named", "d/pipe", "-", "d/a"};
    cr_assert_eq(list(paths, 6, 10, text, sizeof text), LEAT_OK);
    // A file that is named counts whatever its name is; a pipe only where it is named.
    cr_assert_str_eq(text, "d/Z 0-3;d/a 0-10;d/b 0-10;d/b 10-20;d/b 20-25;d/empty stream;"
                           "d/sub/z 0-1;- stream;.named 0-4;d/pipe stream;d/a 0-10;");
}

Test(file_splits, links_that_form_loops_end)
{
    char text[4096];
    mkdir("d", 0700);
    mkdir("d/e", 0700);
    write_file("d/e/file", 2);
    cr_assert_eq(symlink("..", "d/e/up"), 0);
    cr_assert_eq(symlink("e", "d/f"), 0);
    const char *paths[] = {"d/", "d"};
    cr_assert_eq(list(paths, 1, 10, text, sizeof text), LEAT_OK);
    // Each directory once, by whichever of its names was met first.
    cr_assert(strcmp(text, "d/e/file 0-2;") == 0 || strcmp(text, "d/f/file 0-2;") == 0, "%s", text);
    cr_assert_eq(list(paths, 2, 10, text, sizeof text), LEAT_OK);
    cr_assert_eq(strlen(text), 26, "what is named twice is read twice: %s", text);
}

Test(file_splits, an_empty_directory_has_no_splits)
{
    char text[100] = "?";
    mkdir("d", 0700);
    const char *path = "d";
    cr_assert_eq(list(&path, 1, 10, text, sizeof text), LEAT_OK);
    cr_assert_str_eq(text, "");
}

Test(file_splits, what_cannot_be_read_is_named)
{
    char why[200];
    const char *path = "missing";
    cr_assert_eq(list(&path, 1, 10, why, sizeof why), LEAT_ENOENT);
    cr_assert_str_eq(why, "cannot read missing: No such file or directory");
    mkdir("d", 0700);
    cr_assert_eq(symlink("nowhere", "d/broken"), 0);
    path = "d";
    cr_assert_eq(list(&path, 1, 10, why, sizeof why), LEAT_ENOENT);
    cr_assert_str_eq(why, "cannot read d/broken: No such file or directory");
    cr_assert_eq(symlink("self", "self"), 0);
    path = "self";
    cr_assert_eq(list(&path, 1, 10, why, sizeof why), LEAT_EIO);
    cr_assert(strstr(why, "self: Too many levels") != NULL, "%s", why);
}

Test(file_splits, many_directories_are_each_met_once)
{
    enum { COUNT = 300 };
    char path[100];
    mkdir("d", 0700);
    for (int i = 0; i < COUNT; i++) {
        snprintf(path, sizeof path, "d/%03d", i);
        mkdir(path, 0700);
        snprintf(path, sizeof path, "d/%03d/f", i);
        write_file(path, 1);
    }
    static char text[COUNT * 20], expected[COUNT * 20];
    size_t at = 0;
    for (int i = 0; i < COUNT; i++)
        at += (size_t)snprintf(expected + at, sizeof expected - at, "d/%03d/f 0-1;", i);
    const char *directory = "d";
    cr_assert_eq(list(&directory, 1, 10, text, sizeof text), LEAT_OK);
    cr_assert_str_eq(text, expected);
}

Test(file_splits, any_allocation_may_fail)
{
    char path[100], why[100];
    mkdir("d", 0700);
    for (int i = 0; i < 40; i++) {
        snprintf(path, sizeof path, "d/%d", i);
        mkdir(path, 0700);
        snprintf(path, sizeof path, "d/%d/f", i);
        write_file(path, 1);
    }
    const char *paths[] = {"d", "-"};
    for (int64_t watch = 0; watch < 2; watch++) {
        leat_err err = LEAT_ENOMEM;
        size_t n = 0;
        for (; err != LEAT_OK; n++) {
            leat_test_allocator *scarce;
            cr_assert_eq(leat_test_allocator_create(NULL, &scarce), LEAT_OK);
            // From there on all fail.
            leat_test_allocator_fail(scarce, n + 1, UINT64_MAX);
            leati_file_splits *splits;
            leati_file_rules rules = {.paths = paths, .path_count = 2, .watch_interval_ms = watch};
            leati_file_listing listing = {.why = why, .why_size = sizeof why};
            err = leati_file_splits_create(leat_test_allocator_hook(scarce), 10, &splits);
            if (err == LEAT_OK) {
                err = leati_file_splits_start(splits, &rules, &listing, 0);
                leati_file_splits_destroy(&splits);
            }
            cr_assert(err == LEAT_OK || err == LEAT_ENOMEM);
            cr_assert_eq(leat_test_allocator_live(scarce), 0);
            leat_test_allocator_destroy(&scarce);
        }
        cr_assert(n > 80);
    }
}

TestSuite(file_splits, .init = enter_folder, .fini = leave_folder);
