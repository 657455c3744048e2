// SPDX-License-Identifier: Apache-2.0
#include "operators/delimited.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

// All records with a bar behind each, and the rest with a dollar, when the text comes in pieces of
// `piece` bytes.
static void take_apart(const char *text, size_t size, const char *delimiter, size_t piece,
                       leati_strbuf *to)
{
    leati_delimited b;
    leati_delimited_init(&b, NULL, delimiter);
    for (size_t at = 0; at < size; at += piece) {
        size_t step = size - at < piece ? size - at : piece;
        memcpy(leati_delimited_room(&b, step), text + at, step);
        leati_delimited_add(&b, step);
        for (leat_str record; leati_delimited_next(&b, &record);) {
            leati_strbuf_append(to, record.data, record.size);
            leati_strbuf_putc(to, '|');
        }
    }
    leat_str rest;
    if (leati_delimited_rest(&b, &rest)) {
        leati_strbuf_append(to, rest.data, rest.size);
        leati_strbuf_putc(to, '$');
    }
    cr_assert(!leati_delimited_rest(&b, &rest) && leati_delimited_pending(&b) == 0);
    leati_delimited_fini(&b);
}

Test(delimited, records_are_what_stands_between_delimiters)
{
    static const struct {
        const char *text, *delimiter, *records;
    } cases[] = {
        {"", "\n", ""},
        {"a", "\n", "a$"},
        {"a\nb\n", "\n", "a|b|"},
        {"a\r\nb\r\r\n\r\nc\r", "\n", "a|b\r||c\r$"},
        {"\n\n", "\n", "||"},
        {"a\r;b;", ";", "a\r|b|"},
        {"a\r\nb\nc\r\n", "\r\n", "a|b\nc|"},
        {"aabaab", "aab", "||"},
        {"aaab", "aab", "a|"},
        {"one--two---three-", "--", "one|two|-three-$"},
        {"ababa", "aba", "|ba$"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t piece = 1; piece <= 8; piece++) {
            leati_strbuf found;
            leati_strbuf_init(&found, NULL);
            take_apart(cases[i].text, strlen(cases[i].text), cases[i].delimiter, piece, &found);
            cr_assert_str_eq(leati_strbuf_text(&found), cases[i].records, "case %zu, pieces of %zu",
                             i, piece);
            leati_strbuf_fini(&found);
        }
}

// Against a model that looks at each byte: texts of two letters, so that delimiters are frequent.
Test(delimited, any_text_in_any_pieces_is_as_a_naive_model_says)
{
    static const char *const delimiters[] = {"a", "ab", "aab", "aba", "bbbb"};
    uint32_t random = 1;
    for (int round = 0; round < 4000; round++) {
        char text[64];
        random = random * 1664525 + 1013904223;
        size_t size = random >> 8 & 63, piece = 1 + (random >> 16) % 9;
        const char *delimiter = delimiters[(random >> 24) % 5];
        for (size_t i = 0; i < size; i++) {
            random = random * 1664525 + 1013904223;
            text[i] = random >> 31 ? 'a' : 'b';
        }
        leati_strbuf expected, found;
        leati_strbuf_init(&expected, NULL);
        leati_strbuf_init(&found, NULL);
        size_t width = strlen(delimiter), start = 0;
        for (size_t at = 0; at + width <= size;)
            if (memcmp(text + at, delimiter, width) == 0) {
                leati_strbuf_append(&expected, text + start, at - start);
                leati_strbuf_putc(&expected, '|');
                start = at += width;
            } else {
                at++;
            }
        if (start < size) {
            leati_strbuf_append(&expected, text + start, size - start);
            leati_strbuf_putc(&expected, '$');
        }
        take_apart(text, size, delimiter, piece, &found);
        cr_assert_str_eq(leati_strbuf_text(&found), leati_strbuf_text(&expected), "round %d",
                         round);
        leati_strbuf_fini(&expected);
        leati_strbuf_fini(&found);
    }
}

// One that is searched from its start for each piece would take minutes here.
Test(delimited, a_long_record_is_searched_once, .timeout = 60)
{
    enum { SIZE = 64 << 20, PIECE = 1000 };
    leati_delimited b;
    leat_str record;
    leati_delimited_init(&b, NULL, "\n");
    for (size_t at = 0; at < SIZE; at += PIECE) {
        memset(leati_delimited_room(&b, PIECE), 'x', PIECE);
        leati_delimited_add(&b, PIECE);
        cr_assert(!leati_delimited_next(&b, &record));
    }
    *leati_delimited_room(&b, 1) = '\n';
    leati_delimited_add(&b, 1);
    cr_assert(leati_delimited_next(&b, &record) && record.size >= SIZE);
    leati_delimited_fini(&b);
}
