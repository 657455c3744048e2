// SPDX-License-Identifier: Apache-2.0
// The parser's events are taken one by one, because they carry the lines that faults must name. A
// map is a prefix for the keys in it, so nesting needs no tree: only the lengths of the prefixes
// are kept. What a configuration has no use for (lists, anchors, several documents) is refused
// rather than passed over.
#include "base/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#include "base/alloc.h"

enum {
    FILE_MAX = 1 << 20, // bytes; thousands of times what all keys need
    DEPTH_MAX = 8,
    NAME_MAX_SIZE = 256,
};

typedef struct reader {
    leati_config_layers *layers;
    const char *file;
    yaml_parser_t parser;
    char name[NAME_MAX_SIZE];         // the key so far: the prefixes of all open maps
    size_t prefix[DEPTH_MAX];         // how much of it belongs to each of them
    size_t depth;                     // of open maps
    size_t lines[LEATI_CONFIG_COUNT]; // where each key was set, 0 for not at all
} reader;

static size_t line_of(const yaml_event_t *event)
{
    return event->start_mark.line + 1;
}

static bool fault(reader *r, size_t line, const char *what)
{
    leati_config_layers_fault(r->layers, "%s:%zu: %s", r->file, line, what);
    return false;
}

// Takes the next event; false after a mistake in the text, which has been told.
static bool next(reader *r, yaml_event_t *event)
{
    if (yaml_parser_parse(&r->parser, event))
        return true;
    if (r->parser.error == YAML_MEMORY_ERROR) {
        r->layers->out_of_memory = true;
        return false;
    }
    char what[200];
    snprintf(what, sizeof what, "this is not YAML: %s%s%s",
             r->parser.problem ? r->parser.problem : "it cannot be read",
             r->parser.context ? " " : "", r->parser.context ? r->parser.context : "");
    return fault(r, r->parser.problem_mark.line + 1, what);
}

// Appends a key to the prefixes; false when it is no name.
static bool take_key(reader *r, const yaml_event_t *event)
{
    if (event->type != YAML_SCALAR_EVENT)
        return fault(r, line_of(event), "a key is wanted here, memory.segment-size say");
    const char *text = (const char *)event->data.scalar.value;
    size_t size = event->data.scalar.length;
    size_t used = r->prefix[r->depth - 1];
    if (size == 0 || memchr(text, '\0', size) || used + size + 2 > sizeof r->name)
        return fault(r, line_of(event), "this is not the name of a setting");
    memcpy(r->name + used, text, size);
    r->name[used + size] = '\0';
    return true;
}

// "memory:" with nothing behind it, its settings being commented out, say.
static bool is_group(const char *name)
{
    size_t size = strlen(name);
    for (int key = 0; key < LEATI_CONFIG_COUNT; key++) {
        const char *other = leati_config_describe((leati_config_key)key)->name;
        if (!strncmp(other, name, size) && other[size] == '.')
            return true;
    }
    return false;
}

static void take_value(reader *r, const yaml_event_t *event)
{
    char where[600];
    const char *text = (const char *)event->data.scalar.value;
    size_t line = line_of(event);
    leati_config_key key = leati_config_find(r->name);
    snprintf(where, sizeof where, "%s:%zu", r->file, line);
    if (event->data.scalar.length != strlen(text)) {
        fault(r, line, "a value must not hold NUL characters");
    } else if (key == LEATI_CONFIG_COUNT) {
        if (*text || !is_group(r->name))
            leati_config_layers_set(r->layers, r->name, text, where, where);
    } else if (!*text) {
        leati_config_layers_fault(r->layers, "%s: %s has no value", where, r->name);
    } else if (r->lines[key]) {
        leati_config_layers_fault(r->layers, "%s: %s is set already, in line %zu", where, r->name,
                                  r->lines[key]);
    } else {
        r->lines[key] = line;
        leati_config_layers_set(r->layers, r->name, text, where, where);
    }
}

