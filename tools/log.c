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

size_t leati_log_format(leat_log_level level, const char *text, char *line, size_t size)
{
    struct timespec now;
    struct tm day;
    clock_gettime(CLOCK_REALTIME, &now);
    if (!localtime_r(&now.tv_sec, &day))
        memset(&day, 0, sizeof day);
    const char *name = (size_t)level < LEVEL_COUNT ? level_names[level] : "?";
    int wanted = snprintf(line, size, "%02d:%02d:%02d.%03d %-5s %s\n", day.tm_hour, day.tm_min,
                          day.tm_sec, (int)(now.tv_nsec / 1000000), name, text);
    if (wanted < 0)
        return 0;
    if ((size_t)wanted < size)
        return (size_t)wanted;
    line[size - 2] = '\n';
    return size - 1;
}
