// SPDX-License-Identifier: Apache-2.0
// Decoding by walking a type's description. The type directs everything: a byte that the type does
// not call for at its place is an error, so nesting is bounded by the type and not by the input.
//
// Two bounds keep hostile input from asking for memory. A count is compared with the bytes that are
// left, since an item takes one at least. And all that one record takes from the scratch is charged
// to a budget of LEAT_DECODE_AMPLIFICATION times the size of the input: leat_type_check refuses
// types that would need more than that for valid input.
#include <float.h>
#include <math.h>

#include "record/value_impl.h"

static const uint8_t *corrupt(leat_decoder *decoder)
{
    decoder->err = LEAT_ECORRUPT;
    return NULL;
}

// --- numbers of any width ------------------------------------------------------------------------

typedef struct number {
    enum { NOT_A_NUMBER, NATURAL, NEGATIVE, REAL } sort;
    uint64_t bits; // two's complement when negative
    double real;
} number;

static uint64_t read_big(const uint8_t *from, size_t size)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < size; i++)
        bits = bits << 8 | from[i];
    return bits;
}

static double real_of(uint8_t tag, uint64_t bits)
{
    if (tag == 0xcb) {
        double value;
        __builtin_memcpy(&value, &bits, sizeof value);
        return value;
    }
    uint32_t low = (uint32_t)bits;
    float value;
    __builtin_memcpy(&value, &low, sizeof value);
    return (double)value;
}

// Reads any number: fixint, float 32 and 64, uint and int of 8 to 64 bits.
static const uint8_t *read_number(const uint8_t *from, const uint8_t *end, number *out)
{
    // Bytes behind the tags 0xca to 0xd3.
    static const uint8_t sizes[] = {4, 8, 1, 2, 4, 8, 1, 2, 4, 8};
    uint8_t tag = *from++;
    out->sort = NATURAL;
    out->bits = tag;
    if (tag < 0x80)
        return from;
    if (tag >= 0xe0) {
        out->sort = NEGATIVE;
        out->bits = (uint64_t)(int64_t)(int8_t)tag;
        return from;
    }
    if (tag < 0xca || tag > 0xd3)
        return NULL;
    size_t size = sizes[tag - 0xca];
    if ((size_t)(end - from) < size)
        return NULL;
    out->bits = read_big(from, size);
    if (tag <= 0xcb) {
        out->sort = REAL;
        out->real = real_of(tag, out->bits);
    } else if (tag >= 0xd0) {
        // Extends the sign from the width at hand.
        uint64_t sign = UINT64_C(1) << (size * 8 - 1);
        out->bits = (out->bits ^ sign) - sign;
        if (out->bits >> 63)
            out->sort = NEGATIVE;
    }
    return from + size;
}

static bool fits_signed(const number *n, int bits)
{
    uint64_t limit = UINT64_C(1) << (bits - 1);
    if (n->sort == NATURAL)
        return n->bits < limit;
    return n->sort == NEGATIVE && ~n->bits < limit;
}

static bool fits_unsigned(const number *n, int bits)
{
    return n->sort == NATURAL && (bits == 64 || n->bits >> bits == 0);
}

// Integers count as reals while a real with so many bits of precision holds them exactly.
static bool as_real(const number *n, int precision, double *real)
{
    if (n->sort == REAL) {
        *real = n->real;
        return true;
    }
    uint64_t magnitude = n->sort == NEGATIVE ? 0 - n->bits : n->bits;
    *real = n->sort == NEGATIVE ? -(double)magnitude : (double)magnitude;
    return magnitude <= UINT64_C(1) << precision;
}

static bool store_f32(const number *n, float *to)
{
    double real;
    if (!as_real(n, FLT_MANT_DIG, &real))
        return false;
    // A conversion out of range would be undefined.
    if (!isnan(real) && !isinf(real) && fabs(real) > FLT_MAX)
        return false;
    *to = (float)real;
    return isnan(real) || (double)*to == real;
}

