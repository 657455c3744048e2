// SPDX-License-Identifier: Apache-2.0
// The figures that the job manager has, one by one under Flink's names, for the pages that show
// them.
#ifndef LEATI_CLUSTER_MANAGER_METRICS_H
#define LEATI_CLUSTER_MANAGER_METRICS_H

#include "cluster/manager/view.h"

typedef enum leati_metric_form { LEATI_METRIC_TOTAL, LEATI_METRIC_LEVEL } leati_metric_form;

// One figure that every task has.
typedef struct leati_task_metric {
    const char *name;       // "numRecordsIn"
    const char *prometheus; // "leat_task_records_in_total"
    const char *help;
    leati_metric_form form; // a total only grows
    double (*read)(const leati_task_view *task, const leati_rates *rates);
} leati_task_metric;

// Ends with a NULL name.
extern const leati_task_metric leati_task_metrics[];

// One number of a user's metric, which of a meter or histogram has several.
typedef struct leati_user_metric {
    const leati_msg_metric *metric;
    uint32_t vertex;    // UINT32_MAX: none of the graph's
    const char *suffix; // "", "_count", "_p99" …
    double value;
} leati_user_metric;

// Calls `fn` for each number that the newest reports of the job's participants hold.
void leati_each_user_metric(const leati_managed_job *job,
                            void (*fn)(void *user, const leati_user_metric *metric), void *user);

// Of this process.
typedef struct leati_process_figures {
    uint64_t resident_bytes;
    double cpu_seconds;
    uint32_t threads, files;
} leati_process_figures;
void leati_process_figures_read(leati_process_figures *figures); // reads /proc: without the lock

#endif
