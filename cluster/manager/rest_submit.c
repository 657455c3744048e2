// SPDX-License-Identifier: Apache-2.0
// POST /jobs: from JSON to the submission that the job manager takes. Every complaint names the
// member it is about.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cluster/manager/rest_impl.h"

enum { GRAPH_MAX = 32 << 20, LIST_MAX = 100000 };

// What is taken from the JSON points into it; lists are blocks of their own.
typedef struct reading {
    leati_request *request;
    const leat_allocator *allocator;
    void *blocks[5];
    int block_count;
    uint8_t *graph;
    leati_msg_job job;
    bool attached;
} reading;

// --- members ---

static bool refuse(reading *r, const char *where, const char *what)
{
    leati_rest_error(r->request, MHD_HTTP_BAD_REQUEST, "%s: %s", where, what);
    return false;
}

static bool take_value(reading *r, const char *where, const json_t *value, leat_str *to)
{
    if (!json_is_string(value))
        return refuse(r, where, value ? "is not a string" : "is missing");
    *to = (leat_str){.data = json_string_value(value), .size = json_string_length(value)};
    return true;
}

// Where a member is: "cached[2].name".
static void place(char *to, size_t size, const char *list, size_t index, const char *member)
{
    snprintf(to, size, "%s[%zu]%s%s", list, index, member[0] ? "." : "", member);
}

static bool take_text(reading *r, const json_t *object, const char *name, bool needed, leat_str *to)
{
    const json_t *value = json_object_get(object, name);
    *to = (leat_str){.data = "", .size = 0};
    return (!value && !needed) || take_value(r, name, value, to);
}

