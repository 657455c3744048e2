// SPDX-License-Identifier: Apache-2.0
// Settings of jemalloc, which only this program links: a library that brought its own allocator
// could not be loaded into every program. Memory segments come from pools of their own, so jemalloc
// serves state and control data, where a small and steady footprint counts for more than speed.
//
// thp and metadata_thp: with huge pages an idle process takes 18 MB instead of 5, and one with much
// state a quarter more.
// narenas: when memory for a further arena cannot be had, jemalloc goes on with none and crashes.
// background_thread: without it, memory that idle threads have freed never goes back to the system.
// One such thread is enough, and jemalloc would make one for each processor.
#include <jemalloc/jemalloc.h>

#include "leat/base.h"

// jemalloc looks this symbol up when the program starts. The environment variable MALLOC_CONF is
// read after it and wins.
LEAT_API const char *malloc_conf =
    "narenas:1,thp:never,metadata_thp:disabled,background_thread:true,max_background_threads:1";
