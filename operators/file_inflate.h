// SPDX-License-Identifier: Apache-2.0
// Decompresses gzip and zstd, piece by piece: memory is bounded whatever the data claims to hold.
// Any number of members (frames) may follow one another; together they are one file. Behind the
// last one of gzip zeros are passed over, as tapes have them; anything else there is an error.
//
// Threading. One thread. Bounds. 64 KiB for gzip; for zstd what a frame asks for, at most its
// window of 128 MiB, beyond which frames are refused.
#ifndef LEATI_OPERATORS_FILE_INFLATE_H
#define LEATI_OPERATORS_FILE_INFLATE_H

#include "leat/alloc.h"
#include "leat/error.h"

typedef enum leati_compression {
    LEATI_PLAIN = 0,
    LEATI_GZIP = 1,
    LEATI_ZSTD = 2,
} leati_compression;

// By the ending of a file's name, in any case of letters.
leati_compression leati_compression_by_name(const char *path);

typedef struct leati_inflate leati_inflate;

// LEAT_ENOMEM.
LEAT_MUST_USE leat_err leati_inflate_create(const leat_allocator *allocator,
                                            leati_compression compression, leati_inflate **inf);
void leati_inflate_destroy(leati_inflate **inf);

// Decompresses from `*in` to `*out`; both move on, by nothing only when there is no input or no
// room. LEAT_ECORRUPT, with `why` written, to be read behind a file's name ("this is not gzip
// data"); LEAT_ETOOBIG, with `why`, when it needs a window of more than 128 MiB; LEAT_ENOMEM.
LEAT_MUST_USE leat_err leati_inflate_run(leati_inflate *inf, leat_bytes *in, uint8_t **out,
                                         size_t *room, char *why, size_t why_size);
// The input has ended: LEAT_ECORRUPT, with `why`, when it should not have.
LEAT_MUST_USE leat_err leati_inflate_end(const leati_inflate *inf, char *why, size_t why_size);

#endif
