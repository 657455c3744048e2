// SPDX-License-Identifier: Apache-2.0
// Connections of several dialling sides with one listener. Each side sends numbered frames of
// random sizes whenever one of two threads releases some; readers step aside at random, for longer
// or shorter, while another thread hands on what they have left; at a random moment, or never,
// somebody closes or destroys, or the listener goes. Frames must come in order and whole, all of
// them where nobody has ended anything; hooks must come in their order, and `closed` once and last,
// but for the hook in which a reader is away. Strangers knock in between; in some rounds they are
// so many, and so silent, that the listener has to let some go. A watchdog ends the program when a
// round takes too long.
//
//     stress_connection [SECONDS [SEED]]
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "network/nng/connection_impl.h"
#include "nng_races.h"
#include "seeded.h"

enum { PAIRS = 4, STRANGERS = 24, FRAMES = 400, SIZE_MAX_ = 40000 };

typedef struct end {
    uint64_t seed; // of the sizes it sends
    const uint64_t *peer_seed;
    _Atomic uint32_t released; // frames that may be sent
    _Atomic int opened, closed;
    _Atomic uint32_t arrived;
    leati_connection *_Atomic connection;
    _Atomic uint32_t away, found, lost; // who has stepped aside: now; what coming back said
    // The writer's.
    uint32_t filled;
    uint8_t header[2][LEATI_FRAME_SIZE];
    uint8_t out[2][SIZE_MAX_];
    // The reader's.
    uint32_t settled;
    uint8_t in[SIZE_MAX_];
} end;

typedef struct round {
    leati_listener *listener;
    uint32_t pairs, room; // who dials, and how many are accepted
    _Atomic uint32_t come;
    end dialled[PAIRS], accepted[PAIRS + STRANGERS];
    int strangers[STRANGERS];
    uint64_t seed_of_accepted;
    _Atomic bool calm; // nobody is to hand on any more
} round;

static uint64_t all_found, all_lost; // of all rounds

// Mostly small, and the same for whoever knows the seed.
static uint32_t size_of(uint64_t seed, uint32_t number)
{
    uint64_t state = seed + number * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t limit = next_random(&state, 10) == 0 ? SIZE_MAX_ : 100;
    return next_random(&state, limit);
}

static end *check_end(end *self)
{
    if (atomic_load(&self->closed))
        wrong("a hook after closed", 0, 0);
    return self;
}

static void on_opened(leati_connection *connection, void *user, const leati_hello *peer)
{
    end *self = check_end(user);
    if (atomic_fetch_add(&self->opened, 1) != 0 || atomic_load(&self->arrived) != 0)
        wrong("opened is not first", 0, 0);
    // Some wait by nng alone, as where there is no telling which socket it is.
    pthread_mutex_lock(&connection->in_lock);
    if (self->seed % 4 == 0)
        connection->socket = -1;
    pthread_mutex_unlock(&connection->in_lock);
    (void)peer;
}

static leat_err on_place(leati_connection *connection, void *user, const leati_frame *frame,
                         uint8_t **to)
{
    end *self = check_end(user);
    if (frame->size > SIZE_MAX_)
        wrong("a frame too large", frame->size, frame->sequence);
    *to = self->in;
    (void)connection;
    return LEAT_OK;
}

static leat_err on_arrived(leati_connection *connection, void *user, const leati_frame *frame)
{
    end *self = check_end(user);
    uint32_t number = atomic_load(&self->arrived);
    if (frame->sequence != number || frame->size != size_of(*self->peer_seed, number))
        wrong("not the next frame", frame->sequence, number);
    for (uint32_t i = 0; i < frame->size; i++)
        if (self->in[i] != (uint8_t)(number * 3 + i))
            wrong("a byte is not what was sent", number, i);
    atomic_store(&self->arrived, number + 1);
    (void)connection;
    return LEAT_OK;
}

static void nap(uint32_t us)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL);
}

// Steps aside two times in three, mostly for no time at all.
static bool on_settle(leati_connection *connection, void *user)
{
    end *self = check_end(user);
    uint64_t state = self->seed + ++self->settled * UINT64_C(0x9e3779b97f4a7c15);
    if (!leati_connection_may_step_aside(connection) || next_random(&state, 3) == 0)
        return true;
    leati_connection_step_aside(connection);
    if (atomic_fetch_add(&self->away, 1) != 0)
        wrong("two are away", 0, 0);
    for (uint32_t i = next_random(&state, 4); i > 1; i--)
        sched_yield();
    if (next_random(&state, 8) == 0)
        nap(next_random(&state, 400));
    atomic_fetch_sub(&self->away, 1);
    bool back = leati_connection_come_back(connection);
    atomic_fetch_add(back ? &self->found : &self->lost, 1);
    return back;
}

