// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat/leat.h"
#include "runtime/keyed_table.h"

typedef struct {
    leat_str word;
    int64_t count;
} word_count;
LEAT_RECORD(word_count, LEAT_FIELD(word, LEAT_STR), LEAT_FIELD(count, LEAT_I64));

typedef struct {
    int64_t id;
    leat_str note;
    int32_t small;
} noted;
LEAT_RECORD(noted, LEAT_FIELD(id, LEAT_I64), LEAT_FIELD(note, LEAT_STR),
            LEAT_FIELD(small, LEAT_I32));

typedef struct {
    leat_list values;
    int64_t sum;
} collected;
LEAT_RECORD(collected, LEAT_FIELD_LIST(values, LEAT_SCALAR(LEAT_I64)), LEAT_FIELD(sum, LEAT_I64));

typedef struct {
    uint8_t tiny;
    int16_t mid;
    uint32_t wide;
    double real;
    leat_str text;
    const int64_t *maybe;
} mixed;
LEAT_RECORD(mixed, LEAT_FIELD(tiny, LEAT_U8), LEAT_FIELD(mid, LEAT_I16), LEAT_FIELD(wide, LEAT_U32),
            LEAT_FIELD(real, LEAT_F64), LEAT_FIELD(text, LEAT_STR),
            LEAT_FIELD_OPTIONAL(maybe, LEAT_SCALAR(LEAT_I64)));

// Lets `left` allocations pass; counts the blocks that are alive.
typedef struct meter {
    size_t left;
    size_t alive;
} meter;

static void *meter_allocate(void *user, size_t size)
{
    meter *m = user;
    if (m->left == 0)
        return NULL;
    m->left--;
    m->alive++;
    return malloc(size);
}

static void *meter_reallocate(void *user, void *ptr, size_t size)
{
    meter *m = user;
    if (m->left == 0)
        return NULL;
    m->left--;
    m->alive += !ptr;
    return realloc(ptr, size);
}

static void meter_release(void *user, void *ptr)
{
    ((meter *)user)->alive -= ptr != NULL;
    free(ptr);
}

static leat_key key_of(const leat_type *type, const char *fields)
{
    leat_key key;
    const char *why, *at;
    cr_assert_eq(leat_key_init(&key, type, fields, &why, &at), LEAT_OK);
    return key;
}

static leati_keyed_table *table_of(const leat_key *key, const leat_type *accumulator)
{
    leati_keyed_table *table;
    cr_assert_eq(leati_keyed_table_create(NULL, key, accumulator, &table), LEAT_OK);
    return table;
}

// What reduce does with a word: the first record is the accumulator, later ones add to it.
static void count_word(leati_keyed_table *table, const leat_key *key, const word_count *record)
{
    uint64_t hash = leat_key_hash(key, record);
    word_count *found = leati_keyed_table_find(table, hash, record);
    if (!found) {
        cr_assert(leati_keyed_table_insert(table, hash, record, record) != NULL);
        return;
    }
    found->count += record->count;
    cr_assert(leati_keyed_table_own(table, found) == found, "nothing had to move");
}

Test(keyed_table, counts_equal_a_plain_array_of_counters)
{
    enum { WORDS = 50000, RECORDS = 400000 };
    static int64_t expected[WORDS];
    static bool met[WORDS];
    leat_key key = key_of(LEAT_TYPE(word_count), "word");
    leati_keyed_table *table = table_of(&key, LEAT_TYPE(word_count));
    uint32_t random = 12345;
    char text[64];
    size_t distinct = 0;
    for (int i = 0; i < RECORDS; i++) {
        random = random * 1664525u + 1013904223u;
        uint32_t n = (random >> 8) % WORDS;
        // Lengths from 1 to some 40 bytes; the memory is used again at once, as a segment would be.
        int size = snprintf(text, sizeof text, "%u%.*s", n, (int)(n % 35),
                            "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst");
        count_word(table, &key, &(word_count){{text, (size_t)size}, n % 7 + 1});
        memset(text, '#', sizeof text);
        distinct += expected[n] == 0;
        expected[n] += n % 7 + 1;
    }
    cr_assert_eq(leati_keyed_table_count(table), distinct);
    size_t cursor = 0, seen = 0;
    const word_count *w;
    while ((w = leati_keyed_table_next(table, &cursor)) != NULL) {
        // The text begins with digits and goes on with letters or ends.
        uint32_t n = 0;
        for (size_t i = 0; i < w->word.size && w->word.data[i] <= '9'; i++)
            n = n * 10 + (uint32_t)(w->word.data[i] - '0');
        cr_assert(n < WORDS && !met[n]);
        cr_assert_eq(w->count, expected[n]);
        met[n] = true;
        seen++;
    }
    cr_assert_eq(seen, distinct);
    cr_assert(leati_keyed_table_next(table, &cursor) == NULL, "the end stays the end");
    leati_keyed_table_destroy(&table);
    cr_assert(table == NULL);
}

