// SPDX-License-Identifier: Apache-2.0
// What type.c and type_create.c share. Private to record/.
#ifndef LEATI_RECORD_TYPE_IMPL_H
#define LEATI_RECORD_TYPE_IMPL_H

#include <stdatomic.h>

#include "leat/type.h"

// What the checks need to know of a type's parts.
typedef struct leati_type_facts {
    uint32_t depth; // composed types inside each other; 0 for a scalar
    uint64_t nodes; // fields and parts, each as often as it occurs
    uint64_t wire;  // the fewest bytes of a value on the wire
    bool is_key;    // may be the key of a map
} leati_type_facts;

// The bookkeeping of a type of run time. One block holds it, the type, the fields and their names.
struct leat_type_own {
    leat_type type;
    leat_allocator allocator;
    leati_type_facts facts; // such a type has been checked when it was made
    atomic_size_t references;
};

// Checks `type` and all its parts, and gathers the facts. NULL, or a static sentence that says what
// is wrong.
const char *leati_type_examine(const leat_type *type, leati_type_facts *facts);

// The rules for one type when the facts of its parts are known.
const char *leati_type_rule_size(const leat_type *type, const leati_type_facts *facts);
const char *leati_type_rule_optional(const leat_type *element);
const char *leati_type_rule_key(const leati_type_facts *key);

// Adds a part of a composed type to the facts of the whole.
void leati_type_facts_add(leati_type_facts *facts, const leati_type_facts *part);

#endif
