// SPDX-License-Identifier: Apache-2.0
#include "tools/session.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/stream_graph.h"
#include "tools/style.h"

static const char *job_name(const leati_session *session)
{
    return session->options->operands[0];
}

// Before the job function is called, so that what it sets itself wins.
static leat_err apply_settings(leati_session *session)
{
    const leati_config_layers *layers = &session->settings.layers;
    for (int i = 0; i < LEATI_CONFIG_COUNT; i++) {
        leati_config_key key = (leati_config_key)i;
        char value[64];
        if (!layers->where[key])
            continue;
        leati_config_print(key, leati_config_get(&layers->config, key), value, sizeof value);
        leat_err err = leat_env_set(session->env, leati_config_describe(key)->name, value);
        if (err != LEAT_OK)
            return err;
    }
    return LEAT_OK;
}

// Until the job function or --name says otherwise, a job is called as its file is.
static void set_default_name(leati_session *session)
{
    char name[128];
    const char *slash = strrchr(job_name(session), '/');
    const char *base = slash ? slash + 1 : job_name(session);
    const char *ending = strrchr(base, '.');
    size_t size = strlen(base);
    if (ending && ending > base && (!strcmp(ending, ".so") || leati_is_source(base)))
        size = (size_t)(ending - base);
    if (size >= sizeof name)
        size = sizeof name - 1;
    memcpy(name, base, size);
    name[size] = '\0';
    leat_env_set_name(session->env, name);
}

leati_exit leati_session_refuse(const leati_session *session, leat_err err)
{
    size_t count = leat_env_fault_count(session->env);
    for (size_t i = 0; i < count; i++)
        leati_complain(NULL, "%s: %s", job_name(session), leat_env_fault(session->env, i));
    if (count == 0)
        leati_complain(NULL, "%s: %s", job_name(session), leat_err_message(err));
    return LEATI_EXIT_REFUSED;
}

static bool load(leati_session *session)
{
    char why[1024];
    const char *path = session->source.made ? session->source.made : job_name(session);
    bool good = leati_job_file_open(path, &session->file, why, sizeof why);
    if (!good)
        leati_complain(NULL, "%s %s", job_name(session), why);
    // It stays loaded.
    if (!session->keep_source)
        leati_source_remove(&session->source);
    return good;
}

// Files that the user names; the others are the job function's own.
static leat_err apply_files(leati_session *session)
{
    const leati_options *o = session->options;
    leat_err err = LEAT_OK;
    for (size_t i = 0; i < o->file_count && err == LEAT_OK; i++)
        err = leati_env_set_cache(session->env, o->files[i].name, o->files[i].path);
    return err;
}

static leati_exit build(leati_session *session)
{
    const leati_options *o = session->options;
    if (!load(session))
        return LEATI_EXIT_REFUSED;
    leat_err err = apply_files(session);
    if (err != LEAT_OK)
        return leati_session_refuse(session, err);
    set_default_name(session);
    session->file.main(session->env, (int)o->rest_count + 1, session->argv);
    if (o->name)
        leat_env_set_name(session->env, o->name);
    err = leat_env_check(session->env);
    return err == LEAT_OK ? LEATI_EXIT_OK : leati_session_refuse(session, err);
}

leati_exit leati_session_prepare(leati_session *session, const leati_options *options)
{
    *session = (leati_session){.options = options};
    leati_exit status = leati_settings_read(&session->settings, options);
    if (status == LEATI_EXIT_OK && leati_is_source(job_name(session)))
        status = leati_source_compile(&session->source, job_name(session));
    return status;
}

// argv as a main function gets it, NULL at its end.
static bool make_arguments(leati_session *session)
{
    const leati_options *o = session->options;
    session->argv = leati_calloc(NULL, o->rest_count + 2, sizeof *session->argv);
    if (!session->argv)
        return false;
    session->argv[0] = o->operands[0];
    for (size_t i = 0; i < o->rest_count; i++)
        session->argv[i + 1] = o->rest[i];
    return true;
}

leati_exit leati_session_open(leati_session *session)
{
    leati_console_init(&session->console, session->options->quiet);
    leat_env_options env_options = {0};
    leati_console_hooks(&session->console, &env_options);
    leat_err err = leat_env_create(&env_options, &session->env);
    if (err == LEAT_OK)
        err = make_arguments(session) ? apply_settings(session) : LEAT_ENOMEM;
    if (err != LEAT_OK) {
        leati_complain(NULL, "%s", leat_err_message(err));
        return LEATI_EXIT_REFUSED;
    }
    return build(session);
}

void leati_session_close(leati_session *session)
{
    if (session->env) {
        leat_env_destroy(&session->env);
        leati_console_fini(&session->console);
    }
    leati_job_file_close(&session->file);
    leati_source_remove(&session->source);
    leati_settings_fini(&session->settings);
    leati_free(NULL, session->argv);
}
