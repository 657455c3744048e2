// SPDX-License-Identifier: Apache-2.0
// Lines of CSV and JSON into typed records {i64, str, f64, timestamp, bool}: how many bytes a
// second one core reads. The yardstick is a bare loop over the parser of the library, with the text
// in memory; beside it stand a job that reads the same text from a file on one worker, and code
// written by hand for that struct and this very text, which checks nothing.
//
// Every variant must find the same records: the text is made from a seed, and the sum over its
// values is added up while it is made.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "bench/harness.h"
#include "bench/job.h"

typedef struct reading {
    int64_t id;
    leat_str city;
    double degrees;
    int64_t at;
    bool rain;
} reading;
LEAT_RECORD(reading, LEAT_FIELD(id, LEAT_I64), LEAT_FIELD(city, LEAT_STR),
            LEAT_FIELD(degrees, LEAT_F64), LEAT_FIELD(at, LEAT_TIMESTAMP),
            LEAT_FIELD(rain, LEAT_BOOL));

enum { DEFAULT_MB = 100, LONGEST_LINE = 512 };

typedef enum shape { CSV, CSV_QUOTED, CSV_WIDE, JSON, JSON_SHUFFLED, SHAPES } text_shape;

typedef struct work {
    text_shape shape;
    char *text;
    size_t size;
    char path[512]; // of a file with the text; "" when there is none
} work;

// --- the text ------------------------------------------------------------------------------------

static uint64_t sum_of(const reading *r)
{
    uint64_t bits;
    memcpy(&bits, &r->degrees, sizeof bits);
    return (uint64_t)r->id * 3 + r->city.size + (uint8_t)r->city.data[0] + (bits ^ bits >> 17) +
           (uint64_t)r->at * 5 + r->rain;
}

static size_t write_line(text_shape shape, const reading *r, const char *degrees, char *to,
                         size_t room)
{
    static const char *const formats[SHAPES] = {
        [CSV] = "%1$lld,%2$.*3$s,%4$s,%5$lld,%6$s\n",
        [CSV_QUOTED] = "%1$lld,\"%2$.*3$s\",%4$s,%5$lld,%6$s\n",
        [CSV_WIDE] =
            "station seven,%1$lld,,%2$.*3$s,0.25,measured by hand,%4$s,17,%5$lld,,%6$s,x\n",
        [JSON] =
            "{\"id\":%1$lld,\"city\":\"%2$.*3$s\",\"degrees\":%4$s,\"at\":%5$lld,\"rain\":%6$s}"
            "\n",
        [JSON_SHUFFLED] = "{\"station\": {\"name\": \"seven\", \"tags\": [1, 2]}, \"rain\": %6$s, "
                          "\"at\": %5$lld, \"city\": \"%2$.*3$s\", \"id\": %1$lld, \"degrees\": "
                          "%4$s}\n"};
    return (size_t)snprintf(to, room, formats[shape], (long long)r->id, r->city.data,
                            (int)r->city.size, degrees, (long long)r->at,
                            r->rain ? "true" : "false");
}

// The file for the job; it is read often enough to stay in the memory of the system.
static int write_file(work *w)
{
    const char *folder = getenv("TMPDIR");
    snprintf(w->path, sizeof w->path, "%s/leat-bench-XXXXXX", folder && *folder ? folder : "/tmp");
    int fd = mkstemp(w->path);
    size_t written = 0;
    while (fd >= 0 && written < w->size) {
        ssize_t some = write(fd, w->text + written, w->size - written);
        if (some <= 0)
            break;
        written += (size_t)some;
    }
    if (fd < 0 || written < w->size || close(fd) != 0) {
        perror(w->path);
        return -1;
    }
    return 0;
}

static int setup(bench_case *self, const bench_options *options)
{
    static const char *const headers[SHAPES] = {
        [CSV] = "id,city,degrees,at,rain\n",
        [CSV_QUOTED] = "id,city,degrees,at,rain\n",
        [CSV_WIDE] = "station,id,a,city,b,note,degrees,c,at,d,rain,e\n",
        [JSON] = "",
        [JSON_SHUFFLED] = ""};
    static const char letters[] = "Santiago de Compostela and Llanfairpwllgwyngyll";
    work *w = self->context;
    size_t wanted = (size_t)(options->quick ? 1 : options->size ? options->size : DEFAULT_MB) << 20;
    uint64_t seed = 42;
    w->text = malloc(wanted + LONGEST_LINE);
    if (!w->text) {
        fprintf(stderr, "bench parse: out of memory\n");
        return -1;
    }
    w->size = strlen(headers[w->shape]);
    memcpy(w->text, headers[w->shape], w->size);
    self->expected = (bench_outcome){0};
    for (int64_t i = 0; w->size < wanted; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        unsigned hundredths = (unsigned)(seed >> 33) % 5000;
        char degrees[24];
        snprintf(degrees, sizeof degrees, "%s%u.%02u", i % 7 ? "" : "-", hundredths / 100,
                 hundredths % 100);
        reading r = {i * 37,
                     {letters + (seed >> 45) % 20, 3 + (seed >> 50) % 20},
                     (i % 7 ? 1 : -1) * (double)hundredths / 100,
                     INT64_C(1700000000000) + i * 10,
                     (seed >> 60) % 2};
        w->size += write_line(w->shape, &r, degrees, w->text + w->size, LONGEST_LINE);
        self->expected.checksum += sum_of(&r);
    }
    self->expected.items = w->size;
    return write_file(w);
}

static void teardown(bench_case *self)
{
    work *w = self->context;
    free(w->text);
    w->text = NULL;
    if (w->path[0])
        unlink(w->path);
    w->path[0] = '\0';
}

