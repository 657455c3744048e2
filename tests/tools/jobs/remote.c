// SPDX-License-Identifier: Apache-2.0
// Jobs for a cluster, by their first argument: "fail" fails at the seventh number, "sum" counts
// with accumulators, "note" prints the first line of the cached file "note", "arguments" prints the
// arguments, "wide" prints many numbers, "wider" so many that they fit nowhere while nobody reads.
#include <stdio.h>
#include <string.h>

#include "leat/leat.h"

static char line[4096];

static int fail_at_seven(leat_ctx *ctx, const void *in)
{
    if (*(const int64_t *)in == 7)
        return leat_fail(ctx, "seven is unlucky");
    return 1;
}

static int sum(leat_ctx *ctx, const void *in)
{
    int64_t number = *(const int64_t *)in;
    leat_accumulator_add_i64(leat_ctx_accumulator(ctx, "sum", LEAT_ACCUMULATOR_SUM_I64), number);
    leat_accumulator_add_i64(leat_ctx_accumulator(ctx, "most", LEAT_ACCUMULATOR_MAX_I64), number);
    leat_accumulator_add_i64(leat_ctx_accumulator(ctx, "sizes", LEAT_ACCUMULATOR_HISTOGRAM),
                             number);
    leat_accumulator_add_i64(leat_ctx_accumulator(ctx, "all", LEAT_ACCUMULATOR_LIST_I64), number);
    return 1;
}

static int read_note(leat_ctx *ctx, const void *in, void *out)
{
    const char *path = leat_ctx_cached_file(ctx, "note");
    FILE *from = path ? fopen(path, "r") : NULL;
    if (!path)
        return -1;
    if (!from || !fgets(line, sizeof line, from)) {
        if (from)
            fclose(from);
        return leat_fail(ctx, "the note cannot be read");
    }
    fclose(from);
    *(leat_str *)out = (leat_str){line, strcspn(line, "\n")};
    return 0;
}

static int tell_arguments(leat_ctx *ctx, const void *in, void *out)
{
    *(leat_str *)out = (leat_str){line, strlen(line)};
    return 0;
}

LEAT_JOB(env, argc, argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    const leat_type *text = leat_type_scalar(LEAT_STR);
    int64_t most = !strcmp(mode, "wide") ? 200000 : !strcmp(mode, "wider") ? 1000000 : 10;
    leat_stream *numbers = leat_sequence(env, 1, most);
    if (!strcmp(mode, "fail")) {
        leat_print(leat_name(leat_filter(numbers, fail_at_seven), "unlucky"));
    } else if (!strcmp(mode, "sum")) {
        leat_discard(leat_filter(numbers, sum));
    } else if (!strncmp(mode, "wide", 4)) {
        leat_print(numbers);
    } else {
        for (int i = 1; i < argc; i++)
            snprintf(line + strlen(line), sizeof line - strlen(line), "[%s]", argv[i]);
        leat_stream *one = leat_sequence(env, 1, 1);
        leat_discard(numbers);
        leat_print(leat_map(one, strcmp(mode, "note") ? tell_arguments : read_note, text));
    }
}
