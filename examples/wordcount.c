// SPDX-License-Identifier: Apache-2.0
// Counts words: the job file wordcount.so, for `leat run` and `leat plan`.
//
//     leat run wordcount.so -- --input FILE…      the count of each word, at the end
//     leat run wordcount.so -- --updates < FILE   each word with its count so far
//
// A word is a run of bytes without space, \t, \n, \v, \f and \r in it.
#include <leat/leat.h>
#include <string.h>

typedef struct {
    leat_str word;
    int64_t count;
} word_count;
LEAT_RECORD(word_count, LEAT_FIELD(word, LEAT_STR), LEAT_FIELD(count, LEAT_I64));

static const bool is_space[256] = {
    [' '] = true, ['\t'] = true, ['\n'] = true, ['\v'] = true, ['\f'] = true, ['\r'] = true,
};

// The words of a line. They point into the line, which is what "borrowed for the call" is for:
// nothing is copied before a word leaves the task.
static int split(leat_ctx *ctx, const void *in, leat_out *out)
{
    const leat_str *line = in;
    const unsigned char *at = (const unsigned char *)line->data, *end = at + line->size;
    while (at < end) {
        if (is_space[*at]) {
            at++;
            continue;
        }
        const unsigned char *word = at;
        do
            at++;
        while (at < end && !is_space[*at]);
        word_count one = {.word = {(const char *)word, (size_t)(at - word)}, .count = 1};
        // Anything else means that the job is ending.
        if (leat_collect(out, &one) != LEAT_OK)
            return 0;
    }
    return 0;
}

static int add(leat_ctx *ctx, void *accumulator, const void *in)
{
    ((word_count *)accumulator)->count += ((const word_count *)in)->count;
    return 0;
}

typedef struct arguments {
    const char **inputs;
    size_t input_count;
    bool updates, discard;
} arguments;

static const char usage[] = "usage: wordcount.so [--input FILE…]… [--updates] [--discard]";

// False, with a fault recorded, when the arguments are wrong.
static bool parse(leat_env *env, int argc, char **argv, arguments *args)
{
    *args = (arguments){.inputs = leat_env_alloc(env, ((size_t)argc + 1) * sizeof(char *))};
    if (!args->inputs)
        return false;
    bool takes_files = false;
    size_t expected = 0;
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i];
        if (strncmp(argument, "--", 2) != 0 && takes_files) {
            args->inputs[args->input_count++] = argument;
            continue;
        }
        if (args->input_count < expected)
            break;
        takes_files = strcmp(argument, "--input") == 0;
        if (takes_files) {
            expected = args->input_count + 1;
        } else if (strcmp(argument, "--updates") == 0) {
            args->updates = true;
        } else if (strcmp(argument, "--discard") == 0) {
            args->discard = true;
        } else {
            leat_env_fail(env, LEAT_EINVAL, "what is \"%s\"? %s", argument, usage);
            return false;
        }
    }
    if (args->input_count < expected) {
        leat_env_fail(env, LEAT_EINVAL, "--input needs a file or a directory; %s", usage);
        return false;
    }
    if (args->input_count == 0)
        args->inputs[args->input_count++] = "-";
    return true;
}

LEAT_JOB(env, argc, argv)
{
    arguments args;
    leat_env_set_name(env, "word count");
    if (!parse(env, argc, argv, &args))
        return;
    leat_stream *lines = leat_read_text_files(env, args.inputs, args.input_count);
    leat_stream *words =
        leat_name(leat_flat_map(lines, split, LEAT_TYPE(word_count)), "split into words");
    leat_stream *counts = leat_name(leat_reduce(leat_key_by(words, "word"), add), "count words");
    if (!args.updates)
        leat_final_only(counts);
    if (args.discard)
        leat_discard(counts);
    else
        leat_parallelism(leat_print(counts), 1);
}
