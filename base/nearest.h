// SPDX-License-Identifier: Apache-2.0
// Finds the word that somebody most likely meant: of verbs, options and configuration keys.
#ifndef LEATI_BASE_NEAREST_H
#define LEATI_BASE_NEAREST_H

#include <stddef.h>

// The one of `words` that needs the fewest letters changed, added or dropped to become `word`, if
// these are few enough for its length; NULL when none is near.
const char *leati_nearest(const char *word, const char *const *words, size_t count);

#endif