static bool store_number(uint32_t kind, const number *n, void *to)
{
    switch (kind) {
#define SIGNED(K, width)                                                                           \
    case K:                                                                                        \
        if (!fits_signed(n, width))                                                                \
            return false;                                                                          \
        *(int##width##_t *)to = (int##width##_t)n->bits;                                           \
        return true;
#define UNSIGNED(K, width)                                                                         \
    case K:                                                                                        \
        if (!fits_unsigned(n, width))                                                              \
            return false;                                                                          \
        *(uint##width##_t *)to = (uint##width##_t)n->bits;                                         \
        return true;
        SIGNED(LEAT_I8, 8)
        SIGNED(LEAT_I16, 16)
        SIGNED(LEAT_I32, 32)
        SIGNED(LEAT_I64, 64)
        SIGNED(LEAT_TIMESTAMP, 64)
        UNSIGNED(LEAT_U8, 8)
        UNSIGNED(LEAT_U16, 16)
        UNSIGNED(LEAT_U32, 32)
        UNSIGNED(LEAT_U64, 64)
#undef SIGNED
#undef UNSIGNED
    case LEAT_F32:
        return store_f32(n, to);
    case LEAT_F64:
        return as_real(n, DBL_MANT_DIG, to);
    default:
        return false;
    }
}

// --- headers -------------------------------------------------------------------------------------

// A count or size of `width` bytes that at least as many bytes must follow as it says.
static const uint8_t *read_size(const uint8_t *from, const uint8_t *end, size_t width, size_t *size)
{
    if ((size_t)(end - from) < width)
        return NULL;
    *size = (size_t)read_big(from, width);
    from += width;
    return *size <= (size_t)(end - from) ? from : NULL;
}

// The header of a list, struct or map: `fixed` is the tag that holds small counts itself, tag16 and
// the next one hold 16 and 32 bits.
static const uint8_t *read_count(const uint8_t *from, const uint8_t *end, uint8_t fixed,
                                 uint8_t tag16, size_t *count)
{
    if (from == end)
        return NULL;
    uint8_t tag = *from++;
    if ((tag & 0xf0) == fixed) {
        *count = tag & 0x0f;
        return *count <= (size_t)(end - from) ? from : NULL;
    }
    if (tag == tag16)
        return read_size(from, end, 2, count);
    if (tag == tag16 + 1)
        return read_size(from, end, 4, count);
    return NULL;
}

// A run of bytes with its header; tag8 and the two next ones hold sizes of 8, 16 and 32 bits.
static const uint8_t *read_run(const uint8_t *from, const uint8_t *end, bool is_str, size_t *size)
{
    uint8_t tag = *from++, tag8 = is_str ? 0xd9 : 0xc4;
    if (is_str && (tag & 0xe0) == 0xa0) {
        *size = tag & 0x1f;
        return *size <= (size_t)(end - from) ? from : NULL;
    }
    if (tag < tag8 || tag > tag8 + 2)
        return NULL;
    return read_size(from, end, (size_t)1 << (tag - tag8), size);
}

// --- values --------------------------------------------------------------------------------------

// Whatever the fast path of a scalar does not take. There is one byte at least.
static const uint8_t *decode_any_width(uint32_t kind, const uint8_t *from, const uint8_t *end,
                                       void *value)
{
    if (kind == LEAT_STR || kind == LEAT_BYTES) {
        size_t size;
        from = read_run(from, end, kind == LEAT_STR, &size);
        if (!from)
            return NULL;
        if (kind == LEAT_STR)
            *(leat_str *)value = (leat_str){(const char *)from, size};
        else
            *(leat_bytes *)value = (leat_bytes){from, size};
        return from + size;
    }
    number n;
    from = read_number(from, end, &n);
    return from && store_number(kind, &n, value) ? from : NULL;
}

static const uint8_t *decode_scalar(uint32_t kind, const uint8_t *from, const uint8_t *end,
                                    void *value)
{
    size_t room = (size_t)(end - from), left;
    const uint8_t *next = NULL;
    switch (kind) {
#define DECODE(K)                                                                                  \
    case K:                                                                                        \
        if (LEAT_LIKELY(room >= leati_wire_##K)) {                                                 \
            left = room - leati_wire_##K;                                                          \
            next = leati_take_##K(from, &left, value);                                             \
        }                                                                                          \
        break;
        LEATI_SCALAR_KINDS(DECODE)
#undef DECODE
    default:
        return NULL;
    }
    if (LEAT_LIKELY(next != NULL))
        return next;
    return room ? decode_any_width(kind, from, end, value) : NULL;
}

// The usual kinds in the form that the encoder writes; NULL for everything else.
static inline const uint8_t *decode_usual(uint32_t kind, const uint8_t *from, const uint8_t *end,
                                          void *value)
{
    size_t room = (size_t)(end - from);
    if (leati_is_wide(kind)) {
        if (LEAT_UNLIKELY(room < 9 || *from != leati_wide_tag(kind)))
            return NULL;
        uint64_t raw;
        __builtin_memcpy(&raw, from + 1, sizeof raw);
        raw = leati_big64(raw);
        __builtin_memcpy(value, &raw, sizeof raw);
        return from + 9;
    }
    if (kind == LEAT_STR && room-- > 0)
        return leati_take_LEAT_STR(from, &room, value);
    return NULL;
}

// Room for `count` values; NULL with decoder->err set.
static void *take(leat_decoder *decoder, const leat_type *type, size_t count)
{
    size_t size;
    // The alignment may cost this much more.
    if (__builtin_mul_overflow(count, type->size, &size) || size > decoder->budget ||
        decoder->budget - size < type->align - 1) {
        decoder->err = LEAT_ECORRUPT;
        return NULL;
    }
    if (!decoder->scratch) {
        decoder->err = LEAT_EINVAL;
        return NULL;
    }
    decoder->budget -= size + type->align - 1;
    void *memory = leati_scratch_take(decoder->scratch, size, type->align);
    if (!memory)
        decoder->err = LEAT_ENOMEM;
    return memory;
}

static const uint8_t *decode_list(const leat_type *element, const uint8_t *from, const uint8_t *end,
                                  leat_list *list, leat_decoder *decoder)
{
    size_t count;
    from = read_count(from, end, 0x90, 0xdc, &count);
    if (!from)
        return corrupt(decoder);
    *list = (leat_list){NULL, count};
    if (count == 0)
        return from;
    char *items = take(decoder, element, count);
    if (!items)
        return NULL;
    list->items = items;
    for (size_t i = 0; from && i < count; i++)
        from = leat_codec_decode(element, from, end, items + i * element->size, decoder);
    return from;
}

static const uint8_t *decode_map(const leat_type *type, const uint8_t *from, const uint8_t *end,
                                 leat_dict *map, leat_decoder *decoder)
{
    size_t count;
    from = read_count(from, end, 0x80, 0xde, &count);
    if (!from)
        return corrupt(decoder);
    *map = (leat_dict){NULL, NULL, count};
    if (count == 0)
        return from;
    char *keys = take(decoder, type->key, count);
    char *values = keys ? take(decoder, type->element, count) : NULL;
    if (!values)
        return NULL;
    map->keys = keys;
    map->values = values;
    for (size_t i = 0; from && i < count; i++) {
        from = leat_codec_decode(type->key, from, end, keys + i * type->key->size, decoder);
        if (from)
            from = leat_codec_decode(type->element, from, end, values + i * type->element->size,
                                     decoder);
    }
    return from;
}

static const uint8_t *decode_optional(const leat_type *element, const uint8_t *from,
                                      const uint8_t *end, const void **optional,
                                      leat_decoder *decoder)
{
    if (from == end)
        return corrupt(decoder);
    if (*from == 0xc0) {
        *optional = NULL;
        return from + 1;
    }
    void *present = take(decoder, element, 1);
    if (!present)
        return NULL;
    *optional = present;
    return leat_codec_decode(element, from, end, present, decoder);
}

static const uint8_t *decode_composed(const leat_type *type, const uint8_t *from,
                                      const uint8_t *end, void *value, leat_decoder *decoder)
{
    switch (type->kind) {
    case LEAT_LIST:
        return decode_list(type->element, from, end, value, decoder);
    case LEAT_MAP:
        return decode_map(type, from, end, value, decoder);
    case LEAT_OPTIONAL:
        return decode_optional(type->element, from, end, value, decoder);
    default:
        if (type->codec)
            return type->codec->decode(type, from, end, value, decoder);
        return leat_codec_decode_struct(type, from, end, value, decoder);
    }
}

const uint8_t *leat_codec_decode(const leat_type *type, const uint8_t *from, const uint8_t *end,
                                 void *value, leat_decoder *decoder)
{
    if (leati_is_scalar(type->kind)) {
        from = decode_scalar(type->kind, from, end, value);
        return LEAT_LIKELY(from != NULL) ? from : corrupt(decoder);
    }
    // Checked types cannot get here; one that contains itself would otherwise overrun the stack.
    if (decoder->depth == LEAT_TYPE_MAX_DEPTH)
        return corrupt(decoder);
    decoder->depth++;
    from = decode_composed(type, from, end, value, decoder);
    decoder->depth--;
    return from;
}

const uint8_t *leat_codec_decode_from(const leat_type *type, uint32_t index, const uint8_t *from,
                                      const uint8_t *end, void *record, leat_decoder *decoder)
{
    const leat_field *last = type->fields + type->field_count;
    for (const leat_field *field = type->fields + index; field < last; field++) {
        void *value = (char *)record + field->offset;
        const uint8_t *next = decode_usual(field->kind, from, end, value);
        if (LEAT_LIKELY(next != NULL)) {
            from = next;
        } else if (leati_is_scalar(field->kind)) {
            from = decode_scalar(field->kind, from, end, value);
            if (LEAT_UNLIKELY(!from))
                return corrupt(decoder);
        } else {
            from = leat_codec_decode(field->type, from, end, value, decoder);
            if (LEAT_UNLIKELY(!from))
                return NULL;
        }
    }
    return from;
}

const uint8_t *leat_codec_decode_struct(const leat_type *type, const uint8_t *from,
                                        const uint8_t *end, void *record, leat_decoder *decoder)
{
    size_t count;
    from = read_count(from, end, 0x90, 0xdc, &count);
    if (!from || count != type->field_count)
        return corrupt(decoder);
    return leat_codec_decode_from(type, 0, from, end, record, decoder);
}

leat_err leat_record_decode(const leat_type *type, const uint8_t *from, size_t size_bytes,
                            void *record, leat_scratch *scratch)
{
    if (size_bytes == 0)
        return LEAT_ECORRUPT;
    leat_decoder decoder = {scratch, size_bytes * LEAT_DECODE_AMPLIFICATION, 0, LEAT_ECORRUPT};
    const uint8_t *end = from + size_bytes;
    const uint8_t *next;
    if (LEAT_LIKELY(type->codec != NULL))
        next = type->codec->decode(type, from, end, record, &decoder);
    else if (type->kind == LEAT_STRUCT)
        next = leat_codec_decode_struct(type, from, end, record, &decoder);
    else
        next = leat_codec_decode(type, from, end, record, &decoder);
    if (LEAT_LIKELY(next == end))
        return LEAT_OK;
    return next ? LEAT_ECORRUPT : decoder.err;
}
