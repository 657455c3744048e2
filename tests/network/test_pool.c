// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

Test(pool, sizes_and_counts_that_cannot_be_are_refused)
{
    leati_global_pool *global;
    cr_assert(leati_global_pool_create(NULL, 63, 1, &global) == LEAT_EINVAL);
    cr_assert(leati_global_pool_create(NULL, (size_t)1 << 31, 1, &global) == LEAT_EINVAL);
    cr_assert(leati_global_pool_create(NULL, 64, 0, &global) == LEAT_EINVAL);
    global = make_global(100, 3);
    fake_task task = fake_task_make();
    leati_local_pool *local;
    leati_local_pool_options options = {.minimum = 0, .maximum = 4, .waiter = &task.waiter};
    cr_assert(leati_local_pool_create(global, &options, &local) == LEAT_EINVAL);
    options.minimum = 5;
    cr_assert(leati_local_pool_create(global, &options, &local) == LEAT_EINVAL);
    options.minimum = 1; // was never promised
    cr_assert(leati_local_pool_create(global, &options, &local) == LEAT_ENOBUFS);
    cr_assert(leati_global_pool_segment_size(global) == 100);
    leati_global_pool_destroy(&global);
    cr_assert(!global);
    leati_global_pool_destroy(&global);
}

Test(pool, segments_are_aligned_and_apart_and_have_headroom)
{
    enum { COUNT = 7, SIZE = 1000 };
    leati_global_pool *global = make_global(SIZE, COUNT);
    fake_task task = fake_task_make();
    leati_local_pool *local = make_local(global, &task, COUNT, COUNT, 0);
    leati_segment *segments[COUNT];
    for (int i = 0; i < COUNT; i++) {
        segments[i] = leati_local_pool_request(local, false);
        cr_assert(segments[i] && segments[i]->size == SIZE);
        cr_assert((uintptr_t)segments[i]->data % 64 == 0);
        cr_assert(atomic_load(&segments[i]->committed) == 0);
        memset(segments[i]->data - LEATI_SEGMENT_HEADROOM, i, SIZE + LEATI_SEGMENT_HEADROOM);
    }
    cr_assert(!leati_local_pool_request(local, true));
    for (int i = 0; i < COUNT; i++) {
        for (int at = -LEATI_SEGMENT_HEADROOM; at < SIZE; at++)
            cr_assert(segments[i]->data[at] == i);
        leati_segment_release(segments[i]);
    }
    end_local(&local);
    leati_global_pool_destroy(&global);
}

Test(pool, promises_are_all_or_nothing)
{
    leati_global_pool *global = make_global(64, 10);
    cr_assert(leati_global_pool_reserve(global, 6) == LEAT_OK);
    cr_assert(unreserved_of(global) == 4);
    cr_assert(leati_global_pool_reserve(global, 5) == LEAT_ENOBUFS);
    cr_assert(unreserved_of(global) == 4);
    cr_assert(leati_global_pool_reserve(global, 4) == LEAT_OK);
    cr_assert(unreserved_of(global) == 0);
    leati_global_pool_unreserve(global, 10);
    cr_assert(unreserved_of(global) == 10);
    leati_global_pool_destroy(&global);
}

Test(pool, the_surplus_is_shared_by_what_each_can_use)
{
    leati_global_pool *global = make_global(64, 20);
    fake_task task = fake_task_make();
    leati_local_pool *a = make_local(global, &task, 2, 10, 0);
    cr_assert(limit_of(a) == 10); // 18 to spare, 8 wished for
    leati_local_pool *b = make_local(global, &task, 4, 20, 0);
    // 14 to spare, 8 and 16 wished for: 4.67 and 9.33, and nothing is left over.
    cr_assert(limit_of(a) + limit_of(b) == 20);
    cr_assert(limit_of(a) == 6 || limit_of(a) == 7);
    cr_assert(leati_global_pool_reserve(global, 14) == LEAT_OK);
    cr_assert(limit_of(a) == 2 && limit_of(b) == 4);
    leati_global_pool_unreserve(global, 14);
    end_local(&b);
    cr_assert(limit_of(a) == 10);
    cr_assert(unreserved_of(global) == 18);
    end_local(&a);
    cr_assert(unreserved_of(global) == 20);
    leati_global_pool_destroy(&global);
}

