// SPDX-License-Identifier: Apache-2.0
// What one producer writes over a blocking exchange: all of its channels in one temporary file,
// which is read when the producer has ended.
//
// Threading. The producer's task appends; from complete on, nothing changes and each consumer reads
// its own channel.
//
// Bounds. In memory an entry of 16 bytes a segment and channel; on disk what the records take, once
// for all channels of a broadcast. The file has no name, so it goes with the process whatever
// happens.
#ifndef LEATI_NETWORK_SPOOL_H
#define LEATI_NETWORK_SPOOL_H

#include "base/export.h"
#include "leat/alloc.h"
#include "leat/error.h"

typedef struct leati_spool leati_spool;

// Where the files are: the folder that TMPDIR names, else /tmp.
LEATI_SHARED const char *leati_spool_folder(void);
// LEAT_EIO with errno set, LEAT_ENOMEM.
LEATI_SHARED LEAT_MUST_USE leat_err leati_spool_create(const leat_allocator *allocator,
                                                       uint32_t channels, leati_spool **spool);
LEATI_SHARED void leati_spool_destroy(leati_spool **spool);
// Adds a piece to `count` channels from `first` on; its bytes are written once. On failure it is
// added to none. LEAT_EIO with errno set, LEAT_ENOMEM.
LEATI_SHARED LEAT_MUST_USE leat_err leati_spool_append(leati_spool *spool, uint32_t first,
                                                       uint32_t count, const void *data,
                                                       uint32_t size);
LEATI_SHARED void leati_spool_complete(leati_spool *spool);
LEATI_SHARED bool leati_spool_is_complete(const leati_spool *spool);
// The size of a channel's piece of that index, 0 when there is none; and its bytes.
LEATI_SHARED uint32_t leati_spool_piece(const leati_spool *spool, uint32_t channel, size_t index);
LEATI_SHARED LEAT_MUST_USE leat_err leati_spool_read(const leati_spool *spool, uint32_t channel,
                                                     size_t index, void *to);

#endif
