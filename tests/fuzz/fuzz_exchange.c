// SPDX-License-Identifier: Apache-2.0
// What a task manager that is let in may say to another one: behind a good hand-shake come frames
// that the input describes, right ones, nearly right ones, and bytes of no order. The other end is
// a real exchange with a job that receives two channels and sends two. It must come to its end
// whatever is said, report at most one failure, give all segments back, deliver no byte that was
// not sent in its place, and serve the next one who connects.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "network/nng/exchange_impl.h"
#include "tests/network/nng/flow.h"

// In the place of network/nng/connection_impl.h, which has more than is wanted here.
enum { HELLO_SIZE = 328 };
void leati_hello_complete(leati_hello *hello);
void leati_hello_put(const leati_hello *hello, uint8_t to[LEATI_FRAME_SIZE + HELLO_SIZE]);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    PAIRS = 2, // channels in each direction
    FIRST = 4, // the numbers of those that come in, and then of those that go out
    ATTEMPT = 77,
    OUTWARD = 9, // the stream numbers that we choose begin here
    SEND = 6,    // segments that are queued to be sent
    SAID_MOST = 1 << 20,
};

// An operation of the input: the kind of frame, 0 for bytes as they are, and flags.
enum {
    OP_KIND = 7,
    OP_OTHER_SIZE = 8,     // than is right
    OP_STREAM = 16 + 32,   // 3: any
    OP_ANY_SEQUENCE = 64,  // also of what else is a number
    OP_WITH_A_PAUSE = 128, // what has been said so far goes out, and the job reads
};

typedef struct input {
    const uint8_t *at, *end;
} input;

typedef struct play {
    share share;
    flow in[PAIRS], out[PAIRS];
    int fd;
    // Not sent yet.
    uint8_t *said;
    size_t said_size;
    // Of the channels that come in.
    bool wild; // bytes without order were said, so that nothing is known any more
    uint32_t sequence[PAIRS];
    uint8_t *expected[PAIRS]; // the bytes that belong there, of which the first may come
    size_t expected_size[PAIRS], read[PAIRS];
} play;

static uint32_t next(input *from, int bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (from->at < from->end ? (uint32_t)*from->at++ : 0) << 8 * i;
    return value;
}

// --- the job ---

static void put_some(flow *self)
{
    leati_segment *segment;
    for (int i = 0; i < SEND; i++) {
        FLOW_CHECK((segment = leati_local_pool_request(self->out_pool, false)) != NULL);
        leati_channel_add_segment(self->out, segment);
        memset(segment->data, i, segment->size);
        uint32_t used = i % 2 ? segment->size : 100;
        atomic_store_explicit(&segment->committed, used | LEATI_SEGMENT_FINISHED,
                              memory_order_release);
    }
    leati_channel_add_event(self->out, &(leati_event){.tag = LEATI_TAG_END_OF_DATA});
    leati_channel_add_event(self->out, &(leati_event){.tag = LEATI_TAG_END_OF_PARTITION});
    leati_channel_notify(self->out);
}

static void open_job(play *self, node nodes[2])
{
    const char *addresses[2] = {"tcp://127.0.0.1:1", "tcp://127.0.0.1:1"};
    share_open_at(&self->share, nodes, 2, 1, ATTEMPT, addresses);
    for (uint32_t i = 0; i < PAIRS; i++) {
        flow_init(&self->in[i], &self->share, &self->share, FIRST + i, 0);
        flow_receive(&self->in[i], 0, 8);
        flow_init(&self->out[i], &self->share, &self->share, FIRST + PAIRS + i, 0);
        flow_send(&self->out[i], 0);
        put_some(&self->out[i]);
        self->expected[i] = malloc(SAID_MOST);
        FLOW_CHECK(self->expected[i]);
    }
}

static void read_channel(play *self, int which)
{
    leati_gate *gate = self->in[which].gate;
    leati_chunk chunk;
    leati_chunk_kind kind;
    leati_channel *channel = leati_gate_poll(gate);
    if (!channel)
        return;
    while ((kind = leati_channel_peek(channel, &chunk)) != LEATI_CHUNK_NONE) {
        if (kind == LEATI_CHUNK_EVENT)
            continue;
        FLOW_CHECK(kind == LEATI_CHUNK_DATA && chunk.size > 0);
        size_t at = self->read[which];
        self->read[which] += chunk.size;
        FLOW_CHECK(self->wild || (self->read[which] <= self->expected_size[which] &&
                                  memcmp(self->expected[which] + at, chunk.data, chunk.size) == 0));
        leati_channel_advance(channel, chunk.size);
    }
    leati_gate_done(gate, channel, false);
}

static void *close_job(void *arg)
{
    share_close(&((play *)arg)->share);
    return NULL;
}

