// SPDX-License-Identifier: Apache-2.0
// Waiting in the middle of a turn, lending and taking back, the monitor.
//
// Runnable 0 waits, declared, until runnable 1 has run; then it wakes runnable 2 and blocks,
// undeclared, until that one has run. All three stand at the one worker, so somebody has to take
// over each time. It ends with its second mail, which may come while it waits.
//
// What wakes runnable 1 comes from outside or, with SELF, from runnable 0, which then wakes runnable
// 2 as well, gets no second mail and does not block. With CANCEL the wait may also be ended from
// outside. With guests the first one wakes runnable 0; a second one wakes runnable 2, and
// the monitor is left out.
#ifdef SELF
#define MAILS 1
#else
#define MAILS 2
#endif
#define NW 1
#ifndef NT
#define NT 2
#endif
#ifndef NS
#define NS 2
#endif
#define NR 3
#if !defined(NG) || NG < 2
#define WITH_MONITOR
#endif
#define TASK_LOCALS bit gone_on; byte mail;

byte mails[NR], taken;
bit ran[NR];

#include "scheduler.pml"

inline post(q)
{
    mails[q]++;
    wake(q)
}

inline ready(q) { ok = ran[1]; }

inline turn(q)
{
    d_step { mail = mails[q]; mails[q] = 0; }
    result = SLEEP;
    if
    :: mail && q == 0 ->
        taken = taken + mail;
        if
        :: !cancelled && !ran[1] ->
#ifdef SELF
            post(1);
            post(2);
#endif
            // C: wait_mid_record
            wait_mid_turn(0);
            gone_on = 0
        :: else
        fi;
#ifndef SELF
        if
        :: mails[2] == 0 && !ran[2] ->
            post(2);
            ran[2]
        :: else
        fi;
#endif
        if
        :: taken == MAILS -> result = END
        :: else
        fi
    :: mail && q > 0 ->
        ran[q] = 1;
        if
        :: q == 1 -> wake(0)
        :: else
        fi;
        result = END
    :: else
    fi;
    mail = 0
}

#if NG
inline guest_wakes(g)
{
    if
    :: g == 0 -> post(0)
    :: else -> post(2)
    fi
}
#endif

#include "threads.pml"

init
{
    byte me = OUTSIDE, i;
    LOCALS
#if NG
    create_scheduler();
#else
    atomic {
        create_scheduler();
        post(0)
    }
#endif
#ifndef SELF
    post(1);
    post(0);
#endif
#ifdef CANCEL
    // C: stop_tasks
    cancelled = 1;
    wake(0);
#endif
    destroy_scheduler()
}
