// SPDX-License-Identifier: Apache-2.0
#include "operators/file_target.h"

#include "outputs.h"

TestSuite(file_target, .init = enter_outputs, .fini = leave_outputs);

static char why[1024];

static leat_err create(const char *path, uint32_t parts, bool overwrite, leati_file_target **t)
{
    leati_file_target_options options = {
        .path = path, .parts = parts, .overwrite = overwrite, .sync = true};
    *t = NULL;
    return leati_file_target_create(NULL, &options, t, why, sizeof why);
}

static void put_part(leati_file_target *t, uint32_t part, const char *text)
{
    int fd;
    cr_assert_eq(leati_file_target_open_part(t, part, &fd, why, sizeof why), LEAT_OK, "%s", why);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

// The only hidden entry here.
static void hidden_name(char *to, size_t size)
{
    DIR *folder = opendir(".");
    *to = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] == '.' && strstr(entry->d_name, ".leat-"))
            snprintf(to, size, "%s", entry->d_name);
    closedir(folder);
    cr_assert(*to != 0);
}

static leat_err commit(leati_file_target **t)
{
    leat_err err = leati_file_target_prepare(*t, why, sizeof why);
    if (!err)
        err = leati_file_target_commit(*t, why, sizeof why);
    if (!err)
        err = leati_file_target_finish(*t, why, sizeof why);
    leati_file_target_destroy(t);
    return err;
}

