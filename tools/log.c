// SPDX-License-Identifier: Apache-2.0
#include "tools/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/style.h"

static const char *const level_names[] = {"error", "warn", "info", "debug"};
enum { LEVEL_COUNT = sizeof level_names / sizeof *level_names };

leat_log_level leati_log_level_wanted(leat_log_level usual)
{
    const char *wanted = getenv("LEAT_LOG");
    if (!wanted || !*wanted)
        return usual;
    for (size_t i = 0; i < LEVEL_COUNT; i++)
        if (!strcmp(wanted, level_names[i]))
            return (leat_log_level)i;
    leati_complain(NULL, "LEAT_LOG=%s is none of error, warn, info, debug; it is taken as %s",
                   wanted, level_names[usual]);
    return usual;
}

static size_t format(const char *form, leat_log_level level, const char *text, char *line,
                     size_t size)
{
    struct timespec now;
    struct tm day;
    char time[32] = "";
    clock_gettime(CLOCK_REALTIME, &now);
    if (localtime_r(&now.tv_sec, &day))
        (void)strftime(time, sizeof time, form, &day);
    const char *name = (size_t)level < LEVEL_COUNT ? level_names[level] : "?";
    int wanted =
        snprintf(line, size, "%s.%03d %-5s %s\n", time, (int)(now.tv_nsec / 1000000), name, text);
    if (wanted < 0)
        return 0;
    if ((size_t)wanted < size)
        return (size_t)wanted;
    line[size - 2] = '\n';
    return size - 1;
}

size_t leati_log_format(leat_log_level level, const char *text, char *line, size_t size)
{
    return format("%H:%M:%S", level, text, line, size);
}

size_t leati_log_format_dated(leat_log_level level, const char *text, char *line, size_t size)
{
    return format("%Y-%m-%d %H:%M:%S", level, text, line, size);
}
