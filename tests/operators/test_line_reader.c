// SPDX-License-Identifier: Apache-2.0
// Every split size over tricky little files gives the lines that a plain loop finds.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "leat/leat.h"
#include "operators/line_reader.h"

enum { MAX_LINES = 4096 };

typedef struct lines {
    size_t count;
    char *text[MAX_LINES];
    size_t size[MAX_LINES];
} lines;

static void add_line(lines *all, const char *text, size_t size)
{
    cr_assert(all->count < MAX_LINES);
    all->text[all->count] = malloc(size + 1);
    memcpy(all->text[all->count], text, size);
    all->size[all->count++] = size;
}

static void drop_lines(lines *all)
{
    while (all->count)
        free(all->text[--all->count]);
}

// The rule in its plainest form.
static void naive(const char *text, size_t size, lines *all)
{
    size_t start = 0;
    for (size_t i = 0; i <= size; i++) {
        bool at_end = i == size;
        if (!at_end && text[i] != '\n')
            continue;
        if (at_end && start == size)
            break;
        size_t end = i;
        if (!at_end && end > start && text[end - 1] == '\r')
            end--;
        add_line(all, text + start, end - start);
        start = i + 1;
    }
}

static void write_file(const char *path, const char *text, size_t size)
{
    FILE *file = fopen(path, "wb");
    cr_assert(file != NULL);
    cr_assert_eq(fwrite(text, 1, size, file), size);
    fclose(file);
}

// Reads one split to its end.
static leat_err read_split(leati_line_reader *reader, const leati_text_split *split, lines *all)
{
    leat_err err = leati_line_reader_open(reader, split);
    while (err == LEAT_OK) {
        leat_str line;
        switch (leati_line_reader_next(reader, &line)) {
        case LEATI_LINE_FOUND:
            add_line(all, line.data, line.size);
            break;
        case LEATI_LINE_NEEDS_FILL:
            err = leati_line_reader_fill(reader);
            break;
        case LEATI_LINE_END:
            leati_line_reader_close(reader);
            return LEAT_OK;
        }
    }
    return err;
}

// All splits of a file, as the enumerator gives them out.
static void read_all(const char *path, int64_t split_size, size_t block_size, lines *all)
{
    leati_text_splits *splits;
    leati_text_split split;
    leati_line_reader reader;
    char why[200];
    cr_assert_eq(leati_text_splits_create(NULL, split_size, &splits), LEAT_OK);
    cr_assert_eq(leati_text_splits_list(splits, &path, 1, why, sizeof why), LEAT_OK, "%s", why);
    leati_line_reader_init(&reader, NULL, block_size);
    while (leati_text_splits_next(splits, &split))
        cr_assert_eq(read_split(&reader, &split, all), LEAT_OK);
    leati_line_reader_fini(&reader);
    leati_text_splits_destroy(&splits);
}

static void expect_same(const lines *found, const lines *expected, const char *what, size_t a,
                        size_t b)
{
    cr_assert_eq(found->count, expected->count, "%s, split %zu, block %zu: %zu lines", what, a, b,
                 found->count);
    for (size_t i = 0; i < found->count; i++)
        cr_assert(found->size[i] == expected->size[i] &&
                      memcmp(found->text[i], expected->text[i], found->size[i]) == 0,
                  "%s, split %zu, block %zu: line %zu", what, a, b, i);
}

static const struct {
    const char *name, *text;
    size_t size;
} files[] = {
#define FILE_OF(name, text)                                                                        \
    {                                                                                              \
        name, text, sizeof(text) - 1                                                               \
    }
    FILE_OF("empty", ""),
    FILE_OF("one LF", "\n"),
    FILE_OF("LFs only", "\n\n\n\n"),
    FILE_OF("one byte", "x"),
    FILE_OF("no final LF", "one\ntwo\nthree"),
    FILE_OF("final LF", "one\ntwo\nthree\n"),
    FILE_OF("CRLF", "one\r\ntwo\r\n\r\nthree\r\n"),
    FILE_OF("lone CR", "a\rb\r\rc\r\r\nd\r"),
    FILE_OF("CR last, no LF", "a\r\nb\r"),
    FILE_OF("CR and LF apart", "\r\n\r\r\n\n\r"),
    FILE_OF("NUL", "a\0b\n\0\n\0\0\0"),
    FILE_OF("BOM", "\xef\xbb\xbf"
                   "first\nsecond\n"),
    FILE_OF("not UTF-8", "\xff\xfe\n\x80\xc0\n"),
    FILE_OF("long and short", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nb\n\n"
                              "cccccccccccccccccccccc\n"),
};

