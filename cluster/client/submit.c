// SPDX-License-Identifier: Apache-2.0
// Submitting a job: its graph, its files as far as they are not there yet, and then the job.
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/config.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "cluster/client/client_impl.h"
#include "cluster/client/files.h"
#include "graph/job_graph.h"
#include "leat/leat.h"

enum { PAUSE_MS = 200, PAUSE_MOST_MS = 2000 };

typedef struct submitting {
    leati_client *client;
    const leati_submission *submission;
    leati_job_graph *graph;
    uint8_t *encoded;
    size_t encoded_size;
    char graph_hash[LEATI_HASH_SIZE];
    leati_sent_files job, libraries, cached;
    json_t *body;
    leati_strbuf text; // of the body
    size_t sent;       // files, since we have looked last at what is missing
    int64_t end_ns;    // until when room is waited for; 0: there has been room so far
    int64_t pause_ms;  // before the next try
} submitting;

// --- what is to be sent ---

static leat_err no_memory(submitting *s)
{
    return leati_client_fail(s->client, LEAT_ENOMEM, "%s", leat_err_message(LEAT_ENOMEM));
}

static leat_err encode_graph(submitting *s)
{
    leat_err err = leati_job_graph_create(s->submission->env, &s->graph);
    if (err && leat_env_fault_count(s->submission->env))
        return LEAT_EGRAPH;
    if (!err)
        err = leati_job_graph_encode(s->graph, &s->encoded, &s->encoded_size);
    if (err)
        return leati_client_fail(s->client, err, "the graph: %s", leat_err_message(err));
    leati_hash_bytes(s->encoded, s->encoded_size, s->graph_hash);
    return LEAT_OK;
}

// A file of this machine is at fault, not the job manager.
static leat_err refuse_file(submitting *s, leat_err err, const char *what, const char *name,
                            const char *why)
{
    return leati_client_fail(s->client, err == LEAT_EIO ? LEAT_EINVAL : err, "%s%s%s%s: %s", what,
                             name ? " \"" : "", name ? name : "", name ? "\"" : "", why);
}

static leat_err add_cached(submitting *s)
{
    leat_env *env = s->submission->env;
    for (size_t i = 0; i < leati_env_cached_count(env); i++) {
        const leati_cached_file *file = leati_env_cached_at(env, i);
        leat_err err = leati_sent_files_add_tree(&s->cached, file->name, file->found);
        if (err)
            return refuse_file(s, err, "the cached file", file->name, s->cached.why);
    }
    return LEAT_OK;
}

static leat_err find_files(submitting *s)
{
    const leati_submission *sub = s->submission;
    leat_err err = leati_sent_files_add(&s->job, sub->name, sub->job_file);
    if (err)
        return refuse_file(s, err, "the job file", NULL, s->job.why);
    err = leati_sent_files_add_libraries(&s->libraries, sub->job_file);
    if (err)
        return refuse_file(s, err, "a library of the job", NULL, s->libraries.why);
    return add_cached(s);
}

// --- sending ---

// Whether the job manager has it; LEAT_ENOENT when it has not.
static leat_err ask_for(submitting *s, const char *path)
{
    leat_err err =
        leati_client_exchange(s->client, &(leati_client_request){.method = "HEAD", .path = path});
    return err ? err : leati_client_judge(s->client);
}

static leat_err put(submitting *s, const leati_client_request *request, const char *what)
{
    leat_err err = leati_client_exchange(s->client, request);
    if (!err)
        err = leati_client_judge(s->client);
    if (err && s->client->answer.status) {
        char why[LEATI_CLIENT_WHY_SIZE];
        snprintf(why, sizeof why, "%s", s->client->why);
        (void)leati_client_fail(s->client, err, "%s was not taken: %s", what, why);
    }
    return err;
}

// --- room for the files ---

static int by_hash(const void *a, const void *b)
{
    const leati_sent_file *const *left = a, *const *right = b;
    return strcmp((*left)->hash, (*right)->hash);
}