// Room for a list of the object; `*items` is NULL when it is not there or empty.
static bool take_list(reading *r, const json_t *object, const char *name, size_t item_size,
                      const json_t **list, void **items, leat_list *to)
{
    *list = json_object_get(object, name);
    *items = NULL;
    *to = (leat_list){0};
    if (!*list)
        return true;
    size_t count = json_array_size(*list);
    if (!json_is_array(*list))
        return refuse(r, name, "is not an array");
    if (count > LIST_MAX)
        return refuse(r, name, "has more than 100000 items");
    if (count == 0)
        return true;
    *items = leati_calloc(r->allocator, count, item_size);
    if (!*items) {
        leati_rest_error(r->request, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
        return false;
    }
    r->blocks[r->block_count++] = *items;
    *to = (leat_list){.items = *items, .count = count};
    return true;
}

static bool take_texts(reading *r, const json_t *object, const char *name, leat_list *to)
{
    const json_t *list;
    void *items;
    if (!take_list(r, object, name, sizeof(leat_str), &list, &items, to))
        return false;
    leat_str *text = items;
    for (size_t i = 0; i < to->count; i++) {
        char where[64];
        place(where, sizeof where, name, i, "");
        if (!take_value(r, where, json_array_get(list, i), &text[i]))
            return false;
    }
    return true;
}

static bool take_settings(reading *r, const json_t *object, leat_list *to)
{
    const json_t *list;
    void *items;
    if (!take_list(r, object, "settings", sizeof(leati_msg_setting), &list, &items, to))
        return false;
    leati_msg_setting *setting = items;
    for (size_t i = 0; i < to->count; i++) {
        char where[64];
        const json_t *item = json_array_get(list, i);
        place(where, sizeof where, "settings", i, "key");
        if (!take_value(r, where, json_object_get(item, "key"), &setting[i].key))
            return false;
        place(where, sizeof where, "settings", i, "value");
        if (!take_value(r, where, json_object_get(item, "value"), &setting[i].value))
            return false;
    }
    return true;
}

// --- files ---

// Names become paths at task managers, which must stay below the folder they are meant for.
static bool is_safe_name(leat_str name, bool slashes)
{
    size_t begin = 0;
    for (size_t i = 0; i <= name.size; i++) {
        if (i < name.size && name.data[i] != '/')
            continue;
        size_t size = i - begin;
        const char *part = name.data + begin;
        bool dots = (size == 1 && part[0] == '.') || (size == 2 && !memcmp(part, "..", 2));
        if (size == 0 || size > 255 || dots || (i < name.size && !slashes))
            return false;
        begin = i + 1;
    }
    return name.size < 2048;
}

static bool take_file(reading *r, const char *where, const json_t *item, bool slashes,
                      leati_msg_file *file)
{
    char member[96];
    snprintf(member, sizeof member, "%s.name", where);
    if (!json_is_object(item))
        return refuse(r, where, item ? "is not an object" : "is missing");
    if (!take_value(r, member, json_object_get(item, "name"), &file->name))
        return false;
    if (!is_safe_name(file->name, slashes))
        return refuse(r, member, "is not the name of a file");
    snprintf(member, sizeof member, "%s.hash", where);
    if (!take_value(r, member, json_object_get(item, "hash"), &file->hash))
        return false;
    if (!leati_rest_is_hash(file->hash.data))
        return refuse(r, member, "is not 32 digits of 0-9 and a-f");
    snprintf(member, sizeof member, "%s.size", where);
    const json_t *size = json_object_get(item, "size");
    if (!json_is_integer(size) || json_integer_value(size) < 0)
        return refuse(r, member, "is not a number of bytes");
    file->size = (uint64_t)json_integer_value(size);
    file->executable = json_is_true(json_object_get(item, "executable"));
    return true;
}

static bool take_files(reading *r, const json_t *object, const char *name, bool slashes,
                       leat_list *to)
{
    const json_t *list;
    void *items;
    if (!take_list(r, object, name, sizeof(leati_msg_file), &list, &items, to))
        return false;
    leati_msg_file *file = items;
    for (size_t i = 0; i < to->count; i++) {
        char where[64];
        place(where, sizeof where, name, i, "");
        if (!take_file(r, where, json_array_get(list, i), slashes, &file[i]))
            return false;
    }
    return true;
}

// --- the graph ---

static bool read_all(int file, uint8_t *to, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = read(file, to + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static bool read_graph(reading *r, int file)
{
    struct stat info;
    if (fstat(file, &info) != 0 || info.st_size > GRAPH_MAX)
        return refuse(r, "graph", "is larger than 32 MiB");
    size_t size = (size_t)info.st_size;
    r->graph = leati_alloc(r->allocator, size + 1);
    if (!r->graph || !read_all(file, r->graph, size)) {
        leati_rest_error(r->request, MHD_HTTP_SERVICE_UNAVAILABLE, "graph: %s",
                         r->graph ? "its file cannot be read" : "out of memory");
        return false;
    }
    r->job.graph = (leat_bytes){.data = r->graph, .size = size};
    return true;
}

static bool take_graph(reading *r, const json_t *object)
{
    leat_str hash;
    char path[512];
    if (!take_text(r, object, "graph", true, &hash))
        return false;
    if (!leati_rest_is_hash(hash.data))
        return refuse(r, "graph", "is not the hash of an artifact");
    int file = -1;
    if (leati_artifact_path(r->request->manager, hash.data, path))
        file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        leati_rest_error(r->request, MHD_HTTP_CONFLICT,
                         "graph: there is no artifact %s, it must be sent first", hash.data);
        return false;
    }
    bool read = read_graph(r, file);
    close(file);
    return read;
}

static bool take_job(reading *r, const json_t *object)
{
    leati_msg_job *job = &r->job;
    const json_t *attached = json_object_get(object, "attached");
    if (!json_is_object(object))
        return refuse(r, "the body", "is not an object");
    if (attached && !json_is_boolean(attached))
        return refuse(r, "attached", "is not true or false");
    r->attached = json_is_true(attached);
    return take_text(r, object, "name", true, &job->name) &&
           take_file(r, "job_file", json_object_get(object, "job_file"), false, &job->job_file) &&
           take_files(r, object, "libraries", false, &job->libraries) &&
           take_files(r, object, "cached", true, &job->cached) &&
           take_texts(r, object, "empty_dirs", &job->empty_dirs) &&
           take_texts(r, object, "args", &job->args) && take_settings(r, object, &job->settings) &&
           take_text(r, object, "folder", false, &job->folder) &&
           take_text(r, object, "argv0", false, &job->argv0) &&
           take_text(r, object, "digest", true, &job->digest) && take_graph(r, object);
}

static bool check_dirs(reading *r)
{
    const leat_str *dir = r->job.empty_dirs.items;
    for (size_t i = 0; i < r->job.empty_dirs.count; i++) {
        char where[64];
        place(where, sizeof where, "empty_dirs", i, "");
        if (!is_safe_name(dir[i], true))
            return refuse(r, where, "is not the name of a directory");
    }
    return true;
}

static unsigned submit(reading *r)
{
    leati_request *request = r->request;
    char id[LEATI_ID_SIZE], why[LEATI_REASON_SIZE] = "";
    leat_err err =
        leati_manager_submit(request->manager, &r->job, r->attached, id, why, sizeof why);
    if (err != LEAT_OK)
        return leati_rest_error(request, leati_rest_status_of(err), "%s",
                                why[0] ? why : leat_err_message(err));
    leati_put_open(&request->out, NULL, '{');
    leati_put_text(&request->out, "id", id);
    leati_put_close(&request->out, '}');
    return MHD_HTTP_ACCEPTED;
}

unsigned leati_rest_submit(leati_request *request)
{
    reading r = {.request = request, .allocator = request->manager->allocator};
    json_error_t fault;
    json_t *object = json_loadb(leati_strbuf_text(&request->body), request->body.size,
                                JSON_REJECT_DUPLICATES, &fault);
    // The text has served.
    leati_strbuf_fini(&request->body);
    leati_strbuf_init(&request->body, r.allocator);
    unsigned status;
    if (!object)
        status = leati_rest_error(request, MHD_HTTP_BAD_REQUEST,
                                  "the body is not JSON: line %d, column %d: %s", fault.line,
                                  fault.column, fault.text);
    else if (take_job(&r, object) && check_dirs(&r))
        status = submit(&r);
    else
        status = request->status;
    for (int i = 0; i < r.block_count; i++)
        leati_free(r.allocator, r.blocks[i]);
    leati_free(r.allocator, r.graph);
    json_decref(object);
    return status;
}
