// SPDX-License-Identifier: Apache-2.0
// The whole public interface of Leat.
#ifndef LEAT_LEAT_H
#define LEAT_LEAT_H

#include "leat/alloc.h"
#include "leat/base.h"
#include "leat/broadcast.h"
#include "leat/cache.h"
#include "leat/collect.h"
#include "leat/connect.h"
#include "leat/csv.h"
#include "leat/env.h"
#include "leat/error.h"
#include "leat/execute.h"
#include "leat/file_sink.h"
#include "leat/file_source.h"
#include "leat/function.h"
#include "leat/generator.h"
#include "leat/iterate.h"
#include "leat/job.h"
#include "leat/log.h"
#include "leat/metrics.h"
#include "leat/operator.h"
#include "leat/parse.h"
#include "leat/plan.h"
#include "leat/print.h"
#include "leat/process.h"
#include "leat/project.h"
#include "leat/record.h"
#include "leat/reject.h"
#include "leat/rolling.h"
#include "leat/side_output.h"
#include "leat/socket.h"
#include "leat/stream.h"
#include "leat/testing.h"
#include "leat/type.h"

#endif