// How many bytes of the store the job takes; files of the same bytes are one there.
static leat_err sum_files(submitting *s, uint64_t *sum)
{
    const leati_sent_files *const lists[] = {&s->job, &s->libraries, &s->cached};
    size_t all = s->job.count + s->libraries.count + s->cached.count, count = 0;
    const leati_sent_file **files = leati_calloc(NULL, all, sizeof *files);
    if (!files)
        return no_memory(s);
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
        for (size_t i = 0; i < lists[l]->count; i++)
            files[count++] = &lists[l]->items[i];
    qsort(files, count, sizeof *files, by_hash);
    *sum = s->encoded_size;
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(files[i]->hash, files[i - 1]->hash) != 0)
            *sum += files[i]->size;
    leati_free(NULL, files);
    return LEAT_OK;
}

// How many bytes the job manager's store takes.
static leat_err ask_for_limit(submitting *s, uint64_t *limit)
{
    char why[200];
    leati_config config;
    const char *name = leati_config_describe(LEATI_CONFIG_ARTIFACT_STORE)->name;
    leat_err err = leati_client_exchange(
        s->client, &(leati_client_request){.method = "GET", .path = "/config"});
    if (!err)
        err = leati_client_judge(s->client);
    if (err)
        return err;
    json_t *answer = json_loadb(s->client->answer.body, s->client->answer.size, 0, NULL);
    const json_t *settings = json_object_get(answer, "settings");
    leati_config_init(&config);
    for (size_t i = 0; !err && i < json_array_size(settings); i++) {
        const json_t *setting = json_array_get(settings, i);
        const char *key = json_string_value(json_object_get(setting, "key"));
        const char *value = json_string_value(json_object_get(setting, "value"));
        if (key && value && !strcmp(key, name))
            err = leati_config_set(&config, key, value, why, sizeof why);
    }
    json_decref(answer);
    *limit = (uint64_t)leati_config_get(&config, LEATI_CONFIG_ARTIFACT_STORE);
    return err ? leati_client_fail(s->client, err, "%s", why) : LEAT_OK;
}

// Whether waiting for room can help at all.
static leat_err check_total(submitting *s)
{
    uint64_t sum = 0, limit = 0;
    leat_err err = sum_files(s, &sum);
    if (!err)
        err = ask_for_limit(s, &limit);
    if (!err && sum > limit)
        err = leati_client_fail(s->client, LEAT_ENOBUFS,
                                "the files of the job have %" PRIu64 " bytes together, and the job "
                                "manager takes %" PRIu64 " (cluster.artifact-store)",
                                sum, limit);
    return err;
}

// After a refusal for want of room, or because a file has made room for others meanwhile: waits a
// little, so that jobs can end. Gives the refusal back when there is no point in another try.
static leat_err wait_for_room(submitting *s, leat_err refusal)
{
    char why[LEATI_CLIENT_WHY_SIZE];
    int64_t now_ns = leati_clock_ns();
    if (s->end_ns && now_ns >= s->end_ns)
        return refusal;
    if (!s->end_ns) {
        s->end_ns = now_ns + LEATI_CLIENT_ROOM_MS * INT64_C(1000000);
        // Clients that have met here are not to meet again and again.
        s->pause_ms = PAUSE_MS + getpid() % PAUSE_MS;
        memcpy(why, s->client->why, sizeof why);
        leat_err err = check_total(s);
        if (err)
            return err;
        memcpy(s->client->why, why, sizeof why);
    }
    const leati_submission *sub = s->submission;
    (void)nanosleep(
        &(struct timespec){.tv_sec = s->pause_ms / 1000, .tv_nsec = s->pause_ms % 1000 * 1000000},
        NULL);
    s->pause_ms = 2 * s->pause_ms < PAUSE_MOST_MS ? 2 * s->pause_ms : PAUSE_MOST_MS;
    if (sub->unwanted && sub->unwanted(sub->user))
        return leati_client_fail(s->client, LEAT_ECANCELLED, "%s",
                                 leat_err_message(LEAT_ECANCELLED));
    return LEAT_OK;
}

static leat_err put_patiently(submitting *s, const leati_client_request *request, const char *what)
{
    leat_err err;
    while ((err = put(s, request, what)) == LEAT_ENOBUFS)
        if ((err = wait_for_room(s, err)))
            return err;
    s->sent++;
    return err;
}

// --- all of them ---

