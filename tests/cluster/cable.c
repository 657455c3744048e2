// SPDX-License-Identifier: Apache-2.0
// A network cable that loses, delays and cuts what goes through it, for tests:
//
//     cable PID INSIDE OUTSIDE SEED
//
// makes an interface INSIDE in the network namespace of process PID and one OUTSIDE in its own, and
// passes Ethernet frames on between the two. It prints "ready", and takes commands from its
// standard input, one a line, until that ends. DIRECTION is "out" for what the inside sends, "in"
// for what it gets, "both":
//
//     shape DIRECTION LOSS TWICE DELAY JITTER   percent, percent, ms, ms: each frame is late by
//                                               DELAY and up to JITTER more, so they overtake
//     reset PORT      the next full packet of a TCP connection of that port is cut in the middle,
//                     and the connection is reset there, to both sides; of port 0 there are none
//     record FOLDER   keeps what those who connect say from now on: in FOLDER/PORT-NUMBER the bytes
//                     of one connection to PORT
//     tell            prints how many frames came, were lost and were late, in both directions
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    FRAME_MOST = 1600,
    QUEUE_MOST = 8192, // frames that are under way in one direction; more are lost
    ETHERNET = 14,
    IP = 20,
    TCP = 20,
    CUT_LEAST = 1000, // the payload of what counts as a full packet
    BATCH = 64,
};
enum { FLAG_SYN = 2, FLAG_RST = 4, FLAG_ACK = 16 };

typedef struct frame {
    int64_t due_ns;
    uint64_t number;
    uint32_t size;
    uint8_t bytes[FRAME_MOST];
} frame;

// What goes in one direction. The queue is a heap: what is due first is at the top.
typedef struct way {
    int from, to;
    double loss, twice, delay_ms, jitter_ms;
    int64_t last_due_ns; // so that without jitter nothing is overtaken
    uint64_t came, lost, late;
    uint64_t number;
    uint32_t count;
    frame *heap[QUEUE_MOST];
} way;

typedef struct cable {
    way ways[2]; // out, in
    uint64_t seed;
    uint16_t reset_port; // 0: none is to be
    char folder[256];    // "": nothing is recorded
} cable;

static int64_t now_ns(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

// From 0 to 1.
static double chance(cable *self)
{
    self->seed = self->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(self->seed >> 11) / (double)(UINT64_C(1) << 53);
}

// --- frames under way ---

static bool is_before(const frame *a, const frame *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->number < b->number;
}

static void swap(way *w, uint32_t a, uint32_t b)
{
    frame *other = w->heap[a];
    w->heap[a] = w->heap[b];
    w->heap[b] = other;
}

static void put(way *w, const uint8_t *bytes, uint32_t size, int64_t due_ns)
{
    frame *made = w->count < QUEUE_MOST ? malloc(sizeof *made) : NULL;
    if (!made) {
        w->lost++;
        return;
    }
    made->due_ns = due_ns;
    made->number = w->number++;
    made->size = size;
    memcpy(made->bytes, bytes, size);
    uint32_t at = w->count++;
    w->heap[at] = made;
    for (; at > 0 && is_before(w->heap[at], w->heap[(at - 1) / 2]); at = (at - 1) / 2)
        swap(w, at, (at - 1) / 2);
}

static void take(way *w)
{
    free(w->heap[0]);
    w->heap[0] = w->heap[--w->count];
    for (uint32_t at = 0;;) {
        uint32_t least = at, left = 2 * at + 1;
        for (uint32_t child = left; child < left + 2 && child < w->count; child++)
            if (is_before(w->heap[child], w->heap[least]))
                least = child;
        if (least == at)
            return;
        swap(w, at, least);
        at = least;
    }
}

static void send_due(way *w)
{
    while (w->count > 0 && w->heap[0]->due_ns <= now_ns()) {
        // An interface that is down takes nothing, as a cable that is pulled out.
        if (write(w->to, w->heap[0]->bytes, w->heap[0]->size) < 0)
            w->lost++;
        take(w);
    }
}

// --- packets ---

static uint16_t get_u16(const uint8_t *from)
{
    return (uint16_t)(from[0] << 8 | from[1]);
}

static uint32_t get_u32(const uint8_t *from)
{
    return (uint32_t)get_u16(from) << 16 | get_u16(from + 2);
}

static void put_u16(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
}

static void put_u32(uint8_t *to, uint32_t value)
{
    put_u16(to, value >> 16);
    put_u16(to + 2, value & 0xffff);
}

typedef struct packet {
    uint8_t *ip, *tcp, *payload;
    uint32_t size; // of the payload
    uint16_t from, to;
    uint32_t sequence, acknowledged;
    uint8_t flags;
} packet;

// False: it is none of TCP over IP version 4.
static bool parse(uint8_t *bytes, size_t size, packet *to)
{
    if (size < ETHERNET + IP + TCP || get_u16(bytes + 12) != 0x0800)
        return false;
    *to = (packet){.ip = bytes + ETHERNET};
    uint32_t all = get_u16(to->ip + 2), head = (to->ip[0] & 15u) * 4;
    if (to->ip[0] >> 4 != 4 || to->ip[9] != 6 || head < IP || all > size - ETHERNET ||
        all < head + TCP)
        return false;
    to->tcp = to->ip + head;
    uint32_t offset = (to->tcp[12] >> 4) * 4u;
    if (offset < TCP || all < head + offset)
        return false;
    to->payload = to->tcp + offset;
    to->size = all - head - offset;
    to->from = get_u16(to->tcp);
    to->to = get_u16(to->tcp + 2);
    to->sequence = get_u32(to->tcp + 4);
    to->acknowledged = get_u32(to->tcp + 8);
    to->flags = to->tcp[13];
    return true;
}

static uint32_t sum(const uint8_t *bytes, size_t size)
{
    uint32_t all = 0;
    for (size_t i = 0; i < size; i++)
        all += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
    return all;
}

static uint32_t folded(uint32_t all)
{
    while (all >> 16)
        all = (all & 0xffff) + (all >> 16);
    return ~all & 0xffff;
}

// The sizes and sums of a packet whose payload has become another.
static void seal(packet *p, uint32_t size)
{
    uint32_t tcp = (uint32_t)(p->payload - p->tcp) + size;
    p->size = size;
    put_u16(p->ip + 2, (uint32_t)(p->tcp - p->ip) + tcp);
    put_u16(p->ip + 10, 0);
    put_u16(p->ip + 10, folded(sum(p->ip, (size_t)(p->tcp - p->ip))));
    put_u16(p->tcp + 16, 0);
    put_u16(p->tcp + 16, folded(sum(p->ip + 12, 8) + 6 + tcp + sum(p->tcp, tcp)));
}

static uint32_t frame_size(const packet *p)
{
    return (uint32_t)(p->payload - p->ip) + ETHERNET + p->size;
}

static void make_reset(packet *p, uint32_t sequence, uint32_t acknowledged)
{
    p->tcp[12] = TCP / 4 << 4; // no options
    p->payload = p->tcp + TCP;
    p->tcp[13] = FLAG_RST | FLAG_ACK;
    put_u32(p->tcp + 4, sequence);
    put_u32(p->tcp + 8, acknowledged);
    seal(p, 0);
}

static void exchange(uint8_t *a, uint8_t *b, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        uint8_t other = a[i];
        a[i] = b[i];
        b[i] = other;
    }
}

