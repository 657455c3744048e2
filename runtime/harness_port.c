// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs of the test harness: a source and a sink with lists that the test fills and
// reads.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "leat/record.h"
#include "runtime/context.h"
#include "runtime/harness_impl.h"

// --- ports ---

static leati_harness_port *find(const leat_harness *h, const char *name, bool is_output)
{
    if (!name)
        return NULL;
    for (leati_harness_port *port = h->ports; port; port = port->next_port)
        if (port->is_output == is_output && strcmp(port->name, name) == 0)
            return port;
    return NULL;
}

// Appends what there is instead, in the order of making.
static void list_names(leati_strbuf *text, const leati_harness_port *port, bool is_output)
{
    if (!port)
        return;
    list_names(text, port->next_port, is_output);
    if (port->is_output == is_output)
        leati_strbuf_printf(text, "%s\"%s\"", text->size ? ", " : "", port->name);
}

static leat_err find_or_say(leat_harness *h, const char *name, bool is_output,
                            leati_harness_port **port)
{
    const char *kind = is_output ? "output" : "input";
    *port = name ? find(h, name, is_output) : NULL;
    if (*port)
        return LEAT_OK;
    leati_strbuf text;
    leati_strbuf_init(&text, h->allocator);
    list_names(&text, h->ports, is_output);
    leati_harness_fail(h, LEAT_ENOENT, "there is no %s \"%s\"; there is %s", kind, name ? name : "",
                       text.size ? leati_strbuf_text(&text) : "none");
    leati_strbuf_fini(&text);
    return LEAT_ENOENT;
}

static leati_harness_port *make_port(leat_harness *h, const char *name, const leat_type *type,
                                     bool is_output)
{
    leati_harness_port *port = leati_calloc(h->allocator, 1, sizeof *port);
    char *copy = port ? leati_strdup(h->allocator, name) : NULL;
    if (!copy) {
        leati_free(h->allocator, port);
        return NULL;
    }
    *port = (leati_harness_port){
        .harness = h, .name = copy, .type = type, .is_output = is_output, .next_port = h->ports};
    leati_strbuf_init(&port->text, h->allocator);
    h->ports = port;
    return port;
}

static void clear(leati_harness_port *port)
{
    for (size_t i = 0; i < port->count; i++)
        leat_record_free(port->harness->allocator, (void *)port->items[i].record);
    port->count = port->next = 0;
}

void leati_harness_free_ports(leat_harness *h)
{
    while (h->ports) {
        leati_harness_port *port = h->ports;
        h->ports = port->next_port;
        clear(port);
        leati_strbuf_fini(&port->text);
        leati_free(h->allocator, port->items);
        leati_free(h->allocator, port->name);
        leati_free(h->allocator, port);
    }
}

// Appends a copy. LEAT_ENOMEM.
static leat_err append(leati_harness_port *port, const leat_test_element *element)
{
    const leat_allocator *allocator = port->harness->allocator;
    if (!leati_grow(allocator, (void **)&port->items, &port->capacity, port->count + 1,
                    sizeof *port->items))
        return LEAT_ENOMEM;
    leat_test_element *item = &port->items[port->count];
    *item = *element;
    if (element->record) {
        void *copy;
        leat_err err = leat_record_copy(allocator, port->type, element->record, &copy);
        if (err)
            return err;
        item->record = copy;
    }
    port->count++;
    return LEAT_OK;
}

static void *make_operator(const leati_harness_port *port, size_t size_bytes)
{
    return leati_calloc(port->harness->allocator, 1, size_bytes);
}

// --- the source ---

typedef struct input_operator {
    leat_operator base;
    leati_harness_port *port;
} input_operator;

static leat_err input_open(leat_operator *self)
{
    ((input_operator *)self)->port->waker = leat_ctx_waker(self->ctx);
    return LEAT_OK;
}

static leat_err emit(leat_ctx *ctx, leat_out *out, const leat_test_element *e)
{
    if (e->kind == LEAT_ELEMENT_WATERMARK)
        return leat_emit_watermark(out, e->time);
    return e->has_timestamp ? leat_collect_at(ctx, out, e->record, e->time)
                            : leat_collect(out, e->record);
}

