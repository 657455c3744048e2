// SPDX-License-Identifier: Apache-2.0
// A stream that is told what to do by another one while it runs. The job file control_stream.so:
//
//     mkfifo control
//     leat run control_stream.so -- control < words
//
// Words come from standard input, a line each, and are printed. A line `block WORD` or `allow WORD`
// in the control file, best a FIFO that somebody writes to now and then, says which words are left
// out from now on, and is acknowledged with a line of its own. The job ends when both inputs have.
#include <leat/leat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What each subtask knows: the blocked words, as copies, because records are gone after the call.
typedef struct {
    leat_str *words;
    size_t count;
} blocked;

static int open_blocked(leat_ctx *ctx)
{
    blocked *b = calloc(1, sizeof *b);
    leat_ctx_set_local(ctx, b);
    return b ? 0 : leat_fail(ctx, "out of memory");
}

static int close_blocked(leat_ctx *ctx)
{
    blocked *b = leat_ctx_local(ctx);
    for (size_t i = 0; i < b->count; i++)
        free((char *)b->words[i].data);
    free(b->words);
    free(b);
    return 0;
}

// The place of a word; the count when it is not blocked.
static size_t find(const blocked *b, leat_str word)
{
    size_t i = 0;
    while (i < b->count &&
           (b->words[i].size != word.size || memcmp(b->words[i].data, word.data, word.size) != 0))
        i++;
    return i;
}

static int block(leat_ctx *ctx, blocked *b, leat_str word)
{
    char *copy = malloc(word.size + 1);
    leat_str *words = realloc(b->words, (b->count + 1) * sizeof *words);
    if (words)
        b->words = words;
    if (!words || !copy) {
        free(copy);
        return leat_fail(ctx, "out of memory");
    }
    memcpy(copy, word.data, word.size);
    b->words[b->count].data = copy;
    b->words[b->count].size = word.size;
    b->count++;
    return 0;
}

// The first input: a word.
static int pass(leat_ctx *ctx, const void *in, leat_out *out)
{
    const blocked *b = leat_ctx_local(ctx);
    if (find(b, *(const leat_str *)in) == b->count)
        (void)leat_collect(out, in);
    return 0;
}

// The second input: a command, which all subtasks get and the first one acknowledges.
static int control(leat_ctx *ctx, const void *in, leat_out *out)
{
    blocked *b = leat_ctx_local(ctx);
    leat_str line = *(const leat_str *)in, word = {line.data + 6, line.size - 6};
    bool blocks = line.size > 6 && memcmp(line.data, "block ", 6) == 0;
    if (!blocks && (line.size <= 6 || memcmp(line.data, "allow ", 6) != 0))
        return leat_fail(ctx, "no command: %.*s", (int)line.size, line.data);
    size_t at = find(b, word);
    if (blocks && at == b->count) {
        if (block(ctx, b, word) != 0)
            return -1;
    } else if (!blocks && at < b->count) {
        free((char *)b->words[at].data);
        b->words[at] = b->words[--b->count];
    }
    if (leat_ctx_subtask(ctx) == 0) {
        char text[100];
        int size = snprintf(text, sizeof text, "(%.80s%.*s)", blocks ? "blocked: " : "allowed: ",
                            (int)(word.size < 80 ? word.size : 80), word.data);
        leat_str said = {text, (size_t)size};
        (void)leat_collect(out, &said);
    }
    return 0;
}

LEAT_JOB(env, argc, argv)
{
    if (argc != 2) {
        leat_env_fail(env, LEAT_EINVAL, "usage: control_stream.so -- CONTROL < WORDS");
        return;
    }
    leat_env_set_name(env, "words under control");
    leat_stream *words = leat_read_text(env, "-");
    leat_stream *commands = leat_parallelism(leat_read_text(env, argv[1]), 1);
    leat_connected *both = leat_connect(leat_rebalance(words), leat_broadcast(commands));
    leat_stream *passed = leat_co_flat_map(both, pass, control, leat_type_scalar(LEAT_STR));
    leat_name(leat_rich(passed, open_blocked, close_blocked), "pass what is not blocked");
    leat_on_error(passed, LEAT_ON_ERROR_SKIP);
    leat_parallelism(leat_print(passed), 1);
}
