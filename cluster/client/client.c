// SPDX-License-Identifier: Apache-2.0
// The module's table, and reading JSON through it.
#include "cluster/client/client.h"

#include <jansson.h>

#include "cluster/client/client_impl.h"
#include "leat/leat.h"

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

static leat_err call(leati_client *client, const char *method, const char *path, int64_t wait_ms,
                     leati_client_answer *answer)
{
    leat_err err = leati_client_exchange(
        client, &(leati_client_request){.method = method, .path = path, .wait_ms = wait_ms});
    if (err == LEAT_OK)
        err = leati_client_judge(client);
    if (err == LEAT_OK)
        *answer = client->answer;
    return err;
}

static const char *why(const leati_client *client)
{
    return client->why;
}

// --- JSON: leati_json is json_t, and nobody outside can tell ---

static const json_t *of(const leati_json *value)
{
    return (const json_t *)(const void *)value;
}

static leati_json *parse(const char *text, size_t size)
{
    return (leati_json *)(void *)json_loadb(text, size, JSON_DECODE_ANY, NULL);
}

static void forget(leati_json *whole)
{
    json_decref((json_t *)(void *)whole);
}

static const leati_json *member(const leati_json *object, const char *name)
{
    return (const leati_json *)(const void *)json_object_get(of(object), name);
}

static const leati_json *item(const leati_json *array, size_t index)
{
    return (const leati_json *)(const void *)json_array_get(of(array), index);
}

static size_t count(const leati_json *array)
{
    return json_array_size(of(array));
}

static const char *text(const leati_json *value)
{
    const char *string = value ? json_string_value(of(value)) : NULL;
    return string ? string : "";
}

static int64_t integer(const leati_json *value)
{
    if (!value || !json_is_real(of(value)))
        return value ? (int64_t)json_integer_value(of(value)) : 0;
    double real = json_real_value(of(value));
    return real > -9e18 && real < 9e18 ? (int64_t)real : 0;
}

static double number(const leati_json *value)
{
    return value ? json_number_value(of(value)) : 0;
}

static bool truth(const leati_json *value)
{
    return value && json_is_true(of(value));
}

static bool print(const leati_json *value, int (*put)(const char *text, size_t size, void *user),
                  void *user)
{
    return value && json_dump_callback(of(value), put, user, JSON_ENCODE_ANY) == 0;
}

static char kind(const leati_json *value)
{
    if (!value)
        return '\0';
    switch (json_typeof(of(value))) {
    case JSON_OBJECT:
        return 'o';
    case JSON_ARRAY:
        return 'a';
    case JSON_STRING:
        return 's';
    case JSON_INTEGER:
        return 'i';
    case JSON_REAL:
        return 'f';
    case JSON_NULL:
        return 'n';
    default:
        return 't';
    }
}

const leati_client_module leati_client_module_0 = {
    .version = TEXT(LEAT_VERSION_MAJOR) "." TEXT(LEAT_VERSION_MINOR) "." TEXT(LEAT_VERSION_PATCH),
    .open = leati_client_open,
    .close = leati_client_close,
    .secure = leati_client_secure,
    .hurry = leati_client_hurry,
    .interrupt = leati_client_interrupt,
    .call = call,
    .why = why,
    .submit = leati_client_submit,
    .parse = parse,
    .forget = forget,
    .member = member,
    .item = item,
    .count = count,
    .text = text,
    .integer = integer,
    .number = number,
    .truth = truth,
    .print = print,
    .kind = kind,
};