// --- the connection ---

// libFuzzer's alarm interrupts what waits.
static void receive_all(int fd, uint8_t *to, size_t size)
{
    for (size_t got = 0; got < size;) {
        ssize_t more = recv(fd, to + got, size - got, 0);
        FLOW_CHECK(more > 0 || (more < 0 && errno == EINTR));
        got += more > 0 ? (size_t)more : 0;
    }
}

static int dial(const node *to)
{
    uint8_t bytes[LEATI_FRAME_SIZE + HELLO_SIZE];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const char *address = leati_exchange_address(to->transport);
    at.sin_port = htons((uint16_t)strtol(strrchr(address, ':') + 1, NULL, 10));
    leati_hello hello = {.purpose = "data", .segment_size = FLOW_SEGMENT, .process = "one"};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FLOW_CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0);
    leati_hello_complete(&hello);
    leati_hello_put(&hello, bytes);
    FLOW_CHECK(send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) == sizeof bytes);
    receive_all(fd, bytes, sizeof bytes);
    return fd;
}

// It opens the channels that it receives: they are streams 0 and 1.
static void greet(play *self, const node *to)
{
    self->fd = dial(to);
    for (uint32_t i = 0; i < PAIRS; i++) {
        uint8_t open[LEATI_FRAME_SIZE + LEATI_OPEN_SIZE];
        receive_all(self->fd, open, sizeof open);
        FLOW_CHECK(open[4] == LEATI_FRAME_OPEN && open[8] == i);
        FLOW_CHECK(open[LEATI_FRAME_SIZE + 8] == FIRST + i);
    }
}

static void await_end(int fd)
{
    uint8_t bytes[4096];
    ssize_t got;
    shutdown(fd, SHUT_WR);
    while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0 || (got < 0 && errno == EINTR))
        continue;
    close(fd);
}

