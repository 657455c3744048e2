// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/config_file.h"

static leati_config_layers parsed(const char *text, size_t size)
{
    leati_config_layers layers;
    leati_config_layers_init(&layers, NULL);
    leati_config_file_parse(&layers, "f", text, size);
    return layers;
}

Test(config_file, nested_maps_and_dotted_keys_say_the_same)
{
    static const struct {
        const char *text;
        leati_config_key key;
        int64_t value;
        const char *where; // NULL: not set
    } rows[] = {
        {"workers: 3", LEATI_CONFIG_WORKERS, 3, "f:1"},
        {"workers: '3'\n", LEATI_CONFIG_WORKERS, 3, "f:1"},
        {"\"workers\": 3\r\n", LEATI_CONFIG_WORKERS, 3, "f:1"},
        {"# note\n\nworkers: 3 # all\n", LEATI_CONFIG_WORKERS, 3, "f:3"},
        {"---\nworkers: 3\n...\n", LEATI_CONFIG_WORKERS, 3, "f:2"},
        {"{workers: 3}", LEATI_CONFIG_WORKERS, 3, "f:1"},
        {"memory.segment-size: 64 KiB", LEATI_CONFIG_SEGMENT_SIZE, 65536, "f:1"},
        {"memory:\n  segment-size: 64 KiB\n", LEATI_CONFIG_SEGMENT_SIZE, 65536, "f:2"},
        {"memory: {network: 1 GiB, segment-size: 64 KiB}", LEATI_CONFIG_SEGMENT_SIZE, 65536, "f:1"},
        {"memory:\n  network: 1 GiB\nworkers: 2", LEATI_CONFIG_WORKERS, 2, "f:3"},
        {"network:\n  floating-buffers: 1\nmemory:\n  network: 1 GiB", LEATI_CONFIG_NETWORK_MEMORY,
         1073741824, "f:4"},
        {"chaining: false\nchaining.mixed-max-parallelism: false", LEATI_CONFIG_CHAINING, 0, "f:1"},
        {"buffer-timeout: -1", LEATI_CONFIG_BUFFER_TIMEOUT, -1, "f:1"},
        {"memory:\n# nothing\nworkers: 1", LEATI_CONFIG_WORKERS, 1, "f:3"},
        {"memory: {}", LEATI_CONFIG_WORKERS, 0, NULL},
        {"", LEATI_CONFIG_WORKERS, 0, NULL},
        {"# nothing\n", LEATI_CONFIG_WORKERS, 0, NULL},
        {"---\n", LEATI_CONFIG_WORKERS, 0, NULL},
        {"\xef\xbb\xbfworkers: 3", LEATI_CONFIG_WORKERS, 3, "f:1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        leati_config_layers layers = parsed(rows[i].text, strlen(rows[i].text));
        const char *where = layers.where[rows[i].key];
        cr_expect(leati_config_layers_check(&layers) == LEAT_OK, "%s: %s", rows[i].text,
                  leati_strbuf_text(&layers.faults));
        cr_expect(layers.config.value[rows[i].key] == rows[i].value, "%s", rows[i].text);
        cr_expect(where == rows[i].where ||
                      (where && rows[i].where && !strcmp(where, rows[i].where)),
                  "%s: %s", rows[i].text, where ? where : "default");
        leati_config_layers_fini(&layers);
    }
}

Test(config_file, mistakes_name_their_line)
{
    static const struct {
        const char *text, *fault; // the beginning of the only one
    } rows[] = {
        {"wokers: 1", "f:1: there is no setting \"wokers\"; did you mean \"workers\"?"},
        {"\nwokers:", "f:2: there is no setting \"wokers\""},
        {"memory: {sise: 1}", "f:1: there is no setting \"memory.sise\""},
        {"memory: {network: {x: 1}}", "f:1: there is no setting \"memory.network.x\""},
        {"# \nworkers: lots", "f:2: workers: \"lots\" is not a whole number"},
        {"workers: -1", "f:1: workers: \"-1\" is out of range"},
        {"workers:\nparallelism: 1", "f:1: workers has no value"},
        {"workers: 1\nworkers: 2", "f:2: workers is set already, in line 1"},
        {"memory.network: 1GiB\nmemory: {network: 1GiB}",
         "f:2: memory.network is set already, in line 1"},
        {"workers: [1]", "f:1: a setting has one value, not a list"},
        {"workers:\n- 1", "f:2: a setting has one value, not a list"},
        {"- workers", "f:1: settings are a map"},
        {"workers", "f:1: settings are a map"},
        {"workers: *a", "f:1: anchors and aliases"},
        {"? {a: b}\n: 1", "f:1: a key is wanted here"},
        {"'': 1", "f:1: this is not the name of a setting"},
        {"\"workers\\0x\": 1", "f:1: this is not the name of a setting"},
        {"workers: \"1\\0\"", "f:1: a value must not hold NUL characters"},
        {"workers: 1\n---\nparallelism: 2", "f:2: a second document begins"},
        {"workers: 1\n\tparallelism: 2", "f:2: this is not YAML: "},
        {"workers: @", "f:1: this is not YAML: "},
        {"a: {a: {a: {a: {a: {a: {a: {a: {a: 1}}}}}}}}", "f:1: maps lie too deep in each other"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        leati_config_layers layers = parsed(rows[i].text, strlen(rows[i].text));
        const char *faults = leati_strbuf_text(&layers.faults);
        cr_expect(leati_config_layers_check(&layers) == LEAT_EINVAL, "%s", rows[i].text);
        cr_expect(strncmp(faults, rows[i].fault, strlen(rows[i].fault)) == 0, "%s: %s",
                  rows[i].text, faults);
        cr_expect(faults[0] && strchr(faults, '\n')[1] == '\0', "%s: %s", rows[i].text, faults);
        leati_config_layers_fini(&layers);
    }
}

Test(config_file, reading_goes_on_behind_a_wrong_setting)
{
    leati_config_layers layers = parsed("wokers: 1\nparallelism: x\nworkers: 7\n", 36);
    cr_expect(leati_config_layers_check(&layers) == LEAT_EINVAL);
    cr_expect(strstr(leati_strbuf_text(&layers.faults), "f:1: ") != NULL);
    cr_expect(strstr(leati_strbuf_text(&layers.faults), "f:2: ") != NULL);
    cr_expect(layers.config.value[LEATI_CONFIG_WORKERS] == 7);
    leati_config_layers_fini(&layers);
}

// Whatever a file holds, reading it ends, and says so when it was wrong.
Test(config_file, a_file_cut_or_changed_anywhere_is_survived)
{
    static const char whole[] = "# a: b\nmemory:\n  network: \"1 GiB\"\n  segment-size: 64 KiB\n"
                                "network: {floating-buffers: 3, overdraft-buffers: 1}\n"
                                "? workers\n: &x !!int 3\nbuffer-timeout: |\n  5 ms\n";
    char changed[sizeof whole];
    for (size_t size = 0; size < sizeof whole; size++) {
        leati_config_layers layers = parsed(whole, size);
        leati_config_layers_fini(&layers);
        for (int byte = 0; byte < 256; byte += size < sizeof whole - 1 ? 1 : 256) {
            memcpy(changed, whole, sizeof whole);
            changed[size] = (char)byte;
            layers = parsed(changed, sizeof changed - 1);
            cr_assert(leati_config_layers_check(&layers) != LEAT_ENOMEM);
            leati_config_layers_fini(&layers);
        }
    }
}

Test(config_file, files_are_read_or_refused_with_a_reason)
{
    char path[] = "/tmp/leat-config-XXXXXX";
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    cr_assert(write(fd, "workers: 3\n", 11) == 11);
    leati_config_layers layers;
    leati_config_layers_init(&layers, NULL);
    leati_config_file_read(&layers, path);
    cr_expect(layers.config.value[LEATI_CONFIG_WORKERS] == 3);
    cr_expect(leati_config_layers_check(&layers) == LEAT_OK);
    cr_assert(ftruncate(fd, (1 << 20) + 1) == 0);
    leati_config_file_read(&layers, path);
    cr_expect(strstr(leati_strbuf_text(&layers.faults), "is larger than 1 MiB") != NULL);
    close(fd);
    unlink(path);
    leati_config_file_read(&layers, path);
    cr_expect(strstr(leati_strbuf_text(&layers.faults), "cannot be opened: No such file") != NULL);
    leati_config_file_read(&layers, "/tmp");
    cr_expect(strstr(leati_strbuf_text(&layers.faults), "/tmp: cannot be read: Is a directory") !=
              NULL);
    leati_config_layers_fini(&layers);
}
