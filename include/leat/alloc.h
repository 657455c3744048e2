// SPDX-License-Identifier: Apache-2.0
// The allocator hook. The library keeps no global state, so whoever creates an object says where
// its memory comes from.
#ifndef LEAT_ALLOC_H
#define LEAT_ALLOC_H

#include "leat/base.h"

LEAT_BEGIN_DECLS

// All three functions are called from any thread, concurrently, and must behave as malloc, realloc
// and free do: `allocate` and `reallocate` return memory aligned for any type or NULL; `release`
// takes NULL. The struct is copied where it is given; `user` must outlive every object made with
// it.
typedef struct leat_allocator {
    void *(*allocate)(void *user, size_t size_bytes);
    void *(*reallocate)(void *user, void *ptr, size_t size_bytes);
    void (*release)(void *user, void *ptr);
    void *user;
} leat_allocator;

// The allocator over malloc, realloc and free of the process; it is what NULL means wherever an
// allocator is asked for. Static storage.
LEAT_API const leat_allocator *leat_allocator_default(void);

LEAT_END_DECLS

#endif
