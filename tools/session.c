// SPDX-License-Identifier: Apache-2.0
#include "tools/session.h"

#include <stdio.h>
#include <string.h>

static const char *last_fault(const leat_env *env, leat_err err)
{
    size_t count = leat_env_fault_count(env);
    return count ? leat_env_fault(env, count - 1) : leat_err_message(err);
}

// Wrong settings are mistakes of the command line, not of the job.
static leati_exit apply_settings(leati_session *session)
{
    const leati_options *o = session->options;
    leati_exit status = LEATI_EXIT_OK;
    for (size_t i = 0; i < o->setting_count; i++) {
        const leati_setting *setting = &o->settings[i];
        leat_err err = leat_env_set(session->env, setting->key, setting->value);
        if (err == LEAT_OK)
            continue;
        const char *why = last_fault(session->env, err);
        if (!strcmp(setting->option, "-D"))
            fprintf(stderr, "leat: -D %s=%s: %s; `leat config` lists the keys\n", setting->key,
                    setting->value, why);
        else
            fprintf(stderr, "leat: %s %s: %s\n", setting->option, setting->value, why);
        status = LEATI_EXIT_USAGE;
    }
    return status;
}

// Until the job function or --name says otherwise, a job is called as its file is.
static void set_default_name(leati_session *session)
{
    char name[128];
    const char *slash = strrchr(session->options->job, '/');
    snprintf(name, sizeof name, "%s", slash ? slash + 1 : session->options->job);
    size_t size = strlen(name);
    if (size > 3 && !strcmp(name + size - 3, ".so"))
        name[size - 3] = '\0';
    leat_env_set_name(session->env, name);
}

leati_exit leati_session_refuse(const leati_session *session, leat_err err)
{
    size_t count = leat_env_fault_count(session->env);
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "leat: %s: %s\n", session->options->job, leat_env_fault(session->env, i));
    if (count == 0)
        fprintf(stderr, "leat: %s: %s\n", session->options->job, leat_err_message(err));
    return LEATI_EXIT_REFUSED;
}

static leati_exit build(leati_session *session)
{
    const leati_options *o = session->options;
    char why[1024];
    if (!leati_job_file_open(o->job, &session->file, why, sizeof why)) {
        fprintf(stderr, "leat: %s %s\n", o->job, why);
        return LEATI_EXIT_REFUSED;
    }
    set_default_name(session);
    session->file.main(session->env, o->job_argc, o->job_argv);
    if (o->name)
        leat_env_set_name(session->env, o->name);
    leat_err err = leat_env_check(session->env);
    return err == LEAT_OK ? LEATI_EXIT_OK : leati_session_refuse(session, err);
}

leati_exit leati_session_open(leati_session *session, const leati_options *options)
{
    *session = (leati_session){.options = options};
    leati_console_init(&session->console, options->quiet);
    leat_env_options env_options = {0};
    leati_console_hooks(&session->console, &env_options);
    leat_err err = leat_env_create(&env_options, &session->env);
    if (err != LEAT_OK) {
        fprintf(stderr, "leat: %s\n", leat_err_message(err));
        return LEATI_EXIT_REFUSED;
    }
    leati_exit status = apply_settings(session);
    return status == LEATI_EXIT_OK ? build(session) : status;
}

void leati_session_close(leati_session *session)
{
    if (session->env)
        leat_env_destroy(&session->env);
    leati_job_file_close(&session->file);
    leati_console_fini(&session->console);
}
