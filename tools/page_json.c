// SPDX-License-Identifier: Apache-2.0
// Help as JSON.
#include <string.h>

#include "tools/option_table.h"
#include "tools/page.h"

static void put_text(leati_strbuf *to, const char *text)
{
    if (text)
        leati_strbuf_json_string(to, text, strlen(text));
    else
        leati_strbuf_puts(to, "null");
}

static void put_entries(leati_strbuf *to, const char *name, const char *term,
                        const leati_entry *entries)
{
    leati_strbuf_printf(to, ",\n   \"%s\": [", name);
    for (size_t i = 0; entries && entries[i].term; i++) {
        leati_strbuf_printf(to, "%s{\"%s\": ", i ? ", " : "", term);
        put_text(to, entries[i].term);
        leati_strbuf_puts(to, ", \"meaning\": ");
        put_text(to, entries[i].text);
        leati_strbuf_putc(to, '}');
    }
    leati_strbuf_putc(to, ']');
}

static void put_option(leati_strbuf *to, const leati_option *option)
{
    const char letter[] = {'-', leati_option_letter(option), '\0'};
    leati_strbuf_printf(to, "{\"option\": \"--%s\", \"short\": ", option->name);
    put_text(to, letter[1] ? letter : NULL);
    leati_strbuf_puts(to, ", \"value\": ");
    put_text(to, option->value);
    leati_strbuf_puts(to, ", \"meaning\": ");
    put_text(to, option->text);
    leati_strbuf_putc(to, '}');
}

void leati_page_json(leati_strbuf *to, const leati_verb *verb)
{
    leati_strbuf_puts(to, "{\"verb\": ");
    put_text(to, verb->name);
    leati_strbuf_puts(to, ", \"summary\": ");
    put_text(to, verb->summary);
    leati_strbuf_puts(to, ", \"arguments\": ");
    put_text(to, verb->arguments);
    leati_strbuf_puts(to, ",\n   \"options\": [");
    const leati_option *option;
    bool begun = false;
    for (size_t i = 0; (option = leati_option_at(i)); i++) {
        if (!leati_option_belongs(option, verb))
            continue;
        leati_strbuf_puts(to, begun ? ",\n      " : "\n      ");
        put_option(to, option);
        begun = true;
    }
    leati_strbuf_putc(to, ']');
    put_entries(to, "examples", "command", verb->examples);
    put_entries(to, "exit_statuses", "status", verb->exits);
    leati_strbuf_putc(to, '}');
}
