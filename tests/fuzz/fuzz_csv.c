// SPDX-License-Identifier: Apache-2.0
// The first three bytes choose options, a type and the size of refills; the rest is read as a file
// of CSV. Read in pieces it must give the same as read at once. Each record that is read must
// survive being written and read once more.
#include <stdio.h>

#include "leat/csv.h"
#include "tests/record/samples.h"

// A finding: libFuzzer and the tests both see an abort.
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "fuzz_csv: line %d: %s\n", __LINE__, #condition);                      \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

typedef struct line {
    leat_str text;
    const leat_str *note;
    const int16_t *number;
} line;
LEAT_RECORD(line, LEAT_FIELD(text, LEAT_STR), LEAT_FIELD_OPTIONAL(note, LEAT_SCALAR(LEAT_STR)),
            LEAT_FIELD_OPTIONAL(number, LEAT_SCALAR(LEAT_I16)));
typedef struct single {
    leat_str text;
} single;
LEAT_RECORD(single, LEAT_FIELD(text, LEAT_STR));

static const leat_type *const types[] = {LEAT_TYPE(line),       LEAT_TYPE(single),
                                         LEAT_TYPE(word_count), LEAT_TYPE(person),
                                         LEAT_TYPE(scalars),    LEAT_TYPE(row)};
enum { TYPES = sizeof types / sizeof *types };

typedef struct input {
    const leat_type *type;
    leat_csv_options options;
    const char *text;
    size_t size;
} input;

// One result of reading: of a file read at once and of one read in pieces they must be alike.
typedef struct result {
    leat_csv_result code;
    size_t end; // from the start of the file
    leat_parse_error error;
} result;

typedef struct reader {
    const input *in;
    leat_csv *csv;
    leat_scratch *scratch;
    size_t at, have, step;
    void *record;
    char *block; // what the last call was given
} reader;

static void open_reader(reader *r, const input *in, size_t step)
{
    *r = (reader){.in = in, .step = step, .have = step};
    r->record = calloc(1, in->type->size);
    EXPECT(r->record && leat_scratch_create(NULL, &r->scratch) == LEAT_OK);
    EXPECT(leat_csv_create(NULL, in->type, &in->options, &r->csv, NULL) == LEAT_OK);
}

static void close_reader(reader *r)
{
    leat_csv_destroy(&r->csv);
    leat_scratch_destroy(&r->scratch);
    free(r->record);
    free(r->block);
}

static result step(reader *r, bool header)
{
    for (;;) {
        size_t left = r->in->size - r->at, consumed = SIZE_MAX;
        if (r->have > left)
            r->have = left;
        bool at_end = r->have == left;
        result got = {.error.offset = SIZE_MAX};
        free(r->block);
        r->block = malloc(r->have ? r->have : 1);
        EXPECT(r->block);
        memcpy(r->block, r->in->text + r->at, r->have);
        leat_scratch_reset(r->scratch);
        got.code = header
                       ? leat_csv_header(r->csv, r->block, r->have, at_end, &consumed, &got.error)
                       : leat_csv_next(r->csv, r->block, r->have, at_end, &consumed, r->record,
                                       r->scratch, &got.error);
        EXPECT(got.code != LEAT_CSV_NOMEM && consumed <= r->have);
        if (got.code != LEAT_CSV_MORE) {
            EXPECT(got.code != LEAT_CSV_BAD ||
                   (got.error.offset <= r->have && got.error.text[0] && consumed > 0));
            EXPECT(got.code != LEAT_CSV_RECORD || header || consumed > 0);
            r->at += consumed;
            r->have -= consumed;
            got.end = r->at;
            return got;
        }
        EXPECT(!at_end && consumed == 0);
        r->have += r->step;
    }
}

// Written, and read again as a file of one line.
static void check_round(const reader *r)
{
    const leat_type *type = r->in->type;
    leat_csv_options options = {.delimiter = r->in->options.delimiter,
                                .quote = r->in->options.quote,
                                .missing = r->in->options.missing,
                                .no_header = true};
    leat_csv *csv;
    leat_scratch *scratch;
    leat_parse_error error;
    EXPECT(leat_csv_create(NULL, type, &options, &csv, NULL) == LEAT_OK);
    EXPECT(leat_scratch_create(NULL, &scratch) == LEAT_OK);
    size_t size = leat_csv_write(csv, r->record, NULL, 0), skip, consumed;
    char *text = malloc(size + 1);
    void *again = calloc(1, type->size);
    EXPECT(text && again);
    EXPECT(leat_csv_write(csv, r->record, text, size) == size);
    EXPECT(leat_text_start(text, size, &skip, NULL) == LEAT_OK && skip == 0);
    text[size] = '\n';
    EXPECT(leat_csv_next(csv, text, size + 1, false, &consumed, again, scratch, &error) ==
           LEAT_CSV_RECORD);
    EXPECT(consumed == size + 1 && leat_record_equal(type, r->record, again));
    free(again);
    free(text);
    leat_csv_destroy(&csv);
    leat_scratch_destroy(&scratch);
}

static void check(const input *in, size_t size_of_step)
{
    reader whole, pieces;
    open_reader(&whole, in, in->size);
    open_reader(&pieces, in, size_of_step);
    for (bool header = true;; header = false) {
        result a = step(&whole, header), b = step(&pieces, header);
        EXPECT(a.code == b.code);
        // A file that is no CSV in UTF-8 is passed over as far as it is there.
        if (header && a.code == LEAT_CSV_BAD)
            break;
        EXPECT(a.end == b.end);
        EXPECT(a.code != LEAT_CSV_BAD ||
               (a.error.offset == b.error.offset && strcmp(a.error.text, b.error.text) == 0));
        if (a.code == LEAT_CSV_RECORD && !header) {
            EXPECT(leat_record_equal(in->type, whole.record, pieces.record));
            check_round(&whole);
        }
        if (whole.at == in->size)
            break;
    }
    close_reader(&whole);
    close_reader(&pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    input in = {.type = types[data[1] % TYPES],
                .options = {.delimiter = data[0] & 1 ? ';' : ',',
                            .quote = data[0] & 2 ? '\'' : '"',
                            .no_header = (data[0] & 4) != 0,
                            .no_multiline = (data[0] & 8) != 0,
                            .ignore_extra = (data[0] & 16) != 0,
                            .fill_short = (data[0] & 32) != 0,
                            .missing = data[0] & 64 ? "NA" : NULL},
                .text = (const char *)data + 3,
                .size = size - 3};
    check(&in, (size_t)data[2] + 1);
    return 0;
}