// Up to two frames at a time.
static size_t on_fill(leati_connection *connection, void *user,
                      leati_part parts[LEATI_CONNECTION_PARTS])
{
    end *self = check_end(user);
    size_t count = 0;
    if (!atomic_load(&self->opened))
        wrong("fill before opened", 0, 0);
    for (int i = 0; i < 2 && self->filled < atomic_load(&self->released); i++) {
        uint32_t number = self->filled++, size = size_of(self->seed, number);
        leati_frame frame = {.kind = 1, .size = size, .sequence = number};
        leati_frame_put(&frame, self->header[i]);
        for (uint32_t j = 0; j < size; j++)
            self->out[i][j] = (uint8_t)(number * 3 + j);
        parts[count++] = (leati_part){.data = self->header[i], .size = LEATI_FRAME_SIZE};
        parts[count++] = (leati_part){.data = self->out[i], .size = size};
    }
    (void)connection;
    return count;
}

static void on_sent(leati_connection *connection, void *user)
{
    check_end(user);
    (void)connection;
}

static void on_closed(leati_connection *connection, void *user, leat_err err, const char *why)
{
    end *self = check_end(user);
    if (err == LEAT_OK || !*why)
        wrong("an end without a reason", err, 0);
    atomic_store(&self->closed, 1);
    (void)connection;
}

static const leati_connection_hooks hooks = {.opened = on_opened,
                                             .place = on_place,
                                             .arrived = on_arrived,
                                             .settle = on_settle,
                                             .fill = on_fill,
                                             .sent = on_sent,
                                             .closed = on_closed};

static leat_err on_accepted(void *user, leati_connection *connection,
                            const leati_connection_hooks **its_hooks, void **connection_user)
{
    round *self = user;
    uint32_t number = atomic_load(&self->come);
    if (number >= self->room)
        return LEAT_ENOMEM;
    atomic_store(&self->accepted[number].connection, connection);
    *its_hooks = &hooks;
    *connection_user = &self->accepted[number];
    atomic_store(&self->come, number + 1);
    return LEAT_OK;
}

// Releases all frames, a few at a time, and kicks, asks the reader, or sends itself.
static void *release_frames(void *arg)
{
    end *self = arg;
    for (int i = 0; i < FRAMES / 2; i++) {
        atomic_fetch_add(&self->released, 1);
        leati_connection *connection = atomic_load(&self->connection);
        if (!connection)
            continue;
        if (i % 3 == 0)
            leati_connection_kick(connection);
        else if (i % 3 == 1 ? leati_connection_take_or_ask(connection)
                            : leati_connection_take(connection))
            leati_connection_serve(connection);
    }
    return NULL;
}

static void begin(pthread_t *thread, void *(*body)(void *), void *arg)
{
    if (pthread_create(thread, NULL, body, arg) != 0)
        wrong("no thread", 0, 0);
}

static int connect_to(const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)strtol(strrchr(address, ':') + 1, NULL, 10));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void knock(const char *address, uint32_t bytes)
{
    int fd = connect_to(address);
    while (fd >= 0 && bytes-- > 0 && send(fd, "?", 1, MSG_NOSIGNAL) == 1)
        continue;
    if (fd >= 0)
        close(fd);
}

// More than may have said nothing yet.
static void *come_in_crowds(void *arg)
{
    round *self = arg;
    for (int i = 0; i < STRANGERS; i++)
        self->strangers[i] = connect_to(leati_listener_address(self->listener));
    return NULL;
}

