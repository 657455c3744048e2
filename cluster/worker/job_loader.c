// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/job_loader.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

// --- the table of libraries ---

void leati_library_table_init(leati_library_table *table, const leat_allocator *allocator)
{
    *table = (leati_library_table){.allocator = allocator};
    pthread_mutex_init(&table->lock, NULL);
}

void leati_library_table_fini(leati_library_table *table)
{
    while (table->libraries) {
        leati_library *gone = table->libraries;
        table->libraries = gone->next;
        leati_free(table->allocator, gone->name);
        leati_free(table->allocator, gone);
    }
    pthread_mutex_destroy(&table->lock);
}

static leati_library **find_locked(leati_library_table *table, leat_str name)
{
    leati_library **at = &table->libraries;
    while (*at &&
           (strlen((*at)->name) != name.size || memcmp((*at)->name, name.data, name.size) != 0))
        at = &(*at)->next;
    return at;
}

static leati_library *add_locked(leati_library_table *table, const leati_msg_file *file)
{
    leati_library *made = leati_calloc(table->allocator, 1, sizeof *made);
    char *name = leati_alloc(table->allocator, file->name.size + 1);
    if (!made || !name) {
        leati_free(table->allocator, made);
        leati_free(table->allocator, name);
        return NULL;
    }
    memcpy(name, file->name.data, file->name.size);
    name[file->name.size] = '\0';
    made->name = name;
    memcpy(made->hash, file->hash.data, LEATI_HASH_SIZE - 1);
    made->next = table->libraries;
    table->libraries = made;
    return made;
}

static leat_err enter(leati_library_table *table, const leati_msg_file *file, char *why,
                      size_t why_size)
{
    leat_err err = LEAT_OK;
    pthread_mutex_lock(&table->lock);
    leati_library *found = *find_locked(table, file->name);
    if (found && memcmp(found->hash, file->hash.data, LEATI_HASH_SIZE - 1) != 0) {
        snprintf(why, why_size,
                 "the library \"%s\" is loaded already with other contents, %s; give one of the "
                 "two another name",
                 found->name,
                 found->users ? "by another job that runs on this task manager"
                              : "by an earlier job, and could not be unloaded");
        err = LEAT_EEXIST;
    } else if (!found && !(found = add_locked(table, file))) {
        snprintf(why, why_size, "%s", leat_err_message(LEAT_ENOMEM));
        err = LEAT_ENOMEM;
    } else {
        found->users++;
    }
    pthread_mutex_unlock(&table->lock);
    return err;
}

// `stays`: it could not be unloaded.
static void leave(leati_library_table *table, const leati_msg_file *file, bool stays)
{
    pthread_mutex_lock(&table->lock);
    leati_library **at = find_locked(table, file->name), *found = *at;
    if (found && --found->users == 0 && !stays) {
        *at = found->next;
        leati_free(table->allocator, found->name);
        leati_free(table->allocator, found);
    }
    pthread_mutex_unlock(&table->lock);
}

// --- loading ---

static const leati_msg_file *library_at(const leati_loaded *l, size_t index)
{
    return (const leati_msg_file *)l->files->job->libraries.items + index;
}

// A damaged library may kill the process in the loader.
static leat_err check_library(leati_loaded *l, size_t index, char *why, size_t why_size)
{
    char path[LEATI_PATH_SIZE], reason[300];
    const leati_msg_file *file = library_at(l, index);
    leati_job_files_path(l->files, false, file->name, path);
    if (leati_job_file_check(path, reason, sizeof reason))
        return LEAT_OK;
    snprintf(why, why_size, "%.*s %s", (int)file->name.size, file->name.data, reason);
    return LEAT_ECORRUPT;
}

// Loaded before the job file, they are found by it whatever search path it was linked with. They
// may need each other, so those that cannot be loaded are tried again while others can. What is
// left over is for the job file's own loading to complain of.
static void open_libraries(leati_loaded *l, size_t count)
{
    for (bool progress = true; progress;) {
        progress = false;
        for (size_t i = 0; i < count; i++) {
            char path[LEATI_PATH_SIZE];
            if (l->handles[i])
                continue;
            leati_job_files_path(l->files, false, library_at(l, i)->name, path);
            l->handles[i] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            progress |= l->handles[i] != NULL;
        }
    }
}

static leat_err load(leati_loaded *l, size_t count, char *why, size_t why_size)
{
    for (size_t i = 0; i < count; i++) {
        leat_err err = check_library(l, i, why, why_size);
        if (!err)
            err = enter(l->table, library_at(l, i), why, why_size);
        if (err)
            return err;
        l->registered++;
    }
    open_libraries(l, count);
    char path[LEATI_PATH_SIZE], reason[800];
    const leati_msg_file *file = &l->files->job->job_file;
    leati_job_files_path(l->files, false, file->name, path);
    if (leati_job_file_open(path, &l->file, reason, sizeof reason))
        return LEAT_OK;
    snprintf(why, why_size, "%.*s %s", (int)file->name.size, file->name.data, reason);
    return LEAT_EINVAL;
}

leat_err leati_job_load(leati_loaded *l, leati_library_table *table, const leati_job_files *files,
                        char *why, size_t why_size)
{
    size_t count = files->job->libraries.count;
    *l = (leati_loaded){.table = table, .files = files};
    l->handles = leati_calloc(table->allocator, count + 1, sizeof *l->handles);
    if (!l->handles) {
        snprintf(why, why_size, "%s", leat_err_message(LEAT_ENOMEM));
        return LEAT_ENOMEM;
    }
    leat_err err = load(l, count, why, why_size);
    if (err)
        leati_job_unload(l);
    return err;
}

static bool is_loaded(const leati_loaded *l, leat_str name)
{
    char path[LEATI_PATH_SIZE];
    leati_job_files_path(l->files, false, name, path);
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (handle)
        dlclose(handle);
    return handle != NULL;
}

bool leati_job_unload(leati_loaded *l)
{
    if (!l->handles)
        return true;
    bool gone = true;
    bool opened = l->file.handle != NULL;
    leati_job_file_close(&l->file);
    if (opened)
        gone = !is_loaded(l, l->files->job->job_file.name);
    for (size_t i = l->registered; i-- > 0;)
        if (l->handles[i])
            dlclose(l->handles[i]);
    for (size_t i = 0; i < l->registered; i++) {
        // Another attempt may use this very copy, which is none of this one's business.
        bool stays = l->handles[i] && is_loaded(l, library_at(l, i)->name);
        leave(l->table, library_at(l, i), stays);
    }
    leati_free(l->table->allocator, l->handles);
    l->handles = NULL;
    return gone;
}
