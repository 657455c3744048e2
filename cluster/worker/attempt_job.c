// SPDX-License-Identifier: Apache-2.0
// The job of an attempt: what the client did to build it, done once more, and its start.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strbuf.h"
#include "cluster/worker/crash.h"
#include "cluster/worker/worker_impl.h"

static leat_err refuse(char *why, size_t why_size, leat_err err)
{
    snprintf(why, why_size, "%s", leat_err_message(err));
    return err;
}

// A NUL-terminated copy that lives as long as the environment.
static char *text_of(leati_attempt *a, leat_str text)
{
    char *copy = leat_env_alloc(a->env, text.size + 1);
    if (copy)
        memcpy(copy, text.data, text.size);
    return copy;
}

// --- files ---

static leat_err ask_for_piece(void *user, leat_str hash, uint64_t offset)
{
    const leati_attempt *a = user;
    return leati_control_send(a->tm, a->session, LEATI_MESSAGE_FETCH, LEAT_TYPE(leati_msg_piece),
                              &(leati_msg_piece){.hash = hash, .offset = offset});
}

static leat_err bring_files(leati_attempt *a, char *why, size_t why_size)
{
    char folder[LEATI_PATH_SIZE];
    snprintf(folder, sizeof folder, "%s/%016" PRIx64, a->tm->attempts_folder, a->id);
    const leati_artifact_asker asker = {.ask = ask_for_piece, .user = a, .stop = &a->stop};
    return leati_job_files_make(&a->files, a->tm->cache, &a->deploy->job, folder, &asker, why,
                                why_size);
}

// --- building the graph ---

static leat_err name_cached_file(void *user, leat_str name)
{
    leati_attempt *a = user;
    char path[LEATI_PATH_SIZE];
    char *text = text_of(a, name);
    if (!text)
        return LEAT_ENOMEM;
    if (!leati_job_files_path(&a->files, true, name, path))
        return LEAT_EINVAL;
    return leati_env_set_cache(a->env, text, path);
}

static leat_err apply_settings(leati_attempt *a)
{
    const leati_msg_job *job = &a->deploy->job;
    const leati_msg_setting *settings = job->settings.items;
    for (size_t i = 0; i < job->settings.count; i++) {
        char *key = text_of(a, settings[i].key), *value = text_of(a, settings[i].value);
        if (!key || !value)
            return LEAT_ENOMEM;
        // A key that this version does not know is a fault of the environment.
        (void)leat_env_set(a->env, key, value);
    }
    char *folder = job->folder.size ? text_of(a, job->folder) : NULL;
    if (job->folder.size && !folder)
        return LEAT_ENOMEM;
    leat_err err = folder ? leati_env_set_folder(a->env, folder) : LEAT_OK;
    return err ? err : leati_job_files_each_cached(&a->files, name_cached_file, a);
}

static leat_err make_arguments(leati_attempt *a)
{
    const leati_msg_job *job = &a->deploy->job;
    const leat_str *args = job->args.items;
    a->argv = leat_env_alloc(a->env, (job->args.count + 2) * sizeof *a->argv);
    if (!a->argv || !(a->argv[0] = text_of(a, job->argv0)))
        return LEAT_ENOMEM;
    for (size_t i = 0; i < job->args.count; i++)
        if (!(a->argv[i + 1] = text_of(a, args[i])))
            return LEAT_ENOMEM;
    return LEAT_OK;
}

static leat_err make_env(leati_attempt *a, char *why, size_t why_size)
{
    const leat_env_options options = {
        .allocator = a->allocator,
        .logger = {.write = leati_attempt_log, .user = a, .level = a->tm->options->logger.level},
        .print = leati_attempt_print,
        .print_user = a,
    };
    leat_err err = leat_env_create(&options, &a->env);
    if (!err)
        err = apply_settings(a);
    if (!err)
        err = make_arguments(a);
    return err ? refuse(why, why_size, err) : LEAT_OK;
}

// The job function has run well where the job was submitted: it is told where it has not.
static leat_err tell_faults(leati_attempt *a, leat_err err, const char *what, char *why,
                            size_t why_size)
{
    leati_strbuf text;
    leati_strbuf_init(&text, a->allocator);
    leat_str name = leati_deploy_self(a->deploy);
    leati_strbuf_printf(&text, "%s on %.*s: ", what, (int)name.size, name.data);
    size_t count = leat_env_fault_count(a->env);
    for (size_t i = 0; i < count; i++)
        leati_strbuf_printf(&text, "%s%s", i ? "; " : "", leat_env_fault(a->env, i));
    if (count == 0)
        leati_strbuf_printf(&text, "%s", leat_err_message(err));
    snprintf(why, why_size, "%s", text.failed ? leat_err_message(err) : leati_strbuf_text(&text));
    leati_strbuf_fini(&text);
    return err;
}