Test(file_target, a_path_must_end_in_a_name)
{
    static const struct {
        const char *path;
        bool good;
    } cases[] = {{"a", true},     {"a/b", true},   {"/a", true},  {"a/", true},   {"..a", true},
                 {"a//", true},   {".a", true},    {"...", true}, {"", false},    {"/", false},
                 {"//", false},   {".", false},    {"..", false}, {"a/.", false}, {"a/..", false},
                 {"a/./", false}, {"../..", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_eq(leati_file_target_path_ok(cases[i].path), cases[i].good, "%s", cases[i].path);
}

Test(file_target, nothing_has_its_name_before_the_commit)
{
    static const char *const paths[] = {"file", "sub/file/", "./sub//other"};
    static const char *const found[] = {"file", "sub/file", "sub/other"};
    leati_file_target *t;
    mkdir("sub", 0755);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(create(paths[i], 1, false, &t), LEAT_OK, "%s", why);
        put_part(t, 0, "text");
        cr_assert(access(found[i], F_OK) != 0);
        cr_assert_eq(commit(&t), LEAT_OK, "%s", why);
        expect_file(found[i], "text");
    }
    cr_assert(count_entries(".") == 2 && count_entries("sub") == 2);
}

Test(file_target, many_parts_become_a_directory)
{
    leati_file_target *t;
    int descriptors = count_entries("/proc/self/fd");
    cr_assert_eq(create("out", 3, false, &t), LEAT_OK);
    put_part(t, 2, "three");
    put_part(t, 0, "one");
    put_part(t, 1, "");
    cr_assert(access("out", F_OK) != 0);
    cr_assert_eq(commit(&t), LEAT_OK, "%s", why);
    expect_file("out/1", "one");
    expect_file("out/2", "");
    expect_file("out/3", "three");
    cr_assert(count_entries("out") == 3 && count_entries(".") == 1);
    cr_assert_eq(count_entries("/proc/self/fd"), descriptors);
}

Test(file_target, files_are_as_readable_as_the_mask_says)
{
    leati_file_target *t;
    struct stat status;
    umask(027);
    cr_assert_eq(create("file", 1, false, &t), LEAT_OK);
    cr_assert_eq(commit(&t), LEAT_OK);
    cr_assert(stat("file", &status) == 0 && (status.st_mode & 07777) == 0640);
    cr_assert_eq(create("out", 2, false, &t), LEAT_OK);
    put_part(t, 0, "");
    cr_assert_eq(commit(&t), LEAT_OK);
    cr_assert(stat("out", &status) == 0 && (status.st_mode & 07777) == 0750);
    cr_assert(stat("out/1", &status) == 0 && (status.st_mode & 07777) == 0640);
}

static mode_t mode_of(const char *path)
{
    struct stat status;
    cr_assert(stat(path, &status) == 0, "%s", path);
    return status.st_mode & 07777;
}

// What was there: a file, or a directory with two parts. What comes: a file, or such a directory.
// While it is written, nobody else reads it.
Test(file_target, what_replaces_is_no_more_readable_than_what_was_there)
{
    static const struct {
        mode_t old_file, old_other, old_folder; // no folder: a file
        mode_t file;                            // that replaces it
        mode_t part, folder;                    // or a directory
    } cases[] = {
        {0600, 0, 0, 0600, 0600, 0700},         {0640, 0, 0, 0640, 0640, 0750},
        {0664, 0, 0, 0664, 0664, 0775},         {0444, 0, 0, 0444, 0444, 0555},
        {04755, 0, 0, 0755, 0755, 0755},        {0644, 0600, 0755, 0600, 0600, 0755},
        {0644, 0644, 0700, 0600, 0644, 0700},   {0664, 0664, 0750, 0660, 0664, 0750},
        {0644, 0644, 02775, 0644, 0644, 02775},
    };
    char hidden[300];
    umask(0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t parts = 1; parts <= 2; parts++) {
            leati_file_target *t;
            bool folder = cases[i].old_folder != 0;
            cr_assert(!folder || mkdir("out", 0700) == 0);
            spill(folder ? "out/1" : "out", "old");
            cr_assert_eq(chmod(folder ? "out/1" : "out", cases[i].old_file), 0);
            if (folder) {
                spill("out/2", "old");
                cr_assert(chmod("out/2", cases[i].old_other) == 0 &&
                          chmod("out", cases[i].old_folder) == 0);
            }
            cr_assert_eq(create("out", parts, true, &t), LEAT_OK, "%s", why);
            for (uint32_t part = 0; part < parts; part++)
                put_part(t, part, "new");
            hidden_name(hidden, sizeof hidden);
            cr_assert_eq(mode_of(hidden), parts == 1 ? 0600 : 0700);
            cr_assert_eq(commit(&t), LEAT_OK, "%s", why);
            if (parts == 1)
                cr_assert_eq(mode_of("out"), cases[i].file, "%zu: %o", i, mode_of("out"));
            else
                cr_assert(mode_of("out") == cases[i].folder && mode_of("out/1") == cases[i].part &&
                              mode_of("out/2") == cases[i].part,
                          "%zu: %o %o", i, mode_of("out"), mode_of("out/1"));
            leave_outputs();
            enter_outputs();
        }
}

Test(file_target, an_empty_directory_says_who_may_read_what_replaces_it)
{
    leati_file_target *t;
    umask(0);
    for (uint32_t parts = 1; parts <= 2; parts++) {
        cr_assert(mkdir("out", 0700) == 0 && chmod("out", 0750) == 0);
        cr_assert_eq(create("out", parts, true, &t), LEAT_OK, "%s", why);
        put_part(t, 0, "new");
        cr_assert_eq(commit(&t), LEAT_OK, "%s", why);
        cr_assert_eq(mode_of(parts == 1 ? "out" : "out/1"), 0640);
        cr_assert(parts == 1 || mode_of("out") == 0750);
        leave_outputs();
        enter_outputs();
    }
}

Test(file_target, the_mode_is_that_of_the_file_at_the_end)
{
    leati_file_target *t;
    umask(022);
    // One that changes its mode meanwhile, and one that comes to be.
    for (int there = 0; there < 2; there++) {
        if (there)
            spill("out", "old");
        cr_assert_eq(create("out", 1, true, &t), LEAT_OK);
        put_part(t, 0, "new");
        spill("out", "later");
        cr_assert_eq(chmod("out", 0640), 0);
        cr_assert_eq(commit(&t), LEAT_OK, "%s", why);
        cr_assert(mode_of("out") == 0640 && unlink("out") == 0);
    }
}

// --- what somebody does to the hidden output ---

typedef enum deed { REMOVE, REPLACE, LINK, CUT, APPEND, ADD } deed;

static void tamper(deed what, const char *path, const char *folder)
{
    char other[400];
    FILE *file;
    switch (what) {
    case REMOVE:
    case REPLACE:
        cr_assert_eq(unlink(path), 0);
        if (what == REPLACE)
            spill(path, "evil");
        return;
    case LINK:
        cr_assert_eq(link(path, "second"), 0);
        return;
    case CUT:
        cr_assert_eq(truncate(path, 1), 0);
        return;
    case APPEND:
        cr_assert((file = fopen(path, "a")) && fputs("evil", file) >= 0 && fclose(file) == 0);
        return;
    case ADD:
        snprintf(other, sizeof other, "%s/3", folder);
        spill(other, "evil");
        return;
    }
}

Test(file_target, a_hidden_output_that_was_changed_is_not_put_in_its_place)
{
    static const struct {
        deed deed;
        leat_err err;
        const char *says;
    } cases[] = {
        {REMOVE, LEAT_ENOENT, ", which was written for out, was removed while the job ran"},
        {REPLACE, LEAT_EIO, ", which was written for out, was replaced by another file"},
        {LINK, LEAT_EIO, ", which was written for out, was given a second name"},
        {CUT, LEAT_EIO, "was changed (1 bytes instead of 4) while the job ran"},
        {APPEND, LEAT_EIO, "was changed (8 bytes instead of 4)"},
        {ADD, LEAT_EIO, "/3, which was written for out, was put there by somebody else"}};
    char hidden[300], path[310];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t parts = 1; parts <= 2; parts++) {
            leati_file_target *t;
            if (cases[i].deed == ADD && parts == 1)
                continue;
            cr_assert_eq(create("out", parts, false, &t), LEAT_OK);
            for (uint32_t part = 0; part < parts; part++) {
                put_part(t, part, "text");
                cr_assert_eq(leati_file_target_end_part(t, part, 4), 0);
            }
            hidden_name(hidden, sizeof hidden);
            snprintf(path, sizeof path, "%s%s", hidden, parts == 1 ? "" : "/2");
            tamper(cases[i].deed, path, hidden);
            leat_err err = commit(&t);
            cr_assert_eq(err, cases[i].err, "%zu: %s", i, why);
            cr_assert(strstr(why, cases[i].says) && strstr(why, hidden), "%s", why);
            cr_assert(access("out", F_OK) != 0);
            leave_outputs();
            enter_outputs();
        }
}

