// SPDX-License-Identifier: Apache-2.0
// What a client sends along with a job: which files, under which names and hashes.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/client/files.h"

static char place[64];

static void make_place(void)
{
    snprintf(place, sizeof place, "/tmp/leat-files-XXXXXX");
    cr_assert(mkdtemp(place) != NULL);
    cr_assert(chdir(place) == 0);
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    return remove(path);
}

static void remove_place(void)
{
    (void)nftw(place, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(client_files, .init = make_place, .fini = remove_place);

static void put(const char *path, const void *bytes, size_t size, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    cr_assert(fd >= 0 && write(fd, bytes, size) == (ssize_t)size && close(fd) == 0);
}

// The values are those that xxhsum -H2 prints.
Test(client_files, hashes_are_xxh3_128)
{
    char hash[LEATI_HASH_SIZE];
    leati_hash_bytes("", 0, hash);
    cr_assert_str_eq(hash, "99aa06d3014798d86001c324468d497f");
    leati_hash_bytes("a", 1, hash);
    cr_assert_str_eq(hash, "a96faf705af16834e6c632b61e964e1f");
}

Test(client_files, a_file_is_hashed_as_its_bytes_are)
{
    enum { SIZE = 200001 }; // read in several pieces
    leati_sent_files files = {0};
    char hash[LEATI_HASH_SIZE], *bytes = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 31);
    put("data", bytes, SIZE, 0644);
    put("program", "x", 1, 0755);
    cr_assert(leati_sent_files_add(&files, "name", "data") == LEAT_OK);
    cr_assert(leati_sent_files_add(&files, "tool", "program") == LEAT_OK);
    leati_hash_bytes(bytes, SIZE, hash);
    cr_assert(files.count == 2 && files.items[0].size == SIZE);
    cr_assert_str_eq(files.items[0].hash, hash);
    cr_assert_str_eq(files.items[0].name, "name");
    cr_assert(!files.items[0].executable && files.items[1].executable);
    free(bytes);
    leati_sent_files_fini(&files);
    cr_assert(files.items == NULL && files.count == 0);
}

Test(client_files, a_folder_comes_with_all_below_it)
{
    static const char *const names[] = {"n/a", "n/b/deep", "n/b/link", "n/z"};
    leati_sent_files files = {0};
    cr_assert(mkdir("d", 0755) == 0 && mkdir("d/b", 0755) == 0 && mkdir("d/none", 0755) == 0);
    put("d/z", "z", 1, 0644);
    put("d/a", "a", 1, 0644);
    put("d/b/deep", "deep", 4, 0644);
    cr_assert(symlink("../a", "d/b/link") == 0);
    cr_assert(leati_sent_files_add_tree(&files, "n", "d") == LEAT_OK, "%s", files.why);
    cr_assert(files.count == 4);
    for (size_t i = 0; i < files.count; i++)
        cr_assert_str_eq(files.items[i].name, names[i]);
    cr_assert_str_eq(files.items[2].hash, files.items[0].hash);
    cr_assert(files.empty_count == 1);
    cr_assert_str_eq(files.empty_dirs[0], "n/none");
    leati_sent_files_fini(&files);
}

static void refused(const char *path, leat_err err, const char *said)
{
    leati_sent_files files = {0};
    leat_err got = leati_sent_files_add_tree(&files, "n", path);
    cr_assert(got == err, "%s: %s", path, leat_err_name(got));
    cr_assert(strstr(files.why, said), "%s: %s", path, files.why);
    leati_sent_files_fini(&files);
}

Test(client_files, what_is_no_file_is_refused_by_name)
{
    refused("nowhere", LEAT_EIO, "nowhere: No such file");
    cr_assert(mkdir("d", 0755) == 0 && mkfifo("d/pipe", 0644) == 0);
    refused("d", LEAT_EINVAL, "d/pipe is neither");
    cr_assert(unlink("d/pipe") == 0 && symlink("../d", "d/loop") == 0);
    // The system or we, whoever counts first.
    leati_sent_files files = {0};
    cr_assert(leati_sent_files_add_tree(&files, "n", "d") != LEAT_OK);
    cr_assert(strstr(files.why, "d/loop/loop"), "%s", files.why);
    leati_sent_files_fini(&files);
    refused("/dev/null", LEAT_EINVAL, "/dev/null is neither");
}

// --- libraries ---

static char *read_job(const char *name, size_t *size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", getenv("LEAT_JOBS"), name);
    FILE *from = fopen(path, "re");
    cr_assert(from != NULL, "%s", path);
    char *bytes = malloc(1 << 22);
    *size = fread(bytes, 1, 1 << 22, from);
    fclose(from);
    return bytes;
}

static size_t libraries_of(const char *object)
{
    leati_sent_files files = {0};
    leat_err err = leati_sent_files_add_libraries(&files, object);
    cr_assert(err == LEAT_OK, "%s", files.why);
    size_t count = files.count;
    for (size_t i = 0; i < count; i++)
        cr_assert_str_eq(files.items[i].name, "libbrought_number.so");
    leati_sent_files_fini(&files);
    return count;
}

Test(client_files, libraries_come_along_if_they_lie_beside_the_job)
{
    size_t size, library_size;
    char *job = read_job("brought.so", &size);
    char *library = read_job("libbrought_number.so", &library_size);
    put("job.so", job, size, 0755);
    cr_assert(libraries_of("job.so") == 0);
    put("libbrought_number.so", library, library_size, 0755);
    cr_assert(libraries_of("job.so") == 1);
    char whole[128];
    snprintf(whole, sizeof whole, "%s/job.so", place);
    cr_assert(libraries_of(whole) == 1);
    // That another file lies there under the name of a system library is the user's wish.
    cr_assert(libraries_of("libbrought_number.so") == 0);
    free(job);
    free(library);
}

Test(client_files, damaged_objects_have_no_libraries_or_some)
{
    size_t size;
    char *job = read_job("brought.so", &size);
    put("libbrought_number.so", "", 0, 0755);
    for (size_t cut = 0; cut < size; cut += 1 + size / 97) {
        put("job.so", job, cut, 0755);
        cr_assert(libraries_of("job.so") <= 1);
    }
    // Bytes that are wrong, by a fixed sequence, in the headers above all.
    uint64_t x = 88172645463325252U;
    for (int round = 0; round < 400; round++) {
        char *damaged = malloc(size);
        memcpy(damaged, job, size);
        for (int k = 0; k < 4; k++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            damaged[x % (k < 2 ? 900 : size)] = (char)(x >> 32);
        }
        put("job.so", damaged, size, 0755);
        leati_sent_files files = {0};
        (void)!leati_sent_files_add_libraries(&files, "job.so");
        leati_sent_files_fini(&files);
        free(damaged);
    }
    free(job);
}
