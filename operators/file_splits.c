// SPDX-License-Identifier: Apache-2.0
#include "operators/file_splits.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { MARKS = 64, ADOPTED = 8 };

// Files by their paths: open addressing in a power of two of slots, at most half full.
typedef struct file_table {
    leati_file **slots;
    size_t slot_count, count;
} file_table;

typedef struct kept_mark {
    const leati_file *file; // NULL: none
    leati_line_mark mark;
} kept_mark;

struct leati_file_splits {
    const leat_allocator *allocator;
    int64_t split_size;
    const leati_file_rules *rules; // set by start
    // Relaxed: a hint when to look under the lock.
    _Atomic int64_t due_ns;
    pthread_mutex_t lock;
    // Written under the lock; pairs with the load of those who look before they take it, as the
    // first listing may take long.
    _Atomic bool listed;
    // Under the lock.
    bool scanning;
    leati_file_list queue; // what is not wholly handed out begins at `head`
    size_t head;
    int64_t next_start; // in the file at `head`
    file_table known;   // watched: all files that were there at the last listing
    leati_file_sleeper *sleepers, *watchman;
    kept_mark marks[MARKS];
    size_t next_mark;
    leati_file *adopted[ADOPTED]; // or NULL
    size_t next_adopted;
};

leat_err leati_file_splits_create(const leat_allocator *allocator, int64_t split_size_bytes,
                                  leati_file_splits **splits)
{
    leati_file_splits *s = leati_calloc(allocator, 1, sizeof *s);
    if (!s)
        return LEAT_ENOMEM;
    s->allocator = s->queue.allocator = allocator;
    s->split_size = split_size_bytes;
    atomic_init(&s->due_ns, INT64_MAX);
    pthread_mutex_init(&s->lock, NULL);
    *splits = s;
    return LEAT_OK;
}

// --- the table of known files ---

static uint64_t path_hash(const char *path)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *path; path++)
        hash = (hash ^ (uint8_t)*path) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

static leati_file **table_slot(const file_table *table, const char *path)
{
    size_t at = (size_t)path_hash(path) & (table->slot_count - 1);
    while (table->slots[at] && strcmp(table->slots[at]->path, path) != 0)
        at = (at + 1) & (table->slot_count - 1);
    return &table->slots[at];
}

static bool table_init(const leat_allocator *allocator, file_table *table, size_t files)
{
    table->count = 0;
    table->slot_count = 16;
    while (table->slot_count < files * 2)
        table->slot_count *= 2;
    table->slots = leati_calloc(allocator, table->slot_count, sizeof(leati_file *));
    return table->slots != NULL;
}

// --- references ---

// Marks of a file that goes must not be taken for those of another at the same address.
static void release_locked(leati_file_splits *s, leati_file *file)
{
    if (file->references == 1)
        for (size_t i = 0; i < MARKS; i++)
            if (s->marks[i].file == file)
                s->marks[i].file = NULL;
    leati_file_release(s->allocator, file);
}

static void table_fini_locked(leati_file_splits *s, file_table *table)
{
    for (size_t i = 0; i < table->slot_count && table->slots; i++)
        if (table->slots[i])
            release_locked(s, table->slots[i]);
    leati_free(s->allocator, table->slots);
    *table = (file_table){.slots = NULL};
}

void leati_file_splits_destroy(leati_file_splits **splits)
{
    leati_file_splits *s = *splits;
    if (!s)
        return;
    table_fini_locked(s, &s->known);
    for (size_t i = s->head; i < s->queue.count; i++)
        release_locked(s, s->queue.files[i]);
    for (size_t i = 0; i < ADOPTED; i++)
        if (s->adopted[i])
            release_locked(s, s->adopted[i]);
    leati_free(s->allocator, s->queue.files);
    pthread_mutex_destroy(&s->lock);
    leati_free(s->allocator, s);
    *splits = NULL;
}

// --- what a listing has found ---

static bool same_file(const leati_file *a, const leati_file *b)
{
    return leati_file_same(&a->id, &b->id) && a->size == b->size && a->broken == b->broken;
}

// By the time of their last change, then by path.
static int compare_files(const void *a, const void *b)
{
    const leati_file *x = *(leati_file *const *)a, *y = *(leati_file *const *)b;
    if (x->modified_s != y->modified_s)
        return x->modified_s < y->modified_s ? -1 : 1;
    if (x->modified_ns != y->modified_ns)
        return x->modified_ns < y->modified_ns ? -1 : 1;
    return strcmp(x->path, y->path);
}