static leat_err send_file(submitting *s, const leati_sent_file *file)
{
    char path[80];
    snprintf(path, sizeof path, "/artifacts/%s", file->hash);
    leat_err err = ask_for(s, path);
    if (err != LEAT_ENOENT)
        return err;
    return put_patiently(
        s,
        &(leati_client_request){
            .method = "PUT", .path = path, .file = file->path, .file_size = file->size},
        file->path);
}

static leat_err send_files(submitting *s, const leati_sent_files *files)
{
    leat_err err = LEAT_OK;
    for (size_t i = 0; i < files->count && !err; i++)
        err = send_file(s, &files->items[i]);
    return err;
}

static leat_err send_graph(submitting *s)
{
    char path[80];
    snprintf(path, sizeof path, "/artifacts/%s", s->graph_hash);
    leat_err err = ask_for(s, path);
    if (err != LEAT_ENOENT)
        return err;
    return put_patiently(s,
                         &(leati_client_request){.method = "PUT",
                                                 .path = path,
                                                 .bytes = (const char *)s->encoded,
                                                 .size = s->encoded_size},
                         "the job's graph");
}

static leat_err send_all(submitting *s)
{
    leat_err err = send_files(s, &s->job);
    if (!err)
        err = send_files(s, &s->libraries);
    if (!err)
        err = send_files(s, &s->cached);
    return err ? err : send_graph(s);
}

// --- the job ---

// JSON is UTF-8, and so is all that a job is told: names, arguments, paths.
static json_t *string_of(submitting *s, const char *text, const char *what)
{
    json_t *string = json_string(text);
    if (!string && !s->client->why[0])
        (void)leati_client_fail(s->client, LEAT_EINVAL, "%s is not UTF-8, and cannot be sent",
                                what);
    return string;
}

static json_t *describe_file(submitting *s, const leati_sent_file *file)
{
    json_t *name = string_of(s, file->name, "the name of a file of the job");
    return name ? json_pack("{s:o, s:s, s:I, s:b}", "name", name, "hash", file->hash, "size",
                            (json_int_t)file->size, "executable", file->executable)
                : NULL;
}

static json_t *describe_files(submitting *s, const leati_sent_files *files)
{
    json_t *list = json_array();
    for (size_t i = 0; i < files->count; i++)
        if (json_array_append_new(list, describe_file(s, &files->items[i])))
            goto failed;
    return list;
failed:
    json_decref(list);
    return NULL;
}

