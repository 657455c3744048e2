// SPDX-License-Identifier: Apache-2.0
// A proxy between a process that dials and one that listens, which keeps what both say. Every piece
// is noted before it is passed on, so that in the order of the notes an answer always stands behind
// what it answers. It serves one connection, and works without Criterion.
#ifndef TESTS_NETWORK_NNG_RECORDER_H
#define TESTS_NETWORK_NNG_RECORDER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECORDER_CHECK(condition)                                                                  \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

// Bytes that one side has said at once; side 0 has dialled.
typedef struct recorder_note {
    int side;
    size_t start, size;
} recorder_note;

typedef struct recorder recorder;

typedef struct recorder_way {
    recorder *of;
    int side, from, to;
    pthread_t thread;
} recorder_way;

struct recorder {
    char address[64]; // for who dials
    int door, to_port;
    pthread_t thread;
    recorder_way ways[2];
    pthread_mutex_t lock;
    // Under the lock.
    uint8_t *bytes;
    size_t size, room;
    recorder_note *notes;
    size_t note_count, note_room;
};

static inline void recorder_note_down(recorder *self, int side, const uint8_t *bytes, size_t size)
{
    pthread_mutex_lock(&self->lock);
    if (self->room - self->size < size) {
        self->room = 2 * (self->room + size);
        RECORDER_CHECK((self->bytes = realloc(self->bytes, self->room)) != NULL);
    }
    if (self->note_count == self->note_room) {
        self->note_room = 2 * self->note_room + 64;
        self->notes = realloc(self->notes, self->note_room * sizeof *self->notes);
        RECORDER_CHECK(self->notes != NULL);
    }
    memcpy(self->bytes + self->size, bytes, size);
    self->notes[self->note_count++] =
        (recorder_note){.side = side, .start = self->size, .size = size};
    self->size += size;
    pthread_mutex_unlock(&self->lock);
}

static inline void *recorder_pass(void *arg)
{
    recorder_way *way = arg;
    static _Thread_local uint8_t bytes[65536];
    ssize_t size;
    while ((size = recv(way->from, bytes, sizeof bytes, 0)) > 0) {
        recorder_note_down(way->of, way->side, bytes, (size_t)size);
        for (ssize_t done = 0, step; done < size; done += step)
            if ((step = send(way->to, bytes + done, (size_t)(size - done), MSG_NOSIGNAL)) <= 0)
                goto out;
    }
out:
    shutdown(way->from, SHUT_RD);
    shutdown(way->to, SHUT_WR);
    return NULL;
}

static inline void *recorder_serve(void *arg)
{
    recorder *self = arg;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)self->to_port);
    int dialler = accept(self->door, NULL, NULL);
    if (dialler < 0)
        return NULL; // nobody has come
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    RECORDER_CHECK(listener >= 0 && connect(listener, (struct sockaddr *)&to, sizeof to) == 0);
    self->ways[0] = (recorder_way){.of = self, .side = 0, .from = dialler, .to = listener};
    self->ways[1] = (recorder_way){.of = self, .side = 1, .from = listener, .to = dialler};
    for (int i = 0; i < 2; i++)
        RECORDER_CHECK(pthread_create(&self->ways[i].thread, NULL, recorder_pass, &self->ways[i]) ==
                       0);
    for (int i = 0; i < 2; i++)
        pthread_join(self->ways[i].thread, NULL);
    close(dialler);
    close(listener);
    return NULL;
}

// In front of "tcp://127.0.0.1:port".
static inline void recorder_open(recorder *self, const char *address)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    *self = (recorder){.to_port = (int)strtol(strrchr(address, ':') + 1, NULL, 10)};
    pthread_mutex_init(&self->lock, NULL);
    self->door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    RECORDER_CHECK(self->door >= 0 && bind(self->door, (struct sockaddr *)&at, sizeof at) == 0);
    RECORDER_CHECK(listen(self->door, 1) == 0);
    RECORDER_CHECK(getsockname(self->door, (struct sockaddr *)&at, &size) == 0);
    snprintf(self->address, sizeof self->address, "tcp://127.0.0.1:%d", ntohs(at.sin_port));
    RECORDER_CHECK(pthread_create(&self->thread, NULL, recorder_serve, self) == 0);
}

// Waits until both sides have ended; the notes stay.
static inline void recorder_finish(recorder *self)
{
    shutdown(self->door, SHUT_RDWR);
    pthread_join(self->thread, NULL);
    close(self->door);
}

static inline void recorder_close(recorder *self)
{
    free(self->bytes);
    free(self->notes);
    pthread_mutex_destroy(&self->lock);
}

#endif