// What is said goes out, what was answered is thrown away, and the job reads.
static void pause_here(play *self)
{
    uint8_t bytes[4096];
    // The other side may have had enough; it never takes nothing.
    for (size_t sent = 0; sent < self->said_size;) {
        ssize_t wrote = send(self->fd, self->said + sent, self->said_size - sent, MSG_NOSIGNAL);
        if (wrote <= 0 && errno != EINTR)
            break;
        sent += wrote > 0 ? (size_t)wrote : 0;
    }
    self->said_size = 0;
    for (int i = 0; i < 3; i++) {
        while (recv(self->fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
            continue;
        sched_yield();
        for (int which = 0; which < PAIRS; which++)
            read_channel(self, which);
    }
}

static void say(play *self, const void *bytes, size_t size)
{
    if (size == 0 || size > SAID_MOST - self->said_size)
        return;
    memcpy(self->said + self->said_size, bytes, size);
    self->said_size += size;
}

// --- frames ---

// Of data, with bytes that the job is to get.
static void fill_data(play *self, leati_frame *frame, const uint8_t *payload)
{
    uint32_t which = frame->channel;
    if (which >= PAIRS || frame->sequence != self->sequence[which])
        return;
    self->sequence[which]++;
    if (frame->size > SAID_MOST - self->expected_size[which])
        return;
    memcpy(self->expected[which] + self->expected_size[which], payload, frame->size);
    self->expected_size[which] += frame->size;
}

static void make_payload(play *self, input *from, leati_frame *frame, bool any, uint8_t *payload)
{
    uint32_t which = frame->channel;
    switch (frame->kind) {
    case LEATI_FRAME_OPEN:
        frame->size = LEATI_OPEN_SIZE;
        frame->sequence = any ? next(from, 4) : next(from, 1);
        leati_element_put_i64(payload, any ? (int64_t)next(from, 4) : ATTEMPT);
        leati_element_put_i64(payload + 8,
                              any ? (int64_t)next(from, 4) : FIRST + PAIRS + next(from, 1) % 3);
        break;
    case LEATI_FRAME_DATA:
        frame->size = 1 + next(from, 2) % FLOW_SEGMENT;
        memset(payload, (int)next(from, 1), frame->size);
        payload[0] = (uint8_t)frame->sequence;
        fill_data(self, frame, payload);
        break;
    case LEATI_FRAME_EVENT:
        frame->size = LEATI_EVENT_SIZE;
        payload[0] = (uint8_t)(any ? next(from, 1) : LEATI_TAG_BARRIER + next(from, 1) % 5);
        payload[1] = (uint8_t)(any ? next(from, 1) : next(from, 1) % 2);
        if (which < PAIRS && frame->sequence == self->sequence[which])
            self->sequence[which]++;
        break;
    case LEATI_FRAME_CREDIT:
        frame->size = LEATI_CREDIT_SIZE;
        frame->sequence = any ? next(from, 4) : next(from, 1);
        frame->more = (uint16_t)next(from, 2);
        payload[0] = (uint8_t)next(from, 1); // what is confirmed
        break;
    default:
        frame->more = (uint16_t)next(from, 1);
    }
}

static void say_frame(play *self, input *from, uint8_t op)
{
    static uint8_t payload[2 * FLOW_SEGMENT];
    uint8_t header[LEATI_FRAME_SIZE];
    uint32_t stream = (op & OP_STREAM) >> 4;
    leati_frame frame = {.kind = op & OP_KIND};
    bool inward = frame.kind == LEATI_FRAME_DATA || frame.kind == LEATI_FRAME_EVENT ||
                  frame.kind == LEATI_FRAME_CLOSED;
    frame.channel = stream == 3 ? next(from, 4) : inward ? stream : OUTWARD + stream;
    bool any = op & OP_ANY_SEQUENCE;
    frame.sequence = any || frame.channel >= PAIRS || !inward ? 0 : self->sequence[frame.channel];
    if (any && inward)
        frame.sequence = next(from, 4);
    memset(payload, 0, 32);
    make_payload(self, from, &frame, any, payload);
    uint32_t size = frame.size;
    if (op & OP_OTHER_SIZE) {
        frame.size += next(from, 1);
        self->wild = true; // what follows is taken for its rest
    }
    leati_frame_put(&frame, header);
    say(self, header, sizeof header);
    say(self, payload, size);
}

static void say_all(play *self, input *from)
{
    while (from->at < from->end && self->said_size < SAID_MOST - 3 * FLOW_SEGMENT) {
        uint8_t op = (uint8_t)next(from, 1);
        if (op & OP_WITH_A_PAUSE)
            pause_here(self);
        if (op & OP_KIND) {
            say_frame(self, from, op);
            continue;
        }
        size_t size = next(from, 1);
        if (size > (size_t)(from->end - from->at))
            size = (size_t)(from->end - from->at);
        say(self, from->at, size);
        from->at += size;
        self->wild |= size > 0;
    }
    pause_here(self);
}

// --- one input ---

static void await_quiet(const node *of)
{
    leati_exchange_counts counts;
    do {
        leati_exchange_count(of->transport, &counts);
        sched_yield();
    } while (counts.connections > 0);
}

// Somebody comes who takes what a job may still have to send, so that its end need not wait.
static void come_again(const node *to)
{
    uint8_t payload[LEATI_OPEN_SIZE], header[LEATI_FRAME_SIZE];
    int fd = dial(to);
    for (uint32_t i = 0; i < PAIRS; i++) {
        leati_frame open = {.size = LEATI_OPEN_SIZE,
                            .kind = LEATI_FRAME_OPEN,
                            .channel = OUTWARD + i,
                            .sequence = 2 * SEND};
        leati_frame close = {.kind = LEATI_FRAME_CLOSE, .channel = OUTWARD + i};
        leati_element_put_i64(payload, ATTEMPT);
        leati_element_put_i64(payload + 8, FIRST + PAIRS + i);
        leati_frame_put(&open, header);
        (void)!send(fd, header, sizeof header, MSG_NOSIGNAL);
        (void)!send(fd, payload, sizeof payload, MSG_NOSIGNAL);
        leati_frame_put(&close, header);
        (void)!send(fd, header, sizeof header, MSG_NOSIGNAL);
    }
    await_end(fd);
}

static void end(play *self, const node *to, bool closes_first)
{
    pthread_t closer;
    if (!closes_first)
        await_end(self->fd);
    FLOW_CHECK(pthread_create(&closer, NULL, close_job, self) == 0);
    if (closes_first)
        await_end(self->fd);
    come_again(to);
    pthread_join(closer, NULL);
    for (int i = 0; i < PAIRS; i++) {
        read_channel(self, i); // what is left there
        flow_fini(&self->in[i]);
        flow_fini(&self->out[i]);
        free(self->expected[i]);
    }
    free(self->said);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static node nodes[2]; // the first is only a name
    static play all;
    play *self = &all;
    if (!nodes[1].transport) {
        snprintf(nodes[0].id, sizeof nodes[0].id, "one");
        node_open(&nodes[1], "two", FLOW_PATIENCE_MS);
    }
    input from = {data, data + size};
    bool closes_first = next(&from, 1) & 1;
    memset(self, 0, sizeof *self);
    self->said = malloc(SAID_MOST);
    FLOW_CHECK(self->said);
    open_job(self, nodes);
    greet(self, &nodes[1]);
    say_all(self, &from);
    end(self, &nodes[1], closes_first);
    await_quiet(&nodes[1]);
    return 0;
}
