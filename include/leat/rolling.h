// SPDX-License-Identifier: Apache-2.0
// Rolling aggregations: folds of keyed streams that need no function, only the name of a field.
//
// Each keeps one record a key, of the stream's type, and emits it after every record of that key;
// with leat_final_only, once a key at the end of a bounded input. All are builder functions as in
// leat/stream.h: the thread that owns the environment calls them, none returns NULL or fails, and a
// mistake becomes a fault of the environment that names the operator before.
//
// `field` is the name of a field, "delay", or "where.delay" through nested structs; it is copied.
// NULL or "" is the record itself, for streams of numbers or texts. What is no field of the
// stream's type, or of a kind that the aggregation cannot work on, is a fault.
//
// A missing value, that is an optional field which is absent, does not count: it changes no sum and
// no extreme. As long as a key has no value at all, its field stays absent.
#ifndef LEAT_ROLLING_H
#define LEAT_ROLLING_H

#include "leat/stream.h"

LEAT_BEGIN_DECLS

// The sum of the field, in the field's own type; all other fields stay those of the key's first
// record. For integers and floats, also optional ones. A record that makes an integer overflow is
// rejected with the key and the field (see leat/reject.h): the sum stays what it was, and nothing
// is emitted for that record. Floats follow IEEE 754: infinite after an overflow, and NaN once a
// value was.
LEAT_API leat_stream *leat_sum(leat_stream *keyed, const char *field);

// The least, or the greatest, value of the field; all other fields stay those of the key's first
// record. For every kind but maps, in the order of leat_key_compare: numbers by value, NaN above
// all others, texts by their bytes.
LEAT_API leat_stream *leat_min(leat_stream *keyed, const char *field);
LEAT_API leat_stream *leat_max(leat_stream *keyed, const char *field);

// The whole record that has the least, or the greatest, value of the field; of several the first.
// Same kinds and order as leat_min. A record without a value is kept only until one with a value
// comes.
LEAT_API leat_stream *leat_min_by(leat_stream *keyed, const char *field);
LEAT_API leat_stream *leat_max_by(leat_stream *keyed, const char *field);
// Asks leat_min_by or leat_max_by, whose stream this is, for the last of several records with the
// same value. Returns its argument; on any other stream it is a fault.
LEAT_API leat_stream *leat_last_on_ties(leat_stream *chosen);

LEAT_END_DECLS

#endif
