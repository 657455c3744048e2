// SPDX-License-Identifier: Apache-2.0
#include "tools/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leat/error.h"
#include "tools/style.h"

leati_exit leati_source_compile(leati_source *source, const char *path)
{
    const char *place = getenv("TMPDIR");
    *source = (leati_source){0};
    char *folder = NULL;
    if (asprintf(&folder, "%s/leat-XXXXXX", place && *place ? place : "/tmp") < 0) {
        leati_complain(NULL, "%s", leat_err_message(LEAT_ENOMEM));
        return LEATI_EXIT_REFUSED;
    }
    if (!mkdtemp(folder)) {
        leati_complain(NULL, "cannot make a folder like %s to compile in: %s; set TMPDIR", folder,
                       strerror(errno));
        free(folder);
        return LEATI_EXIT_REFUSED;
    }
    source->folder = folder;
    if (asprintf(&source->made, "%s/job.so", folder) < 0) {
        source->made = NULL;
        leati_complain(NULL, "%s", leat_err_message(LEAT_ENOMEM));
        return LEATI_EXIT_REFUSED;
    }
    return leati_compile(&(leati_compilation){.source = path, .output = source->made});
}

void leati_source_remove(leati_source *source)
{
    if (source->made)
        (void)unlink(source->made);
    if (source->folder)
        (void)rmdir(source->folder);
    free(source->made);
    free(source->folder);
    *source = (leati_source){0};
}
