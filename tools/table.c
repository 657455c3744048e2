// SPDX-License-Identifier: Apache-2.0
#include "tools/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tools/text.h"

enum { CELL_COLUMNS = 60, CELL_SIZE = 1024, COLUMNS_MAX = 16 };

void leati_table_init(leati_table *table, const char *const *titles)
{
    *table = (leati_table){.titles = titles, .widest = CELL_COLUMNS};
    while (titles[table->columns])
        table->columns++;
    leati_strbuf_init(&table->cells, NULL);
}

void leati_table_add(leati_table *table, const char *format, ...)
{
    char raw[1024], text[CELL_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    leati_shorten(raw[0] ? raw : "-", table->widest, text, sizeof text);
    leati_strbuf_append(&table->cells, text, strlen(text) + 1);
    table->count++;
}

static const char *colour_of(const char *state)
{
    if (!strcmp(state, "FAILED") || !strcmp(state, "FAILING"))
        return "\033[31m";
    if (!strcmp(state, "RUNNING"))
        return "\033[32m";
    return "";
}

static void put_cell(leati_strbuf *to, const char *text, size_t width, bool right, bool last)
{
    size_t columns = leati_columns(text);
    int padding = columns < width ? (int)(width - columns) : 0;
    if (right)
        leati_strbuf_printf(to, "%*s%s", padding, "", text);
    else
        leati_strbuf_printf(to, "%s%*s", text, last ? 0 : padding, "");
    if (!last)
        leati_strbuf_puts(to, "  ");
}

static void put_head(const leati_table *table, leati_strbuf *to, const size_t *width, bool style)
{
    leati_strbuf_puts(to, style ? "\033[1m" : "");
    for (size_t c = 0; c < table->columns; c++) {
        bool right = table->titles[c][0] == '>';
        put_cell(to, table->titles[c] + right, width[c], right, c + 1 == table->columns);
    }
    leati_strbuf_puts(to, style ? "\033[0m\n" : "\n");
}

void leati_table_print(leati_table *table, leati_strbuf *to, bool style)
{
    size_t width[COLUMNS_MAX] = {0};
    size_t columns = table->columns < COLUMNS_MAX ? table->columns : COLUMNS_MAX;
    const char *at = table->cells.data;
    if (!columns)
        return;
    for (size_t c = 0; c < columns; c++)
        width[c] = leati_columns(table->titles[c] + (table->titles[c][0] == '>'));
    for (size_t i = 0; !table->cells.failed && i < table->count; i++, at += strlen(at) + 1)
        if (leati_columns(at) > width[i % columns])
            width[i % columns] = leati_columns(at);
    put_head(table, to, width, style);
    at = table->cells.data;
    for (size_t i = 0; !table->cells.failed && i < table->count; i++, at += strlen(at) + 1) {
        size_t c = i % columns;
        const char *colour = style ? colour_of(at) : "";
        leati_strbuf_puts(to, colour);
        put_cell(to, at, width[c], table->titles[c][0] == '>', c + 1 == columns);
        leati_strbuf_puts(to, *colour ? "\033[0m" : "");
        if (c + 1 == columns)
            leati_strbuf_putc(to, '\n');
    }
    leati_strbuf_fini(&table->cells);
    leati_strbuf_init(&table->cells, NULL);
    table->count = 0;
}

void leati_time_text(int64_t time_ms, char *to)
{
    struct tm day;
    time_t seconds = (time_t)(time_ms / 1000);
    if (time_ms <= 0 || !localtime_r(&seconds, &day) ||
        !strftime(to, LEATI_TIME_TEXT_SIZE, "%Y-%m-%d %H:%M:%S", &day))
        snprintf(to, LEATI_TIME_TEXT_SIZE, "-");
}

void leati_duration_text(int64_t ms, char *to)
{
    int64_t seconds = ms / 1000;
    if (ms < 1000)
        snprintf(to, LEATI_TIME_TEXT_SIZE, "%" PRId64 " ms", ms < 0 ? 0 : ms);
    else if (seconds < 60)
        snprintf(to, LEATI_TIME_TEXT_SIZE, "%.1f s", (double)ms / 1000);
    else if (seconds < 3600)
        snprintf(to, LEATI_TIME_TEXT_SIZE, "%" PRId64 " min %" PRId64 " s", seconds / 60,
                 seconds % 60);
    else
        snprintf(to, LEATI_TIME_TEXT_SIZE, "%" PRId64 " h %" PRId64 " min", seconds / 3600,
                 seconds / 60 % 60);
}
