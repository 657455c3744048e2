// SPDX-License-Identifier: Apache-2.0
// How elements get into a chain: from the gate's channels, or by polling a source.
#include <inttypes.h>

#include "base/alloc.h"
#include "leat/record.h"
#include "leat/record_codec.h"
#include "runtime/context.h"
#include "runtime/task.h"

// Sources that make the chain use scratch memory are polled in small pieces, because it is freed
// after the poll only.
enum { SCRATCH_BATCH = 32 };

// Whether decoding builds values beside the record.
static bool builds_values(const leat_type *type)
{
    if (type->kind == LEAT_LIST || type->kind == LEAT_MAP || type->kind == LEAT_OPTIONAL)
        return true;
    for (uint32_t i = 0; i < type->field_count; i++)
        if (builds_values(type->fields[i].type))
            return true;
    return false;
}

static leat_err port_init(leati_task_port *port, const leat_allocator *allocator,
                          const leat_type *type, uint32_t first, uint32_t channels)
{
    *port = (leati_task_port){.type = type, .first = first, .channels = channels, .open = channels};
    if (channels == 0)
        return LEAT_OK;
    port->record = leati_calloc(allocator, LEATI_INPUT_BATCH, type->size);
    port->uses_scratch = builds_values(type);
    return port->record ? leati_valve_create(allocator, channels, &port->valve) : LEAT_ENOMEM;
}

leat_err leati_input_init(leati_task_input *input, const leat_allocator *allocator,
                          uint32_t port_count, const leat_type *const *types,
                          const uint32_t *channels, leati_waiter *waiter)
{
    input->ports = leati_calloc(allocator, port_count, sizeof *input->ports);
    if (!input->ports)
        return LEAT_ENOMEM;
    leat_err err = LEAT_OK;
    for (uint32_t i = 0; i < port_count && !err; i++) {
        err = port_init(&input->ports[i], allocator, types[i], input->channels, channels[i]);
        input->channels += channels[i];
        input->port_count++;
    }
    input->open = input->channels;
    if (err || input->channels == 0)
        return err;
    input->readers = leati_calloc(allocator, input->channels, sizeof *input->readers);
    input->port_of = leati_calloc(allocator, input->channels, sizeof *input->port_of);
    input->ended = leati_calloc(allocator, input->channels, sizeof *input->ended);
    if (!input->readers || !input->port_of || !input->ended)
        return LEAT_ENOMEM;
    for (uint32_t i = 0; i < port_count; i++)
        for (uint32_t c = 0; c < channels[i]; c++)
            input->port_of[input->ports[i].first + c] = i;
    return leati_gate_create(allocator, waiter, input->channels, &input->gate);
}

void leati_input_fini(leati_task_input *input, const leat_allocator *allocator)
{
    for (uint32_t i = 0; input->readers && i < input->channels; i++)
        if (input->readers[i].channel)
            leati_reader_fini(&input->readers[i]);
    for (uint32_t i = 0; i < input->port_count; i++) {
        leati_free(allocator, input->ports[i].record);
        leati_valve_destroy(&input->ports[i].valve);
    }
    leati_free(allocator, input->readers);
    leati_free(allocator, input->port_of);
    leati_free(allocator, input->ended);
    leati_free(allocator, input->ports);
    leati_gate_destroy(&input->gate);
}

void leati_input_join(leati_task *t)
{
    for (uint32_t i = 0; i < t->input.port_count; i++)
        t->input.ports[i].to = leati_chain_entry(&t->chain, i);
}

static void reset_scratch(leati_task *t)
{
    leat_scratch_reset(t->scratch);
    t->scratch_used = false;
}

static leat_err input_error(leati_task *t, leat_err err, const leati_reader *reader,
                            const char *what)
{
    return leati_ctx_error(&t->chain.ctx[0], err,
                           "after %" PRIu64 " records, on input channel %u: %s", t->input.records,
                           leati_channel_index(reader->channel), what);
}

// --- what is not a record ---

static leat_err apply_valve(leati_task *t, leati_task_port *port, leati_valve_output out)
{
    if (!out.watermark_advanced)
        return LEAT_OK;
    // What a watermark makes an operator emit has nothing to do with the record before it.
    t->time = (leati_record_time){.timestamp = INT64_MIN};
    return leat_emit_watermark(&port->to, out.watermark);
}

