// SPDX-License-Identifier: Apache-2.0
#include "tools/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config_file.h"
#include "tools/style.h"

const leati_entry leati_settings_variables[] = {
    {"LEAT_CONFIG", "the configuration file to read, unless --config names one"},
    {"LEAT_LOG", "what is logged to standard error: error, warn (default), info or debug"},
    {"LEAT_INCLUDE", "the folder with the headers, for compiling jobs (it holds leat/leat.h)"},
    {"LEAT_JOBMANAGER",
     "the job manager that client verbs talk to, HOST:PORT, unless -m names one"},
    {"LEAT_CLUSTER", "which local cluster is meant, unless --cluster names one"},
    {"LEAT_SECRET_FILE", "the file with the secret of the cluster, unless --secret-file names one"},
    {"NO_COLOR", "if it is not empty, nothing is coloured"},
    {"CC", "the C compiler (default: cc)"},
    {"CXX", "the C++ compiler (default: c++)"},
    {"TMPDIR", "where `leat run FILE.c` compiles (default: /tmp)"},
    {"MALLOC_CONF", "settings of jemalloc, which win over the program's own"},
    {NULL, NULL},
};

// What else begins with LEAT_: the developer's script, the benches, tests; and whatever jobs read
// themselves.
static const char *const not_settings[] = {
    "LEAT_CONFIG",     "LEAT_LOG",     "LEAT_INCLUDE", "LEAT_BUILD_DIR",   "LEAT_NO_ASLR",
    "LEAT_JOBMANAGER", "LEAT_CLUSTER", "LEAT_COMMIT",  "LEAT_SECRET_FILE", "LEAT_BENCH_",
    "LEAT_TEST_",      "LEAT_JOB_",    NULL,
};

// --- the file ---

// "FOLDER/leat/leat.yaml", to be freed, if there is such a file or if one cannot tell; else NULL.
static char *file_in(const char *folder, const char *below)
{
    char *path = NULL;
    // XDG says that relative names are to be passed over.
    if (!folder || folder[0] != '/' || asprintf(&path, "%s%s/leat/leat.yaml", folder, below) < 0)
        return NULL;
    if (access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR))
        return path;
    free(path);
    return NULL;
}

static char *find_file(const leati_options *options)
{
    const char *named = options->config;
    if (!named)
        named = getenv("LEAT_CONFIG");
    // Named files must be there, the usual ones need not.
    if (options->config || (named && *named))
        return strdup(named);
    const char *home = getenv("XDG_CONFIG_HOME");
    char *path = home && *home ? file_in(home, "") : file_in(getenv("HOME"), "/.config");
    return path ? path : file_in("/etc", "");
}

// --- the layers ---

static void apply_options(leati_config_layers *layers, const leati_options *options)
{
    for (size_t i = 0; i < options->setting_count; i++) {
        const leati_setting *s = &options->settings[i];
        bool named = !strcmp(s->option, "-D");
        char shown[300];
        snprintf(shown, sizeof shown, "%s %.100s%s%.100s", s->option, named ? s->key : "",
                 named ? "=" : "", s->value);
        leati_config_layers_set(layers, s->key, s->value, s->option, shown);
    }
}

static leati_exit tell_faults(const leati_config_layers *layers, leat_err err)
{
    if (err == LEAT_ENOMEM) {
        leati_complain(NULL, "%s", leat_err_message(err));
        return LEATI_EXIT_REFUSED;
    }
    for (const char *at = layers->faults.data, *end; *at; at = end + 1) {
        end = strchr(at, '\n');
        leati_complain(NULL, "%.*s", (int)(end - at), at);
    }
    leati_complain(NULL, "`leat config` lists the settings, `leat help config` says where they "
                         "may stand");
    return LEATI_EXIT_USAGE;
}

leati_exit leati_settings_read(leati_settings *settings, const leati_options *options)
{
    leati_config_layers *layers = &settings->layers;
    leati_config_layers_init(layers, NULL);
    settings->file = find_file(options);
    if (settings->file)
        leati_config_file_read(layers, settings->file);
    leati_config_layers_environment(layers, (const char *const *)environ, not_settings);
    apply_options(layers, options);
    leat_err err = leati_config_layers_check(layers);
    return err == LEAT_OK ? LEATI_EXIT_OK : tell_faults(layers, err);
}

void leati_settings_fini(leati_settings *settings)
{
    leati_config_layers_fini(&settings->layers);
    free(settings->file);
    *settings = (leati_settings){0};
}
