// SPDX-License-Identifier: Apache-2.0
// A variable's records lie one after the other in an array that grows; what they point to lies in
// an arena of the variable, where it stays.
#include "runtime/broadcast.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/strbuf.h"
#include "leat/broadcast.h"
#include "leat/record.h"
#include "runtime/context.h"
#include "runtime/execution.h"

typedef struct variable {
    const char *name; // of the graph
    const leat_type *type;
    void *records; // never NULL, so that an empty variable is one
    size_t count, capacity;
    leati_arena texts; // what the records point to
    size_t text_bytes;
} variable;

struct leati_broadcasts {
    leati_task *task;
    leati_task_input input; // a port a variable
    variable *variables;
    uint32_t variable_count;
    leat_scratch *scratch;
    size_t most_bytes;
};

// --- life ---

static leat_err init_variables(leati_broadcasts *b, const leati_node *node)
{
    const leat_allocator *allocator = b->task->allocator;
    b->variables = leati_calloc(allocator, node->variable_count, sizeof *b->variables);
    if (!b->variables)
        return LEAT_ENOMEM;
    for (uint32_t i = 0; i < node->variable_count; i++) {
        variable *v = &b->variables[b->variable_count++];
        v->name = node->variables[i].name;
        v->type = node->variables[i].type;
        leati_arena_init(&v->texts, allocator);
        if (!leati_grow(allocator, &v->records, &v->capacity, 1, v->type->size))
            return LEAT_ENOMEM;
    }
    return LEAT_OK;
}

static leat_err init_input(leati_broadcasts *b, const uint32_t *channels)
{
    const leat_allocator *allocator = b->task->allocator;
    const leat_type **types = leati_calloc(allocator, b->variable_count, sizeof *types);
    if (!types)
        return LEAT_ENOMEM;
    for (uint32_t i = 0; i < b->variable_count; i++)
        types[i] = b->variables[i].type;
    leat_err err = leati_input_init(&b->input, allocator, b->variable_count, types, channels,
                                    &b->task->waiter);
    leati_free(allocator, types);
    return err;
}

leat_err leati_broadcasts_create(leati_task *task, const uint32_t *channels,
                                 leati_broadcasts **broadcasts)
{
    leati_broadcasts *b = leati_calloc(task->allocator, 1, sizeof *b);
    if (!b)
        return LEAT_ENOMEM;
    b->task = task;
    b->most_bytes = (size_t)leati_config_get(&task->job->config, LEATI_CONFIG_BROADCAST_MEMORY);
    leat_err err = init_variables(b, task->vertex->ops[0].node);
    if (!err)
        err = leat_scratch_create(task->allocator, &b->scratch);
    if (!err)
        err = init_input(b, channels);
    if (err)
        leati_broadcasts_destroy(&b);
    else
        *broadcasts = b;
    return err;
}

void leati_broadcasts_destroy(leati_broadcasts **broadcasts)
{
    leati_broadcasts *b = *broadcasts;
    if (!b)
        return;
    const leat_allocator *allocator = b->task->allocator;
    leati_input_fini(&b->input, allocator);
    for (uint32_t i = 0; i < b->variable_count; i++) {
        leati_free(allocator, b->variables[i].records);
        leati_arena_fini(&b->variables[i].texts);
    }
    leati_free(allocator, b->variables);
    leat_scratch_destroy(&b->scratch);
    leati_free(allocator, b);
    *broadcasts = NULL;
}

leati_task_input *leati_broadcasts_input(leati_broadcasts *b)
{
    return &b->input;
}

// --- taking records ---

static leat_err variable_error(const leati_broadcasts *b, const variable *v, leat_err err,
                               const char *what)
{
    return leati_ctx_error(&b->task->chain.ctx[0], err, "broadcast variable \"%s\": %s", v->name,
                           what);
}

static leat_err keep(leati_broadcasts *b, variable *v, const void *record)
{
    size_t extra = leat_record_extra_size(v->type, record);
    size_t bytes = (v->count + 1) * v->type->size + v->text_bytes + extra;
    if (bytes > b->most_bytes)
        return leati_ctx_error(&b->task->chain.ctx[0], LEAT_ETOOBIG,
                               "broadcast variable \"%s\": its records take more than "
                               "broadcast.memory, which is %zu bytes: %zu of them fit",
                               v->name, b->most_bytes, v->count);
    void *texts = extra ? leati_arena_alloc(&v->texts, extra) : NULL;
    if ((extra && !texts) ||
        !leati_grow(b->task->allocator, &v->records, &v->capacity, v->count + 1, v->type->size))
        return variable_error(b, v, LEAT_ENOMEM, "out of memory");
    leat_record_copy_into(v->type, record, (char *)v->records + v->count * v->type->size, texts);
    v->count++;
    v->text_bytes += extra;
    return LEAT_OK;
}