Test(file_target, a_hidden_directory_that_was_changed_is_not_put_in_its_place)
{
    leati_file_target *t;
    char hidden[300];
    for (int replaced = 0; replaced < 2; replaced++) {
        cr_assert_eq(create("out", 2, false, &t), LEAT_OK);
        put_part(t, 0, "text");
        hidden_name(hidden, sizeof hidden);
        cr_assert_eq(rename(hidden, "mine"), 0);
        if (replaced)
            cr_assert_eq(mkdir(hidden, 0755), 0);
        cr_assert_eq(commit(&t), replaced ? LEAT_EIO : LEAT_ENOENT);
        cr_assert(strstr(why, replaced ? "was replaced while" : "was removed while"), "%s", why);
        cr_assert(access("out", F_OK) != 0);
        expect_file("mine/1", "text");
        leave_outputs();
        enter_outputs();
    }
}

Test(file_target, what_is_prepared_has_not_its_name_yet)
{
    leati_file_target *t;
    spill("out", "old");
    for (uint32_t parts = 1; parts <= 2; parts++) {
        cr_assert_eq(create("out", parts, true, &t), LEAT_OK);
        put_part(t, 0, "new");
        cr_assert_eq(leati_file_target_prepare(t, why, sizeof why), LEAT_OK, "%s", why);
        expect_file("out", "old");
        leati_file_target_destroy(&t);
        cr_assert_eq(count_entries("."), 1);
    }
}

// The superuser may write anywhere.
Test(file_target, a_directory_that_can_no_longer_be_written_is_found_before_the_renaming)
{
    leati_file_target *t;
    cr_assert(chmod(".", 0777) == 0 && (geteuid() != 0 || seteuid(65534) == 0));
    cr_assert_eq(mkdir("sub", 0755), 0);
    cr_assert_eq(create("sub/out", 1, false, &t), LEAT_OK, "%s", why);
    cr_assert_eq(chmod("sub", 0555), 0);
    cr_assert_eq(leati_file_target_prepare(t, why, sizeof why), LEAT_EIO);
    cr_assert_str_eq(why, "cannot write into sub/: Permission denied");
    cr_assert_eq(chmod("sub", 0755), 0);
    leati_file_target_destroy(&t);
    cr_assert(count_entries("sub") == 0 && (getuid() != 0 || seteuid(0) == 0));
}

