// SPDX-License-Identifier: Apache-2.0
#include "runtime/keyed_table.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "runtime/block_store.h"

// `hash` is what key groups are derived from (both halves of the frozen hash, exclusive or), so
// that they and the place in a larger table can be found without looking at the key.
typedef struct slot {
    uint32_t hash;
    uint32_t ref; // 0: empty
} slot;

// How keys are compared: the usual ones without walking their description.
typedef enum key_form {
    KEY_GENERAL,
    KEY_RUN, // one string or run of bytes, kept in the block without a pointer to it
    KEY_1,   // one integer of so many bytes
    KEY_2,
    KEY_4,
    KEY_8,
} key_form;

enum {
    FIRST_BITS = 8, // log2 of the number of slots
    LAST_BITS = 31,
    MAX_UNITS = (1 << 29) - 1, // of a block: less than 4 GiB
};

struct leati_keyed_table {
    slot *slots;
    uint32_t bits; // log2 of the number of slots
    key_form form;
    size_t count, limit; // entries, and how many before the slots must grow
    size_t at;           // the slot that the last find or insert ended at
    leati_block_store store;
    leat_key key;                 // in records
    leat_key stored;              // in what stored_key gives
    const leat_type *type;        // of accumulators
    uint32_t accumulator_at;      // in blocks
    uint32_t units_at;            // where a block's size is kept; 0: all have the same
    uint32_t run_size_at;         // KEY_RUN: where the size of the key is kept
    uint32_t extra_at;            // where the bytes begin that key and accumulator point to
    bool key_points, type_points; // whether they can point to anything
    bool shares_key;              // all that an accumulator points to are its own key's fields
};

static size_t align_up(size_t at, size_t align)
{
    return (at + align - 1) & ~(align - 1);
}

static uint32_t deepest_align(const leat_type *type)
{
    uint32_t align = type->align;
    for (uint32_t i = 0; i < type->field_count; i++) {
        uint32_t other = deepest_align(type->fields[i].type);
        align = other > align ? other : align;
    }
    for (int i = 0; i < 2; i++) {
        const leat_type *part = i ? type->key : type->element;
        uint32_t other = part ? deepest_align(part) : 0;
        align = other > align ? other : align;
    }
    return align;
}

static key_form form_of(const leat_key *key)
{
    if (key->count != 1)
        return KEY_GENERAL;
    switch (key->part[0].type->kind) {
    case LEAT_STR:
    case LEAT_BYTES:
        return KEY_RUN;
    case LEAT_I8:
    case LEAT_U8:
        return KEY_1;
    case LEAT_I16:
    case LEAT_U16:
        return KEY_2;
    case LEAT_I32:
    case LEAT_U32:
        return KEY_4;
    case LEAT_I64:
    case LEAT_U64:
    case LEAT_TIMESTAMP:
        return KEY_8;
    default:
        return KEY_GENERAL;
    }
}

static bool is_key_field(const leat_key *key, const leat_type *type, uint32_t offset)
{
    for (uint32_t i = 0; i < key->count; i++)
        if (key->part[i].offset == offset && key->part[i].type == type)
            return true;
    return false;
}

// Whether accumulators are records of the keyed type and can point to nothing but their key.
static bool can_share_key(const leat_key *key, const leat_type *type)
{
    if (key->type != type)
        return false;
    if (type->kind != LEAT_STRUCT)
        return is_key_field(key, type, 0);
    for (uint32_t i = 0; i < type->field_count; i++) {
        const leat_field *field = &type->fields[i];
        if (leat_type_has_pointers(field->type) && !is_key_field(key, field->type, field->offset))
            return false;
    }
    return true;
}

// Where the parts of the key lie in blocks; the end of the last.
static size_t lay_out_key(leati_keyed_table *table)
{
    size_t at = 0;
    table->stored = table->key;
    for (uint32_t i = 0; i < table->key.count; i++) {
        const leat_type *part = table->key.part[i].type;
        at = align_up(at, part->align);
        table->stored.part[i].offset = (uint32_t)at;
        at += part->size;
        table->key_points |= leat_type_has_pointers(part);
    }
    return at;
}

