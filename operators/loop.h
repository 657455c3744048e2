// SPDX-License-Identifier: Apache-2.0
// What the two ends of a feedback loop share: a lane for each subtask, on which records come back.
// The lanes end together: what comes back to one may be sent to another next time.
//
// Threading. The tail puts; the head takes and says how far its other input is. All under the
// lane's lock, but for what the head alone touches. Life cycle. Made by whichever end opens first,
// destroyed with the job. The head attaches itself and takes; it closes the lane once nothing has
// come back for the loop's time, and detaches itself (attach NULL) before it goes. Bounds. A lane
// holds at most `most_bytes`; what comes back beyond that is refused.
#ifndef LEATI_OPERATORS_LOOP_H
#define LEATI_OPERATORS_LOOP_H

#include <pthread.h>

#include "graph/stream_graph.h"
#include "leat/operator.h"
#include "operators/record_queue.h"

// Of the graph; how the ends know each other.
typedef struct leati_loop_config {
    leat_tag feedback;      // the side output for what comes back, if `typed`; always its type
    bool typed;             // what comes back is of another type
    int64_t max_wait_ms;    // 0: the loop never ends by itself
    const leati_node *head; // for its name, which may be given later
} leati_loop_config;

typedef struct leati_loop_lane {
    pthread_mutex_t lock;
    // Under the lock, as far as the queue says.
    leati_record_queue queue;
    leat_waker *waker; // of the head's task while that lives
    bool over;         // the loop has ended: nothing may come back any more
    struct leati_loop *loop;
} leati_loop_lane;

// The lane of this subtask. LEAT_ENOMEM, recorded.
LEAT_MUST_USE leat_err leati_loop_lane_of(leat_ctx *ctx, const leati_loop_config *config,
                                          leati_loop_lane **lane);
// The tail: LEAT_ESTATE when the loop is over, LEAT_ENOBUFS when the lane is full.
LEAT_MUST_USE leat_err leati_loop_put(leati_loop_lane *lane, const void *record, size_t most_bytes,
                                      bool *was_empty);
// The head. take: whether something came back. close: false when something did after all.
void leati_loop_attach(leati_loop_lane *lane, leat_waker *waker);
bool leati_loop_take(leati_loop_lane *lane);
size_t leati_loop_waiting(leati_loop_lane *lane); // bytes
bool leati_loop_close(leati_loop_lane *lane);
// The head: nothing will come to it from outside any more. The last one wakes all heads.
void leati_loop_outside_ended(leati_loop_lane *lane, int64_t now_ns);
// Something has moved on some lane at that time.
void leati_loop_moved(leati_loop_lane *lane, int64_t now_ns);
// Since when nothing has moved on any lane; INT64_MAX while something may come from outside.
int64_t leati_loop_quiet_since(leati_loop_lane *lane);

#endif
