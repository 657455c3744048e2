// SPDX-License-Identifier: Apache-2.0
// Partitionings: streams that say how records cross to whatever reads them. The last one wins, also
// between a key and a partitioner: leat_rebalance(leat_key_by(s, "word")) is not keyed.
#include <string.h>

#include "base/alloc.h"
#include "graph/graph_impl.h"

// A stream over the same operators with another partitioner, NULL when out of memory.
static leat_stream *partitioning_create(const leat_stream *in, leati_partitioner partitioner)
{
    leat_env *env = in->env;
    leat_stream *stream = leati_arena_alloc(&env->arena, sizeof *stream);
    leati_leg *legs = leati_arena_calloc(&env->arena, in->leg_count, sizeof *legs);
    if (!stream || !legs) {
        leati_fault_no_memory(env);
        return NULL;
    }
    for (size_t i = 0; i < in->leg_count; i++)
        legs[i] = (leati_leg){.node = in->legs[i].node,
                              .side = in->legs[i].side,
                              .type = in->legs[i].type,
                              .partitioner = partitioner,
                              .blocking = in->legs[i].blocking};
    *stream = (leat_stream){.env = env,
                            .kind = LEATI_STREAM_PARTITIONING,
                            .type = in->type,
                            .legs = legs,
                            .leg_count = in->leg_count};
    return stream;
}

static leat_stream *partition(leat_stream *in, leati_partitioner partitioner)
{
    leat_env *env = leati_stream_env(in);
    leat_stream *stream = leati_stream_type(in) ? partitioning_create(in, partitioner) : NULL;
    return stream ? stream : leati_graph_inert(env);
}

leat_stream *leat_forward(leat_stream *in)
{
    return partition(in, LEATI_PARTITION_FORWARD);
}

leat_stream *leat_rebalance(leat_stream *in)
{
    return partition(in, LEATI_PARTITION_REBALANCE);
}

leat_stream *leat_rescale(leat_stream *in)
{
    return partition(in, LEATI_PARTITION_RESCALE);
}

leat_stream *leat_shuffle(leat_stream *in)
{
    return partition(in, LEATI_PARTITION_SHUFFLE);
}

leat_stream *leat_broadcast(leat_stream *in)
{
    return partition(in, LEATI_PARTITION_BROADCAST);
}

leat_stream *leat_global(leat_stream *in)
{
    return partition(in, LEATI_PARTITION_GLOBAL);
}

leat_stream *leat_partition_custom(leat_stream *in, leat_partition_fn fn)
{
    if (!fn) {
        leati_graph_fault(in, LEAT_EINVAL, "leat_partition_custom: the function is NULL");
        return leati_graph_inert(leati_stream_env(in));
    }
    leat_stream *stream = partition(in, LEATI_PARTITION_CUSTOM);
    for (size_t i = 0; i < stream->leg_count; i++)
        stream->legs[i].custom = fn;
    return stream;
}

// Unlike a partitioning it leaves the way of the records, and so a key, as it was.
leat_stream *leat_blocking_exchange(leat_stream *in)
{
    leat_stream *stream = partition(in, LEATI_PARTITION_DEFAULT);
    if (stream->leg_count)
        stream->key = in->key;
    for (size_t i = 0; i < stream->leg_count; i++) {
        stream->legs[i] = in->legs[i];
        stream->legs[i].blocking = true;
    }
    return stream;
}

// --- keys ---

bool leati_type_same_layout(const leat_type *a, const leat_type *b)
{
    if (!a || !b || a == b)
        return a == b;
    if (a->kind != b->kind || a->size != b->size || a->field_count != b->field_count)
        return false;
    for (uint32_t i = 0; i < a->field_count; i++)
        if (a->fields[i].offset != b->fields[i].offset ||
            strcmp(a->fields[i].name, b->fields[i].name) != 0 ||
            !leati_type_same_layout(a->fields[i].type, b->fields[i].type))
            return false;
    return leati_type_same_layout(a->element, b->element) && leati_type_same_layout(a->key, b->key);
}

// The field names as they show in pictures and in the digest: "user, country", whatever the blanks
// around them were. NULL when out of memory.
static char *normal_text(leati_arena *arena, const char *fields)
{
    static const char blanks[] = " \t\n\r";
    if (!fields || !*fields)
        return leati_arena_strdup(arena, "<record>");
    char *text = leati_arena_alloc(arena, 2 * strlen(fields) + 1);
    char *to = text;
    for (const char *name = fields; text;) {
        name += strspn(name, blanks);
        size_t whole = strcspn(name, ","), size = whole;
        while (size > 0 && strchr(blanks, name[size - 1]))
            size--;
        memcpy(to, name, size);
        to += size;
        if (name[whole] == '\0')
            break;
        *to++ = ',';
        *to++ = ' ';
        name += whole + 1;
    }
    return text;
}

