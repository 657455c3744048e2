// SPDX-License-Identifier: Apache-2.0
// The bytes of frame headers and hellos.
//
// A hello's payload, little endian: 8 bytes that say what this is, abi u32, segment size u32, term
// u64, then purpose, version, cluster and process as NUL-padded texts of fixed size. The layout is
// frozen, so that processes of different versions can tell each other so.
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "leat/leat.h"
#include "network/nng/connection_impl.h"

static const uint8_t magic[8] = {'L', 'e', 'a', 't', 'n', 'e', 't', 1};

static void put_number(uint8_t *to, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get_number(const uint8_t *from, size_t size)
{
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;)
        value = value << 8 | from[i];
    return value;
}

void leati_frame_put(const leati_frame *frame, uint8_t to[LEATI_FRAME_SIZE])
{
    put_number(to, frame->size, 4);
    to[4] = frame->kind;
    to[5] = frame->flags;
    put_number(to + 6, frame->more, 2);
    put_number(to + 8, frame->channel, 4);
    put_number(to + 12, frame->sequence, 4);
}

void leati_frame_get(leati_frame *frame, const uint8_t from[LEATI_FRAME_SIZE])
{
    frame->size = (uint32_t)get_number(from, 4);
    frame->kind = from[4];
    frame->flags = from[5];
    frame->more = (uint16_t)get_number(from + 6, 2);
    frame->channel = (uint32_t)get_number(from + 8, 4);
    frame->sequence = (uint32_t)get_number(from + 12, 4);
}

void leati_hello_complete(leati_hello *hello)
{
    if (!hello->version[0])
        snprintf(hello->version, sizeof hello->version, "%s", leat_version());
    if (!hello->abi)
        hello->abi = LEAT_ABI;
}

// The bytes of a text up to its NUL; the rest of its place stays zero.
static uint8_t *put_text(uint8_t *to, const char *text, size_t size)
{
    memcpy(to, text, strnlen(text, size - 1));
    return to + size;
}

void leati_hello_put(const leati_hello *hello, uint8_t to[LEATI_FRAME_SIZE + LEATI_HELLO_SIZE])
{
    memset(to, 0, LEATI_FRAME_SIZE + LEATI_HELLO_SIZE);
    leati_frame_put(&(leati_frame){.size = LEATI_HELLO_SIZE}, to);
    to += LEATI_FRAME_SIZE;
    memcpy(to, magic, sizeof magic);
    put_number(to + 8, hello->abi, 4);
    put_number(to + 12, hello->segment_size, 4);
    put_number(to + 16, hello->term, 8);
    to = put_text(to + 24, hello->purpose, sizeof hello->purpose);
    to = put_text(to, hello->version, sizeof hello->version);
    to = put_text(to, hello->cluster, sizeof hello->cluster);
    put_text(to, hello->process, sizeof hello->process);
}

// False when the text has no end within its place.
static bool get_text(char *text, const uint8_t **from, size_t size)
{
    memcpy(text, *from, size);
    *from += size;
    if (!memchr(text, 0, size))
        return false;
    leati_text_clean(text);
    return true;
}

bool leati_hello_get(leati_hello *hello, const uint8_t from[LEATI_HELLO_SIZE])
{
    if (memcmp(from, magic, sizeof magic) != 0)
        return false;
    hello->abi = (uint32_t)get_number(from + 8, 4);
    hello->segment_size = (uint32_t)get_number(from + 12, 4);
    hello->term = get_number(from + 16, 8);
    from += 24;
    return get_text(hello->purpose, &from, sizeof hello->purpose) &&
           get_text(hello->version, &from, sizeof hello->version) &&
           get_text(hello->cluster, &from, sizeof hello->cluster) &&
           get_text(hello->process, &from, sizeof hello->process);
}

leat_err leati_hello_check(const leati_hello *ours, const leati_hello *theirs, char *why,
                           size_t why_size)
{
    if (strcmp(ours->purpose, theirs->purpose) != 0) {
        snprintf(why, why_size, "is for %s, and a connection for %s was wanted", theirs->purpose,
                 ours->purpose);
        return LEAT_EINVAL;
    }
    if (strcmp(ours->version, theirs->version) != 0) {
        snprintf(why, why_size, "(%s) is of version %s, and this process (%s) of version %s",
                 theirs->process, theirs->version, ours->process, ours->version);
        return LEAT_EABI;
    }
    if (ours->abi != theirs->abi) {
        snprintf(why, why_size, "(%s) is of interface %u, and this process (%s) of interface %u",
                 theirs->process, theirs->abi, ours->process, ours->abi);
        return LEAT_EABI;
    }
    if (ours->cluster[0] && theirs->cluster[0] && strcmp(ours->cluster, theirs->cluster) != 0) {
        snprintf(why, why_size, "(%s) is of cluster %s, and this process (%s) of cluster %s",
                 theirs->process, theirs->cluster, ours->process, ours->cluster);
        return LEAT_EINVAL;
    }
    if (ours->segment_size != theirs->segment_size) {
        snprintf(why, why_size,
                 "(%s) has memory.segment-size %u, and this process (%s) has %u; all processes of "
                 "a cluster need the same",
                 theirs->process, theirs->segment_size, ours->process, ours->segment_size);
        return LEAT_EINVAL;
    }
    return LEAT_OK;
}
