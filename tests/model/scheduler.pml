// SPDX-License-Identifier: Apache-2.0
// Workers, their queues and sleep, spares and lending, guests, the monitor, the end of the scheduler.
//
// A critical section is one step where it has one effect that is seen without the lock; where it
// has two (the push and the count of sleepers) the lock is held from one step to the next.
//
// Whoever includes this defines NW (workers), NT (threads that exist at most), NS (threads that
// exist from the start; the first NW hold the workers), NR and, before threads.pml, turn(q). With NG
// (guests) also guest_wakes(g). Their numbers follow those of the threads.
#define WITH_SCHEDULER
#include "runnable.pml"
#ifndef NG
#define NG 0
#endif
#define OUTSIDE (NT + NG)

byte home[NR];
chan queue[NW] = [NR] of { byte };
bit locked[NW], sleeping[NW];
byte holder[NW];
byte sleepers;
bit stopping;
byte worker_of[OUTSIDE] = NONE;
bit permit[NT], spare[NT];
bit started[NT], ended[NT], freed[NT], unneeded;
#ifdef WITH_MONITOR
bit turning[OUTSIDE];
bit monitor_idle, monitor_permit, monitor_ended;
#define TURNING(x) turning[me] = x;
#else
#define TURNING(x)
#endif

#if NG
byte host[NG] = NONE;
bit visiting[NG];
byte guests, past_waking;
#endif

// `me` is OUTSIDE for what is neither one of the scheduler's threads nor a guest.
#define SCHEDULER_LOCALS \
    byte w, ew, et, elength, ei, sv, lw, sp, count, lent, lent_to; bit by_holder, mine, needed;

// Fewer states: what no step will look at any more has one value only.
inline forget()
{
    r = 0; before = 0; ok = 0; ew = 0; et = 0; elength = 0; ei = 0; sv = 0; lw = 0; sp = 0;
    count = 0; by_holder = 0; mine = 0; needed = 0; result = 0; lent = NONE; lent_to = 0;
}

// Of the threads exactly one believes to hold the worker, and the worker agrees.
inline assert_one_holder(x)
{
    count = 0;
    ei = 0;
    do
    :: ei == OUTSIDE -> break
    :: else ->
        if
        :: worker_of[ei] == x -> count++
        :: else
        fi;
        ei++
    od;
    assert(count == 1 && worker_of[holder[x]] == x)
}

// --- permits

// C: leati_unpark
inline unpark(t)
{
    d_step {
        // Given to a living thread that is going to use it up: nobody has given it one before.
        assert(!freed[t] && (!permit[t] || stopping));
        permit[t] = 1;
    }
}

// C: leati_park
inline park(t) { atomic { permit[t] -> permit[t] = 0; } }

inline rouse_monitor()
{
    // C: leati_monitor_rouse
#if defined(WITH_MONITOR) && !defined(NO_ROUSE_MONITOR)
    if
    :: monitor_idle ->
        d_step { ok = monitor_idle; monitor_idle = 0; }
        if
        :: ok -> monitor_permit = 1
        :: else
        fi
    :: else
    fi
#else
    skip
#endif
}

inline thread_rouse(t)
{
    // C: leati_thread_rouse
    unpark(t);
    rouse_monitor()
}

// Under the lock. Sets `et`.
inline rouse_locked(x)
{
    // C: leati_worker_rouse_locked
    et = NONE;
    if
    :: sleeping[x] ->
        sleeping[x] = 0;
        et = holder[x];
#ifndef NO_SLEEPERS_ANNOUNCE
        assert(sleepers > 0);
        sleepers--
#endif
    :: else
    fi
}

// --- queues

#if NG
// Under the lock.
inline invite(x)
{
    // C: leati_guest_invite_locked
    if
    :: me >= NT && me < OUTSIDE && sleeping[x] ->
        if
        :: visiting[me - NT] && worker_of[me] == NONE ->
            assert(host[me - NT] == NONE);
            host[me - NT] = holder[x];
            worker_of[holder[x]] = NONE;
            worker_of[me] = x;
            holder[x] = me;
            guests++;
            assert_one_holder(x)
        :: else
        fi
    :: else
    fi
}
#endif

inline rouse_another(x)
{
    // C: rouse_another
    sv = 0;
    do
    :: sv == NW -> break
    :: sv < NW && sv == x -> sv++
    :: sv < NW && sv != x ->
        atomic {
            !locked[sv] ->
            d_step { rouse_locked(sv); }
        }
        if
        :: et != NONE -> thread_rouse(et); break
        :: else -> sv++
        fi
    od
}

