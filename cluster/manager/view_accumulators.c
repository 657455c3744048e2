// SPDX-License-Identifier: Apache-2.0
// What a job has accumulated: the newest of what each participant has told, merged; and the result
// as a whole.
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/manager/view.h"
#include "runtime/placement.h"

static void put_histogram(leati_strbuf *out, const leat_histogram *h)
{
    static const struct {
        const char *name;
        double percent;
    } points[] = {{"p50", 50}, {"p75", 75}, {"p90", 90}, {"p95", 95}, {"p99", 99}, {"p99.9", 99.9}};
    leati_put_open(out, "value", '{');
    leati_put_i64(out, "min", leat_histogram_min(h));
    leati_put_f64(out, "mean", leat_histogram_mean(h));
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        leati_put_i64(out, points[i].name, leat_histogram_percentile(h, points[i].percent));
    leati_put_i64(out, "max", leat_histogram_max(h));
    leati_put_close(out, '}');
}

static void put_list(leati_strbuf *out, const leat_accumulator_value *v)
{
    leati_put_open(out, "value", '[');
    for (uint64_t i = 0; i < v->count; i++) {
        if (v->i64s)
            leati_put_i64(out, NULL, v->i64s[i]);
        else if (v->f64s)
            leati_put_f64(out, NULL, v->f64s[i]);
        else
            leati_put_str(out, NULL, v->strs[i]);
    }
    leati_put_close(out, ']');
}

// What has no value yet, and a sum that does not fit, is null.
static void put_value(leati_strbuf *out, const leat_accumulator_value *v)
{
    bool is_sum = v->kind == LEAT_ACCUMULATOR_SUM_I64 || v->kind == LEAT_ACCUMULATOR_SUM_F64;
    if (v->kind >= LEAT_ACCUMULATOR_LIST_I64)
        put_list(out, v);
    else if ((v->count == 0 && !is_sum) || v->overflow)
        leati_put_null(out, "value");
    else if (v->kind == LEAT_ACCUMULATOR_HISTOGRAM)
        put_histogram(out, v->histogram);
    else if (v->kind == LEAT_ACCUMULATOR_SUM_I64 || v->kind == LEAT_ACCUMULATOR_MIN_I64 ||
             v->kind == LEAT_ACCUMULATOR_MAX_I64)
        leati_put_i64(out, "value", v->i64);
    else
        leati_put_f64(out, "value", v->f64);
}

static void put_all(leati_strbuf *out, const leat_accumulators *all)
{
    leat_accumulator_value v;
    for (uint32_t i = 0; leat_accumulators_get(all, i, &v); i++) {
        leati_put_open(out, NULL, '{');
        leati_put_text(out, "name", v.name);
        leati_put_text(out, "kind", leat_accumulator_kind_name(v.kind));
        leati_put_u64(out, "count", v.count);
        put_value(out, &v);
        leati_put_close(out, '}');
    }
}

static leat_err merge(const leati_manager *manager, const leati_managed_job *job,
                      leat_accumulators **all)
{
    uint32_t count = job->participant_count, used = 0;
    const uint8_t **parts = leati_calloc(manager->allocator, count + 1, sizeof *parts);
    size_t *sizes = leati_calloc(manager->allocator, count + 1, sizeof *sizes);
    leat_err err = parts && sizes ? LEAT_OK : LEAT_ENOMEM;
    for (uint32_t i = 0; err == LEAT_OK && i < count; i++) {
        if (!job->participants[i].accumulators)
            continue;
        parts[used] = job->participants[i].accumulators;
        sizes[used++] = job->participants[i].accumulators_size;
    }
    *all = NULL;
    if (err == LEAT_OK && used)
        err = leati_accumulators_decode(manager->allocator, parts, sizes, used, all);
    leati_free(manager->allocator, parts);
    leati_free(manager->allocator, sizes);
    return err;
}

bool leati_view_accumulators(leati_strbuf *out, const leati_manager *manager,
                             const leati_managed_job *job)
{
    leat_accumulators *all = NULL;
    leat_err err = merge(manager, job, &all);
    leati_put_open(out, "accumulators", '[');
    if (err == LEAT_OK && all)
        put_all(out, all);
    leati_put_close(out, ']');
    if (err != LEAT_OK)
        leati_put_text(out, "error", leat_err_message(err));
    leat_accumulators_destroy(&all);
    return err == LEAT_OK;
}

// --- rejected records ---

static int64_t rejected_by(const leati_managed_job *job, uint32_t op_id)
{
    int64_t count = 0;
    for (uint32_t p = 0; p < job->participant_count; p++)
        for (size_t i = 0; i < job->participants[p].metric_count; i++) {
            const leati_msg_metric *m = &job->participants[p].metrics[i];
            if (m->built_in && m->op_id == op_id && !strcmp(m->name.data, "rejected"))
                count += m->count;
        }
    return count;
}

// Of those operators that have rejected any.
static void put_rejected(leati_strbuf *out, const leati_managed_job *job)
{
    leati_put_open(out, "rejected", '[');
    for (uint32_t v = 0; v < job->graph->vertex_count; v++)
        for (uint32_t i = 0; i < job->graph->vertices[v].op_count; i++) {
            const leati_chain_op *op = &job->graph->vertices[v].ops[i];
            int64_t count = rejected_by(job, op->node_id);
            if (count <= 0)
                continue;
            leati_put_open(out, NULL, '{');
            leati_put_text(out, "operator", op->name);
            leati_put_u64(out, "id", op->node_id);
            leati_put_i64(out, "count", count);
            leati_put_close(out, '}');
        }
    leati_put_close(out, ']');
}

// --- the result ---

void leati_view_result(leati_strbuf *out, const leati_manager *manager,
                       const leati_managed_job *job)
{
    bool final = leati_phase_is_final(job->phase);
    int64_t end_ms = final ? job->ended_ms : leati_view_now_ms();
    leati_put_open(out, NULL, '{');
    leati_put_text(out, "id", job->id);
    leati_put_text(out, "status", final ? "COMPLETED" : "IN_PROGRESS");
    leati_put_text(out, "state", leati_phase_name(job->phase));
    leati_put_i64(out, "duration", end_ms > job->submitted_ms ? end_ms - job->submitted_ms : 0);
    bool failed = job->phase == LEATI_PHASE_FAILED && job->failure_count;
    leati_put_text(out, "failure", failed ? job->failures[0].text : "");
    leati_view_accumulators(out, manager, job);
    put_rejected(out, job);
    leati_put_close(out, '}');
}
