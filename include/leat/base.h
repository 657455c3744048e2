// SPDX-License-Identifier: Apache-2.0
// Words shared by all public headers: export marks, strings and bytes, limits, version.
#ifndef LEAT_BASE_H
#define LEAT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define LEAT_BEGIN_DECLS extern "C" {
#define LEAT_END_DECLS   }
#else
#define LEAT_BEGIN_DECLS
#define LEAT_END_DECLS
#endif

// Everything else in the library has hidden visibility.
#define LEAT_API      __attribute__((visibility("default")))
#define LEAT_MUST_USE __attribute__((warn_unused_result))
#define LEAT_PRINTF(format_index, first_arg)                                                       \
    __attribute__((format(printf, format_index, first_arg)))
#define LEAT_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define LEAT_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#define LEAT_VERSION_MAJOR 0
#define LEAT_VERSION_MINOR 1
#define LEAT_VERSION_PATCH 0

// The contract between a compiled job file and the library. It is raised whenever a public struct,
// macro or meaning changes so that old job files would misbehave; a job file that states another
// number is refused.
#define LEAT_ABI 3

LEAT_BEGIN_DECLS

// A run of bytes that somebody else owns, taken as text. `data` is not NUL-terminated and may hold
// any byte; it may be NULL only when `size` is 0.
typedef struct leat_str {
    const char *data;
    size_t size; // bytes
} leat_str;

// A run of bytes that somebody else owns, taken as binary data. Same rules as leat_str.
typedef struct leat_bytes {
    const uint8_t *data;
    size_t size; // bytes
} leat_bytes;

// Wraps a string literal. Not for pointers: the size is that of the array.
#ifdef __cplusplus
#define LEAT_STR_LITERAL(literal) (leat_str{(literal), sizeof(literal) - 1})
#else
#define LEAT_STR_LITERAL(literal) ((leat_str){.data = (literal), .size = sizeof(literal) - 1})
#endif

// The version of the library that is running, "0.1.0" say. Any thread; never fails; static storage.
LEAT_API const char *leat_version(void);

LEAT_END_DECLS

#endif