static void lay_out(leati_keyed_table *table)
{
    table->form = form_of(&table->key);
    table->shares_key = can_share_key(&table->key, table->type);
    table->type_points = leat_type_has_pointers(table->type);
    size_t at = lay_out_key(table);
    // A single run needs nothing but its size and its bytes, which come behind the rest.
    at = table->form == KEY_RUN ? 0 : align_up(at, table->type->align);
    table->accumulator_at = (uint32_t)at;
    at += table->type->size;
    if (table->key_points || table->type_points) {
        at = align_up(at, sizeof(uint32_t));
        table->units_at = (uint32_t)at;
        at += sizeof(uint32_t);
    }
    if (table->form == KEY_RUN) {
        table->run_size_at = (uint32_t)at;
        at += sizeof(uint32_t);
    }
    table->extra_at = (uint32_t)align_up(at, LEATI_BLOCK_UNIT);
}

static bool is_aligned(const leati_keyed_table *table)
{
    for (uint32_t i = 0; i < table->key.count; i++)
        if (deepest_align(table->key.part[i].type) > LEATI_BLOCK_UNIT)
            return false;
    return deepest_align(table->type) <= LEATI_BLOCK_UNIT;
}

static void set_limit(leati_keyed_table *table)
{
    size_t slots = (size_t)1 << table->bits;
    table->limit = slots / 2;
}

leat_err leati_keyed_table_create(const leat_allocator *allocator, const leat_key *key,
                                  const leat_type *accumulator_type, leati_keyed_table **table)
{
    leati_keyed_table *t = leati_calloc(allocator, 1, sizeof *t);
    if (!t)
        return LEAT_ENOMEM;
    t->store.allocator = allocator;
    t->key = *key;
    t->type = accumulator_type;
    t->bits = FIRST_BITS;
    set_limit(t);
    lay_out(t);
    leat_err err = LEAT_ENOMEM;
    if (!is_aligned(t))
        err = LEAT_ETYPE;
    else if (leati_block_store_init(&t->store, allocator))
        t->slots = leati_calloc(allocator, (size_t)1 << t->bits, sizeof *t->slots);
    if (!t->slots) {
        leati_keyed_table_destroy(&t);
        return err;
    }
    *table = t;
    return LEAT_OK;
}

void leati_keyed_table_destroy(leati_keyed_table **table)
{
    leati_keyed_table *t = *table;
    if (!t)
        return;
    const leat_allocator *allocator = t->store.allocator;
    leati_block_store_fini(&t->store);
    leati_free(allocator, t->slots);
    leati_free(allocator, t);
    *table = NULL;
}

// Loads of eight bytes of which the last two overlap. There is no call in it, so find needs no
// stack.
static inline bool same_bytes(const char *a, const char *b, size_t size)
{
    if (size >= 8) {
        uint64_t x, y;
        for (size_t i = 0; i < size - 8; i += 8) {
            memcpy(&x, a + i, 8);
            memcpy(&y, b + i, 8);
            if (x != y)
                return false;
        }
        memcpy(&x, a + size - 8, 8);
        memcpy(&y, b + size - 8, 8);
        return x == y;
    }
    if (size >= 4) {
        uint32_t x, y, u, v;
        memcpy(&x, a, 4);
        memcpy(&y, b, 4);
        memcpy(&u, a + size - 4, 4);
        memcpy(&v, b + size - 4, 4);
        return ((x ^ y) | (u ^ v)) == 0;
    }
    return size == 0 ||
           (a[0] == b[0] && a[size >> 1] == b[size >> 1] && a[size - 1] == b[size - 1]);
}

static inline uint32_t run_size(const leati_keyed_table *table, const uint8_t *block)
{
    uint32_t size;
    memcpy(&size, block + table->run_size_at, sizeof size);
    return size;
}

// What `table->stored` finds a block's key in: the block, or `run`, which is filled in for it.
static const uint8_t *stored_key(const leati_keyed_table *table, const uint8_t *block,
                                 leat_str *run)
{
    if (table->form != KEY_RUN)
        return block;
    *run = (leat_str){(const char *)block + table->extra_at, run_size(table, block)};
    return (const uint8_t *)run;
}

