// SPDX-License-Identifier: Apache-2.0
// Log lines: of the job manager, which its own thread writes, and of jobs, which are kept.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "base/utf8.h"
#include "cluster/manager/manager_impl.h"

enum { LINE_SIZE = 1600, QUEUE_MOST = 10000 };

typedef struct log_line {
    struct log_line *next;
    leat_log_level level;
    char text[];
} log_line;

struct leati_log_queue {
    leat_allocator allocator;
    pthread_mutex_t lock;
    log_line *first, **last;
    uint32_t count, dropped;
};

struct leati_log_queue *leati_log_queue_create(const leat_allocator *allocator)
{
    struct leati_log_queue *queue = leati_calloc(allocator, 1, sizeof *queue);
    if (!queue)
        return NULL;
    queue->allocator = *allocator;
    queue->last = &queue->first;
    pthread_mutex_init(&queue->lock, NULL);
    return queue;
}

void leati_log_queue_destroy(struct leati_log_queue **queue)
{
    struct leati_log_queue *gone = *queue;
    *queue = NULL;
    if (!gone)
        return;
    const leat_allocator allocator = gone->allocator;
    for (log_line *line = gone->first, *next; line; line = next) {
        next = line->next;
        leati_free(&allocator, line);
    }
    pthread_mutex_destroy(&gone->lock);
    leati_free(&allocator, gone);
}

static void put_line(struct leati_log_queue *queue, leat_log_level level, const char *text)
{
    size_t size = strlen(text) + 1;
    log_line *line = leati_alloc(&queue->allocator, sizeof *line + size);
    if (line) {
        *line = (log_line){.level = level};
        memcpy(line->text, text, size);
    }
    pthread_mutex_lock(&queue->lock);
    if (line && queue->count < QUEUE_MOST) {
        *queue->last = line;
        queue->last = &line->next;
        queue->count++;
        line = NULL;
    } else {
        queue->dropped++;
    }
    pthread_mutex_unlock(&queue->lock);
    leati_free(&queue->allocator, line);
}

void leati_manager_log(leati_manager *manager, leat_log_level level, const char *format, ...)
{
    if (!manager->options.logger.write || level > manager->options.logger.level)
        return;
    char text[LINE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    leati_text_clean(text);
    put_line(manager->log, level, text);
    leati_manager_kick(manager);
}

void leati_manager_tell_refused(leati_manager *manager, const char *why)
{
    uint32_t more;
    if (!leati_refusals_take(&manager->refusals, why, leati_clock_ns(), &more))
        return;
    leati_manager_log(manager, LEAT_LOG_WARN, "somebody who connected was refused: %s", why);
    if (more)
        leati_manager_log(manager, LEAT_LOG_WARN, "so were %u more from there", (unsigned)more);
}

void leati_manager_flush_log(leati_manager *manager)
{
    struct leati_log_queue *queue = manager->log;
    const leat_logger *logger = &manager->options.logger;
    pthread_mutex_lock(&queue->lock);
    log_line *line = queue->first;
    uint32_t dropped = queue->dropped;
    queue->first = NULL;
    queue->last = &queue->first;
    queue->count = queue->dropped = 0;
    pthread_mutex_unlock(&queue->lock);
    for (log_line *next; line; line = next) {
        next = line->next;
        if (logger->write)
            logger->write(logger->user, line->level, line->text);
        leati_free(&queue->allocator, line);
    }
    if (dropped && logger->write) {
        char text[64];
        snprintf(text, sizeof text, "%u lines of the log were dropped", dropped);
        logger->write(logger->user, LEAT_LOG_WARN, text);
    }
}

// --- of jobs ---

static const char *level_word(leat_log_level level)
{
    static const char *const words[] = {"ERROR", "WARN", "INFO", "DEBUG"};
    return level <= LEAT_LOG_DEBUG ? words[level] : "?";
}

void leati_managed_log_at(leati_manager *manager, leati_managed_job *job, leat_log_level level,
                          int64_t time_ms, const char *worker, const char *line)
{
    char text[LINE_SIZE];
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm utc;
    if (time_ms < 0 || !gmtime_r(&seconds, &utc))
        memset(&utc, 0, sizeof utc);
    size_t used = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text + used, sizeof text - used, ".%03dZ %-5s %s%s%s", (int)(time_ms % 1000),
             level_word(level), worker ? worker : "", worker ? ": " : "", line);
    leati_text_clean(text);
    char *kept = leati_strdup(manager->allocator, text);
    if (!kept)
        return;
    char **place = &job->log[job->log_count++ % LEATI_LOG_LINES_KEPT];
    leati_free(manager->allocator, *place);
    *place = kept;
}

void leati_managed_log(leati_manager *manager, leati_managed_job *job, leat_log_level level,
                       const char *format, ...)
{
    char text[LINE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    leati_managed_log_at(manager, job, level, leati_now_ms(), NULL, text);
    leati_manager_log(manager, level, "job %s (%s): %s", job->id, job->name, text);
}
