// SPDX-License-Identifier: Apache-2.0
// `leat complete`: what a shell may offer for the last of the words that have been typed. The
// scripts in `completions` ask for it, so that they know nothing themselves that could grow old.
//
// Each line is a word, a tab, and what it means. Lines that begin with a colon tell the shell what
// else it may offer, or what not to do: ":files .so .c" (all files when no ending is named),
// ":folders", ":nospace" (a value is to follow).
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/strbuf.h"
#include "tools/option_table.h"

typedef struct completion {
    leati_strbuf text;
    const char *word; // what has been typed of the last word
} completion;

static void offer(completion *c, const char *before, const char *word, const char *after,
                  const char *meaning)
{
    char whole[256];
    snprintf(whole, sizeof whole, "%s%s%s", before, word, after);
    if (!strncmp(whole, c->word, strlen(c->word)))
        leati_strbuf_printf(&c->text, "%s\t%s\n", whole, meaning);
}

static void offer_verbs(completion *c)
{
    const leati_verb *verb;
    for (size_t i = 0; (verb = leati_verb_at(i)); i++)
        if (!verb->hidden)
            offer(c, "", verb->name, "", verb->summary);
}

static void offer_options(completion *c, const leati_verb *verb)
{
    const leati_option *option;
    for (size_t i = 0; (option = leati_option_at(i)); i++)
        if (leati_option_belongs(option, verb))
            offer(c, "--", option->name, "", option->text);
    if (verb->rest)
        offer(c, "", "--", "", verb->rest);
}

static void offer_keys(completion *c, const char *before, const char *after)
{
    for (int key = 0; key < LEATI_CONFIG_COUNT; key++) {
        const leati_config_info *info = leati_config_describe((leati_config_key)key);
        offer(c, before, info->name, after, info->meaning);
    }
}

// "KEY=VALUE", of which the key may be whole already.
static void offer_setting(completion *c, const char *before)
{
    const char *typed = c->word + strlen(before), *equals = strchr(typed, '=');
    if (!equals) {
        offer_keys(c, before, "=");
        leati_strbuf_puts(&c->text, ":nospace\n");
        return;
    }
    char start[200], preset[64];
    snprintf(start, sizeof start, "%.*s", (int)(equals + 1 - c->word), c->word);
    for (int key = 0; key < LEATI_CONFIG_COUNT; key++) {
        const leati_config_info *info = leati_config_describe((leati_config_key)key);
        if (strlen(info->name) != (size_t)(equals - typed) ||
            strncmp(info->name, typed, strlen(info->name)) != 0)
            continue;
        leati_config_print((leati_config_key)key, info->preset, preset, sizeof preset);
        if (!strcmp(info->kind, "flag")) {
            offer(c, start, "true", "", info->meaning);
            offer(c, start, "false", "", info->meaning);
        } else if (!strchr(preset, ' ')) {
            offer(c, start, preset, "", "the default");
        }
    }
}

// The value of an option; `before` is "--name=" when it stands in the same word.
static void offer_value(completion *c, const leati_option *option, const char *before)
{
    if (!strcmp(option->value, "KEY=VALUE")) {
        offer_setting(c, before);
    } else if (!strcmp(option->value, "FILE")) {
        leati_strbuf_puts(&c->text, ":files\n");
    } else if (!strcmp(option->value, "FOLDER")) {
        leati_strbuf_puts(&c->text, ":folders\n");
    } else if (strchr(option->value, '|')) {
        for (const char *at = option->value; *at;) {
            char choice[32];
            size_t size = strcspn(at, "|");
            snprintf(choice, sizeof choice, "%.*s", (int)size, at);
            offer(c, before, choice, "", option->text);
            at += size + (at[size] == '|');
        }
    }
}

static void offer_operand(completion *c, leati_operand operand)
{
    switch (operand) {
    case LEATI_OPERAND_JOB:
        leati_strbuf_puts(&c->text, ":files .so .c .cc .cpp .cxx\n");
        break;
    case LEATI_OPERAND_SOURCE:
        leati_strbuf_puts(&c->text, ":files .c .cc .cpp .cxx\n");
        break;
    case LEATI_OPERAND_DIRECTORY:
        leati_strbuf_puts(&c->text, ":folders\n");
        break;
    case LEATI_OPERAND_VERB:
        offer_verbs(c);
        break;
    case LEATI_OPERAND_KEY:
        offer_keys(c, "", "");
        break;
    case LEATI_OPERAND_ACTION:
        offer(c, "", "start", "", "start it in the background");
        offer(c, "", "status", "", "say how it is doing");
        offer(c, "", "stop", "", "end it");
        break;
    default:
        break;
    }
}

// The option of a verb that a word is, without its value: "-D", "--format"; else NULL.
static const leati_option *option_of(const leati_verb *verb, const char *word, size_t size)
{
    const leati_option *option;
    for (size_t i = 0; (option = leati_option_at(i)); i++) {
        bool is_short = size == 2 && word[0] == '-' && word[1] == leati_option_letter(option);
        bool is_long = size > 2 && strlen(option->name) == size - 2 && !strncmp(word, "--", 2) &&
                       !strncmp(word + 2, option->name, size - 2);
        if ((is_short || is_long) && leati_option_belongs(option, verb))
            return option;
    }
    return NULL;
}

static bool ends_options(char **words, int count)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(words[i], "--"))
            return true;
    return false;
}

// `words` are those behind the verb, the last of them being typed.
static void complete_verb(completion *c, const leati_verb *verb, char **words, int count)
{
    const char *before = count > 1 ? words[count - 2] : "";
    const leati_option *option = option_of(verb, before, strlen(before));
    if (ends_options(words, count - 1)) {
        leati_strbuf_puts(&c->text, ":files\n");
    } else if (option && option->value && !option->value_optional) {
        offer_value(c, option, "");
    } else if (c->word[0] == '-') {
        size_t size = strcspn(c->word, "=");
        option = c->word[size] ? option_of(verb, c->word, size) : NULL;
        char start[64];
        snprintf(start, sizeof start, "%.*s=", (int)size, c->word);
        if (option && option->value)
            offer_value(c, option, start);
        else
            offer_options(c, verb);
    } else {
        offer_operand(c, verb->operand);
    }
}

static const leati_verb *find_quietly(const char *name)
{
    const leati_verb *verb;
    for (size_t i = 0; (verb = leati_verb_at(i)); i++)
        if (!strcmp(verb->name, name))
            return verb;
    return NULL;
}

static int complete(const leati_verb *self, int argc, char **argv)
{
    completion c = {.word = argc > 1 ? argv[argc - 1] : ""};
    leati_strbuf_init(&c.text, NULL);
    const leati_verb *verb = argc > 2 ? find_quietly(argv[1]) : NULL;
    if (argc <= 2)
        offer_verbs(&c);
    else if (verb && verb != self)
        complete_verb(&c, verb, argv + 2, argc - 2);
    int status = leati_print_and_check(leati_strbuf_text(&c.text));
    leati_strbuf_fini(&c.text);
    return status;
}

const leati_verb leati_verb_complete = {
    .name = "complete",
    .summary = "say what a shell may offer",
    .arguments = "WORD...",
    .paragraphs =
        (const char *const[]){
            "For the completion of shells: says what may stand in place of the last WORD, of those "
            "that follow the program's name. A line is a word, a tab, and what it means. Lines "
            "that "
            "begin with a colon say what else may be offered: `:files .so .c`, `:folders`; or, "
            "with "
            "`:nospace`, that a value follows.",
            NULL,
        },
    .hidden = true,
    .run = complete,
};
