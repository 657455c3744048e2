// SPDX-License-Identifier: Apache-2.0
// Help as plain text of at most 80 columns.
#include <stdio.h>
#include <string.h>

#include "tools/option_table.h"
#include "tools/page.h"
#include "tools/text.h"

enum { PAGE_COLUMNS = 80, LABEL_SIZE = 64, LABEL_COLUMNS = 26 };

static void pad(leati_strbuf *to, size_t columns)
{
    leati_strbuf_printf(to, "%*s", (int)columns, "");
}

// Breaks a text at blanks; the first line begins in column `at`, the others in column `indent`.
static void wrap(leati_strbuf *to, const char *text, size_t at, size_t indent)
{
    bool begun = false;
    while (*(text += strspn(text, " "))) {
        size_t size = strcspn(text, " ");
        char word[PAGE_COLUMNS + 1];
        snprintf(word, sizeof word, "%.*s", (int)size, text);
        size_t columns = leati_columns(word);
        if (begun && at + 1 + columns > PAGE_COLUMNS) {
            leati_strbuf_putc(to, '\n');
            pad(to, indent);
            at = indent;
        } else if (begun) {
            leati_strbuf_putc(to, ' ');
            at++;
        }
        leati_strbuf_append(to, text, size);
        at += columns;
        text += size;
        begun = true;
    }
    leati_strbuf_putc(to, '\n');
}

static void heading(leati_strbuf *to, const char *text, bool bold)
{
    leati_strbuf_printf(to, "\n%s%s:%s\n", bold ? "\033[1m" : "", text, bold ? "\033[0m" : "");
}

// A term, and its meaning beside or below it.
static void put_entry(leati_strbuf *to, const char *term, const char *text, size_t columns)
{
    size_t size = leati_columns(term);
    leati_strbuf_printf(to, "  %s", term);
    if (size > columns) {
        leati_strbuf_putc(to, '\n');
        pad(to, columns + 4);
    } else {
        pad(to, columns + 2 - size);
    }
    wrap(to, text, columns + 4, columns + 4);
}

// "-p, --parallelism N"
static void label_of(const leati_option *option, char *to)
{
    char letter = leati_option_letter(option);
    const char *value = option->value ? option->value : "";
    const char *before = !option->value ? "" : option->value_optional ? "[=" : " ";
    char start[8] = "    ";
    if (letter)
        snprintf(start, sizeof start, "-%c, ", letter);
    snprintf(to, LABEL_SIZE, "%s--%s%s%s%s", start, option->name, before, value,
             option->value_optional ? "]" : "");
}

static void put_options(leati_strbuf *to, const leati_verb *verb, bool bold)
{
    const leati_option *option;
    char label[LABEL_SIZE];
    heading(to, "Options", bold);
    for (size_t i = 0; (option = leati_option_at(i)); i++) {
        if (!leati_option_belongs(option, verb))
            continue;
        label_of(option, label);
        put_entry(to, label, option->text, LABEL_COLUMNS);
    }
}

static void put_list(leati_strbuf *to, const char *title, const leati_entry *entries,
                     size_t columns, bool bold)
{
    if (!entries)
        return;
    heading(to, title, bold);
    for (; entries->term; entries++)
        put_entry(to, entries->term, entries->text, columns);
}

static void put_examples(leati_strbuf *to, const leati_entry *examples, bool bold)
{
    if (!examples)
        return;
    heading(to, "Examples", bold);
    for (; examples->term; examples++) {
        leati_strbuf_printf(to, "  %s\n      ", examples->term);
        wrap(to, examples->text, 6, 6);
    }
}

void leati_page_text(leati_strbuf *to, const leati_verb *verb, bool bold)
{
    leati_strbuf_printf(to, "%sUsage:%s leat %s [OPTIONS]%s%s\n", bold ? "\033[1m" : "",
                        bold ? "\033[0m" : "", verb->name, verb->arguments ? " " : "",
                        verb->arguments ? verb->arguments : "");
    for (size_t i = 0; verb->paragraphs[i]; i++) {
        leati_strbuf_putc(to, '\n');
        wrap(to, verb->paragraphs[i], 0, 0);
    }
    put_options(to, verb, bold);
    put_examples(to, verb->examples, bold);
    put_list(to, "Exit status", verb->exits, 8, bold);
}
