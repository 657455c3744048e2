// SPDX-License-Identifier: Apache-2.0
// Types described at run time. Each is one block: bookkeeping, type, fields, names.
#include <stdalign.h>
#include <string.h>

#include "base/alloc.h"
#include "record/type_impl.h"
#include "record/value_impl.h"

const leat_type *leat_type_hold(const leat_type *type)
{
    if (type && type->own)
        atomic_fetch_add_explicit(&type->own->references, 1, memory_order_relaxed);
    return type;
}

static void destroy(struct leat_type_own *own)
{
    leat_type_release(own->type.element);
    leat_type_release(own->type.key);
    for (uint32_t i = 0; i < own->type.field_count; i++)
        leat_type_release(own->type.fields[i].type);
    leat_allocator allocator = own->allocator;
    leati_free(&allocator, own);
}

void leat_type_release(const leat_type *type)
{
    if (!type || !type->own)
        return;
    // Release orders this holder's last reads before the count, acquire the destruction behind
    // those of all holders.
    if (atomic_fetch_sub_explicit(&type->own->references, 1, memory_order_release) == 1) {
        atomic_thread_fence(memory_order_acquire);
        destroy(type->own);
    }
}

static struct leat_type_own *create(const leat_allocator *allocator, const leat_type *type,
                                    const leati_type_facts *facts, size_t more_bytes)
{
    struct leat_type_own *own = leati_alloc(allocator, sizeof *own + more_bytes);
    if (!own)
        return NULL;
    own->type = *type;
    own->type.own = own;
    own->allocator = *leati_allocator_or_default(allocator);
    own->facts = *facts;
    atomic_init(&own->references, 1);
    return own;
}

// --- lists, maps, optionals ----------------------------------------------------------------------

static leat_err composed_create(const leat_allocator *allocator, leat_type composed,
                                const leat_type **type)
{
    leati_type_facts facts;
    if (leati_type_examine(&composed, &facts))
        return LEAT_ETYPE;
    struct leat_type_own *own = create(allocator, &composed, &facts, 0);
    if (!own)
        return LEAT_ENOMEM;
    leat_type_hold(composed.element);
    leat_type_hold(composed.key);
    *type = &own->type;
    return LEAT_OK;
}

leat_err leat_type_list_create(const leat_allocator *allocator, const leat_type *element,
                               const leat_type **type)
{
    return composed_create(allocator,
                           (leat_type){.kind = LEAT_LIST,
                                       .size = sizeof(leat_list),
                                       .align = alignof(leat_list),
                                       .name = "",
                                       .element = element},
                           type);
}

leat_err leat_type_map_create(const leat_allocator *allocator, const leat_type *key,
                              const leat_type *value, const leat_type **type)
{
    return composed_create(allocator,
                           (leat_type){.kind = LEAT_MAP,
                                       .size = sizeof(leat_dict),
                                       .align = alignof(leat_dict),
                                       .name = "",
                                       .element = value,
                                       .key = key},
                           type);
}

leat_err leat_type_optional_create(const leat_allocator *allocator, const leat_type *element,
                                   const leat_type **type)
{
    return composed_create(allocator,
                           (leat_type){.kind = LEAT_OPTIONAL,
                                       .size = sizeof(void *),
                                       .align = alignof(void *),
                                       .name = "",
                                       .element = element},
                           type);
}

// --- structs -------------------------------------------------------------------------------------

// Distinct, non-empty names: a table of open addressing, as a schema of run time may be long.
static leat_err check_names(const leat_allocator *allocator, const leat_field_spec *fields,
                            size_t count)
{
    size_t slots = 4;
    while (slots < 2 * count)
        slots *= 2;
    const char **table = leati_calloc(allocator, slots, sizeof *table);
    if (!table)
        return LEAT_ENOMEM;
    leat_err err = LEAT_OK;
    for (size_t i = 0; err == LEAT_OK && i < count; i++) {
        const char *name = fields[i].name;
        if (!name || !*name) {
            err = LEAT_ETYPE;
            break;
        }
        size_t slot = leat_hash_bytes(name, strlen(name)) & (slots - 1);
        while (table[slot] && strcmp(table[slot], name) != 0)
            slot = (slot + 1) & (slots - 1);
        if (table[slot])
            err = LEAT_ETYPE;
        table[slot] = name;
    }
    leati_free(allocator, table);
    return err;
}

static uint64_t align_up(uint64_t at, uint64_t align)
{
    return (at + align - 1) & ~(align - 1);
}

// Lays the fields out as a C compiler does and gathers the facts.
static leat_err lay_out(const leat_field_spec *fields, size_t count, leat_type *type,
                        leati_type_facts *facts, size_t *names_size)
{
    uint64_t size = 0;
    *facts =
        (leati_type_facts){.nodes = 1, .wire = leati_header_size((uint32_t)count), .is_key = true};
    for (size_t i = 0; i < count; i++) {
        leati_type_facts part;
        if (leati_type_examine(fields[i].type, &part))
            return LEAT_ETYPE;
        leati_type_facts_add(facts, &part);
        if (type->align < fields[i].type->align)
            type->align = fields[i].type->align;
        size = align_up(size, fields[i].type->align) + fields[i].type->size;
        *names_size += strlen(fields[i].name) + 1;
    }
    size = align_up(size, type->align);
    type->size = (uint32_t)size;
    return size > UINT32_MAX || leati_type_rule_size(type, facts) ? LEAT_ETYPE : LEAT_OK;
}

// Writes the fields and the names behind the bookkeeping, in room that was made for them.
static void fill(struct leat_type_own *own, const char *name, const leat_field_spec *fields)
{
    leat_field *field = (leat_field *)(own + 1);
    char *text = (char *)(field + own->type.field_count);
    own->type.fields = field;
    uint64_t at = 0;
    for (uint32_t i = 0; i < own->type.field_count; i++, field++) {
        const leat_type *part = leat_type_hold(fields[i].type);
        size_t size = strlen(fields[i].name) + 1;
        at = align_up(at, part->align);
        *field = (leat_field){memcpy(text, fields[i].name, size), part, (uint32_t)at, part->kind};
        at += part->size;
        text += size;
    }
    own->type.name = memcpy(text, name, strlen(name) + 1);
}

leat_err leat_type_struct_create(const leat_allocator *allocator, const char *name,
                                 const leat_field_spec *fields, size_t field_count,
                                 const leat_type **type)
{
    if (field_count == 0 || field_count > LEAT_TYPE_MAX_FIELDS)
        return LEAT_ETYPE;
    if (!name)
        name = "";
    leat_err err = check_names(allocator, fields, field_count);
    if (err != LEAT_OK)
        return err;
    leat_type layout = {.kind = LEAT_STRUCT, .align = 1, .field_count = (uint32_t)field_count};
    leati_type_facts facts;
    size_t names_size = strlen(name) + 1;
    err = lay_out(fields, field_count, &layout, &facts, &names_size);
    if (err != LEAT_OK)
        return err;
    struct leat_type_own *own =
        create(allocator, &layout, &facts, field_count * sizeof(leat_field) + names_size);
    if (!own)
        return LEAT_ENOMEM;
    fill(own, name, fields);
    *type = &own->type;
    return LEAT_OK;
}
