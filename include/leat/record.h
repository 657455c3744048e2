// SPDX-License-Identifier: Apache-2.0
// What can be done with a record of any type: encode, decode, copy, hash, compare, print.
//
// A record is a C value of the type's layout. The functions here are pure: any thread, no state, no
// allocation except where an arena or an allocator is handed in.
#ifndef LEAT_RECORD_H
#define LEAT_RECORD_H

#include "leat/type.h"

LEAT_BEGIN_DECLS

// --- msgpack form (docs/design/records.md) ---

// Encodes into [to, end). Returns the end of what was written, or NULL when it did not fit (then
// the bytes in between may have been touched); it fits if and only if there is room for
// leat_record_encoded_size bytes. A record of more than 4 GiB - 1 never fits. One bounds check for
// compiled types of scalars.
LEAT_API uint8_t *leat_record_encode(const leat_type *type, const void *record, uint8_t *to,
                                     uint8_t *end);

// The exact number of bytes that leat_record_encode writes.
LEAT_API size_t leat_record_encoded_size(const leat_type *type, const void *record);

// Memory that decoding borrows for lists, maps and optionals: grown to what the largest record
// needed, then reused. One thread at a time.
LEAT_API LEAT_MUST_USE leat_err leat_scratch_create(const leat_allocator *allocator,
                                                    leat_scratch **scratch);
LEAT_API void leat_scratch_destroy(leat_scratch **scratch);
// Gives `size` bytes aligned for any type, valid until the next reset; NULL when out of memory.
LEAT_API void *leat_scratch_take(leat_scratch *scratch, size_t size_bytes);
// Forgets all that was taken, keeps the memory.
LEAT_API void leat_scratch_reset(leat_scratch *scratch);

// Decoding takes at most this many bytes of scratch memory for a byte of input.
#define LEAT_DECODE_AMPLIFICATION 64

// Decodes one record that must fill [from, from + size) exactly. Strings and bytes point into the
// input; lists, maps and optionals are built in `scratch` (may be NULL for types without them).
// Accepts every msgpack width of a number that fits the field. Any malformed, truncated, oversized
// or trailing byte gives LEAT_ECORRUPT; memory asked of `scratch` is at most `size` times
// LEAT_DECODE_AMPLIFICATION. LEAT_ENOMEM; LEAT_EINVAL when the type needs a scratch and there is
// none. On error `record` is unspecified. The scratch is not reset: its owner does that between
// records.
LEAT_API LEAT_MUST_USE leat_err leat_record_decode(const leat_type *type, const uint8_t *from,
                                                   size_t size_bytes, void *record,
                                                   leat_scratch *scratch);

// --- copies ---

// The bytes that a deep copy needs beyond the struct itself, for strings, list items and so on
// (with alignment).
LEAT_API size_t leat_record_extra_size(const leat_type *type, const void *record);
// Deep copy: the struct goes to `copy`, all it points to into [extra, extra +
// leat_record_extra_size). `extra` must be aligned for any type. `copy` may be `record` itself:
// then what it points to is moved. Never fails.
LEAT_API void leat_record_copy_into(const leat_type *type, const void *record, void *copy,
                                    void *extra);
// Deep copy into one block, freed with leat_record_free of the same allocator (NULL: default).
// LEAT_ENOMEM.
LEAT_API LEAT_MUST_USE leat_err leat_record_copy(const leat_allocator *allocator,
                                                 const leat_type *type, const void *record,
                                                 void **copy);
LEAT_API void leat_record_free(const leat_allocator *allocator, void *copy);

// Whether any field can point outside the struct (strings, bytes, lists, maps, optionals).
LEAT_API bool leat_type_has_pointers(const leat_type *type);
// Whether everything the record points to lies inside [block, block + size): what state uses to see
// whether a user function stored a borrowed pointer. Empty strings and lists count as inside.
LEAT_API bool leat_record_is_within(const leat_type *type, const void *record, const void *block,
                                    size_t size_bytes);

// --- keys: chosen fields of a record ---

#define LEAT_KEY_MAX_FIELDS 16

