// SPDX-License-Identifier: Apache-2.0
#include "tools/style.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"

bool leati_style_wanted(int fd)
{
    const char *refused = getenv("NO_COLOR"), *term = getenv("TERM");
    if (refused && *refused)
        return false;
    return term && *term && strcmp(term, "dumb") != 0 && isatty(fd);
}

void leati_complain(const char *verb, const char *format, ...)
{
    bool style = leati_style_wanted(STDERR_FILENO);
    char *text = NULL;
    va_list args;
    va_start(args, format);
    // It may quote arguments and files, and is one line all the same.
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    if (text)
        leati_text_clean(text);
    fprintf(stderr, "%sleat%s%s:%s %s\n", style ? "\033[1;31m" : "", verb ? " " : "",
            verb ? verb : "", style ? "\033[0m" : "", text ? text : "out of memory");
    free(text);
}
