// SPDX-License-Identifier: Apache-2.0
#include "tools/style.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    va_list args;
    flockfile(stderr);
    fprintf(stderr, "%sleat%s%s:%s ", style ? "\033[1;31m" : "", verb ? " " : "", verb ? verb : "",
            style ? "\033[0m" : "");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    putc('\n', stderr);
    funlockfile(stderr);
}
