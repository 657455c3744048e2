// SPDX-License-Identifier: Apache-2.0
// The way of records from producers to consumers: pools, channels, gates.
//
// Runnables 0 .. NP - 1 are producers, one lane and one pool each; the others are consumers, one
// gate each. Of the bytes only their number is kept: a record is RECORD_UNITS units, a segment
// holds SEGMENT_UNITS. Channel c leads from PRODUCER_OF(c) to CONSUMER_OF(c).
//
// Whoever includes this defines NP, NC (channels), NG (gates), POOL (segments of a pool), RING
// (slots of a channel), RECORDS, the units, PRODUCER_OF, CONSUMER_OF, and includes runnable.pml.
// In a ring, beside segments.
#define END_OF_DATA 12
#define END_OF_PARTITION 13
#define FINISHED 8   // in `committed`
#ifndef FIRST_EVENT
#define FIRST_EVENT 0 // 1: the end of data is left out
#endif
#define OUT 0
#define IN_LINE 1
#define NOTIFIED_CHANNEL 2

// Pools: which segments have come home; segment s of producer p is p * POOL + s.
byte returned[NP];
bit waiting[NP], dirty[NP];
byte committed[NP * POOL], references[NP * POOL];

// Channels and gates.
chan ring[NC] = [RING] of { byte };
byte channel_state[NC];
chan stack[NG] = [NC] of { byte };

// Only for assertions: what a producer had in its pool when it ended.
byte idle_at_end[NP];

// What is a task's own; of `idle`, too, each segment is a bit.
#define EXCHANGE_LOCALS \
    byte lane = NONE, used, produced, event = FIRST_EVENT, idle = (1 << POOL) - 1; bit maybe_blocked; \
    chan line = [NC] of { byte }; byte position[NC], consumed, open; \
    bit gone_on, more, first, for_event, available; byte c, i, item, seen, units, segment, reader;

// --- any thread

inline notify(x)
{
    // C: leati_channel_notify
    d_step {
        seen = channel_state[x];
        channel_state[x] = NOTIFIED_CHANNEL;
        reader = NP + CONSUMER_OF(x);
    }
    if
    :: seen == OUT ->
        // C: leati_gate_push_ready
#ifdef WAKE_BEFORE_PUSH
        d_step { first = len(stack[CONSUMER_OF(x)]) == 0; }
        if
        :: first -> wake(reader)
        :: else
        fi;
        stack[CONSUMER_OF(x)]!x
#else
        d_step {
            first = len(stack[CONSUMER_OF(x)]) == 0;
            stack[CONSUMER_OF(x)]!x;
        }
        if
        :: first -> wake(reader)
        :: else
        fi
#endif
    :: else
    fi;
    d_step { seen = 0; first = 0; reader = 0; }
}

inline poke(p)
{
    // C: leati_local_pool_poke
    d_step { first = waiting[p]; waiting[p] = 0; }
    if
    :: first -> first = 0; wake(p)
    :: else
    fi
}

// --- the producer's pool

// Sets `available`.
inline pool_available(p)
{
    // C: leati_local_pool_available
    // C: take_in
    if
    :: idle == 0 -> d_step { idle = returned[p]; returned[p] = 0; available = idle != 0; }
    :: else -> available = 1
    fi
}

// The channels of a producer have room for a segment (of which the events' slot is kept free). Rings
// only get emptier meanwhile, so to look at all at once is the same as one after the other.
inline lane_has_room(p)
{
    // C: lane_has_room
    d_step {
        available = 1;
        i = 0;
        do
        :: i == NC -> break
        :: i < NC && PRODUCER_OF(i) == p && len(ring[i]) >= RING - 1 -> available = 0; break
        :: else -> i++
        od;
        i = 0;
    }
}

// What a wait is for; sets `ok`.
inline ready(p)
{
    ok = 0;
#ifndef AWAIT_AFTER_LOOK
    // C: leati_local_pool_await
    waiting[p] = 1;
#endif
    if
    :: for_event ->
        // C: event_ready
        ok = len(ring[c]) < RING
    :: else ->
        // C: segment_ready
        lane_has_room(p);
        if
        :: available -> pool_available(p)
        :: else
        fi;
        ok = available
    fi;
#ifdef AWAIT_AFTER_LOOK
    waiting[p] = 1;
#endif
    available = 0
}

// Sets `available`.
inline output_available(p)
{
    // C: leati_task_output_available
    // C: leati_writer_available
    pool_available(p);
    // C: channel_is_full
    d_step {
        i = 0;
        do
        :: !available || i == NC -> break
        :: available && i < NC && PRODUCER_OF(i) == p &&
            len(ring[i]) >= RING - 1 + (lane != NONE) -> available = 0
        :: else -> i++
        od;
        i = 0;
    }
}

