// SPDX-License-Identifier: Apache-2.0
// The life of a job manager, and its own thread, which does what is due at a time: heartbeats,
// time-outs, restarts of children, log lines.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "cluster/manager/local.h"
#include "cluster/manager/run.h"

#define MS INT64_C(1000000)

enum {
    PEERS_MOST = 4096,
    HELLO_MS = 10000,
    STOP_JOBS_MS = 3000,    // for all jobs to end after SIGTERM
    STOP_CHILDREN_MS = 5000 // for the local task managers to
};

int64_t leati_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / MS;
}

void leati_manager_kick(leati_manager *manager)
{
    const uint64_t one = 1;
    // A full counter is a wake-up as well.
    ssize_t wrote = write(manager->kick_fd, &one, sizeof one);
    (void)wrote;
}

void leati_manager_stop(leati_manager *manager)
{
    pthread_mutex_lock(&manager->lock);
    manager->stop_wanted = true;
    pthread_mutex_unlock(&manager->lock);
    leati_manager_kick(manager);
}

// --- opening ---

// One job manager a folder: another one's artifacts would be removed.
static leat_err lock_folder(leati_manager *manager, char *why, size_t why_size)
{
    char path[LEATI_PATH_SIZE];
    snprintf(path, sizeof path, "%s/lock", manager->state_folder);
    manager->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (manager->lock_fd >= 0 && flock(manager->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return LEAT_OK;
    int error = errno;
    if (manager->lock_fd >= 0)
        (void)close(manager->lock_fd);
    manager->lock_fd = -1;
    if (error == EWOULDBLOCK) {
        snprintf(why, why_size, "the folder \"%s\" is in use by another job manager",
                 manager->state_folder);
        return LEAT_EEXIST;
    }
    snprintf(why, why_size, "\"%s\": %s", path, strerror(error));
    return LEAT_EIO;
}

static leat_err open_folders(leati_manager *manager, char *why, size_t why_size)
{
    const char *folder = manager->options.folder;
    char path[LEATI_PATH_SIZE];
    if ((size_t)snprintf(manager->state_folder, sizeof manager->state_folder, "%s", folder) >=
        sizeof manager->state_folder) {
        snprintf(why, why_size, "the folder's name \"%.80s…\" is too long", folder);
        return LEAT_EINVAL;
    }
    // Others' folders are found by its parent.
    for (size_t i = strlen(folder); i > 1 && folder[i - 1] == '/'; i--)
        manager->state_folder[i - 1] = '\0';
    folder = manager->state_folder;
    manager->folder_made = access(folder, F_OK) != 0;
    leat_err err = leati_make_folder(folder, why, why_size);
    if (err == LEAT_OK)
        err = lock_folder(manager, why, why_size);
    if (err == LEAT_OK)
        err = leati_store_create(manager->allocator, folder,
                                 (uint64_t)leati_setting(manager, LEATI_CONFIG_ARTIFACT_STORE),
                                 &manager->store, why, why_size);
    snprintf(path, sizeof path, "%s/outputs", folder);
    if (err == LEAT_OK)
        leati_remove_tree(path);
    if (err == LEAT_OK)
        err = leati_make_folder(path, why, why_size);
    return err;
}

static leat_err serve(leati_manager *manager, char *why, size_t why_size)
{
    char address[160];
    bool brackets = strchr(manager->options.bind, ':') != NULL;
    snprintf(address, sizeof address, "tcp://%s%s%s:%u", brackets ? "[" : "", manager->options.bind,
             brackets ? "]" : "", manager->options.rpc_port);
    leati_rpc_options options = {
        .allocator = manager->allocator,
        .address = address,
        .hello = {.abi = LEAT_ABI, .term = manager->term},
        .auth = &manager->auth,
        .hello_timeout_ms = HELLO_MS,
        .handlers = &leati_manager_handlers,
        .user = manager,
    };
    snprintf(options.hello.version, sizeof options.hello.version, "%s", leat_version());
    snprintf(options.hello.cluster, sizeof options.hello.cluster, "%s", manager->cluster);
    snprintf(options.hello.process, sizeof options.hello.process, "jobmanager-%s",
             manager->cluster);
    leat_err err = leati_rpc_serve(&options, PEERS_MOST, &manager->rpc_server, why, why_size);
    if (err != LEAT_OK)
        return err;
    const char *got = leati_rpc_server_address(manager->rpc_server), *rest = strstr(got, "://");
    snprintf(manager->rpc_address, sizeof manager->rpc_address, "%s", rest ? rest + 3 : got);
    return LEAT_OK;
}

static leat_err init(leati_manager *manager, const leati_manager_options *options, char *why,
                     size_t why_size)
{
    uint8_t id[(LEATI_ID_SIZE - 1) / 2];
    manager->allocator = leat_allocator_default();
    manager->options = *options;
    manager->lock_fd = -1;
    manager->started_ms = leati_now_ms();
    manager->term = (uint64_t)manager->started_ms;
    // Not those of an earlier job manager, whose task managers may be there.
    manager->next_attempt = manager->term << 16;
    pthread_mutex_init(&manager->lock, NULL);
    leati_cond_init(&manager->changed);
    leati_refusals_init(&manager->refusals);
    manager->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    manager->log = leati_log_queue_create(manager->allocator);
    if (manager->kick_fd < 0 || getrandom(id, sizeof id, 0) != (ssize_t)sizeof id) {
        snprintf(why, why_size, "%s", strerror(errno));
        return LEAT_EIO;
    }
    for (size_t i = 0; i < sizeof id; i++)
        snprintf(manager->cluster + 2 * i, 3, "%02x", id[i]);
    if (!manager->log) {
        snprintf(why, why_size, "out of memory");
        return LEAT_ENOMEM;
    }
    return LEAT_OK;
}

static leat_err open_auth(leati_manager *manager, char *why, size_t why_size)
{
    const leati_manager_options *options = &manager->options;
    leat_err err = leati_auth_open(&manager->auth, &options->auth, why, why_size);
    if (err == LEAT_OK)
        err = leati_may_listen(options->bind, &manager->auth, options->insecure, &options->logger,
                               why, why_size);
    return err;
}

// A sign of life that comes late must not count as death.
static leat_err check_times(const leati_manager *manager, char *why, size_t why_size)
{
    int64_t interval_ms = leati_setting(manager, LEATI_CONFIG_HEARTBEAT_INTERVAL);
    int64_t timeout_ms = leati_setting(manager, LEATI_CONFIG_HEARTBEAT_TIMEOUT);
    if (interval_ms * 2 <= timeout_ms)
        return LEAT_OK;
    char interval[64], timeout[64];
    leati_config_print(LEATI_CONFIG_HEARTBEAT_INTERVAL, interval_ms, interval, sizeof interval);
    leati_config_print(LEATI_CONFIG_HEARTBEAT_TIMEOUT, timeout_ms, timeout, sizeof timeout);
    snprintf(why, why_size,
             "cluster.heartbeat-interval (%s) is more than half of cluster.heartbeat-timeout (%s)",
             interval, timeout);
    return LEAT_EINVAL;
}

leat_err leati_manager_open(const leati_manager_options *options, leati_manager **manager,
                            char *why, size_t why_size)
{
    leati_manager *made = leati_calloc(leat_allocator_default(), 1, sizeof *made);
    if (!made) {
        snprintf(why, why_size, "out of memory");
        return LEAT_ENOMEM;
    }
    leat_err err = init(made, options, why, why_size);
    if (err == LEAT_OK)
        err = check_times(made, why, why_size);
    if (err == LEAT_OK)
        err = open_auth(made, why, why_size);
    if (err == LEAT_OK)
        err = open_folders(made, why, why_size);
    if (err == LEAT_OK)
        err = serve(made, why, why_size);
    if (err == LEAT_OK)
        *manager = made;
    else
        leati_manager_close(&made);
    return err;
}

static void remove_files(leati_manager *manager)
{
    static const char *const names[] = {"artifacts", "outputs", "lock"};
    if (manager->lock_fd < 0)
        return; // they are another's
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[LEATI_PATH_SIZE];
        snprintf(path, sizeof path, "%s/%s", manager->state_folder, names[i]);
        leati_remove_tree(path);
    }
    if (manager->folder_made || manager->options.local_workers > 0)
        (void)rmdir(manager->state_folder); // if nothing else is in it
    (void)close(manager->lock_fd);
}

void leati_manager_close(leati_manager **manager)
{
    leati_manager *gone = *manager;
    *manager = NULL;
    pthread_mutex_lock(&gone->lock);
    gone->stopping = true;
    pthread_cond_broadcast(&gone->changed);
    pthread_mutex_unlock(&gone->lock);
    if (gone->rpc_server)
        leati_rpc_server_destroy(&gone->rpc_server);
    leati_peers_reap(gone, true);
    for (leati_managed_job *job = gone->jobs, *next; job; job = next) {
        next = job->next;
        leati_managed_destroy(gone, &job);
    }
    leati_local_destroy(gone);
    leati_store_destroy(&gone->store);
    remove_files(gone);
    if (gone->log)
        leati_manager_flush_log(gone);
    leati_log_queue_destroy(&gone->log);
    leati_refusals_fini(&gone->refusals);
    leati_auth_close(&gone->auth);
    if (gone->kick_fd >= 0)
        (void)close(gone->kick_fd);
    pthread_cond_destroy(&gone->changed);
    pthread_mutex_destroy(&gone->lock);
    leati_free(gone->allocator, gone);
}

// --- its thread ---

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// What is due; when to look again.
static int64_t do_what_is_due(leati_manager *manager)
{
    leati_peers_reap(manager, false);
    leati_managed_forget(manager);
    int64_t now_ns = leati_clock_ns();
    int64_t next_ns = leati_local_check(manager, now_ns);
    pthread_mutex_lock(&manager->lock);
    next_ns = least(next_ns, leati_members_check(manager, now_ns));
    next_ns = least(next_ns, leati_manager_slot_timeouts(manager, now_ns));
    next_ns = least(next_ns, leati_manager_roots_due(manager, now_ns));
    next_ns = least(next_ns, leati_manager_attached_check(manager, now_ns));
    pthread_mutex_unlock(&manager->lock);
    leati_manager_flush_log(manager);
    return next_ns;
}

// Sleeps until something has happened, or until then. True when a signal has come.
static bool sleep_until(leati_manager *manager, int signal_fd, int64_t until_ns)
{
    struct pollfd fds[2 + LEATI_LOCAL_POLLED] = {{.fd = manager->kick_fd, .events = POLLIN},
                                                 {.fd = signal_fd, .events = POLLIN}};
    uint32_t count = 2 + leati_local_poll(manager, fds + 2, LEATI_LOCAL_POLLED);
    int64_t left_ns = until_ns - leati_clock_ns(), most_ns = INT64_C(10000) * MS;
    left_ns = left_ns < 0 ? 0 : least(left_ns, most_ns);
    if (poll(fds, count, (int)((left_ns + MS - 1) / MS)) <= 0)
        return false;
    uint64_t kicks;
    if (fds[0].revents && read(manager->kick_fd, &kicks, sizeof kicks) < 0)
        return false; // somebody's wake-up, taken already
    struct signalfd_siginfo info;
    return signal_fd >= 0 && fds[1].revents &&
           read(signal_fd, &info, sizeof info) == (ssize_t)sizeof info;
}

// Whether there is nothing left to wait for.
static bool begin_stop(leati_manager *manager)
{
    bool live = false;
    pthread_mutex_lock(&manager->lock);
    if (!manager->stopping)
        leati_manager_log(manager, LEAT_LOG_INFO, "the job manager ends");
    manager->stopping = true;
    for (leati_managed_job *job = manager->jobs; job; job = job->next) {
        if (!leati_phase_is_final(job->phase))
            leati_managed_cancel(manager, job);
        live = live || !leati_phase_is_final(job->phase);
    }
    pthread_cond_broadcast(&manager->changed);
    pthread_mutex_unlock(&manager->lock);
    return !live;
}

void leati_manager_loop(leati_manager *manager, int signal_fd)
{
    int64_t give_up_ns = INT64_MAX;
    for (;;) {
        int64_t next_ns = do_what_is_due(manager);
        pthread_mutex_lock(&manager->lock);
        bool stop = manager->stop_wanted;
        pthread_mutex_unlock(&manager->lock);
        if (stop) {
            if (begin_stop(manager) || leati_clock_ns() >= give_up_ns)
                return;
            if (give_up_ns == INT64_MAX)
                give_up_ns = leati_clock_ns() + STOP_JOBS_MS * MS;
        }
        if (!sleep_until(manager, signal_fd, least(next_ns, give_up_ns)))
            continue;
        if (stop) // a second signal: no more patience
            give_up_ns = 0;
        pthread_mutex_lock(&manager->lock);
        manager->stop_wanted = true;
        pthread_mutex_unlock(&manager->lock);
    }
}

// --- the module's entry ---

static leat_err start_all(leati_manager *manager, leati_rest **rest, char *why, size_t why_size)
{
    leat_err err = leati_rest_start(manager, rest, why, why_size);
    if (err == LEAT_OK)
        err = leati_local_start(manager, why, why_size);
    if (err == LEAT_OK)
        err = leati_manager_write_state(manager, why, why_size);
    if (err == LEAT_OK)
        leati_manager_log(manager, LEAT_LOG_INFO, "cluster %s, version %s: REST at %s, RPC at %s",
                          manager->cluster, leat_version(), manager->rest_address,
                          manager->rpc_address);
    return err;
}

int leati_manager_run(const leati_manager_options *options, char *why, size_t why_size)
{
    leati_manager *manager = NULL;
    leati_rest *rest = NULL;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd < 0) {
        snprintf(why, why_size, "signalfd: %s", strerror(errno));
        return 1;
    }
    leat_err err = leati_manager_open(options, &manager, why, why_size);
    if (err == LEAT_OK)
        err = start_all(manager, &rest, why, why_size);
    if (err == LEAT_OK)
        leati_manager_loop(manager, signal_fd);
    if (manager) {
        pthread_mutex_lock(&manager->lock);
        manager->stopping = true;
        pthread_cond_broadcast(&manager->changed);
        pthread_mutex_unlock(&manager->lock);
        leati_local_stop(manager, STOP_CHILDREN_MS);
        if (rest)
            leati_rest_stop(&rest);
        if (options->state_file)
            (void)unlink(options->state_file);
        leati_manager_close(&manager);
    }
    (void)close(signal_fd);
    return err == LEAT_OK ? 0 : 1;
}
