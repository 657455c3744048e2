// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/watchdog.h"

#include <stdio.h>
#include <string.h>

#include "cluster/worker/crash.h"

static bool is_stuck(const leat_task_stats *stats)
{
    return strcmp(stats->state, "FINISHED") != 0 && strcmp(stats->state, "FAILED") != 0 &&
           strcmp(stats->state, "CANCELED") != 0;
}

// The first task that runs still. Without a job it is the job function, or a constructor.
static void name_stuck_locked(const leati_attempt *a, int64_t limit_ms, leati_last_words *words)
{
    *words = (leati_last_words){.attempt = a->id, .vertex = UINT32_MAX, .subtask = UINT32_MAX};
    char who[300] = "the job function";
    uint32_t count = a->job ? leat_job_task_count(a->job) : 0;
    for (uint32_t i = 0; i < count; i++) {
        leat_task_stats stats;
        leati_wait wait;
        leat_job_task_stats(a->job, i, &stats);
        if (!is_stuck(&stats))
            continue;
        leati_job_task_wait(a->job, i, &wait);
        leati_job_task_place(a->job, i, &words->vertex, &words->subtask);
        snprintf(who, sizeof who, "task \"%.120s\" (%u/%u)%s%s", stats.name,
                 (unsigned)stats.subtask + 1, (unsigned)stats.parallelism, wait.text[0] ? ", " : "",
                 wait.text);
        break;
    }
    snprintf(words->text, sizeof words->text,
             "its own hand, as %s has not stopped within %lld ms of being cancelled "
             "(taskmanager.cancel-timeout)",
             who, (long long)limit_ms);
}

static bool watch_locked(leati_attempt *a, int64_t now, int64_t limit_ms, leati_last_words *words)
{
    if (!a->cancelled || a->over || (now - a->cancelled_ns) / 1000000 < limit_ms)
        return false;
    name_stuck_locked(a, limit_ms, words);
    return true;
}

void leati_watch_attempts(leati_taskmanager *tm, int64_t now)
{
    int64_t limit_ms = leati_config_get(&tm->options->config, LEATI_CONFIG_CANCEL_TIMEOUT);
    leati_last_words words;
    bool stuck = false;
    pthread_mutex_lock(&tm->lock);
    for (leati_attempt *a = tm->attempts; a && !stuck; a = a->next) {
        pthread_mutex_lock(&a->lock);
        stuck = watch_locked(a, now, limit_ms, &words);
        pthread_mutex_unlock(&a->lock);
    }
    pthread_mutex_unlock(&tm->lock);
    if (!stuck)
        return;
    leati_taskmanager_log(tm, LEAT_LOG_ERROR, "the task manager dies of %s", words.text);
    leati_crash_give_up(&words);
}
