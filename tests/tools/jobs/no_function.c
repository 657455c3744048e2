// SPDX-License-Identifier: Apache-2.0
// Has both symbols of a job file, but what should be the function is a number.
#include <stdint.h>

#include "leat/base.h"

LEAT_API extern const uint32_t leat_job_abi;
LEAT_API extern int leat_job_main;

const uint32_t leat_job_abi = LEAT_ABI;
int leat_job_main = 5;