Test(pool, requests_end_at_the_limit_and_overdraft_goes_beyond)
{
    leati_global_pool *global = make_global(64, 20);
    fake_task task = fake_task_make();
    leati_local_pool *local = make_local(global, &task, 2, 4, 3);
    leati_segment *segments[7];
    for (int i = 0; i < 4; i++)
        cr_assert((segments[i] = leati_local_pool_request(local, false)) != NULL);
    cr_assert(!leati_local_pool_available(local));
    cr_assert(!leati_local_pool_request(local, false));
    for (int i = 4; i < 7; i++)
        cr_assert((segments[i] = leati_local_pool_request(local, true)) != NULL);
    cr_assert(!leati_local_pool_request(local, true));
    cr_assert(used_of(local) == 7 && limit_of(local) == 4);
    // The first three to come home pay the overdraft back.
    for (int i = 0; i < 3; i++) {
        leati_segment_release(segments[i]);
        cr_assert(!leati_local_pool_available(local));
    }
    leati_segment_release(segments[3]);
    cr_assert(used_of(local) == 3);
    cr_assert(leati_local_pool_available(local));
    cr_assert((segments[3] = leati_local_pool_request(local, false)) != NULL);
    for (int i = 3; i < 7; i++)
        leati_segment_release(segments[i]);
    end_local(&local);
    leati_global_pool_destroy(&global);
}

Test(pool, what_is_owed_to_others_is_not_taken)
{
    leati_global_pool *global = make_global(64, 6);
    fake_task task = fake_task_make();
    leati_local_pool *a = make_local(global, &task, 1, 6, 5);
    cr_assert(leati_global_pool_reserve(global, 4) == LEAT_OK);
    cr_assert(limit_of(a) == 2);
    leati_segment *first = leati_local_pool_request(a, false);
    leati_segment *second = leati_local_pool_request(a, false);
    // Four are free, and all four are promised.
    cr_assert(first && second && !leati_local_pool_request(a, true));
    leati_local_pool_options options = {.minimum = 4, .maximum = 4, .waiter = &task.waiter};
    leati_local_pool *b;
    cr_assert(leati_local_pool_create(global, &options, &b) == LEAT_OK);
    cr_assert(!leati_local_pool_request(a, true));
    leati_segment *theirs[4];
    for (int i = 0; i < 4; i++)
        cr_assert((theirs[i] = leati_local_pool_request(b, false)) != NULL);
    for (int i = 0; i < 4; i++)
        leati_segment_release(theirs[i]);
    leati_segment_release(first);
    leati_segment_release(second);
    end_local(&a);
    end_local(&b);
    leati_global_pool_destroy(&global);
}

Test(pool, a_shrunk_pool_gives_back_what_comes_home_and_wakes_who_is_owed)
{
    leati_global_pool *global = make_global(64, 10);
    fake_task a_task = fake_task_make(), b_task = fake_task_make();
    leati_local_pool *a = make_local(global, &a_task, 1, 10, 0);
    leati_segment *ours[10];
    for (int i = 0; i < 10; i++)
        cr_assert((ours[i] = leati_local_pool_request(a, false)) != NULL);
    cr_assert(wakes_of(&a_task) == 0);
    leati_local_pool *b = make_local(global, &b_task, 5, 5, 0);
    cr_assert(limit_of(a) == 5);
    cr_assert(wakes_of(&a_task) > 0); // it holds too much and is to look
    cr_assert(!leati_local_pool_available(b));
    leati_local_pool_await(b);
    cr_assert(!leati_local_pool_available(b));
    leati_segment_release(ours[0]);
    leati_segment_release(ours[1]);
    cr_assert(wakes_of(&b_task) == 1);
    leati_segment *theirs[5];
    for (int i = 0; i < 2; i++)
        cr_assert((theirs[i] = leati_local_pool_request(b, false)) != NULL);
    cr_assert(!leati_local_pool_request(b, false));
    cr_assert(!leati_local_pool_available(a));
    for (int i = 2; i < 6; i++)
        leati_segment_release(ours[i]); // three more go, the last one stays
    cr_assert(leati_local_pool_available(a));
    for (int i = 2; i < 5; i++)
        cr_assert((theirs[i] = leati_local_pool_request(b, false)) != NULL);
    for (int i = 0; i < 5; i++)
        leati_segment_release(theirs[i]);
    for (int i = 6; i < 10; i++)
        leati_segment_release(ours[i]);
    end_local(&b);
    cr_assert(limit_of(a) == 10);
    end_local(&a);
    leati_global_pool_destroy(&global);
}

