// SPDX-License-Identifier: Apache-2.0
// The task manager's main thread: start, loop, end.
#include "cluster/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
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
#include "base/utf8.h"
#include "cluster/worker/crash.h"
#include "cluster/worker/socket_folder.h"
#include "cluster/worker/watchdog.h"
#include "cluster/worker/worker_impl.h"

enum { BACK_OFF_FIRST_MS = 100, BACK_OFF_MOST_MS = 2000, WATCH_MS = 1000, FLUSH_MS = 1000 };

void leati_taskmanager_kick(leati_taskmanager *tm)
{
    // It only fails when the counter is full, and then the main thread is kicked already.
    ssize_t ignored = write(tm->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
    (void)ignored;
}

void leati_taskmanager_log(const leati_taskmanager *tm, leat_log_level level, const char *format,
                           ...)
{
    const leat_logger *logger = &tm->options->logger;
    char line[LEATI_WORKER_REASON + 200];
    if (!logger->write || level > logger->level)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    leati_text_clean(line);
    logger->write(logger->user, level, line);
}

// --- the control connection ---

static leati_control control_of(leati_taskmanager *tm)
{
    pthread_mutex_lock(&tm->lock);
    leati_control control = tm->control;
    pthread_mutex_unlock(&tm->lock);
    return control;
}

// Says so once, and again when the reason is another one.
static void tell_loss(leati_taskmanager *tm)
{
    char loss[sizeof tm->loss];
    pthread_mutex_lock(&tm->lock);
    memcpy(loss, tm->loss, sizeof loss);
    pthread_mutex_unlock(&tm->lock);
    if (strcmp(loss, tm->last_loss) != 0)
        leati_taskmanager_log(tm, LEAT_LOG_WARN, "no job manager at %s: %s", tm->options->manager,
                              loss);
    memcpy(tm->last_loss, loss, sizeof loss);
}

static void on_lost(leati_taskmanager *tm, int64_t now)
{
    tell_loss(tm);
    leati_control_drop(tm, "the connection is lost");
    leati_attempts_drop(tm);
    if (tm->alone_since_ns == 0)
        tm->alone_since_ns = now;
    tm->next_dial_ns = now + tm->back_off_ms * 1000000;
    tm->back_off_ms *= 2;
    if (tm->back_off_ms > BACK_OFF_MOST_MS)
        tm->back_off_ms = BACK_OFF_MOST_MS;
}

static void on_up(leati_taskmanager *tm, int64_t now)
{
    leati_taskmanager_log(tm, LEAT_LOG_INFO, "registered with the job manager at %s",
                          tm->options->manager);
    tm->alone_since_ns = 0;
    tm->back_off_ms = BACK_OFF_FIRST_MS;
    tm->next_beat_ns = now;
    tm->last_loss[0] = '\0';
}

static void report_all(leati_taskmanager *tm)
{
    pthread_mutex_lock(&tm->lock);
    for (leati_attempt *a = tm->attempts; a; a = a->next) {
        pthread_mutex_lock(&a->lock);
        if (a->job && !a->over)
            leati_report_send(a, a->job, false);
        pthread_mutex_unlock(&a->lock);
    }
    pthread_mutex_unlock(&tm->lock);
}

// Heartbeats both ways.
static void while_up(leati_taskmanager *tm, int64_t now)
{
    pthread_mutex_lock(&tm->lock);
    int64_t interval = tm->heartbeat_interval_ns, timeout = tm->heartbeat_timeout_ns;
    pthread_mutex_unlock(&tm->lock);
    int64_t silent = now - atomic_load_explicit(&tm->heard_ns, memory_order_relaxed);
    if (silent > timeout) {
        pthread_mutex_lock(&tm->lock);
        snprintf(tm->loss, sizeof tm->loss, "it has been silent for %lld ms",
                 (long long)(silent / 1000000));
        tm->control = LEATI_CONTROL_LOST;
        pthread_mutex_unlock(&tm->lock);
        return;
    }
    if (now < tm->next_beat_ns)
        return;
    leati_heartbeat_send(tm, tm->session);
    report_all(tm);
    tm->next_beat_ns = now + interval;
}

// --- the loop ---

typedef enum verdict { GO_ON, ORDERLY, GIVE_UP } verdict;

static bool wants_shutdown(leati_taskmanager *tm)
{
    struct signalfd_siginfo info;
    uint64_t kicks;
    bool stop = read(tm->signal_fd, &info, sizeof info) > 0;
    ssize_t ignored = read(tm->wake_fd, &kicks, sizeof kicks);
    (void)ignored;
    pthread_mutex_lock(&tm->lock);
    stop |= tm->shutdown;
    pthread_mutex_unlock(&tm->lock);
    return stop;
}

static bool is_refused(leati_taskmanager *tm, char *why, size_t why_size)
{
    pthread_mutex_lock(&tm->lock);
    bool refused = tm->refused;
    if (refused)
        snprintf(why, why_size, "%s", tm->loss);
    pthread_mutex_unlock(&tm->lock);
    return refused;
}

static bool is_alone_too_long(const leati_taskmanager *tm, int64_t now, char *why, size_t why_size)
{
    int64_t limit_ms = leati_config_get(&tm->options->config, LEATI_CONFIG_REGISTRATION_TIMEOUT);
    if (tm->alone_since_ns == 0 || (now - tm->alone_since_ns) / 1000000 < limit_ms)
        return false;
    snprintf(why, why_size,
             "there was no job manager at %s for %lld ms (taskmanager.registration-timeout)%s%s",
             tm->options->manager, (long long)limit_ms, tm->last_loss[0] ? ": " : "",
             tm->last_loss);
    return true;
}

// A job manager that takes the connection and then says nothing.
static void while_dialling(leati_taskmanager *tm, int64_t now)
{
    int64_t limit_ms = leati_config_get(&tm->options->config, LEATI_CONFIG_HEARTBEAT_TIMEOUT);
    int64_t silent = now - atomic_load_explicit(&tm->heard_ns, memory_order_relaxed);
    if (silent / 1000000 < limit_ms + 10000)
        return;
    pthread_mutex_lock(&tm->lock);
    snprintf(tm->loss, sizeof tm->loss, "it does not answer");
    tm->control = LEATI_CONTROL_LOST;
    pthread_mutex_unlock(&tm->lock);
}

static void step(leati_taskmanager *tm, leati_control *before, int64_t now)
{
    uint32_t attempts = leati_attempts_reap(tm);
    leati_watch_attempts(tm, now);
    leati_control control = control_of(tm);
    if (control == LEATI_CONTROL_UP && *before != LEATI_CONTROL_UP)
        on_up(tm, now);
    if (control == LEATI_CONTROL_UP)
        while_up(tm, now);
    else if (control == LEATI_CONTROL_DIALLING)
        while_dialling(tm, now);
    *before = control;
    if (control_of(tm) == LEATI_CONTROL_LOST)
        on_lost(tm, now);
    // Its slots are free again when what ran in them has ended.
    if (control_of(tm) == LEATI_CONTROL_NONE && attempts == 0 && now >= tm->next_dial_ns)
        leati_control_dial(tm);
}

static int64_t next_step_ns(leati_taskmanager *tm, int64_t now)
{
    int64_t next = now + (int64_t)WATCH_MS * 1000000;
    leati_control control = control_of(tm);
    if (control == LEATI_CONTROL_UP && tm->next_beat_ns < next)
        next = tm->next_beat_ns;
    if (control == LEATI_CONTROL_NONE && tm->next_dial_ns > now && tm->next_dial_ns < next)
        next = tm->next_dial_ns;
    return next;
}

static verdict loop(leati_taskmanager *tm, char *why, size_t why_size)
{
    leati_control before = LEATI_CONTROL_NONE;
    tm->back_off_ms = BACK_OFF_FIRST_MS;
    tm->alone_since_ns = leati_clock_ns();
    for (;;) {
        int64_t now = leati_clock_ns();
        if (is_refused(tm, why, why_size))
            return GIVE_UP;
        step(tm, &before, now);
        if (is_alone_too_long(tm, now, why, why_size))
            return GIVE_UP;
        struct pollfd wait[] = {{.fd = tm->signal_fd, .events = POLLIN},
                                {.fd = tm->wake_fd, .events = POLLIN}};
        int64_t sleep_ns = next_step_ns(tm, now) - leati_clock_ns();
        (void)poll(wait, 2, sleep_ns > 0 ? (int)(sleep_ns / 1000000) + 1 : 0);
        if (wants_shutdown(tm))
            return ORDERLY;
    }
}

// Attempts are cancelled; the watchdog sees to it that this ends.
static void end_attempts(leati_taskmanager *tm)
{
    pthread_mutex_lock(&tm->lock);
    bool asked = tm->shutdown; // by the job manager, which knows why its jobs end
    pthread_mutex_unlock(&tm->lock);
    leati_attempts_end(tm, !asked);
    while (leati_attempts_reap(tm) > 0) {
        struct pollfd wait = {.fd = tm->wake_fd, .events = POLLIN};
        uint64_t kicks;
        (void)poll(&wait, 1, WATCH_MS);
        ssize_t ignored = read(tm->wake_fd, &kicks, sizeof kicks);
        (void)ignored;
        leati_watch_attempts(tm, leati_clock_ns());
    }
}

// --- start and end ---

static bool refuse(char *why, size_t why_size, const char *what, const char *reason)
{
    snprintf(why, why_size, "%s: %s", what, reason);
    return false;
}

static bool name_process(leati_taskmanager *tm, char *why, size_t why_size)
{
    uint8_t random[16];
    struct timespec now;
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return refuse(why, why_size, "the task manager's id", strerror(errno));
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(tm->id + 2 * i, 3, "%02x", random[i]);
    if (gethostname(tm->host, sizeof tm->host - 1))
        snprintf(tm->host, sizeof tm->host, "localhost");
    clock_gettime(CLOCK_REALTIME, &now);
    tm->started_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    return true;
}

static bool open_descriptors(leati_taskmanager *tm, char *why, size_t why_size)
{
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    tm->signal_fd = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
    tm->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (tm->signal_fd < 0 || tm->wake_fd < 0)
        return refuse(why, why_size, "the task manager's descriptors", strerror(errno));
    return true;
}

// The folder is this process's alone.
static bool open_folder(leati_taskmanager *tm, char *why, size_t why_size)
{
    const char *folder = tm->options->folder;
    char path[LEATI_PATH_SIZE];
    int length = snprintf(tm->attempts_folder, sizeof tm->attempts_folder, "%s/attempts", folder);
    int error = length < (int)sizeof tm->attempts_folder ? leati_folder_make(folder) : ENAMETOOLONG;
    if (error)
        return refuse(why, why_size, folder, strerror(error));
    snprintf(path, sizeof path, "%s/lock", folder);
    tm->folder_lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (tm->folder_lock < 0)
        return refuse(why, why_size, path, strerror(errno));
    if (flock(tm->folder_lock, LOCK_EX | LOCK_NB))
        return refuse(why, why_size, folder,
                      errno == EWOULDBLOCK ? "another task manager uses this folder"
                                           : strerror(errno));
    leati_folder_remove(tm->attempts_folder);
    snprintf(path, sizeof path, "%s/cache", folder);
    if ((error = leati_folder_make(tm->attempts_folder)) || (error = leati_folder_make(path)))
        return refuse(why, why_size, folder, strerror(error));
    uint64_t limit = (uint64_t)leati_config_get(&tm->options->config, LEATI_CONFIG_ARTIFACT_CACHE);
    return leati_artifact_cache_create(tm->allocator, path, limit, &tm->cache, why, why_size) ==
           LEAT_OK;
}

static void tell_crash(void *user, const leati_last_words *words)
{
    leati_taskmanager *tm = user;
    (void)leati_control_send(tm, 0, LEATI_MESSAGE_CRASH, LEAT_TYPE(leati_msg_failed),
                             &(leati_msg_failed){.attempt = words->attempt,
                                                 .err = LEAT_EUSER,
                                                 .vertex = words->vertex,
                                                 .subtask = words->subtask,
                                                 .text = {words->text, strlen(words->text)}});
}

static leat_err set_all(leat_env *env, const leati_config *config)
{
    leat_err err = LEAT_OK;
    for (int key = 0; key < LEATI_CONFIG_COUNT && !err; key++) {
        const leati_config_info *info = leati_config_describe((leati_config_key)key);
        int64_t value = leati_config_get(config, (leati_config_key)key);
        char text[64];
        leati_config_print((leati_config_key)key, value, text, sizeof text);
        if (value != info->preset)
            err = leat_env_set(env, info->name, text);
    }
    return err;
}

// After the handlers for crashes: threads that start look whether there are any.
static bool open_runtime(leati_taskmanager *tm, char *why, size_t why_size)
{
    leat_err err = leati_crash_install(tm->allocator, tm->options->log_path, tell_crash, tm);
    if (!err)
        err = leat_env_create(
            &(leat_env_options){.allocator = tm->allocator, .logger = tm->options->logger},
            &tm->env);
    if (!err)
        err = set_all(tm->env, &tm->options->config);
    if (!err)
        err = leat_scratch_create(tm->allocator, &tm->scratch);
    if (err)
        return refuse(why, why_size, "the task manager", leat_err_message(err));
    return leat_runtime_create(tm->env, &tm->runtime, why, why_size) == LEAT_OK;
}

static void tell_refused(void *user, const char *why)
{
    leati_taskmanager *tm = user;
    uint32_t more;
    if (!leati_refusals_take(&tm->refusals, why, leati_clock_ns(), &more))
        return;
    leati_taskmanager_log(tm, LEAT_LOG_WARN, "somebody who connected was refused: %s", why);
    if (more)
        leati_taskmanager_log(tm, LEAT_LOG_WARN, "so were %u more from there", (unsigned)more);
}

static bool open_auth(leati_taskmanager *tm, char *why, size_t why_size)
{
    const leati_worker_options *o = tm->options;
    return leati_auth_open(&tm->auth, &o->auth, why, why_size) == LEAT_OK &&
           leati_may_listen(o->bind, &tm->auth, o->insecure, &o->logger, why, why_size) == LEAT_OK;
}

static bool open_exchange(leati_taskmanager *tm, char *why, size_t why_size)
{
    const leati_worker_options *o = tm->options;
    char address[300], path[LEATI_PATH_SIZE + 32], without[LEATI_PATH_SIZE + 200] = "";
    bool wanted = leati_config_get(&o->config, LEATI_CONFIG_IPC);
    bool has_path =
        wanted && leati_socket_folder_open(o->folder, tm->socket_folder, sizeof tm->socket_folder,
                                           without, sizeof without);
    if (has_path) // a name that no other process has
        snprintf(path, sizeof path, "%s/%.16s", tm->socket_folder, tm->id);
    else
        tm->socket_folder[0] = '\0';
    snprintf(address, sizeof address, "tcp://%s:%u", o->bind, (unsigned)o->data_port);
    const leati_exchange_options options = {
        .allocator = tm->allocator,
        .address = address,
        .socket_path = has_path ? path : NULL,
        .process = tm->id,
        .segment_size = (uint32_t)leati_config_get(&o->config, LEATI_CONFIG_SEGMENT_SIZE),
        .connect_timeout_ms = leati_config_get(&o->config, LEATI_CONFIG_CONNECT_TIMEOUT),
        .auth = &tm->auth,
        .refused = tell_refused,
        .user = tm,
    };
    leat_err err = leati_exchange_create(&options, &tm->exchange, why, why_size);
    if (err != LEAT_OK)
        return false;
    if (wanted && (!has_path || *why))
        leati_taskmanager_log(tm, LEAT_LOG_WARN,
                              "task managers of this host are not reached by network.ipc: %s",
                              has_path ? why : without);
    return true;
}

static bool open_all(leati_taskmanager *tm, char *why, size_t why_size)
{
    return open_auth(tm, why, why_size) && name_process(tm, why, why_size) &&
           open_descriptors(tm, why, why_size) && open_folder(tm, why, why_size) &&
           open_runtime(tm, why, why_size) && open_exchange(tm, why, why_size);
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

static void close_all(leati_taskmanager *tm)
{
    if (tm->exchange)
        leati_exchange_destroy(&tm->exchange);
    if (tm->socket_folder[0])
        leati_socket_folder_close(tm->socket_folder);
    leat_runtime_destroy(&tm->runtime);
    leati_crash_remove();
    leat_scratch_destroy(&tm->scratch);
    leat_env_destroy(&tm->env);
    leati_artifact_cache_destroy(&tm->cache);
    leati_library_table_fini(&tm->libraries);
    close_fd(tm->folder_lock);
    close_fd(tm->signal_fd);
    close_fd(tm->wake_fd);
    pthread_mutex_destroy(&tm->lock);
    pthread_mutex_destroy(&tm->wire_lock);
    leati_refusals_fini(&tm->refusals);
    leati_auth_close(&tm->auth);
    leati_free(tm->allocator, tm);
}

static int serve(leati_taskmanager *tm, char *why, size_t why_size)
{
    leati_taskmanager_log(tm, LEAT_LOG_INFO, "task manager %s takes data at %s; %u slots", tm->id,
                          leati_exchange_address(tm->exchange), (unsigned)tm->options->slots);
    verdict end = loop(tm, why, why_size);
    end_attempts(tm);
    leati_control_flush(tm, FLUSH_MS);
    leati_control_drop(tm, "the task manager ends");
    leati_taskmanager_log(tm, LEAT_LOG_INFO, "task manager %s ends", tm->id);
    return end == ORDERLY ? 0 : 1;
}

int leati_worker_run(const leati_worker_options *options, char *why, size_t why_size)
{
    leati_taskmanager *tm = leati_calloc(NULL, 1, sizeof *tm);
    if (!tm) {
        snprintf(why, why_size, "%s", leat_err_message(LEAT_ENOMEM));
        return 1;
    }
    tm->options = options;
    tm->signal_fd = tm->wake_fd = tm->folder_lock = -1;
    pthread_mutex_init(&tm->lock, NULL);
    pthread_mutex_init(&tm->wire_lock, NULL);
    leati_library_table_init(&tm->libraries, NULL);
    leati_refusals_init(&tm->refusals);
    int status = open_all(tm, why, why_size) ? serve(tm, why, why_size) : 1;
    close_all(tm);
    return status;
}