// --- the writer

inline notify_lane(p)
{
    // C: notify_lane
    c = 0;
    do
    :: c == NC -> break
    :: c < NC && PRODUCER_OF(c) == p -> notify(c); c++
    :: else -> c++
    od;
    c = 0
}

inline finish_lane(p)
{
    // C: finish_lane
    if
    :: lane == NONE
    :: else ->
        dirty[p] = 0;
#ifdef NOTIFY_BEFORE_FINISH
        notify_lane(p);
        d_step { committed[lane] = used + FINISHED; lane = NONE; used = 0; }
#else
        d_step { committed[lane] = used + FINISHED; lane = NONE; used = 0; }
        notify_lane(p)
#endif
    fi
}

inline flush_lane(p)
{
    // C: flush_lane
    if
    :: dirty[p] -> dirty[p] = 0; notify_lane(p)
    :: else
    fi
}

// Gives the lane a segment, waiting for one in the middle of a record if need be.
inline open_lane(p)
{
    // C: open_lane
    gone_on = 1;
    do
    :: !gone_on || lane != NONE -> break
    :: else ->
        // C: request_segment
        lane_has_room(p);
        if
        :: available -> pool_available(p)
        :: else
        fi;
        if
        :: available ->
            // C: leati_local_pool_request
            d_step {
                segment = (idle & 1 -> 0 : 1);
                idle = idle & ~(1 << segment);
                lane = p * POOL + segment;
                committed[lane] = 0;
                references[lane] = 0;
                i = 0;
                do
                :: i == NC -> break
                :: i < NC && PRODUCER_OF(i) == p -> references[lane]++; i++
                :: else -> i++
                od;
            }
            // C: enqueue_segment
            i = 0;
            do
            :: i == NC -> break
            // C: leati_channel_add_segment
            :: i < NC && PRODUCER_OF(i) == p -> assert(nfull(ring[i])); ring[i]!lane; i++
            :: else -> i++
            od;
            output_available(p);
            if
            :: available
            :: else -> maybe_blocked = 1
            fi
        :: else ->
            // C: wait_mid_record
            for_event = 0;
            wait_mid_turn(p)
        fi
    od;
    i = 0; segment = 0; available = 0
}

inline write_record(p)
{
    // C: write_pieces
    units = RECORD_UNITS;
    do
    :: units == 0 -> break
    :: units > 0 && lane != NONE && used < SEGMENT_UNITS -> used++; units--
    :: else ->
        finish_lane(p);
        open_lane(p);
        if
        :: gone_on
        :: else -> break
        fi
    od;
    if
    :: units == 0 ->
        // C: leati_writer_publish
        committed[lane] = used;
        dirty[p] = 1;
        produced++;
        // C: leati_writer_beyond_mark
        if
        :: used == SEGMENT_UNITS -> finish_lane(p)
        :: else
        fi
    :: else
    fi;
    units = 0
}

// The two events at the end, each behind a finished segment, each in a slot of its own.
inline write_events(p)
{
    // C: close_task
    // C: leati_writer_broadcast_event
    gone_on = 1;
    c = 0;
    do
    :: event == 2 || !gone_on -> break
    :: event < 2 && gone_on && c == NC -> event++; c = 0
    :: event < 2 && gone_on && c < NC && PRODUCER_OF(c) != p -> c++
    :: else ->
        do
        :: nfull(ring[c]) || !gone_on -> break
        :: full(ring[c]) && gone_on -> for_event = 1; wait_mid_turn(p)
        od;
        if
        :: gone_on ->
            // C: leati_channel_add_event
            item = END_OF_DATA + event;
            ring[c]!item;
            item = 0;
            notify(c);
            c++
        :: else
        fi
    od;
    c = 0; for_event = 0
}

inline sleep_blocked(p)
{
    // C: sleep_blocked
    flush_lane(p);
    // C: leati_writer_await
#ifndef NO_AWAIT
    waiting[p] = 1;
#endif
#ifdef NO_RECHECK_POOL_AWAIT
    result = SLEEP
#else
    output_available(p);
    if
    :: available -> maybe_blocked = 0; result = AGAIN
    :: else -> result = SLEEP
    fi;
    available = 0
#endif
}

inline turn_of_producer(p)
{
    // C: leati_source_step
    result = AGAIN;
    gone_on = 1;
    if
    :: produced == RECORDS -> finish_lane(p); write_events(p); result = END; idle_at_end[p] = idle
    :: else ->
        if
        :: maybe_blocked ->
            output_available(p);
            if
            :: available -> maybe_blocked = 0
            :: else
            fi
        :: else
        fi;
        available = 0;
        if
        :: maybe_blocked -> sleep_blocked(p)
        :: else -> write_record(p)
        fi;
        if
        :: gone_on
        :: else -> result = END
        fi
    fi;
    gone_on = 0
}

