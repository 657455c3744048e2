// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <string.h>

#include "base/nearest.h"

Test(nearest, the_word_with_fewest_mistakes_is_found)
{
    static const char *const words[] = {"run", "plan", "build", "config", "parallelism"};
    static const struct {
        const char *word, *nearest; // NULL: none is near
    } rows[] = {
        {"run", "run"},        {"rum", "run"},        {"rnu", "run"},
        {"plna", "plan"},      {"biuld", "build"},    {"confgi", "config"},
        {"conf", "config"},    {"configs", "config"}, {"paralelism", "parallelism"},
        {"PARALLELISM", NULL}, {"x", NULL},           {"", NULL},
        {"completely", NULL},  {"runabout", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *got = leati_nearest(rows[i].word, words, sizeof words / sizeof *words);
        cr_expect(got == rows[i].nearest ||
                      (got && rows[i].nearest && !strcmp(got, rows[i].nearest)),
                  "\"%s\" gave %s", rows[i].word, got ? got : "nothing");
    }
}

Test(nearest, words_of_any_length_are_survived)
{
    static char longer[1000];
    memset(longer, 'a', sizeof longer - 1);
    const char *const words[] = {longer, "aaaaaa"};
    cr_expect(leati_nearest(longer, words, 2) == NULL);
    cr_expect(leati_nearest("aaaaab", words, 2) == words[1]);
    cr_expect(leati_nearest("aaaaab", words, 0) == NULL);
}