// The first half of it arrives, and then the connection is reset for both.
static void cut(way *forth, way *back, uint8_t *bytes, packet *p, int64_t due_ns)
{
    uint32_t half = p->size / 2, sequence = p->sequence + half;
    seal(p, half);
    put(forth, bytes, frame_size(p), due_ns);
    make_reset(p, sequence, p->acknowledged);
    put(forth, bytes, frame_size(p), due_ns);
    exchange(bytes, bytes + 6, 6);
    exchange(p->ip + 12, p->ip + 16, 4);
    exchange(p->tcp, p->tcp + 2, 2);
    make_reset(p, p->acknowledged, sequence);
    put(back, bytes, frame_size(p), now_ns());
    printf("reset %u %u\n", p->from, p->to);
    fflush(stdout);
}

// --- recording ---

enum { RECORDS_MOST = 256 };
typedef struct recorded {
    uint32_t host; // of who has connected
    uint16_t from, to;
    uint32_t begin; // the number of its first byte
    int fd;
} recorded;

static recorded records[RECORDS_MOST];
static uint32_t record_count;

static recorded *record_of(const cable *self, const packet *p)
{
    char path[sizeof self->folder + 32];
    uint32_t host = get_u32(p->ip + 12), i = 0;
    while (i < record_count &&
           (records[i].host != host || records[i].from != p->from || records[i].to != p->to))
        i++;
    if (i < record_count)
        return &records[i];
    if ((p->flags & (FLAG_SYN | FLAG_ACK)) != FLAG_SYN || i == RECORDS_MOST)
        return NULL; // it was there before, or is an answer
    snprintf(path, sizeof path, "%s/%u-%u", self->folder, p->to, i);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    records[i] = (recorded){host, p->from, p->to, p->sequence + 1, fd};
    record_count++;
    return &records[i];
}

// Where they belong, so what comes twice or in another order does no harm.
static void record(const cable *self, const packet *p)
{
    recorded *to = record_of(self, p);
    if (to && p->size > 0)
        (void)!pwrite(to->fd, p->payload, p->size, p->sequence - to->begin);
}

// --- what comes ---

static int64_t due_of(cable *self, way *w)
{
    int64_t due_ns = now_ns() + (int64_t)((w->delay_ms + w->jitter_ms * chance(self)) * 1e6);
    if (w->jitter_ms <= 0 && due_ns < w->last_due_ns)
        due_ns = w->last_due_ns;
    w->late += due_ns < w->last_due_ns;
    w->last_due_ns = due_ns;
    return due_ns;
}

