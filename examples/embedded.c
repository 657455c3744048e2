// SPDX-License-Identifier: Apache-2.0
// Word count inside a program of one's own: an ordinary main builds the graph, runs it, and takes
// the results through a sink function.
//
//     embedded FILE…      the ten most frequent words
#include <inttypes.h>
#include <leat/leat.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
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
    size_t at = 0;
    for (;;) {
        while (at < line->size && is_space(line->data[at]))
            at++;
        if (at == line->size)
            return 0;
        size_t start = at;
        while (at < line->size && !is_space(line->data[at]))
            at++;
        word_count one = {.word = {line->data + start, at - start}, .count = 1};
        if (leat_collect(out, &one) != LEAT_OK)
            return 0;
    }
}

static int add(leat_ctx *ctx, void *accumulator, const void *in)
{
    ((word_count *)accumulator)->count += ((const word_count *)in)->count;
    return 0;
}

// The most frequent words, shared by all subtasks of the sink; hence the lock.
enum { TOP = 10 };

typedef struct top {
    pthread_mutex_t lock;
    size_t size;
    struct {
        char *word;
        int64_t count;
    } words[TOP + 1];
} top;

static int remember(leat_ctx *ctx, const void *in)
{
    const word_count *counted = in;
    top *t = leat_ctx_user_data(ctx);
    int result = 0;
    pthread_mutex_lock(&t->lock);
    if (t->size < TOP || counted->count > t->words[TOP - 1].count) {
        // The record is gone after this call, so whoever keeps a word copies it.
        char *word = strndup(counted->word.data, counted->word.size);
        size_t at = t->size;
        while (at > 0 && t->words[at - 1].count < counted->count) {
            t->words[at] = t->words[at - 1];
            at--;
        }
        t->words[at].word = word;
        t->words[at].count = counted->count;
        t->size++;
        if (t->size > TOP)
            free(t->words[--t->size].word);
        if (!word)
            result = leat_fail(ctx, "out of memory");
    }
    pthread_mutex_unlock(&t->lock);
    return result;
}

int main(int argc, char **argv)
{
    top t = {.lock = PTHREAD_MUTEX_INITIALIZER};
    leat_env *env;
    if (argc < 2) {
        fprintf(stderr, "usage: %s FILE…\n", argv[0]);
        return 2;
    }
    if (leat_env_create(NULL, &env) != LEAT_OK)
        return 1;
    leat_env_set_parallelism(env, 2);
    leat_stream *lines = leat_read_text_files(env, (const char *const *)argv + 1, (size_t)argc - 1);
    leat_stream *words = leat_flat_map(lines, split, LEAT_TYPE(word_count));
    leat_stream *counts = leat_final_only(leat_reduce(leat_key_by(words, "word"), add));
    leat_user_data(leat_sink(counts, remember), &t);

    leat_err err = leat_execute(env);
    for (size_t i = 0; i < leat_env_fault_count(env); i++)
        fprintf(stderr, "%s: %s\n", argv[0], leat_env_fault(env, i));
    for (size_t i = 0; i < t.size; i++) {
        if (err == LEAT_OK)
            printf("%s\t%" PRId64 "\n", t.words[i].word, t.words[i].count);
        free(t.words[i].word);
    }
    leat_env_destroy(&env);
    return err == LEAT_OK ? 0 : 1;
}
