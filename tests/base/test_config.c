// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"

typedef struct setting {
    const char *name, *value;
    leati_config_key key;
    int64_t expected;
} setting;

Test(config, values_are_read_with_their_units)
{
    static const setting rows[] = {
        {"parallelism", "1", LEATI_CONFIG_PARALLELISM, 1},
        {"parallelism", " 32768 ", LEATI_CONFIG_PARALLELISM, 32768},
        {"workers", "007", LEATI_CONFIG_WORKERS, 7},
        {"memory.segment-size", "65536", LEATI_CONFIG_SEGMENT_SIZE, 65536},
        {"memory.segment-size", "64 KiB", LEATI_CONFIG_SEGMENT_SIZE, 65536},
        {"memory.segment-size", "64kB", LEATI_CONFIG_SEGMENT_SIZE, 64000},
        {"memory.segment-size", "1 MiB", LEATI_CONFIG_SEGMENT_SIZE, 1048576},
        {"memory.segment-size", "1024 B", LEATI_CONFIG_SEGMENT_SIZE, 1024},
        {"memory.network", "1GB", LEATI_CONFIG_NETWORK_MEMORY, 1000000000},
        {"memory.network", "3 GiB", LEATI_CONFIG_NETWORK_MEMORY, INT64_C(3221225472)},
        {"memory.network", "5 MB", LEATI_CONFIG_NETWORK_MEMORY, 5000000},
        {"memory.network", "1 TiB", LEATI_CONFIG_NETWORK_MEMORY, INT64_C(1099511627776)},
        {"buffer-timeout", "-1", LEATI_CONFIG_BUFFER_TIMEOUT, -1},
        {"buffer-timeout", "0", LEATI_CONFIG_BUFFER_TIMEOUT, 0},
        {"buffer-timeout", "250", LEATI_CONFIG_BUFFER_TIMEOUT, 250},
        {"buffer-timeout", "250 ms", LEATI_CONFIG_BUFFER_TIMEOUT, 250},
        {"buffer-timeout", "\t2\ts\t", LEATI_CONFIG_BUFFER_TIMEOUT, 2000},
        {"buffer-timeout", "3min", LEATI_CONFIG_BUFFER_TIMEOUT, 180000},
        {"buffer-timeout", "24 h", LEATI_CONFIG_BUFFER_TIMEOUT, 86400000},
        {"chaining.mixed-max-parallelism", "false", LEATI_CONFIG_CHAIN_MIXED_MAX_PARALLELISM, 0},
        {"chaining.mixed-max-parallelism", "true", LEATI_CONFIG_CHAIN_MIXED_MAX_PARALLELISM, 1},
        {"chaining.mixed-max-parallelism", "0", LEATI_CONFIG_CHAIN_MIXED_MAX_PARALLELISM, 0},
    };
    leati_config config;
    char why[200] = "";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        leati_config_init(&config);
        leat_err err = leati_config_set(&config, rows[i].name, rows[i].value, why, sizeof why);
        cr_expect(err == LEAT_OK, "%s=%s: %s", rows[i].name, rows[i].value, why);
        cr_expect(leati_config_get(&config, rows[i].key) == rows[i].expected, "%s=%s gave %" PRId64,
                  rows[i].name, rows[i].value, leati_config_get(&config, rows[i].key));
    }
}

Test(config, bad_values_are_refused_with_a_reason_and_change_nothing)
{
    static const struct {
        const char *name, *value, *reason;
    } rows[] = {
        {"parallelism", "", "a whole number"},
        {"parallelism", "two", "a whole number"},
        {"parallelism", "2x", "a whole number"},
        {"parallelism", "2 KiB", "a whole number"},
        {"parallelism", "1.5", "a whole number"},
        {"parallelism", "+1", "a whole number"},
        {"parallelism", "- 1", "a whole number"},
        {"parallelism", "1 2", "a whole number"},
        {"parallelism", "0", "1 to 32768"},
        {"parallelism", "-1", "1 to 32768"},
        {"parallelism", "32769", "1 to 32768"},
        {"parallelism", "99999999999999999999999", "1 to 32768"},
        {"memory.segment-size", "64 kib", "KiB"},
        {"memory.segment-size", "64 KB", "KiB"},
        {"memory.segment-size", "64 s", "KiB"},
        {"memory.segment-size", "1023", "1 KiB to 1 MiB"},
        {"memory.segment-size", "9007199254740992 KiB", "1 KiB to 1 MiB"},  // 2^63 bytes
        {"memory.segment-size", "18014398509481984 KiB", "1 KiB to 1 MiB"}, // 2^64 bytes
        {"memory.segment-size", "-9223372036854775808", "1 KiB to 1 MiB"},
        {"memory.network", "2 TiB", "64 KiB to 1 TiB"},
        {"buffer-timeout", "-2", "-1 to 24 h"},
        {"buffer-timeout", "25 h", "-1 to 24 h"},
        {"buffer-timeout", "1 d", "min"},
        {"buffer-timeout", "1 MiB", "min"},
        {"chaining.mixed-max-parallelism", "yes", "true or false"},
        {"chaining.mixed-max-parallelism", "2", "false to true"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        leati_config before, after;
        char why[300] = "";
        leati_config_init(&before);
        leati_config_init(&after);
        leat_err err = leati_config_set(&after, rows[i].name, rows[i].value, why, sizeof why);
        cr_expect(err == LEAT_EINVAL, "%s=%s: %d", rows[i].name, rows[i].value, err);
        cr_expect(strstr(why, rows[i].name) && strstr(why, rows[i].reason), "%s=%s: %s",
                  rows[i].name, rows[i].value, why);
        cr_expect(memcmp(&before, &after, sizeof before) == 0);
    }
}

Test(config, unknown_keys_are_refused_and_the_nearest_is_offered)
{
    static const struct {
        const char *name, *offered; // NULL: none
    } rows[] = {
        {"paralelism", "\"parallelism\""},
        {"Parallelism", "\"parallelism\""},
        {"memory.segment_size", "\"memory.segment-size\""},
        {"segment-size", "\"memory.segment-size\""},
        {"buffer.timeout", "\"buffer-timeout\""},
        {"worker", "\"workers\""},
        {"network.floating-bufers", "\"network.floating-buffers\""},
        {"colour", NULL},
        {"", NULL},
        {"x", NULL},
    };
    leati_config config;
    leati_config_init(&config);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char why[300] = "";
        cr_expect(leati_config_set(&config, rows[i].name, "1", why, sizeof why) == LEAT_ENOENT);
        const char *offer = strstr(why, "did you mean ");
        cr_expect((offer != NULL) == (rows[i].offered != NULL), "%s", why);
        cr_expect(!offer || strstr(offer, rows[i].offered), "%s", why);
    }
}

