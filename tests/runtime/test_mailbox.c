// SPDX-License-Identifier: Apache-2.0
#include "runtime/mailbox.h"

#include <criterion/criterion.h>
#include <string.h>

// A mail that writes its letter down when it runs, in capitals when it is discarded.
typedef struct letter {
    leati_mail mail; // first
    leati_mailbox *box;
    char name;
    int post_again; // so many times, from inside
    bool yields;    // runs one more mail of at least its own priority, from inside
} letter;

static char trace[256];

static void note(char c)
{
    size_t length = strlen(trace);
    if (length + 1 < sizeof trace)
        trace[length] = c;
}

static void run_letter(leati_mail *mail)
{
    letter *l = (letter *)mail;
    note(l->name);
    if (l->yields) {
        l->yields = false;
        leati_mailbox_run_one(l->box, mail->priority);
        note('.');
    }
    if (l->post_again-- > 0)
        cr_assert(leati_mailbox_post(l->box, mail, false) == LEAT_OK);
}

static void discard_letter(leati_mail *mail)
{
    note((char)(((letter *)mail)->name - 'a' + 'A'));
}

enum { LETTERS = 6 };
static leati_mailbox box;
static letter letters[LETTERS];

static void set_up(void)
{
    memset(trace, 0, sizeof trace);
    leati_mailbox_init(&box);
    for (int i = 0; i < LETTERS; i++)
        letters[i] = (letter){.mail = {.run = run_letter, .discard = discard_letter},
                              .box = &box,
                              .name = (char)('a' + i)};
}

static void tear_down(void)
{
    leati_mailbox_close(&box);
    leati_mailbox_fini(&box);
}

static void post(int i, bool urgent)
{
    cr_assert(leati_mailbox_post(&box, &letters[i].mail, urgent) == LEAT_OK);
}

TestSuite(mailbox, .init = set_up, .fini = tear_down, .timeout = 60);

Test(mailbox, an_empty_box_has_nothing_to_run)
{
    cr_assert(!leati_mailbox_has_mail(&box));
    cr_assert(leati_mailbox_run_batch(&box) == 0);
    cr_assert(!leati_mailbox_run_one(&box, INT32_MIN));
}

Test(mailbox, mails_run_first_in_first_out_and_urgent_ones_before_them)
{
    post(0, false);
    post(1, false);
    post(2, true);
    post(3, true);
    post(4, false);
    cr_assert(leati_mailbox_has_mail(&box));
    cr_assert(leati_mailbox_run_batch(&box) == 5);
    cr_assert_str_eq(trace, "dcabe");
    cr_assert(!leati_mailbox_has_mail(&box));
}

Test(mailbox, an_urgent_mail_in_an_empty_box_is_followed_by_later_ones)
{
    post(0, true);
    post(1, false);
    cr_assert(leati_mailbox_run_batch(&box) == 2);
    cr_assert_str_eq(trace, "ab");
}

Test(mailbox, a_mail_that_posts_itself_runs_once_a_batch)
{
    letters[0].post_again = 3;
    post(0, false);
    post(1, false);
    cr_assert(leati_mailbox_run_batch(&box) == 2);
    cr_assert_str_eq(trace, "ab");
    for (int i = 0; i < 3; i++)
        cr_assert(leati_mailbox_run_batch(&box) == 1);
    cr_assert_str_eq(trace, "abaaa");
    cr_assert(leati_mailbox_run_batch(&box) == 0);
}

Test(mailbox, a_yield_takes_the_first_mail_of_at_least_that_priority)
{
    const int32_t priorities[] = {LEATI_MAIL_TASK_PRIORITY, 0, 3, 2, 3};
    for (int i = 0; i < 5; i++) {
        letters[i].mail.priority = priorities[i];
        post(i, false);
    }
    cr_assert(leati_mailbox_run_one(&box, 3));
    cr_assert_str_eq(trace, "c");
    cr_assert(leati_mailbox_run_one(&box, 2));
    cr_assert_str_eq(trace, "cd");
    cr_assert(leati_mailbox_run_one(&box, 1));
    cr_assert_str_eq(trace, "cde");
    cr_assert(!leati_mailbox_run_one(&box, 1));
    // The task's own mails never run inside a yield.
    cr_assert(leati_mailbox_run_one(&box, 0));
    cr_assert(!leati_mailbox_run_one(&box, 0));
    cr_assert_str_eq(trace, "cdeb");
    // What was taken from the end leaves a box that still takes mail at its end.
    post(5, false);
    cr_assert(leati_mailbox_run_batch(&box) == 2);
    cr_assert_str_eq(trace, "cdebaf");
}

