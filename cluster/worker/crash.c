// SPDX-License-Identifier: Apache-2.0
// The one static object of the room is here: a signal handler has no other way to what it needs.
#include "cluster/worker/crash.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "runtime/placement.h"

enum { PLACES = 128, STATUS = 70, FLUSH_MS = 30 };

static const int caught[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
enum { CAUGHT = sizeof caught / sizeof *caught };

// Where a thread runs user code outside of tasks.
typedef struct place {
    _Atomic int tid; // 0: free; the rest is its thread's
    uint64_t attempt;
    const char *what;
} place;

typedef struct crash_state {
    // Immutable.
    const leat_allocator *allocator;
    pid_t pid; // a child of user code is none of ours
    int log_fd;
    void (*tell)(void *user, const leati_last_words *words);
    void *user;
    struct sigaction before[CAUGHT];
    pthread_t teller;
    sem_t wanted;
    // Atomic.
    _Atomic bool claimed; // by the first thread that has something to say
    _Atomic bool told;
    _Atomic bool leaving;
    // The claiming thread's until it posts `wanted`, then the teller's.
    leati_last_words words;
    place places[PLACES];
} crash_state;

static crash_state *_Atomic current;

// --- writing without the library: all of this runs in a signal handler ---

static void put(char *text, size_t size, const char *more)
{
    size_t length = strnlen(text, size);
    while (*more && length + 1 < size)
        text[length++] = *more++;
    text[length] = '\0';
}

static void put_number(char *text, size_t size, unsigned number)
{
    char digits[12];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    put(text, size, digits + at);
}

static const char *signal_name(int number)
{
    switch (number) {
    case SIGSEGV:
        return "SIGSEGV";
    case SIGBUS:
        return "SIGBUS";
    case SIGILL:
        return "SIGILL";
    case SIGFPE:
        return "SIGFPE";
    case SIGABRT:
        return "SIGABRT";
    default:
        return "?";
    }
}

static void write_line(const crash_state *s, const leati_last_words *words)
{
    char line[sizeof words->text + 64] = "leat taskmanager: dies of ";
    put(line, sizeof line, words->text);
    put(line, sizeof line, "\n");
    size_t size = strlen(line);
    // There is nobody to tell that this does not work.
    ssize_t ignored = write(STDERR_FILENO, line, size);
    if (s->log_fd >= 0)
        ignored = write(s->log_fd, line, size);
    (void)ignored;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

// --- what to say ---

static const place *own_place(const crash_state *s)
{
    int tid = gettid();
    for (int i = 0; i < PLACES; i++)
        // Only the thread itself writes its number there, and it is the one that looks.
        if (atomic_load_explicit(&s->places[i].tid, memory_order_relaxed) == tid)
            return &s->places[i];
    return NULL;
}

static void find_place(const crash_state *s, const void *context, leati_last_words *words)
{
    char where[300] = "";
    words->vertex = words->subtask = UINT32_MAX;
    const place *outside = own_place(s);
    if (leati_crash_place(context, &words->attempt, &words->vertex, &words->subtask, where,
                          sizeof where)) {
        put(words->text, sizeof words->text, " in ");
        put(words->text, sizeof words->text, where);
    } else if (outside) {
        words->attempt = outside->attempt;
        put(words->text, sizeof words->text, " in ");
        put(words->text, sizeof words->text, outside->what);
    }
}

// A fault a little below the stack pointer, or above it in the frame that is being made: where the
// stack is there, nothing faults.
static bool is_overflow(const siginfo_t *info, const void *context)
{
#if defined(__x86_64__)
    uintptr_t top = (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    uintptr_t top = (uintptr_t)((const ucontext_t *)context)->uc_mcontext.sp;
#else
    uintptr_t top = 0;
#endif
    uintptr_t at = (uintptr_t)info->si_addr;
    return info->si_signo == SIGSEGV && info->si_code > 0 && top > 4096 && at > top - 65536 &&
           at < top + 65536;
}

// Only the first to come has the word; the others wait for the process to end.
static void claim(crash_state *s)
{
    if (!atomic_exchange_explicit(&s->claimed, true, memory_order_acq_rel))
        return;
    for (;;)
        pause_ms(100);
}

static void speak(crash_state *s)
{
    write_line(s, &s->words);
    sem_post(&s->wanted);
    // The teller's release: not that anything is read, but it is over.
    for (int i = 0; i < LEATI_CRASH_WAIT_MS; i++) {
        if (atomic_load_explicit(&s->told, memory_order_acquire))
            return;
        pause_ms(1);
    }
}

static crash_state *state_of_this_process(void)
{
    // Pairs with the release in install.
    crash_state *s = atomic_load_explicit(&current, memory_order_acquire);
    return s && s->pid == getpid() ? s : NULL;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    crash_state *s = state_of_this_process();
    if (s) {
        claim(s);
        put(s->words.text, sizeof s->words.text, "signal ");
        put_number(s->words.text, sizeof s->words.text, (unsigned)number);
        put(s->words.text, sizeof s->words.text, " (");
        put(s->words.text, sizeof s->words.text, signal_name(number));
        put(s->words.text, sizeof s->words.text, ")");
        find_place(s, context, &s->words);
        if (is_overflow(info, context))
            put(s->words.text, sizeof s->words.text, ": its stack has overflowed");
        speak(s);
    }
    // It is blocked here: the process dies of it when this returns, with the stack as it was.
    sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    raise(number);
}

// Runs when somebody has called exit, which is not for user code to do.
static void on_exit_called(void)
{
    crash_state *s = state_of_this_process();
    if (!s)
        return;
    claim(s);
    put(s->words.text, sizeof s->words.text, "a call of exit()");
    find_place(s, NULL, &s->words);
    speak(s);
    _exit(STATUS);
}

noreturn void leati_crash_give_up(const leati_last_words *words)
{
    crash_state *s = state_of_this_process();
    if (s) {
        claim(s);
        s->words = *words;
        speak(s);
    }
    _exit(STATUS);
}

// --- the thread that tells ---

static void *teller_main(void *arg)
{
    crash_state *s = arg;
    while (sem_wait(&s->wanted))
        ;
    if (atomic_load_explicit(&s->leaving, memory_order_acquire))
        return NULL;
    s->tell(s->user, &s->words);
    // What was sent is on its way when the connection's writer has had its turn.
    pause_ms(FLUSH_MS);
    atomic_store_explicit(&s->told, true, memory_order_release);
    return NULL;
}

// --- coming and going ---

// The log, unless standard error goes there too.
static int open_log(const char *path)
{
    struct stat log, error;
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY) : -1;
    if (fd >= 0 && fstat(fd, &log) == 0 && fstat(STDERR_FILENO, &error) == 0 &&
        log.st_dev == error.st_dev && log.st_ino == error.st_ino) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void free_state(crash_state *s)
{
    if (s->log_fd >= 0)
        close(s->log_fd);
    sem_destroy(&s->wanted);
    leati_free(s->allocator, s);
}

leat_err leati_crash_install(const leat_allocator *allocator, const char *log_path,
                             void (*tell)(void *user, const leati_last_words *words), void *user)
{
    if (atomic_load_explicit(&current, memory_order_acquire))
        return LEAT_EEXIST;
    crash_state *s = leati_calloc(allocator, 1, sizeof *s);
    if (!s)
        return LEAT_ENOMEM;
    s->allocator = allocator;
    s->pid = getpid();
    s->log_fd = open_log(log_path);
    s->tell = tell;
    s->user = user;
    sem_init(&s->wanted, 0, 0);
    leat_err err = atexit(on_exit_called)
                       ? LEAT_ENOMEM
                       : leati_thread_start(&s->teller, "leat-crash", teller_main, s);
    if (err) {
        free_state(s);
        return err;
    }
    atomic_store_explicit(&current, s, memory_order_release);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < CAUGHT; i++)
        sigaction(caught[i], &action, &s->before[i]);
    return LEAT_OK;
}

void leati_crash_remove(void)
{
    crash_state *s = atomic_load_explicit(&current, memory_order_acquire);
    if (!s)
        return;
    for (int i = 0; i < CAUGHT; i++)
        sigaction(caught[i], &s->before[i], NULL);
    atomic_store_explicit(&current, NULL, memory_order_release);
    atomic_store_explicit(&s->leaving, true, memory_order_release);
    sem_post(&s->wanted);
    pthread_join(s->teller, NULL);
    free_state(s);
}

void leati_crash_enter(uint64_t attempt, const char *what)
{
    crash_state *s = atomic_load_explicit(&current, memory_order_acquire);
    for (int i = 0; s && i < PLACES; i++) {
        int none = 0;
        if (!atomic_compare_exchange_strong_explicit(&s->places[i].tid, &none, gettid(),
                                                     memory_order_acq_rel, memory_order_relaxed))
            continue;
        s->places[i].attempt = attempt;
        s->places[i].what = what;
        return;
    }
}

void leati_crash_leave(void)
{
    crash_state *s = atomic_load_explicit(&current, memory_order_acquire);
    place *own = s ? (place *)own_place(s) : NULL;
    // The next one to take the place has seen that this one has left it.
    if (own)
        atomic_store_explicit(&own->tid, 0, memory_order_release);
}
