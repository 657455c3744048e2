// SPDX-License-Identifier: Apache-2.0
// leat_sum, leat_min, leat_max, leat_min_by, leat_max_by: folds over one field, whose accumulator
// is a record of the stream.
#include "leat/rolling.h"

#include <stdio.h>
#include <string.h>

#include "leat/reject.h"
#include "operators/fold.h"

// What the detail of an operator that chooses records ends with; the shorter text replaces the
// longer one.
static const char first_of_ties[] = ", first of ties", last_of_ties[] = ", last of ties";

typedef enum rolling_kind {
    SUM,
    MIN,
    MAX,
    MIN_BY,
    MAX_BY,
} rolling_kind;

// The field that is aggregated.
typedef struct rolling_field {
    const char *name;        // as the user wrote it
    const leat_type *values; // what is in it when it is an optional, else its type
    uint32_t offset, size;   // of the field in the record
    bool is_optional;
} rolling_field;

typedef struct rolling_config {
    leati_fold_config fold;
    rolling_kind kind;
    bool last_on_ties;
    rolling_field field;
} rolling_config;

typedef bool (*add_fn)(void *sum, const void *value);

typedef struct rolling_operator {
    leati_fold fold;
    const rolling_config *config;
    add_fn add;     // SUM
    bool is_shared; // what the field points to may be the key's own copy
    double sum;     // memory for a sum that takes the place of another
} rolling_operator;

// The value of a record's field; NULL when it is missing.
static void *value_in(const rolling_field *field, const void *record)
{
    char *at = (char *)record + field->offset;
    return field->is_optional ? *(void **)(void *)at : at;
}

// --- sums ---

// False when the sum does not fit; it is the old one then.
#define ADD_INTEGER(name, type)                                                                    \
    static bool name(void *sum, const void *value)                                                 \
    {                                                                                              \
        type result;                                                                               \
        if (__builtin_add_overflow(*(type *)sum, *(const type *)value, &result))                   \
            return false;                                                                          \
        *(type *)sum = result;                                                                     \
        return true;                                                                               \
    }
#define ADD_FLOAT(name, type)                                                                      \
    static bool name(void *sum, const void *value)                                                 \
    {                                                                                              \
        *(type *)sum += *(const type *)value;                                                      \
        return true;                                                                               \
    }
ADD_INTEGER(add_i8, int8_t)
ADD_INTEGER(add_i16, int16_t)
ADD_INTEGER(add_i32, int32_t)
ADD_INTEGER(add_i64, int64_t)
ADD_INTEGER(add_u8, uint8_t)
ADD_INTEGER(add_u16, uint16_t)
ADD_INTEGER(add_u32, uint32_t)
ADD_INTEGER(add_u64, uint64_t)
ADD_FLOAT(add_f32, float)
ADD_FLOAT(add_f64, double)

// The kinds that can be summed.
static const add_fn adding[] = {
    [LEAT_I8] = add_i8,   [LEAT_I16] = add_i16, [LEAT_I32] = add_i32, [LEAT_I64] = add_i64,
    [LEAT_U8] = add_u8,   [LEAT_U16] = add_u16, [LEAT_U32] = add_u32, [LEAT_U64] = add_u64,
    [LEAT_F32] = add_f32, [LEAT_F64] = add_f64,
};

static bool can_be_summed(uint32_t kind)
{
    return kind < sizeof adding / sizeof adding[0] && adding[kind];
}

static leat_err reject_overflow(rolling_operator *op, const leati_fold_key *key, const void *record,
                                void **accumulator)
{
    char text[200];
    leati_fold_key_text(&op->fold, key, text, sizeof text);
    *accumulator = NULL;
    return leat_reject(op->fold.base.ctx, record, "the sum of %s of the key %s does not fit in %s",
                       *op->config->field.name ? op->config->field.name : "the records", text,
                       op->config->field.values->name);
}

