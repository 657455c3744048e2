// SPDX-License-Identifier: Apache-2.0
// Operators of the user's own: the graph keeps the user's factory as it is.
#include "leat/stream.h"
#include "operators/builder.h"

leat_stream *leat_transform(leat_stream *in, const char *name, const leat_factory *factory,
                            const leat_type *out_type)
{
    leat_env *env = leati_stream_env(in);
    if (!leati_builder_input(in))
        return leati_graph_inert(env);
    if (!factory || !factory->create)
        return leati_builder_fault_on(in, "leat_transform", "the factory is NULL");
    return leati_graph_add(
        env, in,
        &(leati_node_spec){
            .kind = "transform", .name = name, .out_type = out_type, .factory = *factory});
}

leat_stream *leat_transform_sink(leat_stream *in, const char *name, const leat_factory *factory)
{
    leat_env *env = leati_stream_env(in);
    if (!leati_builder_input(in))
        return leati_graph_inert(env);
    if (!factory || !factory->create)
        return leati_builder_fault_on(in, "leat_transform_sink", "the factory is NULL");
    return leati_graph_add(
        env, in,
        &(leati_node_spec){
            .kind = "transform_sink", .name = name, .flags = LEATI_NODE_SINK, .factory = *factory});
}

leat_stream *leat_source(leat_env *env, const char *name, const leat_factory *factory,
                         const leat_type *type)
{
    if (!factory || !factory->create)
        return leati_builder_fault(env, "leat_source", "the factory is NULL");
    return leati_graph_add(env, NULL,
                           &(leati_node_spec){.kind = "source",
                                              .name = name,
                                              .flags = LEATI_NODE_SOURCE,
                                              .out_type = type,
                                              .factory = *factory});
}