// --- the parsers ---------------------------------------------------------------------------------

static int failed(const leat_parse_error *error)
{
    fprintf(stderr, "bench parse: at %zu: %s\n", error->offset, error->text);
    return -1;
}

static int loop_csv(const work *w, leat_csv *csv, leat_scratch *scratch, bench_outcome *outcome)
{
    leat_parse_error error = {0};
    size_t at = 0, consumed;
    reading r = {0};
    leat_csv_result result = leat_csv_header(csv, w->text, w->size, true, &consumed, &error);
    while (result == LEAT_CSV_RECORD) {
        at += consumed;
        result =
            leat_csv_next(csv, w->text + at, w->size - at, true, &consumed, &r, scratch, &error);
        if (result == LEAT_CSV_RECORD)
            outcome->checksum += sum_of(&r);
        leat_scratch_reset(scratch);
    }
    outcome->items = at;
    return result == LEAT_CSV_NONE ? 0 : failed(&error);
}

static int loop_json(const work *w, leat_scratch *scratch, bench_outcome *outcome)
{
    leat_parse_error error = {0};
    reading r = {0};
    const char *at = w->text, *end = w->text + w->size;
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        if (leat_record_from_json(LEAT_TYPE(reading), NULL, at, (size_t)(line_end - at), &r,
                                  scratch, &error) != LEAT_OK)
            return failed(&error);
        outcome->checksum += sum_of(&r);
        leat_scratch_reset(scratch);
        at = line_end + 1;
    }
    outcome->items = (uint64_t)(at - w->text);
    return 0;
}

static int run_parser(void *context, bench_outcome *outcome)
{
    const work *w = context;
    leat_csv *csv = NULL;
    leat_scratch *scratch = NULL;
    int status = -1;
    *outcome = (bench_outcome){0};
    if (leat_scratch_create(NULL, &scratch) == LEAT_OK &&
        leat_csv_create(NULL, LEAT_TYPE(reading), NULL, &csv, NULL) == LEAT_OK)
        status =
            w->shape >= JSON ? loop_json(w, scratch, outcome) : loop_csv(w, csv, scratch, outcome);
    leat_csv_destroy(&csv);
    leat_scratch_destroy(&scratch);
    return status;
}

// --- a job ---------------------------------------------------------------------------------------

static int add_reading(leat_ctx *ctx, const void *in)
{
    *(uint64_t *)leat_ctx_user_data(ctx) += sum_of(in);
    return 0;
}

static int run_job(void *context, bench_outcome *outcome)
{
    const work *w = context;
    leat_env *env = bench_env(1, 1);
    if (!env)
        return -1;
    *outcome = (bench_outcome){.items = w->size};
    leat_stream *in = w->shape >= JSON ? leat_read_json(env, w->path, LEAT_TYPE(reading), NULL)
                                       : leat_read_csv(env, w->path, LEAT_TYPE(reading), NULL);
    leat_user_data(leat_sink(in, add_reading), &outcome->checksum);
    return bench_execute(&env);
}

// --- by hand -------------------------------------------------------------------------------------

static const char *hand_integer(const char *at, int64_t *value)
{
    int64_t sum = 0;
    for (; (unsigned)(*at - '0') < 10; at++)
        sum = sum * 10 + (*at - '0');
    *value = sum;
    return at;
}

static const char *hand_real(const char *at, double *value)
{
    int64_t whole, hundredths;
    bool negative = *at == '-';
    at = hand_integer(at + negative, &whole);
    at = hand_integer(at + 1, &hundredths);
    *value = (negative ? -1 : 1) * (double)(whole * 100 + hundredths) / 100;
    return at;
}

// The line that is made of five values with fixed text before each.
static int run_by_hand(void *context, bench_outcome *outcome)
{
    const work *w = context;
    bool json = w->shape == JSON;
    const char *at = w->text, *end = w->text + w->size;
    char city_end = json ? '"' : ',';
    // Of the text before each value, its length is enough to know.
    size_t before[] = {json ? 6 : 0, json ? 9 : 1, json ? 12 : 1, json ? 6 : 1, json ? 8 : 1};
    *outcome = (bench_outcome){0};
    if (!json)
        at = (const char *)memchr(at, '\n', w->size) + 1;
    while (at < end) {
        reading r;
        at = hand_integer(at + before[0], &r.id) + before[1];
        const char *city = at;
        while (*at != city_end)
            at++;
        r.city = (leat_str){city, (size_t)(at - city)};
        at = hand_real(at + before[2], &r.degrees);
        at = hand_integer(at + before[3], &r.at) + before[4];
        r.rain = *at == 't';
        at += (r.rain ? 5 : 6) + json;
        outcome->checksum += sum_of(&r);
    }
    outcome->items = (uint64_t)(at - w->text);
    return 0;
}

int main(int argc, char **argv)
{
    static const bench_variant variants[] = {
        {"parser", run_parser, 0}, {"job", run_job, 0.5}, {"by hand", run_by_hand, 0}};
    static const char *const names[SHAPES] = {"csv", "csv-quoted", "csv-wide", "json",
                                              "json-shuffled"};
    work works[SHAPES] = {0};
    bench_case cases[SHAPES];
    for (int i = 0; i < SHAPES; i++) {
        works[i].shape = (text_shape)i;
        cases[i] = (bench_case){.name = names[i],
                                .unit = "bytes",
                                .variants = variants,
                                .variant_count = i == CSV || i == JSON ? 3 : 2,
                                .setup = setup,
                                .teardown = teardown,
                                .context = &works[i]};
    }
    return bench_main(argc, argv, "parse", cases, SHAPES);
}
