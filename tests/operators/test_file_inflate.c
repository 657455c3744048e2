// SPDX-License-Identifier: Apache-2.0
// Compressed files, made by the libraries themselves.
#include <zlib.h>
#include <zstd.h>

#include "files.h"

enum { SIZE = 3000 };

// Text that compresses, but not too well.
static void make_text(char *text, size_t size)
{
    uint32_t random = 1;
    for (size_t i = 0; i < size; i++) {
        random = random * 1664525u + 1013904223u;
        text[i] = "abcdefg\n"[(random >> 20) % 8];
    }
}

static size_t pack(leati_compression compression, const void *data, size_t size, uint8_t *to,
                   size_t room)
{
    if (compression == LEATI_ZSTD) {
        size_t packed = ZSTD_compress(to, room, data, size, 3);
        cr_assert(!ZSTD_isError(packed));
        return packed;
    }
    z_stream z = {
        .next_in = (Bytef *)data, .avail_in = (uInt)size, .next_out = to, .avail_out = (uInt)room};
    cr_assert_eq(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

// Unpacks in pieces of `in_step` and `out_step` bytes.
static leat_err unpack(leati_compression compression, const uint8_t *data, size_t size,
                       size_t in_step, size_t out_step, uint8_t *to, size_t *given, char *why)
{
    leati_inflate *inf;
    size_t at = 0;
    leat_err err = LEAT_OK;
    leat_bytes in = {.data = data, .size = 0};
    *given = 0;
    cr_assert_eq(leati_inflate_create(NULL, compression, &inf), LEAT_OK);
    while (err == LEAT_OK) {
        uint8_t *out = to + *given;
        size_t room = out_step;
        err = leati_inflate_run(inf, &in, &out, &room, why, 256);
        size_t now = (size_t)(out - to);
        bool idle = now == *given && in.size == 0;
        *given = now;
        if (err || !idle)
            continue;
        if (at == size) {
            err = leati_inflate_end(inf, why, 256);
            break;
        }
        in = (leat_bytes){.data = data + at, .size = size - at < in_step ? size - at : in_step};
        at += in.size;
    }
    leati_inflate_destroy(&inf);
    return err;
}

static const leati_compression both[] = {LEATI_GZIP, LEATI_ZSTD};
static char text[SIZE];
static uint8_t packed[3 * SIZE], unpacked[5 * SIZE];

Test(file_inflate, members_in_a_row_are_one_file_in_pieces_of_any_size)
{
    make_text(text, SIZE);
    for (int c = 0; c < 2; c++) {
        size_t size = pack(both[c], text, 1000, packed, sizeof packed);
        size += pack(both[c], text, 0, packed + size, sizeof packed - size);
        size += pack(both[c], text + 1000, SIZE - 1000, packed + size, sizeof packed - size);
        for (size_t in_step = 1; in_step < 2 * size; in_step = in_step * 3 + 1)
            for (size_t out_step = 1; out_step < 2 * SIZE; out_step = out_step * 5 + 2) {
                size_t given;
                char why[256] = "";
                cr_assert_eq(
                    unpack(both[c], packed, size, in_step, out_step, unpacked, &given, why),
                    LEAT_OK, "%s", why);
                cr_assert(given == SIZE && memcmp(unpacked, text, SIZE) == 0);
            }
    }
}

Test(file_inflate, a_file_that_ends_too_early_is_an_error_wherever_it_ends)
{
    make_text(text, SIZE);
    for (int c = 0; c < 2; c++) {
        size_t size = pack(both[c], text, 500, packed, sizeof packed), given;
        for (size_t cut = 0; cut < size; cut++) {
            char why[256] = "", expected[256];
            cr_assert_eq(unpack(both[c], packed, cut, 7, 100, unpacked, &given, why),
                         LEAT_ECORRUPT);
            snprintf(expected, sizeof expected,
                     "ends in the middle of its %s data, after %zu bytes", c ? "zstd" : "gzip",
                     cut);
            cr_assert_str_eq(why, expected);
        }
    }
}

Test(file_inflate, a_flipped_bit_is_found_or_changes_nothing)
{
    make_text(text, SIZE);
    for (int c = 0; c < 2; c++) {
        static uint8_t frame[SIZE];
        size_t size;
        if (c == 0) {
            size = pack(LEATI_GZIP, text, 500, frame, sizeof frame);
        } else {
            // Only frames with a checksum promise that.
            ZSTD_CCtx *context = ZSTD_createCCtx();
            ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
            size = ZSTD_compress2(context, frame, sizeof frame, text, 500);
            ZSTD_freeCCtx(context);
        }
        for (size_t bit = 0; bit < size * 8; bit++) {
            size_t given;
            char why[256] = "";
            frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
            leat_err err = unpack(both[c], frame, size, 64, 100, unpacked, &given, why);
            cr_assert(err == LEAT_ECORRUPT || (err == LEAT_ETOOBIG && c == 1)
                          ? *why != 0
                          : err == LEAT_OK && given == 500 && memcmp(unpacked, text, 500) == 0,
                      "bit %zu: %s", bit, why);
            frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
}

Test(file_inflate, what_is_no_compressed_data_is_named)
{
    static const struct {
        leati_compression compression;
        const char *before, *after; // the packed text
        size_t after_size;
        leat_err err;
        const char *why;
    } cases[] = {
        {LEATI_GZIP, "plain text, it is", "", 0, LEAT_ECORRUPT, "this is not gzip data"},
        {LEATI_ZSTD, "plain text, it is", "", 0, LEAT_ECORRUPT, "this is not zstd data"},
        {LEATI_GZIP, "", "garbage", 7, LEAT_ECORRUPT, " follows something that is not gzip"},
        {LEATI_ZSTD, "", "garbage", 7, LEAT_ECORRUPT, " follows something that is not zstd"},
        {LEATI_GZIP, "", "\0\0\0\0", 4, LEAT_OK, ""},
        {LEATI_GZIP, "", "\0\0\0x", 4, LEAT_ECORRUPT, " follows something that is not gzip"},
        // A frame of zstd that is to be skipped.
        {LEATI_ZSTD, "", "\x50\x2a\x4d\x18\x03\0\0\0abc", 11, LEAT_OK, ""},
    };
    make_text(text, SIZE);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t step = 1; step < 200; step *= 10) {
            size_t size = strlen(cases[i].before), given;
            char why[256] = "";
            memcpy(packed, cases[i].before, size);
            size += pack(cases[i].compression, text, 50, packed + size, sizeof packed - size);
            memcpy(packed + size, cases[i].after, cases[i].after_size);
            size += cases[i].after_size;
            cr_assert_eq(
                unpack(cases[i].compression, packed, size, step, 300, unpacked, &given, why),
                cases[i].err, "case %zu: %s", i, why);
            cr_assert(strstr(why, cases[i].why), "case %zu: %s", i, why);
            cr_assert(cases[i].err || given == 50);
        }
}

Test(file_inflate, a_window_that_is_too_large_is_told_from_broken_data)
{
    // A frame of one byte, which asks for a window of 2^(10 + n) bytes by n * 8.
    uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0, 0x88, 9, 0, 0, 'x'}, out[10];
    size_t given;
    char why[256] = "";
    cr_assert_eq(unpack(LEATI_ZSTD, frame, sizeof frame, 100, sizeof out, out, &given, why),
                 LEAT_OK, "128 MiB: %s", why);
    cr_assert(given == 1 && out[0] == 'x');
    frame[5] = 0x90;
    cr_assert_eq(unpack(LEATI_ZSTD, frame, sizeof frame, 100, sizeof out, out, &given, why),
                 LEAT_ETOOBIG);
    cr_assert_str_eq(
        why, "after byte 0 the zstd data needs a window of more than 128 MiB, which is refused");
}

Test(file_inflate, names_say_how_a_file_is_compressed)
{
    static const struct {
        const char *path;
        leati_compression compression;
    } cases[] = {{"a.gz", LEATI_GZIP},  {"d/b.csv.GZ", LEATI_GZIP}, {"a.zst", LEATI_ZSTD},
                 {".zst", LEATI_ZSTD},  {"a.gz.txt", LEATI_PLAIN},  {"gz", LEATI_PLAIN},
                 {"", LEATI_PLAIN},     {"-", LEATI_PLAIN},         {"a.zstd", LEATI_PLAIN},
                 {"a.tgz", LEATI_PLAIN}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_eq(leati_compression_by_name(cases[i].path), cases[i].compression, "%s",
                     cases[i].path);
}

// --- through the reader ---

static void count_line(void *user, const void *record)
{
    size_t *sums = user;
    sums[0]++;
    sums[1] += ((const leat_str *)record)->size;
}

// The largest block that was asked for.
static void *watch_reallocate(void *user, void *ptr, size_t size)
{
    size_t *largest = user;
    *largest = size > *largest ? size : *largest;
    return realloc(ptr, size);
}

static void *watch_allocate(void *user, size_t size)
{
    return watch_reallocate(user, NULL, size);
}

static void watch_release(void *user, void *ptr)
{
    free(ptr);
}

Test(file_inflate, a_bomb_of_short_lines_is_read_in_bounded_memory)
{
    enum { BOMB = 300 * 1000 * 1000 };
    char *lines = malloc(BOMB);
    for (size_t i = 0; i < BOMB; i++)
        lines[i] = i % 100 == 99 ? '\n' : 'x';
    for (int c = 0; c < 2; c++) {
        const char *path = c ? "bomb.zst" : "bomb.gz";
        uint8_t *small = malloc(4 << 20);
        put_bytes(path, small, pack(both[c], lines, BOMB, small, 4 << 20));
        free(small);
        size_t largest = 0, sums[2] = {0, 0};
        leat_allocator allocator = {watch_allocate, watch_reallocate, watch_release, &largest};
        files f;
        leat_str line;
        files_begin(&f, &allocator, path, leat_text_format(), NULL, 4096, LEATI_FILE_BLOCK);
        cr_assert_eq(files_read(&f, &line, count_line, sums, NULL, 0), LEAT_OK, "%s", f.reader.why);
        files_end(&f);
        cr_assert_eq(sums[0], BOMB / 100);
        cr_assert_eq(sums[1], BOMB / 100 * 99);
        cr_assert(largest <= 4 * LEATI_FILE_BLOCK, "%zu", largest);
    }
    free(lines);
}

Test(file_inflate, broken_files_are_errors_that_name_them)
{
    static const struct {
        const char *path, *text, *why;
    } cases[] = {
        {"plain.gz", "just some lines\nof text\n", "plain.gz: this is not gzip data"},
        {"plain.zst", "just some lines\nof text\n", "plain.zst: this is not zstd data"},
        {"empty.gz", "", "empty.gz: ends in the middle of its gzip data, after 0 bytes"},
        {"short.gz", "\x1f\x8b\x08",
         "short.gz: ends in the middle of its gzip data, after 3 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        files f;
        leat_str line;
        size_t sums[2] = {0, 0};
        put_text(cases[i].path, cases[i].text);
        files_begin(&f, NULL, cases[i].path, leat_text_format(), NULL, 4096, LEATI_FILE_BLOCK);
        cr_assert_eq(files_read(&f, &line, count_line, sums, NULL, 0), LEAT_ECORRUPT);
        cr_assert_str_eq(f.reader.why, cases[i].why);
        cr_assert_eq(sums[0], 0);
        files_end(&f);
    }
}

TestSuite(file_inflate, .init = enter_folder, .fini = leave_folder);
