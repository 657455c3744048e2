// SPDX-License-Identifier: Apache-2.0
// What the print sinks of a job wrote: the newest of it, in a file that is used as a ring.
//
// Byte N of all that was printed lies at N modulo the ring's size. Who appends first gives up the
// bytes that it is about to overwrite (output_first), then writes without the manager's lock, then
// publishes (output_end): a reader, who holds the lock, never sees bytes that are being written.
//
// While a client waits for the job, TAKEN is held back so that nothing it has not got is
// overwritten. It need not be known whose the unread bytes are: if U bytes are unread, at most U of
// any worker's are, so all but its last U are safe. A worker that is told so has at most a window
// minus U more to send; hence a ring of a window for each worker is enough.
//
// Lines of several workers are not mixed: the beginning of a line waits for its end. A line too
// long for that has the output to itself from its beginning to its end; what the others print is
// kept meanwhile, a window of each at most, as none of it is acknowledged.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "cluster/manager/manager_impl.h"

// A worker is told once it has so much more room: not for every line.
enum { TELL_FROM = LEATI_OUTPUT_WINDOW / 8, LINE_MOST = LEATI_OUTPUT_WINDOW / 2 };

void leati_output_path(const leati_managed_job *job, char *path)
{
    snprintf(path, LEATI_PATH_SIZE, "%s/outputs/%s", job->manager->state_folder, job->id);
}

static int open_output(const leati_managed_job *job, int flags)
{
    char path[LEATI_PATH_SIZE];
    leati_output_path(job, path);
    return open(path, flags | O_CLOEXEC, 0600);
}

void leati_output_close(leati_managed_job *job)
{
    if (job->output_fd < 0 || job->users > 0 || !leati_phase_is_final(job->phase))
        return;
    (void)close(job->output_fd);
    job->output_fd = -1;
}

// --- acknowledging ---

void leati_managed_take_output(leati_manager *manager, leati_managed_job *job)
{
    uint64_t unread = job->attached ? job->output_end - job->output_read : 0;
    for (uint32_t i = 0; i < job->participant_count; i++) {
        leati_participant *p = &job->participants[i];
        uint64_t held = unread + p->line_size;
        uint64_t safe = p->output_seen > held ? p->output_seen - held : 0;
        if (!p->member || p->concluded || safe < p->output_taken + TELL_FROM)
            continue;
        leati_msg_output taken = {.attempt = job->attempt, .offset = safe};
        if (leati_member_tell(p->member, LEATI_MESSAGE_TAKEN, LEAT_TYPE(leati_msg_output),
                              &taken) == LEAT_OK)
            p->output_taken = safe;
    }
}

void leati_job_output_read(leati_manager *manager, leati_managed_job *job, uint64_t offset)
{
    if (offset > job->output_end)
        offset = job->output_end;
    if (offset > job->output_read)
        job->output_read = offset;
    job->attached_seen_ns = leati_clock_ns();
    job->attached = !leati_phase_is_final(job->phase);
    leati_managed_take_output(manager, job);
}

int64_t leati_manager_attached_check(leati_manager *manager, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;
    for (leati_managed_job *job = manager->jobs; job; job = job->next) {
        if (!job->attached || leati_phase_is_final(job->phase))
            continue;
        int64_t gone_ns = job->attached_seen_ns + LEATI_ATTACHED_GONE_MS * INT64_C(1000000);
        if (now_ns >= gone_ns) {
            leati_managed_log(manager, job, LEAT_LOG_INFO, "nobody waits for its output any more");
            job->attached = false;
            leati_managed_take_output(manager, job);
        } else if (gone_ns < next_ns) {
            next_ns = gone_ns;
        }
    }
    return next_ns;
}

// --- appending ---

static bool write_at(int fd, const uint8_t *bytes, size_t size, uint64_t offset)
{
    while (size > 0) {
        ssize_t wrote = pwrite(fd, bytes, size, (off_t)offset);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        bytes += wrote;
        size -= (size_t)wrote;
        offset += (uint64_t)wrote;
    }
    return true;
}

// At most a ring's worth of bytes from `at` on, as two runs.
static bool write_ring(int fd, const leat_bytes *bytes, uint64_t at, uint64_t ring)
{
    uint64_t start = at % ring;
    size_t first = bytes->size < ring - start ? bytes->size : (size_t)(ring - start);
    return write_at(fd, bytes->data, first, start) &&
           write_at(fd, bytes->data + first, bytes->size - first, 0);
}

