// SPDX-License-Identifier: Apache-2.0
// Constants of the msgpack form of a job graph. A change of any is a new version.
#ifndef LEATI_GRAPH_WIRE_IMPL_H
#define LEATI_GRAPH_WIRE_IMPL_H

#define LEATI_WIRE_MAGIC         "leat-job-graph"
#define LEATI_WIRE_VERSION       3
#define LEATI_WIRE_GRAPH_FIELDS  5
#define LEATI_WIRE_VERTEX_FIELDS 4
#define LEATI_WIRE_OP_FIELDS     14
#define LEATI_WIRE_EDGE_FIELDS   9

#endif
