// SPDX-License-Identifier: Apache-2.0
// Settings from several places, of which later ones win, with a note of where each value came from:
// a file, then the environment, then the command line. Mistakes are collected, so that all of them
// can be told at once.
//
// One thread at a time. Programs read settings through this; the library never looks at files or
// environment variables of its own accord.
#ifndef LEATI_BASE_CONFIG_LAYERS_H
#define LEATI_BASE_CONFIG_LAYERS_H

#include "base/config.h"
#include "base/strbuf.h"

typedef struct leati_config_layers {
    const leat_allocator *allocator;
    leati_config config;
    char *where[LEATI_CONFIG_COUNT]; // "leat.yaml:3", "LEAT_WORKERS", "-D"; NULL: the default
    leati_strbuf faults;             // a line for each mistake
    bool out_of_memory;
} leati_config_layers;

void leati_config_layers_init(leati_config_layers *layers, const leat_allocator *allocator);
void leati_config_layers_fini(leati_config_layers *layers);

// Sets one key. `where` is the note that is kept; a mistake is told as "`shown`: why".
void leati_config_layers_set(leati_config_layers *layers, const char *key, const char *value,
                             const char *where, const char *shown);
// Adds a mistake, a line without its break.
void leati_config_layers_fault(leati_config_layers *layers, const char *format, ...)
    LEAT_PRINTF(2, 3);

// Takes the variables that are named for keys, LEAT_MEMORY_SEGMENT_SIZE say: the key in capitals
// with "_" for "." and "-". An empty value is none. Other variables that begin with LEAT_ are
// mistakes, save those in `own`, which ends in NULL; a name there that ends in "_" stands for all
// names that begin so.
void leati_config_layers_environment(leati_config_layers *layers, const char *const *variables,
                                     const char *const *own);
// The name of the variable for a key; `to` holds LEATI_CONFIG_VARIABLE_SIZE bytes.
enum { LEATI_CONFIG_VARIABLE_SIZE = 64 };
void leati_config_variable(leati_config_key key, char *to);

// LEAT_OK; LEAT_EINVAL: there are faults to be told; LEAT_ENOMEM.
LEAT_MUST_USE leat_err leati_config_layers_check(const leati_config_layers *layers);

#endif