// Called by whoever made the runnable ready, once.
inline enqueue(q)
{
    // C: enqueue
    atomic {
        !locked[home[q]] ->
        d_step {
            ew = home[q];
            locked[ew] = 1;
            // C: push_locked
            assert(in_queues[q] == 0 && runner[q] == NONE && state[q] == (IDLE | NOTIFIED));
            in_queues[q]++;
            queue[ew]!q;
            elength = len(queue[ew]);
            by_holder = holder[ew] == me;
        }
    }
    d_step {
#if NG
        invite(ew);
#endif
        rouse_locked(ew);
        locked[ew] = 0;
    }
    if
#if NG
    :: et == me -> rouse_monitor()
#endif
    :: et != NONE && et != me -> thread_rouse(et)
#ifndef NO_ROUSE_ANOTHER
    :: et == NONE && (!by_holder || elength > 1) ->
        if
        :: sleepers > 0 -> rouse_another(ew)
        :: else
        fi
#endif
    :: else
    fi
}

// Whether there is something is looked at without the lock first; to see something and then find
// that it has gone is the same as to look later, so both are one step.
inline take(x)
{
    // C: leati_worker_take
    // C: pop_locked
    atomic {
        len(queue[x]) == 0 || !locked[x] ->
        if
        :: len(queue[x]) > 0 -> queue[x]?r; in_queues[r]--; home[r] = w
        :: else -> r = NONE
        fi
    }
}

inline steal()
{
    // C: steal
    sv = 1;
    do
    :: sv == NW -> break
    :: else ->
        take((w + sv) % NW);
        if
        :: r != NONE -> break
        :: else -> sv++
        fi
    od
}

// --- sleep

// Sets `ok` when somebody has work.
inline anyone_has_work()
{
    // C: anyone_has_work
    ok = 0;
    sv = 0;
    do
    :: sv == NW -> break
    :: sv < NW && len(queue[sv]) > 0 -> ok = 1; break
    :: else -> sv++
    od
}

inline sleep_until_roused()
{
#ifdef LOOK_BEFORE_ANNOUNCE
    anyone_has_work();
    needed = ok;
#endif
    // C: announce_sleep
    atomic {
        !locked[w] ->
        d_step {
            mine = 0;
            if
#ifdef NO_HOLDER_CHECK_SLEEP
            :: len(queue[w]) == 0 ->
#else
            :: len(queue[w]) == 0 && holder[w] == me ->
#endif
                // Counted twice it would never be 0 again.
                assert(!sleeping[w]);
                sleeping[w] = 1;
                mine = 1;
#ifndef NO_SLEEPERS_ANNOUNCE
                sleepers++
#endif
            :: else
            fi
        }
    }
    // C: sleep_until_roused
    if
    :: mine ->
#ifdef LOOK_BEFORE_ANNOUNCE
        ok = needed;
#else
#ifdef NO_RECHECK_SLEEP
        ok = 0;
#else
        anyone_has_work();
#endif
#endif
        et = NONE;
        if
#ifdef NO_RECHECK_STOPPING
        :: ok ->
#else
        :: stopping || ok ->
#endif
#ifdef NO_END_OF_OWN_SLEEP
            et = me
#else
            atomic {
                !locked[w] ->
                d_step {
                    if
                    :: holder[w] == me -> rouse_locked(w)
                    :: else
                    fi
                }
            }
#endif
        :: else
        fi;
        if
        // By itself: nobody has given a permit.
#ifdef PERMIT_LEFT_BEHIND
        :: et != NONE || ok -> rouse_monitor()
#else
        :: et != NONE -> rouse_monitor()
#endif
        :: else -> park(me)
        fi
    :: else
    fi
}

// --- spares and lending

inline add_spare(t)
{
    // C: leati_thread_add_spare
    d_step { assert(!spare[t] && worker_of[t] == NONE); spare[t] = 1; }
}

// Any of them: the order of the list is of no matter. Sets `sp`.
inline take_spare()
{
    // C: leati_thread_take_spare
    sp = 0;
    do
    :: sp == NT -> sp = NONE; break
    :: sp < NT && spare[sp] -> spare[sp] = 0; break
    :: else -> sp++
    od
}

// A new thread for worker x, whose lock is held. Sets `sp`; NONE when there can be no more.
inline create_thread(x)
{
    // C: leati_thread_create
    sp = 0;
    do
    :: sp == NT -> sp = NONE; break
    :: sp < NT && !started[sp] ->
        worker_of[sp] = x;
        holder[x] = sp;
        started[sp] = 1;
        break
    :: else -> sp++
    od
}