Test(pool, idle_segments_above_the_limit_are_given_back_by_trimming)
{
    leati_global_pool *global = make_global(64, 8);
    fake_task task = fake_task_make();
    leati_local_pool *a = make_local(global, &task, 1, 8, 0);
    leati_segment *ours[8];
    for (int i = 0; i < 8; i++)
        cr_assert((ours[i] = leati_local_pool_request(a, false)) != NULL);
    for (int i = 0; i < 8; i++)
        leati_segment_release(ours[i]);
    leati_local_pool *b = make_local(global, &task, 7, 7, 0);
    cr_assert(limit_of(a) == 1);
    cr_assert(!leati_local_pool_available(b));
    leati_local_pool_trim(a);
    leati_segment *theirs[7];
    for (int i = 0; i < 7; i++)
        cr_assert((theirs[i] = leati_local_pool_request(b, false)) != NULL);
    cr_assert((ours[0] = leati_local_pool_request(a, false)) != NULL);
    cr_assert(!leati_local_pool_request(a, true));
    leati_segment_release(ours[0]);
    for (int i = 0; i < 7; i++)
        leati_segment_release(theirs[i]);
    end_local(&a);
    end_local(&b);
    leati_global_pool_destroy(&global);
}

Test(pool, a_registered_owner_is_woken_once)
{
    leati_global_pool *global = make_global(64, 3);
    fake_task task = fake_task_make();
    leati_local_pool *local = make_local(global, &task, 3, 3, 0);
    leati_segment *segments[3];
    for (int i = 0; i < 3; i++)
        segments[i] = leati_local_pool_request(local, false);
    leati_segment_release(segments[0]);
    leati_local_pool_poke(local);
    cr_assert(wakes_of(&task) == 0); // it has not asked
    leati_local_pool_await(local);
    leati_local_pool_await(local);
    leati_segment_release(segments[1]);
    leati_segment_release(segments[2]);
    leati_local_pool_poke(local);
    cr_assert(wakes_of(&task) == 1);
    leati_local_pool_await(local);
    leati_local_pool_poke(local);
    cr_assert(wakes_of(&task) == 1);
    end_local(&local);
    leati_global_pool_destroy(&global);
}

Test(pool, an_owner_that_waits_for_several_is_woken_by_the_last_of_them)
{
    leati_global_pool *global = make_global(64, 4);
    fake_task task = fake_task_make();
    leati_local_pool *local = make_local(global, &task, 4, 4, 0);
    leati_segment *segments[4];
    for (int i = 0; i < 4; i++)
        segments[i] = leati_local_pool_request(local, false);
    leati_local_pool_await_many(local, 3);
    leati_segment_release(segments[0]);
    leati_segment_release(segments[1]);
    cr_assert(wakes_of(&task) == 0);
    leati_segment_release(segments[2]);
    cr_assert(wakes_of(&task) == 1);
    leati_segment_release(segments[3]);
    cr_assert(wakes_of(&task) == 0); // it has not asked again
    leati_local_pool_await_many(local, 3);
    leati_local_pool_poke(local); // something else has happened
    cr_assert(wakes_of(&task) == 1);
    end_local(&local);
    leati_global_pool_destroy(&global);
}

Test(pool, a_full_owner_is_woken_when_its_limit_rises)
{
    leati_global_pool *global = make_global(64, 4);
    fake_task a_task = fake_task_make(), b_task = fake_task_make();
    leati_local_pool *b = make_local(global, &b_task, 3, 3, 0);
    leati_local_pool *a = make_local(global, &a_task, 1, 4, 0);
    leati_segment *first = leati_local_pool_request(a, false);
    leati_local_pool_await(a);
    cr_assert(first && !leati_local_pool_available(a));
    end_local(&b);
    cr_assert(wakes_of(&a_task) == 1 && limit_of(a) == 4);
    cr_assert(leati_local_pool_available(a));
    leati_segment_release(first);
    end_local(&a);
    leati_global_pool_destroy(&global);
}

Test(pool, a_closed_pool_hands_out_nothing_and_lets_its_segments_go_home)
{
    leati_global_pool *global = make_global(64, 4);
    fake_task task = fake_task_make();
    leati_local_pool *local = make_local(global, &task, 1, 4, 0);
    leati_segment *segments[4];
    for (int i = 0; i < 4; i++)
        segments[i] = leati_local_pool_request(local, false);
    leati_segment_release(segments[3]);
    leati_local_pool_await(local);
    leati_local_pool_close(local);
    leati_local_pool_close(local);
    cr_assert(!leati_local_pool_request(local, true) && !leati_local_pool_available(local));
    leati_local_pool_trim(local);
    cr_assert(used_of(local) == 3);
    cr_assert(unreserved_of(global) == 1); // what is still out cannot be promised
    cr_assert(leati_global_pool_reserve(global, 2) == LEAT_ENOBUFS);
    for (int i = 0; i < 3; i++)
        leati_segment_release(segments[i]);
    leati_local_pool_poke(local);
    cr_assert(wakes_of(&task) == 0);
    cr_assert(used_of(local) == 0 && unreserved_of(global) == 4);
    leati_local_pool_destroy(&local);
    leati_local_pool_destroy(&local);
    leati_global_pool_destroy(&global);
}

