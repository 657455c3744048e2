// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

size_t leati_utf8_length(const char *text, size_t size)
{
    const uint8_t *p = (const uint8_t *)text;
    if (p[0] < 0x80)
        return 1;
    // The range of the second byte rules out overlong forms, surrogates and values that are too
    // large.
    uint8_t low = 0x80, high = 0xbf;
    size_t length;
    if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        length = 2;
    } else if (p[0] >= 0xe0 && p[0] <= 0xef) {
        length = 3;
        if (p[0] == 0xe0)
            low = 0xa0;
        if (p[0] == 0xed)
            high = 0x9f;
    } else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        length = 4;
        if (p[0] == 0xf0)
            low = 0x90;
        if (p[0] == 0xf4)
            high = 0x8f;
    } else {
        return 0;
    }
    if (size < length || p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

typedef struct sink {
    char *to;
    size_t room, length;
} sink;

static void put(sink *out, const char *data, size_t size)
{
    if (out->length < out->room) {
        size_t left = out->room - out->length;
        memcpy(out->to + out->length, data, size < left ? size : left);
    }
    out->length += size;
}

static void put_control(sink *out, char c)
{
    static const char short_form[32] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    char escaped[8];
    int length = short_form[(uint8_t)c]
                     ? snprintf(escaped, sizeof escaped, "\\%c", short_form[(uint8_t)c])
                     : snprintf(escaped, sizeof escaped, "\\u%04x", (uint8_t)c);
    put(out, escaped, (size_t)length);
}

size_t leati_json_string(const char *text, size_t size, char *to, size_t room)
{
    sink out = {to, room, 0};
    put(&out, "\"", 1);
    for (size_t i = 0; i < size;) {
        size_t length = leati_utf8_length(text + i, size - i);
        if (length == 0) {
            put(&out, "\xef\xbf\xbd", 3);
            length = 1;
        } else if (length > 1) {
            put(&out, text + i, length);
        } else if (text[i] == '"' || text[i] == '\\') {
            put(&out, (const char[]){'\\', text[i]}, 2);
        } else if ((uint8_t)text[i] < 0x20) {
            put_control(&out, text[i]);
        } else {
            put(&out, text + i, 1);
        }
        i += length;
    }
    put(&out, "\"", 1);
    return out.length;
}

void leati_text_clean(char *text)
{
    size_t size = strlen(text);
    for (size_t at = 0; at < size;) {
        size_t length = leati_utf8_length(text + at, size - at);
        if (length == 0 || (unsigned char)text[at] < 0x20 || text[at] == 0x7f) {
            text[at] = '?';
            length = 1;
        }
        at += length;
    }
}
