// SPDX-License-Identifier: Apache-2.0
// Runs the readers over cases from standard input, for compare_readers.py. A case is its size (four
// bytes in the order of the machine) and its bytes; for each case a line is printed.
//
// usage: readers csv|json
//
// json: 1 if the text is an object that can be read, else 0 and why. csv: the records of the text
// as JSON, of three strings each, up to the first bad one; each is followed by a TAB.
#include <stdio.h>
#include <string.h>

#include "leat/csv.h"

typedef struct three {
    leat_str a, b, c;
} three;
LEAT_RECORD(three, LEAT_FIELD(a, LEAT_STR), LEAT_FIELD(b, LEAT_STR), LEAT_FIELD(c, LEAT_STR));
// Of objects without this member everything is passed over.
typedef struct nothing {
    const bool *unlikely;
} nothing;
LEAT_RECORD(nothing, LEAT_FIELD_OPTIONAL(unlikely, LEAT_SCALAR(LEAT_BOOL)));

static char text[1 << 16], printed[1 << 20];

static void json_case(size_t size, leat_scratch *scratch)
{
    nothing record;
    leat_parse_error error = {0};
    leat_scratch_reset(scratch);
    leat_err err =
        leat_record_from_json(LEAT_TYPE(nothing), NULL, text, size, &record, scratch, &error);
    printf("%d %s\n", err == LEAT_OK, error.text);
}

static void csv_case(leat_csv *csv, size_t size, leat_scratch *scratch)
{
    leat_csv_result result = LEAT_CSV_NONE;
    for (size_t at = 0, consumed; at < size && result != LEAT_CSV_BAD; at += consumed) {
        three record;
        leat_parse_error error;
        leat_scratch_reset(scratch);
        result =
            leat_csv_next(csv, text + at, size - at, true, &consumed, &record, scratch, &error);
        if (result == LEAT_CSV_RECORD) {
            size_t length = leat_record_json(LEAT_TYPE(three), &record, printed, sizeof printed);
            printf("%.*s\t", (int)length, printed);
        } else if (result == LEAT_CSV_BAD) {
            printf("bad: %s\t", error.text);
        }
    }
    putchar('\n');
}

int main(int argc, char **argv)
{
    static const leat_csv_options options = {.no_header = true};
    leat_csv *csv = NULL;
    leat_scratch *scratch = NULL;
    uint32_t size;
    int status = 1;
    if (argc == 2 && leat_scratch_create(NULL, &scratch) == LEAT_OK &&
        leat_csv_create(NULL, LEAT_TYPE(three), &options, &csv, NULL) == LEAT_OK) {
        status = 0;
        while (fread(&size, sizeof size, 1, stdin) == 1) {
            if (size > sizeof text || fread(text, 1, size, stdin) != size) {
                status = 1;
                break;
            }
            if (strcmp(argv[1], "csv") == 0)
                csv_case(csv, size, scratch);
            else
                json_case(size, scratch);
        }
    }
    leat_csv_destroy(&csv);
    leat_scratch_destroy(&scratch);
    return status;
}
