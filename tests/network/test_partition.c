// SPDX-License-Identifier: Apache-2.0
#include "exchange.h"

// Writes pairs 0 … count - 1 and notes which channel each one came out of (every record must come
// out of one only).
static void distribute(exchange *x, int64_t count, uint32_t *where)
{
    for (int64_t i = 0; i < count; i++) {
        cr_assert(put_pair(x, i) == LEAT_OK);
        uint32_t found = UINT32_MAX;
        for (uint32_t c = 0; c < x->options.channels; c++) {
            pair record;
            if (!get_pair(x, c, &record))
                continue;
            cr_assert(found == UINT32_MAX && record.a == i);
            found = c;
        }
        cr_assert(found != UINT32_MAX);
        where[i] = found;
    }
}

static void run(leati_partitioner partitioner, uint32_t channels, uint32_t subtask,
                const leati_key_selector *key, int64_t count, uint32_t *where)
{
    exchange x;
    exchange_init(&x, partitioner, channels);
    x.options.subtask = subtask;
    x.options.key = key;
    exchange_open(&x);
    distribute(&x, count, where);
    exchange_close(&x);
}

Test(partition, forward_and_global_use_the_first_channel)
{
    uint32_t where[50];
    run(LEATI_PARTITION_FORWARD, 1, 0, NULL, 50, where);
    run(LEATI_PARTITION_GLOBAL, 4, 3, NULL, 50, where);
    for (int i = 0; i < 50; i++)
        cr_assert(where[i] == 0);
}

Test(partition, rescale_begins_with_the_first_channel_and_takes_turns)
{
    uint32_t where[50];
    for (uint32_t channels = 1; channels <= 5; channels++) {
        run(LEATI_PARTITION_RESCALE, channels, channels, NULL, 50, where);
        for (uint32_t i = 0; i < 50; i++)
            cr_assert(where[i] == i % channels);
    }
}

Test(partition, rebalance_begins_anywhere_and_takes_turns)
{
    uint32_t where[50], again[50], starts = 0;
    for (uint32_t subtask = 0; subtask < 20; subtask++) {
        run(LEATI_PARTITION_REBALANCE, 5, subtask, NULL, 50, where);
        for (uint32_t i = 0; i < 50; i++)
            cr_assert(where[i] == (where[0] + i) % 5);
        starts |= 1u << where[0];
        run(LEATI_PARTITION_REBALANCE, 5, subtask, NULL, 50, again);
        cr_assert(memcmp(where, again, sizeof where) == 0);
    }
    cr_assert(starts == 31); // with 20 subtasks each of the five is somebody's first
}

Test(partition, shuffle_spreads_evenly)
{
    enum { COUNT = 100000 };
    uint32_t *where = malloc(COUNT * sizeof *where);
    run(LEATI_PARTITION_SHUFFLE, 4, 0, NULL, COUNT, where);
    uint32_t counts[4] = {0}, follows[4][4] = {{0}};
    for (int i = 0; i < COUNT; i++) {
        counts[where[i]]++;
        if (i > 0)
            follows[where[i - 1]][where[i]]++;
    }
    for (int a = 0; a < 4; a++) {
        cr_assert(counts[a] > 24250 && counts[a] < 25750); // within 3 %
        for (int b = 0; b < 4; b++)
            cr_assert(follows[a][b] > 5800 && follows[a][b] < 6700); // about a sixteenth each
    }
    free(where);
}

Test(partition, broadcast_reaches_every_channel_in_order)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_BROADCAST, 3);
    exchange_open(&x);
    for (int64_t i = 0; i < 200; i++)
        cr_assert(put_pair(&x, i) == LEAT_OK);
    for (uint32_t c = 0; c < 3; c++) {
        pair record;
        for (int64_t i = 0; i < 200; i++)
            cr_assert(get_pair(&x, c, &record) && record.a == i);
        cr_assert(!get_pair(&x, c, &record));
    }
    exchange_close(&x);
}

