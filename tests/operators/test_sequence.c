// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include "operators/sequence.h"

Test(sequence, shares_join_without_gap_and_differ_by_at_most_one)
{
    static const struct {
        int64_t first, last;
    } ranges[] = {{0, 0},
                  {1, 10},
                  {-5, 5},
                  {INT64_MIN, INT64_MAX},
                  {INT64_MIN, INT64_MIN},
                  {INT64_MAX, INT64_MAX},
                  {INT64_MAX - 6, INT64_MAX},
                  {INT64_MIN, INT64_MIN + 99},
                  {INT64_MIN, -1},
                  {0, INT64_MAX}};
    static const uint32_t parallelisms[] = {1, 2, 3, 4, 7, 10, 11, 100, 32768};
    for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++)
        for (size_t p = 0; p < sizeof parallelisms / sizeof *parallelisms; p++) {
            // Distances are one less than counts, so that the full range fits.
            uint64_t shortest = UINT64_MAX, longest = 0;
            int64_t expected = ranges[r].first;
            bool complete = false;
            for (uint32_t i = 0; i < parallelisms[p]; i++) {
                int64_t first, last;
                if (!leati_sequence_share(ranges[r].first, ranges[r].last, i, parallelisms[p],
                                          &first, &last)) {
                    cr_assert(complete, "empty shares come last");
                    continue;
                }
                cr_assert(!complete && first == expected && last >= first);
                uint64_t distance = (uint64_t)last - (uint64_t)first;
                shortest = distance < shortest ? distance : shortest;
                longest = distance > longest ? distance : longest;
                complete = last == ranges[r].last;
                expected = complete ? 0 : last + 1;
            }
            cr_assert(complete, "range %zu, parallelism %u", r, parallelisms[p]);
            cr_assert(longest - shortest <= 1);
        }
}

Test(sequence, a_range_that_ends_before_it_begins_is_empty)
{
    int64_t first, last;
    cr_assert(!leati_sequence_share(1, 0, 0, 1, &first, &last));
    cr_assert(!leati_sequence_share(INT64_MAX, INT64_MIN, 0, 3, &first, &last));
}