Test(keyed_table, a_short_word_costs_less_than_ninety_bytes)
{
    enum { WORDS = 300000 };
    leat_key key = key_of(LEAT_TYPE(word_count), "word");
    leati_keyed_table *table = table_of(&key, LEAT_TYPE(word_count));
    char text[16];
    for (int i = 0; i < WORDS; i++) {
        int size = snprintf(text, sizeof text, "%08d", i);
        count_word(table, &key, &(word_count){{text, (size_t)size}, 1});
    }
    // Key 16, accumulator 24, size 8, bytes 8, and at most 26 in slots right after a doubling.
    cr_assert(leati_keyed_table_bytes(table) < (size_t)WORDS * 90, "%zu bytes",
              leati_keyed_table_bytes(table));
    leati_keyed_table_destroy(&table);
}

// Keys of every form, two records of each key and one that differs in nothing but the key.
Test(keyed_table, keys_of_every_form_are_told_apart)
{
    static const char *const fields[] = {"tiny", "mid",       "wide",       "real",
                                         "text", "tiny, mid", "text, wide", "maybe, text"};
    int64_t four = 4, five = 5;
    char text_a[] = "same text, long enough to be compared in a call",
         text_b[] = "same text, long enough to be compared in a call",
         text_c[] = "same text, long enough to be compared in A call";
    mixed a = {1, -2, 3, 0.0, {text_a, sizeof text_a - 1}, &four};
    mixed same = {1, -2, 3, -0.0, {text_b, sizeof text_b - 1}, &(int64_t){4}};
    mixed other = {2, -3, 4, 0.5, {text_c, sizeof text_c - 1}, &five};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        leat_key key = key_of(LEAT_TYPE(mixed), fields[i]);
        leati_keyed_table *table = table_of(&key, leat_type_scalar(LEAT_I64));
        int64_t ten = 10, twenty = 20;
        cr_assert(leati_keyed_table_find(table, leat_key_hash(&key, &a), &a) == NULL);
        leati_keyed_table_insert(table, leat_key_hash(&key, &a), &a, &ten);
        int64_t *found = leati_keyed_table_find(table, leat_key_hash(&key, &same), &same);
        cr_assert(found && *found == 10, "%s", fields[i]);
        // Even with the same hash.
        cr_assert(leati_keyed_table_find(table, leat_key_hash(&key, &a), &other) == NULL, "%s",
                  fields[i]);
        leati_keyed_table_insert(table, leat_key_hash(&key, &a), &other, &twenty);
        found = leati_keyed_table_find(table, leat_key_hash(&key, &a), &other);
        cr_assert(found && *found == 20, "%s", fields[i]);
        found = leati_keyed_table_find(table, leat_key_hash(&key, &a), &a);
        cr_assert(found && *found == 10, "%s", fields[i]);
        leati_keyed_table_destroy(&table);
    }
}

