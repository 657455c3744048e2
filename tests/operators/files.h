// SPDX-License-Identifier: Apache-2.0
// Files in a folder of a test's own, and readers over them.
#ifndef LEATI_TESTS_OPERATORS_FILES_H
#define LEATI_TESTS_OPERATORS_FILES_H

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "leat/leat.h"
#include "operators/file_reader.h"

static inline void put_bytes(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    cr_assert(file && fwrite(data, 1, size, file) == size);
    fclose(file);
}

static inline void put_text(const char *path, const char *text)
{
    put_bytes(path, text, strlen(text));
}

// A folder of its own for each test, which need not clean it: the suite's .init and .fini.
static inline void enter_folder(void)
{
    char folder[] = "/tmp/leat-files-XXXXXX";
    cr_assert(mkdtemp(folder) && chdir(folder) == 0);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    return remove(path);
}

static inline void leave_folder(void)
{
    static const char prefix[] = "/tmp/leat-files-";
    char *folder = get_current_dir_name();
    // A test that has failed in another folder than its own must not take that one along.
    cr_assert(folder && strncmp(folder, prefix, sizeof prefix - 1) == 0 &&
                  !strchr(folder + sizeof prefix - 1, '/'),
              "the working folder is %s, which is not the test's own", folder ? folder : "?");
    cr_assert(chdir("/") == 0 && nftw(folder, remove_one, 20, FTW_DEPTH | FTW_PHYS) == 0);
    free(folder);
}

// The splits of one path, handed to one reader.
typedef struct files {
    leati_file_rules rules;
    leati_file_splits *splits;
    leati_file_sleeper sleeper;
    leati_file_reader reader;
    const char *path;
    char why[1024];
} files;

static int files_compression(const leati_file_rules *rules, const char *path)
{
    return leati_compression_by_name(path);
}

static inline void files_begin(files *f, const leat_allocator *allocator, const char *path,
                               const leat_file_format *format, void *format_reader,
                               int64_t split_size, size_t block_size)
{
    *f = (files){.path = path};
    f->rules = (leati_file_rules){.paths = &f->path,
                                  .path_count = 1,
                                  .compression = files_compression,
                                  .whole = !format->sync};
    leati_file_listing listing = {.why = f->why, .why_size = sizeof f->why};
    cr_assert_eq(leati_file_splits_create(NULL, split_size, &f->splits), LEAT_OK);
    cr_assert_eq(leati_file_splits_start(f->splits, &f->rules, &listing, 0), LEAT_OK, "%s", f->why);
    leati_file_splits_join(f->splits, &f->sleeper);
    leati_file_reader_init(&f->reader, allocator, format, format_reader, block_size);
    f->reader.splits = f->splits;
}

static inline void files_end(files *f)
{
    leati_file_reader_fini(&f->reader);
    leati_file_splits_leave(f->splits, &f->sleeper);
    leati_file_splits_destroy(&f->splits);
}

// What became of one step; errors are given with `why` in the reader.
typedef void (*files_take_fn)(void *user, const void *record);

// Reads one split to its end, or to the first failure. Bad records are written to `bad`, a line
// each, when it is not NULL, and fail otherwise.
static inline leat_err files_read_split(files *f, const leati_file_split *split, void *record,
                                        files_take_fn take, void *user, char *bad, size_t bad_size)
{
    leat_parse_error error = {.offset = 0};
    leat_err err = leati_file_reader_open(&f->reader, split);
    while (err == LEAT_OK) {
        switch (leati_file_reader_next(&f->reader, record, &error)) {
        case LEATI_READ_RECORD:
            take(user, record);
            break;
        case LEATI_READ_NONE:
            break;
        case LEATI_READ_FILL:
            err = leati_file_reader_fill(&f->reader);
            break;
        case LEATI_READ_BAD: {
            char place[400];
            cr_assert(bad != NULL, "%s", error.text);
            leati_file_reader_place(&f->reader, place, sizeof place);
            size_t at = strlen(bad);
            snprintf(bad + at, bad_size - at, "%s: %s [%.*s]\n", place, error.text,
                     (int)f->reader.raw.size, f->reader.raw.data);
            break;
        }
        case LEATI_READ_FAIL:
            err = f->reader.failure;
            break;
        case LEATI_READ_END:
            leati_file_reader_close(&f->reader);
            return LEAT_OK;
        }
    }
    return err;
}

// All splits of the path.
static inline leat_err files_read(files *f, void *record, files_take_fn take, void *user, char *bad,
                                  size_t bad_size)
{
    leati_file_split split;
    leat_err err = LEAT_OK;
    while (err == LEAT_OK &&
           leati_file_splits_next(f->splits, &f->sleeper, &split) == LEATI_SPLIT_FOUND) {
        err = files_read_split(f, &split, record, take, user, bad, bad_size);
        leati_file_splits_release(f->splits, &split);
    }
    return err;
}

#endif
