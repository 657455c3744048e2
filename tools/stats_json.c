// SPDX-License-Identifier: Apache-2.0
// The statistics of a job as one JSON object.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "tools/report.h"
#include "tools/stats.h"

typedef struct list {
    leati_strbuf *to;
    bool begun;
} list;

static void next_item(list *l)
{
    leati_strbuf_puts(l->to, l->begun ? ",\n    " : "\n    ");
    l->begun = true;
}

static void put_text(leati_strbuf *to, const char *text)
{
    leati_strbuf_json_string(to, text, strlen(text));
}

// NaN and infinities become null, as wherever a record is written as JSON.
static void put_f64(leati_strbuf *to, double value)
{
    char text[40];
    size_t size = leat_record_json(leat_type_scalar(LEAT_F64), &value, text, sizeof text);
    leati_strbuf_append(to, text, size < sizeof text ? size : sizeof text);
}

static void put_i64(leati_strbuf *to, int64_t value)
{
    leati_strbuf_printf(to, "%" PRId64, value);
}

static void put_histogram(leati_strbuf *to, const leat_histogram *h)
{
    static const double percents[] = {50, 75, 90, 95, 99, 99.9};
    leati_strbuf_printf(to, "{\"min\": %" PRId64 ", \"mean\": ", leat_histogram_min(h));
    put_f64(to, leat_histogram_mean(h));
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++)
        leati_strbuf_printf(to, ", \"p%g\": %" PRId64, percents[i],
                            leat_histogram_percentile(h, percents[i]));
    leati_strbuf_printf(to, ", \"max\": %" PRId64 "}", leat_histogram_max(h));
}

// --- tasks ---

static void put_task(leati_strbuf *to, const leat_task_stats *s)
{
    leati_strbuf_puts(to, "{\"name\": ");
    put_text(to, s->name);
    leati_strbuf_printf(to, ", \"subtask\": %" PRIu32 ", \"parallelism\": %" PRIu32, s->subtask,
                        s->parallelism);
    const struct {
        const char *name;
        uint64_t value;
    } figures[] = {
        {"records_in", s->records_in},
        {"records_out", s->records_out},
        {"bytes_in", s->bytes_in},
        {"bytes_out", s->bytes_out},
        {"busy_ns", s->busy_ns},
        {"idle_ns", s->idle_ns},
        {"soft_ns", s->soft_ns},
        {"hard_ns", s->hard_ns},
        {"segments_peak", s->segments_peak},
        {"segments_limit", s->segments_limit},
    };
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        leati_strbuf_printf(to, ", \"%s\": %" PRIu64, figures[i].name, figures[i].value);
    leati_strbuf_printf(to, ", \"source\": %s, \"state\": \"%s\"}", s->is_source ? "true" : "false",
                        s->state);
}

static void put_tasks(leati_strbuf *to, const leat_job *job)
{
    list l = {.to = to};
    uint32_t count = leat_job_task_count(job);
    for (uint32_t i = 0; i < count; i++) {
        leat_task_stats stats;
        leat_job_task_stats(job, i, &stats);
        next_item(&l);
        put_task(to, &stats);
    }
}

// --- metrics ---

static void put_metric(void *user, const leat_metric *m)
{
    static const char *const kinds[] = {"counter", "gauge", "meter", "histogram"};
    list *l = user;
    next_item(l);
    leati_strbuf_puts(l->to, "{\"operator\": ");
    put_text(l->to, m->op_name);
    leati_strbuf_printf(l->to,
                        ", \"id\": %" PRIu32 ", \"subtask\": %" PRIu32 ", \"built_in\": %s"
                        ", \"kind\": \"%s\", \"name\": ",
                        m->op_id, m->subtask, m->built_in ? "true" : "false", kinds[m->kind]);
    put_text(l->to, m->name);
    if (m->kind != LEAT_METRIC_GAUGE)
        leati_strbuf_printf(l->to, ", \"count\": %" PRId64, m->count);
    if (m->kind == LEAT_METRIC_GAUGE || m->kind == LEAT_METRIC_METER) {
        leati_strbuf_puts(l->to, m->kind == LEAT_METRIC_GAUGE ? ", \"value\": " : ", \"rate\": ");
        put_f64(l->to, m->value);
    } else if (m->histogram) {
        leati_strbuf_puts(l->to, ", \"value\": ");
        put_histogram(l->to, m->histogram);
    }
    leati_strbuf_putc(l->to, '}');
}

