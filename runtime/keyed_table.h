// SPDX-License-Identifier: Apache-2.0
// The keyed table: one accumulator for each key, as the folding operators keep them.
//
// Threading. One thread at a time, the task's.
// Life cycle. create → find, insert, own, next in any order → destroy. Nothing is removed.
// Bounds. 32 GiB of blocks; beyond that, and when memory runs out, insert and own fail and leave
// the table as it was.
//
// An entry is one block: the key, the accumulator, and the bytes that either points to. Blocks are
// cut from slabs of 256 KiB that the table owns, and the place of a block that was given up is used
// again by blocks of its size class. A slot of the hash table is eight bytes, half a hash and half
// a reference, so that a find which hits touches one slot and one block, and growing touches no
// block at all. docs/design/state.md has the reasons.
#ifndef LEATI_RUNTIME_KEYED_TABLE_H
#define LEATI_RUNTIME_KEYED_TABLE_H

#include "leat/alloc.h"
#include "leat/record.h"

typedef struct leati_keyed_table leati_keyed_table;

// `key` says where the key lies in the records handed to find and insert; it is copied, its types
// and `accumulator_type` are borrowed. LEAT_ENOMEM; LEAT_ETYPE for types aligned to more than 8
// bytes.
LEAT_MUST_USE leat_err leati_keyed_table_create(const leat_allocator *allocator,
                                                const leat_key *key,
                                                const leat_type *accumulator_type,
                                                leati_keyed_table **table);
void leati_keyed_table_destroy(leati_keyed_table **table);

// The accumulator of the record's key, or NULL; `hash` is leat_key_hash of the record. The caller
// may write to the accumulator's fields, and calls own afterwards if it did.
void *leati_keyed_table_find(leati_keyed_table *table, uint64_t hash, const void *record);

// Hints for a find that is going to come: the first asks for the place of the key's slot, the
// second, some time later, for the entry that the slot leads to.
void leati_keyed_table_prefetch_slot(const leati_keyed_table *table, uint64_t hash);
void leati_keyed_table_prefetch_entry(const leati_keyed_table *table, uint64_t hash);

// Stores a deep copy of `accumulator` under the record's key. Only directly after a find of that
// key which gave NULL. Returns the stored accumulator, or NULL when out of memory.
void *leati_keyed_table_insert(leati_keyed_table *table, uint64_t hash, const void *record,
                               const void *accumulator);

// Makes what the accumulator points to the table's own, after a user function may have stored
// pointers to anything in it. Only directly after find or insert gave that accumulator. Returns
// where the accumulator is now, or NULL when out of memory (it is still the old one then, with
// whatever it points to).
void *leati_keyed_table_own(leati_keyed_table *table, void *accumulator);

// The accumulators one by one, each once, in no particular order: start with `*cursor` 0; NULL at
// the end. The cursor stays good as long as nothing is inserted.
void *leati_keyed_table_next(const leati_keyed_table *table, size_t *cursor);

size_t leati_keyed_table_count(const leati_keyed_table *table);
// All memory that the table holds.
size_t leati_keyed_table_bytes(const leati_keyed_table *table);

#endif
