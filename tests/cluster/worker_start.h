// SPDX-License-Identifier: Apache-2.0
// A task manager that is started for a test, and what tests look for.
#ifndef TESTS_CLUSTER_WORKER_START_H
#define TESTS_CLUSTER_WORKER_START_H

#include <dirent.h>

#include "tests/cluster/worker_testing.h"

#include "leat/metrics.h"
#include "runtime/placement.h"

// The job functions of tests/cluster/jobs, linked in for the client's half.
job_main leati_many_main, leati_brought_main;

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static fake f;
static job j;

UNUSED static void start(uint32_t workers, const char *setting)
{
    fake_init(&f);
    for (uint32_t i = 1; i <= workers; i++)
        worker_spawn(&f, i, setting);
    for (uint32_t i = 1; i <= workers; i++)
        wait_worker(&f, i, true);
}

UNUSED static void finish(void)
{
    job_fini(&j);
    fake_fini(&f);
}

UNUSED static bool is_empty(const char *folder)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", f.folder, folder);
    DIR *entries = opendir(path);
    cr_assert(entries != NULL);
    bool empty = true;
    for (struct dirent *entry; (entry = readdir(entries));)
        empty &= !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
    closedir(entries);
    return empty;
}

// All that is printed in an attempt, in the order in which it comes; of one task manager.
UNUSED static size_t all_output(uint64_t attempt, char *text, size_t size)
{
    size_t length = 0;
    for (said *s; (s = look_said(&f, LEATI_MESSAGE_OUTPUT, attempt)); free_said(s)) {
        const leati_msg_output *out = s->record;
        cr_assert(length + out->bytes.size < size);
        memcpy(text + length, out->bytes.data, out->bytes.size);
        length += out->bytes.size;
    }
    text[length] = '\0';
    return length;
}

UNUSED static int64_t accumulated(const leati_msg_over *over)
{
    leat_accumulators *all;
    leat_accumulator_value value = {0};
    const uint8_t *part = over->accumulators.data;
    size_t size = over->accumulators.size;
    cr_assert(leati_accumulators_decode(NULL, &part, &size, 1, &all) == LEAT_OK);
    bool found = leat_accumulators_find(all, "records", &value);
    leat_accumulators_destroy(&all);
    return found ? value.i64 : -1;
}

UNUSED static bool failed_with(uint64_t attempt, leat_err err, const char *part)
{
    said *s = wait_said(&f, LEATI_MESSAGE_FAILED, attempt);
    const leati_msg_failed *failed = s->record;
    bool good = failed->err == (uint32_t)err && contains(failed->text, part);
    if (!good)
        cr_log_error("%u: %.*s", (unsigned)failed->err, (int)failed->text.size, failed->text.data);
    free_said(s);
    return good;
}

UNUSED static void wait_stage(uint64_t attempt, const char *stage)
{
    for (bool found = false; !found;) {
        said *s = wait_said(&f, LEATI_MESSAGE_STAGE, attempt);
        found = contains(((leati_msg_stage *)s->record)->stage, stage);
        free_said(s);
    }
}

#endif
