// SPDX-License-Identifier: Apache-2.0
#include "runtime/alarm.h"

#include <stddef.h>

static bool comes_before(const leati_alarm *a, const leati_alarm *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

// Makes one heap of two, whose roots have no siblings.
static leati_alarm *meld(leati_alarm *a, leati_alarm *b)
{
    if (!a || !b)
        return a ? a : b;
    if (comes_before(b, a)) {
        leati_alarm *first = b;
        b = a;
        a = first;
    }
    b->previous = a;
    b->next = a->child;
    if (b->next)
        b->next->previous = b;
    a->child = b;
    return a;
}

static leati_alarm *take_head(leati_alarm **list)
{
    leati_alarm *head = *list;
    if (head) {
        *list = head->next;
        head->next = head->previous = NULL;
    }
    return head;
}

// Makes one heap of siblings: in pairs from the first to the last, then all from the last to the
// first. In this order the cost of taking one out grows with the logarithm of their number.
static leati_alarm *meld_siblings(leati_alarm *list)
{
    leati_alarm *pairs = NULL;
    while (list) {
        leati_alarm *a = take_head(&list), *b = take_head(&list);
        a = meld(a, b);
        a->next = pairs;
        pairs = a;
    }
    leati_alarm *whole = NULL;
    while (pairs)
        whole = meld(whole, take_head(&pairs));
    return whole;
}

void leati_alarms_set(leati_alarms *alarms, leati_alarm *alarm, int64_t time_ns)
{
    leati_alarms_clear(alarms, alarm);
    alarm->time_ns = time_ns;
    alarm->order = alarms->count++;
    alarm->is_set = true;
    alarms->first = meld(alarms->first, alarm);
}

void leati_alarms_clear(leati_alarms *alarms, leati_alarm *alarm)
{
    if (!alarm->is_set)
        return;
    leati_alarm *rest = meld_siblings(alarm->child);
    if (alarm == alarms->first) {
        alarms->first = rest;
    } else {
        if (alarm->previous->child == alarm)
            alarm->previous->child = alarm->next;
        else
            alarm->previous->next = alarm->next;
        if (alarm->next)
            alarm->next->previous = alarm->previous;
        alarms->first = meld(alarms->first, rest);
    }
    alarm->child = alarm->next = alarm->previous = NULL;
    alarm->is_set = false;
}

leati_alarm *leati_alarms_take_due(leati_alarms *alarms, int64_t now_ns)
{
    leati_alarm *first = alarms->first;
    if (!first || first->time_ns > now_ns)
        return NULL;
    leati_alarms_clear(alarms, first);
    return first;
}
