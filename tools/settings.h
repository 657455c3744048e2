// SPDX-License-Identifier: Apache-2.0
// The settings that a command line is run with: the configuration file, over it the environment,
// over that the options.
#ifndef LEATI_TOOLS_SETTINGS_H
#define LEATI_TOOLS_SETTINGS_H

#include "base/config_layers.h"
#include "tools/options.h"

typedef struct leati_settings {
    leati_config_layers layers;
    char *file; // the configuration file that was read, or NULL
} leati_settings;

// Reads them. The user has been told what is wrong when the result is not LEATI_EXIT_OK. Call fini
// in both cases.
leati_exit leati_settings_read(leati_settings *settings, const leati_options *options);
void leati_settings_fini(leati_settings *settings);

// Environment variables that are no settings, and what they are for.
extern const leati_entry leati_settings_variables[];

#endif
