// SPDX-License-Identifier: Apache-2.0
#include "operators/pace.h"

int64_t leati_pace_due_ns(const leati_pace *pace, int64_t index)
{
    double after_ns = (double)index / pace->per_second * 1e9;
    // Centuries away; what lies closer fits the sum.
    if (after_ns > 4e18)
        return INT64_MAX;
    return pace->start_ns + (int64_t)after_ns;
}

void leati_pace_forgive(leati_pace *pace, int64_t next, int64_t now_ns)
{
    int64_t overdue_ns = now_ns - leati_pace_due_ns(pace, next);
    if (overdue_ns > LEATI_PACE_DEBT_NS)
        pace->start_ns += overdue_ns - LEATI_PACE_DEBT_NS;
}

int64_t leati_pace_wake_ns(const leati_pace *pace, int64_t next, int64_t now_ns)
{
    int64_t due_ns = leati_pace_due_ns(pace, next), soonest_ns = now_ns + LEATI_PACE_BURST_NS;
    return due_ns > soonest_ns ? due_ns : soonest_ns;
}
