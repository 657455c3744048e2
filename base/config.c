// SPDX-License-Identifier: Apache-2.0
#include "base/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

typedef struct unit {
    const char *name;
    int64_t factor;
} unit;

// Units of each kind, ended by a NULL name.
static const unit no_units[] = {{NULL, 0}};
static const unit size_units[] = {
    {"TiB", INT64_C(1) << 40},
    {"GiB", INT64_C(1) << 30},
    {"MiB", INT64_C(1) << 20},
    {"KiB", INT64_C(1) << 10},
    {"TB", INT64_C(1000000000000)},
    {"GB", 1000000000},
    {"MB", 1000000},
    {"kB", 1000},
    {"B", 1},
    {NULL, 0},
};
static const unit duration_units[] = {
    {"h", 3600000}, {"min", 60000}, {"s", 1000}, {"ms", 1}, {NULL, 0},
};

typedef enum kind { COUNT, SIZE, DURATION, FLAG } kind;

#define WORD_COUNT    "count"
#define WORD_SIZE     "size"
#define WORD_DURATION "duration"
#define WORD_FLAG     "flag"

static const struct {
    const unit *units;
    const char *wanted; // completes "is not …"
} forms[] = {
    [COUNT] = {no_units, "a whole number"},
    [SIZE] = {size_units, "a size: a whole number, alone (bytes) or with B, kB, MB, GB, TB, KiB, "
                          "MiB, GiB or TiB"},
    [DURATION] = {duration_units, "a duration: a whole number, alone (milliseconds) or with ms, s, "
                                  "min or h"},
    [FLAG] = {no_units, "true or false"},
};

static const kind key_kinds[LEATI_CONFIG_COUNT] = {
#define ROW(id, name_, kind_, ...) [LEATI_CONFIG_##id] = kind_,
    LEATI_CONFIG_KEYS(ROW)
#undef ROW
};

static const leati_config_info infos[LEATI_CONFIG_COUNT] = {
#define ROW(id, name_, kind_, preset_, lowest_, highest_, meaning_)                                \
    [LEATI_CONFIG_##id] = {name_, WORD_##kind_, meaning_, preset_, lowest_, highest_},
    LEATI_CONFIG_KEYS(ROW)
#undef ROW
};

void leati_config_init(leati_config *config)
{
    for (int key = 0; key < LEATI_CONFIG_COUNT; key++)
        config->value[key] = infos[key].preset;
}

const leati_config_info *leati_config_describe(leati_config_key key)
{
    return &infos[key];
}

leati_config_key leati_config_find(const char *name)
{
    leati_config_key key = 0;
    while (key < LEATI_CONFIG_COUNT && strcmp(infos[key].name, name) != 0)
        key++;
    return key;
}

size_t leati_config_print(leati_config_key key, int64_t value, char *buffer, size_t size)
{
    if (key_kinds[key] == FLAG)
        return (size_t)snprintf(buffer, size, "%s", value ? "true" : "false");
    // The first unit that divides the value; sizes list the binary ones first.
    for (const unit *u = forms[key_kinds[key]].units; value > 0 && u->name; u++)
        if (value % u->factor == 0)
            return (size_t)snprintf(buffer, size, "%" PRId64 " %s", value / u->factor, u->name);
    return (size_t)snprintf(buffer, size, "%" PRId64, value);
}

// --- reading values ---

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " \t");
}

typedef enum outcome { READ, MALFORMED, OVERFLOWED } outcome;

// "[-]digits [unit]" with blanks around and between. The sum is kept negative, so that INT64_MIN
// can be written too.
static outcome read_number(const unit *units, const char *p, int64_t *value)
{
    p = skip_blanks(p);
    bool negative = *p == '-';
    if (negative)
        p++;
    if (*p < '0' || *p > '9')
        return MALFORMED;
    int64_t sum = 0;
    bool overflowed = false;
    for (; *p >= '0' && *p <= '9'; p++)
        overflowed |= __builtin_mul_overflow(sum, 10, &sum) ||
                      __builtin_sub_overflow(sum, (int64_t)(*p - '0'), &sum);
    p = skip_blanks(p);
    size_t length = strcspn(p, " \t");
    if (*skip_blanks(p + length) != '\0')
        return MALFORMED;
    if (length) {
        while (units->name &&
               (strlen(units->name) != length || memcmp(units->name, p, length) != 0))
            units++;
        if (!units->name)
            return MALFORMED;
        overflowed |= __builtin_mul_overflow(sum, units->factor, &sum);
    }
    if (!negative)
        overflowed |= __builtin_sub_overflow((int64_t)0, sum, &sum);
    *value = sum;
    return overflowed ? OVERFLOWED : READ;
}

static outcome read_value(kind of, const char *text, int64_t *value)
{
    if (of == FLAG && (!strcmp(text, "true") || !strcmp(text, "false"))) {
        *value = text[0] == 't';
        return READ;
    }
    return read_number(forms[of].units, text, value);
}

// --- misspelt keys ---

// A key of which `name` is a considerable part ("segment-size"), or the nearest one; NULL when
// nothing is near.
static const char *nearest_key(const char *name)
{
    const char *names[LEATI_CONFIG_COUNT];
    for (int key = 0; key < LEATI_CONFIG_COUNT; key++) {
        names[key] = infos[key].name;
        if (strlen(name) >= 5 && strstr(names[key], name))
            return names[key];
    }
    return leati_nearest(name, names, LEATI_CONFIG_COUNT);
}

static leat_err refuse_key(const char *name, char *why, size_t why_size)
{
    const char *nearest = nearest_key(name);
    if (nearest)
        snprintf(why, why_size, "there is no setting \"%.80s\"; did you mean \"%s\"?", name,
                 nearest);
    else
        snprintf(why, why_size, "there is no setting \"%.80s\"", name);
    return LEAT_ENOENT;
}

static leat_err refuse_range(leati_config_key key, const char *text, char *why, size_t why_size)
{
    char low[32], high[32];
    leati_config_print(key, infos[key].lowest, low, sizeof low);
    leati_config_print(key, infos[key].highest, high, sizeof high);
    snprintf(why, why_size, "%s: \"%.80s\" is out of range, which is %s to %s", infos[key].name,
             text, low, high);
    return LEAT_EINVAL;
}

leat_err leati_config_set(leati_config *config, const char *name, const char *value, char *why,
                          size_t why_size)
{
    if (!name || !value) {
        snprintf(why, why_size, "a setting needs a name and a value");
        return LEAT_EINVAL;
    }
    leati_config_key key = leati_config_find(name);
    if (key == LEATI_CONFIG_COUNT)
        return refuse_key(name, why, why_size);
    int64_t number = 0;
    outcome read = read_value(key_kinds[key], value, &number);
    if (read == MALFORMED) {
        snprintf(why, why_size, "%s: \"%.80s\" is not %s", name, value,
                 forms[key_kinds[key]].wanted);
        return LEAT_EINVAL;
    }
    if (read == OVERFLOWED || number < infos[key].lowest || number > infos[key].highest)
        return refuse_range(key, value, why, why_size);
    config->value[key] = number;
    return LEAT_OK;
}
