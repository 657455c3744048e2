// SPDX-License-Identifier: Apache-2.0
// A local channel: one subpartition of a producer and, at the same time, one input channel of a
// consumer's gate.
//
// Threading. One producer task and one consumer task, each on one thread at a time. A bounded ring
// of slots (a segment or an event) leads from one to the other; only its last segment may be
// unfinished. Flushing may also come from the timer.
//
// Availability. A channel is out, in its gate's line (or being read), or in line and notified since
// it was last polled. Whoever publishes something that the reader should see now (a finished
// segment, an event, a flush) exchanges the state to notified and, if the channel was out, puts it
// in the line and wakes the consumer. Polling exchanges it to in line; leaving the line succeeds
// only if nothing was notified since, else the channel is read once more. All of these are
// read-modify-write operations on one word, so no publication is missed. What is merely committed,
// without a notification, does not keep a channel in line: else a fast reader would follow its
// writer from record to record, and both would wait for cache lines all the time.
//
// Life cycle. Created and attached before the tasks start, destroyed after producer, consumer and
// timer have ended, and before the producer's pool.
//
// Bounds. The ring's capacity; a producer that finds it full waits as it does for a segment, and is
// poked by the consumer. A channel of a blocking exchange holds one piece of the spool while it is
// being read.
#ifndef LEATI_NETWORK_CHANNEL_H
#define LEATI_NETWORK_CHANNEL_H

#include "base/export.h"
#include "network/element.h"
#include "network/segment.h"
#include "network/spool.h"

typedef struct leati_channel leati_channel;
typedef struct leati_gate leati_gate;

// --- producer ---

// `pool`, the producer's, is poked when the channel drains. `max_segments` only sizes the ring
// (with `overdraft` and room for events beside).
LEATI_SHARED LEAT_MUST_USE leat_err leati_channel_create(const leat_allocator *allocator,
                                                         leati_local_pool *pool,
                                                         uint32_t max_segments, uint32_t overdraft,
                                                         leati_channel **channel);
// Makes it a channel of a blocking exchange: its bytes come from the spool, as channel `index` of
// it, once that is complete; only events are queued. Before the tasks start.
LEATI_SHARED void leati_channel_set_spool(leati_channel *channel, leati_spool *spool,
                                          uint32_t index);
// Releases what is still queued. Both ends must have ended.
LEATI_SHARED void leati_channel_destroy(leati_channel **channel);
// Slots that are free now for segments (some are kept for events).
LEATI_SHARED uint32_t leati_channel_room(const leati_channel *channel);
// Slots that are free now for events.
LEATI_SHARED uint32_t leati_channel_event_room(const leati_channel *channel);
// Slots in use: compared with max-buffers-per-channel before a record is started.
LEATI_SHARED uint32_t leati_channel_length(const leati_channel *channel);
// Queues a segment, unfinished or not; the reference is transferred. There must be room. Does not
// notify.
LEATI_SHARED void leati_channel_add_segment(leati_channel *channel, leati_segment *segment);
// Queues an event and notifies; all segments before it must be finished. There must be room;
// priority events need none, but at most 16 may wait.
LEATI_SHARED void leati_channel_add_event(leati_channel *channel, const leati_event *event);
// How many bytes of a segment to come are to be used, as its reader wishes (runtime/debloat.h); 0:
// all of them. Any thread.
LEATI_SHARED uint32_t leati_channel_limit(const leati_channel *channel);
LEATI_SHARED void leati_channel_set_limit(leati_channel *channel, uint32_t limit);
// What is put on it is to go to its reader at once, not when the task's turn ends, where there is a
// choice. Before it is handed to a transport.
LEATI_SHARED void leati_channel_set_prompt(leati_channel *channel);
LEATI_SHARED bool leati_channel_is_prompt(const leati_channel *channel);
// Segments that wait on their way to the channel, as a transport has last heard. Any thread.
LEATI_SHARED uint32_t leati_channel_backlog(const leati_channel *channel);
LEATI_SHARED void leati_channel_set_backlog(leati_channel *channel, uint32_t backlog);
// Makes what is published visible now: after finishing a segment, or as a flush. Any thread.
LEATI_SHARED void leati_channel_notify(leati_channel *channel);

// --- consumer ---

// A gate is one input of a task: channels in any number, served round robin. `waiter` is the
// consuming task.
LEATI_SHARED LEAT_MUST_USE leat_err leati_gate_create(const leat_allocator *allocator,
                                                      leati_waiter *waiter, uint32_t channels,
                                                      leati_gate **gate);
LEATI_SHARED void leati_gate_destroy(leati_gate **gate);
// Before the tasks start. `index` < channels.
LEATI_SHARED void leati_gate_attach(leati_gate *gate, uint32_t index, leati_channel *channel);
LEATI_SHARED uint32_t leati_channel_index(const leati_channel *channel);

// The next channel that has or may have data, or NULL: then the consumer will be woken by the next
// publication. After reading some of it the consumer must call leati_gate_done before it polls
// again.
LEATI_SHARED leati_channel *leati_gate_poll(leati_gate *gate);
// `more`: the channel was left with unread data and goes to the end of the line; otherwise it
// leaves the line, unless something has come in the meantime.
LEATI_SHARED void leati_gate_done(leati_gate *gate, leati_channel *channel, bool more);
// Whether any channel is in line. Consumer.
LEATI_SHARED bool leati_gate_has_data(const leati_gate *gate);

// What stands at a channel's head.
typedef enum leati_chunk_kind {
    LEATI_CHUNK_NONE = 0,      // nothing to read now
    LEATI_CHUNK_DATA = 1,      // bytes [data, data + size), not yet consumed
    LEATI_CHUNK_EVENT = 2,     // already taken from the channel
    LEATI_CHUNK_FAILED = 3,    // a spool that cannot be read
    LEATI_CHUNK_NO_MEMORY = 4, // to read a spool's piece into
} leati_chunk_kind;

typedef struct leati_chunk {
    const uint8_t *data;
    uint32_t size;
    bool last; // DATA: the segment is finished, so nothing will follow these bytes in it
    leati_segment *segment; // DATA: what the bytes are in; NULL when that is a spool's piece
    leati_event event;
} leati_chunk;

// Looks at what comes next. Priority events first. May give what is committed in a segment that is
// still being filled. Segments that have been read to their finished
// end are released here.
LEATI_SHARED leati_chunk_kind leati_channel_peek(leati_channel *channel, leati_chunk *chunk);
// Takes the segment of the chunk just peeked, of which that is the last: until the caller gives it
// back, the chunk's data stays valid. The channel goes on behind it; its producer is told of the
// room when the segment is given back. NULL: nothing can be taken, the chunk is to be advanced
// past.
LEATI_SHARED leati_segment *leati_channel_take(leati_channel *channel, const leati_chunk *chunk);
LEATI_SHARED void leati_channel_give_back(leati_segment *segment);
// Consumes bytes of the chunk just peeked. Data stays valid until the next peek.
LEATI_SHARED void leati_channel_advance(leati_channel *channel, uint32_t size);

#endif