// With the lock held, which is given up while the bytes are written.
static void append(leati_manager *manager, leati_managed_job *job, leat_bytes bytes)
{
    uint64_t end = job->output_end + bytes.size, ring = job->output_size_max;
    if (bytes.size == 0)
        return;
    if (bytes.size > ring) { // only its last bytes will be there
        bytes.data += bytes.size - ring;
        bytes.size = ring;
    }
    if (end > ring && job->output_first < end - ring)
        job->output_first = end - ring;
    int fd = job->output_fd;
    pthread_mutex_unlock(&manager->lock);
    if (fd < 0)
        fd = open_output(job, O_RDWR | O_CREAT);
    bool written = fd >= 0 && write_ring(fd, &bytes, end - bytes.size, ring);
    int error = errno;
    pthread_mutex_lock(&manager->lock);
    job->output_fd = fd;
    if (written) {
        job->output_end = end;
        return;
    }
    // What is in the file between the two ends may be torn.
    job->output_first = job->output_end;
    char text[160];
    snprintf(text, sizeof text, "the output of the job cannot be kept: %s", strerror(error));
    leati_managed_fail(
        manager, job,
        &(leati_job_fault){.vertex = UINT32_MAX, .subtask = UINT32_MAX, .text = text});
}

// Nothing more of it will be printed.
static bool is_silent(const leati_participant *p)
{
    return p->line_over || p->concluded || !p->member;
}

// Not while another one is in the middle of a line.
static bool may_append(const leati_managed_job *job, uint32_t from)
{
    uint32_t writer = job->line_writer;
    return writer == 0 || writer == from + 1 || is_silent(&job->participants[writer - 1]);
}

// Takes note of who is in the middle of a line then. One that was cut off is ended first.
static void append_of(leati_manager *manager, leati_managed_job *job, uint32_t from,
                      leat_bytes bytes)
{
    if (bytes.size == 0)
        return;
    if (job->line_writer && job->line_writer != from + 1)
        append(manager, job, (leat_bytes){(const uint8_t *)"\n", 1});
    job->line_writer = bytes.data[bytes.size - 1] == '\n' ? 0 : from + 1;
    append(manager, job, bytes);
}

// The first bytes of what waits.
static void append_kept(leati_manager *manager, leati_managed_job *job, uint32_t from, size_t size)
{
    leati_participant *p = &job->participants[from];
    append_of(manager, job, from, (leat_bytes){(const uint8_t *)p->line, size});
    p->line_size -= size;
    if (p->line_size)
        memmove(p->line, p->line + size, p->line_size);
}

// False: there is no memory for it, or the worker has sent more than it may.
static bool keep(leati_manager *manager, leati_participant *p, const uint8_t *bytes, size_t size)
{
    if (p->line_size + size > LEATI_OUTPUT_WINDOW)
        return false;
    char *line = leati_realloc(manager->allocator, p->line, p->line_size + size);
    if (!line)
        return false;
    memcpy(line + p->line_size, bytes, size);
    p->line = line;
    p->line_size += size;
    return true;
}

static void append_lines(leati_manager *manager, leati_managed_job *job, uint32_t from,
                         leat_bytes bytes)
{
    leati_participant *p = &job->participants[from];
    bool may = may_append(job, from);
    const uint8_t *last = may ? memrchr(bytes.data, '\n', bytes.size) : NULL;
    size_t whole = last ? (size_t)(last - bytes.data) + 1 : 0;
    if (whole) {
        append_kept(manager, job, from, p->line_size);
        append_of(manager, job, from, (leat_bytes){bytes.data, whole});
    }
    size_t rest = bytes.size - whole;
    bool goes_on = job->line_writer == from + 1;
    if (rest == 0 || (!goes_on && keep(manager, p, bytes.data + whole, rest)))
        return;
    append_kept(manager, job, from, p->line_size);
    append_of(manager, job, from, (leat_bytes){bytes.data + whole, rest});
}

// Appends what need not wait any more.
static void settle(leati_manager *manager, leati_managed_job *job)
{
    for (uint32_t i = 0; i < job->participant_count; i++) {
        leati_participant *p = &job->participants[i];
        if (p->line_size == 0 || !may_append(job, i))
            continue;
        const char *last = memrchr(p->line, '\n', p->line_size);
        size_t whole = last ? (size_t)(last - p->line) + 1 : 0;
        bool all = p->line_over || p->line_size - whole > LINE_MOST;
        append_kept(manager, job, i, all ? p->line_size : whole);
    }
}

