// SPDX-License-Identifier: Apache-2.0
#include "base/config_layers.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/nearest.h"

#define PREFIX "LEAT_"

void leati_config_layers_init(leati_config_layers *layers, const leat_allocator *allocator)
{
    *layers = (leati_config_layers){.allocator = allocator};
    leati_config_init(&layers->config);
    leati_strbuf_init(&layers->faults, allocator);
}

void leati_config_layers_fini(leati_config_layers *layers)
{
    for (int key = 0; key < LEATI_CONFIG_COUNT; key++)
        leati_free(layers->allocator, layers->where[key]);
    leati_strbuf_fini(&layers->faults);
}

void leati_config_layers_fault(leati_config_layers *layers, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    leati_strbuf_vprintf(&layers->faults, format, args);
    va_end(args);
    leati_strbuf_putc(&layers->faults, '\n');
}

void leati_config_layers_set(leati_config_layers *layers, const char *key, const char *value,
                             const char *where, const char *shown)
{
    char why[400];
    leat_err err = leati_config_set(&layers->config, key, value, why, sizeof why);
    if (err != LEAT_OK) {
        leati_config_layers_fault(layers, "%s: %s", shown, why);
        return;
    }
    leati_config_key known = leati_config_find(key);
    leati_free(layers->allocator, layers->where[known]);
    layers->where[known] = leati_strdup(layers->allocator, where);
    layers->out_of_memory |= !layers->where[known];
}

leat_err leati_config_layers_check(const leati_config_layers *layers)
{
    if (layers->out_of_memory || layers->faults.failed)
        return LEAT_ENOMEM;
    return layers->faults.size ? LEAT_EINVAL : LEAT_OK;
}

// --- the environment ---

void leati_config_variable(leati_config_key key, char *to)
{
    int size =
        snprintf(to, LEATI_CONFIG_VARIABLE_SIZE, PREFIX "%s", leati_config_describe(key)->name);
    for (int i = 0; i < size && i < LEATI_CONFIG_VARIABLE_SIZE - 1; i++) {
        if (to[i] >= 'a' && to[i] <= 'z')
            to[i] = (char)(to[i] - 'a' + 'A');
        else if (to[i] == '.' || to[i] == '-')
            to[i] = '_';
    }
}

typedef struct name_list {
    char names[LEATI_CONFIG_COUNT][LEATI_CONFIG_VARIABLE_SIZE];
} name_list;

static bool is_own(const char *name, const char *const *own)
{
    for (; *own; own++) {
        size_t size = strlen(*own);
        bool family = size && (*own)[size - 1] == '_';
        if (family ? !strncmp(name, *own, size) : !strcmp(name, *own))
            return true;
    }
    return false;
}

static void refuse_variable(leati_config_layers *layers, const name_list *known, const char *name,
                            const char *const *own)
{
    const char *words[LEATI_CONFIG_COUNT + 16];
    size_t count = 0;
    for (; count < LEATI_CONFIG_COUNT; count++)
        words[count] = known->names[count];
    for (; *own && count < sizeof words / sizeof *words; own++)
        words[count++] = *own;
    const char *nearest = leati_nearest(name, words, count);
    if (nearest)
        leati_config_layers_fault(layers,
                                  "environment variable %.80s: no setting is called so; did you "
                                  "mean %s?",
                                  name, nearest);
    else
        leati_config_layers_fault(layers, "environment variable %.80s: no setting is called so",
                                  name);
}

static void take_variable(leati_config_layers *layers, const name_list *known, const char *name,
                          const char *value, const char *const *own)
{
    for (int key = 0; key < LEATI_CONFIG_COUNT; key++) {
        if (strcmp(known->names[key], name) != 0)
            continue;
        char shown[LEATI_CONFIG_VARIABLE_SIZE + 32];
        snprintf(shown, sizeof shown, "environment variable %s", known->names[key]);
        leati_config_layers_set(layers, leati_config_describe((leati_config_key)key)->name, value,
                                name, shown);
        return;
    }
    if (!is_own(name, own))
        refuse_variable(layers, known, name, own);
}

void leati_config_layers_environment(leati_config_layers *layers, const char *const *variables,
                                     const char *const *own)
{
    name_list known = {0};
    for (int key = 0; key < LEATI_CONFIG_COUNT; key++)
        leati_config_variable((leati_config_key)key, known.names[key]);
    for (; variables && *variables; variables++) {
        const char *equals = strchr(*variables, '=');
        if (strncmp(*variables, PREFIX, strlen(PREFIX)) != 0 || !equals || !equals[1])
            continue;
        char name[128];
        size_t size = (size_t)(equals - *variables);
        snprintf(name, sizeof name, "%.*s", (int)(size < sizeof name ? size : sizeof name - 1),
                 *variables);
        take_variable(layers, &known, name, equals + 1, own);
    }
}