Test(keyed_table, runs_that_differ_in_one_byte_are_different_keys)
{
    leat_key key = key_of(leat_type_scalar(LEAT_STR), "");
    for (size_t size = 0; size <= 40; size++) {
        char a[40], b[40];
        memset(a, 'x', sizeof a);
        leati_keyed_table *table = table_of(&key, leat_type_scalar(LEAT_I64));
        leat_str stored = {a, size};
        int64_t one = 1;
        cr_assert(leati_keyed_table_find(table, 7, &stored) == NULL);
        cr_assert(leati_keyed_table_insert(table, 7, &stored, &one) != NULL);
        memcpy(b, a, sizeof b);
        leat_str asked = {b, size};
        cr_assert(leati_keyed_table_find(table, 7, &asked) != NULL);
        for (size_t i = 0; i < size; i++) {
            b[i] = 'y';
            cr_assert(leati_keyed_table_find(table, 7, &asked) == NULL, "%zu of %zu", i, size);
            b[i] = 'x';
        }
        asked.size = size + 1;
        cr_assert(size == 40 || leati_keyed_table_find(table, 7, &asked) == NULL);
        leati_keyed_table_destroy(&table);
    }
}

Test(keyed_table, what_a_function_stores_in_an_accumulator_is_copied)
{
    leat_key key = key_of(LEAT_TYPE(noted), "id");
    leati_keyed_table *table = table_of(&key, LEAT_TYPE(noted));
    char text[300];
    for (int round = 0; round < 200; round++)
        for (int64_t id = 0; id < 20; id++) {
            size_t size = (size_t)(round * 7 + id) % sizeof text;
            memset(text, 'a' + (int)(id + round) % 26, size);
            noted record = {id, {text, size}, round};
            uint64_t hash = leat_key_hash(&key, &record);
            noted *found = leati_keyed_table_find(table, hash, &record);
            if (found) {
                cr_assert_eq(found->small, round - 1);
                found->note = record.note;
                found->small = round;
                found = leati_keyed_table_own(table, found);
            } else {
                found = leati_keyed_table_insert(table, hash, &record, &record);
            }
            cr_assert(found && (size == 0 || found->note.data != text));
            memset(text, '#', sizeof text);
            for (size_t i = 0; i < size; i++)
                cr_assert_eq(found->note.data[i], 'a' + (int)(id + round) % 26);
            cr_assert(leati_keyed_table_find(table, hash, &record) == found);
        }
    cr_assert_eq(leati_keyed_table_count(table), 20);
    leati_keyed_table_destroy(&table);
}

// Folds a changing text of `sizes(step)` bytes into `keys` accumulators and returns what the table
// holds in the end.
static size_t churn(int keys, int steps, size_t (*sizes)(int step))
{
    static char text[1 << 20];
    memset(text, 't', sizeof text);
    leat_key key = key_of(LEAT_TYPE(noted), "id");
    leati_keyed_table *table = table_of(&key, LEAT_TYPE(noted));
    for (int step = 0; step < steps; step++)
        for (int64_t id = 0; id < keys; id++) {
            noted record = {id, {text, sizes(step)}, step};
            uint64_t hash = leat_key_hash(&key, &record);
            noted *found = leati_keyed_table_find(table, hash, &record);
            if (found) {
                found->note = record.note;
                cr_assert(leati_keyed_table_own(table, found) != NULL);
            } else {
                cr_assert(leati_keyed_table_insert(table, hash, &record, &record) != NULL);
            }
        }
    size_t bytes = leati_keyed_table_bytes(table);
    leati_keyed_table_destroy(&table);
    return bytes;
}

static size_t jumping(int step)
{
    return (size_t)step * 7919 % 2000;
}

static size_t creeping(int step)
{
    return (size_t)step;
}

static size_t swinging(int step)
{
    return step % 2 ? 900000 : 1;
}

Test(keyed_table, memory_stays_bounded_while_texts_change)
{
    // Texts of up to 2,000 bytes: two blocks a key would do; the slabs' slack is 256 KiB.
    cr_assert(churn(100, 5000, jumping) < 100 * 2 * 2500 + (512 << 10));
    // All keys grow in step: each size that is left behind is a third larger than the one before.
    cr_assert(churn(500, 4000, creeping) < 500 * 4 * 6000 + (512 << 10));
    // Blocks beyond a slab go back to the allocator.
    cr_assert(churn(3, 1000, swinging) < 3 * 2 * 1000000 + (512 << 10));
}

