// SPDX-License-Identifier: Apache-2.0
// What the parts of the test harness share: its life and running (harness.c), inputs and outputs
// (harness_port.c), faults of operators (harness_fault.c).
//
// Threading. One thread, the maker's; but the clock, which threads of sources may look at. Life
// cycle. The job is started once; ports and faults live until the harness is destroyed, after the
// job and its environment, which know them. Bounds. What the test feeds and what comes out.
#ifndef LEATI_RUNTIME_HARNESS_IMPL_H
#define LEATI_RUNTIME_HARNESS_IMPL_H

#include <stdatomic.h>

#include "base/strbuf.h"
#include "leat/testing.h"
#include "runtime/execution.h"

// An input or an output.
typedef struct leati_harness_port {
    leat_harness *harness;
    char *name;
    const leat_type *type;
    bool is_output;
    bool ended; // an input: the end has been fed
    leat_test_element *items;
    size_t count, capacity;
    size_t next;       // the first that has not been taken, by the job or by the test
    leat_waker *waker; // of the input's task while that lives
    leati_strbuf text; // of an output: what leat_harness_text has given
    struct leati_harness_port *next_port;
} leati_harness_port;

// An operator that is to fail.
typedef struct leati_harness_fault {
    leat_harness *harness;
    uint64_t nth, seen;
    char *why;
    leat_factory factory; // the operator's own
    void (*job_over)(const void *config);
    leati_node *node;
    struct leati_harness_fault *next;
} leati_harness_fault;

struct leat_harness {
    leat_allocator allocator_copy;
    const leat_allocator *allocator; // of the harness itself
    leat_test_allocator *failing;    // of the environment and the job
    leat_harness_options options;
    _Atomic int64_t now_ns;
    leat_env *env;
    leat_runtime *runtime; // from the start on
    leat_job *job;
    // [a * vertex_count + b]: whether vertex b may run while a waits in the middle of a record.
    bool *helpers;
    leati_harness_port *ports;
    leati_harness_fault *faults;
    uint32_t last_task;
    uint32_t depth; // turns that the caller is inside of
    leati_strbuf printed[2];
    char why[LEATI_FAILURE_TEXT];
};

// Says why and returns `err`.
leat_err leati_harness_fail(leat_harness *harness, leat_err err, const char *format, ...)
    LEAT_PRINTF(3, 4);
// The one operator of that name, before the start. LEAT_ENOENT, LEAT_EEXIST, LEAT_ESTATE, said.
LEAT_MUST_USE leat_err leati_harness_find(leat_harness *harness, const char *name,
                                          leati_node **node);
// The harness of an environment, or NULL.
leat_harness *leati_harness_of(const leat_env *env);

void leati_harness_free_ports(leat_harness *harness);

// Puts the faults between the runtime and the operators. At the start.
void leati_harness_set_faults(leat_harness *harness);
void leati_harness_free_faults(leat_harness *harness);

#endif