// What a call of leat_key_by shares among the selectors for each layout.
typedef struct key_call {
    leat_stream *in;
    const char *fields;
    const char *text;
    leat_key_fn fn; // NULL: by fields
    const leat_type *key_type;
} key_call;

static void refuse_fields(const key_call *call, leat_err err, const char *why, const char *at)
{
    if (err != LEAT_ETYPE) {
        leati_graph_fault(call->in, err, "leat_key_by: %s", why ? why : leat_err_message(err));
        return;
    }
    size_t length = at ? strcspn(at, ",") : 0;
    leati_graph_fault(call->in, err, "leat_key_by(\"%s\"): %s%s%.*s%s; its records are %s",
                      call->fields ? call->fields : "", why ? why : "not a key",
                      length ? ": \"" : "", (int)length, length ? at : "", length ? "\"" : "",
                      leati_fault_type_text(call->in->env, call->in->type));
}

// The selector for records of `type`, one of the layouts of the stream. NULL after a fault.
static const leati_key_selector *selector_create(const key_call *call, const leat_type *type)
{
    leat_env *env = call->in->env;
    leati_key_selector *selector = leati_arena_alloc(&env->arena, sizeof *selector);
    if (!selector) {
        leati_fault_no_memory(env);
        return NULL;
    }
    *selector =
        (leati_key_selector){.fn = call->fn, .key_type = call->key_type, .text = call->text};
    const char *why = NULL, *at = NULL;
    leat_err err =
        leat_key_init(&selector->fields, call->fn ? call->key_type : type, call->fields, &why, &at);
    if (err == LEAT_OK)
        return selector;
    if (call->fn)
        leati_graph_fault(call->in, err, "leat_key_by_fn: its key type cannot be a key: %s",
                          why ? why : leat_err_message(err));
    else
        refuse_fields(call, err, why, at);
    return NULL;
}

// The selector for one leg of the stream: the stream's own unless the leg's records lie differently
// in memory.
static const leati_key_selector *selector_of_leg(const key_call *call, const leat_stream *keyed,
                                                 const leati_leg *leg)
{
    if (leati_type_same_layout(leg->type, keyed->type))
        return keyed->key;
    if (!call->fn)
        return selector_create(call, leg->type);
    leati_fault_add(keyed->env, leg->node, LEAT_ETYPE,
                    "leat_key_by_fn: its records lie differently in memory than those of the "
                    "union's first stream, which the function is for");
    return NULL;
}

static leat_stream *keyed_create(const key_call *call)
{
    leat_stream *keyed = partitioning_create(call->in, LEATI_PARTITION_HASH);
    if (!keyed)
        return NULL;
    keyed->key = selector_create(call, keyed->type);
    if (!keyed->key)
        return NULL;
    for (size_t i = 0; i < keyed->leg_count; i++) {
        keyed->legs[i].key = selector_of_leg(call, keyed, &keyed->legs[i]);
        if (!keyed->legs[i].key)
            return NULL;
    }
    return keyed;
}

leat_stream *leat_key_by(leat_stream *in, const char *fields)
{
    leat_env *env = leati_stream_env(in);
    if (!leati_stream_type(in))
        return leati_graph_inert(env);
    key_call call = {.in = in, .fields = fields, .text = normal_text(&env->arena, fields)};
    leat_stream *keyed = NULL;
    if (call.text)
        keyed = keyed_create(&call);
    else
        leati_fault_no_memory(env);
    return keyed ? keyed : leati_graph_inert(env);
}

leat_stream *leat_key_by_fn(leat_stream *in, leat_key_fn fn, const leat_type *key_type)
{
    leat_env *env = leati_stream_env(in);
    if (!leati_stream_type(in))
        return leati_graph_inert(env);
    const char *why = NULL;
    leat_stream *keyed = NULL;
    if (!fn)
        leati_graph_fault(in, LEAT_EINVAL, "leat_key_by_fn: the function is NULL");
    else if (!key_type)
        leati_graph_fault(in, LEAT_EINVAL, "leat_key_by_fn: the key type is NULL");
    else if (leat_type_check(key_type, &why) != LEAT_OK)
        leati_graph_fault(in, LEAT_ETYPE, "leat_key_by_fn: its key type cannot be a record: %s",
                          why ? why : "invalid");
    else if (leati_graph_hold_type(env, key_type))
        keyed = keyed_create(
            &(key_call){.in = in, .text = "<function>", .fn = fn, .key_type = key_type});
    return keyed ? keyed : leati_graph_inert(env);
}
