// SPDX-License-Identifier: Apache-2.0
// The building blocks of compiled codecs: what LEAT_RECORD puts together, field by field, into
// straight-line code in the user's program. Nothing here is meant to be called by hand, except
// leat_hash_u64 and leat_hash_combine.
//
// For each scalar kind K there are: leati_ctype_K, the C type; leati_room_K, the most bytes it
// takes on the wire without the body of a string; leati_wire_K, the bytes that the fast path of
// decoding reads without asking; and inline functions named leati_<verb>_K. The wire form is
// described in docs/design/records.md.
#ifndef LEAT_RECORD_CODEC_H
#define LEAT_RECORD_CODEC_H

#include "leat/type.h"

LEAT_BEGIN_DECLS

// --- the functions behind a type ---

typedef struct leat_scratch leat_scratch;

// What is carried through the decoding of one record.
typedef struct leat_decoder {
    leat_scratch *scratch;
    size_t budget; // bytes that may still be taken from the scratch memory
    uint32_t depth;
    leat_err err; // why decoding failed
} leat_decoder;

// Every function is handed the type it stands for, so that the far ends of the fast paths can go on
// with its table.
struct leat_codec {
    uint8_t *(*encode)(const leat_type *type, const void *record, uint8_t *to, uint8_t *end);
    size_t (*encoded_size)(const leat_type *type, const void *record);
    // The end of what was read, or NULL with decoder->err set.
    const uint8_t *(*decode)(const leat_type *type, const uint8_t *from, const uint8_t *end,
                             void *record, leat_decoder *decoder);
    uint64_t (*hash)(const leat_type *type, const void *record);
    bool (*equal)(const leat_type *type, const void *a, const void *b);
    // Where a deep copy ends that begins at the distance `at` from an address aligned for any type.
    size_t (*extra_size)(const leat_type *type, const void *record, size_t at);
    // Moves all that the record points to behind `to`; returns the end.
    uint8_t *(*own)(const leat_type *type, void *record, uint8_t *to);
    bool (*is_within)(const leat_type *type, const void *record, const void *block, size_t size);
};

// The same for a value of any type by walking its description. The `_struct` forms never call the
// compiled functions of the struct itself; the `_from` forms go on behind its header, at the field
// `index`.
LEAT_API uint8_t *leat_codec_encode(const leat_type *type, const void *value, uint8_t *to,
                                    uint8_t *end);
LEAT_API uint8_t *leat_codec_encode_from(const leat_type *type, uint32_t index, const void *record,
                                         uint8_t *to, uint8_t *end);
LEAT_API uint8_t *leat_codec_encode_struct(const leat_type *type, const void *record, uint8_t *to,
                                           uint8_t *end);
LEAT_API size_t leat_codec_size(const leat_type *type, const void *value);
LEAT_API const uint8_t *leat_codec_decode(const leat_type *type, const uint8_t *from,
                                          const uint8_t *end, void *value, leat_decoder *decoder);
LEAT_API const uint8_t *leat_codec_decode_from(const leat_type *type, uint32_t index,
                                               const uint8_t *from, const uint8_t *end,
                                               void *record, leat_decoder *decoder);
LEAT_API const uint8_t *leat_codec_decode_struct(const leat_type *type, const uint8_t *from,
                                                 const uint8_t *end, void *record,
                                                 leat_decoder *decoder);
LEAT_API uint64_t leat_codec_hash(const leat_type *type, const void *value);
LEAT_API bool leat_codec_equal(const leat_type *type, const void *a, const void *b);
LEAT_API size_t leat_codec_extra(const leat_type *type, const void *value, size_t at);
LEAT_API uint8_t *leat_codec_own(const leat_type *type, void *value, uint8_t *to);
LEAT_API bool leat_codec_is_within(const leat_type *type, const void *value, const void *block,
                                   size_t size);

// --- hashing (frozen, docs/design/hash.md) ---

// The hash of a run of bytes.
LEAT_API uint64_t leat_hash_bytes(const void *data, size_t size);

