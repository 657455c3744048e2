// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

// The definition, spelled out the slow way: take the value apart by its length, then rule out what
// has a shorter form, surrogates and what is too large.
static size_t naive_length(const uint8_t *p, size_t size)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length;
    uint32_t value;
    if ((p[0] & 0x80) == 0x00) {
        return 1;
    } else if ((p[0] & 0xe0) == 0xc0) {
        length = 2;
        value = p[0] & 0x1f;
    } else if ((p[0] & 0xf0) == 0xe0) {
        length = 3;
        value = p[0] & 0x0f;
    } else if ((p[0] & 0xf8) == 0xf0) {
        length = 4;
        value = p[0] & 0x07;
    } else {
        return 0;
    }
    if (size < length)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if (p[i] / 64 != 2)
            return 0;
        value = value * 64 + p[i] % 64;
    }
    bool surrogate = value >= 0xd800 && value <= 0xdfff;
    return value < least[length] || surrogate || value > 0x10ffff ? 0 : length;
}

Test(utf8, all_sequences_of_up_to_three_bytes_agree_with_the_definition)
{
    uint8_t p[3];
    for (uint32_t n = 0; n < 1u << 24; n++) {
        p[0] = (uint8_t)(n >> 16);
        p[1] = (uint8_t)(n >> 8);
        p[2] = (uint8_t)n;
        // Two and one bytes: only once for each prefix.
        for (size_t size = 3; size > 0; size--) {
            size_t length = leati_utf8_length((const char *)p, size);
            if (length != naive_length(p, size))
                cr_assert_fail("%02x %02x %02x of %zu: %zu", p[0], p[1], p[2], size, length);
            if (n & ((1u << 8 * (4 - size)) - 1))
                break;
        }
    }
}

Test(utf8, sequences_of_four_bytes_agree_with_the_definition)
{
    static const uint8_t edges[] = {0x00, 0x7f, 0x80, 0x8f, 0x90, 0xa0, 0xbf, 0xc0, 0xff};
    uint8_t p[4];
    for (uint32_t n = 0; n < 32 * 256; n++) {
        p[0] = (uint8_t)(0xe0 + n / 256);
        p[1] = (uint8_t)n;
        for (size_t i = 0; i < sizeof edges * sizeof edges; i++) {
            p[2] = edges[i / sizeof edges];
            p[3] = edges[i % sizeof edges];
            for (size_t size = 1; size <= 4; size++)
                cr_assert_eq(leati_utf8_length((const char *)p, size), naive_length(p, size),
                             "%02x %02x %02x %02x of %zu", p[0], p[1], p[2], p[3], size);
        }
    }
}

static const struct {
    const char *text;
    size_t size;
    const char *json;
} strings[] = {
    {"", 0, "\"\""},
    {"plain", 5, "\"plain\""},
    {"\"\\/", 3, "\"\\\"\\\\/\""},
    {"\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\""},
    {"\0\x01\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\x7f\""},
    {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\""},
    // Each byte that is no part of a sequence is replaced for itself.
    {"a\xff\xfe"
     "b",
     4,
     "\"a\xef\xbf\xbd\xef\xbf\xbd"
     "b\""},
    {"\xe2\x82", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
    {"\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    {"\xc0\xaf", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
};

Test(utf8, json_strings_are_as_written_by_hand)
{
    char to[64];
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        size_t length = leati_json_string(strings[i].text, strings[i].size, to, sizeof to);
        cr_assert_eq(length, strlen(strings[i].json), "string %zu", i);
        cr_assert(memcmp(to, strings[i].json, length) == 0, "string %zu", i);
    }
}

Test(utf8, a_json_string_never_writes_past_its_room)
{
    char to[64];
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        size_t needed = strlen(strings[i].json);
        for (size_t room = 0; room <= needed; room++) {
            memset(to, '#', sizeof to);
            cr_assert_eq(leati_json_string(strings[i].text, strings[i].size, to, room), needed);
            cr_assert(memcmp(to, strings[i].json, room) == 0);
            cr_assert_eq(to[room], '#');
        }
        cr_assert_eq(leati_json_string(strings[i].text, strings[i].size, NULL, 0), needed);
    }
}

Test(utf8, a_cleaned_text_is_one_line_of_utf8)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", ""},
        {"as it was: \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
         "as it was: \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"a\nb\rc\td\x1b[31m\x7f", "a?b?c?d?[31m?"},
        {"cut \xe2\x82", "cut ??"},
        {"\xff\xc0\x80", "???"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s", cases[i].text);
        leati_text_clean(text);
        cr_expect_str_eq(text, cases[i].expected);
    }
}