Test(pool, a_segment_comes_home_with_its_last_reference)
{
    leati_global_pool *global = make_global(64, 1);
    fake_task task = fake_task_make();
    leati_local_pool *local = make_local(global, &task, 1, 1, 0);
    leati_segment *segment = leati_local_pool_request(local, false);
    leati_segment_hold(segment);
    leati_segment_hold(segment);
    leati_segment_release(segment);
    leati_segment_release(segment);
    cr_assert(used_of(local) == 1 && !leati_local_pool_available(local));
    leati_segment_release(segment);
    cr_assert(used_of(local) == 0 && leati_local_pool_available(local));
    end_local(&local);
    leati_global_pool_destroy(&global);
}

Test(pool, any_failing_allocation_is_reported_and_leaks_nothing)
{
    fake_task task = fake_task_make();
    bool done = false;
    for (size_t n = 0; !done; n++) {
        meter memory;
        meter_init(&memory, n);
        leati_global_pool *global = NULL;
        leati_local_pool *local = NULL;
        leat_err err = leati_global_pool_create(&memory.hook, 64, 2, &global);
        if (err == LEAT_OK) {
            leati_local_pool_options options = {.minimum = 1, .maximum = 1, .waiter = &task.waiter};
            cr_assert(leati_global_pool_reserve(global, 1) == LEAT_OK);
            err = leati_local_pool_create(global, &options, &local);
            if (err == LEAT_OK)
                leati_local_pool_close(local);
        }
        done = err == LEAT_OK;
        cr_assert(done || err == LEAT_ENOMEM);
        leati_local_pool_destroy(&local);
        leati_global_pool_destroy(&global);
        cr_assert(memory.blocks == 0);
    }
}

// --- pages ---

static bool tells_pages(void)
{
    return access("/proc/self/smaps", R_OK) == 0 &&
           access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) == 0;
}

// Whether huge pages were asked for where `at` is: the flag "hg" of its mapping.
static bool asks_for_huge_pages(const uint8_t *at)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    cr_assert_not_null(maps);
    char line[1024];
    bool here = false, found = false, asks = false;
    while (!found && fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = (uintptr_t)at >= from && (uintptr_t)at < to;
        found = here && strncmp(line, "VmFlags:", 8) == 0;
        asks = found && strstr(line, " hg") != NULL;
    }
    fclose(maps);
    cr_assert(found);
    return asks;
}

enum { PAGES_SEGMENT = 32 * 1024, MIB = 1 << 20 };

// A pool of as many segments, which lie one after the other: calls `look` for each.
static void each_segment(uint32_t count, void (*look)(const uint8_t *first, const uint8_t *data))
{
    leati_global_pool *global = make_global(PAGES_SEGMENT, count);
    fake_task task = fake_task_make();
    leati_local_pool *local = make_local(global, &task, count, count, 0);
    leati_segment **segments = calloc(count, sizeof(leati_segment *));
    cr_assert_not_null(segments);
    for (uint32_t i = 0; i < count; i++) {
        segments[i] = leati_local_pool_request(local, false);
        cr_assert_not_null(segments[i]);
        cr_assert(i == 0 || segments[i]->data > segments[i - 1]->data);
        look(segments[0]->data, segments[i]->data);
    }
    for (uint32_t i = 0; i < count; i++)
        leati_segment_release(segments[i]);
    free(segments);
    end_local(&local);
    leati_global_pool_destroy(&global);
}

// Up to 2 MiB behind the first 4 are in a huge page that begins before.
static void expect_huge_pages_behind(const uint8_t *first, const uint8_t *data)
{
    if (data + PAGES_SEGMENT < first + 4 * MIB)
        cr_assert(!asks_for_huge_pages(data) && !asks_for_huge_pages(data + PAGES_SEGMENT - 1));
    else if (data >= first + 6 * MIB)
        cr_assert(asks_for_huge_pages(data) && asks_for_huge_pages(data + PAGES_SEGMENT - 1));
}

static void expect_small_pages(const uint8_t *first, const uint8_t *data)
{
    cr_assert(!asks_for_huge_pages(data) && !asks_for_huge_pages(data + PAGES_SEGMENT - 1));
}

Test(pool, all_but_the_beginning_of_a_large_one_is_to_have_huge_pages)
{
    if (!tells_pages())
        cr_skip("the system does not tell");
    each_segment(64 * MIB / PAGES_SEGMENT, expect_huge_pages_behind);
}

// Of 4 MiB, with what each segment has before its data.
Test(pool, a_small_one_has_small_pages)
{
    if (!tells_pages())
        cr_skip("the system does not tell");
    each_segment(4 * MIB / (PAGES_SEGMENT + 64), expect_small_pages);
}