static leat_err take_record(leati_broadcasts *b, uint32_t index, leati_element *element)
{
    variable *v = &b->variables[index];
    void *record = b->input.ports[index].record;
    if (element->tag == LEATI_TAG_RECORD_AT) {
        if (element->size < 8)
            return variable_error(b, v, LEAT_ECORRUPT, "a record shorter than its timestamp");
        element->payload += 8;
        element->size -= 8;
    }
    leat_err err = leat_record_decode(v->type, element->payload, element->size, record, b->scratch);
    if (err)
        return variable_error(b, v, err, "a record that cannot be decoded");
    b->input.records++;
    err = keep(b, v, record);
    leat_scratch_reset(b->scratch);
    return err;
}

static void take_event(leati_broadcasts *b, uint32_t index, const leati_reader *reader,
                       const leati_event *event)
{
    if (event->tag != LEATI_TAG_END_OF_PARTITION)
        return;
    // Read by whoever asks what the task waits for.
    atomic_store_explicit(&b->input.ended[leati_channel_index(reader->channel)], true,
                          memory_order_relaxed);
    b->input.open--;
    b->input.ports[index].open--;
}

static const char *reader_failure(leati_read got, leat_err *err)
{
    switch (got) {
    case LEATI_READ_TOO_BIG:
        *err = LEAT_ETOOBIG;
        return "a record larger than record.max-size";
    case LEATI_READ_FAILED:
        *err = LEAT_EIO;
        return "what a blocking exchange has kept in a temporary file cannot be read";
    case LEATI_READ_NO_MEMORY:
        *err = LEAT_ENOMEM;
        return "no memory to gather a record";
    default:
        *err = LEAT_ECORRUPT;
        return "bytes that are no elements";
    }
}

// Reads one channel until it is empty or the budget is used up. Watermarks mean nothing here.
static leat_err read_channel(leati_broadcasts *b, leati_reader *reader, uint32_t *budget,
                             bool *empty)
{
    uint32_t index = b->input.port_of[leati_channel_index(reader->channel)];
    while (*budget > 0) {
        leati_element element;
        leat_err err = LEAT_OK;
        leati_read got = leati_reader_next(reader, &element);
        if (got == LEATI_READ_NONE) {
            *empty = true;
            return LEAT_OK;
        }
        if (got == LEATI_READ_ELEMENT && element.tag <= LEATI_TAG_RECORD_AT) {
            --*budget;
            err = take_record(b, index, &element);
        } else if (got == LEATI_READ_EVENT) {
            take_event(b, index, reader, &element.event);
        } else if (got != LEATI_READ_ELEMENT) {
            const char *what = reader_failure(got, &err);
            err = variable_error(b, &b->variables[index], err, what);
        }
        if (err)
            return err;
    }
    return LEAT_OK;
}

leat_err leati_broadcasts_step(leati_broadcasts *b, uint32_t max, leati_step *step)
{
    leati_task_input *in = &b->input;
    while (in->open > 0) {
        *step = LEATI_STEP_MORE;
        if (max == 0)
            return LEAT_OK;
        *step = LEATI_STEP_IDLE;
        in->current = leati_gate_poll(in->gate);
        if (!in->current)
            return LEAT_OK;
        bool empty = false;
        leat_err err =
            read_channel(b, &in->readers[leati_channel_index(in->current)], &max, &empty);
        leati_gate_done(in->gate, in->current, !empty);
        in->current = NULL;
        if (err)
            return err;
    }
    *step = LEATI_STEP_END;
    return LEAT_OK;
}

// --- the user's side ---

static void unknown(leat_ctx *ctx, const char *name)
{
    leati_strbuf names;
    leati_strbuf_init(&names, leat_ctx_allocator(ctx));
    for (uint32_t i = 0; i < ctx->node->variable_count; i++)
        leati_strbuf_printf(&names, "%s\"%s\"", i ? ", " : "", ctx->node->variables[i].name);
    (void)leat_fail(ctx, "it has no broadcast variable \"%s\"%s%s", name,
                    names.size ? ", but " : " (leat_broadcast_variable gives it one)",
                    leati_strbuf_text(&names));
    leati_strbuf_fini(&names);
}

const void *leat_ctx_broadcast(leat_ctx *ctx, const char *name, size_t *count)
{
    const leati_broadcasts *b = ctx->node->variable_count ? ctx->task->broadcasts : NULL;
    for (uint32_t i = 0; b && name && i < b->variable_count; i++)
        if (strcmp(b->variables[i].name, name) == 0) {
            *count = b->variables[i].count;
            return b->variables[i].records;
        }
    unknown(ctx, name ? name : "");
    return NULL;
}
