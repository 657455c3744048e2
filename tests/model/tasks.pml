// SPDX-License-Identifier: Apache-2.0
// Producers and consumers under a scheduler of which only its promise is kept: a runnable that is
// made ready is given a turn, one at a time. That the scheduler keeps it is what sleep.pml and
// lend.pml show. One process a runnable, one for the timer, one for starting and cancelling.
#ifndef NP
#define NP 1
#endif
#ifndef NG
#define NG 1
#endif
#ifndef NC
#if NP > NG
#define NC NP
#else
#define NC NG
#endif
#endif
#ifndef POOL
#define POOL 2
#endif
#ifndef RING
#define RING 2
#endif
#ifndef RECORDS
#define RECORDS 2
#endif
#ifndef RECORD_UNITS
#define RECORD_UNITS 1
#endif
#ifndef SEGMENT_UNITS
#define SEGMENT_UNITS 2
#endif
// Several producers lead to one gate, or one producer to several.
#if NP > 1
#define PRODUCER_OF(x) (x)
#else
#define PRODUCER_OF(x) 0
#endif
#if NG > 1
#define CONSUMER_OF(x) (x)
#else
#define CONSUMER_OF(x) 0
#endif
#define NR (NP + NG)
#define TASK_LOCALS EXCHANGE_LOCALS

#include "runnable.pml"

// Made ready by whoever has the right to, once.
inline enqueue(q)
{
    d_step {
        assert(in_queues[q] == 0 && runner[q] == NONE && state[q] == (IDLE | NOTIFIED));
        in_queues[q] = 1;
    }
}
inline lend() { skip; }
inline take_back() { skip; }

#include "exchange.pml"

proctype task(byte me)
{
    LOCALS
    set_up_exchange(me);
    do
    :: (state[me] & DONE) == DONE -> break
    :: d_step { in_queues[me] == 1 -> in_queues[me] = 0; }
        run_turn(me);
        d_step { result = 0; ok = 0; }
    od
}

// The timer, twice at most: at any other time it would do nothing that is new.
proctype timer()
{
    byte ticks;
    LOCALS
    do
    // C: leati_writer_tick
    :: ticks < 2 && dirty[0] -> notify_lane(0); ticks++
    :: ticks == 2 || live == 0 -> break
    od
}

init
{
    LOCALS
    atomic {
        c = 0;
        do
        :: c == NR -> break
        :: else -> run task(c); c++
        od;
        c = 0;
#ifdef TIMER
        run timer();
#endif
    }
    // C: leat_start
    atomic {
        i = 0;
        do
        :: i == NR -> break
        :: else -> wake(i); i++
        od;
        i = 0;
    }
#ifdef CANCEL
    // C: leat_job_cancel
    // C: stop_tasks
    cancelled = 1;
    do
    :: i == NR -> break
    :: else -> wake(i); i++
    od;
#endif
    live == 0;
    check_exchange()
}
