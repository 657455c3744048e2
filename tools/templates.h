// SPDX-License-Identifier: Apache-2.0
// The files of a new project, from the folder `templates`.
#ifndef LEATI_TOOLS_TEMPLATES_H
#define LEATI_TOOLS_TEMPLATES_H

#include <stddef.h>

typedef struct leati_template {
    const char *name; // its path in the project
    const char *text; // "@NAME@" and "@VERSION@" are to be replaced
} leati_template;

// Ends with a NULL name.
extern const leati_template leati_templates[];

#endif