static leat_err sum_fold(leati_fold *fold, const leati_fold_key *key, const void *record,
                         void **accumulator)
{
    rolling_operator *op = (rolling_operator *)fold;
    const rolling_field *field = &op->config->field;
    if (!*accumulator)
        return leati_fold_insert(fold, key, record, accumulator);
    const void *value = value_in(field, record);
    if (!value)
        return LEAT_OK;
    void *sum = value_in(field, *accumulator);
    if (LEAT_LIKELY(sum && !op->is_shared))
        return LEAT_LIKELY(op->add(sum, value)) ? LEAT_OK
                                                : reject_overflow(op, key, record, accumulator);
    memcpy(&op->sum, sum ? sum : value, field->values->size);
    if (sum && !op->add(&op->sum, value))
        return reject_overflow(op, key, record, accumulator);
    const void *owned = &op->sum;
    memcpy((char *)*accumulator + field->offset, &owned, sizeof owned);
    return leati_fold_own(fold, accumulator);
}

// --- extremes ---

// Whether a record's value takes the place of the one that was best so far; both may be missing.
static bool takes_over(const rolling_config *config, const void *value, const void *best)
{
    if (!value || !best)
        return value || (!best && config->last_on_ties);
    int order = leat_record_compare(config->field.values, value, best);
    if (order == 0)
        return config->last_on_ties;
    return (order < 0) == (config->kind == MIN || config->kind == MIN_BY);
}

static leat_err extreme_fold(leati_fold *fold, const leati_fold_key *key, const void *record,
                             void **accumulator)
{
    const rolling_config *config = ((rolling_operator *)fold)->config;
    const rolling_field *field = &config->field;
    if (!*accumulator)
        return leati_fold_insert(fold, key, record, accumulator);
    if (!takes_over(config, value_in(field, record), value_in(field, *accumulator)))
        return LEAT_OK;
    if (config->kind == MIN || config->kind == MAX)
        memcpy((char *)*accumulator + field->offset, (const char *)record + field->offset,
               field->size);
    else
        memcpy(*accumulator, record, fold->accumulator_type->size);
    return leati_fold_own(fold, accumulator);
}

// --- the operator ---

static leat_err rolling_emit(leati_fold *fold, const void *record, const void *accumulator,
                             leat_out *out)
{
    return leat_collect(out, accumulator);
}

static const leati_fold_ops sum_folding = {.fold = sum_fold, .emit = rolling_emit};
static const leati_fold_ops extreme_folding = {.fold = extreme_fold, .emit = rolling_emit};

// For every update, and for final values.
#define ROLLING(name)                                                                              \
    {                                                                                              \
        {.kind = name,                                                                             \
         .open = leati_fold_open,                                                                  \
         .element = leati_fold_element,                                                            \
         .dispose = leati_fold_dispose},                                                           \
        {                                                                                          \
            .kind = name, .open = leati_fold_open, .element = leati_fold_element,                  \
            .elements = leati_fold_elements, .finish = leati_fold_finish,                          \
            .dispose = leati_fold_dispose                                                          \
        }                                                                                          \
    }
static const leat_operator_ops rolling_ops[][2] = {
    [SUM] = ROLLING("sum"),       [MIN] = ROLLING("min"),       [MAX] = ROLLING("max"),
    [MIN_BY] = ROLLING("min_by"), [MAX_BY] = ROLLING("max_by"),
};

// Whether the field lies in a field of the key: the table may let both point to one copy, and a sum
// that is made in that place would change the key.
static bool shares_with_key(const rolling_field *field, const leati_key_selector *selector)
{
    if (!selector || selector->fn || !field->is_optional)
        return false;
    const leat_key *key = &selector->fields;
    for (uint32_t i = 0; i < key->count; i++)
        if (key->part[i].offset <= field->offset &&
            field->offset < key->part[i].offset + key->part[i].type->size)
            return true;
    return false;
}

leat_err leati_rolling_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    const rolling_config *config = factory->config;
    rolling_operator *rolling = leati_operator_create(
        ctx, sizeof *rolling, &rolling_ops[config->kind][config->fold.final_only]);
    if (!rolling)
        return LEAT_ENOMEM;
    rolling->config = config;
    rolling->is_shared = shares_with_key(&config->field, leati_ctx_key(ctx));
    if (config->kind == SUM)
        rolling->add = adding[config->field.values->kind];
    leati_fold_init(&rolling->fold, config->kind == SUM ? &sum_folding : &extreme_folding,
                    &config->fold, leat_ctx_in_type(ctx));
    *op = &rolling->fold.base;
    return LEAT_OK;
}

// --- the builders ---

