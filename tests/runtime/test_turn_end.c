// SPDX-License-Identifier: Apache-2.0
// What is put off to the end of a turn.
#include <criterion/criterion.h>
#include <semaphore.h>
#include <string.h>

#include "runtime/scheduler.h"
#include "runtime/scheduler_impl.h"

// A runnable that puts letters off in each of its turns.
typedef struct writer {
    leati_runnable run; // first
    int turns;
    bool waits; // in the middle of the first turn, until the letters are written
    bool too_many;
    char written[64];
    sem_t ended;
} writer;

typedef struct letter {
    writer *to;
    char text;
} letter;

static letter letters[LEATI_LATER_MOST + 1];

static void write_letter(void *arg)
{
    letter *this = arg;
    char *at = this->to->written + strlen(this->to->written);
    *at = this->text;
    // What is brought up here is not put off again.
    cr_assert(!leati_turn_later(write_letter, this));
}

static void write_dot(void *arg)
{
    writer *self = arg;
    self->written[strlen(self->written)] = '.';
}

static bool are_written(void *arg)
{
    return strlen(((writer *)arg)->written) == 2;
}

static bool never(void *arg)
{
    return false;
}

static leati_turn turn(leati_runnable *run)
{
    writer *self = (writer *)run;
    size_t before = strlen(self->written);
    for (int again = 0; again < 3; again++)
        for (int i = 0; i < 2; i++)
            cr_assert(leati_turn_later(write_letter, &letters[i]));
    cr_assert_eq(strlen(self->written), before);
    if (self->waits) {
        self->waits = false;
        cr_assert_eq(leati_scheduler_wait(run, are_written, self, never, NULL), LEAT_OK);
        cr_assert(leati_turn_later(write_dot, self));
    }
    if (self->too_many) {
        for (int i = 2; i < LEATI_LATER_MOST; i++)
            cr_assert(leati_turn_later(write_letter, &letters[i]));
        cr_assert(!leati_turn_later(write_letter, &letters[LEATI_LATER_MOST]));
    }
    return ++self->turns == 2 ? LEATI_TURN_END : LEATI_TURN_AGAIN;
}

// By then everything is done.
static void ended(leati_runnable *run)
{
    writer *self = (writer *)run;
    cr_assert(!leati_turn_later(write_dot, self));
    sem_post(&self->ended);
}

static void run_writer(writer *self)
{
    leati_scheduler *scheduler;
    cr_assert(leati_scheduler_create(NULL, 1, &scheduler) == LEAT_OK);
    sem_init(&self->ended, 0, 0);
    for (int i = 0; i <= LEATI_LATER_MOST; i++)
        letters[i] = (letter){self, (char)('a' + i)};
    leati_runnable_init(&self->run, scheduler, 0, turn, ended);
    leati_runnable_wake(&self->run);
    while (sem_wait(&self->ended) != 0)
        ;
    leati_scheduler_destroy(&scheduler);
}

Test(turn_end, is_done_once_a_turn_in_the_order_in_which_it_came, .timeout = 60)
{
    static writer self;
    run_writer(&self);
    cr_assert_str_eq(self.written, "abab");
}

Test(turn_end, is_done_before_a_wait_in_the_middle, .timeout = 60)
{
    static writer self = {.waits = true};
    run_writer(&self);
    cr_assert_str_eq(self.written, "ab.ab");
}

Test(turn_end, has_room_for_some, .timeout = 60)
{
    static writer self = {.too_many = true};
    run_writer(&self);
    cr_assert_str_eq(self.written, "abcdefghabcdefgh");
}

Test(turn_end, is_no_time_outside_of_a_turn, .timeout = 60)
{
    static writer self;
    cr_assert(!leati_turn_later(write_dot, &self));
    leati_turn_catch_up();
    cr_assert_str_eq(self.written, "");
}
