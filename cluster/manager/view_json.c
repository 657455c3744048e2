// SPDX-License-Identifier: Apache-2.0
// Writing JSON. Whether a comma is due is seen from the last byte that was written: it is the
// bracket that opens an object or array, and nothing else, for the first member.
#include <inttypes.h>
#include <string.h>

#include "cluster/manager/view.h"

static void put_key(leati_strbuf *out, const char *key)
{
    char last = out->size ? out->data[out->size - 1] : '{';
    if (last != '{' && last != '[')
        leati_strbuf_puts(out, ",");
    if (!key)
        return;
    leati_strbuf_json_string(out, key, strlen(key));
    leati_strbuf_putc(out, ':');
}

void leati_put_open(leati_strbuf *out, const char *key, char bracket)
{
    if (key || out->size)
        put_key(out, key);
    leati_strbuf_putc(out, bracket);
}

void leati_put_close(leati_strbuf *out, char bracket)
{
    leati_strbuf_putc(out, bracket);
}

void leati_put_str(leati_strbuf *out, const char *key, leat_str text)
{
    put_key(out, key);
    leati_strbuf_json_string(out, text.data, text.size);
}

void leati_put_text(leati_strbuf *out, const char *key, const char *text)
{
    leati_put_str(out, key, (leat_str){.data = text, .size = strlen(text)});
}

void leati_put_i64(leati_strbuf *out, const char *key, int64_t value)
{
    put_key(out, key);
    leati_strbuf_printf(out, "%" PRId64, value);
}

void leati_put_u64(leati_strbuf *out, const char *key, uint64_t value)
{
    put_key(out, key);
    leati_strbuf_printf(out, "%" PRIu64, value);
}

// As records are written as JSON: the shortest digits that read back the same.
void leati_put_f64(leati_strbuf *out, const char *key, double value)
{
    put_key(out, key);
    char text[40];
    size_t size = leat_record_json(leat_type_scalar(LEAT_F64), &value, text, sizeof text);
    leati_strbuf_append(out, text, size < sizeof text ? size : sizeof text);
}

void leati_put_bool(leati_strbuf *out, const char *key, bool value)
{
    put_key(out, key);
    leati_strbuf_puts(out, value ? "true" : "false");
}

void leati_put_null(leati_strbuf *out, const char *key)
{
    put_key(out, key);
    leati_strbuf_puts(out, "null");
}
