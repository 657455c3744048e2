// SPDX-License-Identifier: Apache-2.0
#include "runtime/mailbox.h"

#include <assert.h>
#include <stddef.h>

void leati_mailbox_init(leati_mailbox *box)
{
    pthread_mutex_init(&box->lock, NULL);
    box->head = box->tail = NULL;
    box->state = LEATI_MAILBOX_OPEN;
    atomic_init(&box->count, 0);
}

void leati_mailbox_fini(leati_mailbox *box)
{
    assert(!box->head);
    pthread_mutex_destroy(&box->lock);
}

static void add_to_count(leati_mailbox *box, uint32_t difference)
{
    uint32_t count = atomic_load_explicit(&box->count, memory_order_relaxed);
    atomic_store_explicit(&box->count, count + difference, memory_order_release);
}

leat_err leati_mailbox_post(leati_mailbox *box, leati_mail *mail, bool urgent)
{
    pthread_mutex_lock(&box->lock);
    if (box->state != LEATI_MAILBOX_OPEN) {
        pthread_mutex_unlock(&box->lock);
        return LEAT_ECLOSED;
    }
    mail->next = urgent ? box->head : NULL;
    if (!box->head)
        box->head = box->tail = mail;
    else if (urgent)
        box->head = mail;
    else
        box->tail = box->tail->next = mail;
    add_to_count(box, 1);
    pthread_mutex_unlock(&box->lock);
    return LEAT_OK;
}

// Takes the first mail of at least that priority off the list.
static leati_mail *take(leati_mailbox *box, int32_t priority)
{
    pthread_mutex_lock(&box->lock);
    leati_mail *before = NULL, *mail = box->head;
    while (mail && mail->priority < priority) {
        before = mail;
        mail = mail->next;
    }
    if (mail) {
        if (before)
            before->next = mail->next;
        else
            box->head = mail->next;
        if (box->tail == mail)
            box->tail = before;
        add_to_count(box, (uint32_t)-1);
    }
    pthread_mutex_unlock(&box->lock);
    return mail;
}

uint32_t leati_mailbox_run_batch(leati_mailbox *box)
{
    uint32_t count = atomic_load_explicit(&box->count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        // A mail may yield and so run others of the batch before their turn.
        leati_mail *mail = take(box, INT32_MIN);
        if (!mail)
            return i;
        mail->run(mail);
    }
    return count;
}

bool leati_mailbox_run_one(leati_mailbox *box, int32_t priority)
{
    if (!leati_mailbox_has_mail(box))
        return false;
    leati_mail *mail = take(box, priority);
    if (!mail)
        return false;
    mail->run(mail);
    return true;
}

void leati_mailbox_quiesce(leati_mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    if (box->state == LEATI_MAILBOX_OPEN)
        box->state = LEATI_MAILBOX_QUIESCED;
    pthread_mutex_unlock(&box->lock);
}

void leati_mailbox_close(leati_mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    box->state = LEATI_MAILBOX_CLOSED;
    pthread_mutex_unlock(&box->lock);
    for (leati_mail *mail; (mail = take(box, INT32_MIN));)
        if (mail->discard)
            mail->discard(mail);
}
