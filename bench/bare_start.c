// SPDX-License-Identifier: Apache-2.0
// The yardstick of bench_start: a program that starts two threads, one of which hands a number to
// the other.
//
//     bare_start FD     writes the time at which it arrived to FD, and ends
//     bare_start        waits for the end of standard input
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef struct handover {
    sem_t filled;
    int64_t number;
    int fd; // -1: nobody wants the time
} handover;

static void *produce(void *argument)
{
    handover *h = argument;
    if (h->fd < 0) {
        char byte;
        while (read(STDIN_FILENO, &byte, 1) > 0)
            continue;
    }
    h->number = 1;
    sem_post(&h->filled);
    return NULL;
}

static void *consume(void *argument)
{
    handover *h = argument;
    while (sem_wait(&h->filled) != 0)
        continue;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    if (h->fd >= 0 && write(h->fd, &ns, sizeof ns) != sizeof ns)
        h->number = 0;
    return NULL;
}

int main(int argc, char **argv)
{
    handover h = {.fd = argc > 1 ? (int)strtol(argv[1], NULL, 10) : -1};
    pthread_t producer, consumer;
    if (sem_init(&h.filled, 0, 0) != 0 || pthread_create(&consumer, NULL, consume, &h) != 0)
        return 1;
    if (pthread_create(&producer, NULL, produce, &h) != 0)
        return 1;
    pthread_join(producer, NULL);
    pthread_join(consumer, NULL);
    return h.number == 1 ? 0 : 1;
}
