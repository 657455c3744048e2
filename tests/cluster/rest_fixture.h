// SPDX-License-Identifier: Apache-2.0
// A REST interface over a job manager whose core is played by the test: its functions do the least
// that the pages need, and note what they were called with. A program without Criterion defines
// cr_assert before it includes this.
#ifndef TESTS_CLUSTER_REST_FIXTURE_H
#define TESTS_CLUSTER_REST_FIXTURE_H

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#ifndef cr_assert
#include <criterion/criterion.h>
#endif

#include "base/alloc.h"
#include "base/thread.h"
#include "cluster/manager/manager_impl.h"
#include "leat/leat.h"

#define UNUSED __attribute__((unused))

typedef struct fixture {
    leati_manager manager;
    leati_rest *rest;
    char folder[64];
    // What the fakes were told.
    leati_msg_job *submitted;
    bool submitted_attached;
    uint64_t read_up_to;
    uint32_t reads, cancels;
    char output[4096];
} fixture;

// --- the core, played ---

UNUSED static fixture *fixture_of(const leati_manager *manager)
{
    return (fixture *)manager; // its first member
}

bool leati_artifact_path(const leati_manager *manager, const char *hash, char *path)
{
    snprintf(path, 512, "%s/%s", fixture_of(manager)->folder, hash);
    return access(path, R_OK) == 0;
}

static void hash_of(const void *data, size_t size, char hash[33])
{
    XXH128_hash_t h = XXH3_128bits(data, size);
    snprintf(hash, 33, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
}

static char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    cr_assert(file);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *data = malloc(*size + 1);
    cr_assert(fread(data, 1, *size, file) == *size);
    fclose(file);
    return data;
}

leat_err leati_artifact_put(leati_manager *manager, const char *hash, const char *temporary,
                            char *why, size_t why_size)
{
    char path[512], real[33];
    size_t size;
    char *data = read_file(temporary, &size);
    hash_of(data, size, real);
    free(data);
    leati_artifact_path(manager, hash, path);
    if (strcmp(real, hash) != 0) {
        unlink(temporary);
        snprintf(why, why_size, "its bytes have the hash %s", real);
        return LEAT_ECORRUPT;
    }
    return rename(temporary, path) == 0 ? LEAT_OK : LEAT_EIO;
}

leat_err leati_manager_submit(leati_manager *manager, const leati_msg_job *job, bool attached,
                              char id[LEATI_ID_SIZE], char *why, size_t why_size)
{
    fixture *f = fixture_of(manager);
    void *copy = NULL;
    if (job->name.size == 7 && !memcmp(job->name.data, "refused", 7)) {
        snprintf(why, why_size, "the graph is refused");
        return LEAT_EGRAPH;
    }
    leat_err err = leat_record_copy(NULL, LEAT_TYPE(leati_msg_job), job, &copy);
    cr_assert(err == LEAT_OK);
    if (f->submitted)
        leat_record_free(NULL, f->submitted);
    f->submitted = copy;
    f->submitted_attached = attached;
    snprintf(id, LEATI_ID_SIZE, "%032d", 7);
    return LEAT_OK;
}

leati_managed_job *leati_manager_find(leati_manager *manager, const char *id, bool *several)
{
    leati_managed_job *found = NULL;
    *several = false;
    for (leati_managed_job *job = manager->jobs; job; job = job->next) {
        if (strlen(id) < 4 || strncmp(job->id, id, strlen(id)) != 0)
            continue;
        *several = found != NULL;
        found = job;
    }
    return *several ? NULL : found;
}

leat_err leati_manager_cancel(leati_manager *manager, leati_managed_job *job)
{
    if (leati_phase_is_final(job->phase))
        return LEAT_ESTATE;
    fixture_of(manager)->cancels++;
    job->phase = LEATI_PHASE_CANCELLING;
    pthread_cond_broadcast(&manager->changed);
    return LEAT_OK;
}

const char *leati_phase_name(leati_job_phase phase)
{
    static const char *const names[] = {"CREATED", "RUNNING",  "RUNNING", "FAILING", "CANCELLING",
                                        "RUNNING", "FINISHED", "FAILED",  "CANCELED"};
    return names[phase];
}

bool leati_phase_is_final(leati_job_phase phase)
{
    return phase >= LEATI_PHASE_FINISHED;
}

size_t leati_job_output(leati_managed_job *job, uint64_t offset, void *to, size_t size,
                        uint64_t *first)
{
    fixture *f = fixture_of(job->manager);
    if (offset < job->output_first)
        offset = job->output_first;
    *first = offset;
    size_t rest = (size_t)(job->output_end - offset);
    size = rest < size ? rest : size;
    for (size_t i = 0; i < size; i++)
        ((char *)to)[i] = f->output[(offset + i) % sizeof f->output];
    return size;
}

void leati_job_output_read(leati_manager *manager, leati_managed_job *job, uint64_t offset)
{
    fixture_of(manager)->read_up_to = offset;
    fixture_of(manager)->reads++;
}

void leati_manager_tell_refused(leati_manager *manager, const char *why)
{
}

