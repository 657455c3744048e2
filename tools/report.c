// SPDX-License-Identifier: Apache-2.0
#include "tools/report.h"

#include <inttypes.h>
#include <string.h>

#include "tools/style.h"
#include "tools/text.h"

enum { NAME_COLUMNS = 60, TEXT_COLUMNS = 40, TEXT_SIZE = NAME_COLUMNS * 4 + 1, LIST_SHOWN = 10 };

static void put_name(FILE *to, const char *name)
{
    char text[TEXT_SIZE];
    leati_shorten(name, NAME_COLUMNS, text, sizeof text);
    fputs(text, to);
}

// With as many digits as the value needs to be told apart from all others.
static void put_f64(FILE *to, double value)
{
    char text[40];
    size_t size = leat_record_text(leat_type_scalar(LEAT_F64), &value, text, sizeof text);
    fwrite(text, 1, size < sizeof text ? size : sizeof text, to);
}

static void put_histogram(FILE *to, const leat_histogram *h)
{
    fprintf(to, "%" PRIu64 " values", leat_histogram_count(h));
    if (leat_histogram_count(h))
        fprintf(to,
                ", min %" PRId64 ", mean %.6g, p50 %" PRId64 ", p95 %" PRId64 ", p99 %" PRId64
                ", max %" PRId64,
                leat_histogram_min(h), leat_histogram_mean(h), leat_histogram_percentile(h, 50),
                leat_histogram_percentile(h, 95), leat_histogram_percentile(h, 99),
                leat_histogram_max(h));
}

// --- metrics ---

static void put_metric(void *user, const leat_metric *m)
{
    FILE *to = user;
    if (m->built_in)
        return;
    fputs("metric ", to);
    put_name(to, m->op_name);
    fprintf(to, " (%" PRIu32 "/%" PRIu32 ") ", m->subtask + 1, m->parallelism);
    put_name(to, m->name);
    fputs(": ", to);
    switch (m->kind) {
    case LEAT_METRIC_COUNTER:
        fprintf(to, "%" PRId64, m->count);
        break;
    case LEAT_METRIC_GAUGE:
        put_f64(to, m->value);
        break;
    case LEAT_METRIC_METER:
        fprintf(to, "%" PRId64 ", %.6g/s", m->count, m->value);
        break;
    case LEAT_METRIC_HISTOGRAM:
        put_histogram(to, m->histogram);
        break;
    }
    fputc('\n', to);
}

void leati_report_metrics(FILE *to, const leat_job *job)
{
    leat_job_each_metric(job, put_metric, to);
}

// --- accumulators ---

static void put_str(FILE *to, leat_str str)
{
    char raw[TEXT_SIZE], text[TEXT_SIZE];
    // Of a long text only the beginning is looked at.
    size_t size = str.size < sizeof raw ? str.size : sizeof raw - 1;
    for (size_t i = 0; i < size; i++)
        raw[i] = str.data[i] ? str.data[i] : '?';
    raw[size] = '\0';
    leati_shorten(raw, TEXT_COLUMNS, text, sizeof text);
    fputs(text, to);
}

static void put_list(FILE *to, const leat_accumulator_value *v)
{
    fprintf(to, "%" PRIu64 " value%s", v->count, v->count == 1 ? "" : "s");
    for (uint64_t i = 0; i < v->count && i < LIST_SHOWN; i++) {
        fputs(i ? ", " : ": ", to);
        if (v->i64s)
            fprintf(to, "%" PRId64, v->i64s[i]);
        else if (v->f64s)
            put_f64(to, v->f64s[i]);
        else
            put_str(to, v->strs[i]);
    }
    if (v->count > LIST_SHOWN)
        fputs(", ..", to);
}

static void put_value(FILE *to, const leat_accumulator_value *v)
{
    switch (v->kind) {
    case LEAT_ACCUMULATOR_SUM_I64:
        fprintf(to, "%" PRId64 "%s", v->i64, v->overflow ? " (does not fit into 64 bits)" : "");
        break;
    case LEAT_ACCUMULATOR_SUM_F64:
        put_f64(to, v->f64);
        break;
    case LEAT_ACCUMULATOR_HISTOGRAM:
        put_histogram(to, v->histogram);
        break;
    case LEAT_ACCUMULATOR_LIST_I64:
    case LEAT_ACCUMULATOR_LIST_F64:
    case LEAT_ACCUMULATOR_LIST_STR:
        put_list(to, v);
        break;
    case LEAT_ACCUMULATOR_MIN_I64:
    case LEAT_ACCUMULATOR_MAX_I64:
        if (v->count)
            fprintf(to, "%" PRId64, v->i64);
        else
            fputs("none", to);
        break;
    default:
        if (v->count)
            put_f64(to, v->f64);
        else
            fputs("none", to);
        break;
    }
}

static void put_accumulators(FILE *to, const leat_job *job)
{
    leat_accumulators *all;
    leat_err err = leat_job_accumulators(job, &all);
    if (err) {
        leati_complain(NULL, "the accumulators: %s", leat_err_message(err));
        return;
    }
    leat_accumulator_value value;
    for (uint32_t i = 0; leat_accumulators_get(all, i, &value); i++) {
        fprintf(to, "accumulator ");
        put_name(to, value.name);
        fprintf(to, ": ");
        put_value(to, &value);
        fputc('\n', to);
    }
    leat_accumulators_destroy(&all);
}

bool leati_report_has_results(const leat_job *job)
{
    leat_job_state state = leat_job_get_state(job);
    return state == LEAT_JOB_FINISHED || state == LEAT_JOB_CANCELED;
}

// --- rejected records ---

// The subtasks of an operator come one after another.
typedef struct rejections {
    FILE *to;
    uint32_t op_id;
    const char *op_name;
    int64_t count;
} rejections;

static void put_rejections(const rejections *r)
{
    if (!r->count)
        return;
    fprintf(r->to, "%" PRId64 " record%s rejected by ", r->count, r->count == 1 ? "" : "s");
    put_name(r->to, r->op_name);
    fputc('\n', r->to);
}

static void add_rejections(void *user, const leat_metric *m)
{
    rejections *r = user;
    if (!m->built_in || strcmp(m->name, "rejected") != 0)
        return;
    if (m->op_id != r->op_id) {
        put_rejections(r);
        *r = (rejections){.to = r->to, .op_id = m->op_id, .op_name = m->op_name};
    }
    r->count += m->count;
}

void leati_report_results(FILE *to, const leat_job *job)
{
    if (leati_report_has_results(job))
        put_accumulators(to, job);
    rejections r = {.to = to};
    leat_job_each_metric(job, add_rejections, &r);
    put_rejections(&r);
}