// The graph that was built here is the client's, or the job function depends on something else than
// its arguments.
static leat_err compare(leati_attempt *a, char *why, size_t why_size)
{
    leati_job_graph *built;
    leat_err err = leati_job_graph_create(a->env, &built);
    if (err)
        return tell_faults(a, err, "the job function", why, why_size);
    leat_str digest = a->deploy->job.digest;
    bool same = strlen(built->digest) == digest.size &&
                memcmp(built->digest, digest.data, digest.size) == 0;
    if (!same) {
        char difference[600];
        leati_job_graph_difference(built, a->graph, difference, sizeof difference);
        snprintf(why, why_size,
                 "the job function is not deterministic: it has built another graph on %s than "
                 "where the job was submitted%s%s",
                 a->tm->host, difference[0] ? ": " : "", difference);
        err = LEAT_EGRAPH;
    }
    leati_job_graph_destroy(&built);
    return err;
}

static leat_err build(leati_attempt *a, char *why, size_t why_size)
{
    const leati_msg_job *job = &a->deploy->job;
    leat_err err = make_env(a, why, why_size);
    if (err)
        return err;
    char *name = text_of(a, job->name);
    if (!name)
        return refuse(why, why_size, LEAT_ENOMEM);
    leat_env_set_name(a->env, name);
    a->loaded.file.main(a->env, (int)job->args.count + 1, a->argv);
    leat_env_set_name(a->env, name);
    err = leat_env_check(a->env);
    return err ? tell_faults(a, err, "the job function", why, why_size) : compare(a, why, why_size);
}

// --- starting ---

static const char **texts_of(leati_attempt *a, size_t offset)
{
    const leati_msg_process *processes = a->deploy->processes.items;
    size_t count = a->deploy->processes.count;
    const char **texts = leat_env_alloc(a->env, count * sizeof *texts);
    for (size_t i = 0; texts && i < count; i++) {
        const leat_str *text = (const void *)((const char *)&processes[i] + offset);
        if (!(texts[i] = text_of(a, *text)))
            return NULL;
    }
    return texts;
}

static leat_err start_placed(leati_attempt *a, char *why, size_t why_size)
{
    const leati_msg_deploy *d = a->deploy;
    const char **names = texts_of(a, offsetof(leati_msg_process, name));
    const char **ids = texts_of(a, offsetof(leati_msg_process, id));
    const char **addresses = texts_of(a, offsetof(leati_msg_process, address));
    if (!names || !ids || !addresses)
        return refuse(why, why_size, LEAT_ENOMEM);
    const leati_placement placement = {
        .attempt = a->id,
        .number = d->number,
        .self = d->self,
        .process_of = d->process_of.items,
        .transport = a->tm->exchange,
        .link = {.process_count = (uint32_t)d->processes.count,
                 .self = d->self,
                 .names = names,
                 .ids = ids,
                 .addresses = addresses},
        .hooks = &leati_attempt_hooks,
        .user = a,
    };
    leat_job *job;
    leat_err err = leati_start_placed(a->tm->runtime, a->env, &placement, &job);
    if (err)
        return tell_faults(a, err, "the start", why, why_size);
    pthread_mutex_lock(&a->lock);
    a->job = job;
    if (a->cancelled) {
        leat_job_cancel(job);
        leati_attempt_stop_output(a);
    }
    leati_attempt_ask_early_locked(a);
    pthread_mutex_unlock(&a->lock);
    return LEAT_OK;
}

leat_err leati_attempt_start(leati_attempt *a, char *why, size_t why_size)
{
    leat_err err = bring_files(a, why, why_size);
    if (err)
        return err;
    // From here on code of the user's runs: constructors, then the job function.
    leati_crash_enter(a->id, "the job function");
    err = leati_job_load(&a->loaded, &a->tm->libraries, &a->files, why, why_size);
    if (!err)
        err = build(a, why, why_size);
    leati_crash_leave();
    if (!err && atomic_load_explicit(&a->stop, memory_order_acquire))
        err = LEAT_ECANCELLED;
    return err ? err : start_placed(a, why, why_size);
}

void leati_attempt_unload(leati_attempt *a)
{
    leat_env_destroy(&a->env);
    a->argv = NULL;
    leati_crash_enter(a->id, "unloading the job file");
    bool gone = leati_job_unload(&a->loaded);
    leati_crash_leave();
    if (!gone)
        leati_taskmanager_log(a->tm, LEAT_LOG_WARN,
                              "job %.*s: its job file could not be unloaded and stays in memory",
                              (int)a->deploy->job_id.size, a->deploy->job_id.data);
    leati_job_files_remove(&a->files);
}
