// SPDX-License-Identifier: Apache-2.0
// Every split size over tricky little files gives the lines that a plain loop finds.
#include <fcntl.h>

#include "files.h"

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

static void take_line(void *user, const void *record)
{
    const leat_str *line = record;
    add_line(user, line->data, line->size);
}

// All splits of a file, as they are handed out.
static void read_all(const char *path, int64_t split_size, size_t block_size, lines *all)
{
    files f;
    leat_str line;
    files_begin(&f, NULL, path, leat_text_format(), NULL, split_size, block_size);
    cr_assert_eq(files_read(&f, &line, take_line, all, NULL, 0), LEAT_OK, "%s", f.reader.why);
    files_end(&f);
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
} samples[] = {
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

Test(file_reader, every_split_size_gives_the_lines_of_a_plain_reader)
{
    static const size_t blocks[] = {1, 2, 3, 7, 64};
    for (size_t f = 0; f < sizeof samples / sizeof *samples; f++) {
        lines expected = {0};
        naive(samples[f].text, samples[f].size, &expected);
        put_bytes("lines.txt", samples[f].text, samples[f].size);
        for (size_t split = 1; split <= samples[f].size + 2; split++)
            for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
                lines found = {0};
                read_all("lines.txt", (int64_t)split, blocks[b], &found);
                expect_same(&found, &expected, samples[f].name, split, blocks[b]);
                drop_lines(&found);
            }
        drop_lines(&expected);
    }
}

Test(file_reader, all_byte_values_and_random_files_survive_any_split)
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
        put_bytes("random.txt", text, size);
        random = random * 1664525u + 1013904223u;
        size_t split = (random >> 8) % (size + 1) + 1, block = (random >> 20) % 50 + 1;
        read_all("random.txt", (int64_t)split, block, &found);
        expect_same(&found, &expected, "random", split, block);
        drop_lines(&expected);
        drop_lines(&found);
    }
}

Test(file_reader, a_line_of_two_hundred_megabytes_is_one_line)
{
    enum { SIZE = 200 * 1000 * 1000 };
    char *text = malloc(SIZE);
    memset(text, 'l', SIZE);
    memcpy(text, "first\n", 6);
    memcpy(text + SIZE - 6, "\nlast\n", 6);
    put_bytes("long.txt", text, SIZE);
    lines found = {0};
    read_all("long.txt", 8 << 20, LEATI_FILE_BLOCK, &found);
    cr_assert_eq(found.count, 3);
    cr_assert_eq(found.size[1], SIZE - 12);
    cr_assert(memcmp(found.text[1], text + 6, SIZE - 12) == 0);
    cr_assert(found.size[2] == 4 && memcmp(found.text[2], "last", 4) == 0);
    drop_lines(&found);
    free(text);
}

Test(file_reader, a_split_reads_little_beyond_its_end)
{
    enum { SIZE = 1 << 20, SPLIT = 4096, LINE = 100 };
    char *text = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        text[i] = i % LINE == LINE - 1 ? '\n' : 'x';
    put_bytes("small.txt", text, SIZE);
    free(text);
    files f;
    lines found = {0};
    leat_str line;
    leati_file_split split;
    files_begin(&f, NULL, "small.txt", leat_text_format(), NULL, SPLIT, LEATI_FILE_BLOCK);
    int64_t beyond = 0;
    while (leati_file_splits_next(f.splits, &f.sleeper, &split) == LEATI_SPLIT_FOUND) {
        cr_assert_eq(files_read_split(&f, &split, &line, take_line, &found, NULL, 0), LEAT_OK);
        int64_t more = f.reader.base + (int64_t)f.reader.filled - split.end;
        beyond = more > beyond ? more : beyond;
        leati_file_splits_release(f.splits, &split);
        drop_lines(&found);
    }
    cr_assert(beyond > 0 && beyond <= SPLIT, "%d", (int)beyond);
    files_end(&f);
}

// The only split of a file that a test cuts out by hand.
static leati_file_split cut(files *f, int64_t start, int64_t end)
{
    leati_file_split split;
    cr_assert_eq(leati_file_splits_next(f->splits, &f->sleeper, &split), LEATI_SPLIT_FOUND);
    split.start = start;
    split.end = end;
    return split;
}

