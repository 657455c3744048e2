// SPDX-License-Identifier: Apache-2.0
// Marks the memory of idle segments as forbidden under AddressSanitizer, so that whoever keeps a
// pointer into a segment beyond its time is caught. Nothing in other builds.
#ifndef LEATI_NETWORK_POISON_H
#define LEATI_NETWORK_POISON_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define LEATI_HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LEATI_HAS_ASAN 1
#endif
#endif

#ifdef LEATI_HAS_ASAN
#include <sanitizer/asan_interface.h>
#endif

static inline void leati_poison(const void *memory, size_t size)
{
#ifdef LEATI_HAS_ASAN
    __asan_poison_memory_region(memory, size);
#else
    (void)memory;
    (void)size;
#endif
}

static inline void leati_unpoison(const void *memory, size_t size)
{
#ifdef LEATI_HAS_ASAN
    __asan_unpoison_memory_region(memory, size);
#else
    (void)memory;
    (void)size;
#endif
}

#endif
