// SPDX-License-Identifier: Apache-2.0
// Sleeping and being woken: mails from outside and between runnables, on two workers without
// spares. Runnables 0 and 1 stand at worker 0 and 2 at worker 1 (or where they were stolen to).
//
// Runnable 2 forwards its mail to runnable 0, which gets another one from outside. With its last
// mail runnable 0 blocks, unknown to the scheduler, until runnable 1 has run, which is woken from
// outside; that one must not be left in the queue of a worker that is busy while the other sleeps.
#define NW 2
#define NT 2
#define NS 2
#define NR 3
#define TASK_LOCALS byte mail;
#define ready(q) skip

byte mails[NR];
byte taken[NR];
bit second_ran;

#include "scheduler.pml"

// C: leati_mailbox_post
inline post(q)
{
    mails[q]++;
    wake(q)
}

// C: task_turn
inline turn(q)
{
    // C: leati_mailbox_run_batch
    d_step { mail = mails[q]; mails[q] = 0; taken[q] = taken[q] + mail; }
    result = SLEEP;
    if
    :: q == 2 ->
        do
        :: mail > 0 -> post(0); mail--
        :: else -> break
        od
    :: q == 0 && taken[0] == 2 -> second_ran
    :: q == 1 && taken[1] == 1 -> second_ran = 1
    :: else
    fi;
    if
    :: taken[q] == (q == 0 -> 2 : 1) -> result = END
    :: else
    fi
}

#include "threads.pml"

init
{
    byte me = OUTSIDE, i;
    LOCALS
    create_scheduler();
    post(2);
    post(0);
    post(1);
    destroy_scheduler()
}