Test(file_reader, a_split_without_the_first_byte_of_a_line_reads_no_further_than_itself)
{
    static char text[10000];
    memset(text, 'x', sizeof text);
    put_bytes("skip.txt", text, sizeof text);
    files f;
    leat_str line;
    leat_parse_error error;
    files_begin(&f, NULL, "skip.txt", leat_text_format(), NULL, 10000, 10);
    leati_file_split split = cut(&f, 100, 200);
    cr_assert_eq(leati_file_reader_open(&f.reader, &split), LEAT_OK);
    int fills = 0;
    leati_read found;
    while ((found = leati_file_reader_next(&f.reader, &line, &error)) == LEATI_READ_FILL) {
        cr_assert_eq(leati_file_reader_fill(&f.reader), LEAT_OK);
        fills++;
    }
    cr_assert_eq(found, LEATI_READ_END);
    // 99 … 198 in blocks of ten; what follows is never asked for.
    cr_assert_eq(fills, 10);
    leati_file_splits_release(f.splits, &split);
    files_end(&f);
}

Test(file_reader, a_file_truncated_while_it_is_read_is_an_error_that_names_it)
{
    put_text("cut.txt", "one\ntwo\nthree\nfour\n");
    files f;
    lines found = {0};
    leat_str line;
    files_begin(&f, NULL, "cut.txt", leat_text_format(), NULL, 100, 4);
    cr_assert_eq(truncate("cut.txt", 10), 0);
    cr_assert_eq(files_read(&f, &line, take_line, &found, NULL, 0), LEAT_ESTATE);
    cr_assert_str_eq(f.reader.why, "cut.txt: ended at byte 10: it was truncated while it was read");
    cr_assert_eq(found.count, 2);
    drop_lines(&found);
    files_end(&f);
}

Test(file_reader, what_a_file_grows_by_only_ends_its_last_line)
{
    put_text("grow.txt", "one\ntwo");
    files f;
    lines found = {0};
    leat_str line;
    files_begin(&f, NULL, "grow.txt", leat_text_format(), NULL, 100, 4);
    put_text("grow.txt", "one\ntwo, more\nthree\n");
    cr_assert_eq(files_read(&f, &line, take_line, &found, NULL, 0), LEAT_OK);
    cr_assert_eq(found.count, 2);
    cr_assert(found.size[1] == 9 && memcmp(found.text[1], "two, more", 9) == 0);
    drop_lines(&found);
    files_end(&f);
}

Test(file_reader, a_file_that_was_replaced_or_has_gone_is_an_error_that_names_it)
{
    static const struct {
        const char *other;
        leat_err err;
        const char *why;
    } cases[] = {
        {"new", LEAT_ESTATE, "old: another file has taken its place since it was listed"},
        {NULL, LEAT_ENOENT, "cannot open old: No such file or directory"},
    };
    for (int i = 0; i < 2; i++) {
        files f;
        leat_str line;
        put_text("old", "one\n");
        put_text("new", "two\n");
        files_begin(&f, NULL, "old", leat_text_format(), NULL, 100, 64);
        cr_assert_eq(cases[i].other ? rename("new", "old") : unlink("old"), 0);
        cr_assert_eq(files_read(&f, &line, take_line, NULL, NULL, 0), cases[i].err);
        cr_assert_str_eq(f.reader.why, cases[i].why);
        files_end(&f);
    }
}

Test(file_reader, a_pipe_gives_lines_as_they_come_and_says_when_it_has_none)
{
    cr_assert_eq(mkfifo("pipe", 0600), 0);
    files f;
    leat_str line;
    leat_parse_error error;
    leati_file_split split;
    files_begin(&f, NULL, "pipe", leat_text_format(), NULL, 100, 64);
    leati_file_reader *reader = &f.reader;
    cr_assert_eq(leati_file_splits_next(f.splits, &f.sleeper, &split), LEATI_SPLIT_FOUND);
    cr_assert_eq(leati_file_reader_open(reader, &split), LEAT_OK, "does not wait for a writer");
    cr_assert(!leati_file_reader_ready(reader));
    int writer = open("pipe", O_WRONLY);
    cr_assert(writer >= 0 && !leati_file_reader_ready(reader));
    cr_assert_eq(leati_file_reader_fill(reader), LEAT_EAGAIN);
    cr_assert_eq(write(writer, "one\ntw", 6), 6);
    cr_assert(leati_file_reader_ready(reader));
    leati_read found;
    while ((found = leati_file_reader_next(reader, &line, &error)) != LEATI_READ_RECORD)
        if (found == LEATI_READ_FILL)
            cr_assert_eq(leati_file_reader_fill(reader), LEAT_OK);
    cr_assert(line.size == 3 && memcmp(line.data, "one", 3) == 0);
    cr_assert_eq(leati_file_reader_next(reader, &line, &error), LEATI_READ_FILL);
    cr_assert_eq(write(writer, "o", 1), 1);
    close(writer);
    while (leati_file_reader_next(reader, &line, &error) == LEATI_READ_FILL)
        cr_assert_eq(leati_file_reader_fill(reader), LEAT_OK);
    cr_assert(line.size == 3 && memcmp(line.data, "two", 3) == 0);
    cr_assert_eq(leati_file_reader_next(reader, &line, &error), LEATI_READ_END);
    leati_file_splits_release(f.splits, &split);
    files_end(&f);
}