Test(file_target, paths_are_the_same_where_they_name_the_same)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {{"x", "./x", true},        {"x", "sub/../x", true}, {"sub/x", "link/x", true},
                 {"x", "sub/x", false},     {"x", "X", false},       {"sub/x/", "sub//x", true},
                 {"sub/x", "sub/x1", false}};
    leati_file_target *a, *b;
    cr_assert(mkdir("sub", 0755) == 0 && symlink("sub", "link") == 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert_eq(create(cases[i].a, 1, false, &a), LEAT_OK, "%s", why);
        cr_assert_eq(create(cases[i].b, 2, false, &b), LEAT_OK, "%s", why);
        cr_assert_eq(leati_file_target_same(a, b), cases[i].same, "%s %s", cases[i].a, cases[i].b);
        leati_file_target_destroy(&a);
        leati_file_target_destroy(&b);
    }
}

Test(file_target, what_is_given_up_leaves_nothing)
{
    leati_file_target *t;
    for (uint32_t parts = 1; parts <= 3; parts += 2) {
        cr_assert_eq(create("out", parts, false, &t), LEAT_OK);
        put_part(t, 0, "text");
        cr_assert_eq(count_entries("."), 1);
        leati_file_target_destroy(&t);
        cr_assert_eq(count_entries("."), 0);
    }
}

Test(file_target, what_exists_is_refused_and_not_touched)
{
    leati_file_target *t;
    spill("file", "old");
    mkdir("folder", 0755);
    cr_assert(symlink("nowhere", "link") == 0);
    static const char *const paths[] = {"file", "folder", "link"};
    for (int i = 0; i < 3; i++)
        for (uint32_t parts = 1; parts <= 2; parts++) {
            cr_assert_eq(create(paths[i], parts, false, &t), LEAT_EEXIST);
            cr_assert(strstr(why, paths[i]) && strstr(why, "exists already"), "%s", why);
            cr_assert_eq(count_entries("."), 3);
        }
    expect_file("file", "old");
}

Test(file_target, what_appears_meanwhile_is_not_replaced)
{
    leati_file_target *t;
    for (uint32_t parts = 1; parts <= 2; parts++) {
        cr_assert_eq(create("out", parts, false, &t), LEAT_OK);
        put_part(t, 0, "new");
        spill("out", "of another");
        cr_assert_eq(commit(&t), LEAT_EEXIST);
        cr_assert_str_eq(why,
                         "out was made by somebody else while the job ran, and overwriting was "
                         "not asked for");
        expect_file("out", "of another");
        cr_assert(count_entries(".") == 1 && unlink("out") == 0);
    }
}

// From and to: a file, a directory of one part, of three.
Test(file_target, files_and_directories_of_parts_are_replaced_when_asked)
{
    leati_file_target *t;
    for (uint32_t from = 1; from <= 4; from++)
        for (uint32_t to = 1; to <= 3; to++) {
            if (from == 4) {
                cr_assert_eq(mkdir("out", 0755), 0); // an empty directory
            } else {
                cr_assert_eq(create("out", from, false, &t), LEAT_OK, "%s", why);
                for (uint32_t i = 0; i < from; i++)
                    put_part(t, i, "old");
                cr_assert_eq(commit(&t), LEAT_OK, "%s", why);
            }
            cr_assert_eq(create("out", to, true, &t), LEAT_OK, "%s", why);
            for (uint32_t i = 0; i < to; i++)
                put_part(t, i, "new");
            if (from == 1)
                expect_file("out", "old");
            cr_assert_eq(commit(&t), LEAT_OK, "%s", why);
            expect_file(to == 1 ? "out" : "out/1", "new");
            if (to > 1)
                cr_assert_eq(count_entries("out"), (int)to);
            cr_assert_eq(count_entries("."), 1);
            leave_outputs();
            enter_outputs();
        }
}

