// SPDX-License-Identifier: Apache-2.0
#include "operators/file_inflate.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/alloc.h"

struct leati_inflate {
    const leat_allocator *allocator;
    leati_compression compression;
    z_stream gzip;
    bool gzip_ready; // to be ended
    ZSTD_DStream *zstd;
    uint64_t consumed; // bytes of input, of all members
    uint64_t members;  // that have ended
    bool inside;       // a member has begun and not ended
    bool padding;      // zeros have begun
    bool full;         // the last step has used all the room; more may come without input
};

leati_compression leati_compression_by_name(const char *path)
{
    static const struct {
        const char *ending;
        leati_compression compression;
    } endings[] = {{".gz", LEATI_GZIP}, {".zst", LEATI_ZSTD}};
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t size = strlen(endings[i].ending);
        if (length >= size && strcasecmp(path + length - size, endings[i].ending) == 0)
            return endings[i].compression;
    }
    return LEATI_PLAIN;
}

static const char *format_name(const leati_inflate *inf)
{
    return inf->compression == LEATI_GZIP ? "gzip" : "zstd";
}

static void *zlib_allocate(void *user, unsigned count, unsigned size)
{
    return leati_calloc(user, count, size);
}

static void zlib_release(void *user, void *memory)
{
    leati_free(user, memory);
}

static bool start(leati_inflate *inf)
{
    if (inf->compression == LEATI_ZSTD) {
        inf->zstd = ZSTD_createDStream();
        return inf->zstd && !ZSTD_isError(ZSTD_initDStream(inf->zstd));
    }
    inf->gzip = (z_stream){
        .zalloc = zlib_allocate, .zfree = zlib_release, .opaque = (void *)inf->allocator};
    // The largest window, in the wrapping of gzip only.
    inf->gzip_ready = inflateInit2(&inf->gzip, 16 + MAX_WBITS) == Z_OK;
    return inf->gzip_ready;
}

leat_err leati_inflate_create(const leat_allocator *allocator, leati_compression compression,
                              leati_inflate **inf)
{
    leati_inflate *made = leati_calloc(allocator, 1, sizeof *made);
    if (!made)
        return LEAT_ENOMEM;
    made->allocator = allocator;
    made->compression = compression;
    if (!start(made)) {
        leati_inflate_destroy(&made);
        return LEAT_ENOMEM;
    }
    *inf = made;
    return LEAT_OK;
}

void leati_inflate_destroy(leati_inflate **inf)
{
    leati_inflate *old = *inf;
    if (!old)
        return;
    if (old->gzip_ready)
        inflateEnd(&old->gzip);
    ZSTD_freeDStream(old->zstd);
    leati_free(old->allocator, old);
    *inf = NULL;
}

// A member that fails before it has given anything is none: the file is something else, or
// something else follows in it.
static leat_err broken(const leati_inflate *inf, uint64_t at, bool header, const char *reason,
                       char *why, size_t why_size)
{
    const char *name = format_name(inf);
    if (!header)
        snprintf(why, why_size, "after byte %llu the %s data is broken: %s", (unsigned long long)at,
                 name, reason);
    else if (inf->members == 0)
        snprintf(why, why_size, "this is not %s data", name);
    else
        snprintf(why, why_size, "after byte %llu follows something that is not %s",
                 (unsigned long long)at, name);
    return LEAT_ECORRUPT;
}

static leat_err no_memory(const leati_inflate *inf, char *why, size_t why_size)
{
    snprintf(why, why_size, "no memory for decompressing %s", format_name(inf));
    return LEAT_ENOMEM;
}

// Notes what a step has used and given, and moves on.
static void advance(leati_inflate *inf, leat_bytes *in, uint8_t **out, size_t *room, size_t used,
                    size_t given)
{
    inf->consumed += used;
    in->data += used;
    in->size -= used;
    *out += given;
    *room -= given;
}

// --- gzip ---

