// SPDX-License-Identifier: Apache-2.0
// LEAT_RECORD and its kin: from the list of a struct's fields to its type and its compiled codec.
//
//     typedef struct { leat_str street; leat_str city; } address;
//     LEAT_RECORD(address, LEAT_FIELD(street, LEAT_STR), LEAT_FIELD(city, LEAT_STR));
//
//     LEAT_LIST_TYPE(names, LEAT_SCALAR(LEAT_STR));             // LEAT_TYPE(names): list of str
//
//     typedef struct {
//         int64_t id;
//         address home;        // the nested struct itself
//         leat_list tags;      // items are leat_str
//         leat_dict aliases;   // keys are leat_str, values are leat_list
//         const double *score; // NULL when absent
//     } person;
//     LEAT_RECORD(person,
//         LEAT_FIELD(id, LEAT_I64),
//         LEAT_FIELD_STRUCT(home, address),
//         LEAT_FIELD_LIST(tags, LEAT_SCALAR(LEAT_STR)),
//         LEAT_FIELD_MAP(aliases, LEAT_SCALAR(LEAT_STR), LEAT_TYPE(names)),
//         LEAT_FIELD_OPTIONAL(score, LEAT_SCALAR(LEAT_F64)));
//
// All of these stand at file scope and take names of types that are single words (typedefs). A
// field whose C type does not fit its kind is a compile error; what a list, map or optional points
// to cannot be checked by the compiler.
#ifndef LEAT_RECORD_MACROS_H
#define LEAT_RECORD_MACROS_H

#include "leat/record_codec.h"
#include "leat/type.h"

#ifdef __cplusplus
#include <type_traits>
#endif

// The type of a record declared with LEAT_RECORD, or of a name declared with LEAT_LIST_TYPE,
// LEAT_MAP_TYPE or LEAT_OPTIONAL_TYPE.
#define LEAT_TYPE(T) (&leati_type_##T)
// The type of a scalar kind, as a constant: LEAT_SCALAR(LEAT_STR).
#define LEAT_SCALAR(KIND) (&leat_scalar_types[KIND])

// clang-format off

// The fields of LEAT_RECORD. KIND is one of LEAT_BOOL ... LEAT_TIMESTAMP; `element`, `key` and
// `value` are types: LEAT_SCALAR(...) or LEAT_TYPE(...).
#define LEAT_FIELD(name, KIND) (SCALAR, name, KIND)
#define LEAT_FIELD_STRUCT(name, T) (STRUCT, name, T)
#define LEAT_FIELD_LIST(name, element) (LIST, name, element)
#define LEAT_FIELD_MAP(name, key, value) (MAP, name, key, value)
#define LEAT_FIELD_OPTIONAL(name, element) (OPTIONAL, name, element)