static leat_err input_poll(leat_operator *self, leat_out *out, uint32_t max_records,
                           leat_poll *state)
{
    leati_harness_port *port = ((input_operator *)self)->port;
    leat_err err = LEAT_OK;
    uint32_t taken = 0;
    *state = LEAT_POLL_MORE;
    while (!err && port->next < port->count && taken < max_records &&
           (taken == 0 || leat_out_available(self->ctx))) {
        // A function of the job may feed more, which moves the items.
        leat_test_element e = port->items[port->next++];
        if (e.kind == LEAT_ELEMENT_END) {
            *state = LEAT_POLL_END;
            return LEAT_OK;
        }
        err = emit(self->ctx, out, &e);
        leat_ctx_count_in(self->ctx, e.kind == LEAT_ELEMENT_RECORD, 0);
        taken++;
    }
    if (port->next < port->count)
        return err;
    clear(port);
    *state = LEAT_POLL_WAIT;
    return err;
}

static void input_dispose(leat_operator *self)
{
    leati_harness_port *port = ((input_operator *)self)->port;
    port->waker = NULL;
    leati_free(port->harness->allocator, self);
}

static const leat_operator_ops input_ops = {
    .kind = "source: test",
    .open = input_open,
    .poll = input_poll,
    .dispose = input_dispose,
};

static leat_err input_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    leati_harness_port *port = (leati_harness_port *)factory->config;
    input_operator *made = make_operator(port, sizeof *made);
    if (!made)
        return LEAT_ENOMEM;
    made->base = (leat_operator){.ops = &input_ops, .ctx = ctx};
    made->port = port;
    *op = &made->base;
    return LEAT_OK;
}

// --- the sink ---

typedef struct output_operator {
    leat_operator base;
    leati_harness_port *port;
} output_operator;

static leat_err keep(leat_operator *self, leat_test_element element)
{
    element.subtask = leat_ctx_subtask(self->ctx);
    leat_err err = append(((output_operator *)self)->port, &element);
    return err ? leati_ctx_error(self->ctx, err, "no memory for what comes out") : LEAT_OK;
}

static leat_err output_element(leat_operator *self, const void *record, leat_out *out)
{
    leat_test_element element = {.kind = LEAT_ELEMENT_RECORD, .record = record};
    element.has_timestamp = leat_ctx_timestamp(self->ctx, &element.time);
    leat_ctx_count_out(self->ctx, 1, 0);
    return keep(self, element);
}

static leat_err output_watermark(leat_operator *self, int64_t watermark, leat_out *out)
{
    return keep(self, (leat_test_element){.kind = LEAT_ELEMENT_WATERMARK, .time = watermark});
}

static leat_err output_end(leat_operator *self, leat_out *out)
{
    return keep(self, (leat_test_element){.kind = LEAT_ELEMENT_END, .time = INT64_MIN});
}

static void output_dispose(leat_operator *self)
{
    leati_free(((output_operator *)self)->port->harness->allocator, self);
}

static const leat_operator_ops output_ops = {
    .kind = "test output",
    .element = output_element,
    .watermark = output_watermark,
    .end_input = output_end,
    .dispose = output_dispose,
};

static leat_err output_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    leati_harness_port *port = (leati_harness_port *)factory->config;
    output_operator *made = make_operator(port, sizeof *made);
    if (!made)
        return LEAT_ENOMEM;
    made->base = (leat_operator){.ops = &output_ops, .ctx = ctx};
    made->port = port;
    *op = &made->base;
    return LEAT_OK;
}

// --- building ---

// The port for a builder call, or NULL with a fault.
static leati_harness_port *port_for(leat_env *env, const char *call, const char *name,
                                    const leat_type *type, bool is_output)
{
    leat_harness *h = leati_harness_of(env);
    leati_harness_port *port = NULL;
    if (!h)
        leat_env_fail(env, LEAT_EINVAL, "%s: the environment is not one of a test harness", call);
    else if (!name || !*name)
        leat_env_fail(env, LEAT_EINVAL, "%s: the name is empty", call);
    else if (h->job)
        leat_env_fail(env, LEAT_ESTATE, "%s: the job runs already, so \"%s\" comes too late", call,
                      name);
    else if (find(h, name, is_output))
        leat_env_fail(env, LEAT_EEXIST, "%s: there are two of the name \"%s\"", call, name);
    else if (!(port = make_port(h, name, type, is_output)))
        leat_env_fail(env, LEAT_ENOMEM, "%s: out of memory", call);
    return port;
}

