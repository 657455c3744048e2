// SPDX-License-Identifier: Apache-2.0
// How a range of numbers is shared out; apart from the operator so that it can be tested.
#ifndef LEATI_OPERATORS_SEQUENCE_H
#define LEATI_OPERATORS_SEQUENCE_H

#include "leat/base.h"

// The contiguous share of [first, last] (both inclusive) that one of `parallelism` subtasks takes;
// false when it is empty. The shares follow each other in the order of the subtasks and differ by
// at most one number in length.
bool leati_sequence_share(int64_t first, int64_t last, uint32_t subtask, uint32_t parallelism,
                          int64_t *share_first, int64_t *share_last);

#endif
