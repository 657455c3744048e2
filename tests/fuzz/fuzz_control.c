// SPDX-License-Identifier: Apache-2.0
// What a task manager that is let in may say to the job manager: behind a good hand-shake and
// registration, and with a job deployed to it, come messages that the input has, in their encoded
// form. Those that ask for it are given the number of the attempt that runs. Whatever comes, the
// job manager lives on, the job ends, and the next task manager registers and is deployed to.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "cluster/manager/manager_impl.h"
#include "leat/leat.h"
#include "network/nng/connection_impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// A finding: libFuzzer and the tests both see an abort.
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "fuzz_control: line %d: %s\n", __LINE__, #condition);                  \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

// The XXH3-128 of "so\n".
#define SO_HASH "2dbb6498ee31e1b3e104480d46a416d9"

enum { SLOTS = 2, MOST = 1 << 16, PATIENCE_MS = 20000, LOOK_EVERY = 64 };
enum { UINT64 = 0xcf }; // of msgpack: 8 bytes follow, the highest first

typedef struct stage {
    leati_manager *manager;
    pthread_t loop; // the job manager's own
    leati_msg_job job;
    leat_scratch *scratch;
    uint64_t lives;
    int fd;
    uint8_t in[MOST];
} stage;

// --- the job manager, and a job for it ---

static int make(leat_ctx *ctx, int64_t index, void *out)
{
    *(int64_t *)out = index;
    (void)ctx;
    return 0;
}

static int add(leat_ctx *ctx, void *sum, const void *in)
{
    *(int64_t *)sum += *(const int64_t *)in;
    (void)ctx;
    return 0;
}

static void make_job(stage *self, const char *folder)
{
    static uint8_t *bytes;
    static char digest[LEATI_ID_SIZE];
    char path[128], why[300];
    leat_env *env = NULL;
    leati_job_graph *graph = NULL;
    size_t size = 0;
    EXPECT(leat_env_create(NULL, &env) == LEAT_OK);
    leat_env_set_parallelism(env, 2);
    leat_stream *numbers = leat_generate(env, make, 10, 0, leat_type_scalar(LEAT_I64));
    leat_discard(leat_reduce(leat_key_by(numbers, ""), add));
    EXPECT(leati_job_graph_create(env, &graph) == LEAT_OK);
    EXPECT(leati_job_graph_encode(graph, &bytes, &size) == LEAT_OK);
    snprintf(digest, sizeof digest, "%s", graph->digest);
    self->job = (leati_msg_job){
        .name = leati_text("job"),
        .job_file = {.name = leati_text("job.so"), .hash = leati_text(SO_HASH), .size = 3},
        .digest = leati_text(digest),
        .graph = {bytes, size}};
    leati_job_graph_destroy(&graph);
    leat_env_destroy(&env);
    snprintf(path, sizeof path, "%s/upload", folder);
    FILE *file = fopen(path, "w");
    EXPECT(file && fputs("so\n", file) >= 0 && fclose(file) == 0);
    EXPECT(leati_artifact_put(self->manager, SO_HASH, path, why, sizeof why) == LEAT_OK);
}

static void *loop(void *arg)
{
    leati_manager_loop(arg, -1);
    return NULL;
}

static char folder[] = "/tmp/leat-fuzz-XXXXXX";
static stage self;

static void stop(void)
{
    leati_manager_stop(self.manager);
    pthread_join(self.loop, NULL);
    leati_manager_close(&self.manager);
    leat_scratch_destroy(&self.scratch);
    (void)rmdir(folder);
}

static void start(void)
{
    char why[300] = "";
    leati_manager_options options = {.bind = "127.0.0.1", .folder = mkdtemp(folder)};
    leati_config_init(&options.config);
    options.config.value[LEATI_CONFIG_JOBS_KEPT] = 10;
    options.config.value[LEATI_CONFIG_JOB_OUTPUT] = 4096;
    EXPECT(leati_manager_open(&options, &self.manager, why, sizeof why) == LEAT_OK);
    EXPECT(leat_scratch_create(NULL, &self.scratch) == LEAT_OK);
    make_job(&self, folder);
    EXPECT(pthread_create(&self.loop, NULL, loop, self.manager) == 0);
}

static uint32_t jobs_under_way(void)
{
    uint32_t count = 0;
    pthread_mutex_lock(&self.manager->lock);
    for (leati_managed_job *job = self.manager->jobs; job; job = job->next)
        count += !leati_phase_is_final(job->phase);
    pthread_mutex_unlock(&self.manager->lock);
    return count;
}

// Those whose task manager was lost end within half a second, so not each input waits for it.
static void expect_jobs_to_end(void)
{
    for (int i = 0; i < PATIENCE_MS && jobs_under_way() > 0; i++)
        usleep(1000);
    EXPECT(jobs_under_way() == 0);
}

// --- the task manager ---

// False: the other side has closed.
static bool receive(uint8_t *to, size_t size)
{
    for (size_t got = 0; got < size;) {
        ssize_t more = recv(self.fd, to + got, size - got, 0);
        if (more < 0 && errno == EINTR)
            continue; // libFuzzer's alarm
        if (more <= 0)
            return false;
        got += (size_t)more;
    }
    return true;
}

