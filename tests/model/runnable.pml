// SPDX-License-Identifier: Apache-2.0
// A runnable's state word, and waiting in the middle of a turn.
//
// A comment `C: name` names the function of the sources that a step stands for; check.sh looks that
// they exist. Whoever includes this defines NR (runnables), enqueue(r), lend() and take_back().
// Everything that an `inline` needs is in LOCALS, because a process has no other scopes.

#define NONE 15

#define IDLE 0
#define NOTIFIED 1
#define RUNNING 2
#define WAITING 4
#define DONE 6

#define AGAIN 0
#define SLEEP 1
#define END 2

byte state[NR];
bit on_futex[NR]; // a waiter sleeps in the kernel
bit cancelled;
byte live = NR;
// Only for assertions: who runs it, and in how many queues it stands.
byte runner[NR] = NONE;
byte in_queues[NR];

#ifdef WITH_SCHEDULER
#define LOCALS RUNNABLE_LOCALS SCHEDULER_LOCALS TASK_LOCALS
#else
#define LOCALS RUNNABLE_LOCALS TASK_LOCALS
#endif
#define RUNNABLE_LOCALS byte before, r, result; bit ok;

inline wake(q)
{
    // C: leati_runnable_wake
    d_step { before = state[q]; state[q] = state[q] | NOTIFIED; }
    if
    :: before == IDLE -> enqueue(q)
#ifndef NO_FUTEX_WAKE
    // C: leati_futex_wake
    :: before == WAITING -> on_futex[q] = 0
#endif
    :: else
    fi;
    before = 0
}

// One turn of a runnable that was taken from a queue. `turn(q)` sets `result`.
inline run_turn(q)
{
    // C: leati_thread_give_turn
#ifdef LOOK_BEFORE_CLEAR
    d_step { assert(runner[q] == NONE && in_queues[q] == 0); runner[q] = me; }
    turn(q);
    if
    :: result != END -> state[q] = RUNNING
    :: else
    fi;
#else
    d_step {
        assert(runner[q] == NONE && in_queues[q] == 0 && state[q] == (IDLE | NOTIFIED));
        runner[q] = me;
        state[q] = RUNNING;
    }
    turn(q);
#endif
    if
    :: result == END ->
        d_step { runner[q] = NONE; state[q] = DONE; }
        // C: leati_job_task_ended
        live--
    :: else ->
        ok = 0;
#ifdef NO_CAS_TO_IDLE
        if
        :: result == SLEEP -> d_step { runner[q] = NONE; state[q] = IDLE; ok = 1; }
#else
        if
        :: result == SLEEP ->
            d_step {
                if
                :: state[q] == RUNNING -> runner[q] = NONE; state[q] = IDLE; ok = 1
                :: else
                fi
            }
#endif
        :: else
        fi;
        if
        :: ok
        :: else ->
            d_step { runner[q] = NONE; state[q] = IDLE | NOTIFIED; }
            enqueue(q)
        fi
    fi
}

// Waits until `ready(q)` sets `ok`, or `stops` holds; then `gone_on` is 0.
inline wait_mid_turn(q)
{
    // C: leati_scheduler_wait
    gone_on = 1;
    ok = 0;
    if
    :: cancelled -> gone_on = 0
    :: else ->
        ready(q)
    fi;
    if
    :: !gone_on || ok
    :: else ->
        lend();
#ifdef WAIT_AS_IDLE
        state[q] = IDLE;
#else
        state[q] = WAITING;
#endif
        do
        :: cancelled -> gone_on = 0; break
        :: else ->
#ifndef NO_LOOK_IN_WAIT
            ready(q);
            if
            :: ok -> break
            :: else
            fi;
#endif
            // C: leati_futex_wait
#ifdef FUTEX_WITHOUT_EXPECTED
            on_futex[q] = 1;
            !on_futex[q];
#else
            if
            :: atomic { state[q] == WAITING -> on_futex[q] = 1; }
                !on_futex[q]
            :: atomic { state[q] != WAITING -> skip; }
            fi;
#endif
            d_step { state[q] = state[q] & ~NOTIFIED; }
#ifdef NO_LOOK_IN_WAIT
            ready(q);
            if
            :: ok -> break
            :: else
            fi;
#endif
        od;
#ifdef NO_NOTIFIED_ON_RETURN_FROM_WAIT
        state[q] = RUNNING;
#else
        state[q] = RUNNING | NOTIFIED;
#endif
        take_back()
    fi
}
