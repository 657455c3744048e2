// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/job_files.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

// --- folders ---

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    remove(path);
    return 0;
}

void leati_folder_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

int leati_folder_make(const char *path)
{
    char part[LEATI_PATH_SIZE];
    size_t size = strlen(path);
    if (size == 0 || size >= sizeof part)
        return size ? ENAMETOOLONG : ENOENT;
    memcpy(part, path, size + 1);
    for (size_t i = 1; i <= size; i++) {
        if (part[i] != '/' && part[i] != '\0')
            continue;
        char kept = part[i];
        part[i] = '\0';
        if (mkdir(part, 0755) && errno != EEXIST)
            return errno;
        part[i] = kept;
    }
    struct stat info;
    if (stat(path, &info))
        return errno;
    return S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
}

// --- names ---

// They come from afar: nothing may be written outside the folder.
static bool name_is_safe(leat_str name, bool parts)
{
    if (name.size == 0 || name.size > 2048 || memchr(name.data, '\0', name.size))
        return false;
    if (!parts && memchr(name.data, '/', name.size))
        return false;
    for (size_t at = 0; at <= name.size;) {
        const char *part = name.data + at;
        const char *slash = memchr(part, '/', name.size - at);
        size_t size = slash ? (size_t)(slash - part) : name.size - at;
        if (size == 0 || size > 255 || (size == 1 && part[0] == '.') ||
            (size == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        at += size + 1;
    }
    return true;
}

const leati_msg_file *leati_job_files_at(const leati_msg_job *job, size_t index)
{
    if (index == 0)
        return &job->job_file;
    index--;
    if (index < job->libraries.count)
        return (const leati_msg_file *)job->libraries.items + index;
    index -= job->libraries.count;
    return index < job->cached.count ? (const leati_msg_file *)job->cached.items + index : NULL;
}

bool leati_job_files_path(const leati_job_files *f, bool cached, leat_str name,
                          char path[LEATI_PATH_SIZE])
{
    int size = snprintf(path, LEATI_PATH_SIZE, "%s/%s/%.*s", f->folder, cached ? "files" : "job",
                        (int)name.size, name.data);
    return size > 0 && size < LEATI_PATH_SIZE;
}

static leat_str first_part(leat_str name)
{
    const char *slash = memchr(name.data, '/', name.size);
    return (leat_str){name.data, slash ? (size_t)(slash - name.data) : name.size};
}

// The names of cached files, and then of directories that have none.
static leat_str cached_name(const leati_msg_job *job, size_t index)
{
    if (index < job->cached.count)
        return ((const leati_msg_file *)job->cached.items)[index].name;
    return ((const leat_str *)job->empty_dirs.items)[index - job->cached.count];
}

leat_err leati_job_files_each_cached(const leati_job_files *f,
                                     leat_err (*fn)(void *user, leat_str name), void *user)
{
    leat_str last = {"", 0};
    leat_err err = LEAT_OK;
    for (size_t i = 0; i < f->job->cached.count + f->job->empty_dirs.count && !err; i++) {
        leat_str name = first_part(cached_name(f->job, i));
        // The files of a directory follow each other; a name that comes again does no harm.
        if (name.size != last.size || memcmp(name.data, last.data, name.size) != 0)
            err = fn(user, name);
        last = name;
    }
    return err;
}

// --- making ---

static leat_err explain(char *why, size_t why_size, leat_str name, int error)
{
    snprintf(why, why_size, "\"%.*s\" cannot be put into the job's folder: %s", (int)name.size,
             name.data, strerror(error));
    return LEAT_EIO;
}

// On file systems that can share blocks until one of the files is written, nothing is copied.
static int copy_bytes(int from, int to)
{
    if (ioctl(to, FICLONE, from) == 0)
        return 0;
    for (;;) {
        ssize_t copied = sendfile(to, from, NULL, 1 << 30);
        if (copied < 0 && errno == EINTR)
            continue;
        if (copied <= 0)
            return copied < 0 ? errno : 0;
    }
}

static int copy_file(const char *from, const char *to, mode_t mode)
{
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    int error = out < 0 ? errno : copy_bytes(in, out);
    if (out >= 0 && close(out) && !error)
        error = errno;
    if (in >= 0)
        close(in);
    return error;
}

static int make_parents(char *path)
{
    char *slash = strrchr(path, '/');
    *slash = '\0';
    int error = leati_folder_make(path);
    *slash = '/';
    return error;
}

// Always a copy of the job's own: what a job writes to it is not for those that come after.
static leat_err place(leati_job_files *f, const leati_msg_file *file, bool cached,
                      const char *artifact, char *why, size_t why_size)
{
    char path[LEATI_PATH_SIZE];
    if (!leati_job_files_path(f, cached, file->name, path))
        return explain(why, why_size, file->name, ENAMETOOLONG);
    int error = cached ? make_parents(path) : 0;
    if (!error)
        error = copy_file(artifact, path, file->executable || !cached ? 0555 : 0444);
    return error ? explain(why, why_size, file->name, error) : LEAT_OK;
}

static leat_err take(leati_job_files *f, const leati_msg_file *file, bool cached,
                     const leati_artifact_asker *asker, char *why, size_t why_size)
{
    char path[LEATI_PATH_SIZE], reason[400] = "";
    if (!name_is_safe(file->name, cached)) {
        snprintf(why, why_size, "\"%.*s\" cannot be the name of a file that a job brings along",
                 (int)file->name.size, file->name.data);
        return LEAT_EINVAL;
    }
    leat_err err = leati_artifact_cache_take(f->cache, file, asker, path, reason, sizeof reason);
    if (err) {
        snprintf(why, why_size, "\"%.*s\" cannot be had: %s", (int)file->name.size, file->name.data,
                 reason);
        return err;
    }
    f->pinned++;
    return place(f, file, cached, path, why, why_size);
}

static leat_err make_empty_dirs(leati_job_files *f, char *why, size_t why_size)
{
    const leat_str *names = f->job->empty_dirs.items;
    for (size_t i = 0; i < f->job->empty_dirs.count; i++) {
        char path[LEATI_PATH_SIZE];
        bool good = name_is_safe(names[i], true) && leati_job_files_path(f, true, names[i], path);
        int error = good ? leati_folder_make(path) : EINVAL;
        if (error)
            return explain(why, why_size, names[i], error);
    }
    return LEAT_OK;
}

leat_err leati_job_files_make(leati_job_files *f, leati_artifact_cache *cache,
                              const leati_msg_job *job, const char *folder,
                              const leati_artifact_asker *asker, char *why, size_t why_size)
{
    *f = (leati_job_files){.cache = cache, .job = job};
    snprintf(f->folder, sizeof f->folder, "%s", folder);
    char path[LEATI_PATH_SIZE];
    bool fits = leati_job_files_path(f, false, (leat_str){"", 0}, path);
    int error = fits ? leati_folder_make(path) : ENAMETOOLONG;
    if (error)
        return explain(why, why_size, job->job_file.name, error);
    leat_err err = LEAT_OK;
    const leati_msg_file *file;
    for (size_t i = 0; !err && (file = leati_job_files_at(job, i)); i++)
        err = take(f, file, i > job->libraries.count, asker, why, why_size);
    return err ? err : make_empty_dirs(f, why, why_size);
}

void leati_job_files_remove(leati_job_files *f)
{
    if (f->folder[0])
        leati_folder_remove(f->folder);
    for (size_t i = 0; i < f->pinned; i++)
        leati_artifact_cache_drop(f->cache, leati_job_files_at(f->job, i)->hash);
    f->pinned = 0;
    f->folder[0] = '\0';
}
