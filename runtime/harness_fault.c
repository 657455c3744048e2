// SPDX-License-Identifier: Apache-2.0
// Operators that fail because a test wants it.
//
// The operator's factory is wrapped. What the wrapped one makes gets a table of hooks of its own, a
// copy in which those that take records count them first; the operator itself notices nothing. A
// source's output leads over a stand-in that counts what is emitted.
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "base/alloc.h"
#include "leat/record.h"
#include "runtime/context.h"
#include "runtime/harness_impl.h"

typedef struct wrapping {
    leat_operator_ops ops; // first: the operator's own table points here
    const leat_operator_ops *real;
    leati_harness_fault *fault;
    leat_operator stand_in; // of a source: takes what it emits
    leat_ctx *ctx;
} wrapping;

static wrapping *wrapping_of(const leat_operator *op)
{
    return (wrapping *)op->ops;
}

// Counts a record for all faults of the operator; the one that is due now, or NULL.
static const leati_harness_fault *count_record(const wrapping *w)
{
    const leati_harness_fault *due = NULL;
    for (leati_harness_fault *f = w->fault->harness->faults; f; f = f->next)
        if (f->node == w->fault->node && ++f->seen == f->nth)
            due = f;
    return due;
}

// --- operators with inputs ---

static leat_err fail_for(const leati_harness_fault *fault, leat_ctx *ctx, const void *record)
{
    if (fault->why)
        return leat_reject(ctx, record, "%s", fault->why);
    return leat_reject(ctx, record, "the test lets it fail for record %" PRIu64, fault->nth);
}

static leat_err counted_element(leat_operator *self, const void *record, leat_out *out)
{
    const wrapping *w = wrapping_of(self);
    const leati_harness_fault *due = count_record(w);
    if (due)
        return fail_for(due, self->ctx, record);
    return w->real->element(self, record, out);
}

static leat_err counted_element_of(leat_operator *self, uint32_t input, const void *record,
                                   leat_out *out)
{
    const wrapping *w = wrapping_of(self);
    const leati_harness_fault *due = count_record(w);
    if (due)
        return fail_for(due, self->ctx, record);
    return w->real->element_of(self, input, record, out);
}

// --- sources ---

static wrapping *wrapping_of_stand_in(leat_operator *self)
{
    return (wrapping *)((char *)self - offsetof(wrapping, stand_in));
}

// What a source rejects is raw text; the record as JSON is what there is.
static leat_err fail_to_emit(const leati_harness_fault *fault, leat_ctx *ctx, const void *record)
{
    const leat_type *type = leat_ctx_out_type(ctx);
    size_t size = leat_record_json(type, record, NULL, 0);
    char *text = leat_ctx_scratch(ctx, size);
    if (!text)
        return leati_ctx_error(ctx, LEAT_ENOMEM, "no memory for a rejected record");
    leat_str json = {.data = text, .size = leat_record_json(type, record, text, size)};
    if (fault->why)
        return leat_reject_text(ctx, json, "%s", fault->why);
    return leat_reject_text(ctx, json, "the test lets it fail for record %" PRIu64, fault->nth);
}

static leat_err stand_in_element(leat_operator *self, const void *record, leat_out *out)
{
    const wrapping *w = wrapping_of_stand_in(self);
    const leati_harness_fault *due = count_record(w);
    return due ? fail_to_emit(due, w->ctx, record) : leat_collect(out, record);
}

static leat_err stand_in_watermark(leat_operator *self, int64_t watermark, leat_out *out)
{
    return leat_emit_watermark(out, watermark);
}

static void stand_in_dispose(leat_operator *self)
{
}

static const leat_operator_ops stand_in_ops = {
    .kind = "stand-in",
    .element = stand_in_element,
    .watermark = stand_in_watermark,
    .dispose = stand_in_dispose,
};

static leat_err counted_poll(leat_operator *self, leat_out *out, uint32_t max_records,
                             leat_poll *state)
{
    wrapping *w = wrapping_of(self);
    leat_out over = {.element = stand_in_element,
                     .target = &w->stand_in,
                     .next = out,
                     .stopping = out->stopping};
    return w->real->poll(self, &over, max_records, state);
}

// --- wrapping ---

static void wrapped_dispose(leat_operator *self)
{
    wrapping *w = wrapping_of(self);
    const leat_allocator *allocator = w->fault->harness->allocator;
    w->real->dispose(self);
    leati_free(allocator, w);
}

static leat_err wrapped_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    leati_harness_fault *fault = (leati_harness_fault *)factory->config;
    const leat_allocator *allocator = fault->harness->allocator;
    wrapping *w = leati_calloc(allocator, 1, sizeof *w);
    if (!w)
        return LEAT_ENOMEM;
    leat_err err = fault->factory.create(&fault->factory, ctx, op);
    if (err) {
        leati_free(allocator, w);
        return err;
    }
    *w = (wrapping){.ops = *(*op)->ops,
                    .real = (*op)->ops,
                    .fault = fault,
                    .stand_in = {.ops = &stand_in_ops},
                    .ctx = ctx};
    w->ops.element = w->real->element ? counted_element : NULL;
    w->ops.elements = NULL; // each goes through `element`
    w->ops.element_of = w->real->element_of ? counted_element_of : NULL;
    w->ops.poll = w->real->poll ? counted_poll : NULL;
    w->ops.dispose = wrapped_dispose;
    (*op)->ops = &w->ops;
    return LEAT_OK;
}

static void wrapped_job_over(const void *config)
{
    const leati_harness_fault *fault = config;
    fault->job_over(fault->factory.config);
}

void leati_harness_set_faults(leat_harness *h)
{
    for (leati_harness_fault *fault = h->faults; fault; fault = fault->next) {
        leati_node *node = fault->node;
        if (node->factory.create == wrapped_create)
            continue; // by another fault, which counts for this one
        fault->factory = node->factory;
        fault->job_over = node->job_over;
        node->factory = (leat_factory){.create = wrapped_create, .config = fault};
        node->job_over = fault->job_over ? wrapped_job_over : NULL;
    }
}

void leati_harness_free_faults(leat_harness *h)
{
    while (h->faults) {
        leati_harness_fault *fault = h->faults;
        h->faults = fault->next;
        leati_free(h->allocator, fault->why);
        leati_free(h->allocator, fault);
    }
}

leat_err leat_harness_fail_operator(leat_harness *h, const char *name, uint64_t nth,
                                    const char *why)
{
    leati_node *node;
    if (nth == 0)
        return leati_harness_fail(h, LEAT_EINVAL, "records are counted from 1");
    leat_err err = leati_harness_find(h, name, &node);
    if (err)
        return err;
    leati_harness_fault *fault = leati_calloc(h->allocator, 1, sizeof *fault);
    char *copy = fault && why ? leati_strdup(h->allocator, why) : NULL;
    if (!fault || (why && !copy)) {
        leati_free(h->allocator, fault);
        return leati_harness_fail(h, LEAT_ENOMEM, "no memory for the fault");
    }
    *fault = (leati_harness_fault){
        .harness = h, .nth = nth, .why = copy, .node = node, .next = h->faults};
    h->faults = fault;
    return LEAT_OK;
}
