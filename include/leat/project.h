// SPDX-License-Identifier: Apache-2.0
// Projection: some fields of each record, in an order of one's own.
#ifndef LEAT_PROJECT_H
#define LEAT_PROJECT_H

#include "leat/stream.h"

LEAT_BEGIN_DECLS

// Selects fields of each record by name, "city, where.lat" say, through nested structs with dots. A
// number that is no field's name is the place of one: "2, 0" selects the third and the first.
//
// With `out_type` NULL the result is a struct of run time with these fields in this order, each
// under the name that selected it ("city", "where.lat"), or its own where a number did;
// leat_key_by, leat_print and so on take it as any other. No name may come twice.
//
// Otherwise the result is of `out_type`, a struct whose fields are the selected ones: each is
// called as the path or its last part ("where.lat" or "lat") and has a type of equal structure, and
// none is left over on either side; their order does not matter. With `fields` NULL the names are
// those of `out_type`. If `out_type` is no struct, or is the type of the one selected field, the
// result is that field itself.
//
// `fields` is copied; a static `out_type` is borrowed, one of run time is held by the environment.
// The thread that owns the environment calls it; it does not return NULL: whatever does not fit is
// a fault of the environment that names the operator before, the field and the types.
LEAT_API leat_stream *leat_project(leat_stream *in, const char *fields, const leat_type *out_type);

LEAT_END_DECLS

#endif
