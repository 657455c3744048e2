// SPDX-License-Identifier: Apache-2.0
// A folder of a test's own, and what is found in it afterwards.
#ifndef LEATI_TESTS_OPERATORS_OUTPUTS_H
#define LEATI_TESTS_OPERATORS_OUTPUTS_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The .init and .fini of a suite.
static inline void enter_outputs(void)
{
    char folder[] = "/tmp/leat-outputs-XXXXXX";
    cr_assert(mkdtemp(folder) && chdir(folder) == 0);
}

static int outputs_remove(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    return remove(path);
}

static inline void leave_outputs(void)
{
    static const char prefix[] = "/tmp/leat-outputs-";
    char *folder = get_current_dir_name();
    // A test that has failed in another folder than its own must not take that one along.
    cr_assert(folder && strncmp(folder, prefix, sizeof prefix - 1) == 0 &&
                  !strchr(folder + sizeof prefix - 1, '/'),
              "the working folder is %s, which is not the test's own", folder ? folder : "?");
    cr_assert(chdir("/") == 0 && nftw(folder, outputs_remove, 20, FTW_DEPTH | FTW_PHYS) == 0);
    free(folder);
}

// The bytes of a file with a NUL behind them, to be freed; NULL when there is none.
static inline char *slurp(const char *path)
{
    struct stat status;
    FILE *file = stat(path, &status) == 0 && S_ISREG(status.st_mode) ? fopen(path, "rb") : NULL;
    if (!file)
        return NULL;
    char *text = calloc(1, (size_t)status.st_size + 1);
    cr_assert_eq(fread(text, 1, (size_t)status.st_size, file), (size_t)status.st_size);
    fclose(file);
    return text;
}

static inline void spill(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static inline void expect_file(const char *path, const char *text)
{
    char *found = slurp(path);
    cr_assert(found != NULL, "%s is not there", path);
    cr_assert_str_eq(found, text, "%s", path);
    free(found);
}

// How many entries a folder has, hidden ones too.
static inline int count_entries(const char *path)
{
    DIR *folder = opendir(path);
    cr_assert(folder != NULL, "%s", path);
    int count = -2; // . and ..
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

#endif