static json_t *describe_texts(submitting *s, char *const *texts, size_t count, const char *what)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        char which[80];
        snprintf(which, sizeof which, "%s %zu", what, i + 1);
        if (json_array_append_new(list, string_of(s, texts[i], which))) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *describe_settings(submitting *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->submission->setting_count; i++) {
        const leati_client_pair *pair = &s->submission->settings[i];
        if (json_array_append_new(
                list, json_pack("{s:s, s:s}", "key", pair->key, "value", pair->value))) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static bool set(submitting *s, const char *name, json_t *value)
{
    return json_object_set_new(s->body, name, value) == 0; // not when the value is NULL
}

static int take_text(const char *text, size_t size, void *user)
{
    leati_strbuf *to = user;
    leati_strbuf_append(to, text, size);
    return to->failed ? -1 : 0;
}

static leat_err describe(submitting *s)
{
    const leati_submission *sub = s->submission;
    char folder[PATH_MAX];
    if (!getcwd(folder, sizeof folder))
        return leati_client_fail(s->client, LEAT_EIO, "the current folder: %s", strerror(errno));
    s->client->why[0] = '\0';
    s->body = json_object();
    bool good =
        set(s, "name", string_of(s, s->graph->name, "the job's name")) &&
        set(s, "attached", json_boolean(sub->attached)) &&
        set(s, "job_file", describe_file(s, &s->job.items[0])) &&
        set(s, "libraries", describe_files(s, &s->libraries)) &&
        set(s, "cached", describe_files(s, &s->cached)) &&
        set(s, "empty_dirs",
            describe_texts(s, s->cached.empty_dirs, s->cached.empty_count, "empty folder")) &&
        set(s, "args", describe_texts(s, sub->args, sub->arg_count, "argument")) &&
        set(s, "settings", describe_settings(s)) &&
        set(s, "folder", string_of(s, folder, "the path of the current folder")) &&
        set(s, "argv0", string_of(s, sub->argv0, "the name of the job file")) &&
        set(s, "digest", json_string(s->graph->digest)) &&
        set(s, "graph", json_string(s->graph_hash));
    if (good && json_dump_callback(s->body, take_text, &s->text, JSON_COMPACT) == 0)
        return LEAT_OK;
    return s->client->why[0] ? LEAT_EINVAL : no_memory(s);
}

static leat_err create_job(submitting *s, char id[LEATI_CLIENT_ID_SIZE])
{
    if (s->submission->committing)
        s->submission->committing(s->submission->user);
    leat_err err = leati_client_exchange(s->client, &(leati_client_request){
                                                        .method = "POST",
                                                        .path = "/jobs",
                                                        .bytes = s->text.data,
                                                        .size = s->text.size,
                                                    });
    if (!err)
        err = leati_client_judge(s->client);
    if (err)
        return err;
    json_t *answer = json_loadb(s->client->answer.body, s->client->answer.size, 0, NULL);
    const char *got = json_string_value(json_object_get(answer, "id"));
    if (got && strlen(got) == LEATI_CLIENT_ID_SIZE - 1)
        memcpy(id, got, LEATI_CLIENT_ID_SIZE);
    else
        err = leati_client_fail(s->client, LEAT_EIO, "what answers at %s is no job manager",
                                s->client->address);
    json_decref(answer);
    return err;
}

// A job manager of another version would misread what it is sent, and say so less clearly.
static leat_err check_version(submitting *s)
{
    leat_err err = leati_client_exchange(
        s->client, &(leati_client_request){.method = "GET", .path = "/overview"});
    if (!err)
        err = leati_client_judge(s->client);
    if (err)
        return err;
    json_t *answer = json_loadb(s->client->answer.body, s->client->answer.size, 0, NULL);
    const char *theirs = json_string_value(json_object_get(answer, "version"));
    if (!theirs)
        err = leati_client_fail(s->client, LEAT_EIO, "what answers at %s is no job manager",
                                s->client->address);
    else if (strcmp(theirs, leat_version()) != 0)
        err = leati_client_fail(s->client, LEAT_EABI,
                                "the job manager at %s is Leat %s, and this is Leat %s",
                                s->client->address, theirs, leat_version());
    json_decref(answer);
    return err;
}

// The job manager makes room for others: what it had a moment ago may be gone when the job comes,
// which is a conflict. There are others, so that it is only tried again while files are missing, or
// could have been when the job came, as somebody else may have sent them since.
static leat_err send_and_create(submitting *s, char id[LEATI_CLIENT_ID_SIZE])
{
    enum { WHOLE_MOST = 2 };
    int whole = 0; // how often nothing was missing
    leat_err err = LEAT_OK;
    while (!err) {
        s->sent = 0;
        err = send_all(s);
        if (!err)
            err = create_job(s, id);
        if (err != LEAT_ESTATE)
            return err;
        whole += s->sent == 0;
        if (whole < WHOLE_MOST)
            err = wait_for_room(s, err);
    }
    return err;
}

static leat_err run(submitting *s, char id[LEATI_CLIENT_ID_SIZE])
{
    leat_err err = check_version(s);
    if (!err)
        err = encode_graph(s);
    if (!err)
        err = find_files(s);
    if (!err)
        err = describe(s);
    return err ? err : send_and_create(s, id);
}

leat_err leati_client_submit(leati_client *client, const leati_submission *submission,
                             char id[LEATI_CLIENT_ID_SIZE])
{
    submitting s = {.client = client, .submission = submission};
    leati_strbuf_init(&s.text, NULL);
    leat_err err = run(&s, id);
    if (s.encoded)
        leati_free(s.graph->allocator, s.encoded);
    if (s.graph)
        leati_job_graph_destroy(&s.graph);
    leati_sent_files_fini(&s.job);
    leati_sent_files_fini(&s.libraries);
    leati_sent_files_fini(&s.cached);
    json_decref(s.body);
    leati_strbuf_fini(&s.text);
    return err;
}