// Under the lock of the worker of thread t, which another one is to serve. Sets `sp`.
inline heir(t)
{
    // C: leati_thread_heir_locked
#if NG
    sp = NONE;
    if
    :: t >= NT -> sp = host[t - NT]; host[t - NT] = NONE
    :: else
    fi;
    if
    :: sp == NONE -> take_spare()
    :: else
    fi
#else
    take_spare()
#endif
}

// Worker x has been put to sleep by another thread than its holder.
inline rouse_for_backlog(x)
{
    // C: leati_worker_rouse_for_backlog
    anyone_has_work();
    if
    :: ok ->
        atomic {
            !locked[x] ->
            d_step { rouse_locked(x); }
        }
        if
        :: et != NONE -> thread_rouse(et)
        :: else
        fi
    :: else
    fi
}

// Under the lock.
inline put_to_sleep(x)
{
    assert(!sleeping[x]);
    sleeping[x] = 1;
#ifndef NO_SLEEPERS_ANNOUNCE
    sleepers++
#endif
}

inline lend()
{
    // C: leati_scheduler_lend
    lw = worker_of[me];
    lent = NONE;
    if
    :: lw == NONE
    :: else ->
        atomic {
            !locked[lw] ->
            d_step {
                needed = 0;
                sp = NONE;
#ifdef NO_HOLDER_CHECK_LEND
                mine = 1;
#else
                mine = holder[lw] == me;
#endif
                if
                :: mine -> heir(me)
                :: else
                fi;
                if
                :: mine && sp != NONE ->
                    // C: lend_to_spare_locked
                    worker_of[me] = NONE;
                    lent = lw;
                    lent_to = sp;
                    worker_of[sp] = lw;
                    holder[lw] = sp;
                    assert_one_holder(lw);
                    if
                    :: len(queue[lw]) > 0 -> needed = 1
                    :: else -> put_to_sleep(lw)
                    fi
                :: mine && sp == NONE ->
                    // C: lend_to_new_thread_locked
                    create_thread(lw);
                    // The reserve of rule 4.
                    assert(sp != NONE);
                    worker_of[me] = NONE;
                    assert_one_holder(lw);
                    sp = NONE
                :: else
                fi
            }
        }
        if
        :: sp == NONE
        :: sp != NONE && needed -> thread_rouse(sp)
        :: else ->
#ifdef NO_RECHECK_LEND
            skip
#else
            rouse_for_backlog(lw)
#endif
        fi
    fi
}

inline take_back()
{
    // C: leati_scheduler_take_back
    if
    :: lent == NONE
    :: else ->
        atomic {
            !locked[lent] ->
            d_step {
                mine = 0;
                if
#ifdef NO_HOLDER_CHECK_TAKE_BACK
                :: sleeping[lent] ->
#else
#ifdef NO_SLEEPING_CHECK_TAKE_BACK
                :: holder[lent] == lent_to ->
#else
                :: holder[lent] == lent_to && sleeping[lent] ->
#endif
#endif
                    mine = 1;
                    rouse_locked(lent);
                    worker_of[lent_to] = NONE;
                    holder[lent] = me;
                    worker_of[me] = lent;
                    assert_one_holder(lent);
#if NG && !defined(HOST_AS_SPARE)
                    // C: leati_guest_keep_host_locked
                    if
                    :: me >= NT -> host[me - NT] = lent_to
                    :: else -> add_spare(lent_to)
                    fi
#else
                    add_spare(lent_to)
#endif
                :: else
                fi;
                lent = NONE;
            }
        }
        if
        :: mine ->
#ifdef NO_MONITOR_ROUSE_TAKE_BACK
            skip
#else
            rouse_monitor()
#endif
        :: else
        fi
    fi
}

#if NG
inline hand_back()
{
    // C: hand_back
    atomic {
        !locked[w] ->
        d_step {
            // Else the worker has been freed.
            assert(!unneeded);
            needed = 0;
            mine = holder[w] == me;
            if
            :: mine ->
                sp = host[me - NT];
                host[me - NT] = NONE;
                assert(sp != NONE && worker_of[sp] == NONE && !spare[sp]);
                worker_of[me] = NONE;
                worker_of[sp] = w;
                holder[w] = sp;
                assert_one_holder(w);
                if
                :: len(queue[w]) > 0 -> needed = 1
                :: else -> put_to_sleep(w)
                fi
            :: else -> assert(worker_of[me] == NONE && host[me - NT] == NONE)
            fi
        }
    }
    if
    :: mine && needed -> thread_rouse(sp)
    :: mine && !needed ->
#ifdef NO_RECHECK_HAND_BACK
        skip
#else
        rouse_for_backlog(w)
#endif
    :: else
    fi
}
#endif