static void say(uint8_t kind, const void *payload, size_t size)
{
    uint8_t header[LEATI_FRAME_SIZE];
    leati_frame_put(&(leati_frame){.size = (uint32_t)size, .kind = kind}, header);
    (void)!send(self.fd, header, sizeof header, MSG_NOSIGNAL);
    for (size_t sent = 0; sent < size;) {
        ssize_t more = send(self.fd, (const uint8_t *)payload + sent, size - sent, MSG_NOSIGNAL);
        if (more < 0 && errno != EINTR)
            return;
        sent += more > 0 ? (size_t)more : 0;
    }
}

static void dial(void)
{
    uint8_t bytes[LEATI_FRAME_SIZE + LEATI_HELLO_SIZE];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)strtol(strrchr(self.manager->rpc_address, ':') + 1, NULL, 10));
    leati_hello hello = {.purpose = "control", .process = "fuzz"};
    self.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(self.fd >= 0 && connect(self.fd, (struct sockaddr *)&to, sizeof to) == 0);
    int one = 1; // small pieces are not to wait for each other
    (void)setsockopt(self.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    leati_hello_complete(&hello);
    leati_hello_put(&hello, bytes);
    EXPECT(send(self.fd, bytes, sizeof bytes, MSG_NOSIGNAL) == sizeof bytes);
    EXPECT(receive(bytes, sizeof bytes));
}

static void enroll(void)
{
    char id[LEATI_ID_SIZE];
    uint8_t bytes[1024];
    snprintf(id, sizeof id, "%032llu", (unsigned long long)++self.lives);
    const leati_msg_register m = {.id = leati_text(id),
                                  .host = leati_text("host"),
                                  .data_address = leati_text("tcp://127.0.0.1:1"),
                                  .version = leati_text(leat_version()),
                                  .index = 1,
                                  .slots = SLOTS,
                                  .segment_size = 32768};
    const leat_type *type = LEAT_TYPE(leati_msg_register);
    const uint8_t *end = leat_record_encode(type, &m, bytes, bytes + sizeof bytes);
    EXPECT(end);
    say(LEATI_MESSAGE_REGISTER, bytes, (size_t)(end - bytes));
}

// The attempt that it is to run.
static uint64_t await_deploy(void)
{
    leati_frame frame;
    leati_msg_deploy deploy;
    for (;;) {
        EXPECT(receive(self.in, LEATI_FRAME_SIZE));
        leati_frame_get(&frame, self.in);
        EXPECT(frame.size <= sizeof self.in && receive(self.in, frame.size));
        if (frame.kind == LEATI_MESSAGE_DEPLOY)
            break;
    }
    leat_scratch_reset(self.scratch);
    EXPECT(leati_rpc_decode(LEAT_TYPE(leati_msg_deploy), self.in, frame.size, &deploy,
                            self.scratch) == LEAT_OK);
    return deploy.attempt;
}

// The first of a message's fields, where it is written in full and is 0, becomes the attempt.
static void put_attempt(uint8_t *payload, size_t size, uint64_t attempt)
{
    static const uint8_t none[8];
    size_t at = size > 0 && payload[0] == 0xdc ? 3 : 1; // behind the head of an array
    if (size < at + 9 || payload[at] != UINT64 || memcmp(payload + at + 1, none, 8) != 0)
        return;
    for (int i = 0; i < 8; i++)
        payload[at + 1 + i] = (uint8_t)(attempt >> 8 * (7 - i));
}

// Kind, size in two bytes, payload; and so on.
static void say_all(const uint8_t *data, size_t size, uint64_t attempt)
{
    static uint8_t payload[UINT16_MAX];
    while (size > 3) {
        uint8_t kind = data[0];
        size_t length = (size_t)data[1] | (size_t)data[2] << 8;
        data += 3;
        size -= 3;
        if (length > size)
            length = size;
        memcpy(payload, data, length);
        put_attempt(payload, length, attempt);
        say(kind, payload, length);
        data += length;
        size -= length;
    }
}

static void leave(void)
{
    shutdown(self.fd, SHUT_WR);
    while (receive(self.in, 1))
        continue;
    close(self.fd);
    for (bool there = true; there; sched_yield()) {
        pthread_mutex_lock(&self.manager->lock);
        there = false;
        for (const leati_member *member = self.manager->members; member; member = member->next)
            there |= member->rpc != NULL;
        pthread_mutex_unlock(&self.manager->lock);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char id[LEATI_ID_SIZE], why[300];
    if (!self.manager) {
        start();
        EXPECT(atexit(stop) == 0);
    }
    EXPECT(leati_manager_submit(self.manager, &self.job, false, id, why, sizeof why) == LEAT_OK);
    dial();
    enroll();
    say_all(data, size, await_deploy());
    leave();
    if (self.lives % LOOK_EVERY == 0)
        expect_jobs_to_end();
    return 0;
}