static inline __attribute__((always_inline)) bool
key_matches(const leati_keyed_table *table, key_form form, const uint8_t *block, const void *record)
{
    const uint8_t *part = (const uint8_t *)record + table->key.part[0].offset;
    switch (form) {
    case KEY_RUN: {
        const leat_str *run = (const leat_str *)(const void *)part;
        return run_size(table, block) == run->size &&
               same_bytes((const char *)block + table->extra_at, run->data, run->size);
    }
    case KEY_1:
        return *block == *part;
    case KEY_2:
        return memcmp(block, part, 2) == 0;
    case KEY_4:
        return memcmp(block, part, 4) == 0;
    case KEY_8:
        return memcmp(block, part, 8) == 0;
    default:
        return leat_key_equal(&table->stored, block, &table->key, record);
    }
}

static inline uint32_t short_hash(uint64_t hash)
{
    return (uint32_t)hash ^ (uint32_t)(hash >> 32);
}

void leati_keyed_table_prefetch_slot(const leati_keyed_table *table, uint64_t hash)
{
    __builtin_prefetch(&table->slots[short_hash(hash) >> (32 - table->bits)]);
}

void leati_keyed_table_prefetch_entry(const leati_keyed_table *table, uint64_t hash)
{
    slot s = table->slots[short_hash(hash) >> (32 - table->bits)];
    if (s.ref)
        __builtin_prefetch(leati_block_at(&table->store, s.ref));
}

static inline __attribute__((always_inline)) void *find(leati_keyed_table *table, key_form form,
                                                        uint64_t hash64, const void *record)
{
    uint32_t hash = short_hash(hash64);
    size_t mask = ((size_t)1 << table->bits) - 1;
    for (size_t i = hash >> (32 - table->bits);; i = (i + 1) & mask) {
        slot s = table->slots[i];
        if (s.hash == hash && s.ref) {
            uint8_t *block = leati_block_at(&table->store, s.ref);
            if (LEAT_LIKELY(key_matches(table, form, block, record))) {
                table->at = i;
                return block + table->accumulator_at;
            }
        } else if (!s.ref) {
            table->at = i;
            return NULL;
        }
    }
}

// One function for each form of keys, so that the usual ones save no registers.
#define FIND(name, form)                                                                           \
    static __attribute__((noinline)) void *name(leati_keyed_table *table, uint64_t hash,           \
                                                const void *record)                                \
    {                                                                                              \
        return find(table, form, hash, record);                                                    \
    }
FIND(find_general, KEY_GENERAL)
FIND(find_run, KEY_RUN)
FIND(find_1, KEY_1)
FIND(find_2, KEY_2)
FIND(find_4, KEY_4)
FIND(find_8, KEY_8)

void *leati_keyed_table_find(leati_keyed_table *table, uint64_t hash, const void *record)
{
    switch (table->form) {
    case KEY_RUN:
        return find_run(table, hash, record);
    case KEY_8:
        return find_8(table, hash, record);
    case KEY_4:
        return find_4(table, hash, record);
    case KEY_2:
        return find_2(table, hash, record);
    case KEY_1:
        return find_1(table, hash, record);
    default:
        return find_general(table, hash, record);
    }
}

static size_t free_slot(const slot *slots, uint32_t bits, uint32_t hash)
{
    size_t mask = ((size_t)1 << bits) - 1, i = hash >> (32 - bits);
    while (slots[i].ref)
        i = (i + 1) & mask;
    return i;
}

// Doubles the slots in one go. The upper bits of the hash choose the slot, so both tables are
// walked from one end to the other.
static bool grow(leati_keyed_table *table)
{
    uint32_t bits = table->bits + 1;
    if (bits > LAST_BITS)
        return false;
    slot *slots = leati_calloc(table->store.allocator, (size_t)1 << bits, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < (size_t)1 << table->bits; i++)
        if (table->slots[i].ref)
            slots[free_slot(slots, bits, table->slots[i].hash)] = table->slots[i];
    leati_free(table->store.allocator, table->slots);
    table->slots = slots;
    table->bits = bits;
    set_limit(table);
    return true;
}

