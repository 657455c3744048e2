// SPDX-License-Identifier: Apache-2.0
// The tokens of JSON: strings, values that are passed over, and what is said when they are wrong.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "record/json_read.h"

// --- failing -------------------------------------------------------------------------------------

static size_t add(char *text, size_t size, size_t length, const char *format, ...)
    LEAT_PRINTF(4, 5);

static size_t add(char *text, size_t size, size_t length, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int more = vsnprintf(text + length, size - length, format, args);
    va_end(args);
    return length + (size_t)more < size ? length + (size_t)more : size - 1;
}

// "field past[3].street: ", or nothing for the outermost value.
static void show_place(const leati_json_place *place, char *text, size_t size)
{
    const leati_json_place *steps[LEAT_TYPE_MAX_DEPTH + 1];
    size_t count = 0, length = 0;
    text[0] = '\0';
    for (; place && count < sizeof steps / sizeof *steps; place = place->outer)
        steps[count++] = place;
    if (count == 0)
        return;
    length = add(text, size, length, steps[count - 1]->field ? "field " : "item ");
    for (size_t i = count; i-- > 0;) {
        leati_shown shown;
        if (steps[i]->field)
            length = add(text, size, length, "%s%s", i + 1 < count ? "." : "", steps[i]->field);
        else if (steps[i]->key)
            length = add(text, size, length, "[\"%s\"]",
                         leati_show(&shown, steps[i]->key->data, steps[i]->key->size));
        else
            length = add(text, size, length, "[%zu]", steps[i]->index);
    }
    add(text, size, length, ": ");
}

bool leati_json_fail(leati_json *json, const char *at, const char *format, ...)
{
    char place[128], message[128];
    json->err = LEAT_ECORRUPT;
    if (!json->error)
        return false;
    show_place(json->place, place, sizeof place);
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    leati_parse_fail(json->error, (size_t)(at - json->text), "%s%s", place, message);
    return false;
}

bool leati_json_expected(leati_json *json, const char *expected)
{
    const char *at = json->at;
    leati_shown shown;
    if (at == json->end)
        return leati_json_fail(json, at, "the text ends where %s is expected", expected);
    size_t left = (size_t)(json->end - at);
    const char *found = NULL;
    switch (*at) {
    case '{':
        found = "an object";
        break;
    case '[':
        found = "a list";
        break;
    case '"':
        found = "a string";
        break;
    case 't':
        found = left >= 4 && memcmp(at, "true", 4) == 0 ? "true" : NULL;
        break;
    case 'f':
        found = left >= 5 && memcmp(at, "false", 5) == 0 ? "false" : NULL;
        break;
    case 'n':
        found = left >= 4 && memcmp(at, "null", 4) == 0 ? "null" : NULL;
        break;
    default:
        if (*at == '-' || leati_is_digit(*at))
            found = "a number";
    }
    if (found)
        return leati_json_fail(json, at, "%s where %s is expected", found, expected);
    // The bytes of one character.
    size_t size = leati_utf8_length(at, left);
    return leati_json_fail(json, at, "'%s' where %s is expected",
                           leati_show(&shown, at, size ? size : 1), expected);
}

void *leati_json_take(leati_json *json, size_t count, size_t size, size_t align)
{
    size_t bytes;
    void *memory = NULL;
    if (!json->scratch) {
        leati_json_fail(json, json->at, "no scratch memory was given");
        json->err = LEAT_EINVAL;
        return NULL;
    }
    if (!__builtin_mul_overflow(count, size, &bytes))
        memory = leati_scratch_take(json->scratch, bytes, align);
    if (!memory) {
        leati_json_fail(json, json->at, "out of memory");
        json->err = LEAT_ENOMEM;
    }
    return memory;
}

// --- strings -------------------------------------------------------------------------------------