// --- its life ---

static const char *fixture_secret; // that the next one has; NULL: none

UNUSED static fixture *start_with(uint64_t artifact_max)
{
    char why[256] = "";
    fixture *f = calloc(1, sizeof *f);
    leati_manager *m = &f->manager;
    snprintf(f->folder, sizeof f->folder, "%s", "rest-XXXXXX");
    cr_assert(mkdtemp(f->folder));
    m->allocator = leati_allocator_or_default(NULL);
    leati_config_init(&m->options.config);
    if (artifact_max)
        m->options.config.value[LEATI_CONFIG_ARTIFACT_MAX] = (int64_t)artifact_max;
    m->options.bind = "127.0.0.1";
    if (fixture_secret) {
        m->auth.secret.size = strlen(fixture_secret);
        memcpy(m->auth.secret.bytes, fixture_secret, m->auth.secret.size);
    }
    snprintf(m->cluster, sizeof m->cluster, "%032d", 1);
    snprintf(m->rpc_address, sizeof m->rpc_address, "127.0.0.1:1");
    pthread_mutex_init(&m->lock, NULL);
    leati_cond_init(&m->changed);
    leat_err err = leati_rest_start(m, &f->rest, why, sizeof why);
    cr_assert(err == LEAT_OK, "%s", why);
    return f;
}

UNUSED static void destroy_job(leati_managed_job *job)
{
    leati_job_graph_destroy(&job->graph);
    leat_record_free(NULL, job->submission);
    for (uint32_t i = 0; i < job->participant_count; i++)
        leati_free(NULL, job->participants[i].accumulators);
    free(job->participants);
    free(job->tasks);
    free(job->first_task);
    free(job);
}

// With the files that the server has put there.
UNUSED static void remove_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    cr_assert(dir);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            cr_assert(unlinkat(dirfd(dir), entry->d_name, 0) == 0);
    closedir(dir);
    cr_assert(rmdir(folder) == 0);
}

UNUSED static void stop(fixture *f)
{
    leati_rest_stop(&f->rest);
    while (f->manager.jobs) {
        leati_managed_job *job = f->manager.jobs;
        f->manager.jobs = job->next;
        destroy_job(job);
    }
    if (f->submitted)
        leat_record_free(NULL, f->submitted);
    remove_folder(f->folder);
    pthread_cond_destroy(&f->manager.changed);
    pthread_mutex_destroy(&f->manager.lock);
    free(f);
}

// --- a client that sends exactly what it is told ---

typedef struct reply {
    int status; // 0: the connection was closed without one
    char *head;
    char *body;
    size_t size;
    bool open; // whether the connection can be used again
} reply;

UNUSED static int dial(const fixture *f)
{
    const char *port = strrchr(f->manager.rest_address, ':') + 1;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(port, NULL, 10))};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

// False: the server does not take any more.
UNUSED static bool send_all(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        at += sent;
        size -= (size_t)sent;
    }
    return true;
}

UNUSED static bool send_text(int fd, const char *text)
{
    return send_all(fd, text, strlen(text));
}

UNUSED static const char *header(const reply *r, const char *name)
{
    static _Thread_local char value[200];
    char wanted[80];
    snprintf(wanted, sizeof wanted, "\n%s: ", name);
    const char *at = r->head ? strcasestr(r->head, wanted) : NULL;
    if (!at)
        return NULL;
    at += strlen(wanted);
    snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\r\n"), at);
    return value;
}

UNUSED static reply receive(int fd, bool has_body)
{
    reply r = {0};
    size_t capacity = 1 << 16, used = 0;
    char *data = malloc(capacity + 1);
    char *end = NULL;
    while (!end) {
        if (used == capacity)
            data = realloc(data, (capacity *= 2) + 1);
        ssize_t got = recv(fd, data + used, capacity - used, 0);
        if (got <= 0) {
            free(data);
            return r;
        }
        used += (size_t)got;
        data[used] = '\0';
        end = strstr(data, "\r\n\r\n");
    }
    size_t head = (size_t)(end - data) + 4;
    r.head = strndup(data, head);
    cr_assert(sscanf(r.head, "HTTP/1.1 %d", &r.status) == 1, "%s", r.head);
    const char *length = header(&r, "Content-Length");
    size_t size = has_body && length ? strtoul(length, NULL, 10) : 0;
    r.body = calloc(1, size + 1);
    r.size = used - head < size ? used - head : size;
    memcpy(r.body, data + head, r.size);
    while (r.size < size) {
        ssize_t got = recv(fd, r.body + r.size, size - r.size, 0);
        cr_assert(got > 0);
        r.size += (size_t)got;
    }
    free(data);
    return r;
}

UNUSED static void done(reply *r)
{
    free(r->head);
    free(r->body);
    *r = (reply){0};
}

// One request on a connection of its own.
UNUSED static reply ask_with(const fixture *f, const char *method, const char *path,
                             const void *body, size_t size)
{
    char head[1024];
    int fd = dial(f);
    snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: here\r\nContent-Length: %zu\r\n\r\n",
             method, path, size);
    send_text(fd, head);
    send_all(fd, body, size);
    reply r = receive(fd, strcmp(method, "HEAD") != 0);
    close(fd);
    return r;
}