// What a block is made from: the key as `key` finds it in `record`, and an accumulator.
typedef struct contents {
    const leat_key *key;
    const uint8_t *record;
    const uint8_t *accumulator;
    bool shares_key; // the accumulator's pointers are the key's
} contents;

static size_t key_extra(const leati_keyed_table *table, const contents *from)
{
    size_t size = 0;
    if (table->key_points)
        for (uint32_t i = 0; i < from->key->count; i++)
            size = align_up(size + leat_record_extra_size(from->key->part[i].type,
                                                          from->record + from->key->part[i].offset),
                            LEATI_BLOCK_UNIT);
    return size;
}

// Lets the key fields of an accumulator point to what the block's key points to.
static void share_key(const leati_keyed_table *table, uint8_t *block)
{
    leat_str run;
    const uint8_t *key = stored_key(table, block, &run);
    for (uint32_t i = 0; i < table->key.count; i++)
        memcpy(block + table->accumulator_at + table->key.part[i].offset,
               key + table->stored.part[i].offset, table->key.part[i].type->size);
}

// Returns the end of what the key points to.
static uint8_t *fill_key(const leati_keyed_table *table, const contents *from, uint8_t *block)
{
    uint8_t *extra = block + table->extra_at;
    if (table->form == KEY_RUN) {
        const leat_str *run =
            (const leat_str *)(const void *)(from->record + from->key->part[0].offset);
        uint32_t size = (uint32_t)run->size;
        memcpy(block + table->run_size_at, &size, sizeof size);
        leati_copy(extra, run->data, size);
        return extra + align_up(size, LEATI_BLOCK_UNIT);
    }
    for (uint32_t i = 0; i < from->key->count; i++) {
        const leat_type *type = from->key->part[i].type;
        const uint8_t *part = from->record + from->key->part[i].offset;
        uint8_t *to = block + table->stored.part[i].offset;
        if (leat_type_has_pointers(type)) {
            size_t size = leat_record_extra_size(type, part);
            leat_record_copy_into(type, part, to, extra);
            extra += align_up(size, LEATI_BLOCK_UNIT);
        } else {
            memcpy(to, part, type->size);
        }
    }
    return extra;
}

static void fill_block(const leati_keyed_table *table, const contents *from, uint8_t *block)
{
    uint8_t *extra = fill_key(table, from, block);
    uint8_t *accumulator = block + table->accumulator_at;
    if (table->type_points && !from->shares_key) {
        leat_record_copy_into(table->type, from->accumulator, accumulator, extra);
        return;
    }
    memcpy(accumulator, from->accumulator, table->type->size);
    if (from->shares_key)
        share_key(table, block);
}

// Makes a block of at least `least` units; NULL when out of memory.
static uint8_t *make_block(leati_keyed_table *table, const contents *from, uint32_t least,
                           uint32_t *ref)
{
    size_t size = table->extra_at + key_extra(table, from);
    if (table->type_points && !from->shares_key)
        size += leat_record_extra_size(table->type, from->accumulator);
    size = align_up(size, LEATI_BLOCK_UNIT) / LEATI_BLOCK_UNIT;
    if (size > MAX_UNITS)
        return NULL;
    uint32_t units = (uint32_t)size < least ? least : (uint32_t)size;
    if (!leati_block_alloc(&table->store, &units, ref))
        return NULL;
    uint8_t *block = leati_block_at(&table->store, *ref);
    fill_block(table, from, block);
    if (table->units_at)
        memcpy(block + table->units_at, &units, sizeof units);
    return block;
}

void *leati_keyed_table_insert(leati_keyed_table *table, uint64_t hash, const void *record,
                               const void *accumulator)
{
    assert(!table->slots[table->at].ref);
    if (table->count >= table->limit) {
        if (!grow(table))
            return NULL;
        table->at = free_slot(table->slots, table->bits, short_hash(hash));
    }
    contents from = {.key = &table->key,
                     .record = record,
                     .accumulator = accumulator,
                     .shares_key = table->shares_key && accumulator == record};
    uint32_t ref;
    uint8_t *block = make_block(table, &from, 0, &ref);
    if (!block)
        return NULL;
    table->slots[table->at] = (slot){short_hash(hash), ref};
    table->count++;
    return block + table->accumulator_at;
}