// The published rule once more, written down on its own.
static uint32_t rotate(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

static uint32_t subtask_of(uint64_t hash, uint32_t parallelism, uint32_t max_parallelism)
{
    uint32_t h = (uint32_t)(hash >> 32) ^ (uint32_t)hash;
    h = rotate(rotate(h * 0xcc9e2d51u, 15) * 0x1b873593u, 13) * 5u + 0xe6546b64u;
    h ^= 4;
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    h ^= h >> 16;
    int32_t value = (int32_t)h;
    uint32_t positive = value == INT32_MIN ? 0 : (uint32_t)(value < 0 ? -value : value);
    return positive % max_parallelism * parallelism / max_parallelism;
}

static int key_modulo(leat_ctx *ctx, const void *in, void *key)
{
    const pair *record = in;
    pair *out = key;
    cr_assert(out->a == 0 && out->b == 0); // it gets a zeroed record each time
    out->a = record->a % 10;
    out->b = 1;
    return 0;
}

Test(partition, hash_follows_the_key_groups)
{
    enum { COUNT = 500 };
    static const char *const names[] = {"a", "b", "a, b", "b, a"};
    uint32_t where[COUNT];
    for (uint32_t parallelism = 1; parallelism <= 7; parallelism++) {
        for (int n = 0; n < 4; n++) {
            const char *why, *at;
            leati_key_selector key = {0};
            cr_assert(leat_key_init(&key.fields, LEAT_TYPE(pair), names[n], &why, &at) == LEAT_OK);
            run(LEATI_PARTITION_HASH, parallelism, 0, &key, COUNT, where);
            for (int64_t i = 0; i < COUNT; i++) {
                uint64_t hash = leat_key_hash(&key.fields, &(pair){i, -i});
                cr_assert(where[i] == subtask_of(hash, parallelism, 128));
            }
        }
        const char *why, *at;
        leati_key_selector key = {.fn = key_modulo, .key_type = LEAT_TYPE(pair)};
        cr_assert(leat_key_init(&key.fields, LEAT_TYPE(pair), "a", &why, &at) == LEAT_OK);
        run(LEATI_PARTITION_HASH, parallelism, 0, &key, COUNT, where);
        for (int64_t i = 0; i < COUNT; i++) {
            uint64_t hash = leat_key_hash(&key.fields, &(pair){i % 10, 1});
            cr_assert(where[i] == subtask_of(hash, parallelism, 128));
        }
    }
}

typedef struct word {
    int32_t number;
    leat_str text;
} word;
LEAT_RECORD(word, LEAT_FIELD(number, LEAT_I32), LEAT_FIELD(text, LEAT_STR));

Test(partition, hash_takes_strings_and_narrow_integers_and_any_max_parallelism)
{
    static const uint32_t max_parallelisms[] = {5, 100, 128, 1000, 32768};
    static const char *const names[] = {"text", "number", "number, text"};
    for (size_t m = 0; m < 5; m++) {
        for (int n = 0; n < 3; n++) {
            const char *why, *at;
            leati_key_selector key = {0};
            cr_assert(leat_key_init(&key.fields, LEAT_TYPE(word), names[n], &why, &at) == LEAT_OK);
            exchange x;
            exchange_init(&x, LEATI_PARTITION_HASH, 5);
            x.options.key = &key;
            x.options.type = LEAT_TYPE(word);
            x.options.max_parallelism = max_parallelisms[m];
            exchange_open(&x);
            for (int i = 0; i < 100; i++) {
                char text[20];
                int size = snprintf(text, sizeof text, "word %d", i * i);
                word record = {-i, {text, (size_t)size}};
                cr_assert(put(&x, &record) == LEAT_OK);
                uint32_t to =
                    subtask_of(leat_key_hash(&key.fields, &record), 5, max_parallelisms[m]);
                leati_element element;
                cr_assert(get(&x, to, &element) == LEATI_READ_ELEMENT);
            }
            exchange_close(&x);
        }
    }
}
