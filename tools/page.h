// SPDX-License-Identifier: Apache-2.0
// The description of a verb in its forms: text for a terminal, source of a manual page, JSON.
#ifndef LEATI_TOOLS_PAGE_H
#define LEATI_TOOLS_PAGE_H

#include "base/strbuf.h"
#include "tools/verbs.h"

// `bold` asks for bold headings, with a terminal's escapes.
void leati_page_text(leati_strbuf *to, const leati_verb *verb, bool bold);
// NULL is the page of the program itself.
void leati_page_man(leati_strbuf *to, const leati_verb *verb);
void leati_page_json(leati_strbuf *to, const leati_verb *verb);

// Of the program, for its page.
extern const leati_entry leati_page_exits[];
extern const char *const leati_page_paragraphs[];

#endif