// --- the consumer

inline drop_segment(p)
{
    // C: leati_segment_drop
#ifdef DROP_IN_TWO_STEPS
    seen = references[item];
    references[item] = seen - 1;
    more = seen == 1;
#else
    more = 0;
    if
    :: references[item] == 1 -> more = 1
    :: else ->
        d_step { references[item]--; more = references[item] == 0; }
    fi;
#endif
    if
    :: more ->
#ifdef POKE_BEFORE_HOMECOMING
        poke(p);
#endif
        d_step {
            segment = item - p * POOL;
            assert(!(returned[p] & (1 << segment)));
            returned[p] = returned[p] | (1 << segment);
            segment = 0;
        }
#ifndef POKE_BEFORE_HOMECOMING
        poke(p)
#endif
#ifndef NO_POKE_OF_POP
    :: else -> poke(p)
#else
    :: else
#endif
    fi;
    more = 0
}

// Reads the channel c until nothing is left for now; or, with `more`, leaves some.
inline read_channel(g)
{
    // C: read_channel
    do
    // C: leati_channel_peek
    :: len(ring[c]) == 0 -> break
    :: ring[c]?[END_OF_DATA] || ring[c]?[END_OF_PARTITION] ->
        // C: pop
        // C: take_event
#ifdef POKE_BEFORE_POP
        poke(PRODUCER_OF(c));
        ring[c]?item;
#else
        ring[c]?item;
#ifndef NO_POKE_OF_POP
        poke(PRODUCER_OF(c));
#endif
#endif
        if
        :: item == END_OF_PARTITION -> open--; break
        :: else
        fi
    :: else ->
        ring[c]?<item>;
        seen = committed[item];
        if
        :: position[c] < (seen & 7) ->
            d_step {
                consumed = consumed + (seen & 7) - position[c];
                position[c] = seen & 7;
            }
            // The budget of the turn may end here.
            if
            :: true
            :: more = 1; break
            fi
        :: position[c] == (seen & 7) && (seen & FINISHED) ->
            d_step { ring[c]?item; position[c] = 0; }
            drop_segment(PRODUCER_OF(c))
        :: else -> break
        fi
    od;
    item = 0; seen = 0
}

inline turn_of_consumer(g)
{
    // C: leati_input_step
    do
    :: open == 0 ->
        // Everything has arrived.
        assert(consumed == RECORDS * RECORD_UNITS * (NP > 1 -> NP : 1));
        result = END;
        break
    :: else ->
        // C: leati_gate_poll
        // C: take_ready
        d_step {
            do
            :: len(stack[g]) > 0 -> stack[g]?c; line!c
            :: else -> break
            od;
            c = 0;
        }
        if
        // C: sleep_idle
        :: len(line) == 0 -> result = SLEEP; break
        :: else ->
            line?c;
            channel_state[c] = IN_LINE;
            read_channel(g);
#ifdef POLL_AFTER_READ
            channel_state[c] = IN_LINE;
#endif
            // C: leati_gate_done
#ifdef NO_RECHECK_GATE_DONE
            if
            :: !more -> channel_state[c] = OUT
            :: else -> line!c
            fi;
#else
            first = 0;
            if
            :: !more ->
                d_step {
                    if
                    :: channel_state[c] == IN_LINE -> channel_state[c] = OUT; first = 1
                    :: else
                    fi
                }
            :: else
            fi;
            if
            :: first
            :: else -> line!c
            fi;
#endif
            c = 0;
            first = 0;
            if
            :: more -> more = 0; result = AGAIN; break
            :: else
            fi
        fi
    od
}

// --- tasks

inline turn(q)
{
    // C: task_turn
    // C: run_stage
    if
    // C: leati_task_is_stopping
    :: cancelled -> result = END
    :: !cancelled && q < NP -> turn_of_producer(q)
    :: else -> turn_of_consumer(q - NP)
    fi
}

inline set_up_exchange(q)
{
    d_step {
        c = 0;
        do
        :: c == NC -> break
        :: c < NC && q == NP + CONSUMER_OF(c) -> open++; c++
        :: else -> c++
        od;
        c = 0;
    }
}

// When all tasks have ended without having been cancelled, all is home.
inline check_exchange()
{
    d_step {
        c = 0;
        do
        :: c == NP -> break
        :: else -> assert(cancelled || (idle_at_end[c] ^ returned[c]) == (1 << POOL) - 1); c++
        od;
        c = 0;
        do
        :: c == NC -> break
        :: else -> assert(cancelled || len(ring[c]) == 0); c++
        od;
        c = 0;
    }
}
