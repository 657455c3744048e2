// SPDX-License-Identifier: Apache-2.0
// UTF-8 as JSON needs it: any bytes in, valid JSON text out.
#ifndef LEATI_BASE_UTF8_H
#define LEATI_BASE_UTF8_H

#include <stddef.h>

// The length of the well-formed UTF-8 sequence at `text` (1 to 4; no overlong forms, surrogates or
// values above U+10FFFF), or 0 when there is none. `size` > 0.
size_t leati_utf8_length(const char *text, size_t size);

// Makes a NUL-terminated text fit for a line of a log or a terminal, where it stands: control
// characters and bytes that are not part of well-formed UTF-8 become '?'.
void leati_text_clean(char *text);

// Writes a JSON string with its quotes as snprintf does: at most `room` bytes, no NUL, the length
// needed is returned. Control characters are escaped; each byte that is not part of well-formed
// UTF-8 becomes U+FFFD.
size_t leati_json_string(const char *text, size_t size, char *to, size_t room);

#endif