// Names for composed types, to nest them in others.
#define LEAT_LIST_TYPE(NAME, element) \
    LEATI_COMPOSED(NAME, #NAME, LEAT_LIST, leat_list, element, NULL)
#define LEAT_MAP_TYPE(NAME, key, value) \
    LEATI_COMPOSED(NAME, #NAME, LEAT_MAP, leat_dict, value, key)
#define LEAT_OPTIONAL_TYPE(NAME, element) \
    LEATI_COMPOSED(NAME, #NAME, LEAT_OPTIONAL, leati_pointer, element, NULL)

// The type of T and its codec, from 1 to 64 fields in the order of the wire.
#define LEAT_RECORD(T, ...) \
    LEATI_EACH(LEATI_TYPE_OF, T, __VA_ARGS__) \
    static const leat_field leati_fields_##T[] = {LEATI_EACH(LEATI_ROW, T, __VA_ARGS__)}; \
    enum { leati_count_##T = LEATI_COUNT(__VA_ARGS__) }; \
    LEATI_DEFINE_ENCODE(T, __VA_ARGS__) \
    LEATI_DEFINE_SIZE(T, __VA_ARGS__) \
    LEATI_DEFINE_DECODE(T, __VA_ARGS__) \
    LEATI_DEFINE_HASH(T, __VA_ARGS__) \
    LEATI_DEFINE_EQUAL(T, __VA_ARGS__) \
    LEATI_DEFINE_COPY(T, __VA_ARGS__) \
    static const leat_codec leati_codec_##T = { \
        leati_encode_##T, leati_size_##T, leati_decode_##T, leati_hash_##T, \
        leati_equal_##T, leati_extra_##T, leati_own_##T, leati_within_##T}; \
    LEATI_STATIC const leat_type leati_type_##T = { \
        LEAT_STRUCT, sizeof(T), LEATI_ALIGNOF(T), leati_count_##T, #T, leati_fields_##T, \
        NULL, NULL, &leati_codec_##T, NULL}

// --- what stands behind them ---

#define LEATI_STATIC __attribute__((unused)) static

#ifdef __cplusplus
#define LEATI_ALIGNOF(T) alignof(T)
#define LEATI_CHECK_FIELD(T, name, ctype) \
    static_assert(std::is_same<decltype(T::name), ctype>::value, \
                  "field " #name " of " #T " must be of type " #ctype);
#define LEATI_CHECK_OPTIONAL(T, name) \
    static_assert(std::is_pointer<decltype(T::name)>::value, \
                  "field " #name " of " #T " must be a pointer");
#else
#define LEATI_ALIGNOF(T) _Alignof(T)
#define LEATI_CHECK_FIELD(T, name, ctype) \
    _Static_assert(_Generic(((T *)0)->name, ctype: 1, default: 0), \
                   "field " #name " of " #T " must be of type " #ctype);
// Only a pointer can be dereferenced.
#define LEATI_CHECK_OPTIONAL(T, name) \
    _Static_assert(sizeof(*((T *)0)->name) > 0 && sizeof(((T *)0)->name) == sizeof(void *), \
                   "field " #name " of " #T " must be a pointer");
#endif

typedef const void *leati_pointer;

#define LEATI_COMPOSED(NAME, text, kind, ctype, element, key) \
    LEATI_STATIC const leat_type leati_type_##NAME = { \
        kind, sizeof(ctype), LEATI_ALIGNOF(ctype), 0, text, NULL, element, key, NULL, NULL}

// M(T, field) for each field; each field is a tuple whose first member chooses the form of M.
#define LEATI_EACH(M, T, ...) LEATI_EACH_N(LEATI_COUNT(__VA_ARGS__), M, T, __VA_ARGS__)
#define LEATI_EACH_N(count, M, T, ...) LEATI_EACH_M(count, M, T, __VA_ARGS__)
#define LEATI_EACH_M(count, M, T, ...) LEATI_EACH_##count(M, T, __VA_ARGS__)
#define LEATI_UNWRAP(...) __VA_ARGS__
#define LEATI_FORM(prefix, T, ...) LEATI_FORM_(prefix, T, __VA_ARGS__)
#define LEATI_FORM_(prefix, T, form, ...) prefix##form(T, __VA_ARGS__)

// The types of composed fields.
#define LEATI_TYPE_OF(T, field) LEATI_FORM(LEATI_TYPE_OF_, T, LEATI_UNWRAP field)
#define LEATI_TYPE_OF_SCALAR(T, name, K)
#define LEATI_TYPE_OF_STRUCT(T, name, U)
#define LEATI_TYPE_OF_LIST(T, name, element) \
    LEATI_COMPOSED(T##__##name, "", LEAT_LIST, leat_list, element, NULL);
#define LEATI_TYPE_OF_MAP(T, name, key, value) \
    LEATI_COMPOSED(T##__##name, "", LEAT_MAP, leat_dict, value, key);
#define LEATI_TYPE_OF_OPTIONAL(T, name, element) \
    LEATI_COMPOSED(T##__##name, "", LEAT_OPTIONAL, leati_pointer, element, NULL);

// The rows of the field table.
#define LEATI_ROW(T, field) LEATI_FORM(LEATI_ROW_, T, LEATI_UNWRAP field)
#define LEATI_ROW_SCALAR(T, name, K) {#name, LEAT_SCALAR(K), (uint32_t)offsetof(T, name), K},
#define LEATI_ROW_STRUCT(T, name, U) \
    {#name, LEAT_TYPE(U), (uint32_t)offsetof(T, name), LEAT_STRUCT},
#define LEATI_ROW_COMPOSED(T, name, K) \
    {#name, LEAT_TYPE(T##__##name), (uint32_t)offsetof(T, name), K},
#define LEATI_ROW_LIST(T, name, element) LEATI_ROW_COMPOSED(T, name, LEAT_LIST)
#define LEATI_ROW_MAP(T, name, key, value) LEATI_ROW_COMPOSED(T, name, LEAT_MAP)
#define LEATI_ROW_OPTIONAL(T, name, element) LEATI_ROW_COMPOSED(T, name, LEAT_OPTIONAL)

// Names inside the functions end in `_`, so that they meet neither a user's type nor a macro.

// Encoding. `need_` is the most that the fields still to be written take, those of composed kinds
// left out; it is known before the first byte is written, so one comparison covers a run of
// scalars. Near the end of the room the table is walked instead, with exact checks.
#define LEATI_DEFINE_ENCODE(T, ...) \
    LEATI_STATIC uint8_t *leati_encode_##T(const leat_type *type_, const void *record_, \
                                           uint8_t *to_, uint8_t *end_) \
    { \
        const T *r_ = (const T *)record_; \
        uint32_t index_ = 0; \
        size_t need_ = 3 LEATI_EACH(LEATI_NEED, T, __VA_ARGS__); \
        if (LEAT_UNLIKELY((size_t)(end_ - to_) < need_)) \
            return leat_codec_encode_struct(type_, record_, to_, end_); \
        to_ = leati_put_header(to_, leati_count_##T); \
        need_ -= 3; \
        LEATI_EACH(LEATI_ENCODE, T, __VA_ARGS__) \
        (void)need_, (void)index_; \
        return to_; \
    }

#define LEATI_NEED(T, field) LEATI_FORM(LEATI_NEED_, T, LEATI_UNWRAP field)
#define LEATI_NEED_SCALAR(T, name, K) + leati_room_##K + leati_body_##K(&r_->name)
#define LEATI_NEED_STRUCT(T, name, U)
#define LEATI_NEED_LIST(T, name, element)
#define LEATI_NEED_MAP(T, name, key, value)
#define LEATI_NEED_OPTIONAL(T, name, element)

#define LEATI_ENCODE(T, field) LEATI_FORM(LEATI_ENCODE_, T, LEATI_UNWRAP field)
#define LEATI_ENCODE_SCALAR(T, name, K) \
    LEATI_CHECK_FIELD(T, name, leati_ctype_##K) \
    to_ = leati_put_##K(to_, &r_->name); \
    need_ -= leati_room_##K + leati_body_##K(&r_->name); \
    index_++;
#define LEATI_ENCODE_STRUCT(T, name, U) \
    LEATI_CHECK_FIELD(T, name, U) \
    to_ = leati_encode_##U(LEAT_TYPE(U), &r_->name, to_, end_); \
    LEATI_ENCODE_GO_ON
#define LEATI_ENCODE_COMPOSED(T, name) \
    to_ = leat_codec_encode(LEAT_TYPE(T##__##name), &r_->name, to_, end_); \
    LEATI_ENCODE_GO_ON
#define LEATI_ENCODE_GO_ON \
    index_++; \
    if (LEAT_UNLIKELY(!to_)) \
        return NULL; \
    if (LEAT_UNLIKELY((size_t)(end_ - to_) < need_)) \
        return leat_codec_encode_from(type_, index_, record_, to_, end_);
#define LEATI_ENCODE_LIST(T, name, element) \
    LEATI_CHECK_FIELD(T, name, leat_list) LEATI_ENCODE_COMPOSED(T, name)
#define LEATI_ENCODE_MAP(T, name, key, value) \
    LEATI_CHECK_FIELD(T, name, leat_dict) LEATI_ENCODE_COMPOSED(T, name)
#define LEATI_ENCODE_OPTIONAL(T, name, element) \
    LEATI_CHECK_OPTIONAL(T, name) LEATI_ENCODE_COMPOSED(T, name)

#define LEATI_DEFINE_SIZE(T, ...) \
    LEATI_STATIC size_t leati_size_##T(const leat_type *type_, const void *record_) \
    { \
        const T *r_ = (const T *)record_; \
        (void)type_, (void)r_; \
        return leati_header_size(leati_count_##T) LEATI_EACH(LEATI_SIZE, T, __VA_ARGS__); \
    }

#define LEATI_SIZE(T, field) LEATI_FORM(LEATI_SIZE_, T, LEATI_UNWRAP field)
#define LEATI_SIZE_SCALAR(T, name, K) + leati_size_##K(&r_->name)
#define LEATI_SIZE_STRUCT(T, name, U) + leati_size_##U(LEAT_TYPE(U), &r_->name)
#define LEATI_SIZE_COMPOSED(T, name) + leat_codec_size(LEAT_TYPE(T##__##name), &r_->name)
#define LEATI_SIZE_LIST(T, name, element) LEATI_SIZE_COMPOSED(T, name)
#define LEATI_SIZE_MAP(T, name, key, value) LEATI_SIZE_COMPOSED(T, name)
#define LEATI_SIZE_OPTIONAL(T, name, element) LEATI_SIZE_COMPOSED(T, name)

// Decoding. `rest_` is what the fast path reads of the fields still to come without asking, `room_`
// what there is beyond that. The first field that is not in the form that the encoder writes is
// handed, with all after it, to the table.
#define LEATI_DEFINE_DECODE(T, ...) \
    LEATI_STATIC const uint8_t *leati_decode_##T(const leat_type *type_, const uint8_t *from_, \
                                                 const uint8_t *end_, void *record_, \
                                                 leat_decoder *decoder_) \
    { \
        T *r_ = (T *)record_; \
        const uint8_t *next_; \
        uint32_t index_ = 0; \
        size_t rest_ = leati_header_size(leati_count_##T) LEATI_EACH(LEATI_REST, T, __VA_ARGS__); \
        size_t room_ = (size_t)(end_ - from_); \
        if (LEAT_UNLIKELY(room_ < rest_ || !leati_is_header(from_, leati_count_##T))) \
            return leat_codec_decode_struct(type_, from_, end_, record_, decoder_); \
        room_ -= rest_; \
        from_ += leati_header_size(leati_count_##T); \
        rest_ -= leati_header_size(leati_count_##T); \
        LEATI_EACH(LEATI_DECODE, T, __VA_ARGS__) \
        (void)next_, (void)rest_, (void)room_, (void)index_; \
        return from_; \
    }

#define LEATI_REST(T, field) LEATI_FORM(LEATI_REST_, T, LEATI_UNWRAP field)
#define LEATI_REST_SCALAR(T, name, K) + leati_wire_##K
#define LEATI_REST_STRUCT(T, name, U)
#define LEATI_REST_LIST(T, name, element)
#define LEATI_REST_MAP(T, name, key, value)
#define LEATI_REST_OPTIONAL(T, name, element)

#define LEATI_DECODE(T, field) LEATI_FORM(LEATI_DECODE_, T, LEATI_UNWRAP field)
#define LEATI_DECODE_SCALAR(T, name, K) \
    next_ = leati_take_##K(from_, &room_, &r_->name); \
    if (LEAT_UNLIKELY(!next_)) \
        return leat_codec_decode_from(type_, index_, from_, end_, record_, decoder_); \
    from_ = next_; \
    rest_ -= leati_wire_##K; \
    index_++;
#define LEATI_DECODE_GO_ON \
    index_++; \
    if (LEAT_UNLIKELY(!from_)) \
        return NULL; \
    room_ = (size_t)(end_ - from_); \
    if (LEAT_UNLIKELY(room_ < rest_)) \
        return leat_codec_decode_from(type_, index_, from_, end_, record_, decoder_); \
    room_ -= rest_;
#define LEATI_DECODE_STRUCT(T, name, U) \
    from_ = leati_decode_##U(LEAT_TYPE(U), from_, end_, &r_->name, decoder_); \
    LEATI_DECODE_GO_ON
#define LEATI_DECODE_COMPOSED(T, name) \
    from_ = leat_codec_decode(LEAT_TYPE(T##__##name), from_, end_, &r_->name, decoder_); \
    LEATI_DECODE_GO_ON
#define LEATI_DECODE_LIST(T, name, element) LEATI_DECODE_COMPOSED(T, name)
#define LEATI_DECODE_MAP(T, name, key, value) LEATI_DECODE_COMPOSED(T, name)
#define LEATI_DECODE_OPTIONAL(T, name, element) LEATI_DECODE_COMPOSED(T, name)

#define LEATI_DEFINE_HASH(T, ...) \
    LEATI_STATIC uint64_t leati_hash_##T(const leat_type *type_, const void *record_) \
    { \
        const T *r_ = (const T *)record_; \
        uint64_t hash_ = 0, next_; \
        uint32_t index_ = 0; \
        (void)type_; \
        LEATI_EACH(LEATI_HASH, T, __VA_ARGS__) \
        return hash_; \
    }

#define LEATI_HASH(T, field) \
    next_ = LEATI_FORM(LEATI_HASH_, T, LEATI_UNWRAP field); \
    hash_ = index_++ ? leat_hash_combine(hash_, next_) : next_;
#define LEATI_HASH_SCALAR(T, name, K) leati_hash_##K(&r_->name)
#define LEATI_HASH_STRUCT(T, name, U) leati_hash_##U(LEAT_TYPE(U), &r_->name)
#define LEATI_HASH_COMPOSED(T, name) leat_codec_hash(LEAT_TYPE(T##__##name), &r_->name)
#define LEATI_HASH_LIST(T, name, element) LEATI_HASH_COMPOSED(T, name)
#define LEATI_HASH_MAP(T, name, key, value) LEATI_HASH_COMPOSED(T, name)
#define LEATI_HASH_OPTIONAL(T, name, element) LEATI_HASH_COMPOSED(T, name)

#define LEATI_DEFINE_EQUAL(T, ...) \
    LEATI_STATIC bool leati_equal_##T(const leat_type *type_, const void *a_record_, \
                                      const void *b_record_) \
    { \
        const T *a_ = (const T *)a_record_, *b_ = (const T *)b_record_; \
        (void)type_; \
        LEATI_EACH(LEATI_EQUAL, T, __VA_ARGS__) \
        return true; \
    }

#define LEATI_EQUAL(T, field) \
    if (!LEATI_FORM(LEATI_EQUAL_, T, LEATI_UNWRAP field)) \
        return false;
#define LEATI_EQUAL_SCALAR(T, name, K) leati_equal_##K(&a_->name, &b_->name)
#define LEATI_EQUAL_STRUCT(T, name, U) leati_equal_##U(LEAT_TYPE(U), &a_->name, &b_->name)
#define LEATI_EQUAL_COMPOSED(T, name) leat_codec_equal(LEAT_TYPE(T##__##name), &a_->name, &b_->name)
#define LEATI_EQUAL_LIST(T, name, element) LEATI_EQUAL_COMPOSED(T, name)
#define LEATI_EQUAL_MAP(T, name, key, value) LEATI_EQUAL_COMPOSED(T, name)
#define LEATI_EQUAL_OPTIONAL(T, name, element) LEATI_EQUAL_COMPOSED(T, name)

// Deep copies: how much more they take, moving what a copied struct still borrows, and whether
// anything is borrowed.
#define LEATI_DEFINE_COPY(T, ...) \
    LEATI_STATIC size_t leati_extra_##T(const leat_type *type_, const void *record_, size_t at_) \
    { \
        const T *r_ = (const T *)record_; \
        (void)type_, (void)r_; \
        LEATI_EACH(LEATI_EXTRA, T, __VA_ARGS__) \
        return at_; \
    } \
    LEATI_STATIC uint8_t *leati_own_##T(const leat_type *type_, void *record_, uint8_t *to_) \
    { \
        T *r_ = (T *)record_; \
        (void)type_, (void)r_; \
        LEATI_EACH(LEATI_OWN, T, __VA_ARGS__) \
        return to_; \
    } \
    LEATI_STATIC bool leati_within_##T(const leat_type *type_, const void *record_, \
                                       const void *block_, size_t size_) \
    { \
        const T *r_ = (const T *)record_; \
        (void)type_; \
        return true LEATI_EACH(LEATI_WITHIN, T, __VA_ARGS__); \
    }

#define LEATI_EXTRA(T, field) at_ = LEATI_FORM(LEATI_EXTRA_, T, LEATI_UNWRAP field);
#define LEATI_EXTRA_SCALAR(T, name, K) at_ + leati_body_##K(&r_->name)
#define LEATI_EXTRA_STRUCT(T, name, U) leati_extra_##U(LEAT_TYPE(U), &r_->name, at_)
#define LEATI_EXTRA_COMPOSED(T, name) leat_codec_extra(LEAT_TYPE(T##__##name), &r_->name, at_)
#define LEATI_EXTRA_LIST(T, name, element) LEATI_EXTRA_COMPOSED(T, name)
#define LEATI_EXTRA_MAP(T, name, key, value) LEATI_EXTRA_COMPOSED(T, name)
#define LEATI_EXTRA_OPTIONAL(T, name, element) LEATI_EXTRA_COMPOSED(T, name)

#define LEATI_OWN(T, field) to_ = LEATI_FORM(LEATI_OWN_, T, LEATI_UNWRAP field);
#define LEATI_OWN_SCALAR(T, name, K) leati_own_##K(&r_->name, to_)
#define LEATI_OWN_STRUCT(T, name, U) leati_own_##U(LEAT_TYPE(U), &r_->name, to_)
#define LEATI_OWN_COMPOSED(T, name) leat_codec_own(LEAT_TYPE(T##__##name), &r_->name, to_)
#define LEATI_OWN_LIST(T, name, element) LEATI_OWN_COMPOSED(T, name)
#define LEATI_OWN_MAP(T, name, key, value) LEATI_OWN_COMPOSED(T, name)
#define LEATI_OWN_OPTIONAL(T, name, element) LEATI_OWN_COMPOSED(T, name)

#define LEATI_WITHIN(T, field) && LEATI_FORM(LEATI_WITHIN_, T, LEATI_UNWRAP field)
#define LEATI_WITHIN_SCALAR(T, name, K) leati_within_##K(&r_->name, block_, size_)
#define LEATI_WITHIN_STRUCT(T, name, U) leati_within_##U(LEAT_TYPE(U), &r_->name, block_, size_)
#define LEATI_WITHIN_COMPOSED(T, name) \
    leat_codec_is_within(LEAT_TYPE(T##__##name), &r_->name, block_, size_)
#define LEATI_WITHIN_LIST(T, name, element) LEATI_WITHIN_COMPOSED(T, name)
#define LEATI_WITHIN_MAP(T, name, key, value) LEATI_WITHIN_COMPOSED(T, name)
#define LEATI_WITHIN_OPTIONAL(T, name, element) LEATI_WITHIN_COMPOSED(T, name)

#include "leat/record_each.h"
// clang-format on

#endif
