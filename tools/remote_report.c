// SPDX-License-Identifier: Apache-2.0
#include "tools/remote_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "leat/leat.h"
#include "tools/style.h"
#include "tools/table.h"
#include "tools/text.h"

enum { NAME_COLUMNS = 60, TEXT_COLUMNS = 40, TEXT_SIZE = NAME_COLUMNS * 4 + 1, LIST_SHOWN = 10 };

// --- accumulators, in the words of `leat run` ---

static void put_text(const char *text, size_t columns)
{
    char shown[TEXT_SIZE];
    leati_shorten(text, columns, shown, sizeof shown);
    fputs(shown, stderr);
}

// With as many digits as a value needs to be told apart from all others.
static void put_f64(double value)
{
    char text[40];
    size_t size = leat_record_text(leat_type_scalar(LEAT_F64), &value, text, sizeof text);
    fwrite(text, 1, size < sizeof text ? size : sizeof text, stderr);
}

static void put_scalar(const leati_client_module *c, const leati_json *value, const char *nothing)
{
    switch (c->kind(value)) {
    case 'i':
        fprintf(stderr, "%" PRId64, c->integer(value));
        break;
    case 'f':
        put_f64(c->number(value));
        break;
    case 's':
        put_text(c->text(value), TEXT_COLUMNS);
        break;
    default:
        fputs(nothing, stderr);
        break;
    }
}

static void put_histogram(const leati_client_module *c, int64_t count, const leati_json *h)
{
    fprintf(stderr, "%" PRId64 " values", count);
    if (count)
        fprintf(stderr,
                ", min %" PRId64 ", mean %.6g, p50 %" PRId64 ", p95 %" PRId64 ", p99 %" PRId64
                ", max %" PRId64,
                c->integer(c->member(h, "min")), c->number(c->member(h, "mean")),
                c->integer(c->member(h, "p50")), c->integer(c->member(h, "p95")),
                c->integer(c->member(h, "p99")), c->integer(c->member(h, "max")));
}

static void put_list(const leati_client_module *c, const leati_json *list)
{
    size_t count = c->count(list);
    fprintf(stderr, "%zu value%s", count, count == 1 ? "" : "s");
    for (size_t i = 0; i < count && i < LIST_SHOWN; i++) {
        fputs(i ? ", " : ": ", stderr);
        put_scalar(c, c->item(list, i), "nan");
    }
    if (count > LIST_SHOWN)
        fputs(", ..", stderr);
}

static void put_accumulator(const leati_client_module *c, const leati_json *accumulator)
{
    const leati_json *value = c->member(accumulator, "value");
    const char *kind = c->text(c->member(accumulator, "kind"));
    fputs("accumulator ", stderr);
    put_text(c->text(c->member(accumulator, "name")), NAME_COLUMNS);
    fputs(": ", stderr);
    if (c->kind(value) == 'a')
        put_list(c, value);
    else if (!strcmp(kind, leat_accumulator_kind_name(LEAT_ACCUMULATOR_HISTOGRAM)))
        put_histogram(c, c->integer(c->member(accumulator, "count")), value);
    else
        put_scalar(c, value,
                   !strcmp(kind, leat_accumulator_kind_name(LEAT_ACCUMULATOR_SUM_I64))
                       ? "no number, or too large a one"
                       : "none");
    fputc('\n', stderr);
}

static void put_rejection(const leati_client_module *c, const leati_json *rejection)
{
    int64_t count = c->integer(c->member(rejection, "count"));
    fprintf(stderr, "%" PRId64 " record%s rejected by ", count, count == 1 ? "" : "s");
    put_text(c->text(c->member(rejection, "operator")), NAME_COLUMNS);
    fputc('\n', stderr);
}

// --- the end ---

static leati_exit status_of(const char *state, int caught)
{
    if (!strcmp(state, "FINISHED"))
        return LEATI_EXIT_OK;
    if (!strcmp(state, "CANCELED"))
        return caught ? (leati_exit)(LEATI_EXIT_SIGNAL + caught) : LEATI_EXIT_CANCELLED;
    return LEATI_EXIT_FAILED;
}

static void tell(const leati_client_module *c, const leati_json *result, const char *id)
{
    const char *state = c->text(c->member(result, "state"));
    const char *failure = c->text(c->member(result, "failure"));
    const leati_json *accumulators = c->member(result, "accumulators");
    const leati_json *rejected = c->member(result, "rejected");
    char took[LEATI_TIME_TEXT_SIZE];
    bool failed = !strcmp(state, "FAILED");
    if (failed)
        leati_complain(NULL, "job failed: %s", *failure ? failure : "no reason is known");
    for (size_t i = 0; !failed && i < c->count(accumulators); i++)
        put_accumulator(c, c->item(accumulators, i));
    for (size_t i = 0; i < c->count(rejected); i++)
        put_rejection(c, c->item(rejected, i));
    leati_duration_text(c->integer(c->member(result, "duration")), took);
    fprintf(stderr, "job %s %s after %s\n", id, state, took);
}

leati_exit leati_remote_report(leati_remote *remote, const leati_options *options, const char *id,
                               int caught)
{
    char path[LEATI_REMOTE_PATH_SIZE];
    leati_client_answer answer;
    leati_json *result = NULL;
    leati_exit status = leati_remote_job_path(id, "/execution-result", path);
    if (status == LEATI_EXIT_OK)
        status = leati_remote_get(remote, path, &answer, &result);
    if (status != LEATI_EXIT_OK)
        return status;
    if (options->json)
        fprintf(stderr, "%s%s", answer.body,
                answer.size && answer.body[answer.size - 1] == '\n' ? "" : "\n");
    else
        tell(remote->api, result, id);
    status = status_of(remote->api->text(remote->api->member(result, "state")), caught);
    remote->api->forget(result);
    return status;
}
