// SPDX-License-Identifier: Apache-2.0
// Record types: a C struct plus the list of its fields, written down at compile time (LEAT_RECORD)
// or at run time.
//
//     typedef struct { leat_str word; int64_t count; } word_count;
//     LEAT_RECORD(word_count, LEAT_FIELD(word, LEAT_STR), LEAT_FIELD(count, LEAT_I64));
//     ... LEAT_TYPE(word_count) ...      // a const leat_type *
//
// Two types are the same if their structure is (kinds, field names and their order); the C layout
// and the type's own name do not count, and neither does the address.
#ifndef LEAT_TYPE_H
#define LEAT_TYPE_H

#include "leat/alloc.h"
#include "leat/base.h"
#include "leat/error.h"

LEAT_BEGIN_DECLS

// What a field holds, and the C type that holds it. Values are frozen: they enter digests and saved
// state.
typedef enum leat_kind {
    LEAT_BOOL = 1,       // bool
    LEAT_I8 = 2,         // int8_t
    LEAT_I16 = 3,        // int16_t
    LEAT_I32 = 4,        // int32_t
    LEAT_I64 = 5,        // int64_t
    LEAT_U8 = 6,         // uint8_t
    LEAT_U16 = 7,        // uint16_t
    LEAT_U32 = 8,        // uint32_t
    LEAT_U64 = 9,        // uint64_t
    LEAT_F32 = 10,       // float
    LEAT_F64 = 11,       // double
    LEAT_STR = 12,       // leat_str
    LEAT_BYTES = 13,     // leat_bytes
    LEAT_TIMESTAMP = 14, // int64_t in the job's time unit (milliseconds unless set otherwise)
    LEAT_LIST = 15,      // leat_list
    LEAT_MAP = 16,       // leat_dict
    LEAT_OPTIONAL = 17,  // const T *, NULL when absent
    LEAT_STRUCT = 18,    // the nested struct itself
} leat_kind;

typedef struct leat_type leat_type;
typedef struct leat_field leat_field;
typedef struct leat_codec leat_codec;

// A list of values that somebody else owns: `items` points to `count` values of the element's C
// type, one after the other.
typedef struct leat_list {
    const void *items;
    size_t count;
} leat_list;

// A map that somebody else owns: `keys` and `values` are arrays of `count` values each; keys are
// distinct.
typedef struct leat_dict {
    const void *keys;
    const void *values;
    size_t count;
} leat_dict;

// One field of a struct.
struct leat_field {
    const char *name;
    const leat_type *type;
    uint32_t offset; // bytes from the start of the struct
    uint32_t kind;   // type->kind once more, so that a walk over scalars touches the table only
};

// A type. Static ones are written by the macros below; those of run time are made by
// leat_type_*_create. The body is public only because static ones are initialised in the user's
// program; read it, do not fill it in by hand.
struct leat_type {
    uint32_t kind;            // a leat_kind
    uint32_t size;            // bytes of the C value
    uint32_t align;           // bytes
    uint32_t field_count;     // LEAT_STRUCT
    const char *name;         // for people; not part of a type's identity
    const leat_field *fields; // LEAT_STRUCT
    const leat_type *element; // LEAT_LIST, LEAT_OPTIONAL: what is in it; LEAT_MAP: the values
    const leat_type *key;     // LEAT_MAP
    const leat_codec *codec;  // compiled functions, or NULL: the field table is interpreted
    struct leat_type_own
        *own; // types of run time: what the library keeps with them; NULL for static ones
};

// Types nest at most this deep; msgpack readers elsewhere stop at 32.
#define LEAT_TYPE_MAX_DEPTH 32
// A struct has at most this many fields, so that every record header fits in three bytes.
#define LEAT_TYPE_MAX_FIELDS 65535
// Written out in full, with each part as often as it occurs, a type has at most this many fields
// and parts.
#define LEAT_TYPE_MAX_NODES (1 << 20)

// The types of the scalar kinds, by kind; what LEAT_SCALAR points into.
LEAT_API extern const leat_type leat_scalar_types[16];

// The type of a scalar kind (LEAT_BOOL ... LEAT_TIMESTAMP); NULL for the composed kinds. Any
// thread; static storage.
LEAT_API const leat_type *leat_type_scalar(leat_kind kind);

// Whether two types have the same structure. Any thread.
LEAT_API bool leat_type_equal(const leat_type *a, const leat_type *b);

// Checks that a type can be used for records: known kinds, distinct non-empty field names, depth
// and size limits, keys of maps that are hashable (no float, list, map or optional). Any thread.
// LEAT_ETYPE with `*why` set to a static sentence.
LEAT_API LEAT_MUST_USE leat_err leat_type_check(const leat_type *type, const char **why);

// Writes a type as text, "{word: str, count: i64}" say, as snprintf does: the length needed is
// returned, without NUL.
LEAT_API size_t leat_type_print(const leat_type *type, char *buffer, size_t size);

// The field of that name, also "outer.inner" through nested structs; NULL when there is none.
// `*offset`, when asked for, is the distance from the start of the outermost struct, in bytes.
LEAT_API const leat_field *leat_type_find(const leat_type *type, const char *path,
                                          uint32_t *offset);

// --- types described at run time ---
// Such types are reference counted: create returns one reference; a composed type holds references
// to its parts when they are of run time too. Any thread. `allocator` may be NULL.

typedef struct leat_field_spec {
    const char *name; // copied
    const leat_type *type;
} leat_field_spec;

// A struct with the C layout that a compiler would give these fields in this order; read offsets
// back from
// `(*type)->fields`. LEAT_ETYPE when the fields cannot form a type, LEAT_ENOMEM.
LEAT_API LEAT_MUST_USE leat_err leat_type_struct_create(const leat_allocator *allocator,
                                                        const char *name,
                                                        const leat_field_spec *fields,
                                                        size_t field_count, const leat_type **type);
LEAT_API LEAT_MUST_USE leat_err leat_type_list_create(const leat_allocator *allocator,
                                                      const leat_type *element,
                                                      const leat_type **type);
LEAT_API LEAT_MUST_USE leat_err leat_type_map_create(const leat_allocator *allocator,
                                                     const leat_type *key, const leat_type *value,
                                                     const leat_type **type);
LEAT_API LEAT_MUST_USE leat_err leat_type_optional_create(const leat_allocator *allocator,
                                                          const leat_type *element,
                                                          const leat_type **type);
// Takes or gives back a reference; no-ops for static types and NULL.
LEAT_API const leat_type *leat_type_hold(const leat_type *type);
LEAT_API void leat_type_release(const leat_type *type);

LEAT_END_DECLS

#include "leat/record_macros.h" // LEAT_RECORD, LEAT_FIELD and their kin

#endif
