// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "graph/job_graph.h"

// The rule of the reference, written down from the side that it names: joined[j * D + i] says
// whether producer j feeds consumer i.
static void naive_pointwise(uint32_t u, uint32_t d, bool *joined)
{
    memset(joined, 0, (size_t)u * d);
    if (u >= d) {
        for (uint32_t i = 0; i < d; i++)
            for (uint32_t j = i * u / d; j < (i + 1) * u / d; j++)
                joined[j * d + i] = true;
    } else {
        for (uint32_t j = 0; j < u; j++)
            for (uint32_t i = 0; i < d; i++)
                joined[j * d + i] = i * u >= j * d && i * u < (j + 1) * d;
    }
}

static void expect_wiring(leati_partitioner partitioner, uint32_t u, uint32_t d, const bool *joined)
{
    for (uint32_t j = 0; j < u; j++) {
        uint32_t first, count;
        leati_edge_consumers(partitioner, u, d, j, &first, &count);
        for (uint32_t i = 0; i < d; i++)
            cr_assert((i >= first && i - first < count) == joined[j * d + i],
                      "%u producers, %u consumers: producer %u, consumer %u", u, d, j, i);
    }
    for (uint32_t i = 0; i < d; i++) {
        uint32_t first, count;
        leati_edge_producers(partitioner, u, d, i, &first, &count);
        for (uint32_t j = 0; j < u; j++)
            cr_assert((j >= first && j - first < count) == joined[j * d + i],
                      "%u producers, %u consumers: consumer %u, producer %u", u, d, i, j);
    }
}

Test(wiring, pointwise_follows_the_rule_for_all_small_sizes_from_both_sides)
{
    enum { MOST = 40 };
    static bool joined[MOST * MOST];
    for (uint32_t u = 1; u <= MOST; u++)
        for (uint32_t d = 1; d <= MOST; d++) {
            naive_pointwise(u, d, joined);
            expect_wiring(LEATI_PARTITION_RESCALE, u, d, joined);
        }
}

Test(wiring, forward_is_one_to_one)
{
    static const bool joined[9] = {true, false, false, false, true, false, false, false, true};
    expect_wiring(LEATI_PARTITION_FORWARD, 3, 3, joined);
}

Test(wiring, all_other_partitioners_join_all)
{
    static const leati_partitioner all[] = {LEATI_PARTITION_REBALANCE, LEATI_PARTITION_SHUFFLE,
                                            LEATI_PARTITION_BROADCAST, LEATI_PARTITION_GLOBAL,
                                            LEATI_PARTITION_HASH,      LEATI_PARTITION_CUSTOM};
    static bool joined[15];
    memset(joined, 1, sizeof joined);
    for (size_t p = 0; p < sizeof all / sizeof *all; p++)
        expect_wiring(all[p], 3, 5, joined);
}

// With one consumer more than producers, producer 32766 starts at ceil(32766 * 32768 / 32767) =
// 32767; with one producer more, consumer 32766 starts at floor(32766 * 32768 / 32767) = 32766.
Test(wiring, largest_parallelisms_do_not_overflow)
{
    uint32_t first, count;
    leati_edge_consumers(LEATI_PARTITION_RESCALE, 32767, 32768, 32766, &first, &count);
    cr_assert(first == 32767 && count == 1);
    leati_edge_producers(LEATI_PARTITION_RESCALE, 32768, 32767, 32766, &first, &count);
    cr_assert(first == 32766 && count == 2);
}