leat_stream *leat_test_input(leat_env *env, const char *name, const leat_type *type)
{
    leati_harness_port *port = env ? port_for(env, "leat_test_input", name, type, false) : NULL;
    if (!port)
        return leati_graph_inert(env);
    return leati_graph_add(env, NULL,
                           &(leati_node_spec){.kind = "source: test",
                                              .name = port->name,
                                              .flags = LEATI_NODE_SOURCE | LEATI_NODE_NON_PARALLEL,
                                              .out_type = type,
                                              .parallelism = 1,
                                              .factory = {input_create, port}});
}

leat_stream *leat_test_output(leat_stream *stream, const char *name)
{
    leat_env *env = leati_stream_env(stream);
    const leat_type *type = leati_stream_type(stream);
    leati_harness_port *port = type ? port_for(env, "leat_test_output", name, type, true) : NULL;
    if (!port)
        return leati_graph_inert(env);
    return leati_graph_add(env, stream,
                           &(leati_node_spec){.kind = "test output",
                                              .name = port->name,
                                              .flags = LEATI_NODE_SINK,
                                              .factory = {output_create, port}});
}

leat_err leati_harness_find(leat_harness *h, const char *name, leati_node **node)
{
    leati_node *found = NULL;
    if (h->runtime)
        return leati_harness_fail(h, LEAT_ESTATE, "the job has been started");
    for (size_t i = 0; name && i < leati_graph_node_count(h->env); i++) {
        leati_node *at = leati_graph_node(h->env, i);
        if (strcmp(at->name, name) != 0)
            continue;
        if (found)
            return leati_harness_fail(h, LEAT_EEXIST,
                                      "two operators are called \"%s\": give them names", name);
        found = at;
    }
    if (!found)
        return leati_harness_fail(h, LEAT_ENOENT, "no operator is called \"%s\"", name ? name : "");
    *node = found;
    return LEAT_OK;
}

leat_err leat_harness_replace(leat_harness *h, const char *name)
{
    leati_node *node = NULL;
    leat_err err = leati_harness_find(h, name, &node);
    if (err || !node)
        return err;
    bool is_sink = node->flags & LEATI_NODE_SINK;
    // The two ends of a loop are a source and a sink as well, but not the user's.
    if (!(node->flags & (LEATI_NODE_SOURCE | LEATI_NODE_SINK)) || node->peer)
        return leati_harness_fail(h, LEAT_EINVAL, "\"%s\" is neither a source nor a sink", name);
    if (find(h, name, is_sink))
        return leati_harness_fail(h, LEAT_EEXIST, "there are two of the name \"%s\"", name);
    leati_harness_port *port =
        make_port(h, name, is_sink ? node->in_type : node->out_type, is_sink);
    if (!port)
        return leati_harness_fail(h, LEAT_ENOMEM, "no memory for \"%s\"", name);
    node->factory = (leat_factory){is_sink ? output_create : input_create, port};
    node->job_over = NULL;
    if (!is_sink) {
        node->flags |= LEATI_NODE_NON_PARALLEL;
        node->parallelism = 1;
    }
    return LEAT_OK;
}

// --- feeding ---

static leat_err put(leat_harness *h, const char *name, const leat_test_element *element)
{
    leati_harness_port *port;
    leat_err err = find_or_say(h, name, false, &port);
    if (err)
        return err;
    if (port->ended)
        return leati_harness_fail(h, LEAT_ESTATE, "the input \"%s\" has ended", name);
    if (element->kind == LEAT_ELEMENT_RECORD && !element->record)
        return leati_harness_fail(h, LEAT_EINVAL, "the record for \"%s\" is NULL", name);
    err = append(port, element);
    if (err)
        return leati_harness_fail(h, err, "no memory for an element of \"%s\"", name);
    port->ended = element->kind == LEAT_ELEMENT_END;
    if (port->waker)
        leat_wake(port->waker);
    return LEAT_OK;
}