static leat_err take_control(leati_task *t, leati_task_port *port, const leati_reader *reader,
                             const leati_element *element)
{
    uint32_t channel = leati_channel_index(reader->channel) - port->first;
    switch (element->tag) {
    case LEATI_TAG_WATERMARK:
        if (element->size == 8)
            return apply_valve(t, port,
                               leati_valve_watermark(port->valve, channel,
                                                     leati_element_get_i64(element->payload)));
        break;
    case LEATI_TAG_STATUS:
        if (element->size == 1)
            return apply_valve(t, port,
                               leati_valve_status(port->valve, channel, element->payload[0] != 0));
        break;
    default:
        break;
    }
    return input_error(t, LEAT_ECORRUPT, reader, "an element that is none");
}

// The last channel of an input of several has ended.
static leat_err end_port(leati_task *t, const leati_task_port *port)
{
    uint32_t input = (uint32_t)(port - t->input.ports);
    return t->input.port_count > 1 ? leati_chain_input_ended(&t->chain, input) : LEAT_OK;
}

static leat_err take_event(leati_task *t, leati_task_port *port, const leati_reader *reader,
                           const leati_event *event)
{
    leat_err err;
    switch (event->tag) {
    case LEATI_TAG_END_OF_DATA:
        return LEAT_OK;
    case LEATI_TAG_END_OF_PARTITION:
        atomic_store_explicit(&t->input.ended[leati_channel_index(reader->channel)], true,
                              memory_order_relaxed);
        t->input.open--;
        port->open--;
        err = apply_valve(
            t, port,
            leati_valve_finished(port->valve, leati_channel_index(reader->channel) - port->first));
        return err || port->open ? err : end_port(t, port);
    default:
        return input_error(t, LEAT_ECORRUPT, reader, "an event that is none");
    }
}

// --- records ---

// Compiled decoders of types that need no memory are called without a detour; what they refuse goes
// the long way once more, which tells why.
static inline leat_err decode(leati_task *t, const leati_task_port *port, leat_decoder *decoder,
                              const uint8_t *payload, uint32_t size, void *to)
{
    const leat_type *type = port->type;
    if (LEAT_LIKELY(type->codec && !port->uses_scratch && size > 0)) {
        const uint8_t *end = payload + size;
        if (LEAT_LIKELY(type->codec->decode(type, payload, end, to, decoder) == end))
            return LEAT_OK;
    }
    return leat_record_decode(type, payload, size, to, t->scratch);
}

static inline leat_err take_record(leati_task *t, leati_task_port *port, const leati_reader *reader,
                                   leati_element *element)
{
    t->time.present = element->tag == LEATI_TAG_RECORD_AT;
    if (t->time.present) {
        if (LEAT_UNLIKELY(element->size < 8))
            return input_error(t, LEAT_ECORRUPT, reader, "a record shorter than its timestamp");
        t->time.timestamp = leati_element_get_i64(element->payload);
        element->payload += 8;
        element->size -= 8;
    }
    leat_decoder decoder = {.err = LEAT_ECORRUPT};
    leat_err err = decode(t, port, &decoder, element->payload, element->size, port->record);
    if (LEAT_UNLIKELY(err))
        return input_error(t, err, reader, "a record that cannot be decoded");
    t->input.records++;
    err = leat_collect(&port->to, port->record);
    if (t->scratch_used || port->uses_scratch)
        reset_scratch(t);
    return err;
}

// Segments that come from afar are not in the nearest caches, and what the processor fetches by
// itself begins anew with each page and lags behind a loop that does so little for each record. So
// the lines some records ahead are asked for; that may be beyond the segment, which does no harm.
static inline void look_ahead(const uint8_t *at, uint32_t size)
{
    enum { AHEAD = 6 * LEATI_CACHE_LINE };
    __builtin_prefetch(at + AHEAD);
    if (size > LEATI_CACHE_LINE)
        __builtin_prefetch(at + AHEAD + LEATI_CACHE_LINE);
}

// The payload of a whole record without timestamp that begins at `*at`, which goes behind it; or
// NULL.
static inline const uint8_t *next_plain_record(const uint8_t **at, const uint8_t *end,
                                               uint32_t *size)
{
    size_t left = (size_t)(end - *at);
    if (left < LEATI_ELEMENT_HEADER)
        return NULL;
    uint32_t header = leati_element_get_header(*at);
    *size = header >> 4;
    if ((header & 15) != LEATI_TAG_RECORD || *size > left - LEATI_ELEMENT_HEADER)
        return NULL;
    const uint8_t *payload = *at + LEATI_ELEMENT_HEADER;
    *at = payload + *size;
    look_ahead(*at, *size);
    return payload;
}

