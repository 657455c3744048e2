// SPDX-License-Identifier: Apache-2.0
// Tables for people: aligned columns, with a bold head and coloured states on a terminal.
#ifndef LEATI_TOOLS_TABLE_H
#define LEATI_TOOLS_TABLE_H

#include "base/strbuf.h"

typedef struct leati_table {
    const char *const *titles; // end in NULL; one that begins with ">" heads a column of numbers
    size_t columns, count;     // cells so far
    size_t widest;             // longer cells are cut in the middle; 60 after init
    leati_strbuf cells;        // each with a NUL behind it
} leati_table;

void leati_table_init(leati_table *table, const char *const *titles);
// The next cell, row by row. It is made fit for a terminal.
void leati_table_add(leati_table *table, const char *format, ...) LEAT_PRINTF(2, 3);
// Appends the table and forgets its cells. `style` asks for a terminal's escapes.
void leati_table_print(leati_table *table, leati_strbuf *to, bool style);

enum { LEATI_TIME_TEXT_SIZE = 32 };
// "2026-11-30 04:19:44"; "-" for 0.
void leati_time_text(int64_t time_ms, char *to);
// "950 ms", "3.2 s", "2 min 3 s", "5 h 12 min".
void leati_duration_text(int64_t duration_ms, char *to);

#endif
