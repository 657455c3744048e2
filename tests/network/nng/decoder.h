// SPDX-License-Identifier: Apache-2.0
// What two task managers say to each other, decoded by a program that was written from docs/wire.md
// and docs/design/wire.md alone: it uses nothing of the library. It checks whatever the pages
// promise, and what it does not expect is an error with a sentence.
#ifndef TESTS_NETWORK_NNG_DECODER_H
#define TESTS_NETWORK_NNG_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DECODER_DIALLER, DECODER_LISTENER, DECODER_SIDES };

enum {
    DECODER_HELLO = 0,
    DECODER_OPEN = 1,
    DECODER_DATA = 2,
    DECODER_EVENT = 3,
    DECODER_CREDIT = 4,
    DECODER_CLOSE = 5,
    DECODER_CLOSED = 6,
    DECODER_ALIVE = 7,
    DECODER_KINDS
};

enum {
    DECODER_HEADER = 16,
    DECODER_GREETING = 328,
    DECODER_NONCE = 32,
    DECODER_CODE = 32,
    DECODER_SAID = DECODER_HEADER + DECODER_GREETING + DECODER_HEADER + DECODER_NONCE
};

// An event as its 24 bytes say.
typedef struct decoder_event {
    uint8_t tag, priority;
    uint16_t options;
    uint64_t checkpoint;
    int64_t timestamp;
} decoder_event;

typedef struct decoder_hello {
    uint32_t abi, segment_size;
    char version[33], cluster[129], process[129];
    bool secret;
} decoder_hello;

// A channel on the connection; its receiver is the side that has opened it.
typedef struct decoder_stream {
    bool open;    // OPEN has come, CLOSED has not
    bool closing; // CLOSE has come
    bool ended;   // the event at the end of the partition has come
    uint64_t attempt;
    uint32_t number; // of the channel
    uint64_t granted, used;
    uint64_t sequence;  // of the next frame of data or event
    uint64_t delivered; // as the receiver has said
    uint64_t bytes;     // of data
    // The element that goes on in the next segment.
    uint8_t *payload;
    uint32_t tag, size, have;
    bool cut;
} decoder_stream;

typedef struct decoder decoder;

// Called as soon as it is complete. `receiver` is a side.
typedef struct decoder_sink {
    void *user;
    void (*element)(void *user, int receiver, const decoder_stream *stream, uint32_t tag,
                    const uint8_t *payload, uint32_t size);
    void (*event)(void *user, int receiver, const decoder_stream *stream,
                  const decoder_event *event);
    void (*closed)(void *user, int receiver, const decoder_stream *stream, uint32_t reason);
} decoder_sink;

// What has been seen of a side, for the test to look at.
typedef struct decoder_side {
    decoder_hello hello;
    uint8_t said[DECODER_SAID]; // hello and nonce with their headers, as far as there were
    uint32_t said_size;
    uint8_t code[DECODER_CODE];
    bool has_code, greeted;
    bool refuses;                          // its answer to a code was that it is wrong
    uint64_t bytes, frames[DECODER_KINDS]; // greetings are of kind 0
    uint32_t opened, closed;               // of the streams that it receives
    uint64_t limits;                       // frames of credit that have named a size
    uint64_t most_queued;                  // the largest backlog that it has told
} decoder_side;

decoder *decoder_create(const decoder_sink *sink);
void decoder_destroy(decoder *self);
// The bytes of both sides, in an order in which an answer comes behind what it answers. False: they
// are not what the pages say, for the reason that decoder_why gives; it takes no more then.
bool decoder_feed(decoder *self, int side, const uint8_t *bytes, size_t size);
// Both sides have ended: every byte belonged to a frame, every channel was closed.
bool decoder_end(decoder *self);
const char *decoder_why(const decoder *self);
const decoder_side *decoder_look(const decoder *self, int side);

#endif
