// SPDX-License-Identifier: Apache-2.0
// Side outputs and union: sorts the lines of a log by their first word. The job file
// side_outputs.so:
//
//     leat run side_outputs.so -- server.log
//
// Lines that begin with ERROR or WARN leave the operator by side outputs of their own. What is left
// is printed as it is; errors and warnings come together again in a union, are printed after the
// word "alert", and are counted.
#include <leat/leat.h>
#include <string.h>

typedef struct {
    leat_str level, text;
} message;
LEAT_RECORD(message, LEAT_FIELD(level, LEAT_STR), LEAT_FIELD(text, LEAT_STR));

typedef struct {
    leat_str level;
    int64_t count;
} level_count;
LEAT_RECORD(level_count, LEAT_FIELD(level, LEAT_STR), LEAT_FIELD(count, LEAT_I64));

static const leat_tag errors = {"errors", LEAT_TYPE(message)};
static const leat_tag warnings = {"warnings", LEAT_TYPE(message)};

static bool begins_with(const leat_str *line, const char *word, message *found)
{
    size_t size = strlen(word);
    if (line->size <= size || memcmp(line->data, word, size) != 0 || line->data[size] != ' ')
        return false;
    *found = (message){{line->data, size}, {line->data + size + 1, line->size - size - 1}};
    return true;
}

// Results of collecting need no look here: when the job is ending, the next record does not come.
static int sort(leat_ctx *ctx, const void *in, leat_out *out)
{
    message found;
    if (begins_with(in, "ERROR", &found))
        (void)leat_collect_side(ctx, &errors, &found);
    else if (begins_with(in, "WARN", &found))
        (void)leat_collect_side(ctx, &warnings, &found);
    else
        (void)leat_collect(out, in);
    return 0;
}

static int one_of(leat_ctx *ctx, const void *in, void *out)
{
    *(level_count *)out = (level_count){((const message *)in)->level, 1};
    return 0;
}

LEAT_JOB(env, argc, argv)
{
    static const leat_process_fns sorting = {.element = sort};
    leat_env_set_name(env, "log by levels");
    leat_stream *lines = leat_read_text(env, argc > 1 ? argv[1] : "-");
    leat_stream *others = leat_process(lines, &sorting, leat_type_scalar(LEAT_STR));
    leat_name(others, "sort by level");
    leat_parallelism(leat_print(others), 1);

    leat_stream *both[] = {leat_side_output(others, &errors), leat_side_output(others, &warnings)};
    leat_stream *alerts = leat_union(both, 2);
    leat_parallelism(leat_print_as(alerts, "alert"), 1);
    leat_stream *ones = leat_map(alerts, one_of, LEAT_TYPE(level_count));
    leat_stream *counts = leat_final_only(leat_sum(leat_key_by(ones, "level"), "count"));
    leat_parallelism(leat_print_as(counts, "count"), 1);
}