Test(keyed_table, lists_in_accumulators_grow_and_stay_right)
{
    leat_key key = key_of(leat_type_scalar(LEAT_I64), "");
    leati_keyed_table *table = table_of(&key, LEAT_TYPE(collected));
    for (int64_t i = 0; i < 3000; i++) {
        int64_t id = i % 3, items[1000];
        uint64_t hash = leat_key_hash(&key, &id);
        collected *found = leati_keyed_table_find(table, hash, &id);
        collected fresh = {.values = {NULL, 0}};
        collected *to = found ? found : &fresh;
        if (to->values.count)
            memcpy(items, to->values.items, to->values.count * sizeof *items);
        items[to->values.count] = i;
        to->values = (leat_list){items, to->values.count + 1};
        to->sum += i;
        to = found ? leati_keyed_table_own(table, found)
                   : leati_keyed_table_insert(table, hash, &id, &fresh);
        cr_assert(to != NULL);
        memset(items, 0xff, sizeof items);
    }
    for (int64_t id = 0; id < 3; id++) {
        const collected *found = leati_keyed_table_find(table, leat_key_hash(&key, &id), &id);
        cr_assert(found && found->values.count == 1000);
        for (int64_t i = 0; i < 1000; i++)
            cr_assert_eq(((const int64_t *)found->values.items)[i], 3 * i + id);
        cr_assert_eq(found->sum, 3 * (999 * 1000 / 2) + 1000 * id);
    }
    leati_keyed_table_destroy(&table);
}

Test(keyed_table, a_record_stored_whole_in_its_accumulator_shares_the_key)
{
    leat_key key = key_of(LEAT_TYPE(word_count), "word");
    leati_keyed_table *table = table_of(&key, LEAT_TYPE(word_count));
    word_count first = {LEAT_STR_LITERAL("a word of some length"), 1};
    uint64_t hash = leat_key_hash(&key, &first);
    word_count *found = leati_keyed_table_find(table, hash, &first);
    cr_assert(!found);
    found = leati_keyed_table_insert(table, hash, &first, &first);
    const char *own = found->word.data;
    char text[] = "a word of some length";
    *found = (word_count){{text, sizeof text - 1}, found->count + 1};
    cr_assert(leati_keyed_table_own(table, found) == found, "equal keys need no new block");
    cr_assert(found->word.data == own && found->count == 2);
    // Another text than the key's: kept, and the key stays what it was.
    *found =
        (word_count){LEAT_STR_LITERAL("longer, and not the key of this accumulator at all"), 9};
    found = leati_keyed_table_own(table, found);
    cr_assert(found != NULL);
    cr_assert_eq(found->word.size, 50);
    cr_assert(leati_keyed_table_find(table, hash, &first) == found);
    leati_keyed_table_destroy(&table);
}

// Some work that fails at its n-th allocation, for every n until nothing fails any more.
static bool fill_with(const leat_allocator *allocator)
{
    leat_key key = key_of(LEAT_TYPE(noted), "id");
    leati_keyed_table *table;
    static char text[100000];
    if (leati_keyed_table_create(allocator, &key, LEAT_TYPE(noted), &table) != LEAT_OK)
        return false;
    bool good = true;
    for (int64_t id = 0; good && id < 1000; id++) {
        noted record = {id, {text, id % 100 ? (size_t)id % 50 : sizeof text}, 0};
        uint64_t hash = leat_key_hash(&key, &record);
        size_t before = leati_keyed_table_count(table);
        noted *found = leati_keyed_table_find(table, hash, &record);
        cr_assert(!found);
        found = leati_keyed_table_insert(table, hash, &record, &record);
        good = found != NULL;
        if (good) {
            found->note = (leat_str){text, 1000};
            good = leati_keyed_table_own(table, found) != NULL;
        } else {
            cr_assert_eq(leati_keyed_table_count(table), before);
            cr_assert(leati_keyed_table_find(table, hash, &record) == NULL);
        }
    }
    leati_keyed_table_destroy(&table);
    return good;
}

Test(keyed_table, any_allocation_may_fail)
{
    size_t n = 0;
    for (;; n++) {
        meter m = {.left = n};
        leat_allocator allocator = {meter_allocate, meter_reallocate, meter_release, &m};
        bool good = fill_with(&allocator);
        cr_assert_eq(m.alive, 0, "after %zu allocations", n);
        if (good)
            break;
    }
    cr_assert(n > 15);
}
