// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "leat/base.h"
#include "leat/error.h"

Test(error, numbers_and_names_are_frozen)
{
    // Written down once more on purpose: a change of the public table must fail here.
    static const char *const names[] = {
        "LEAT_OK",         "LEAT_ENOMEM",  "LEAT_EINVAL",   "LEAT_ETYPE",   "LEAT_EGRAPH",
        "LEAT_EIO",        "LEAT_ENOENT",  "LEAT_ECORRUPT", "LEAT_ETOOBIG", "LEAT_EUSER",
        "LEAT_ECANCELLED", "LEAT_ECLOSED", "LEAT_ENOBUFS",  "LEAT_EAGAIN",  "LEAT_EABI",
        "LEAT_ETHREAD",    "LEAT_ESTATE",  "LEAT_EEXIST",   "LEAT_EPIPE",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        cr_assert_str_eq(leat_err_name((leat_err)i), names[i]);
}

Test(error, every_code_has_a_line_of_its_own)
{
    static const leat_err codes[] = {
#define CODE(code, value, message) code,
        LEAT_ERRORS(CODE)
#undef CODE
    };
    size_t count = sizeof codes / sizeof *codes;
    for (size_t i = 0; i < count; i++) {
        const char *message = leat_err_message(codes[i]);
        size_t length = strlen(message);
        cr_assert(length > 0);
        cr_assert_neq(message[length - 1], '.', "%s", message);
        cr_assert_null(strchr(message, '\n'));
        for (size_t j = 0; j < i; j++) {
            cr_assert_neq(codes[i], codes[j]);
            cr_assert_str_neq(message, leat_err_message(codes[j]));
        }
    }
}

Test(error, a_number_that_is_no_code_still_has_a_text)
{
    static const int numbers[] = {-1, 9999, 1 << 30};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        cr_assert_str_eq(leat_err_name((leat_err)numbers[i]), "LEAT_?");
        cr_assert_str_eq(leat_err_message((leat_err)numbers[i]), "unknown error");
    }
}

Test(error, the_version_is_that_of_the_header)
{
    char expected[64];
    snprintf(expected, sizeof expected, "%d.%d.%d", LEAT_VERSION_MAJOR, LEAT_VERSION_MINOR,
             LEAT_VERSION_PATCH);
    cr_assert_str_eq(leat_version(), expected);
}
