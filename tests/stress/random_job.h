// SPDX-License-Identifier: Apache-2.0
// Makes a job of a random graph.
#ifndef TESTS_STRESS_RANDOM_JOB_H
#define TESTS_STRESS_RANDOM_JOB_H

#include "leat/leat.h"
#include "random_graph.h"

extern graph now; // the graph that runs; user functions report with it

// The environment with the whole job; its sinks fill `got`. The graph is `now` and outlives it.
leat_env *build_job(graph *g);
// The same in an environment that there is.
void build_job_in(leat_env *env, graph *g);

#endif