static bool open_map(reader *r, const yaml_event_t *event)
{
    if (r->depth == DEPTH_MAX)
        return fault(r, line_of(event), "maps lie too deep in each other");
    size_t used = 0;
    if (r->depth > 0) {
        used = strlen(r->name);
        r->name[used++] = '.';
    }
    r->name[used] = '\0';
    r->prefix[r->depth++] = used;
    return true;
}

// What stands behind a key. False when the rest cannot be understood any more.
static bool take_node(reader *r, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        take_value(r, event);
        return true;
    case YAML_MAPPING_START_EVENT:
        return open_map(r, event);
    case YAML_ALIAS_EVENT:
        return fault(r, line_of(event), "anchors and aliases (& and *) are not used here");
    default:
        return fault(r, line_of(event), "a setting has one value, not a list");
    }
}

// One event inside the outermost map: the end of a map, or a key with what stands behind it.
static bool take_entry(reader *r, const yaml_event_t *event)
{
    if (event->type == YAML_MAPPING_END_EVENT) {
        r->depth--;
        return true;
    }
    yaml_event_t value;
    if (!take_key(r, event) || !next(r, &value))
        return false;
    bool good = take_node(r, &value);
    yaml_event_delete(&value);
    return good;
}

// The root of a document is a map, or nothing at all.
static bool take_root(reader *r, const yaml_event_t *event)
{
    if (event->type == YAML_MAPPING_START_EVENT)
        return open_map(r, event);
    if (event->type == YAML_SCALAR_EVENT && event->data.scalar.length == 0)
        return true;
    return fault(r, line_of(event), "settings are a map: a key, a colon, and a value in each line");
}

static bool take_event(reader *r, const yaml_event_t *event, size_t *documents)
{
    switch (event->type) {
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return true;
    case YAML_DOCUMENT_START_EVENT:
        if ((*documents)++ > 0)
            return fault(r, line_of(event), "a second document begins; one is read");
        return true;
    default:
        return r->depth ? take_entry(r, event) : take_root(r, event);
    }
}

void leati_config_file_parse(leati_config_layers *layers, const char *name, const char *text,
                             size_t size)
{
    reader r = {.layers = layers, .file = name};
    if (!yaml_parser_initialize(&r.parser)) {
        layers->out_of_memory = true;
        return;
    }
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, size);
    size_t documents = 0;
    bool more = true;
    while (more) {
        yaml_event_t event;
        if (!next(&r, &event))
            break;
        more = take_event(&r, &event, &documents) && event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&r.parser);
}

// --- reading the file ---

// Reads until the end or until `to` is full; -1 with errno set on failure.
static ssize_t read_all(int fd, char *to, size_t size)
{
    size_t used = 0;
    while (used < size) {
        ssize_t got = read(fd, to + used, size - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        used += (size_t)got;
    }
    return (ssize_t)used;
}

static void read_open(leati_config_layers *layers, const char *path, int fd)
{
    char *text = leati_alloc(layers->allocator, FILE_MAX + 1);
    if (!text) {
        layers->out_of_memory = true;
        return;
    }
    ssize_t size = read_all(fd, text, FILE_MAX + 1);
    if (size < 0)
        leati_config_layers_fault(layers, "%s: cannot be read: %s", path, strerror(errno));
    else if (size > FILE_MAX)
        leati_config_layers_fault(layers, "%s: is larger than 1 MiB, and no configuration is",
                                  path);
    else
        leati_config_file_parse(layers, path, text, (size_t)size);
    leati_free(layers->allocator, text);
}

void leati_config_file_read(leati_config_layers *layers, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        leati_config_layers_fault(layers, "%s: cannot be opened: %s", path, strerror(errno));
        return;
    }
    read_open(layers, path, fd);
    close(fd);
}

const char *leati_config_file_yaml_version(void)
{
    return yaml_get_version_string();
}