// The common case, flat: records without timestamp that are decoded without memory beside them.
// Returns when what is next is anything else, or nothing may be started any more.
static leat_err take_plain(leati_task *t, leati_task_port *port, leati_reader *reader,
                           uint32_t *budget)
{
    void *record = port->record;
    uint32_t size;
    const uint8_t *payload;
    leat_err err = LEAT_OK;
    t->time.present = false;
    while (*budget > 0 && !err && !t->allowance.unsure && !leati_task_hurries(t) &&
           (payload = next_plain_record(&reader->at, reader->end, &size))) {
        leat_decoder decoder = {.err = LEAT_ECORRUPT};
        --*budget;
        err = decode(t, port, &decoder, payload, size, record);
        if (LEAT_UNLIKELY(err))
            return input_error(t, err, reader, "a record that cannot be decoded");
        t->input.records++;
        err = leat_collect(&port->to, record);
        if (t->scratch_used)
            reset_scratch(t);
    }
    return err;
}

// Gives several records to an operator that can take them. Their bytes stay where they are until
// the channel is looked at again, so they may be decoded before the first is processed.
static leat_err take_batch(leati_task *t, leati_task_port *port, leati_reader *reader,
                           uint32_t *budget)
{
    leat_operator *head = port->to.target;
    uint32_t most = *budget < LEATI_INPUT_BATCH ? *budget : LEATI_INPUT_BATCH;
    uint32_t count = 0, size, step = port->type->size;
    // What other code may change is read once.
    const uint8_t *payload, *at = reader->at, *end = reader->end;
    char *to = port->record;
    leat_decoder decoder = {.err = LEAT_ECORRUPT};
    while (count < most && (payload = next_plain_record(&at, end, &size))) {
        leat_err err = decode(t, port, &decoder, payload, size, to);
        if (LEAT_UNLIKELY(err))
            return input_error(t, err, reader, "a record that cannot be decoded");
        to += step;
        count++;
    }
    reader->at = at;
    if (count == 0)
        return LEAT_OK;
    *budget -= count;
    t->input.records += count;
    t->time.present = false;
    leat_err err = head->ops->elements(head, port->record, count, port->to.next);
    if (t->scratch_used || port->uses_scratch)
        reset_scratch(t);
    return err;
}

static leat_err reader_error(leati_task *t, const leati_reader *reader, leati_read why)
{
    switch (why) {
    case LEATI_READ_TOO_BIG:
        return input_error(t, LEAT_ETOOBIG, reader, "a record larger than record.max-size");
    case LEATI_READ_FAILED:
        return input_error(t, LEAT_EIO, reader,
                           "what a blocking exchange has kept in a temporary file cannot be read");
    case LEATI_READ_NO_MEMORY:
        return input_error(t, LEAT_ENOMEM, reader, "no memory to gather a record");
    default:
        return input_error(t, LEAT_ECORRUPT, reader, "bytes that are no elements");
    }
}

// Reads one channel until it is empty, the budget is used up or output may have become unavailable.
// `*empty` says that nothing is left for now.
static leat_err read_channel(leati_task *t, leati_reader *reader, uint32_t *budget, bool *empty)
{
    leati_element element;
    leati_task_port *port = &t->input.ports[t->input.port_of[leati_channel_index(reader->channel)]];
    bool batches = port->to.target->ops->elements != NULL;
    while (*budget > 0 && !t->allowance.unsure && !leati_task_hurries(t)) {
        uint32_t before = *budget;
        leat_err err = LEAT_OK;
        if (batches)
            err = take_batch(t, port, reader, budget);
        else if (!port->uses_scratch)
            err = take_plain(t, port, reader, budget);
        if (LEAT_UNLIKELY(err))
            return err;
        // What ended the loop may be what ends this one.
        if (!batches && *budget != before)
            continue;
        if (batches && leati_task_is_stopping(t))
            return LEAT_ECANCELLED;
        if (*budget == 0)
            break;
        leati_read got = leati_reader_next(reader, &element);
        if (LEAT_LIKELY(got == LEATI_READ_ELEMENT && element.tag <= LEATI_TAG_RECORD_AT)) {
            --*budget;
            err = take_record(t, port, reader, &element);
        } else if (got == LEATI_READ_ELEMENT) {
            err = take_control(t, port, reader, &element);
        } else if (got == LEATI_READ_EVENT) {
            err = take_event(t, port, reader, &element.event);
        } else if (got == LEATI_READ_NONE) {
            *empty = true;
            return LEAT_OK;
        } else {
            err = reader_error(t, reader, got);
        }
        if (LEAT_UNLIKELY(err))
            return err;
    }
    return LEAT_OK;
}

