// SPDX-License-Identifier: Apache-2.0
// The options of all verbs, for reading command lines and for describing them.
#ifndef LEATI_TOOLS_OPTION_TABLE_H
#define LEATI_TOOLS_OPTION_TABLE_H

#include "tools/verbs.h"

// Codes of options that have no letter; the others have their letter.
enum {
    LEATI_OPTION_WORKERS = 256,
    LEATI_OPTION_CONFIG,
    LEATI_OPTION_NAME,
    LEATI_OPTION_STATS,
    LEATI_OPTION_JSON,
    LEATI_OPTION_FORMAT,
    LEATI_OPTION_DOT,
    LEATI_OPTION_MAN,
    LEATI_OPTION_FILE,
    LEATI_OPTION_WAIT,
    LEATI_OPTION_OUT,
    LEATI_OPTION_GET,
    LEATI_OPTION_CLUSTER,
    LEATI_OPTION_BIND,
    LEATI_OPTION_PORT,
    LEATI_OPTION_RPC_PORT,
    LEATI_OPTION_DATA_PORT,
    LEATI_OPTION_FOLDER,
    LEATI_OPTION_LOG_FILE,
    LEATI_OPTION_STATE_FILE,
    LEATI_OPTION_INDEX,
    LEATI_OPTION_SECRET_FILE,
    LEATI_OPTION_TLS_CERT,
    LEATI_OPTION_TLS_KEY,
    LEATI_OPTION_TLS_CA,
    LEATI_OPTION_INSECURE,
};

typedef struct leati_option {
    const char *name;
    int code;
    const char *value;     // what it takes, "FILE" or "text|json|dot"; NULL: nothing
    bool value_optional;   // then only in the form --name=VALUE
    const char *verbs[12]; // whose it is; none listed: every verb's
    const char *text;
} leati_option;

// NULL behind the last. An option that means different things to several verbs stands there several
// times.
const leati_option *leati_option_at(size_t index);
bool leati_option_belongs(const leati_option *option, const leati_verb *verb);
// The letter of its short form, or 0.
char leati_option_letter(const leati_option *option);

#endif
