// SPDX-License-Identifier: Apache-2.0
// A file that a job brings along: the names of countries for their codes. The job file
// countries.so:
//
//     printf 'fi Finland\nno Norway\n' >countries.txt
//     printf 'no\nfi\nxx\n' | leat run --file countries=countries.txt countries.so
//
// In a cluster (`leat submit`) the file goes along with the job, and each task manager has a copy
// of its own.
#include <leat/leat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 64, COUNTRIES_MOST = 300 };

typedef struct {
    int count;
    char code[COUNTRIES_MOST][3];
    char name[COUNTRIES_MOST][NAME_BYTES];
} table;

// Each subtask reads the table before its first record.
static int read_table(leat_ctx *ctx)
{
    const char *path = leat_ctx_cached_file(ctx, "countries");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!path)
        return -1;
    table *made = calloc(1, sizeof *made);
    if (!file || !made) {
        free(made);
        if (file)
            fclose(file);
        return leat_fail(ctx, "%s cannot be read", path);
    }
    while (made->count < COUNTRIES_MOST &&
           fscanf(file, "%2s %63[^\n]", made->code[made->count], made->name[made->count]) == 2)
        made->count++;
    fclose(file);
    leat_ctx_set_local(ctx, made);
    return 0;
}

static int free_table(leat_ctx *ctx)
{
    free(leat_ctx_local(ctx));
    return 0;
}

static int name_of(leat_ctx *ctx, const void *in, void *out)
{
    const leat_str *code = in;
    const table *all = leat_ctx_local(ctx);
    *(leat_str *)out = *code;
    for (int i = 0; i < all->count; i++)
        if (code->size == 2 && memcmp(code->data, all->code[i], 2) == 0)
            *(leat_str *)out = (leat_str){all->name[i], strlen(all->name[i])};
    return 0;
}

LEAT_JOB(env, argc, argv)
{
    leat_stream *codes = leat_read_text(env, argc > 1 ? argv[1] : "-");
    leat_stream *names = leat_map(codes, name_of, leat_type_scalar(LEAT_STR));
    leat_rich(names, read_table, free_table);
    leat_parallelism(leat_print(names), 1);
}