// Some fields of a type, in order. Fill with leat_key_init; holds no memory of its own, borrows the
// type.
typedef struct leat_key {
    const leat_type *type;
    uint32_t count;
    struct {
        const leat_type *type;
        uint32_t offset;
    } part[LEAT_KEY_MAX_FIELDS];
} leat_key;

// Names as "word" or "user, country" or "where.city"; an empty string or NULL means every field in
// order. LEAT_ETYPE when a name is unknown, named twice, or a field that cannot be a key (map);
// `*why` gets a static sentence and `*at` the start of the name.
LEAT_API LEAT_MUST_USE leat_err leat_key_init(leat_key *key, const leat_type *type,
                                              const char *names, const char **why, const char **at);

// The frozen 64-bit hash of the chosen fields (docs/design/hash.md); equal keys hash alike on every
// machine.
LEAT_API uint64_t leat_key_hash(const leat_key *key, const void *record);
// Whether two records agree in the key: `a_key` over a, `b_key` over b; the two may be of different
// types as long as their parts have equal types.
LEAT_API bool leat_key_equal(const leat_key *a_key, const void *a, const leat_key *b_key,
                             const void *b);
// Total order, <0, 0, >0: numbers by value with NaN last, strings bytewise, false before true,
// absent first, lists lexically, maps (in whole records only) by count and then as the sorted list
// of their entries.
LEAT_API int leat_key_compare(const leat_key *key, const void *a, const void *b);
// Whether some chosen field is an absent optional: such a key is refused ("null key").
LEAT_API bool leat_key_has_null(const leat_key *key, const void *record);
// Whether that can be so for any record: some chosen field is an optional.
LEAT_API bool leat_key_can_be_null(const leat_key *key);

// The same over all fields.
LEAT_API uint64_t leat_record_hash(const leat_type *type, const void *record);
LEAT_API bool leat_record_equal(const leat_type *type, const void *a, const void *b);
LEAT_API int leat_record_compare(const leat_type *type, const void *a, const void *b);

// The key group of a hash, in [0, max_parallelism) (docs/design/hash.md). Decides where state
// lives: frozen.
static inline uint32_t leat_key_group(uint64_t hash, uint32_t max_parallelism)
{
    uint32_t h = (uint32_t)hash ^ (uint32_t)(hash >> 32);
    h *= UINT32_C(0xcc9e2d51);
    h = (h << 15) | (h >> 17);
    h *= UINT32_C(0x1b873593);
    h = (h << 13) | (h >> 19);
    h = h * 5 + UINT32_C(0xe6546b64);
    h ^= 4; // the length of the hashed integer, in bytes
    h = (h ^ (h >> 16)) * UINT32_C(0x85ebca6b);
    h = (h ^ (h >> 13)) * UINT32_C(0xc2b2ae35);
    h ^= h >> 16;
    // The absolute value as a signed number; the one that has none counts as 0.
    if (h & UINT32_C(0x80000000))
        h = (0 - h) & UINT32_C(0x7fffffff);
    if ((max_parallelism & (max_parallelism - 1)) == 0)
        return h & (max_parallelism - 1);
    return h % max_parallelism;
}

// The subtask, in [0, parallelism), that owns a key group.
static inline uint32_t leat_key_group_to_subtask(uint32_t group, uint32_t parallelism,
                                                 uint32_t max_parallelism)
{
    return (uint32_t)((uint64_t)group * parallelism / max_parallelism);
}

// --- text and JSON forms ---

// As snprintf does: writes at most `size` bytes (no NUL is added), returns how many the whole
// needs. Text: the fields of the outermost struct with a TAB between, strings and bytes raw, an
// absent optional as \N, nested values as JSON. JSON: one object; strings that are not UTF-8 get
// U+FFFD for each bad byte; bytes as base64; NaN and infinities as null; 64-bit integers as
// numbers.
LEAT_API size_t leat_record_text(const leat_type *type, const void *record, char *buffer,
                                 size_t size);
LEAT_API size_t leat_record_json(const leat_type *type, const void *record, char *buffer,
                                 size_t size);

LEAT_END_DECLS

#endif
