// SPDX-License-Identifier: Apache-2.0
// Runs the compiler on a job's source file.
#ifndef LEATI_TOOLS_COMPILER_H
#define LEATI_TOOLS_COMPILER_H

#include "base/strbuf.h"
#include "tools/verbs.h"

// Whether a name ends as those of C and C++ source files do.
bool leati_is_source(const char *path);

typedef struct leati_compilation {
    const char *source, *output;
    char *const *flags; // more of them, behind our own
    size_t flag_count;
    bool verbose; // shows the command
    // Gets the words of the command, each with a NUL behind it; or NULL.
    leati_strbuf *command;
} leati_compilation;

// Finds headers and compiler, and compiles; what the compiler says goes to standard error.
// LEATI_EXIT_FAILED: the compiler found faults or did not end well; LEATI_EXIT_REFUSED: it could
// not be run, or the headers are not to be found. The user has been told.
leati_exit leati_compile(const leati_compilation *what);

#endif
