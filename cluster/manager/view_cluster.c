// SPDX-License-Identifier: Apache-2.0
// The cluster: its task managers, slots and settings.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"
#include "cluster/manager/view.h"

void leati_view_slots(const leati_manager *manager, uint32_t *members, uint32_t *total,
                      uint32_t *available)
{
    *members = *total = *available = 0;
    for (const leati_member *m = manager->members; m; m = m->next) {
        if (!m->rpc)
            continue;
        *members += 1;
        *total += m->slots;
        *available += m->slots > m->slots_used ? m->slots - m->slots_used : 0;
    }
}

void leati_view_largest(const leati_manager *manager, uint32_t *total, uint32_t *available)
{
    *total = *available = 0;
    for (const leati_member *m = manager->members; m; m = m->next) {
        uint32_t spare = m->slots > m->slots_used ? m->slots - m->slots_used : 0;
        if (!m->rpc)
            continue;
        *total = m->slots > *total ? m->slots : *total;
        *available = spare > *available ? spare : *available;
    }
}

static void put_job_counts(leati_strbuf *out, const leati_manager *manager)
{
    enum { CREATED, RUNNING, FINISHED, FAILED, CANCELED, COUNT };
    static const char *const names[COUNT] = {"created", "running", "finished", "failed",
                                             "canceled"};
    uint32_t counts[COUNT] = {0};
    for (const leati_managed_job *job = manager->jobs; job; job = job->next) {
        switch (job->phase) {
        case LEATI_PHASE_CREATED:
            counts[CREATED]++;
            break;
        case LEATI_PHASE_FINISHED:
            counts[FINISHED]++;
            break;
        case LEATI_PHASE_FAILED:
            counts[FAILED]++;
            break;
        case LEATI_PHASE_CANCELED:
            counts[CANCELED]++;
            break;
        default:
            counts[RUNNING]++;
        }
    }
    leati_put_open(out, "jobs", '{');
    for (int i = 0; i < COUNT; i++)
        leati_put_u64(out, names[i], counts[i]);
    leati_put_close(out, '}');
}

void leati_view_overview(leati_strbuf *out, const leati_manager *manager)
{
    uint32_t members, total, available;
    leati_view_slots(manager, &members, &total, &available);
    leati_put_open(out, NULL, '{');
    leati_put_text(out, "cluster", manager->cluster);
    leati_put_text(out, "version", leat_version());
    leati_put_u64(out, "taskmanagers", members);
    leati_put_u64(out, "slots_total", total);
    leati_put_u64(out, "slots_free", available);
    put_job_counts(out, manager);
    leati_put_text(out, "rest_address", manager->rest_address);
    leati_put_text(out, "rpc_address", manager->rpc_address);
    leati_put_i64(out, "pid", getpid());
    leati_put_i64(out, "start_time", manager->started_ms);
    leati_put_i64(out, "uptime", leati_view_now_ms() - manager->started_ms);
    leati_put_bool(out, "stopping", manager->stopping);
    leati_put_close(out, '}');
}

void leati_view_config(leati_strbuf *out, const leati_manager *manager)
{
    leati_put_open(out, NULL, '{');
    leati_put_text(out, "version", leat_version());
    leati_put_open(out, "settings", '[');
    for (int key = 0; key < LEATI_CONFIG_COUNT; key++) {
        char value[64];
        leati_config_print(key, leati_config_get(&manager->options.config, key), value,
                           sizeof value);
        leati_put_open(out, NULL, '{');
        leati_put_text(out, "key", leati_config_describe(key)->name);
        leati_put_text(out, "value", value);
        leati_put_close(out, '}');
    }
    leati_put_close(out, ']');
    leati_put_close(out, '}');
}

// --- task managers ---

// The port for everybody, and the path of the socket file for the processes of its host.
static void put_data_address(leati_strbuf *out, const char *address)
{
    char port[sizeof(((leati_member *)NULL)->data_address)];
    const char *path = strstr(address, " ipc://");
    snprintf(port, sizeof port, "%.*s", (int)strcspn(address, " "), address);
    leati_put_text(out, "data_address", port);
    leati_put_text(out, "data_socket", path ? path + strlen(" ipc://") : "");
}

static void put_member(leati_strbuf *out, const leati_member *m)
{
    int64_t heard_ms = (leati_clock_ns() - m->heard_ns) / 1000000;
    leati_put_text(out, "id", m->id);
    leati_put_text(out, "name", m->name);
    leati_put_u64(out, "index", m->index);
    leati_put_bool(out, "alive", m->rpc != NULL);
    leati_put_text(out, "host", m->host);
    leati_put_i64(out, "pid", m->pid);
    put_data_address(out, m->data_address);
    leati_put_text(out, "log_path", m->log_path);
    leati_put_i64(out, "start_time", m->started_ms);
    leati_put_i64(out, "registered", m->registered_ms);
    leati_put_i64(out, "since_heartbeat", heard_ms > 0 ? heard_ms : 0);
    leati_put_u64(out, "slots_total", m->slots);
    leati_put_u64(out, "slots_free", m->slots > m->slots_used ? m->slots - m->slots_used : 0);
    leati_put_u64(out, "workers", m->workers);
    leati_put_open(out, "memory", '{');
    leati_put_u64(out, "network", m->memory_network);
    leati_put_u64(out, "segment_size", m->segment_size);
    leati_put_u64(out, "segments_total", m->beat.segments_total);
    leati_put_u64(out, "segments_free", m->beat.segments_free);
    leati_put_u64(out, "resident", m->beat.resident_bytes);
    leati_put_close(out, '}');
    leati_put_open(out, "process", '{');
    leati_put_f64(out, "cpu_seconds", (double)m->beat.cpu_ns / 1e9);
    leati_put_u64(out, "threads", m->beat.threads);
    leati_put_u64(out, "files", m->beat.files);
    leati_put_u64(out, "connections", m->beat.connections);
    leati_put_u64(out, "network_bytes_in", m->beat.network_bytes_in);
    leati_put_u64(out, "network_bytes_out", m->beat.network_bytes_out);
    leati_put_close(out, '}');
}

void leati_view_member(leati_strbuf *out, const leati_member *member)
{
    leati_put_open(out, NULL, '{');
    put_member(out, member);
    leati_put_close(out, '}');
}

void leati_view_members(leati_strbuf *out, const leati_manager *manager)
{
    leati_put_open(out, NULL, '{');
    leati_put_open(out, "taskmanagers", '[');
    for (const leati_member *m = manager->members; m; m = m->next)
        if (m->rpc)
            leati_view_member(out, m);
    leati_put_close(out, ']');
    leati_put_close(out, '}');
}

leati_member *leati_view_find_member(leati_manager *manager, const char *id)
{
    leati_member *found = NULL;
    size_t size = strlen(id);
    for (leati_member *m = manager->members; m; m = m->next) {
        char index[16];
        snprintf(index, sizeof index, "%u", m->index);
        bool by_index = m->index && m->rpc && !strcmp(index, id);
        if (by_index || !strcmp(m->id, id))
            return m;
        if (size < 4 || strncmp(m->id, id, size) != 0)
            continue;
        if (found)
            return NULL;
        found = m;
    }
    return found;
}
