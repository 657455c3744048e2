// SPDX-License-Identifier: Apache-2.0
// The `leat` program: finds the verb and runs it.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "tools/style.h"
#include "tools/verbs.h"

static const leati_verb *const verbs[] = {
    &leati_verb_run,     &leati_verb_plan,       &leati_verb_new,         &leati_verb_build,
    &leati_verb_cluster, &leati_verb_submit,     &leati_verb_list,        &leati_verb_status,
    &leati_verb_why,     &leati_verb_cancel,     &leati_verb_logs,        &leati_verb_metrics,
    &leati_verb_config,  &leati_verb_jobmanager, &leati_verb_taskmanager, &leati_verb_version,
    &leati_verb_help,    &leati_verb_complete,
};
enum { VERB_COUNT = sizeof verbs / sizeof *verbs };

const leati_verb *leati_verb_at(size_t index)
{
    return index < VERB_COUNT ? verbs[index] : NULL;
}

const leati_verb *leati_verb_find(const char *name)
{
    const char *names[VERB_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (!strcmp(name, verbs[i]->name))
            return verbs[i];
        if (!verbs[i]->hidden)
            names[count++] = verbs[i]->name;
    }
    const char *nearest = leati_nearest(name, names, count);
    if (name[0] == '-')
        leati_complain(NULL,
                       "%s stands where a verb is wanted: `leat VERB %s`; `leat help` lists them",
                       name, name);
    else if (nearest)
        leati_complain(NULL, "there is no verb \"%s\"; did you mean \"%s\"?", name, nearest);
    else
        leati_complain(NULL, "there is no verb \"%s\"; `leat help` lists them", name);
    return NULL;
}

int leati_print_and_check(const char *text)
{
    if (fputs(text, stdout) >= 0 && fflush(stdout) == 0)
        return LEATI_EXIT_OK;
    leati_complain(NULL, "cannot write to standard output: %s", strerror(errno));
    return LEATI_EXIT_FAILED;
}

// A descriptor that the caller has closed would be given to the next file that is opened, and a
// job's results might end in it. It is filled with one that can be used in the wrong direction
// only, so that the job gets the error it would have got.
static void fill_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    fill_standard_descriptors();
    if (argc < 2) {
        leati_complain(NULL, "a verb is missing, `leat run JOB.so` say; `leat help` lists them");
        return LEATI_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h"))
        name = "help";
    if (!strcmp(name, "--version") || !strcmp(name, "-V"))
        name = "version";
    const leati_verb *verb = leati_verb_find(name);
    if (!verb)
        return LEATI_EXIT_USAGE;
    return verb->run(verb, argc - 1, argv + 1);
}
