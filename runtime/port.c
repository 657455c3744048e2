// SPDX-License-Identifier: Apache-2.0
// The inputs of a head that has several. A port looks like an operator to whoever feeds it, a
// reader or an absorbed source, and tells the head which input the record came by. The head's event
// time is the smallest of its inputs'.
#include "base/alloc.h"
#include "runtime/task.h"

static leat_err port_element(leat_operator *self, const void *record, leat_out *out)
{
    const leati_port *port = (const leati_port *)self;
    port->head->input = port->input;
    port->head->task->reject_ctx = NULL;
    return port->head->op->ops->element_of(port->head->op, port->input, record, port->out);
}

static int64_t smallest(const leati_port *ports, uint32_t count)
{
    int64_t least = LEAT_WATERMARK_MAX;
    bool open = false; // an input without event time has not ended
    for (uint32_t i = 0; i < count; i++) {
        open |= ports[i].timeless && ports[i].watermark != LEAT_WATERMARK_MAX;
        if (!ports[i].timeless && ports[i].watermark < least)
            least = ports[i].watermark;
    }
    return open && least == LEAT_WATERMARK_MAX ? LEAT_WATERMARK_MIN : least;
}

static leat_err port_watermark(leat_operator *self, int64_t watermark, leat_out *out)
{
    leati_port *port = (leati_port *)self;
    leat_ctx *head = port->head;
    if (watermark <= port->watermark)
        return LEAT_OK;
    port->watermark = watermark;
    int64_t least = smallest(port - port->input, head->node->input_count);
    if (least <= head->watermark)
        return LEAT_OK;
    leat_out to_head = {.target = head->op, .next = port->out};
    return leat_emit_watermark(&to_head, least);
}

static void port_dispose(leat_operator *self)
{
}

static const leat_operator_ops port_ops = {
    .kind = "input",
    .element = port_element,
    .watermark = port_watermark,
    .dispose = port_dispose,
};

leat_err leati_chain_make_ports(leati_chain *chain)
{
    const leati_node *node = chain->vertex->ops[0].node;
    if (node->input_count < 2)
        return LEAT_OK;
    chain->ports = leati_calloc(chain->allocator, node->input_count, sizeof *chain->ports);
    if (!chain->ports)
        return LEAT_ENOMEM;
    for (uint32_t i = 0; i < node->input_count; i++)
        chain->ports[i] = (leati_port){.base = {.ops = &port_ops},
                                       .head = &chain->ctx[0],
                                       .out = &chain->outs[0],
                                       .input = i,
                                       .watermark = LEAT_WATERMARK_MIN};
    for (uint32_t i = chain->tree; i < chain->count; i++)
        if (chain->vertex->ops[i].flags & LEATI_NODE_FEEDBACK)
            chain->ports[chain->vertex->ops[i].absorbed_input].timeless = true;
    return LEAT_OK;
}
