// SPDX-License-Identifier: Apache-2.0
// The state file: how others find the processes of a cluster, also to see that they are gone.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "cluster/manager/local.h"

uint64_t leati_start_ticks(int64_t pid)
{
    enum { FIELD = 22 }; // starttime of proc(5)
    char path[48], text[1024];
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t size = read(fd, text, sizeof text - 1);
    (void)close(fd);
    if (size <= 0)
        return 0;
    text[size] = '\0';
    // The second field is a name in brackets, in which anything may stand.
    char *at = strrchr(text, ')');
    for (int field = 2; at && field < FIELD; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

static void put_text(leati_strbuf *out, const char *name, const char *value)
{
    leati_strbuf_printf(out, "  \"%s\": ", name);
    leati_strbuf_json_string(out, value, strlen(value));
    leati_strbuf_puts(out, ",\n");
}

// Of a file for clients, who run in other folders; none for NULL.
static void put_path(leati_strbuf *out, const char *name, const char *path)
{
    char whole[PATH_MAX];
    if (path)
        put_text(out, name, realpath(path, whole) ? whole : path);
}

static void put_children(leati_strbuf *out, const leati_manager *manager)
{
    const char *separator = "";
    for (uint32_t i = 0; i < leati_local_count(manager); i++) {
        const leati_child *child = &manager->local->children[i];
        if (child->pid == 0)
            continue;
        leati_strbuf_printf(
            out, "%s\n    {\"index\": %u, \"pid\": %" PRId64 ", \"start_ticks\": %" PRIu64 "}",
            separator, child->index, child->pid, child->start_ticks);
        separator = ",";
    }
}

leat_err leati_manager_write_state(leati_manager *manager, char *why, size_t why_size)
{
    const leati_manager_options *options = &manager->options;
    if (!options->state_file)
        return LEAT_OK;
    leati_strbuf out;
    leati_strbuf_init(&out, manager->allocator);
    int64_t pid = (int64_t)getpid();
    leati_strbuf_puts(&out, "{\n");
    put_text(&out, "cluster", manager->cluster);
    leati_strbuf_printf(&out, "  \"pid\": %" PRId64 ",\n  \"start_ticks\": %" PRIu64 ",\n", pid,
                        leati_start_ticks(pid));
    put_text(&out, "rest", manager->rest_address);
    put_text(&out, "rpc", manager->rpc_address);
    put_text(&out, "version", leat_version());
    put_path(&out, "secret_file", options->auth.secret);
    put_path(&out, "tls_cert", options->auth.tls_cert);
    put_path(&out, "tls_key", options->auth.tls_key);
    put_path(&out, "tls_ca", options->auth.tls_ca);
    leati_strbuf_printf(&out, "  \"workers\": %u,\n  \"slots\": %u,\n  \"taskmanagers\": [",
                        options->local_workers, options->slots);
    pthread_mutex_lock(&manager->lock);
    put_children(&out, manager);
    pthread_mutex_unlock(&manager->lock);
    leati_strbuf_puts(&out, "]\n}\n");
    leat_err err = LEAT_ENOMEM;
    if (out.failed)
        snprintf(why, why_size, "out of memory");
    else
        err = leati_replace_file(options->state_file, out.data, out.size, why, why_size);
    leati_strbuf_fini(&out);
    return err;
}
