// SPDX-License-Identifier: Apache-2.0
// The whole public interface of Leat.
#ifndef LEAT_LEAT_H
#define LEAT_LEAT_H

#include "leat/alloc.h"
#include "leat/base.h"
#include "leat/csv.h"
#include "leat/env.h"
#include "leat/error.h"
#include "leat/execute.h"
#include "leat/function.h"
#include "leat/job.h"
#include "leat/log.h"
#include "leat/metrics.h"
#include "leat/operator.h"
#include "leat/parse.h"
#include "leat/plan.h"
#include "leat/project.h"
#include "leat/record.h"
#include "leat/reject.h"
#include "leat/side_output.h"
#include "leat/rolling.h"
#include "leat/stream.h"
#include "leat/type.h"

#endif