// The hash of an integer: a bijection of 64 bits.
static inline uint64_t leat_hash_u64(uint64_t value)
{
    value += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

// The hash of a sequence whose hash is `first`, with one more value behind it.
static inline uint64_t leat_hash_combine(uint64_t first, uint64_t next)
{
    return leat_hash_u64(first * UINT64_C(0x9e3779b97f4a7c15) + next);
}

// The bits of a real with all NaNs made one and both zeros made one. Works on bits, as programs may
// be compiled with options that let the compiler believe that there are no NaNs.
static inline uint64_t leati_bits_f64(double value)
{
    uint64_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    if (bits << 1 == 0)
        return 0;
    if ((bits & UINT64_C(0x7fffffffffffffff)) > UINT64_C(0x7ff0000000000000))
        return UINT64_C(0x7ff8000000000000);
    return bits;
}

// --- bytes ---

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define leati_big16 __builtin_bswap16
#define leati_big32 __builtin_bswap32
#define leati_big64 __builtin_bswap64
#else
#define leati_big16 (uint16_t)
#define leati_big32 (uint32_t)
#define leati_big64 (uint64_t)
#endif
#define leati_big8 (uint8_t)

// Copies a run that is usually short. Two moves that overlap in the middle serve all sizes between
// one power of two and the next, which is cheaper than calling memcpy with a size that is only
// known at run time.
static inline void leati_copy(void *to, const void *from, size_t size)
{
    uint8_t *t = (uint8_t *)to;
    const uint8_t *f = (const uint8_t *)from;
    if (size >= 8) {
        uint64_t a[8];
        if (LEAT_UNLIKELY(size > 64)) {
            __builtin_memcpy(t, f, size);
        } else if (size > 32) {
            __builtin_memcpy(a, f, 32);
            __builtin_memcpy(a + 4, f + size - 32, 32);
            __builtin_memcpy(t, a, 32);
            __builtin_memcpy(t + size - 32, a + 4, 32);
        } else if (size > 16) {
            __builtin_memcpy(a, f, 16);
            __builtin_memcpy(a + 2, f + size - 16, 16);
            __builtin_memcpy(t, a, 16);
            __builtin_memcpy(t + size - 16, a + 2, 16);
        } else {
            __builtin_memcpy(a, f, 8);
            __builtin_memcpy(a + 1, f + size - 8, 8);
            __builtin_memcpy(t, a, 8);
            __builtin_memcpy(t + size - 8, a + 1, 8);
        }
    } else if (size >= 4) {
        uint32_t a[2];
        __builtin_memcpy(a, f, 4);
        __builtin_memcpy(a + 1, f + size - 4, 4);
        __builtin_memcpy(t, a, 4);
        __builtin_memcpy(t + size - 4, a + 1, 4);
    } else if (size) {
        uint8_t middle = f[size >> 1], last = f[size - 1];
        t[0] = f[0];
        t[size >> 1] = middle;
        t[size - 1] = last;
    }
}

static inline bool leati_is_within(const void *data, size_t size, const void *block,
                                   size_t block_size)
{
    // Unsigned wrap-around makes addresses before the block far away.
    size_t at = (size_t)((uintptr_t)data - (uintptr_t)block);
    return size == 0 || (at <= block_size && size <= block_size - at);
}

static inline uint8_t *leati_put_header(uint8_t *to, uint32_t field_count)
{
    if (field_count < 16) {
        *to = (uint8_t)(0x90 | field_count);
        return to + 1;
    }
    to[0] = 0xdc;
    to[1] = (uint8_t)(field_count >> 8);
    to[2] = (uint8_t)field_count;
    return to + 3;
}

static inline size_t leati_header_size(uint32_t field_count)
{
    return field_count < 16 ? 1 : 3;
}

static inline bool leati_is_header(const uint8_t *from, uint32_t field_count)
{
    if (field_count < 16)
        return from[0] == (0x90 | field_count);
    return from[0] == 0xdc && from[1] == (uint8_t)(field_count >> 8) &&
           from[2] == (uint8_t)field_count;
}

// --- numbers ---

// clang-format off
#define LEATI_NUMBER(K, ctype, bits, tag, hash_expression, equal_expression) \
    typedef ctype leati_ctype_##K; \
    enum { leati_room_##K = 1 + bits / 8, leati_wire_##K = 1 + bits / 8 }; \
    static inline size_t leati_body_##K(const ctype *value) { (void)value; return 0; } \
    static inline size_t leati_size_##K(const ctype *value) { (void)value; return 1 + bits / 8; } \
    static inline uint8_t *leati_put_##K(uint8_t *to, const ctype *value) \
    { \
        uint##bits##_t raw; \
        __builtin_memcpy(&raw, value, sizeof raw); \
        raw = leati_big##bits(raw); \
        to[0] = tag; \
        __builtin_memcpy(to + 1, &raw, sizeof raw); \
        return to + 1 + sizeof raw; \
    } \
    static inline const uint8_t *leati_take_##K(const uint8_t *from, size_t *room, ctype *value) \
    { \
        uint##bits##_t raw; \
        (void)room; \
        if (LEAT_UNLIKELY(from[0] != tag)) \
            return NULL; \
        __builtin_memcpy(&raw, from + 1, sizeof raw); \
        raw = leati_big##bits(raw); \
        __builtin_memcpy(value, &raw, sizeof raw); \
        return from + 1 + sizeof raw; \
    } \
    static inline uint64_t leati_hash_##K(const ctype *value) { return hash_expression; } \
    static inline bool leati_equal_##K(const ctype *a, const ctype *b) \
    { \
        return equal_expression; \
    } \
    LEATI_NO_POINTERS(K, ctype)

#define LEATI_NO_POINTERS(K, ctype) \
    static inline uint8_t *leati_own_##K(ctype *value, uint8_t *to) { (void)value; return to; } \
    static inline bool leati_within_##K(const ctype *value, const void *block, size_t size) \
    { \
        (void)value, (void)block, (void)size; \
        return true; \
    }

#define LEATI_SIGNED leat_hash_u64((uint64_t)(int64_t)*value)
#define LEATI_UNSIGNED leat_hash_u64((uint64_t)*value)
#define LEATI_SAME *a == *b
#define LEATI_REAL leat_hash_u64(leati_bits_f64((double)*value))
#define LEATI_SAME_REAL leati_bits_f64((double)*a) == leati_bits_f64((double)*b)

LEATI_NUMBER(LEAT_I8, int8_t, 8, 0xd0, LEATI_SIGNED, LEATI_SAME)
LEATI_NUMBER(LEAT_I16, int16_t, 16, 0xd1, LEATI_SIGNED, LEATI_SAME)
LEATI_NUMBER(LEAT_I32, int32_t, 32, 0xd2, LEATI_SIGNED, LEATI_SAME)
LEATI_NUMBER(LEAT_I64, int64_t, 64, 0xd3, LEATI_SIGNED, LEATI_SAME)
LEATI_NUMBER(LEAT_TIMESTAMP, int64_t, 64, 0xd3, LEATI_SIGNED, LEATI_SAME)
LEATI_NUMBER(LEAT_U8, uint8_t, 8, 0xcc, LEATI_UNSIGNED, LEATI_SAME)
LEATI_NUMBER(LEAT_U16, uint16_t, 16, 0xcd, LEATI_UNSIGNED, LEATI_SAME)
LEATI_NUMBER(LEAT_U32, uint32_t, 32, 0xce, LEATI_UNSIGNED, LEATI_SAME)
LEATI_NUMBER(LEAT_U64, uint64_t, 64, 0xcf, LEATI_UNSIGNED, LEATI_SAME)
LEATI_NUMBER(LEAT_F32, float, 32, 0xca, LEATI_REAL, LEATI_SAME_REAL)
LEATI_NUMBER(LEAT_F64, double, 64, 0xcb, LEATI_REAL, LEATI_SAME_REAL)

typedef bool leati_ctype_LEAT_BOOL;
enum { leati_room_LEAT_BOOL = 1, leati_wire_LEAT_BOOL = 1 };
static inline size_t leati_body_LEAT_BOOL(const bool *value) { (void)value; return 0; }
static inline size_t leati_size_LEAT_BOOL(const bool *value) { (void)value; return 1; }
// clang-format on

static inline uint8_t *leati_put_LEAT_BOOL(uint8_t *to, const bool *value)
{
    *to = *value ? 0xc3 : 0xc2;
    return to + 1;
}

static inline const uint8_t *leati_take_LEAT_BOOL(const uint8_t *from, size_t *room, bool *value)
{
    (void)room;
    if (LEAT_UNLIKELY((from[0] & 0xfe) != 0xc2))
        return NULL;
    *value = from[0] == 0xc3;
    return from + 1;
}

static inline uint64_t leati_hash_LEAT_BOOL(const bool *value)
{
    return leat_hash_u64(*value ? 1 : 0);
}

static inline bool leati_equal_LEAT_BOOL(const bool *a, const bool *b)
{
    return *a == *b;
}

// clang-format off
LEATI_NO_POINTERS(LEAT_BOOL, bool)
// clang-format on

// --- strings and bytes ---

// The header of a run that is too long for a header of one byte; tag8 is the tag for sizes of one
// byte.
static inline uint8_t *leati_put_run_header(uint8_t *to, size_t size, uint8_t tag8)
{
    if (size <= 0xff) {
        to[0] = tag8;
        to[1] = (uint8_t)size;
        return to + 2;
    }
    if (size <= 0xffff) {
        to[0] = (uint8_t)(tag8 + 1);
        to[1] = (uint8_t)(size >> 8);
        to[2] = (uint8_t)size;
        return to + 3;
    }
    uint32_t raw = leati_big32((uint32_t)size);
    to[0] = (uint8_t)(tag8 + 2);
    __builtin_memcpy(to + 1, &raw, sizeof raw);
    return to + 5;
}

static inline size_t leati_run_size(size_t size, size_t fixed_limit)
{
    return size + (size < fixed_limit ? 1 : size <= 0xff ? 2 : size <= 0xffff ? 3 : 5);
}

// clang-format off
#define LEATI_RUN(K, ctype, item) \
    typedef ctype leati_ctype_##K; \
    static inline size_t leati_body_##K(const ctype *value) { return value->size; } \
    static inline uint64_t leati_hash_##K(const ctype *value) \
    { \
        return leat_hash_bytes(value->data, value->size); \
    } \
    static inline bool leati_equal_##K(const ctype *a, const ctype *b) \
    { \
        return a->size == b->size && \
               (a->size == 0 || __builtin_memcmp(a->data, b->data, a->size) == 0); \
    } \
    static inline uint8_t *leati_own_##K(ctype *value, uint8_t *to) \
    { \
        leati_copy(to, value->data, value->size); \
        value->data = (const item *)to; \
        return to + value->size; \
    } \
    static inline bool leati_within_##K(const ctype *value, const void *block, size_t size) \
    { \
        return leati_is_within(value->data, value->size, block, size); \
    }

LEATI_RUN(LEAT_STR, leat_str, char)
LEATI_RUN(LEAT_BYTES, leat_bytes, uint8_t)
// clang-format on

enum {
    leati_room_LEAT_STR = 5,
    leati_wire_LEAT_STR = 1,
    leati_room_LEAT_BYTES = 5,
    leati_wire_LEAT_BYTES = 2,
};

static inline size_t leati_size_LEAT_STR(const leat_str *value)
{
    return leati_run_size(value->size, 32);
}

static inline size_t leati_size_LEAT_BYTES(const leat_bytes *value)
{
    return leati_run_size(value->size, 0);
}

static inline uint8_t *leati_put_LEAT_STR(uint8_t *to, const leat_str *value)
{
    size_t size = value->size;
    if (LEAT_LIKELY(size < 32))
        *to++ = (uint8_t)(0xa0 | size);
    else
        to = leati_put_run_header(to, size, 0xd9);
    leati_copy(to, value->data, size);
    return to + size;
}

static inline uint8_t *leati_put_LEAT_BYTES(uint8_t *to, const leat_bytes *value)
{
    to = leati_put_run_header(to, value->size, 0xc4);
    leati_copy(to, value->data, value->size);
    return to + value->size;
}

// `room` counts the bytes beyond those that the fast path may read without asking.
static inline const uint8_t *leati_take_LEAT_STR(const uint8_t *from, size_t *room, leat_str *value)
{
    size_t size = from[0] & 0x1f;
    if (LEAT_UNLIKELY((from[0] & 0xe0) != 0xa0)) {
        if (from[0] != 0xd9 || *room == 0)
            return NULL;
        --*room;
        size = *++from;
    }
    if (LEAT_UNLIKELY(size > *room))
        return NULL;
    *room -= size;
    value->data = (const char *)from + 1;
    value->size = size;
    return from + 1 + size;
}

static inline const uint8_t *leati_take_LEAT_BYTES(const uint8_t *from, size_t *room,
                                                   leat_bytes *value)
{
    size_t size = from[1];
    if (LEAT_UNLIKELY(from[0] != 0xc4 || size > *room))
        return NULL;
    *room -= size;
    value->data = from + 2;
    value->size = size;
    return from + 2 + size;
}

LEAT_END_DECLS

#endif