Test(mailbox, a_batch_whose_mails_yield_ends_with_the_last_of_them)
{
    letters[0].yields = true;
    post(0, false);
    post(1, false);
    // a yields, which runs b; one mail is left of the two that the batch was to have.
    cr_assert(leati_mailbox_run_batch(&box) == 1);
    cr_assert_str_eq(trace, "ab.");
}

Test(mailbox, a_quiesced_box_refuses_mail_and_runs_what_it_has)
{
    post(0, false);
    leati_mailbox_quiesce(&box);
    cr_assert(leati_mailbox_post(&box, &letters[1].mail, false) == LEAT_ECLOSED);
    cr_assert(leati_mailbox_post(&box, &letters[1].mail, true) == LEAT_ECLOSED);
    cr_assert(leati_mailbox_run_batch(&box) == 1);
    cr_assert_str_eq(trace, "a");
    cr_assert(!leati_mailbox_has_mail(&box));
}

Test(mailbox, a_closed_box_has_discarded_what_it_had_and_refuses_mail)
{
    post(0, false);
    letters[1].mail.discard = NULL;
    post(1, false);
    post(2, true);
    leati_mailbox_close(&box);
    cr_assert_str_eq(trace, "CA");
    cr_assert(!leati_mailbox_has_mail(&box));
    cr_assert(leati_mailbox_post(&box, &letters[3].mail, false) == LEAT_ECLOSED);
    cr_assert(leati_mailbox_run_batch(&box) == 0);
    cr_assert(!leati_mailbox_run_one(&box, INT32_MIN));
    // Quiescing a closed box does not open it; closing twice is allowed.
    leati_mailbox_quiesce(&box);
    cr_assert(leati_mailbox_post(&box, &letters[3].mail, false) == LEAT_ECLOSED);
    leati_mailbox_close(&box);
    cr_assert_str_eq(trace, "CA");
}

Test(mailbox, a_box_that_was_quiesced_can_be_closed)
{
    post(0, false);
    leati_mailbox_quiesce(&box);
    leati_mailbox_close(&box);
    cr_assert_str_eq(trace, "A");
}

// --- many posters ---

enum { POSTERS = 4, POSTS = 20000 };

typedef struct counted {
    leati_mail mail; // first
    uint32_t poster, sequence;
} counted;

static uint32_t next_of[POSTERS];

static void run_counted(leati_mail *mail)
{
    counted *c = (counted *)mail;
    // The mails of one poster keep their order.
    cr_assert(c->sequence == next_of[c->poster]);
    next_of[c->poster]++;
}

static void *post_many(void *arg)
{
    counted *mails = arg;
    for (uint32_t i = 0; i < POSTS; i++)
        if (leati_mailbox_post(&box, &mails[i].mail, false) != LEAT_OK)
            return arg;
    return NULL;
}

Test(mailbox, what_many_threads_post_all_runs_once_and_in_the_order_of_each)
{
    static counted mails[POSTERS][POSTS];
    pthread_t threads[POSTERS];
    for (uint32_t p = 0; p < POSTERS; p++)
        for (uint32_t i = 0; i < POSTS; i++)
            mails[p][i] = (counted){.mail = {.run = run_counted}, .poster = p, .sequence = i};
    for (int p = 0; p < POSTERS; p++)
        cr_assert(pthread_create(&threads[p], NULL, post_many, mails[p]) == 0);
    uint64_t ran = 0;
    while (ran < (uint64_t)POSTERS * POSTS)
        ran += leati_mailbox_run_batch(&box);
    for (int p = 0; p < POSTERS; p++) {
        void *refused;
        pthread_join(threads[p], &refused);
        cr_assert_null(refused);
        cr_assert(next_of[p] == POSTS);
    }
    cr_assert(!leati_mailbox_has_mail(&box));
}