static uint32_t block_units(const leati_keyed_table *table, const uint8_t *block)
{
    uint32_t units;
    memcpy(&units, block + table->units_at, sizeof units);
    return units;
}

static void *move_entry(leati_keyed_table *table, uint8_t *block)
{
    leat_str run;
    const uint8_t *accumulator = block + table->accumulator_at;
    const uint8_t *key = stored_key(table, block, &run);
    if (table->shares_key && leat_key_equal(&table->stored, key, &table->key, accumulator)) {
        share_key(table, block);
        return block + table->accumulator_at;
    }
    contents from = {.key = &table->stored, .record = key, .accumulator = accumulator};
    uint32_t units = block_units(table, block), ref, old = table->slots[table->at].ref;
    size_t size = table->extra_at + key_extra(table, &from) +
                  leat_record_extra_size(table->type, accumulator);
    // A block that must grow gets half as much again, so that accumulators which grow step by step
    // do not leave a trail of every size; one that fits keeps its size, so that two blocks take
    // turns; one that has become much too large shrinks.
    uint32_t least = 0;
    if (size > (size_t)units * LEATI_BLOCK_UNIT)
        least = units + units / 2;
    else if (size * 4 > (size_t)units * LEATI_BLOCK_UNIT)
        least = units;
    uint8_t *moved = make_block(table, &from, least, &ref);
    if (!moved)
        return NULL;
    table->slots[table->at].ref = ref;
    leati_block_free(&table->store, old, units);
    return moved + table->accumulator_at;
}

// Whether the accumulator's only pointer is still the one that share_key stored: the usual case,
// told without a call.
static inline bool shares_run(const leati_keyed_table *table, const uint8_t *block)
{
    if (!table->shares_key || table->form != KEY_RUN)
        return false;
    leat_str run;
    memcpy(&run, block + table->accumulator_at + table->key.part[0].offset, sizeof run);
    return run.data == (const char *)block + table->extra_at && run.size == run_size(table, block);
}

static __attribute__((noinline)) void *own(leati_keyed_table *table, uint8_t *block)
{
    uint8_t *accumulator = block + table->accumulator_at;
    if (LEAT_LIKELY(leat_record_is_within(table->type, accumulator, block,
                                          (size_t)block_units(table, block) * LEATI_BLOCK_UNIT)))
        return accumulator;
    return move_entry(table, block);
}

void *leati_keyed_table_own(leati_keyed_table *table, void *accumulator)
{
    uint8_t *block = (uint8_t *)accumulator - table->accumulator_at;
    if (!table->type_points || shares_run(table, block))
        return accumulator;
    return own(table, block);
}

void *leati_keyed_table_next(const leati_keyed_table *table, size_t *cursor)
{
    enum { AHEAD = 16 };
    size_t slots = (size_t)1 << table->bits;
    for (size_t i = *cursor; i < slots; i++) {
        // Blocks lie anywhere; asking early hides most of the wait for memory.
        if (i + AHEAD < slots && table->slots[i + AHEAD].ref)
            __builtin_prefetch(leati_block_at(&table->store, table->slots[i + AHEAD].ref));
        if (table->slots[i].ref) {
            *cursor = i + 1;
            return leati_block_at(&table->store, table->slots[i].ref) + table->accumulator_at;
        }
    }
    *cursor = slots;
    return NULL;
}

size_t leati_keyed_table_count(const leati_keyed_table *table)
{
    return table->count;
}

size_t leati_keyed_table_bytes(const leati_keyed_table *table)
{
    return sizeof *table + ((size_t)1 << table->bits) * sizeof(slot) +
           table->store.slab_capacity * sizeof(uint8_t *) +
           table->store.numbers_capacity * sizeof(uint32_t) + table->store.bytes;
}
