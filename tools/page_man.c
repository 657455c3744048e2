// SPDX-License-Identifier: Apache-2.0
// Help as the source of manual pages.
#include <stdio.h>
#include <string.h>

#include "tools/build_info.h"
#include "tools/option_table.h"
#include "tools/page.h"
#include "tools/settings.h"

// Text in troff: what it takes for commands is escaped, and what stands in back-quotes is bold.
static void put(leati_strbuf *to, const char *text)
{
    bool quoted = false, begins = true;
    for (; *text; text++) {
        // A dot or quote that begins a line would make it a request.
        if (begins && (*text == '.' || *text == '\''))
            leati_strbuf_puts(to, "\\&");
        begins = *text == '\n';
        if (*text == '`') {
            quoted = !quoted;
            leati_strbuf_puts(to, quoted ? "\\fB" : "\\fR");
        } else if (*text == '\\') {
            leati_strbuf_puts(to, "\\e");
        } else if (*text == '-') {
            leati_strbuf_puts(to, "\\-");
        } else {
            leati_strbuf_putc(to, *text);
        }
    }
}

static void put_line(leati_strbuf *to, const char *text)
{
    put(to, text);
    leati_strbuf_putc(to, '\n');
}

static void put_head(leati_strbuf *to, const char *name, const char *summary)
{
    char capitals[32];
    snprintf(capitals, sizeof capitals, "%s", name);
    for (char *p = capitals; *p; p++)
        if (*p >= 'a' && *p <= 'z')
            *p = (char)(*p - 'a' + 'A');
    leati_strbuf_puts(to, ".\\\" SPDX-License-Identifier: Apache-2.0\n.TH \"");
    put(to, capitals);
    leati_strbuf_printf(to, "\" 1 \"\" \"leat %s\" \"User Commands\"\n.SH NAME\n",
                        LEATI_BUILD_VERSION);
    put(to, name);
    leati_strbuf_puts(to, " \\- ");
    put_line(to, summary);
}

static void put_paragraphs(leati_strbuf *to, const char *const *paragraphs)
{
    leati_strbuf_puts(to, ".SH DESCRIPTION\n");
    for (size_t i = 0; paragraphs[i]; i++) {
        leati_strbuf_puts(to, i ? ".PP\n" : "");
        put_line(to, paragraphs[i]);
    }
}

static void put_list(leati_strbuf *to, const char *title, const leati_entry *entries)
{
    if (!entries)
        return;
    leati_strbuf_printf(to, ".SH %s\n", title);
    for (; entries->term; entries++) {
        leati_strbuf_puts(to, ".TP\n.B ");
        put_line(to, entries->term);
        put_line(to, entries->text);
    }
}

static void put_option(leati_strbuf *to, const leati_option *option)
{
    leati_strbuf_puts(to, ".TP\n");
    if (leati_option_letter(option))
        leati_strbuf_printf(to, "\\fB\\-%c\\fR, ", option->code);
    leati_strbuf_puts(to, "\\fB\\-\\-");
    put(to, option->name);
    leati_strbuf_puts(to, "\\fR");
    if (option->value) {
        leati_strbuf_puts(to, option->value_optional ? "[=\\fI" : " \\fI");
        put(to, option->value);
        leati_strbuf_puts(to, option->value_optional ? "\\fR]" : "\\fR");
    }
    leati_strbuf_putc(to, '\n');
    put_line(to, option->text);
}

static void put_examples(leati_strbuf *to, const leati_entry *examples)
{
    if (!examples)
        return;
    leati_strbuf_puts(to, ".SH EXAMPLES\n");
    for (; examples->term; examples++) {
        leati_strbuf_puts(to, ".TP\n.B ");
        put_line(to, examples->term);
        put_line(to, examples->text);
    }
}

static void put_verb(leati_strbuf *to, const leati_verb *verb)
{
    char name[32];
    snprintf(name, sizeof name, "leat-%s", verb->name);
    put_head(to, name, verb->summary);
    leati_strbuf_printf(to, ".SH SYNOPSIS\n.B leat %s\n[OPTIONS]", verb->name);
    if (verb->arguments) {
        leati_strbuf_putc(to, ' ');
        put(to, verb->arguments);
    }
    leati_strbuf_putc(to, '\n');
    put_paragraphs(to, verb->paragraphs);
    leati_strbuf_puts(to, ".SH OPTIONS\n");
    const leati_option *option;
    for (size_t i = 0; (option = leati_option_at(i)); i++)
        if (leati_option_belongs(option, verb))
            put_option(to, option);
    put_list(to, "EXIT STATUS", verb->exits);
    put_examples(to, verb->examples);
    leati_strbuf_puts(to, ".SH SEE ALSO\n.BR leat (1)\n");
}

static void put_program(leati_strbuf *to)
{
    const leati_verb *verb;
    put_head(to, "leat", "run, inspect and build stream-processing jobs");
    leati_strbuf_puts(to, ".SH SYNOPSIS\n.B leat\n.I VERB\n[OPTIONS] [ARGUMENTS]\n");
    put_paragraphs(to, leati_page_paragraphs);
    leati_strbuf_puts(to, ".SH VERBS\n");
    for (size_t i = 0; (verb = leati_verb_at(i)); i++)
        if (!verb->hidden)
            leati_strbuf_printf(to, ".TP\n.B %s\n%s; see\n.BR leat\\-%s (1).\n", verb->name,
                                verb->summary, verb->name);
    put_list(to, "EXIT STATUS", leati_page_exits);
    put_list(to, "ENVIRONMENT", leati_settings_variables);
    leati_strbuf_puts(to, ".SH SEE ALSO\n");
    for (size_t i = 0; (verb = leati_verb_at(i)); i++)
        if (!verb->hidden)
            leati_strbuf_printf(to, "%s.BR leat\\-%s (1)", i ? ",\n" : "", verb->name);
    leati_strbuf_putc(to, '\n');
}

void leati_page_man(leati_strbuf *to, const leati_verb *verb)
{
    if (verb)
        put_verb(to, verb);
    else
        put_program(to);
}