// What was printed to standard error is no output of the job: it goes to its log, line by line.
static void log_lines(leati_manager *manager, leati_managed_job *job, const char *worker,
                      const leat_bytes *bytes)
{
    const char *at = (const char *)bytes->data, *end = at + bytes->size;
    while (at < end) {
        char line[1024];
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        int length = (int)((stop ? stop : end) - at);
        snprintf(line, sizeof line, "%.*s", length, at);
        leati_managed_log_at(manager, job, LEAT_LOG_INFO, leati_now_ms(), worker, line);
        at = stop ? stop + 1 : end;
    }
}

static leati_managed_job *find_sender(leati_manager *manager, const leati_member *member,
                                      uint64_t attempt, uint32_t *from)
{
    leati_managed_job *job = leati_managed_by_attempt(manager, attempt);
    *from = job ? leati_managed_participant(job, member) : UINT32_MAX;
    return *from == UINT32_MAX || leati_phase_is_final(job->phase) ? NULL : job;
}

// Locks for a thread that is about to append; NULL, and nothing is locked, when there is nothing to
// append to.
static leati_managed_job *begin(leati_manager *manager, leati_peer *peer, uint64_t attempt,
                                uint32_t *from)
{
    pthread_mutex_lock(&manager->lock);
    leati_managed_job *job = find_sender(manager, peer->member, attempt, from);
    if (job)
        job->users++;
    pthread_mutex_unlock(&manager->lock);
    if (!job)
        return NULL;
    pthread_mutex_lock(&job->output_lock); // of the two the outer one
    pthread_mutex_lock(&manager->lock);
    return job;
}

static void end(leati_manager *manager, leati_managed_job *job)
{
    leati_managed_take_output(manager, job);
    pthread_cond_broadcast(&manager->changed);
    pthread_mutex_unlock(&manager->lock);
    pthread_mutex_unlock(&job->output_lock);
    pthread_mutex_lock(&manager->lock);
    job->users--; // from here on it may be gone
    leati_output_close(job);
    pthread_mutex_unlock(&manager->lock);
}

void leati_manager_output(leati_manager *manager, leati_peer *peer, const leati_msg_output *output)
{
    uint32_t from;
    leati_managed_job *job = begin(manager, peer, output->attempt, &from);
    if (!job)
        return;
    leati_participant *p = &job->participants[from];
    if (peer->member)
        peer->member->heard_ns = leati_clock_ns();
    if (output->fd == STDERR_FILENO)
        log_lines(manager, job, p->name, &output->bytes);
    else if (!leati_phase_is_final(job->phase) && output->bytes.size)
        append_lines(manager, job, from, output->bytes);
    p->output_seen = output->offset + output->bytes.size;
    settle(manager, job);
    end(manager, job);
}

void leati_manager_output_over(leati_manager *manager, leati_peer *peer, uint64_t attempt)
{
    uint32_t from;
    leati_managed_job *job = begin(manager, peer, attempt, &from);
    if (!job)
        return;
    job->participants[from].line_over = true;
    settle(manager, job);
    end(manager, job);
}

// --- reading ---

static bool read_at(int fd, uint8_t *to, size_t size, uint64_t offset)
{
    while (size > 0) {
        ssize_t got = pread(fd, to, size, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        size -= (size_t)got;
        offset += (uint64_t)got;
    }
    return true;
}

size_t leati_job_output(leati_managed_job *job, uint64_t offset, void *to, size_t size,
                        uint64_t *first)
{
    uint64_t ring = job->output_size_max;
    if (offset < job->output_first)
        offset = job->output_first;
    *first = offset;
    if (offset >= job->output_end || ring == 0)
        return 0;
    if (size > job->output_end - offset)
        size = (size_t)(job->output_end - offset);
    int fd = job->output_fd >= 0 ? job->output_fd : open_output(job, O_RDONLY);
    uint64_t start = offset % ring;
    size_t part = size < ring - start ? size : (size_t)(ring - start);
    bool good = fd >= 0 && read_at(fd, to, part, start) &&
                read_at(fd, (uint8_t *)to + part, size - part, 0);
    if (fd >= 0 && fd != job->output_fd)
        (void)close(fd);
    return good ? size : 0;
}