Test(file_target, what_no_sink_wrote_is_never_replaced)
{
    leati_file_target *t;
    cr_assert(mkdir("folder", 0755) == 0 && mkdir("deep", 0755) == 0 && mkdir("deep/1", 0755) == 0);
    spill("folder/1", "");
    spill("folder/01", "");
    spill("real", "text");
    cr_assert(symlink("real", "link") == 0 && mkfifo("pipe", 0600) == 0);
    static const char *const paths[] = {"folder", "deep", "link", "pipe"};
    static const char *const says[] = {"with 01 in it", "with 1 in it", "neither", "neither"};
    for (int i = 0; i < 4; i++)
        for (uint32_t parts = 1; parts <= 2; parts++) {
            cr_assert_eq(create(paths[i], parts, true, &t), LEAT_EEXIST, "%s", paths[i]);
            cr_assert(strstr(why, paths[i]) && strstr(why, says[i]), "%s", why);
        }
    cr_assert_eq(create("/dev/full", 1, true, &t), LEAT_EEXIST);
    cr_assert(count_entries(".") == 5 && count_entries("folder") == 2);
    // What comes to be in the way later is left alone as well.
    cr_assert_eq(create("later", 2, true, &t), LEAT_OK);
    cr_assert(mkdir("later", 0755) == 0);
    spill("later/mine", "mine");
    cr_assert_eq(commit(&t), LEAT_EEXIST);
    expect_file("later/mine", "mine");
    cr_assert_eq(count_entries("."), 6);
}

Test(file_target, a_place_that_is_not_there_is_named)
{
    static const struct {
        const char *path;
        leat_err err;
        const char *says;
    } cases[] = {{"none/file", LEAT_ENOENT, "none/: No such file or directory"},
                 {"file/x", LEAT_ENOENT, "file/: Not a directory"},
                 {"/proc/file", LEAT_ENOENT, "/proc/file"}};
    leati_file_target *t;
    spill("file", "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t parts = 1; parts <= 2; parts++) {
            leat_err err = create(cases[i].path, parts, false, &t);
            cr_assert_eq(err, cases[i].err, "%s: %s", leat_err_name(err), why);
            cr_assert(strstr(why, cases[i].says), "%s", why);
        }
    char path[400];
    memset(path, 'n', sizeof path);
    path[sizeof path - 1] = 0;
    cr_assert_eq(create(path, 1, false, &t), LEAT_EIO);
    cr_assert(strstr(why, "File name too long"));
}

Test(file_target, a_long_name_still_finds_a_hidden_one)
{
    leati_file_target *t;
    char path[256];
    memset(path, 'n', 255);
    path[255] = 0;
    cr_assert_eq(create(path, 1, false, &t), LEAT_OK, "%s", why);
    cr_assert_eq(commit(&t), LEAT_OK, "%s", why);
    cr_assert(access(path, F_OK) == 0 && count_entries(".") == 1);
}

Test(file_target, a_removed_directory_is_an_error_at_the_end)
{
    leati_file_target *t;
    for (uint32_t parts = 1; parts <= 2; parts++) {
        mkdir("sub", 0755);
        cr_assert_eq(create("sub/out", parts, false, &t), LEAT_OK);
        put_part(t, 0, "text");
        cr_assert_eq(nftw("sub", outputs_remove, 20, FTW_DEPTH | FTW_PHYS), 0);
        if (parts == 2) {
            int fd;
            cr_assert_eq(leati_file_target_open_part(t, 1, &fd, why, sizeof why), LEAT_ENOENT);
        }
        cr_assert_eq(commit(&t), LEAT_ENOENT);
        cr_assert_str_eq(why,
                         "sub/ was removed while the job ran, with what was written for sub/out");
    }
}

Test(file_target, the_process_may_change_its_directory)
{
    leati_file_target *t;
    mkdir("sub", 0755);
    cr_assert_eq(create("out", 2, false, &t), LEAT_OK);
    cr_assert_eq(chdir("sub"), 0);
    put_part(t, 0, "text");
    cr_assert_eq(commit(&t), LEAT_OK);
    cr_assert_eq(chdir(".."), 0);
    expect_file("out/1", "text");
}
