// SPDX-License-Identifier: Apache-2.0
// Word count at parallelism 2 against two bare threads that do the same work.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "bench/bare_wordcount.h"
#include "bench/harness.h"
#include "bench/text.h"
#include "leat/leat.h"

enum { PARALLELISM = 2, DEFAULT_MB = 500, QUICK_MB = 2 };

typedef struct word_count {
    leat_str word;
    int64_t count;
} word_count;
LEAT_RECORD(word_count, LEAT_FIELD(word, LEAT_STR), LEAT_FIELD(count, LEAT_I64));

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int split(leat_ctx *ctx, const void *in, leat_out *out)
{
    const leat_str *line = in;
    const char *p = line->data, *end = p + line->size;
    for (;;) {
        while (p < end && is_space(*p))
            p++;
        if (p == end)
            return 0;
        const char *word = p;
        while (p < end && !is_space(*p))
            p++;
        leat_err err = leat_collect(out, &(word_count){{word, (size_t)(p - word)}, 1});
        if (err != LEAT_OK)
            return -1;
    }
}

static int add(leat_ctx *ctx, void *accumulator, const void *in)
{
    ((word_count *)accumulator)->count += ((const word_count *)in)->count;
    return 0;
}

// What one subtask of the sink has seen; on a cache line of its own.
typedef struct tally {
    _Alignas(64) uint64_t words;
    uint64_t checksum;
} tally;

// Adds up instead of printing, so that every run's result is checked.
static int sum(leat_ctx *ctx, const void *in)
{
    const word_count *counted = in;
    tally *own = (tally *)leat_ctx_user_data(ctx) + leat_ctx_subtask(ctx);
    own->words += (uint64_t)counted->count;
    own->checksum += XXH3_64bits(counted->word.data, counted->word.size) * (uint64_t)counted->count;
    return 0;
}

static int run_leat(void *context, bench_outcome *outcome)
{
    const bench_text *text = context;
    tally tallies[PARALLELISM] = {0};
    leat_env *env;
    if (leat_env_create(NULL, &env) != LEAT_OK)
        return -1;
    leat_env_set_parallelism(env, PARALLELISM);
    leat_err err = leat_env_set(env, "workers", "2");
    leat_stream *words =
        leat_flat_map(leat_read_text(env, text->path), split, LEAT_TYPE(word_count));
    leat_stream *counts = leat_final_only(leat_reduce(leat_key_by(words, "word"), add));
    leat_user_data(leat_sink(counts, sum), tallies);
    if (err == LEAT_OK)
        err = leat_execute(env);
    for (size_t i = 0; i < leat_env_fault_count(env); i++)
        fprintf(stderr, "%s\n", leat_env_fault(env, i));
    leat_env_destroy(&env);
    for (int i = 0; i < PARALLELISM; i++) {
        outcome->items += tallies[i].words;
        outcome->checksum += tallies[i].checksum;
    }
    return err == LEAT_OK ? 0 : -1;
}

static int run_bare(void *context, bench_outcome *outcome)
{
    const bench_text *text = context;
    bare_count count;
    if (bare_wordcount(text->path, &count) != 0)
        return -1;
    *outcome = (bench_outcome){count.words, count.checksum};
    return count.distinct == text->distinct ? 0 : -1;
}

static int setup(bench_case *self, const bench_options *options, bench_words words)
{
    static bench_text text;
    uint64_t mb = options->quick ? QUICK_MB : options->size ? options->size : DEFAULT_MB;
    if (bench_text_create(mb * 1000 * 1000, &words, &text) != 0)
        return -1;
    self->context = &text;
    self->expected = (bench_outcome){text.words, text.checksum};
    return 0;
}

// In 500 MB 0.35 M distinct words occur of the first vocabulary, and 2.6 M of the second.
static int setup_few(bench_case *self, const bench_options *options)
{
    return setup(self, options, (bench_words){.vocabulary = 355000, .exponent = 1.3, .seed = 2});
}

static int setup_many(bench_case *self, const bench_options *options)
{
    return setup(self, options, (bench_words){.vocabulary = 2850000, .exponent = 1.04, .seed = 2});
}

static void teardown(bench_case *self)
{
    if (self->context)
        bench_text_destroy(self->context);
}

int main(int argc, char **argv)
{
    static const bench_variant few[] = {{"bare threads", run_bare, 0}, {"leat", run_leat, 0.6}};
    static const bench_variant many[] = {{"bare threads", run_bare, 0}, {"leat", run_leat, 0.7}};
    bench_case cases[] = {
        {.name = "few",
         .unit = "words",
         .variants = few,
         .variant_count = 2,
         .setup = setup_few,
         .teardown = teardown},
        {.name = "many",
         .unit = "words",
         .variants = many,
         .variant_count = 2,
         .setup = setup_many,
         .teardown = teardown},
    };
    return bench_main(argc, argv, "wordcount", cases, 2);
}
