// SPDX-License-Identifier: Apache-2.0
// Job files that are compiled for one run: `leat run FILE.c`. Compiling anew each time takes less
// than finding out whether an older one still fits all headers would be worth.
#ifndef LEATI_TOOLS_SOURCE_H
#define LEATI_TOOLS_SOURCE_H

#include "tools/compiler.h"

typedef struct leati_source {
    char *folder, *made; // NULL: nothing was made
} leati_source;

// Compiles into a fresh folder. The user has been told why when the result is not LEATI_EXIT_OK.
leati_exit leati_source_compile(leati_source *source, const char *path);
// Removes what was made, if anything is left.
void leati_source_remove(leati_source *source);

#endif
