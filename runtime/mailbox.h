// SPDX-License-Identifier: Apache-2.0
// The mailbox of a task: the one way in for everything foreign (timers, completions, triggers,
// requests to stop).
//
// Threading. Anyone posts; only the task's thread takes and runs. Whether mail is there is one
// atomic load.
//
// Life cycle. open → quiesced (nothing new is accepted, what is there may be drained) → closed
// (what is left is discarded).
//
// Bounds. Mails belong to their senders, who embed them in objects of their own; a mail is in at
// most one mailbox, so the box needs no memory and posting cannot fail but by the box's state.
#ifndef LEATI_RUNTIME_MAILBOX_H
#define LEATI_RUNTIME_MAILBOX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "leat/error.h"

typedef struct leati_mail leati_mail;
struct leati_mail {
    void (*run)(
        leati_mail *self); // on the task's thread; the mail may be posted again from here on
    void (*discard)(
        leati_mail *self); // instead of run, when the box is closed first; NULL: nothing
    int32_t priority; // position in the chain, growing downstream; below every operator for the
                      // task's own
    leati_mail *next; // in the box
};

// Mails of the task itself: never run inside a yield.
#define LEATI_MAIL_TASK_PRIORITY (-1)

typedef struct leati_mailbox {
    pthread_mutex_t lock;
    // Under the lock.
    leati_mail *head, *tail;
    enum { LEATI_MAILBOX_OPEN, LEATI_MAILBOX_QUIESCED, LEATI_MAILBOX_CLOSED } state;
    // Atomic, written under the lock.
    _Atomic uint32_t count;
} leati_mailbox;

void leati_mailbox_init(leati_mailbox *box);
void leati_mailbox_fini(leati_mailbox *box); // must be empty

// LEAT_ECLOSED when the box does not accept mail any more: the sender keeps the mail and must
// tolerate that. The caller wakes the task afterwards. `urgent` mail (control) goes to the front.
LEAT_MUST_USE leat_err leati_mailbox_post(leati_mailbox *box, leati_mail *mail, bool urgent);
static inline bool leati_mailbox_has_mail(leati_mailbox *box)
{
    return atomic_load_explicit(&box->count, memory_order_acquire) > 0;
}
// Runs the mails that are there now, first in first out; what they post waits for the next call.
// Returns how many ran.
uint32_t leati_mailbox_run_batch(leati_mailbox *box);
// Inside an operator that waits: runs the first mail whose priority is at least `priority`. False
// when there is none.
bool leati_mailbox_run_one(leati_mailbox *box, int32_t priority);
void leati_mailbox_quiesce(leati_mailbox *box);
// Discards what is left.
void leati_mailbox_close(leati_mailbox *box);

#endif
