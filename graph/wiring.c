// SPDX-License-Identifier: Apache-2.0
// Which subtasks an exchange joins. Forward and rescale are pointwise, all others all-to-all.
//
// Pointwise, the larger side is cut into contiguous ranges, one for each subtask of the smaller.
// With U producers and D consumers, consumer i reads the producers [floor(iU/D), floor((i+1)U/D))
// when U >= D, and producer j feeds the consumers [ceil(jD/U), ceil((j+1)D/U)) when U < D; each of
// the functions below also inverts the other's ranges.
#include "graph/job_graph.h"

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static bool is_pointwise(leati_partitioner partitioner)
{
    return partitioner == LEATI_PARTITION_FORWARD || partitioner == LEATI_PARTITION_RESCALE;
}

void leati_edge_consumers(leati_partitioner partitioner, uint32_t producers, uint32_t consumers,
                          uint32_t index, uint32_t *first, uint32_t *count)
{
    uint64_t u = producers, d = consumers, j = index;
    if (!is_pointwise(partitioner)) {
        *first = 0;
        *count = consumers;
    } else if (u >= d) {
        *first = (uint32_t)(ceil_div((j + 1) * d, u) - 1);
        *count = 1;
    } else {
        *first = (uint32_t)ceil_div(j * d, u);
        *count = (uint32_t)ceil_div((j + 1) * d, u) - *first;
    }
}

void leati_edge_producers(leati_partitioner partitioner, uint32_t producers, uint32_t consumers,
                          uint32_t index, uint32_t *first, uint32_t *count)
{
    uint64_t u = producers, d = consumers, i = index;
    if (!is_pointwise(partitioner)) {
        *first = 0;
        *count = producers;
    } else if (u >= d) {
        *first = (uint32_t)(i * u / d);
        *count = (uint32_t)((i + 1) * u / d) - *first;
    } else {
        *first = (uint32_t)(i * u / d);
        *count = 1;
    }
}