UNUSED static reply get(const fixture *f, const char *path)
{
    return ask_with(f, "GET", path, NULL, 0);
}

// The JSON of a reply that must have that status.
UNUSED static json_t *json_of(reply *r, int status)
{
    json_error_t fault;
    cr_assert(r->status == status, "status %d: %s", r->status, r->body ? r->body : "");
    json_t *value = json_loadb(r->body, r->size, 0, &fault);
    cr_assert(value, "%s in: %s", fault.text, r->body);
    done(r);
    return value;
}

UNUSED static const char *text_in(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    cr_assert(text, "%s", name);
    return text;
}

UNUSED static long long number_in(const json_t *object, const char *name)
{
    const json_t *number = json_object_get(object, name);
    cr_assert(json_is_integer(number), "%s", name);
    return json_integer_value(number);
}

// Whether a reply is an error of that status whose sentence has `part` in it.
UNUSED static void expect_error(reply r, int status, const char *part)
{
    json_t *value = json_of(&r, status);
    const char *text = json_string_value(json_array_get(json_object_get(value, "errors"), 0));
    cr_assert(text && strstr(text, part), "\"%s\" is not in \"%s\"", part, text ? text : "");
    json_decref(value);
}

UNUSED static int status_of(reply r)
{
    int status = r.status;
    done(&r);
    return status;
}

// --- jobs ---

UNUSED static leat_err refuse_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    return LEAT_ESTATE;
}

UNUSED static leat_stream *add(leat_env *env, leat_stream *in, const char *kind, const char *name,
                               uint32_t flags)
{
    const leat_type *out = flags & LEATI_NODE_SINK ? NULL : leat_type_scalar(LEAT_STR);
    return leati_graph_add(env, in,
                           &(leati_node_spec){.kind = kind,
                                              .name = name,
                                              .flags = flags,
                                              .out_type = out,
                                              .factory = {.create = refuse_create},
                                              .chaining = LEATI_CHAIN_NEVER});
}

// "in" -> "work" ×2 -> "out", one vertex each.
UNUSED static leati_job_graph *sample_graph(void)
{
    leat_env *env = NULL;
    leati_job_graph *graph = NULL, *copy = NULL;
    uint8_t *bytes = NULL;
    size_t size;
    char why[200];
    cr_assert(leat_env_create(NULL, &env) == LEAT_OK);
    leat_stream *in = add(env, NULL, "source: test", "in", LEATI_NODE_SOURCE);
    leat_stream *work = leat_parallelism(add(env, in, "map", "work", 0), 2);
    add(env, work, "sink", "out", LEATI_NODE_SINK);
    cr_assert(leati_job_graph_create(env, &graph) == LEAT_OK, "%s", leat_env_fault(env, 0));
    cr_assert(leati_job_graph_encode(graph, &bytes, &size) == LEAT_OK);
    cr_assert(leati_job_graph_decode(leati_allocator_or_default(NULL), bytes, size, &copy, why,
                                     sizeof why) == LEAT_OK);
    leati_free(graph->allocator, bytes);
    leati_job_graph_destroy(&graph);
    leat_env_destroy(&env);
    return copy;
}

// A running job with four tasks in two processes; times of its tasks are all 0.
UNUSED static leati_managed_job *add_job(fixture *f, const char *id, const char *name)
{
    leati_managed_job *job = calloc(1, sizeof *job);
    leati_msg_job submission = {.name = {name, strlen(name)}, .argv0 = {"job.so", 6}};
    void *copy = NULL;
    cr_assert(leat_record_copy(NULL, LEAT_TYPE(leati_msg_job), &submission, &copy) == LEAT_OK);
    job->manager = &f->manager;
    snprintf(job->id, sizeof job->id, "%s", id);
    job->name = name;
    job->submission = copy;
    job->phase = LEATI_PHASE_RUNNING;
    job->graph = sample_graph();
    job->slots_needed = 2;
    job->submitted_ms = 1000;
    job->participant_count = 2;
    job->participants = calloc(2, sizeof *job->participants);
    snprintf(job->participants[0].name, 96, "taskmanager 1 (here, pid 11)");
    snprintf(job->participants[1].name, 96, "taskmanager 2 (here, pid 12)");
    job->task_count = 4;
    job->tasks = calloc(4, sizeof *job->tasks);
    job->first_task = calloc(3, sizeof *job->first_task);
    job->first_task[1] = 1;
    job->first_task[2] = 3;
    for (uint32_t i = 0; i < 4; i++) {
        snprintf(job->tasks[i].state, sizeof job->tasks[i].state, "RUNNING");
        job->tasks[i].process = i / 2;
    }
    pthread_mutex_lock(&f->manager.lock);
    job->next = f->manager.jobs;
    f->manager.jobs = job;
    pthread_mutex_unlock(&f->manager.lock);
    return job;
}

#endif
