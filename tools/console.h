// SPDX-License-Identifier: Apache-2.0
// The terminal, shared by the progress line, the log and what print sinks print.
//
// Threading: draw and erase are called by the main thread, the others by any thread; one lock
// orders them, so that whatever is written while the progress line is visible removes the line
// first. It comes back with the next draw.
#ifndef LEATI_TOOLS_CONSOLE_H
#define LEATI_TOOLS_CONSOLE_H

#include <pthread.h>

#include "leat/env.h"

typedef struct leati_console {
    // Immutable after init.
    bool live;     // a progress line may be drawn: standard error is a terminal that can erase
    bool out_live; // standard output is a terminal too, most likely the same one
    leat_log_level level;
    // Under lock.
    pthread_mutex_t lock;
    bool drawn;
} leati_console;

// `quiet` asks for no progress line.
void leati_console_init(leati_console *console, bool quiet);
void leati_console_fini(leati_console *console);

// Shows `text`, one line without its break, in place of the last one.
void leati_console_draw(leati_console *console, const char *text);
void leati_console_erase(leati_console *console);
// How many columns the terminal has.
size_t leati_console_columns(void);

// The hooks for an environment: log lines go to standard error; the print hook is left out when no
// progress line can be in the way. The console must outlive the environment and its jobs.
void leati_console_hooks(leati_console *console, leat_env_options *options);

#endif
