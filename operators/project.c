// SPDX-License-Identifier: Apache-2.0
// leat_project: copies chosen fields of each record into a record of another type.
#include "leat/project.h"

#include <stdio.h>
#include <string.h>

#include "operators/builder.h"

// One field on its way from the input record to the output record.
typedef struct move {
    uint32_t from, to, size; // offsets and length in bytes
} move;

typedef struct project_config {
    uint32_t count;
    move moves[];
} project_config;

typedef struct project_operator {
    leat_operator base;
    const project_config *config;
    // What is emitted; what lies between its fields stays zero.
    _Alignas(max_align_t) char record[];
} project_operator;

// A field that was selected, while the graph is built.
typedef struct selected {
    const char *name; // in the result
    const char *last; // the same without the structs around it
    const leat_type *type;
    uint32_t offset; // in the input record
    bool is_used;    // has found its place in the result
} selected;

// What the steps of the builder hand on.
typedef struct projection {
    leat_stream *in;
    const leat_type *from, *to; // `to` is NULL until it is known
    selected *fields;
    size_t count;
} projection;

// --- the operator ---

// Most fields are numbers and strings, for which a call would cost more than the copy.
static inline void copy(char *to, const char *from, uint32_t size)
{
    if (size == 8)
        memcpy(to, from, 8);
    else if (size == sizeof(leat_str))
        memcpy(to, from, sizeof(leat_str));
    else
        memcpy(to, from, size);
}

static leat_err project_element(leat_operator *self, const void *record, leat_out *out)
{
    project_operator *op = (project_operator *)self;
    const project_config *config = op->config;
    for (uint32_t i = 0; i < config->count; i++) {
        const move *m = &config->moves[i];
        copy(op->record + m->to, (const char *)record + m->from, m->size);
    }
    return leat_collect(out, op->record);
}

static const leat_operator_ops project_ops = {
    .kind = "project",
    .element = project_element,
    .dispose = leati_operator_dispose,
};

static leat_err project_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    project_operator *project =
        leati_operator_create(ctx, sizeof *project + leat_ctx_out_type(ctx)->size, &project_ops);
    if (!project)
        return LEAT_ENOMEM;
    project->config = factory->config;
    *op = &project->base;
    return LEAT_OK;
}

// --- the builder ---

// The place that a name of digits stands for; SIZE_MAX when it is another name.
static size_t place_of(const char *name)
{
    size_t place = 0;
    if (!*name)
        return SIZE_MAX;
    for (; *name; name++) {
        if (*name < '0' || *name > '9' || place > LEAT_TYPE_MAX_FIELDS)
            return SIZE_MAX;
        place = place * 10 + (size_t)(*name - '0');
    }
    return place;
}

static bool fault_of_field(const projection *p, const char *name, const char *what)
{
    char text[300];
    leat_type_print(p->from, text, sizeof text);
    leati_graph_fault(p->in, LEAT_ETYPE, "leat_project: %s \"%s\" in %s", what, name, text);
    return false;
}

// Finds one field. False, with a fault recorded, when there is none.
static bool select_field(projection *p, const char *name)
{
    selected *s = &p->fields[p->count];
    const leat_field *found = leat_type_find(p->from, name, &s->offset);
    size_t place = found ? SIZE_MAX : place_of(name);
    if (p->from->kind == LEAT_STRUCT && place < p->from->field_count) {
        found = &p->from->fields[place];
        s->offset = found->offset;
        name = found->name;
    }
    if (!found)
        return fault_of_field(p, name, "there is no field");
    s->name = name;
    s->last = found->name;
    s->type = found->type;
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->fields[i].name, name) == 0)
            return fault_of_field(p, name, "twice the field");
    p->count++;
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Cuts the list of names, which it writes to.
static bool select_named(projection *p, char *names)
{
    for (;;) {
        while (is_space(*names))
            names++;
        char *end = names + strcspn(names, ","), *next = *end ? end + 1 : NULL;
        while (end > names && is_space(end[-1]))
            end--;
        *end = '\0';
        if (!select_field(p, names))
            return false;
        if (!next)
            return true;
        names = next;
    }
}

// Selects what `fields` names, or, without it, what the output type has.
static bool select_fields(projection *p, leat_env *env, const char *fields)
{
    const leat_type *to = p->to;
    if (!fields && (!to || to->kind != LEAT_STRUCT)) {
        leati_graph_fault(p->in, LEAT_EINVAL, "leat_project: no field is named");
        return false;
    }
    size_t most = 1;
    for (const char *at = fields; at && *at; at++)
        most += *at == ',';
    if (!fields)
        most = to->field_count;
    p->fields = leat_env_alloc(env, most * sizeof *p->fields);
    char *names = leat_env_alloc(env, fields ? strlen(fields) + 1 : 1);
    if (!p->fields || !names)
        return false;
    if (fields) {
        memcpy(names, fields, strlen(fields) + 1);
        return select_named(p, names);
    }
    for (uint32_t i = 0; i < to->field_count; i++)
        if (!select_field(p, to->fields[i].name))
            return false;
    return true;
}

