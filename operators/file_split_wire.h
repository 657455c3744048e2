// SPDX-License-Identifier: Apache-2.0
// Splits on their way from the process that has the list of a source's files to one that asks.
#ifndef LEATI_OPERATORS_FILE_SPLIT_WIRE_H
#define LEATI_OPERATORS_FILE_SPLIT_WIRE_H

#include "operators/file_splits.h"

// At most so many splits are handed out at once.
enum { LEATI_FILE_BATCH = 16 };

// What tells whether two processes see the same files under the same numbers: the machine since it
// was started, and the mounts.
uint64_t leati_file_machine(void);

// One answer. Without splits: there will never be one again.
typedef struct leati_file_batch {
    uint32_t count;
    // None is to be read: they are LEATI_SPLIT_LOST.
    bool lost;
    leati_file_split splits[LEATI_FILE_BATCH];
} leati_file_batch;

// The bytes of an answer, to be freed with leati_free. LEAT_ENOMEM.
LEAT_MUST_USE leat_err leati_file_batch_encode(const leat_allocator *allocator, uint64_t machine,
                                               const leati_file_batch *batch, uint8_t **bytes,
                                               size_t *size);
// Reads bytes that nobody vouches for; the files become those of `splits`, to be released there.
// LEAT_ECORRUPT, LEAT_ENOMEM.
LEAT_MUST_USE leat_err leati_file_batch_decode(const leat_allocator *allocator,
                                               leati_file_splits *splits, uint64_t machine,
                                               const uint8_t *bytes, size_t size,
                                               leati_file_batch *batch);

#endif