// A block of memory that runs out.
static void *limited_allocate(void *user, size_t size)
{
    return size > *(size_t *)user ? NULL : malloc(size);
}

static void *limited_reallocate(void *user, void *ptr, size_t size)
{
    return size > *(size_t *)user ? NULL : realloc(ptr, size);
}

static void limited_release(void *user, void *ptr)
{
    free(ptr);
}

Test(file_reader, a_line_beyond_memory_is_an_error_that_says_where_it_begins)
{
    static char text[5000];
    memset(text, 'x', sizeof text);
    memcpy(text, "short\n", 6);
    put_bytes("big.txt", text, sizeof text);
    size_t limit = 1000;
    leat_allocator allocator = {limited_allocate, limited_reallocate, limited_release, &limit};
    files f;
    lines found = {0};
    leat_str line;
    files_begin(&f, &allocator, "big.txt", leat_text_format(), NULL, 10000, 64);
    cr_assert_eq(files_read(&f, &line, take_line, &found, NULL, 0), LEAT_ENOMEM);
    cr_assert(strstr(f.reader.why, "big.txt") && strstr(f.reader.why, "byte 6"), "%s",
              f.reader.why);
    cr_assert_eq(found.count, 1);
    drop_lines(&found);
    files_end(&f);
}

// What was asked for at once, at most.
static void *largest_reallocate(void *user, void *ptr, size_t size)
{
    size_t *largest = user;
    *largest = size > *largest ? size : *largest;
    return realloc(ptr, size);
}

static void *largest_allocate(void *user, size_t size)
{
    return largest_reallocate(user, NULL, size);
}

Test(file_reader, the_buffer_exceeds_a_long_line_by_half_at_most_and_never_the_longest_record)
{
    enum { BLOCK = 1000, MAX = 30000 };
    static char text[MAX + 10];
    static const size_t sizes[] = {1000, 1990, 2500, 5000, 9001, 17000, 25000, MAX - 5, MAX};
    memset(text, 'x', sizeof text);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t largest = 0, size = sizes[i];
        leat_allocator allocator = {largest_allocate, largest_reallocate, limited_release,
                                    &largest};
        files f;
        lines found = {0};
        leat_str line;
        text[size - 1] = '\n';
        put_bytes("long.txt", text, size);
        text[size - 1] = 'x';
        files_begin(&f, &allocator, "long.txt", leat_text_format(), NULL, MAX, BLOCK);
        f.reader.record_max = MAX;
        cr_assert_eq(files_read(&f, &line, take_line, &found, NULL, 0), LEAT_OK, "%s",
                     f.reader.why);
        cr_assert(found.count == 1 && found.size[0] == size - 1);
        size_t bound = size + BLOCK < MAX ? size + BLOCK : MAX + BLOCK;
        bound = bound * 3 / 2 < MAX + BLOCK ? bound * 3 / 2 : MAX + BLOCK;
        cr_assert(largest <= bound, "%zu for %zu", largest, size);
        drop_lines(&found);
        files_end(&f);
    }
}

Test(file_reader, a_line_beyond_the_longest_record_fails_and_the_setting_is_named)
{
    enum { MAX = 2 << 20 };
    char *text = malloc(2 * MAX);
    memset(text, 'x', 2 * MAX);
    memcpy(text, "1\n2\n", 4);
    put_bytes("long.txt", text, 2 * MAX);
    free(text);
    files f;
    lines found = {0};
    leat_str line;
    files_begin(&f, NULL, "long.txt", leat_text_format(), NULL, 8 << 20, LEATI_FILE_BLOCK);
    f.reader.record_max = MAX;
    cr_assert_eq(files_read(&f, &line, take_line, &found, NULL, 0), LEAT_ETOOBIG);
    cr_assert_str_eq(f.reader.why, "long.txt, byte 4: the record that begins here is longer than 2 "
                                   "MiB, the source.record-max-size");
    cr_assert_eq(found.count, 2);
    drop_lines(&found);
    files_end(&f);
}

TestSuite(file_reader, .init = enter_folder, .fini = leave_folder);
