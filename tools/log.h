// SPDX-License-Identifier: Apache-2.0
// Which log lines the program shows, and how they look.
#ifndef LEATI_TOOLS_LOG_H
#define LEATI_TOOLS_LOG_H

#include "leat/log.h"

// From the environment variable LEAT_LOG; `usual` when it is not set. A wrong value is complained
// about.
leat_log_level leati_log_level_wanted(leat_log_level usual);

// "12:34:56.789 warn  text" and a line break; cut to fit. Returns the size.
size_t leati_log_format(leat_log_level level, const char *text, char *line, size_t size);
// The same with the day, for logs that are kept: "2026-11-30 12:34:56.789 warn  text".
size_t leati_log_format_dated(leat_log_level level, const char *text, char *line, size_t size);

#endif