leat_err leat_harness_feed(leat_harness *h, const char *input, const void *record)
{
    return put(h, input, &(leat_test_element){.record = record, .time = INT64_MIN});
}

leat_err leat_harness_feed_at(leat_harness *h, const char *input, const void *record,
                              int64_t timestamp)
{
    return put(h, input,
               &(leat_test_element){.record = record, .has_timestamp = true, .time = timestamp});
}

leat_err leat_harness_feed_watermark(leat_harness *h, const char *input, int64_t watermark)
{
    return put(h, input, &(leat_test_element){.kind = LEAT_ELEMENT_WATERMARK, .time = watermark});
}

leat_err leat_harness_end(leat_harness *h, const char *input)
{
    return put(h, input, &(leat_test_element){.kind = LEAT_ELEMENT_END, .time = INT64_MIN});
}

leat_err leat_harness_end_all(leat_harness *h)
{
    leat_err err = LEAT_OK;
    for (leati_harness_port *port = h->ports; port && !err; port = port->next_port)
        if (!port->is_output && !port->ended)
            err = leat_harness_end(h, port->name);
    return err;
}

// --- reading ---

leat_err leat_harness_next(leat_harness *h, const char *output, leat_test_element *element)
{
    leati_harness_port *port;
    leat_err err = find_or_say(h, output, true, &port);
    if (err)
        return err;
    if (port->next == port->count)
        return LEAT_EAGAIN;
    *element = port->items[port->next++];
    return LEAT_OK;
}

size_t leat_harness_count(const leat_harness *h, const char *output)
{
    const leati_harness_port *port = find(h, output, true);
    return port ? port->count : 0;
}

leat_err leat_harness_element(leat_harness *h, const char *output, size_t index,
                              leat_test_element *element)
{
    leati_harness_port *port;
    leat_err err = find_or_say(h, output, true, &port);
    if (err)
        return err;
    if (index >= port->count)
        return leati_harness_fail(h, LEAT_ENOENT, "only %zu elements have come out of \"%s\"",
                                  port->count, output);
    *element = port->items[index];
    return LEAT_OK;
}

static void write_record(leati_harness_port *port, const leat_test_element *e)
{
    char fixed[256];
    size_t size = leat_record_text(port->type, e->record, fixed, sizeof fixed);
    if (size <= sizeof fixed) {
        leati_strbuf_append(&port->text, fixed, size);
    } else {
        char *text = leati_alloc(port->harness->allocator, size);
        if (text)
            leati_strbuf_append(&port->text, text,
                                leat_record_text(port->type, e->record, text, size));
        port->text.failed |= !text;
        leati_free(port->harness->allocator, text);
    }
    if (e->has_timestamp)
        leati_strbuf_printf(&port->text, " @%" PRId64, e->time);
}

static void write_element(leati_harness_port *port, const leat_test_element *e)
{
    if (e->kind == LEAT_ELEMENT_RECORD)
        write_record(port, e);
    else if (e->kind == LEAT_ELEMENT_END)
        leati_strbuf_puts(&port->text, "end");
    else if (e->time == LEAT_WATERMARK_MAX)
        leati_strbuf_puts(&port->text, "watermark max");
    else
        leati_strbuf_printf(&port->text, "watermark %" PRId64, e->time);
    leati_strbuf_putc(&port->text, '\n');
}

const char *leat_harness_text(leat_harness *h, const char *output)
{
    leati_harness_port *port;
    if (find_or_say(h, output, true, &port))
        return NULL;
    leati_strbuf_fini(&port->text);
    leati_strbuf_init(&port->text, h->allocator);
    while (port->next < port->count)
        write_element(port, &port->items[port->next++]);
    if (!port->text.failed)
        return leati_strbuf_text(&port->text);
    leati_harness_fail(h, LEAT_ENOMEM, "no memory for the text of \"%s\"", output);
    return NULL;
}

void leat_harness_clear(leat_harness *h, const char *output)
{
    leati_harness_port *port = find(h, output, true);
    if (port)
        clear(port);
}
