// SPDX-License-Identifier: Apache-2.0
// Job graphs come over the network: any bytes must be refused with a reason or give a graph that
// can be printed and that encodes to a fixed point.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/job_graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

static void print_both(const leati_job_graph *a, const leati_job_graph *b)
{
    for (int format = LEAT_PLAN_TEXT; format <= LEAT_PLAN_DOT; format++) {
        char *x = NULL, *y = NULL;
        REQUIRE(leati_job_graph_picture(a, (leat_plan_format)format, NULL, &x) == LEAT_OK);
        REQUIRE(leati_job_graph_picture(b, (leat_plan_format)format, NULL, &y) == LEAT_OK);
        REQUIRE(strcmp(x, y) == 0);
        free(x);
        free(y);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leati_job_graph *graph = NULL, *again = NULL;
    char why[200] = "";
    leat_err err = leati_job_graph_decode(NULL, data, size, &graph, why, sizeof why);
    if (err != LEAT_OK) {
        REQUIRE(err == LEAT_ECORRUPT && !graph && why[0]);
        return 0;
    }
    uint8_t *first = NULL, *second = NULL;
    size_t first_size = 0, second_size = 0;
    REQUIRE(leati_job_graph_encode(graph, &first, &first_size) == LEAT_OK);
    REQUIRE(leati_job_graph_decode(NULL, first, first_size, &again, why, sizeof why) == LEAT_OK);
    REQUIRE(leati_job_graph_encode(again, &second, &second_size) == LEAT_OK);
    REQUIRE(first_size == second_size && memcmp(first, second, first_size) == 0);
    REQUIRE(strcmp(graph->digest, again->digest) == 0);
    leati_job_graph_difference(graph, again, why, sizeof why);
    REQUIRE(why[0] == '\0');
    print_both(graph, again);
    free(first);
    free(second);
    leati_job_graph_destroy(&again);
    leati_job_graph_destroy(&graph);
    return 0;
}
