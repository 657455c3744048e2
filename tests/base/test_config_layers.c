// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/config_layers.h"

static const char *const own[] = {"LEAT_LOG", "LEAT_CONFIG", "LEAT_JOB_", NULL};

Test(config_layers, later_values_win_and_say_where_they_came_from)
{
    leati_config_layers layers;
    leati_config_layers_init(&layers, NULL);
    cr_expect(layers.config.value[LEATI_CONFIG_PARALLELISM] == 1);
    cr_expect(layers.where[LEATI_CONFIG_PARALLELISM] == NULL);
    leati_config_layers_set(&layers, "parallelism", "2", "a.yaml:1", "a.yaml:1");
    const char *variables[] = {"LEAT_PARALLELISM=3", "LEAT_WORKERS=4", NULL};
    leati_config_layers_environment(&layers, variables, own);
    leati_config_layers_set(&layers, "workers", "5", "-D", "-D workers=5");
    cr_expect(layers.config.value[LEATI_CONFIG_PARALLELISM] == 3);
    cr_expect(strcmp(layers.where[LEATI_CONFIG_PARALLELISM], "LEAT_PARALLELISM") == 0);
    cr_expect(layers.config.value[LEATI_CONFIG_WORKERS] == 5);
    cr_expect(strcmp(layers.where[LEATI_CONFIG_WORKERS], "-D") == 0);
    cr_expect(leati_config_layers_check(&layers) == LEAT_OK);
    leati_config_layers_fini(&layers);
}

Test(config_layers, every_key_has_a_variable_of_its_own)
{
    char name[LEATI_CONFIG_VARIABLE_SIZE], other[LEATI_CONFIG_VARIABLE_SIZE];
    leati_config_variable(LEATI_CONFIG_SEGMENT_SIZE, name);
    cr_expect(strcmp(name, "LEAT_MEMORY_SEGMENT_SIZE") == 0, "%s", name);
    for (int key = 0; key < LEATI_CONFIG_COUNT; key++) {
        leati_config_variable((leati_config_key)key, name);
        cr_expect(strlen(name) == strlen(leati_config_describe((leati_config_key)key)->name) + 5);
        cr_expect(strncmp(name, "LEAT_JOB_", 9) && strcmp(name, "LEAT_LOG") &&
                  strcmp(name, "LEAT_CONFIG") && strncmp(name, "LEAT_TEST_", 10) &&
                  strncmp(name, "LEAT_BENCH_", 11));
        for (int before = 0; before < key; before++) {
            leati_config_variable((leati_config_key)before, other);
            cr_expect(strcmp(name, other) != 0, "%s", name);
        }
    }
}

Test(config_layers, variables_are_taken_refused_or_left_alone)
{
    static const struct {
        const char *variable;
        leat_err err;
        const char *fault; // a part of it
    } rows[] = {
        {"LEAT_WORKERS=3", LEAT_OK, NULL},
        {"LEAT_WORKERS=", LEAT_OK, NULL},
        {"LEAT_ANYTHING=", LEAT_OK, NULL},
        {"LEAT_LOG=info", LEAT_OK, NULL},
        {"LEAT_JOB_WORD=x", LEAT_OK, NULL},
        {"LEAT", LEAT_OK, NULL},
        {"LEATHER=1", LEAT_OK, NULL},
        {"leat_workers=x", LEAT_OK, NULL},
        {"PATH=/bin", LEAT_OK, NULL},
        {"LEAT_WORKERS=x", LEAT_EINVAL, "environment variable LEAT_WORKERS: workers: \"x\" is not"},
        {"LEAT_WORKRES=3", LEAT_EINVAL,
         "LEAT_WORKRES: no setting is called so; did you mean LEAT_WORKERS?"},
        {"LEAT_LOGS=info", LEAT_EINVAL, "did you mean LEAT_LOG?"},
        {"LEAT_=1", LEAT_EINVAL, "LEAT_: no setting is called so"},
        {"LEAT_JOB=1", LEAT_EINVAL, "LEAT_JOB: no setting is called so"},
        {"LEAT_SOMETHING_ELSE_ENTIRELY=1", LEAT_EINVAL, "no setting is called so\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        leati_config_layers layers;
        leati_config_layers_init(&layers, NULL);
        const char *variables[] = {rows[i].variable, NULL};
        leati_config_layers_environment(&layers, variables, own);
        const char *faults = leati_strbuf_text(&layers.faults);
        cr_expect(leati_config_layers_check(&layers) == rows[i].err, "%s", rows[i].variable);
        cr_expect(rows[i].fault ? strstr(faults, rows[i].fault) != NULL : *faults == '\0', "%s: %s",
                  rows[i].variable, faults);
        leati_config_layers_fini(&layers);
    }
}

Test(config_layers, variables_of_any_length_are_survived)
{
    static char variable[70000] = "LEAT_";
    memset(variable + 5, 'X', sizeof variable - 8);
    variable[sizeof variable - 3] = '=';
    variable[sizeof variable - 2] = '1';
    const char *variables[] = {variable, NULL};
    leati_config_layers layers;
    leati_config_layers_init(&layers, NULL);
    leati_config_layers_environment(&layers, variables, own);
    leati_config_layers_environment(&layers, NULL, own);
    cr_expect(leati_config_layers_check(&layers) == LEAT_EINVAL);
    leati_config_layers_fini(&layers);
}

// --- no memory ---

typedef struct counted {
    int left; // allocations that succeed
} counted;

static void *allocate(void *user, size_t size)
{
    counted *c = user;
    return c->left-- > 0 ? malloc(size) : NULL;
}
static void *reallocate(void *user, void *ptr, size_t size)
{
    counted *c = user;
    return c->left-- > 0 ? realloc(ptr, size) : NULL;
}
static void release(void *user, void *ptr)
{
    free(ptr);
}

Test(config_layers, running_out_of_memory_is_remembered)
{
    for (int left = 0; left < 3; left++) {
        counted c = {left};
        const leat_allocator allocator = {allocate, reallocate, release, &c};
        leati_config_layers layers;
        leati_config_layers_init(&layers, &allocator);
        leati_config_layers_set(&layers, "workers", "1", "-D", "-D workers=1");
        leati_config_layers_set(&layers, "workers", "x", "-D", "-D workers=x");
        leati_config_layers_set(&layers, "workers", "2", "-D", "-D workers=2");
        cr_expect(leati_config_layers_check(&layers) == LEAT_ENOMEM, "%d", left);
        leati_config_layers_fini(&layers);
    }
}