// Passes over zeros behind a member; false when something else is there.
static bool skip_padding(leati_inflate *inf, leat_bytes *in)
{
    while (in->size > 0 && in->data[0] == 0) {
        inf->padding = true;
        inf->consumed++;
        in->data++;
        in->size--;
    }
    return in->size == 0 || !inf->padding;
}

static leat_err gzip_step(leati_inflate *inf, leat_bytes *in, uint8_t **out, size_t *room,
                          char *why, size_t why_size)
{
    z_stream *z = &inf->gzip;
    if (!inf->inside) {
        if (inf->members > 0 && !skip_padding(inf, in))
            return broken(inf, inf->consumed, true, "", why, why_size);
        if (in->size == 0)
            return LEAT_OK;
        if (inf->members > 0)
            inflateReset(z);
        inf->inside = true;
    }
    unsigned in_size = in->size < UINT_MAX ? (unsigned)in->size : UINT_MAX;
    unsigned out_size = *room < UINT_MAX ? (unsigned)*room : UINT_MAX;
    z->next_in = (Bytef *)in->data;
    z->avail_in = in_size;
    z->next_out = *out;
    z->avail_out = out_size;
    uint64_t begun = inf->consumed;
    int result = inflate(z, Z_NO_FLUSH);
    advance(inf, in, out, room, in_size - z->avail_in, out_size - z->avail_out);
    if (result == Z_STREAM_END) {
        inf->inside = false;
        inf->members++;
    } else if (result == Z_MEM_ERROR) {
        return no_memory(inf, why, why_size);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
        bool header = z->msg && strcmp(z->msg, "incorrect header check") == 0;
        return broken(inf, header ? begun : inf->consumed, header,
                      z->msg ? z->msg : "it needs a dictionary", why, why_size);
    }
    return LEAT_OK;
}

// --- zstd ---

static leat_err zstd_step(leati_inflate *inf, leat_bytes *in, uint8_t **out, size_t *room,
                          char *why, size_t why_size)
{
    if (!inf->inside && in->size == 0)
        return LEAT_OK;
    inf->inside = true;
    ZSTD_inBuffer from = {.src = in->data, .size = in->size};
    ZSTD_outBuffer to = {.dst = *out, .size = *room};
    size_t result = ZSTD_decompressStream(inf->zstd, &to, &from);
    uint64_t begun = inf->consumed;
    advance(inf, in, out, room, from.pos, to.pos);
    if (ZSTD_isError(result)) {
        ZSTD_ErrorCode code = ZSTD_getErrorCode(result);
        if (code == ZSTD_error_memory_allocation)
            return no_memory(inf, why, why_size);
        if (code == ZSTD_error_frameParameter_windowTooLarge) {
            snprintf(why, why_size,
                     "after byte %llu the zstd data needs a window of more than 128 MiB, which is "
                     "refused",
                     (unsigned long long)begun);
            return LEAT_ETOOBIG;
        }
        return broken(inf, begun, code == ZSTD_error_prefix_unknown, ZSTD_getErrorName(result), why,
                      why_size);
    }
    if (result == 0) {
        inf->inside = false;
        inf->members++;
    }
    return LEAT_OK;
}

leat_err leati_inflate_run(leati_inflate *inf, leat_bytes *in, uint8_t **out, size_t *room,
                           char *why, size_t why_size)
{
    // zstd counts calls without anything to do as failures.
    if (in->size == 0 && !inf->full)
        return LEAT_OK;
    leat_err err = inf->compression == LEATI_GZIP ? gzip_step(inf, in, out, room, why, why_size)
                                                  : zstd_step(inf, in, out, room, why, why_size);
    inf->full = *room == 0;
    return err;
}

leat_err leati_inflate_end(const leati_inflate *inf, char *why, size_t why_size)
{
    if (!inf->inside && inf->members > 0)
        return LEAT_OK;
    snprintf(why, why_size, "ends in the middle of its %s data, after %llu bytes", format_name(inf),
             (unsigned long long)inf->consumed);
    return LEAT_ECORRUPT;
}
