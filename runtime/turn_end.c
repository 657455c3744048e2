// SPDX-License-Identifier: Apache-2.0
// What is put off to the end of a turn: of things that one call can do for many, such as telling
// another process of what has come together in the turn.
#include "runtime/scheduler_impl.h"

static bool is_put_off(const leati_thread *t, void (*fn)(void *arg), const void *arg)
{
    for (uint32_t i = 0; i < t->later_count; i++)
        if (t->later[i].fn == fn && t->later[i].arg == arg)
            return true;
    return false;
}

bool leati_turn_later(void (*fn)(void *arg), void *arg)
{
    leati_thread *t = leati_thread_self();
    if (!t || !t->in_turn)
        return false;
    if (is_put_off(t, fn, arg))
        return true;
    if (t->later_count == LEATI_LATER_MOST)
        return false;
    t->later[t->later_count++] = (leati_later){fn, arg};
    return true;
}

void leati_turn_begin(void)
{
    leati_thread *t = leati_thread_self();
    if (t)
        t->in_turn = true;
}

void leati_turn_end(void)
{
    leati_thread *t = leati_thread_self();
    if (!t)
        return;
    // Nothing is put off from here on, and so the list does not grow.
    t->in_turn = false;
    for (uint32_t i = 0; i < t->later_count; i++)
        t->later[i].fn(t->later[i].arg);
    t->later_count = 0;
}

void leati_turn_catch_up(void)
{
    leati_thread *t = leati_thread_self();
    if (!t || !t->in_turn)
        return;
    leati_turn_end();
    t->in_turn = true;
}
