// SPDX-License-Identifier: Apache-2.0
// The processes of the scheduler: threads, guests, the monitor, and who creates and destroys it all. To be
// included behind scheduler.pml and the definition of turn(q).

proctype thread(byte me)
{
    LOCALS
    if
    :: unneeded -> goto gone
    :: started[me] && me >= NW && me < NS -> park(me)
    :: started[me] && (me < NW || me >= NS) -> skip
    fi;
    // C: thread_main
    do
    :: stopping -> break
    :: d_step { !stopping -> w = worker_of[me]; forget(); }
        if
        :: w == NONE ->
            add_spare(me);
            park(me)
        :: else ->
            // C: find_work
            take(w);
            if
            :: r == NONE -> steal()
            :: else
            fi;
            if
            :: r != NONE ->
                TURNING(1)
                run_turn(r);
                TURNING(0)
            :: else -> sleep_until_roused()
            fi
        fi
    od;
gone:
    ended[me] = 1
}

#if NG
// Four turns at most in the code, and time may be up after any of them.
proctype guest(byte me)
{
    byte turns;
    LOCALS
    // C: leati_visit_begin
    visiting[me - NT] = 1;
    guest_wakes(me - NT);
    past_waking++;
    // C: leati_visit_end
    d_step { visiting[me - NT] = 0; w = worker_of[me]; forget(); }
    if
    :: w == NONE
    :: else ->
        // C: give_turns
        do
        :: turns == 2 -> break
        :: turns < 2 && turns > 0 -> break
        :: turns < 2 ->
            take(w);
            if
            :: r == NONE -> break
            :: else ->
                TURNING(1)
                run_turn(r);
                TURNING(0)
                turns++;
                forget();
                if
                :: worker_of[me] != w -> break
                :: else
                fi
            fi
        od;
        hand_back();
        guests--
    fi
}
#endif

#if NG
#define A_HOST_IS_LEFT(x) (holder[x] >= NT)
#else
#define A_HOST_IS_LEFT(x) false
#endif
#define A_THREAD_IS_LEFT (!started[NT - 1] || spare[0] || spare[NT - 1] || spare[NT - 2])
#define MAY_TAKE_AWAY(x) \
    (!locked[x] && !sleeping[x] && turning[holder[x]] && len(queue[x]) > 0 && \
    (A_HOST_IS_LEFT(x) || A_THREAD_IS_LEFT))

#ifdef WITH_MONITOR
// The time that a turn took is left open: it may have been too long whenever there is a turn. Ticks
// that do nothing are left out, because they would hide that nothing goes on any more.
inline take_away(x)
{
    // C: look_at
    d_step {
        // C: take_away_locked
        lw = holder[x];
        needed = 0;
        heir(lw);
        if
        :: sp != NONE ->
            needed = 1;
            worker_of[lw] = NONE;
            worker_of[sp] = x;
            holder[x] = sp;
            assert_one_holder(x)
        :: else ->
            create_thread(x);
            if
            :: sp != NONE -> worker_of[lw] = NONE; assert_one_holder(x)
            :: else
            fi
        fi;
        locked[x] = 0;
    }
    if
    :: needed -> thread_rouse(sp)
    :: else
    fi
}

proctype monitor()
{
    byte me = OUTSIDE, mi;
    LOCALS
    // C: leati_monitor_main
    do
    :: stopping -> break
    :: atomic { MAY_TAKE_AWAY(0) -> locked[0] = 1; }
        take_away(0)
#if NW > 1
    :: atomic { MAY_TAKE_AWAY(1) -> locked[1] = 1; }
        take_away(1)
#endif
    // C: leati_park_for
    :: monitor_permit ->
        monitor_permit = 0;
        if
        :: stopping -> break
        :: else -> mi = 0
        fi
    :: mi < NW && !locked[mi] && sleeping[mi] -> mi++
    :: mi == NW ->
        monitor_idle = 1;
        if
#ifdef NO_RECHECK_MONITOR
        :: true ->
#else
        :: sleepers == NW ->
#endif
            atomic { monitor_permit -> monitor_permit = 0; }
        :: else
        fi;
        monitor_idle = 0;
        if
        :: stopping -> break
        :: else -> mi = 0
        fi
    od;
    monitor_ended = 1
}
#endif

// --- life

// C: leati_scheduler_create
// C: leati_scheduler_reserve
inline create_scheduler()
{
    d_step {
        i = 0;
        do
        :: i == NR -> break
        :: else -> home[i] = i % NW; i++
        od;
        i = 0;
        do
        :: i == NS -> break
        :: i < NW -> worker_of[i] = i; holder[i] = i; started[i] = 1; i++
        :: i >= NW && i < NS -> started[i] = 1; spare[i] = 1; i++
        od
    }
    atomic {
        i = 0;
        do
        :: i == NT -> break
        :: else -> run thread(i); i++
        od;
#if NG
        i = 0;
        do
        :: i == NG -> break
        :: else -> run guest(NT + i); i++
        od;
#endif
#ifdef WITH_MONITOR
        run monitor()
#endif
    }
}

// All runnables have ended. That this is reached, and passed, is the property that no wake-up is
// lost: else some process waits for ever, an invalid end state.
inline destroy_scheduler()
{
    // C: leat_job_wait
    live == 0;
    // C: leati_scheduler_destroy
#if NG
    // Whoever wakes tasks is past that.
    past_waking == NG;
#ifndef NO_WAIT_FOR_GUESTS
    guests == 0;
#endif
#endif
    stopping = 1;
#ifdef WITH_MONITOR
    monitor_permit = 1;
    monitor_ended;
#endif
    i = 0;
    do
    :: i == NT -> break
    :: i < NT && started[i] -> unpark(i); i++
    :: else -> i++
    od;
    i = 0;
    do
    :: i == NT -> break
    :: i < NT && started[i] ->
        ended[i];
#ifdef FREE_WHILE_JOINING
        freed[i] = 1;
#endif
        i++
    :: else -> i++
    od;
    unneeded = 1;
    i = 0;
    do
    :: i == NT -> break
    :: else -> freed[i] = 1; i++
    od
}