// Room in the queue for as many more files, where those that are handed out stood too.
static bool queue_reserve_locked(leati_file_splits *s, size_t more)
{
    if (s->head > 0)
        memmove(s->queue.files, s->queue.files + s->head,
                (s->queue.count - s->head) * sizeof *s->queue.files);
    s->queue.count -= s->head;
    s->head = 0;
    return leati_grow(s->allocator, (void **)&s->queue.files, &s->queue.capacity,
                      s->queue.count + more, sizeof *s->queue.files);
}

// The old one is not read on: what is not yet handed out of it is part of the new one.
static void outdate_locked(leati_file *old, const leati_file *now)
{
    old->stale = true;
    old->lost = !leati_file_same(&old->id, &now->id) || old->size > now->size;
}

// A link is known as long as it leads nowhere, so that one warning is all.
static void warn_broken(const leati_file_listing *listing, const leati_file *file)
{
    if (listing->ctx)
        leat_ctx_log(listing->ctx, LEAT_LOG_WARN,
                     "%s: passed over, as the link leads nowhere or to itself", file->path);
}

// Puts what is new or has changed into the queue; all that was found is known from now on.
static leat_err merge_locked(leati_file_splits *s, const leati_file_listing *listing,
                             leati_file_list *found)
{
    file_table now;
    if (!queue_reserve_locked(s, found->count) || !table_init(s->allocator, &now, found->count))
        return LEAT_ENOMEM;
    if (found->count)
        qsort(found->files, found->count, sizeof *found->files, compare_files);
    for (size_t i = 0; i < found->count; i++) {
        leati_file *file = found->files[i];
        leati_file **slot = table_slot(&now, file->path);
        if (*slot)
            continue;
        leati_file *old = s->known.slots ? *table_slot(&s->known, file->path) : NULL;
        if (old && same_file(old, file)) {
            *slot = leati_file_hold(old);
            continue;
        }
        if (old)
            outdate_locked(old, file);
        *slot = leati_file_hold(file);
        if (file->broken) {
            warn_broken(listing, file);
            continue;
        }
        s->queue.files[s->queue.count++] = leati_file_hold(file);
    }
    table_fini_locked(s, &s->known);
    s->known = now;
    return LEAT_OK;
}

static void wake_locked(leati_file_sleeper *sleeper)
{
    sleeper->sleeping = false;
    if (sleeper->waker)
        leat_wake(sleeper->waker);
}

static void wake_all_locked(leati_file_splits *s)
{
    for (leati_file_sleeper *sleeper = s->sleepers; sleeper; sleeper = sleeper->next)
        if (sleeper->sleeping)
            wake_locked(sleeper);
}

static int64_t due_after(const leati_file_splits *s, int64_t now_ns)
{
    return now_ns + s->rules->watch_interval_ms * 1000000;
}

static leat_err start_locked(leati_file_splits *s, const leati_file_listing *listing,
                             int64_t now_ns)
{
    leati_file_list found = {.allocator = s->allocator};
    leat_err err = leati_file_list_paths(&found, listing, s->rules->paths, s->rules->path_count);
    if (err == LEAT_OK && s->rules->watch_interval_ms > 0) {
        err = merge_locked(s, listing, &found);
        atomic_store_explicit(&s->due_ns, due_after(s, now_ns), memory_order_relaxed);
    } else if (err == LEAT_OK) {
        s->queue = found;
        return LEAT_OK;
    }
    leati_file_list_fini(&found);
    return err;
}

leat_err leati_file_splits_start(leati_file_splits *splits, const leati_file_rules *rules,
                                 const leati_file_listing *listing, int64_t now_ns)
{
    pthread_mutex_lock(&splits->lock);
    leat_err err = LEAT_OK;
    if (!atomic_load_explicit(&splits->listed, memory_order_relaxed)) {
        splits->rules = rules;
        err = start_locked(splits, listing, now_ns);
        atomic_store_explicit(&splits->listed, err == LEAT_OK, memory_order_release);
    }
    pthread_mutex_unlock(&splits->lock);
    return err;
}

bool leati_file_splits_due(const leati_file_splits *splits, int64_t now_ns)
{
    return now_ns >= leati_file_splits_due_ns(splits);
}

int64_t leati_file_splits_due_ns(const leati_file_splits *splits)
{
    return atomic_load_explicit(&splits->due_ns, memory_order_relaxed);
}