static void give_back(leati_task_input *in, bool more)
{
    leati_gate_done(in->gate, in->current, more);
    in->current = NULL;
}

leat_err leati_input_step(leati_task *t, uint32_t max, leati_step *step)
{
    leati_task_input *in = &t->input;
    while (in->open > 0) {
        *step = LEATI_STEP_BLOCKED;
        if (t->allowance.unsure && !leati_task_output_available(t))
            return LEAT_OK;
        *step = LEATI_STEP_MORE;
        if (max == 0 || leati_task_hurries(t))
            return LEAT_OK;
        *step = LEATI_STEP_IDLE;
        in->current = leati_gate_poll(in->gate);
        if (!in->current)
            return LEAT_OK;
        bool empty = false;
        leati_reader *reader = &in->readers[leati_channel_index(in->current)];
        leat_err err = read_channel(t, reader, &max, &empty);
        give_back(in, !empty);
        if (err)
            return err;
    }
    *step = LEATI_STEP_END;
    return LEAT_OK;
}

// Polls the source that is operator `op` of the chain.
static leat_err poll_source(leati_task *t, uint32_t op, uint32_t max, leat_poll *state)
{
    leat_operator *source = t->chain.ctx[op].op;
    *state = LEAT_POLL_MORE;
    t->time.present = false;
    leat_err err = source->ops->poll(source, &t->chain.outs[op], max, state);
    if (t->scratch_used) {
        reset_scratch(t);
        if (t->batch > SCRATCH_BATCH)
            t->batch = SCRATCH_BATCH;
    }
    return err;
}

leat_err leati_source_step(leati_task *t, uint32_t max, leati_step *step)
{
    *step = LEATI_STEP_END;
    if (t->source_ended)
        return LEAT_OK;
    *step = LEATI_STEP_BLOCKED;
    if (t->allowance.unsure && !leati_task_output_available(t))
        return LEAT_OK;
    leat_poll state;
    leat_err err = poll_source(t, 0, max, &state);
    if (err)
        return err;
    t->source_ended = state == LEAT_POLL_END;
    *step = state == LEAT_POLL_MORE   ? LEATI_STEP_MORE
            : state == LEAT_POLL_WAIT ? LEATI_STEP_IDLE
                                      : LEATI_STEP_END;
    return LEAT_OK;
}

// An absorbed source has ended: the input that it feeds has.
static leat_err end_source(leati_task *t, uint32_t op)
{
    t->ended_sources++;
    t->chain.ctx[op].ended = true;
    t->time = (leati_record_time){.timestamp = INT64_MIN};
    leat_err err = leat_emit_watermark(&t->chain.outs[op], LEAT_WATERMARK_MAX);
    return err ? err : leati_chain_input_ended(&t->chain, t->chain.vertex->ops[op].absorbed_input);
}

// One round: each source, then the exchanges. `*more` says whether any of them has more at once.
static leat_err mixed_round(leati_task *t, uint32_t max, leati_step *step, bool *more)
{
    *more = false;
    for (uint32_t op = t->chain.tree; op < t->chain.count; op++) {
        if (t->chain.ctx[op].ended)
            continue;
        *step = LEATI_STEP_BLOCKED;
        if (t->allowance.unsure && !leati_task_output_available(t))
            return LEAT_OK;
        leat_poll state;
        leat_err err = poll_source(t, op, max, &state);
        if (!err && state == LEAT_POLL_END)
            err = end_source(t, op);
        if (err)
            return err;
        *more |= state == LEAT_POLL_MORE;
    }
    leat_operator *head = leati_chain_head(&t->chain);
    *step = LEATI_STEP_IDLE;
    if (t->input.open == 0 || (head->ops->accepts && !head->ops->accepts(head)))
        return LEAT_OK;
    uint32_t open = t->input.open;
    leat_err err = leati_input_step(t, max, step);
    // What the head learns from an input's end may be what a source has waited for.
    *more |= *step == LEATI_STEP_MORE || t->input.open != open;
    return err;
}

leat_err leati_mixed_step(leati_task *t, uint32_t max, leati_step *step)
{
    bool more;
    leat_err err = mixed_round(t, max, step, &more);
    if (err || *step == LEATI_STEP_BLOCKED)
        return err;
    if (t->input.open == 0 && t->ended_sources == t->chain.count - t->chain.tree)
        *step = LEATI_STEP_END;
    else
        *step = more ? LEATI_STEP_MORE : LEATI_STEP_IDLE;
    return LEAT_OK;
}