Test(config, names_of_any_length_and_missing_ones_are_survived)
{
    leati_config config;
    leati_config_init(&config);
    char why[300], name[5000];
    for (size_t size = 0; size < sizeof name; size = size * 2 + 1) {
        memset(name, 'p', size);
        name[size] = '\0';
        cr_assert(leati_config_set(&config, name, name, why, sizeof why) == LEAT_ENOENT);
        cr_assert(leati_config_set(&config, "workers", name, why, sizeof why) == LEAT_EINVAL);
    }
    cr_assert(leati_config_set(&config, NULL, "1", why, sizeof why) == LEAT_EINVAL);
    cr_assert(leati_config_set(&config, "workers", NULL, why, sizeof why) == LEAT_EINVAL);
    cr_assert(leati_config_set(&config, "nothing", "1", NULL, 0) == LEAT_ENOENT);
}

Test(config, defaults_lie_within_their_ranges_and_names_differ)
{
    leati_config config;
    leati_config_init(&config);
    for (int key = 0; key < LEATI_CONFIG_COUNT; key++) {
        const leati_config_info *info = leati_config_describe((leati_config_key)key);
        cr_expect(config.value[key] == info->preset, "%s", info->name);
        cr_expect(info->lowest <= info->preset && info->preset <= info->highest, "%s", info->name);
        for (int other = 0; other < key; other++)
            cr_expect(strcmp(leati_config_describe((leati_config_key)other)->name, info->name));
    }
}

Test(config, what_is_printed_is_read_back)
{
    for (int key = 0; key < LEATI_CONFIG_COUNT; key++) {
        const leati_config_info *info = leati_config_describe((leati_config_key)key);
        const int64_t values[] = {info->preset, info->lowest, info->highest};
        for (int i = 0; i < 3; i++) {
            leati_config config;
            char text[64], why[300] = "";
            size_t length = leati_config_print((leati_config_key)key, values[i], text, sizeof text);
            cr_assert(length == strlen(text));
            leati_config_init(&config);
            leat_err err = leati_config_set(&config, info->name, text, why, sizeof why);
            cr_expect(err == LEAT_OK && config.value[key] == values[i], "%s=%s: %s", info->name,
                      text, why);
        }
    }
}

// The reference page has one row per key, in the table's order, as printed here.
Test(config, the_reference_page_lists_every_key)
{
    static char page[65536];
    FILE *file = fopen(LEAT_SOURCE_ROOT "/docs/configuration.md", "rb");
    cr_assert(file);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    const char *at = strstr(page, "|---");
    cr_assert(at && (at = strchr(at, '\n')));
    for (int key = 0; key < LEATI_CONFIG_COUNT; key++) {
        const leati_config_info *info = leati_config_describe((leati_config_key)key);
        char preset[64], low[64], high[64], row[1000];
        leati_config_print((leati_config_key)key, info->preset, preset, sizeof preset);
        leati_config_print((leati_config_key)key, info->lowest, low, sizeof low);
        leati_config_print((leati_config_key)key, info->highest, high, sizeof high);
        int length = snprintf(row, sizeof row, "\n| `%s` | %s | %s | %s to %s | %s |", info->name,
                              info->kind, preset, low, high, info->meaning);
        cr_expect(strncmp(at, row, (size_t)length) == 0, "expected this row:%s", row);
        at = strchr(at + 1, '\n');
        cr_assert(at);
    }
    cr_expect(at[1] != '|', "the page has rows for settings that do not exist");
}