// Whether the values have an order that keys know; maps have none.
static bool has_order(const leat_type *type)
{
    leat_key key;
    return leat_key_init(&key, type, NULL, NULL, NULL) == LEAT_OK;
}

// Finds the field; false, with a fault recorded, when there is none or it is unfit.
static bool find_field(leat_stream *keyed, rolling_kind kind, rolling_field *field)
{
    const leat_type *type = leati_stream_type(keyed);
    const char *call = rolling_ops[kind][0].kind;
    char text[300];
    if (*field->name) {
        const leat_field *found = leat_type_find(type, field->name, &field->offset);
        if (!found) {
            leat_type_print(type, text, sizeof text);
            leati_graph_fault(keyed, LEAT_ETYPE, "leat_%s: there is no field \"%s\" in %s", call,
                              field->name, text);
            return false;
        }
        type = found->type;
    }
    field->size = type->size;
    field->is_optional = type->kind == LEAT_OPTIONAL;
    field->values = field->is_optional ? type->element : type;
    if (kind == SUM ? can_be_summed(field->values->kind) : has_order(field->values))
        return true;
    leat_type_print(type, text, sizeof text);
    leati_graph_fault(keyed, LEAT_ETYPE, "leat_%s: %s%s%s is %s, which %s", call,
                      *field->name ? "\"" : "", *field->name ? field->name : "the record",
                      *field->name ? "\"" : "", text,
                      kind == SUM ? "cannot be summed" : "has no order");
    return false;
}

static leat_stream *add_rolling(leat_stream *keyed, rolling_kind kind, const char *name)
{
    leat_env *env = leati_stream_env(keyed);
    if (!leati_builder_input(keyed))
        return leati_graph_inert(env);
    size_t size = name ? strlen(name) : 0;
    rolling_config *config = leat_env_alloc(env, sizeof *config);
    char *copy = leat_env_alloc(env, size + 1);
    char *detail = leat_env_alloc(env, size + 64);
    if (!config || !copy || !detail)
        return leati_graph_inert(env);
    memcpy(copy, size ? name : "", size);
    config->kind = kind;
    config->field.name = copy;
    if (!find_field(keyed, kind, &config->field))
        return leati_graph_inert(env);
    snprintf(detail, size + 64, "updates%s%s%s", size ? " of " : "", copy,
             kind == MIN_BY || kind == MAX_BY ? first_of_ties : "");
    return leati_graph_add(env, keyed,
                           &(leati_node_spec){.kind = rolling_ops[kind][0].kind,
                                              .flags = LEATI_NODE_NEEDS_KEY,
                                              .out_type = leati_stream_type(keyed),
                                              .factory = {leati_rolling_create, config},
                                              .detail = detail});
}

leat_stream *leat_sum(leat_stream *keyed, const char *field)
{
    return add_rolling(keyed, SUM, field);
}

leat_stream *leat_min(leat_stream *keyed, const char *field)
{
    return add_rolling(keyed, MIN, field);
}

leat_stream *leat_max(leat_stream *keyed, const char *field)
{
    return add_rolling(keyed, MAX, field);
}

leat_stream *leat_min_by(leat_stream *keyed, const char *field)
{
    return add_rolling(keyed, MIN_BY, field);
}

leat_stream *leat_max_by(leat_stream *keyed, const char *field)
{
    return add_rolling(keyed, MAX_BY, field);
}

leat_stream *leat_last_on_ties(leat_stream *chosen)
{
    leati_node *node = leati_stream_node(chosen);
    if (!node && !leati_stream_type(chosen))
        return chosen ? chosen : leati_graph_inert(NULL);
    // The settings are written by the builder alone, which allocated them.
    rolling_config *config = node && node->factory.create == leati_rolling_create
                                 ? (rolling_config *)node->factory.config
                                 : NULL;
    if (!config || (config->kind != MIN_BY && config->kind != MAX_BY)) {
        leati_graph_fault(chosen, LEAT_EGRAPH,
                          "leat_last_on_ties: only leat_min_by and leat_max_by choose records");
        return chosen;
    }
    if (!config->last_on_ties) {
        config->last_on_ties = true;
        char *ties = node->detail + strlen(node->detail) - strlen(first_of_ties);
        memcpy(ties, last_of_ties, sizeof last_of_ties);
    }
    return chosen;
}
