// SPDX-License-Identifier: Apache-2.0
// States the interface but has no job function.
#include "leat/base.h"

LEAT_API extern const uint32_t leat_job_abi;
const uint32_t leat_job_abi = LEAT_ABI;