Test(line_reader, every_split_size_gives_the_lines_of_a_plain_reader)
{
    static const size_t blocks[] = {1, 2, 3, 7, 64};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        lines expected = {0};
        naive(files[f].text, files[f].size, &expected);
        write_file("lines.txt", files[f].text, files[f].size);
        for (size_t split = 1; split <= files[f].size + 2; split++)
            for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
                lines found = {0};
                read_all("lines.txt", (int64_t)split, blocks[b], &found);
                expect_same(&found, &expected, files[f].name, split, blocks[b]);
                drop_lines(&found);
            }
        drop_lines(&expected);
    }
    unlink("lines.txt");
}

Test(line_reader, all_byte_values_and_random_files_survive_any_split)
{
    uint32_t random = 7;
    for (int round = 0; round < 300; round++) {
        char text[700];
        size_t size = 0;
        if (round == 0) {
            for (; size < 256; size++)
                text[size] = (char)size;
        } else {
            random = random * 1664525u + 1013904223u;
            size_t wanted = (random >> 8) % sizeof text;
            for (; size < wanted; size++) {
                random = random * 1664525u + 1013904223u;
                text[size] = "ab\n\r\n\0\xff "[(random >> 16) % 8];
            }
        }
        lines expected = {0}, found = {0};
        naive(text, size, &expected);
        write_file("random.txt", text, size);
        random = random * 1664525u + 1013904223u;
        size_t split = (random >> 8) % (size + 1) + 1, block = (random >> 20) % 50 + 1;
        read_all("random.txt", (int64_t)split, block, &found);
        expect_same(&found, &expected, "random", split, block);
        drop_lines(&expected);
        drop_lines(&found);
    }
    unlink("random.txt");
}

Test(line_reader, a_line_of_a_hundred_megabytes_is_one_line)
{
    enum { SIZE = 100 * 1000 * 1000 };
    char *text = malloc(SIZE);
    memset(text, 'l', SIZE);
    memcpy(text, "first\n", 6);
    memcpy(text + SIZE - 6, "\nlast\n", 6);
    write_file("long.txt", text, SIZE);
    lines found = {0};
    read_all("long.txt", 8 << 20, LEATI_LINE_BLOCK, &found);
    cr_assert_eq(found.count, 3);
    cr_assert_eq(found.size[1], SIZE - 12);
    cr_assert(memcmp(found.text[1], text + 6, SIZE - 12) == 0);
    cr_assert(found.size[2] == 4 && memcmp(found.text[2], "last", 4) == 0);
    drop_lines(&found);
    free(text);
    unlink("long.txt");
}

Test(line_reader, a_split_without_the_first_byte_of_a_line_reads_no_further_than_itself)
{
    static char text[10000];
    memset(text, 'x', sizeof text);
    write_file("skip.txt", text, sizeof text);
    leati_line_reader reader;
    leat_str line;
    leati_line_reader_init(&reader, NULL, 10);
    leati_text_split split = {.path = "skip.txt", .start = 100, .end = 200};
    cr_assert_eq(leati_line_reader_open(&reader, &split), LEAT_OK);
    int fills = 0;
    while (leati_line_reader_next(&reader, &line) == LEATI_LINE_NEEDS_FILL) {
        cr_assert_eq(leati_line_reader_fill(&reader), LEAT_OK);
        fills++;
    }
    // 99 … 198 in blocks of ten; what follows is never asked for.
    cr_assert_eq(fills, 10);
    leati_line_reader_fini(&reader);
    unlink("skip.txt");
}

Test(line_reader, a_file_truncated_while_it_is_read_is_an_error_that_names_it)
{
    write_file("cut.txt", "one\ntwo\nthree\nfour\n", 19);
    leati_line_reader reader;
    lines found = {0};
    leati_text_split split = {.path = "cut.txt", .start = 0, .end = 19};
    leati_line_reader_init(&reader, NULL, 4);
    cr_assert_eq(truncate("cut.txt", 10), 0);
    cr_assert_eq(read_split(&reader, &split, &found), LEAT_EIO);
    cr_assert(strstr(reader.why, "cut.txt") && strstr(reader.why, "byte 10"), "%s", reader.why);
    drop_lines(&found);
    leati_line_reader_fini(&reader);
    unlink("cut.txt");
}

