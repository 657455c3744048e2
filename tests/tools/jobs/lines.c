// SPDX-License-Identifier: Apache-2.0
// Prints the lines of standard input; the line "boom" makes the job fail.
#include <string.h>

#include "leat/leat.h"

static int pass(leat_ctx *ctx, const void *in, void *out)
{
    const leat_str *line = in;
    if (line->size == 4 && !memcmp(line->data, "boom", 4))
        return leat_fail(ctx, "a line says boom");
    *(leat_str *)out = *line;
    return 0;
}

LEAT_JOB(env, argc, argv)
{
    const leat_type *text = leat_type_scalar(LEAT_STR);
    leat_print(leat_map(leat_read_text(env, "-"), pass, text));
}