// For as long as it is made the process may have few files, of which strangers get a part.
static void listen_narrowly(round *self, const leati_listener_options *options)
{
    char why[256];
    struct rlimit files, few = {.rlim_cur = 64};
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        wrong("getrlimit", errno, 0);
    few.rlim_max = files.rlim_max;
    if (self->room > self->pairs)
        (void)setrlimit(RLIMIT_NOFILE, &few);
    if (leati_listener_create(options, &self->listener, why, sizeof why) != LEAT_OK)
        wrong(why, 0, 0);
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

static void open_round(round *self, bool crowded)
{
    memset(self, 0, sizeof *self);
    self->pairs = 1 + below(PAIRS);
    self->room = self->pairs + (crowded ? STRANGERS : 0);
    self->seed_of_accepted = seed_now ^ 0x5555;
    // Which of them accepts whom is not known, so all that accept send alike, and all that dial.
    for (uint32_t i = 0; i < self->pairs; i++) {
        self->dialled[i].seed = seed_now;
        self->dialled[i].peer_seed = &self->seed_of_accepted;
    }
    for (uint32_t i = 0; i < self->room; i++) {
        self->accepted[i].seed = self->seed_of_accepted;
        self->accepted[i].peer_seed = &seed_now;
    }
    leati_hello hello = {.purpose = "data", .process = "stress"};
    leati_listener_options options = {.address = "tcp://127.0.0.1:0",
                                      .hello = hello,
                                      .hello_timeout_ms = 30000,
                                      .frame_max = SIZE_MAX_,
                                      .most = 100,
                                      .accepted = on_accepted,
                                      .user = self};
    listen_narrowly(self, &options);
}

static void dial_all(round *self)
{
    char why[256];
    leati_hello hello = {.purpose = "data", .process = "stress"};
    for (uint32_t i = 0; i < self->pairs; i++) {
        leati_connection_options options = {.address = leati_listener_address(self->listener),
                                            .hello = hello,
                                            .dial_timeout_ms = 30000,
                                            .hello_timeout_ms = 30000,
                                            .frame_max = SIZE_MAX_,
                                            .hooks = &hooks,
                                            .user = &self->dialled[i]};
        leati_connection *connection;
        if (leati_connection_dial(&options, &connection, why, sizeof why) != LEAT_OK)
            wrong(why, 0, 0);
        atomic_store(&self->dialled[i].connection, connection);
    }
}

// Hands on what readers have left, of one connection after the other.
static void *hand_on(void *arg)
{
    round *self = arg;
    uint64_t state = self->seed_of_accepted;
    while (!atomic_load(&self->calm)) {
        uint32_t number = next_random(&state, self->pairs);
        end *chosen = next_random(&state, 2) ? &self->dialled[number] : &self->accepted[number];
        leati_connection *connection = atomic_load(&chosen->connection);
        if (connection)
            leati_connection_hand_on(connection);
        if (next_random(&state, 4) == 0)
            nap(next_random(&state, 100));
    }
    return NULL;
}

// Until `*counter` is there.
static void await(_Atomic uint32_t *counter, uint32_t wanted)
{
    while (atomic_load(counter) < wanted)
        nap(200);
}

// 0: nobody ends anything; all has to arrive.
static void disturb(round *self, uint32_t how)
{
    end *victim = &self->dialled[below(self->pairs)];
    nap(below(3000));
    leati_connection *connection;
    switch (how) {
    case 1:
        leati_connection_close(atomic_load(&victim->connection), LEAT_ECANCELLED, "stress");
        break;
    case 2:
        victim = &self->accepted[below(self->pairs)];
        connection = atomic_load(&victim->connection);
        if (connection)
            leati_connection_close(connection, LEAT_ECANCELLED, NULL);
        break;
    case 3:
        leati_listener_destroy(&self->listener);
        break;
    default:
        for (uint32_t i = below(4); i > 0; i--)
            knock(leati_listener_address(self->listener), below(20));
    }
}

static void close_end(end *self)
{
    leati_connection *connection = atomic_load(&self->connection);
    leati_connection_destroy(&connection);
    if (atomic_load(&self->closed) != 1 || atomic_load(&self->away) != 0)
        wrong("not closed", atomic_load(&self->closed), atomic_load(&self->away));
    all_found += atomic_load(&self->found);
    all_lost += atomic_load(&self->lost);
}

static void close_round(round *self)
{
    for (uint32_t i = 0; i < self->pairs; i++)
        close_end(&self->dialled[i]);
    leati_listener_destroy(&self->listener);
    for (uint32_t i = 0; i < self->room; i++)
        if (atomic_load(&self->accepted[i].connection))
            close_end(&self->accepted[i]);
}

static void try_round(round *self)
{
    pthread_t threads[PAIRS][4], crowd, hander;
    uint32_t how = below(6);
    bool crowded = how == 5;
    if (how == 4)
        how = 0;
    open_round(self, crowded);
    if (crowded)
        begin(&crowd, come_in_crowds, self);
    uint32_t pairs = self->pairs;
    if (how != 3 && how != 0)
        knock(leati_listener_address(self->listener), 0);
    // A stranger takes the place of somebody who dials; where all must arrive none comes first.
    dial_all(self);
    begin(&hander, hand_on, self);
    if (how == 0)
        await(&self->come, pairs);
    for (uint32_t i = 0; i < pairs; i++)
        for (int j = 0; j < 4; j++)
            begin(&threads[i][j], release_frames, j < 2 ? &self->dialled[i] : &self->accepted[i]);
    disturb(self, how);
    for (uint32_t i = 0; i < pairs; i++)
        for (int j = 0; j < 4; j++)
            pthread_join(threads[i][j], NULL);
    for (uint32_t i = 0; i < pairs && how == 0; i++) {
        await(&self->dialled[i].arrived, FRAMES);
        await(&self->accepted[i].arrived, FRAMES);
    }
    if (crowded)
        pthread_join(crowd, NULL);
    atomic_store(&self->calm, true);
    pthread_join(hander, NULL);
    close_round(self);
    for (int i = 0; i < STRANGERS && crowded; i++)
        if (self->strangers[i] >= 0)
            close(self->strangers[i]);
}

int main(int argc, char **argv)
{
    static round state;
    int64_t seconds = argc > 1 ? strtoll(argv[1], NULL, 10) : 5;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
    int64_t until = clock_s() + seconds;
    int rounds = 0;
    start_watchdog();
    printf("seed %" PRIu64 "\n", seed);
    for (; clock_s() < until; seed++, rounds++) {
        seed_now = random_now = seed;
        feed_watchdog();
        try_round(&state);
    }
    printf("%d rounds; of readers that stepped aside %" PRIu64 " read on and %" PRIu64 " did not\n",
           rounds, all_found, all_lost);
    return 0;
}
