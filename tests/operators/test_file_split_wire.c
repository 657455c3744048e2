// SPDX-License-Identifier: Apache-2.0
// Splits as bytes: what is read back, and what is refused.
#include "base/alloc.h"
#include "files.h"
#include "operators/file_split_wire.h"

typedef struct side {
    leati_file_splits *splits;
} side;

static side new_side(void)
{
    side s;
    cr_assert_eq(leati_file_splits_create(NULL, 4096, &s.splits), LEAT_OK);
    return s;
}

// A file that this side knows, with a size of 1000.
static leati_file *file_of(const side *s, const char *path, bool stream)
{
    leati_file *file;
    leati_file like = {.size = 1000, .stream = stream, .id = {1, 2, 3, 4}};
    cr_assert_eq(leati_file_splits_adopt(s->splits, &like, path, strlen(path), &file), LEAT_OK);
    return file;
}

static void release_all(const side *s, leati_file_batch *batch)
{
    while (batch->count)
        leati_file_splits_release(s->splits, &batch->splits[--batch->count]);
}

static void encode(leati_file_batch *batch, uint8_t **bytes, size_t *size)
{
    cr_assert_eq(leati_file_batch_encode(NULL, 7, batch, bytes, size), LEAT_OK);
}

static leat_err decode(const side *s, const uint8_t *bytes, size_t size, uint64_t machine,
                       leati_file_batch *batch)
{
    // A block of its own, so that AddressSanitizer sees every over-read.
    uint8_t *block = malloc(size ? size : 1);
    memcpy(block, bytes, size);
    leat_err err = leati_file_batch_decode(NULL, s->splits, machine, block, size, batch);
    free(block);
    return err;
}

Test(file_split_wire, splits_arrive_as_they_were)
{
    side from = new_side(), to = new_side();
    leati_file *a = file_of(&from, "dir/\xff name", false), *b = file_of(&from, "pipe", true);
    leati_file_batch sent = {
        .count = 3,
        .splits = {{a, LEATI_PLAIN, 0, 600},
                   {leati_file_hold(a), LEATI_PLAIN, 600, 1000},
                   {b, LEATI_GZIP, 0, INT64_MAX}},
    };
    uint8_t *bytes;
    size_t size;
    encode(&sent, &bytes, &size);
    leati_file_batch got = {.count = 0};
    cr_assert_eq(decode(&to, bytes, size, 7, &got), LEAT_OK);
    cr_assert(got.count == 3 && !got.lost);
    cr_expect_str_eq(got.splits[0].file->path, "dir/\xff name");
    cr_expect(got.splits[0].start == 0 && got.splits[0].end == 600);
    cr_expect(got.splits[1].start == 600 && got.splits[1].end == 1000);
    // Both splits are of one file here, too.
    cr_expect(got.splits[0].file == got.splits[1].file);
    cr_expect(leati_file_same(&got.splits[0].file->id, &a->id) && !got.splits[0].file->foreign);
    cr_expect(got.splits[2].file->stream && got.splits[2].compression == LEATI_GZIP &&
              got.splits[2].end == INT64_MAX);
    release_all(&to, &got);
    cr_assert_eq(decode(&to, bytes, size, 8, &got), LEAT_OK);
    cr_expect(got.splits[0].file->foreign, "another machine's numbers mean nothing here");
    release_all(&to, &got);
    release_all(&from, &sent);
    leati_free(NULL, bytes);
    leati_file_splits_destroy(&from.splits);
    leati_file_splits_destroy(&to.splits);
}

Test(file_split_wire, none_left_is_an_empty_answer)
{
    side s = new_side();
    leati_file_batch none = {.count = 0}, got = {.count = 5};
    uint8_t *bytes;
    size_t size;
    encode(&none, &bytes, &size);
    cr_assert(decode(&s, bytes, size, 7, &got) == LEAT_OK && got.count == 0);
    leati_free(NULL, bytes);
    leati_file_splits_destroy(&s.splits);
}

Test(file_split_wire, what_home_could_not_have_said_is_refused)
{
    side s = new_side();
    const struct {
        const char *path;
        bool stream;
        leati_file_split split;
    } wrong[] = {
        {"", false, {NULL, LEATI_PLAIN, 0, 10}},
        {"-", true, {NULL, LEATI_PLAIN, 0, INT64_MAX}},
        {"a", false, {NULL, LEATI_PLAIN, -1, 10}},
        {"a", false, {NULL, LEATI_PLAIN, 10, 9}},
        {"a", false, {NULL, LEATI_PLAIN, 0, 1001}},
        {"a", false, {NULL, 99, 0, INT64_MAX}},
        {"a", false, {NULL, -1, 0, INT64_MAX}},
        {"a", false, {NULL, LEATI_ZSTD, 0, 1000}},
        {"a", true, {NULL, LEATI_PLAIN, 5, INT64_MAX}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        leati_file_batch sent = {.count = 1, .splits = {wrong[i].split}}, got = {.count = 0};
        sent.splits[0].file = file_of(&s, wrong[i].path, wrong[i].stream);
        uint8_t *bytes;
        size_t size;
        encode(&sent, &bytes, &size);
        cr_expect(decode(&s, bytes, size, 7, &got) == LEAT_ECORRUPT && got.count == 0, "%zu", i);
        release_all(&s, &sent);
        leati_free(NULL, bytes);
    }
    leati_file_splits_destroy(&s.splits);
}

Test(file_split_wire, broken_bytes_do_no_harm)
{
    side s = new_side();
    leati_file_batch sent = {.count = 2}, got = {.count = 0};
    for (uint32_t i = 0; i < sent.count; i++)
        sent.splits[i] =
            (leati_file_split){file_of(&s, i ? "b" : "a", false), LEATI_PLAIN, 0, 1000};
    uint8_t *bytes;
    size_t size;
    encode(&sent, &bytes, &size);
    for (size_t cut = 0; cut < size; cut++)
        cr_assert_eq(decode(&s, bytes, cut, 7, &got), LEAT_ECORRUPT, "%zu bytes", cut);
    for (size_t at = 0; at < size; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes[at] ^= (uint8_t)(1u << bit);
            leat_err err = decode(&s, bytes, size, 7, &got);
            cr_assert(err == LEAT_OK || err == LEAT_ECORRUPT);
            if (err == LEAT_OK)
                release_all(&s, &got);
            bytes[at] ^= (uint8_t)(1u << bit);
        }
    release_all(&s, &sent);
    leati_free(NULL, bytes);
    leati_file_splits_destroy(&s.splits);
}