static int hex_of(char c)
{
    if (leati_is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// The four digits behind \u; -1 when they are none.
static int32_t hex4(const char *at, const char *end)
{
    int32_t value = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_of(at[i]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static size_t put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(marks[length] | c);
    return length;
}

// The escape at json->at, a \u with its partner if it needs one; its bytes go to `to`. Returns how
// many there are, 0 after failing.
static size_t read_escape(leati_json *json, char to[static 4])
{
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *at = json->at;
    if (json->end - at < 2)
        return leati_json_fail(json, at, "the text ends inside a string");
    const char *name = at[1] ? strchr(names, at[1]) : NULL;
    if (name) {
        to[0] = meanings[name - names];
        json->at += 2;
        return 1;
    }
    if (at[1] != 'u')
        return leati_json_fail(json, at, "an escape that JSON does not have");
    int32_t c = hex4(at + 2, json->end);
    if (c < 0)
        return leati_json_fail(json, at, "\\u without four hexadecimal digits");
    json->at += 6;
    if (c < 0xd800 || c > 0xdfff)
        return put_utf8(to, (uint32_t)c);
    int32_t low = -1;
    if (c < 0xdc00 && json->end - json->at >= 6 && json->at[0] == '\\' && json->at[1] == 'u')
        low = hex4(json->at + 2, json->end);
    if (low < 0xdc00 || low > 0xdfff)
        return leati_json_fail(json, at, "half of a surrogate pair");
    json->at += 6;
    return put_utf8(to, 0x10000 + ((uint32_t)c - 0xd800) * 0x400 + ((uint32_t)low - 0xdc00));
}

// Moves over bytes that stand for themselves. False at anything that may not stand in a string,
// true at a quote or a backslash.
static bool pass_plain(leati_json *json, const char *opened)
{
    const char *at = json->at;
    for (;;) {
        at = leati_json_plain(at, json->end);
        if (at == json->end)
            return leati_json_fail(json, opened, "the string is not closed");
        if (*at == '"' || *at == '\\')
            break;
        if ((unsigned char)*at < 0x20)
            return leati_json_fail(json, at, "a control character in a string");
        while (at < json->end && (unsigned char)*at >= 0x80) {
            size_t length = leati_utf8_length(at, (size_t)(json->end - at));
            if (length == 0)
                return leati_json_fail(json, at, "a byte that is not UTF-8");
            at += length;
        }
    }
    json->at = at;
    return true;
}

// The size of the rest of a string as it is written; all of the text when it does not end.
static size_t rest_of_string(const leati_json *json)
{
    const char *at = json->at;
    while (at < json->end && *at != '"')
        at += *at == '\\' && json->end - at > 1 ? 2 : 1;
    return (size_t)(at - json->at);
}

// A string that holds escapes, from the first of them on. What it means is never longer than what
// is written.
static bool read_escaped(leati_json *json, const char *opened, leat_str *out)
{
    char *to = NULL;
    size_t length = (size_t)(json->at - opened) - 1;
    if (out) {
        to = leati_json_take(json, length + rest_of_string(json), 1, 1);
        if (!to)
            return false;
        memcpy(to, opened + 1, length);
    }
    while (*json->at != '"') {
        char bytes[4];
        size_t count = read_escape(json, bytes);
        if (count == 0)
            return false;
        const char *plain = json->at;
        if (to)
            memcpy(to + length, bytes, count);
        if (!pass_plain(json, opened))
            return false;
        if (to)
            memcpy(to + length + count, plain, (size_t)(json->at - plain));
        length += count + (size_t)(json->at - plain);
    }
    json->at++;
    if (out)
        *out = (leat_str){to, length};
    return true;
}

bool leati_json_read_string(leati_json *json, leat_str *out)
{
    const char *opened = json->at;
    if (opened == json->end || *opened != '"')
        return leati_json_expected(json, "a string");
    json->at++;
    if (!pass_plain(json, opened))
        return false;
    if (LEAT_UNLIKELY(*json->at == '\\'))
        return read_escaped(json, opened, out);
    if (out)
        *out = (leat_str){opened + 1, (size_t)(json->at - opened) - 1};
    json->at++;
    return true;
}

// --- base64 --------------------------------------------------------------------------------------

// The six bits of a digit, or more than 63.
static uint32_t base64_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint32_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a') + 26;
    if (leati_is_digit(c))
        return (uint32_t)(c - '0') + 52;
    return c == '+' ? 62 : c == '/' ? 63 : 64;
}

// Four digits to three bytes, of which the padding takes some away. False when they are none, or
// hold bits that no byte has: then two texts would mean the same bytes.
static bool read_quad(const char *quad, size_t padding, uint8_t to[static 3])
{
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; i++) {
        uint32_t six = i < 4 - padding ? base64_of(quad[i]) : 0;
        if (six > 63)
            return false;
        bits = bits << 6 | six;
    }
    to[0] = (uint8_t)(bits >> 16);
    to[1] = (uint8_t)(bits >> 8);
    to[2] = (uint8_t)bits;
    return padding == 0 || (bits & (padding == 1 ? 0xff : 0xffff)) == 0;
}

bool leati_json_bytes_of(leati_json *json, const char *at, leat_str text, leat_bytes *out)
{
    *out = (leat_bytes){NULL, 0};
    if (text.size == 0)
        return true;
    size_t padding = 0;
    while (padding < 2 && padding < text.size && text.data[text.size - 1 - padding] == '=')
        padding++;
    uint8_t *to = leati_json_take(json, text.size / 4 * 3 + 3, 1, 1);
    if (!to)
        return false;
    bool good = text.size % 4 == 0;
    for (size_t i = 0; good && i < text.size; i += 4)
        good = read_quad(text.data + i, i + 4 == text.size ? padding : 0, to + i / 4 * 3);
    if (!good)
        return leati_json_fail(json, at, "a string that is not base64");
    *out = (leat_bytes){to, text.size / 4 * 3 - padding};
    return true;
}

bool leati_json_read_bytes(leati_json *json, leat_bytes *out)
{
    const char *at = json->at;
    leat_str text = {NULL, 0};
    return leati_json_read_string(json, &text) && leati_json_bytes_of(json, at, text, out);
}

// --- passing over --------------------------------------------------------------------------------

static bool skip_word(leati_json *json, const char *word, size_t size)
{
    if ((size_t)(json->end - json->at) < size || memcmp(json->at, word, size) != 0)
        return leati_json_expected(json, "a value");
    json->at += size;
    return true;
}

// The members of an object or the items of a list, behind the bracket that opens it.
static bool skip_parts(leati_json *json, bool object)
{
    char close = object ? '}' : ']';
    if (leati_json_take_char(json, close))
        return true;
    do {
        leati_json_blanks(json);
        if (object) {
            if (!leati_json_read_string(json, NULL))
                return false;
            if (!leati_json_take_char(json, ':'))
                return leati_json_expected(json, "':'");
            leati_json_blanks(json);
        }
        if (!leati_json_skip(json))
            return false;
    } while (leati_json_take_char(json, ','));
    if (!leati_json_take_char(json, close))
        return leati_json_expected(json, object ? "',' or '}'" : "',' or ']'");
    return true;
}

bool leati_json_skip(leati_json *json)
{
    leati_number number;
    char c = json->at < json->end ? *json->at : '\0';
    switch (c) {
    case '"':
        return leati_json_read_string(json, NULL);
    case '{':
    case '[': {
        if (json->depth >= LEAT_JSON_MAX_DEPTH)
            return leati_json_fail(json, json->at, "nested deeper than %d", LEAT_JSON_MAX_DEPTH);
        json->depth++;
        json->at++;
        bool good = skip_parts(json, c == '{');
        json->depth--;
        return good;
    }
    case 't':
        return skip_word(json, "true", 4);
    case 'f':
        return skip_word(json, "false", 5);
    case 'n':
        return skip_word(json, "null", 4);
    default: {
        const char *next = leati_number_scan(json->at, json->end, LEATI_STRICT, &number);
        if (!next)
            return leati_json_expected(json, "a value");
        json->at = next;
        return true;
    }
    }
}
