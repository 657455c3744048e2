// SPDX-License-Identifier: Apache-2.0
// Prints what a job has brought along, in each subtask: the number that a library beside the job
// file knows, the first line of the cached file "table", and what the cached program "tool" in the
// cached folder "bin" prints.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "leat/leat.h"

int brought_number(void);

static int make(leat_ctx *ctx, int64_t index, void *out)
{
    *(int64_t *)out = index;
    return 0;
}

static int first_line(leat_ctx *ctx, FILE *file, char *line, int size)
{
    if (!file || !fgets(line, size, file))
        return leat_fail(ctx, "nothing to read");
    line[strcspn(line, "\n")] = '\0';
    return 0;
}

static int look(leat_ctx *ctx, const void *in, void *out)
{
    char table[128], tool[128], path[4096];
    const char *table_path = leat_ctx_cached_file(ctx, "table");
    const char *folder = leat_ctx_cached_file(ctx, "bin");
    if (!table_path || !folder)
        return -1;
    FILE *file = fopen(table_path, "r");
    int result = first_line(ctx, file, table, sizeof table);
    if (file)
        fclose(file);
    snprintf(path, sizeof path, "%s/deep/tool", folder);
    file = result == 0 ? popen(path, "r") : NULL;
    result = first_line(ctx, file, tool, sizeof tool);
    if (file)
        pclose(file);
    if (result != 0)
        return result;
    char *text = leat_ctx_scratch(ctx, 512);
    int size = snprintf(text, 512, "%lld %d %s %s", (long long)*(const int64_t *)in,
                        brought_number(), table, tool);
    *(leat_str *)out = (leat_str){text, (size_t)size};
    return 0;
}

LEAT_JOB(env, argc, argv)
{
    leat_stream *numbers = leat_generate(env, make, 3, 0, LEAT_SCALAR(LEAT_I64));
    leat_stream *looked = leat_map(leat_rebalance(numbers), look, LEAT_SCALAR(LEAT_STR));
    leat_parallelism(leat_print(looked), 1);
}