static void pass(cable *self, way *w, uint8_t *bytes, uint32_t size)
{
    packet p;
    bool is_tcp = parse(bytes, size, &p);
    w->came++;
    if (chance(self) * 100 < w->loss) {
        w->lost++;
        return;
    }
    int64_t due_ns = due_of(self, w);
    if (is_tcp && *self->folder)
        record(self, &p);
    if (is_tcp && self->reset_port && p.size >= CUT_LEAST &&
        (p.from == self->reset_port || p.to == self->reset_port)) {
        self->reset_port = 0;
        cut(w, &self->ways[w == &self->ways[0]], bytes, &p, due_ns);
        return;
    }
    put(w, bytes, size, due_ns);
    if (chance(self) * 100 < w->twice)
        put(w, bytes, size, due_of(self, w));
}

static void read_frames(cable *self, way *w)
{
    uint8_t bytes[FRAME_MOST];
    for (int i = 0; i < BATCH; i++) {
        ssize_t size = read(w->from, bytes, sizeof bytes);
        if (size <= 0)
            return;
        pass(self, w, bytes, (uint32_t)size);
    }
}

// --- commands ---

static bool obey(cable *self, const char *line)
{
    char direction[8];
    way set;
    unsigned port;
    if (sscanf(line, "shape %7s %lf %lf %lf %lf", direction, &set.loss, &set.twice, &set.delay_ms,
               &set.jitter_ms) == 5) {
        for (int i = 0; i < 2; i++) {
            way *w = &self->ways[i];
            if (strcmp(direction, "both") != 0 && strcmp(direction, i ? "in" : "out") != 0)
                continue;
            w->loss = set.loss;
            w->twice = set.twice;
            w->delay_ms = set.delay_ms;
            w->jitter_ms = set.jitter_ms;
        }
        return true;
    }
    if (sscanf(line, "reset %u", &port) == 1) {
        self->reset_port = (uint16_t)port;
        return true;
    }
    if (sscanf(line, "record %255s", self->folder) == 1)
        return true;
    if (strcmp(line, "tell") != 0)
        return false;
    printf("out %llu %llu %llu in %llu %llu %llu\n", (unsigned long long)self->ways[0].came,
           (unsigned long long)self->ways[0].lost, (unsigned long long)self->ways[0].late,
           (unsigned long long)self->ways[1].came, (unsigned long long)self->ways[1].lost,
           (unsigned long long)self->ways[1].late);
    return true;
}

// False: there are no more.
static bool read_commands(cable *self)
{
    static char text[1024];
    static size_t there;
    ssize_t got = read(STDIN_FILENO, text + there, sizeof text - there - 1);
    if (got <= 0)
        return got < 0 && errno == EINTR;
    text[there += (size_t)got] = 0;
    for (char *end; (end = strchr(text, '\n'));) {
        *end = 0;
        if (!obey(self, text))
            printf("not understood: %s\n", text);
        fflush(stdout);
        there -= (size_t)(end + 1 - text);
        memmove(text, end + 1, there + 1);
    }
    return there < sizeof text - 1;
}

// --- life ---

// -1: with the reason on standard error.
static int make_interface(const char *name)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (fd >= 0 && ioctl(fd, TUNSETIFF, &request) == 0)
        return fd;
    perror(name);
    return -1;
}

static bool make_both(cable *self, const char *pid, const char *inside, const char *outside)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
    int there = open(path, O_RDONLY | O_CLOEXEC);
    int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (there < 0 || here < 0 || setns(there, CLONE_NEWNET) != 0) {
        perror(path);
        return false;
    }
    self->ways[0].from = self->ways[1].to = make_interface(inside);
    if (setns(here, CLONE_NEWNET) != 0)
        return false;
    self->ways[1].from = self->ways[0].to = make_interface(outside);
    close(there);
    close(here);
    return self->ways[0].from >= 0 && self->ways[0].to >= 0;
}

static void run(cable *self)
{
    struct pollfd fds[] = {{.fd = self->ways[0].from, .events = POLLIN},
                           {.fd = self->ways[1].from, .events = POLLIN},
                           {.fd = STDIN_FILENO, .events = POLLIN}};
    for (;;) {
        int64_t wait_ns = 1000000000, now = now_ns();
        for (int i = 0; i < 2; i++)
            if (self->ways[i].count > 0 && self->ways[i].heap[0]->due_ns - now < wait_ns)
                wait_ns = self->ways[i].heap[0]->due_ns - now;
        if (wait_ns < 0)
            wait_ns = 0;
        struct timespec wait = {.tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000};
        if (ppoll(fds, 3, &wait, NULL) < 0)
            continue;
        for (int i = 0; i < 2; i++) {
            if (fds[i].revents)
                read_frames(self, &self->ways[i]);
            send_due(&self->ways[0]);
            send_due(&self->ways[1]);
        }
        if (fds[2].revents && !read_commands(self))
            return;
    }
}

int main(int argc, char **argv)
{
    static cable self;
    if (argc != 5)
        return 2;
    self.seed = strtoull(argv[4], NULL, 10);
    if (!make_both(&self, argv[1], argv[2], argv[3]))
        return 1;
    puts("ready");
    fflush(stdout);
    run(&self);
    return 0;
}