leat_err leati_file_splits_scan(leati_file_splits *splits, const leati_file_listing *listing,
                                int64_t now_ns)
{
    leati_file_splits *s = splits;
    pthread_mutex_lock(&s->lock);
    bool mine = !s->scanning && leati_file_splits_due(s, now_ns);
    s->scanning |= mine;
    if (mine)
        atomic_store_explicit(&s->due_ns, INT64_MAX, memory_order_relaxed);
    pthread_mutex_unlock(&s->lock);
    if (!mine)
        return LEAT_OK;
    leati_file_list found = {.allocator = s->allocator};
    leat_err err = leati_file_list_paths(&found, listing, s->rules->paths, s->rules->path_count);
    pthread_mutex_lock(&s->lock);
    if (err == LEAT_OK)
        err = merge_locked(s, listing, &found);
    leati_file_list_fini(&found);
    s->scanning = false;
    // From its end on, so that listings which take long leave time for reading.
    if (listing->ctx)
        now_ns = leat_ctx_now_ns(listing->ctx);
    atomic_store_explicit(&s->due_ns, due_after(s, now_ns), memory_order_relaxed);
    if (s->head < s->queue.count)
        wake_all_locked(s);
    else if (s->watchman && s->watchman->sleeping)
        wake_locked(s->watchman);
    pthread_mutex_unlock(&s->lock);
    return err;
}

// --- handing out ---

void leati_file_splits_join(leati_file_splits *splits, leati_file_sleeper *sleeper)
{
    pthread_mutex_lock(&splits->lock);
    sleeper->sleeping = false;
    sleeper->next = splits->sleepers;
    splits->sleepers = sleeper;
    pthread_mutex_unlock(&splits->lock);
}

// The watchman has other things to do: somebody who sleeps is woken, and will find the office free.
static void resign_locked(leati_file_splits *s)
{
    s->watchman = NULL;
    for (leati_file_sleeper *other = s->sleepers; other; other = other->next)
        if (other->sleeping) {
            wake_locked(other);
            return;
        }
}

void leati_file_splits_leave(leati_file_splits *splits, leati_file_sleeper *sleeper)
{
    pthread_mutex_lock(&splits->lock);
    leati_file_sleeper **at = &splits->sleepers;
    while (*at && *at != sleeper)
        at = &(*at)->next;
    if (*at)
        *at = sleeper->next;
    if (splits->watchman == sleeper)
        resign_locked(splits);
    pthread_mutex_unlock(&splits->lock);
}

static void pop_locked(leati_file_splits *s)
{
    release_locked(s, s->queue.files[s->head++]);
    s->next_start = 0;
}

// Gives the rest of a file that has changed, or passes over it when nothing of it was read and all
// of it is still there.
static bool take_stale_locked(leati_file_splits *s, leati_file_split *split)
{
    leati_file *file = s->queue.files[s->head];
    bool lost = file->lost || s->next_start > 0;
    if (lost)
        *split = (leati_file_split){
            .file = leati_file_hold(file), .start = s->next_start, .end = file->size};
    pop_locked(s);
    return lost;
}

static bool take_locked(leati_file_splits *s, leati_file_split *split)
{
    while (s->head < s->queue.count && s->queue.files[s->head]->stale)
        if (take_stale_locked(s, split))
            return true;
    if (s->head == s->queue.count)
        return false;
    leati_file *file = s->queue.files[s->head];
    int compression = s->rules->compression ? s->rules->compression(s->rules, file->path) : 0;
    bool unknown = file->stream || compression != 0;
    *split = (leati_file_split){.file = leati_file_hold(file),
                                .compression = compression,
                                .start = s->next_start,
                                .end = unknown ? INT64_MAX : file->size};
    if (!unknown && !s->rules->whole && file->size - s->next_start > s->split_size) {
        split->end = s->next_start + s->split_size;
        s->next_start = split->end;
    } else {
        pop_locked(s);
    }
    return true;
}