// --- accumulators ---

static void put_list(leati_strbuf *to, const leat_accumulator_value *v)
{
    leati_strbuf_putc(to, '[');
    for (uint64_t i = 0; i < v->count; i++) {
        leati_strbuf_puts(to, i ? ", " : "");
        if (v->i64s)
            put_i64(to, v->i64s[i]);
        else if (v->f64s)
            put_f64(to, v->f64s[i]);
        else
            leati_strbuf_json_string(to, v->strs[i].data, v->strs[i].size);
    }
    leati_strbuf_putc(to, ']');
}

static void put_value(leati_strbuf *to, const leat_accumulator_value *v)
{
    bool is_sum = v->kind == LEAT_ACCUMULATOR_SUM_I64 || v->kind == LEAT_ACCUMULATOR_SUM_F64;
    if (v->kind >= LEAT_ACCUMULATOR_LIST_I64)
        put_list(to, v);
    else if ((v->count == 0 && !is_sum) || v->overflow)
        leati_strbuf_puts(to, "null");
    else if (v->kind == LEAT_ACCUMULATOR_HISTOGRAM)
        put_histogram(to, v->histogram);
    else if (v->kind == LEAT_ACCUMULATOR_SUM_I64 || v->kind == LEAT_ACCUMULATOR_MIN_I64 ||
             v->kind == LEAT_ACCUMULATOR_MAX_I64)
        put_i64(to, v->i64);
    else
        put_f64(to, v->f64);
}

static leat_err put_accumulators(leati_strbuf *to, const leat_job *job)
{
    leat_accumulators *all;
    leat_err err = leat_job_accumulators(job, &all);
    if (err)
        return err;
    list l = {.to = to};
    leat_accumulator_value value;
    for (uint32_t i = 0; leat_accumulators_get(all, i, &value); i++) {
        next_item(&l);
        leati_strbuf_puts(to, "{\"name\": ");
        put_text(to, value.name);
        leati_strbuf_printf(to, ", \"kind\": \"%s\", \"count\": %" PRIu64 ", \"value\": ",
                            leat_accumulator_kind_name(value.kind), value.count);
        put_value(to, &value);
        leati_strbuf_putc(to, '}');
    }
    leat_accumulators_destroy(&all);
    return LEAT_OK;
}

leat_err leati_stats_print_json(FILE *to, const leat_job *job, double seconds)
{
    leati_strbuf text;
    leati_strbuf_init(&text, NULL);
    leati_strbuf_printf(
        &text, "{\"state\": \"%s\", \"seconds\": ", leat_job_state_name(leat_job_get_state(job)));
    put_f64(&text, seconds);
    leati_strbuf_printf(&text, ", \"records_read\": %" PRIu64 ",\n  \"tasks\": [",
                        leati_stats_records_read(job));
    put_tasks(&text, job);
    leati_strbuf_puts(&text, "],\n  \"metrics\": [");
    leat_job_each_metric(job, put_metric, &(list){.to = &text});
    leati_strbuf_puts(&text, "],\n  \"accumulators\": [");
    leat_err err = leati_report_has_results(job) ? put_accumulators(&text, job) : LEAT_OK;
    leati_strbuf_puts(&text, "]}\n");
    if (!err && text.failed)
        err = LEAT_ENOMEM;
    if (!err)
        fwrite(text.data, 1, text.size, to);
    leati_strbuf_fini(&text);
    return err;
}
