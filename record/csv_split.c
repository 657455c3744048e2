// SPDX-License-Identifier: Apache-2.0
// Lines of CSV into values.
//
// A record is split as it is read, in one pass. Only when the text ends before it does, a second,
// simpler walk notes how far it has looked and in which state, so that the record is not tried
// again before its end is there. Both must agree on where a record ends; tests/fuzz/fuzz_csv.c cuts
// texts everywhere to see that they do.
#include <string.h>

#include "record/csv_impl.h"
#include "record/value_impl.h"

// Moves the cursor behind the line in which `from` stands.
static leati_csv_step pass_line(leati_csv_cursor *cursor, const char *from)
{
    const char *line_end = memchr(from, '\n', (size_t)(cursor->end - from));
    if (!line_end && !cursor->at_end)
        return LEATI_CSV_UNFINISHED;
    cursor->at = line_end ? line_end + 1 : cursor->end;
    return LEATI_CSV_WRONG;
}

static leati_csv_step fail_unclosed(leati_csv_cursor *cursor, const char *opened)
{
    leati_parse_fail(cursor->error, (size_t)(opened - cursor->text),
                     "the quote that opens here is never closed%s",
                     cursor->csv->no_multiline ? " in this line" : "");
    return pass_line(cursor, opened);
}

static leati_csv_step fail_behind(leati_csv_cursor *cursor, const char *at)
{
    leati_shown shown;
    leati_parse_fail(cursor->error, (size_t)(at - cursor->text),
                     "'%s' behind a quote that closes a value", leati_show(&shown, at, 1));
    return pass_line(cursor, at);
}

// The quote that closes the value whose first byte is `from`, or NULL. `*doubled` counts the quotes
// inside.
static const char *closing_quote(const leati_csv_cursor *cursor, const char *from, size_t *doubled)
{
    char quote = cursor->csv->quote;
    for (const char *at = from;;) {
        at = memchr(at, quote, (size_t)(cursor->end - at));
        if (!at || cursor->end - at < 2 || at[1] != quote)
            return at;
        at += 2;
        ++*doubled;
    }
}

// The value with each doubled quote made one.
static bool undouble(leati_csv_cursor *cursor, leati_csv_value *value, size_t doubled)
{
    const char *from = value->data, *end = from + value->size;
    char *to = leati_scratch_take(cursor->scratch, value->size - doubled, 1);
    if (!to)
        return false;
    value->data = to;
    value->size -= doubled;
    while (from < end) {
        const char *quote = memchr(from, cursor->csv->quote, (size_t)(end - from));
        size_t run = quote ? (size_t)(quote - from) + 1 : (size_t)(end - from);
        memcpy(to, from, run);
        to += run;
        from += run + (quote != NULL);
    }
    return true;
}

static leati_csv_step split_quoted(leati_csv_cursor *cursor, leati_csv_value *value)
{
    const char *opened = cursor->at, *from = opened + 1;
    size_t doubled = 0;
    const char *closed = closing_quote(cursor, from, &doubled);
    const char *last = closed ? closed : cursor->end;
    if (cursor->csv->no_multiline && memchr(from, '\n', (size_t)(last - from)))
        return fail_unclosed(cursor, opened);
    if (!closed)
        return cursor->at_end ? fail_unclosed(cursor, opened) : LEATI_CSV_UNFINISHED;
    const char *next = closed + 1;
    bool unsure = next == cursor->end && !cursor->at_end;
    size_t line_break = leati_csv_line_break(cursor, next, &unsure);
    if (unsure)
        return LEATI_CSV_UNFINISHED;
    *value = (leati_csv_value){opened, from, (size_t)(closed - from), true};
    bool more = next < cursor->end && *next == cursor->csv->delimiter;
    if (!more && line_break == 0 && next < cursor->end)
        return fail_behind(cursor, next);
    if (doubled > 0 && !undouble(cursor, value, doubled))
        return LEATI_CSV_NO_MEMORY;
    cursor->at = next + (more ? 1 : line_break);
    return more ? LEATI_CSV_NEXT : LEATI_CSV_LAST;
}

leati_csv_step leati_csv_split(leati_csv_cursor *cursor, leati_csv_value *value)
{
    const char *at = cursor->at;
    if (at < cursor->end && *at == cursor->csv->quote)
        return split_quoted(cursor, value);
    const char *next = leati_csv_plain_end(at, cursor->end, cursor->csv->delimiter);
    if (next == cursor->end) {
        if (!cursor->at_end)
            return LEATI_CSV_UNFINISHED;
        *value = (leati_csv_value){at, at, (size_t)(next - at), false};
        cursor->at = next;
        return LEATI_CSV_LAST;
    }
    *value = (leati_csv_value){at, at, (size_t)(next - at), false};
    cursor->at = next + 1;
    if (*next != '\n')
        return LEATI_CSV_NEXT;
    if (value->size > 0 && next[-1] == '\r')
        value->size--;
    return LEATI_CSV_LAST;
}

// --- the end of a record -------------------------------------------------------------------------

static leati_csv_state behind_quote(const leat_csv *csv, char c)
{
    if (c == csv->quote)
        return LEATI_CSV_QUOTED;
    return c == csv->delimiter ? LEATI_CSV_START : LEATI_CSV_BROKEN;
}

// Whether the record ends at or behind `at`, which is moved: behind that end, or to the end of the
// text.
static bool find_end(leat_csv *csv, const char **at, const char *end)
{
    const char *p = *at;
    while (p < end) {
        if (csv->state == LEATI_CSV_QUOTED) {
            p = memchr(p, csv->quote, (size_t)(end - p));
            if (!p)
                break;
            p++;
            csv->state = LEATI_CSV_CLOSED;
            continue;
        }
        if (csv->state == LEATI_CSV_PLAIN)
            p = leati_csv_plain_end(p, end, csv->delimiter);
        if (csv->state == LEATI_CSV_BROKEN || p == end) {
            p = memchr(p, '\n', (size_t)(end - p));
            *at = p ? p + 1 : end;
            return p != NULL;
        }
        char c = *p++;
        if (c == '\n') {
            *at = p;
            return true;
        }
        if (csv->state == LEATI_CSV_CLOSED)
            csv->state = behind_quote(csv, c);
        else if (c == csv->delimiter)
            csv->state = LEATI_CSV_START;
        else
            csv->state = csv->state == LEATI_CSV_START && c == csv->quote ? LEATI_CSV_QUOTED
                                                                          : LEATI_CSV_PLAIN;
    }
    *at = end;
    return false;
}

bool leati_csv_find_end(leat_csv *csv, const char *text, size_t size)
{
    const char *at = text + (csv->searched < size ? csv->searched : size);
    // Quotes hold no line together then.
    if (csv->no_multiline)
        csv->state = LEATI_CSV_BROKEN;
    bool found = find_end(csv, &at, text + size);
    csv->searched = (size_t)(at - text);
    if (found)
        csv->state = LEATI_CSV_START;
    return found;
}