// The type of the result when none was given: a reference that the caller gives back.
static bool make_type(projection *p, leat_env *env)
{
    leat_field_spec *specs = leat_env_alloc(env, p->count * sizeof *specs);
    if (!specs)
        return false;
    for (size_t i = 0; i < p->count; i++)
        specs[i] = (leat_field_spec){p->fields[i].name, p->fields[i].type};
    leat_err err =
        leat_type_struct_create(leat_env_allocator(env), "projection", specs, p->count, &p->to);
    if (err != LEAT_OK)
        leati_graph_fault(p->in, err, "leat_project: the fields cannot form a type");
    return err == LEAT_OK;
}

// Whether values of equal structure also lie alike in memory, so that they can be copied as they
// are.
static bool lie_alike(const leat_type *a, const leat_type *b)
{
    if (a == b)
        return true;
    if (!a || !b || a->size != b->size || a->field_count != b->field_count)
        return false;
    for (uint32_t i = 0; i < a->field_count; i++)
        if (a->fields[i].offset != b->fields[i].offset ||
            !lie_alike(a->fields[i].type, b->fields[i].type))
            return false;
    return lie_alike(a->element, b->element) && lie_alike(a->key, b->key);
}

static bool fits(const projection *p, const selected *s, const leat_type *to)
{
    char from_text[200], to_text[200];
    if (leat_type_equal(s->type, to)) {
        if (lie_alike(s->type, to))
            return true;
        leati_graph_fault(p->in, LEAT_ETYPE,
                          "leat_project: the C structs of \"%s\" differ in their layout", s->name);
        return false;
    }
    leat_type_print(s->type, from_text, sizeof from_text);
    leat_type_print(to, to_text, sizeof to_text);
    leati_graph_fault(p->in, LEAT_ETYPE, "leat_project: \"%s\" is %s, not %s", s->name, from_text,
                      to_text);
    return false;
}

// Which selected field belongs in a field of the output type: the one of that name, else one whose
// last part it is.
static selected *source_of(const projection *p, const char *name)
{
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->fields[i].name, name) == 0)
            return &p->fields[i];
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->fields[i].last, name) == 0)
            return &p->fields[i];
    return NULL;
}

static bool place_field(const projection *p, const leat_field *field, project_config *config)
{
    selected *s = source_of(p, field->name);
    if (!s) {
        leati_graph_fault(p->in, LEAT_ETYPE, "leat_project: no field is selected for \"%s\"",
                          field->name);
        return false;
    }
    s->is_used = true;
    config->moves[config->count++] = (move){s->offset, field->offset, field->type->size};
    return fits(p, s, field->type);
}

// Whether the result is the selected field itself, not a struct around it.
static bool takes_itself(const projection *p)
{
    return p->to->kind != LEAT_STRUCT ||
           (p->count == 1 && leat_type_equal(p->fields[0].type, p->to));
}

// Says where each field goes.
static bool place_fields(const projection *p, project_config *config)
{
    const leat_type *to = p->to;
    if (takes_itself(p)) {
        p->fields[0].is_used = true;
        config->moves[config->count++] = (move){p->fields[0].offset, 0, to->size};
        if (!fits(p, &p->fields[0], to))
            return false;
    } else {
        for (uint32_t i = 0; i < to->field_count; i++)
            if (!place_field(p, &to->fields[i], config))
                return false;
    }
    for (size_t i = 0; i < p->count; i++)
        if (!p->fields[i].is_used) {
            leati_graph_fault(p->in, LEAT_ETYPE, "leat_project: the output type has no \"%s\"",
                              p->fields[i].name);
            return false;
        }
    return true;
}

// What the plan shows of the operator: the selected fields; NULL when out of memory.
static const char *describe(const projection *p, leat_env *env)
{
    size_t size = 1;
    for (size_t i = 0; i < p->count; i++)
        size += strlen(p->fields[i].name) + 2;
    char *text = leat_env_alloc(env, size);
    size_t at = 0;
    for (size_t i = 0; text && i < p->count; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", i > 0 ? ", " : "", p->fields[i].name);
    return text;
}

// The operator itself, once the fields and the output type are known.
static leat_stream *add_project(projection *p, leat_env *env)
{
    size_t places = p->to->kind == LEAT_STRUCT ? p->to->field_count : 1;
    project_config *config = leat_env_alloc(env, sizeof *config + places * sizeof(move));
    if (!config || !place_fields(p, config))
        return leati_graph_inert(env);
    const char *detail = describe(p, env);
    if (!detail)
        return leati_graph_inert(env);
    return leati_graph_add(env, p->in,
                           &(leati_node_spec){.kind = "project",
                                              .out_type = p->to,
                                              .factory = {project_create, config},
                                              .detail = detail});
}

leat_stream *leat_project(leat_stream *in, const char *fields, const leat_type *out_type)
{
    leat_env *env = leati_stream_env(in);
    const char *why;
    if (!leati_builder_input(in))
        return leati_graph_inert(env);
    if (out_type && leat_type_check(out_type, &why) != LEAT_OK)
        return leati_builder_fault_on(in, "leat_project", why);
    projection p = {.in = in, .from = leati_stream_type(in), .to = out_type};
    if (!select_fields(&p, env, fields))
        return leati_graph_inert(env);
    if (!out_type && !make_type(&p, env))
        return leati_graph_inert(env);
    leat_stream *out = add_project(&p, env);
    // The graph holds the type by now.
    if (!out_type)
        leat_type_release(p.to);
    return out;
}
