// SPDX-License-Identifier: Apache-2.0
// A task manager as a process of its own, for tests that let user code kill it:
//
//     worker_process MANAGER FOLDER INDEX [KEY=VALUE]…
//
// Its log goes to standard error.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "cluster/module.h"

static void log_line(void *user, leat_log_level level, const char *line)
{
    (void)user;
    fprintf(stderr, "%d %s\n", (int)level, line);
}

static bool set(leati_config *config, char *setting)
{
    char why[200] = "no value", *value = strchr(setting, '=');
    if (value) {
        *value++ = '\0';
        if (leati_config_set(config, setting, value, why, sizeof why) == LEAT_OK)
            return true;
    }
    fprintf(stderr, "%s: %s\n", setting, why);
    return false;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    leati_worker_options options = {
        .manager = argv[1],
        .bind = "127.0.0.1",
        .folder = argv[2],
        .slots = 4,
        .index = (uint32_t)strtoul(argv[3], NULL, 10),
        .logger = {.write = log_line, .level = LEAT_LOG_INFO},
    };
    leati_config_init(&options.config);
    for (int i = 4; i < argc; i++)
        if (!set(&options.config, argv[i]))
            return 2;
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    char why[1200] = "";
    int status = leati_cluster_module_0.worker(&options, why, sizeof why);
    if (status)
        fprintf(stderr, "worker_process: %s\n", why);
    return status;
}