leati_split_result leati_file_splits_next(leati_file_splits *splits, leati_file_sleeper *sleeper,
                                          leati_file_split *split)
{
    leati_file_splits *s = splits;
    leati_split_result result = LEATI_SPLIT_FOUND;
    pthread_mutex_lock(&s->lock);
    sleeper->sleeping = false;
    if (take_locked(s, split)) {
        if (split->file->stale)
            result = LEATI_SPLIT_LOST;
        if (s->watchman == sleeper)
            resign_locked(s);
    } else if (s->rules->watch_interval_ms <= 0) {
        result = LEATI_SPLIT_NONE;
    } else {
        sleeper->sleeping = true;
        if (!s->watchman)
            s->watchman = sleeper;
        result = s->watchman == sleeper ? LEATI_SPLIT_WATCH : LEATI_SPLIT_WAIT;
    }
    pthread_mutex_unlock(&s->lock);
    return result;
}

leati_split_result leati_file_splits_take(leati_file_splits *splits, leati_file_split *split)
{
    leati_file_splits *s = splits;
    leati_split_result result = LEATI_SPLIT_WAIT;
    if (!atomic_load_explicit(&s->listed, memory_order_acquire))
        return result;
    pthread_mutex_lock(&s->lock);
    if (take_locked(s, split))
        result = split->file->stale ? LEATI_SPLIT_LOST : LEATI_SPLIT_FOUND;
    else if (s->rules->watch_interval_ms <= 0)
        result = LEATI_SPLIT_NONE;
    pthread_mutex_unlock(&s->lock);
    return result;
}

bool leati_file_splits_take_small(leati_file_splits *splits, int64_t most, leati_file_split *split)
{
    leati_file_splits *s = splits;
    bool taken = false;
    pthread_mutex_lock(&s->lock);
    if (s->head < s->queue.count) {
        const leati_file *file = s->queue.files[s->head];
        int64_t size = file->size - s->next_start;
        if (!file->stale && !file->stream && size <= most && size <= s->split_size)
            taken = take_locked(s, split);
    }
    pthread_mutex_unlock(&s->lock);
    return taken;
}

size_t leati_file_splits_left(leati_file_splits *splits)
{
    pthread_mutex_lock(&splits->lock);
    size_t left = splits->queue.count - splits->head;
    pthread_mutex_unlock(&splits->lock);
    return left;
}

// --- files of other processes ---

static bool is_adopted(const leati_file *file, const leati_file *like, const char *path,
                       size_t path_size)
{
    return same_file(file, like) && file->stream == like->stream &&
           file->foreign == like->foreign && strlen(file->path) == path_size &&
           memcmp(file->path, path, path_size) == 0;
}

leat_err leati_file_splits_adopt(leati_file_splits *splits, const leati_file *like,
                                 const char *path, size_t path_size, leati_file **file)
{
    leati_file_splits *s = splits;
    leati_file *found = NULL;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < ADOPTED && !found; i++)
        if (s->adopted[i] && is_adopted(s->adopted[i], like, path, path_size))
            found = s->adopted[i];
    if (!found && (found = leati_calloc(s->allocator, 1, sizeof *found + path_size + 1))) {
        *found = *like;
        found->references = 1;
        memcpy(found->path, path, path_size);
        leati_file **place = &s->adopted[s->next_adopted++ % ADOPTED];
        if (*place)
            release_locked(s, *place);
        *place = found;
    }
    if (found)
        *file = leati_file_hold(found);
    pthread_mutex_unlock(&s->lock);
    return found ? LEAT_OK : LEAT_ENOMEM;
}

// --- giving back ---

void leati_file_splits_release(leati_file_splits *splits, leati_file_split *split)
{
    pthread_mutex_lock(&splits->lock);
    release_locked(splits, split->file);
    pthread_mutex_unlock(&splits->lock);
    split->file = NULL;
}

// --- line marks ---

void leati_file_splits_mark(leati_file_splits *splits, const leati_file *file,
                            const leati_line_mark *mark)
{
    pthread_mutex_lock(&splits->lock);
    splits->marks[splits->next_mark] = (kept_mark){.file = file, .mark = *mark};
    splits->next_mark = (splits->next_mark + 1) % MARKS;
    pthread_mutex_unlock(&splits->lock);
}

leati_line_mark leati_file_splits_nearest(leati_file_splits *splits, const leati_file *file,
                                          int64_t offset)
{
    leati_line_mark best = {.offset = 0};
    pthread_mutex_lock(&splits->lock);
    for (size_t i = 0; i < MARKS; i++) {
        const kept_mark *kept = &splits->marks[i];
        if (kept->file == file && kept->mark.offset <= offset && kept->mark.offset > best.offset)
            best = kept->mark;
    }
    pthread_mutex_unlock(&splits->lock);
    return best;
}
