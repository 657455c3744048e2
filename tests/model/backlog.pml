// SPDX-License-Identifier: Apache-2.0
// A worker that is lent while its queue is empty sleeps without having looked round, because its new
// holder is parked already. Runnable 1 keeps worker 1 busy until runnable 2 has run, which comes from
// outside to the same worker; runnable 0 lends worker 0 meanwhile. There is no monitor here: its help
// must not be needed.
//
// With a guest runnable 0 is woken by that one and does not wait: who looks round is the guest.
#define NW 2
#define NT 3
#define NS 3
#define NR 3
#define TASK_LOCALS bit gone_on;

bit ran;

#include "scheduler.pml"

inline ready(q) { ok = ran; }

inline turn(q)
{
    if
#if NG
    :: q == 0
#else
    :: q == 0 -> wait_mid_turn(0)
#endif
    :: q == 1 -> ran
    :: q == 2 -> ran = 1; wake(0)
    fi;
    result = END
}

#if NG
#define guest_wakes(g) wake(0)
#endif

#include "threads.pml"

init
{
    byte me = OUTSIDE, i;
    LOCALS
    atomic {
        create_scheduler();
        home[0] = 0;
        home[1] = 1;
        home[2] = 1;
        wake(1)
    }
#if !NG
    wake(0);
#endif
    wake(2);
    destroy_scheduler()
}