Test(line_reader, a_file_that_cannot_be_opened_is_an_error_that_names_it)
{
    leati_line_reader reader;
    leati_text_split split = {.path = "not-there.txt", .start = 0, .end = 10};
    leati_line_reader_init(&reader, NULL, 4);
    cr_assert_eq(leati_line_reader_open(&reader, &split), LEAT_ENOENT);
    cr_assert(strstr(reader.why, "not-there.txt: No such file"), "%s", reader.why);
    leati_line_reader_fini(&reader);
}

Test(line_reader, a_pipe_gives_lines_as_they_come_and_says_when_it_has_none)
{
    cr_assert_eq(mkfifo("pipe", 0600), 0);
    leati_line_reader reader;
    leati_text_split split = {.path = "pipe", .stream = true};
    leat_str line;
    leati_line_reader_init(&reader, NULL, 64);
    cr_assert_eq(leati_line_reader_open(&reader, &split), LEAT_OK, "does not wait for a writer");
    cr_assert(!leati_line_reader_ready(&reader));
    int writer = open("pipe", O_WRONLY);
    cr_assert(writer >= 0 && !leati_line_reader_ready(&reader));
    cr_assert_eq(leati_line_reader_fill(&reader), LEAT_EAGAIN);
    cr_assert_eq(write(writer, "one\ntw", 6), 6);
    cr_assert(leati_line_reader_ready(&reader));
    cr_assert_eq(leati_line_reader_fill(&reader), LEAT_OK);
    cr_assert_eq(leati_line_reader_next(&reader, &line), LEATI_LINE_FOUND);
    cr_assert(line.size == 3 && memcmp(line.data, "one", 3) == 0);
    cr_assert_eq(leati_line_reader_next(&reader, &line), LEATI_LINE_NEEDS_FILL);
    cr_assert_eq(write(writer, "o", 1), 1);
    close(writer);
    while (leati_line_reader_next(&reader, &line) == LEATI_LINE_NEEDS_FILL)
        cr_assert_eq(leati_line_reader_fill(&reader), LEAT_OK);
    cr_assert(line.size == 3 && memcmp(line.data, "two", 3) == 0);
    cr_assert_eq(leati_line_reader_next(&reader, &line), LEATI_LINE_END);
    leati_line_reader_fini(&reader);
    unlink("pipe");
}

// A block of memory that runs out.
typedef struct limited {
    size_t limit;
} limited;

static void *limited_allocate(void *user, size_t size)
{
    return size > ((limited *)user)->limit ? NULL : malloc(size);
}

static void *limited_reallocate(void *user, void *ptr, size_t size)
{
    return size > ((limited *)user)->limit ? NULL : realloc(ptr, size);
}

static void limited_release(void *user, void *ptr)
{
    free(ptr);
}

Test(line_reader, a_line_beyond_memory_is_an_error_that_says_where_it_begins)
{
    static char text[5000];
    memset(text, 'x', sizeof text);
    memcpy(text, "short\n", 6);
    write_file("big.txt", text, sizeof text);
    limited limit = {1000};
    leat_allocator allocator = {limited_allocate, limited_reallocate, limited_release, &limit};
    leati_line_reader reader;
    lines found = {0};
    leati_text_split split = {.path = "big.txt", .start = 0, .end = sizeof text};
    leati_line_reader_init(&reader, &allocator, 64);
    cr_assert_eq(read_split(&reader, &split, &found), LEAT_ENOMEM);
    cr_assert(strstr(reader.why, "big.txt") && strstr(reader.why, "byte 6"), "%s", reader.why);
    cr_assert_eq(found.count, 1);
    drop_lines(&found);
    leati_line_reader_fini(&reader);
    unlink("big.txt");
}

// Each test has a folder of its own.
static void enter_folder(void)
{
    char folder[] = "/tmp/leat-lines-XXXXXX";
    cr_assert(mkdtemp(folder) && chdir(folder) == 0);
}

static void leave_folder(void)
{
    char *folder = get_current_dir_name();
    cr_assert(chdir("/") == 0 && rmdir(folder) == 0, "a test left files in %s", folder);
    free(folder);
}

TestSuite(line_reader, .init = enter_folder, .fini = leave_folder);
