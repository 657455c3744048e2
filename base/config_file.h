// SPDX-License-Identifier: Apache-2.0
// Settings from a YAML file: a map of keys, in which "memory: {segment-size: 64 KiB}" and
// "memory.segment-size: 64 KiB" say the same.
//
// These functions need libyaml, which allocates with malloc; so they are linked to programs that
// read files and not to libleat.
#ifndef LEATI_BASE_CONFIG_FILE_H
#define LEATI_BASE_CONFIG_FILE_H

#include "base/config_layers.h"

// Reads the file named `path` into the layers; what is wrong becomes a fault that names file and
// line. A file that cannot be read is a fault too. May block as reading does.
void leati_config_file_read(leati_config_layers *layers, const char *path);

// The same from memory; `name` is what faults and notes call it.
void leati_config_file_parse(leati_config_layers *layers, const char *name, const char *text,
                             size_t size);

// The version of libyaml; static storage.
const char *leati_config_file_yaml_version(void);

#endif
