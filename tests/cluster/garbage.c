// SPDX-License-Identifier: Apache-2.0
// What strangers do to the ports of a cluster, for tests: `garbage SECONDS PORT…` sends to each of
// them, at 127.0.0.1, HOST:PORT or the path of a socket file, and for so long, random bytes,
// beginnings of what is right, sizes beyond all measure, and bytes now and then; and connects a
// thousand times a second and closes at once. `garbage hold COUNT PORT` opens so many connections,
// prints "held", and keeps them until its standard input ends. `garbage say FILE PORT MS` says what
// is in the file, with a pause of so many ms behind each byte if it is not 0, prints what is
// answered, and on standard error after how many ms the other side has closed, or "open" when it
// has not within two seconds after all was said, or half a minute if there are pauses. Numbers are
// from a fixed seed.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { PORTS_MOST = 16, HELLO = 16 + 328, BLOCK = 1 << 14 };

typedef struct attack {
    const char *port; // "8081", "10.0.0.1:8081", or a path, which begins with a slash
    int kind;
    uint32_t seed;
    double seconds;
    uint64_t tried;
} attack;

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static uint32_t next(attack *a)
{
    a->seed ^= a->seed << 13;
    a->seed ^= a->seed >> 17;
    a->seed ^= a->seed << 5;
    return a->seed;
}

// -1 when it cannot be had now.
static int dial(const char *port)
{
    bool near = *port == '/';
    struct sockaddr_in to = {.sin_family = AF_INET};
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const char *colon = strrchr(port, ':');
    char host[64] = "127.0.0.1";
    if (colon)
        snprintf(host, sizeof host, "%.*s", (int)(colon - port), port);
    inet_pton(AF_INET, host, &to.sin_addr);
    to.sin_port = htons(near ? 0 : (uint16_t)strtol(colon ? colon + 1 : port, NULL, 10));
    if (near && (size_t)snprintf(at.sun_path, sizeof at.sun_path, "%s", port) >= sizeof at.sun_path)
        return -1;
    int fd = socket(near ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval limit = {.tv_sec = 1};
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, near ? (struct sockaddr *)&at : (struct sockaddr *)&to,
                near ? sizeof at : sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

static void say(int fd, const void *bytes, size_t size)
{
    if (fd >= 0)
        (void)!send(fd, bytes, size, MSG_NOSIGNAL);
}

static void end(attack *a, int fd)
{
    a->tried++;
    if (fd < 0)
        pause_ms(5); // the other side is at its limit
    else
        close(fd);
}

static void random_bytes(attack *a, uint8_t *block)
{
    for (size_t i = 0; i < BLOCK; i++)
        block[i] = (uint8_t)(next(a) >> 9);
    int fd = dial(a->port);
    say(fd, block, next(a) % BLOCK);
    end(a, fd);
}

// The beginning of a hello or of a request, cut anywhere, or with sizes that nobody has.
static void half_right(attack *a, uint8_t *block)
{
    static const char *const requests[] = {
        "GET /v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999\r\n\r\n{",
        ("PUT /v1/artifacts/00000000000000000000000000000000 HTTP/1.1\r\nHost: x\r\n"
         "Transfer-Encoding: chunked\r\n\r\nffffffff\r\n"),
        "GET / HTTP/1.1\r\nAuthorization: Leat 00 1 00 00\r\n",
        "DELETE /../../etc/passwd HTTP/9.9\r\n\r\n",
    };
    memset(block, 0, HELLO + 64);
    memcpy(block + 16, "Leatnet\1", 8);
    block[0] = 328 % 256;
    block[1] = 328 / 256;
    block[5] = next(a) % 4; // flags
    size_t size = next(a) % (HELLO + 64);
    if (next(a) % 4 == 0)
        memset(block, 0xff, 4); // a frame of 4 GiB
    int fd = dial(a->port);
    if (next(a) % 2) {
        const char *request = requests[next(a) % 5];
        size = strlen(request);
        say(fd, request, next(a) % 2 ? size : next(a) % size);
    } else {
        say(fd, block, size);
    }
    end(a, fd);
}

static void trickle(attack *a)
{
    int fds[32];
    double until = now() + a->seconds;
    for (size_t i = 0; i < 32; i++)
        fds[i] = dial(a->port);
    while (now() < until) {
        for (size_t i = 0; i < 32; i++)
            say(fds[i], i % 2 ? "G" : "\0", 1);
        pause_ms(100);
    }
    for (size_t i = 0; i < 32; i++)
        end(a, fds[i]);
}

static void *run(void *arg)
{
    attack *a = arg;
    uint8_t *block = malloc(BLOCK);
    double begin = now();
    if (a->kind == 3)
        trickle(a);
    while (block && now() - begin < a->seconds) {
        if (a->kind == 0)
            random_bytes(a, block);
        else if (a->kind == 1)
            half_right(a, block);
        else
            end(a, dial(a->port));
        // A thousand a second, as far as the machine goes.
        if (a->kind == 2 && (double)a->tried > (now() - begin) * 1000)
            pause_ms(1);
    }
    free(block);
    return NULL;
}

static int hold(int count, const char *port)
{
    char byte;
    for (int i = 0; i < count; i++)
        (void)dial(port); // its end is that of this process
    puts("held");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
    return 0;
}

// Whether the other side has closed; what it says goes to standard output.
static bool listen_to(int fd, int flags)
{
    char block[4096];
    ssize_t got;
    while ((got = recv(fd, block, sizeof block, flags)) > 0)
        fwrite(block, 1, (size_t)got, stdout);
    return got == 0 || (errno != EAGAIN && errno != EINTR);
}

static int say_file(const char *path, const char *port, long pause)
{
    static char text[1 << 20];
    FILE *file = fopen(path, "r");
    size_t size = file ? fread(text, 1, sizeof text, file) : 0, said = 0;
    int fd = dial(port);
    double begin = now();
    bool closed = fd < 0;
    if (!file || fd < 0)
        return 1;
    fclose(file);
    while (!closed && now() - begin < (pause ? 30 : 2)) {
        size_t step = pause && said < size ? 1 : size - said;
        if (step > 0)
            say(fd, text + said, step);
        said += step;
        closed = listen_to(fd, said < size ? MSG_DONTWAIT : 0);
        if (pause)
            pause_ms(pause);
    }
    if (closed)
        fprintf(stderr, "%.0f\n", (now() - begin) * 1000);
    else
        fprintf(stderr, "open\n");
    return 0;
}

int main(int argc, char **argv)
{
    static attack attacks[PORTS_MOST * 4];
    static pthread_t threads[PORTS_MOST * 4];
    int count = 0;
    uint64_t tried = 0;
    if (argc == 4 && strcmp(argv[1], "hold") == 0)
        return hold((int)strtol(argv[2], NULL, 10), argv[3]);
    if (argc == 5 && strcmp(argv[1], "say") == 0)
        return say_file(argv[2], argv[3], strtol(argv[4], NULL, 10));
    for (int i = 2; i < argc && i < PORTS_MOST + 2; i++)
        for (int kind = 0; kind < 4; kind++, count++) {
            attacks[count] = (attack){.port = argv[i],
                                      .kind = kind,
                                      .seed = 4711u + (uint32_t)count,
                                      .seconds = strtod(argv[1], NULL)};
            if (pthread_create(&threads[count], NULL, run, &attacks[count]) != 0)
                return 1;
        }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        tried += attacks[i].tried;
    }
    printf("%llu connections\n", (unsigned long long)tried);
    return count ? 0 : 2;
}
