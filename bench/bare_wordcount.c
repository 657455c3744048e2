// SPDX-License-Identifier: Apache-2.0
// Each of two threads reads half of the file in large reads, splits it into words, and sends every
// word as the msgpack record {string, count} to the thread that its hash names: in 32 KiB segments,
// through a ring to the other thread and through a segment of its own to itself. The receiver
// decodes in place and counts in an open hash table.
//
// A thread that finds the ring to its peer full serves its own ring meanwhile, so the two cannot
// wait for each other.
#include "bench/bare_wordcount.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "bench/ring.h"

enum {
    READ_BYTES = 1024 * 1024,
    MAX_WORD = 16 * 1024,
    MAX_HEADER = 5, // array of two, the string's header of at most three bytes, the count
    ARENA_BYTES = 1024 * 1024,
};

typedef struct slot {
    const char *word;
    uint32_t hash, size;
    uint64_t count;
} slot;

// Room for the bytes of words; full ones stay in a list until the end.
typedef struct arena {
    struct arena *before;
    size_t used;
    char bytes[ARENA_BYTES];
} arena;

typedef struct table {
    slot *slots; // a power of two of them, at most half in use
    size_t capacity, used;
    arena *words;
    bool failed; // out of memory
} table;

typedef struct worker {
    int fd;
    uint64_t from, to; // bytes of the file; words do not cross
    unsigned index;
    ring *in, *out;
    segment *open; // of `out`
    segment *own;
    bool peer_ended, failed;
    uint64_t words;
    table counts;
    bare_count result;
} worker;

static const bool is_space[256] = {
    [' '] = true, ['\t'] = true, ['\n'] = true, ['\v'] = true, ['\f'] = true, ['\r'] = true,
};

// --- counting ------------------------------------------------------------------------------------

static bool table_grow(table *t)
{
    size_t capacity = t->capacity ? t->capacity * 2 : 1 << 16;
    slot *slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < t->capacity; i++) {
        if (!t->slots[i].word)
            continue;
        size_t at = t->slots[i].hash & (capacity - 1);
        while (slots[at].word)
            at = (at + 1) & (capacity - 1);
        slots[at] = t->slots[i];
    }
    free(t->slots);
    t->slots = slots;
    t->capacity = capacity;
    return true;
}

static char *keep_word(table *t, const char *word, size_t size)
{
    if (!t->words || ARENA_BYTES - t->words->used < size) {
        arena *more = malloc(sizeof *more);
        if (!more)
            return NULL;
        more->before = t->words;
        more->used = 0;
        t->words = more;
    }
    char *kept = t->words->bytes + t->words->used;
    memcpy(kept, word, size);
    t->words->used += size;
    return kept;
}

static void table_fini(table *t)
{
    for (arena *words = t->words; words;) {
        arena *before = words->before;
        free(words);
        words = before;
    }
    free(t->slots);
}

static void table_add(table *t, const char *word, uint32_t size, uint64_t count)
{
    uint32_t hash = (uint32_t)XXH3_64bits(word, size);
    for (size_t at = hash & (t->capacity - 1);; at = (at + 1) & (t->capacity - 1)) {
        slot *s = &t->slots[at];
        if (!s->word) {
            char *kept = keep_word(t, word, size);
            if (!kept) {
                t->failed = true;
                return;
            }
            *s = (slot){kept, hash, size, count};
            if (++t->used * 2 > t->capacity && !table_grow(t))
                t->failed = true;
            return;
        }
        if (s->hash == hash && s->size == size && memcmp(s->word, word, size) == 0) {
            s->count += count;
            return;
        }
    }
}

// --- the exchange --------------------------------------------------------------------------------

static void encode(segment *s, const char *word, uint32_t size)
{
    uint8_t *p = s->data + s->size;
    *p++ = 0x92; // an array of two
    if (size < 32) {
        *p++ = (uint8_t)(0xa0 | size);
    } else if (size < 256) {
        *p++ = 0xd9;
        *p++ = (uint8_t)size;
    } else {
        *p++ = 0xda;
        *p++ = (uint8_t)(size >> 8);
        *p++ = (uint8_t)size;
    }
    memcpy(p, word, size);
    p += size;
    *p++ = 1; // the count
    s->size = (uint32_t)(p - s->data);
}

static void count_segment(worker *w, const segment *s)
{
    const uint8_t *p = s->data, *end = p + s->size;
    while (p < end) {
        p++;
        uint32_t size;
        if ((*p & 0xe0) == 0xa0) {
            size = *p & 0x1f;
            p++;
        } else if (*p == 0xd9) {
            size = p[1];
            p += 2;
        } else {
            size = (uint32_t)(p[1] << 8 | p[2]);
            p += 3;
        }
        const char *word = (const char *)p;
        p += size;
        table_add(&w->counts, word, size, *p++);
    }
}

// Counts one segment from the peer if there is one.
static bool serve(worker *w)
{
    const segment *s = ring_full_segment(w->in);
    if (!s)
        return false;
    if (s->size == 0)
        w->peer_ended = true;
    count_segment(w, s);
    ring_release(w->in);
    return true;
}

// The next free segment of the ring to the peer.
static void open_segment(worker *w)
{
    unsigned turns = 0;
    while (!(w->open = ring_free_segment(w->out)))
        if (!serve(w))
            relax(&turns);
    w->open->size = 0;
}

static void send_word(worker *w, const char *word, uint32_t size)
{
    bool mine = XXH3_64bits(word, size) >> 63 == w->index;
    segment *s = mine ? w->own : w->open;
    if (s->size + size + MAX_HEADER > SEGMENT_BYTES) {
        if (mine) {
            count_segment(w, s);
            s->size = 0;
        } else {
            ring_publish(w->out);
            serve(w);
            open_segment(w);
            s = w->open;
        }
    }
    encode(s, word, size);
    w->words++;
}

// --- reading -------------------------------------------------------------------------------------

// Sends the words that end within [p, end); where the one begins that may go on behind.
static const char *split(worker *w, const char *p, const char *end)
{
    for (;;) {
        while (p < end && is_space[(uint8_t)*p])
            p++;
        const char *word = p;
        while (p < end && !is_space[(uint8_t)*p])
            p++;
        if (p == end)
            return word;
        send_word(w, word, (uint32_t)(p - word));
    }
}

static bool read_words(worker *w, char *buffer)
{
    size_t kept = 0; // bytes of an unfinished word at the start of the buffer
    for (uint64_t at = w->from; at < w->to;) {
        uint64_t wanted = w->to - at < READ_BYTES ? w->to - at : READ_BYTES;
        ssize_t got = pread(w->fd, buffer + kept, wanted, (off_t)at);
        if (got <= 0)
            return false;
        at += (uint64_t)got;
        const char *end = buffer + kept + got;
        const char *rest = split(w, buffer, end);
        kept = (size_t)(end - rest);
        if (kept > MAX_WORD)
            return false;
        memmove(buffer, rest, kept);
    }
    if (kept)
        send_word(w, buffer, (uint32_t)kept);
    return true;
}

static void sum_up(worker *w)
{
    w->result = (bare_count){.words = 0, .distinct = w->counts.used};
    for (size_t i = 0; i < w->counts.capacity; i++) {
        const slot *s = &w->counts.slots[i];
        if (!s->word)
            continue;
        w->result.words += s->count;
        w->result.checksum += XXH3_64bits(s->word, s->size) * s->count;
    }
}

static void *work(void *argument)
{
    worker *w = argument;
    char *buffer = malloc(READ_BYTES + MAX_WORD);
    w->own = malloc(sizeof *w->own);
    w->failed = !buffer || !w->own || !table_grow(&w->counts);
    if (!w->failed) {
        w->own->size = 0;
        open_segment(w);
        w->failed = !read_words(w, buffer);
        count_segment(w, w->own);
        if (w->open->size) {
            ring_publish(w->out);
            open_segment(w);
        }
    } else {
        open_segment(w);
    }
    ring_publish(w->out); // an empty segment: the end
    for (unsigned turns = 0; !w->peer_ended;)
        if (!serve(w))
            relax(&turns);
    sum_up(w);
    free(w->own);
    free(buffer);
    return NULL;
}

// The first place at or after `at` that no word crosses.
static uint64_t border(int fd, uint64_t at, uint64_t size)
{
    char c;
    while (at > 0 && at < size && pread(fd, &c, 1, (off_t)at - 1) == 1 && !is_space[(uint8_t)c])
        at++;
    return at;
}

static bool run_workers(worker *workers)
{
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, work, &workers[0]) != 0)
        return false;
    // Without its peer the first would wait for ever, so this thread takes the second's place if
    // need be.
    bool second = pthread_create(&threads[1], NULL, work, &workers[1]) == 0;
    if (!second)
        work(&workers[1]);
    else
        pthread_join(threads[1], NULL);
    pthread_join(threads[0], NULL);
    return !workers[0].failed && !workers[1].failed && !workers[0].counts.failed &&
           !workers[1].counts.failed;
}

int bare_wordcount(const char *path, bare_count *count)
{
    ring rings[2] = {0};
    worker workers[2] = {0};
    struct stat status;
    bool good = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < 2; i++)
        rings[i].segments = malloc(RING_SEGMENTS * sizeof(segment));
    if (fd >= 0 && fstat(fd, &status) == 0 && rings[0].segments && rings[1].segments) {
        uint64_t size = (uint64_t)status.st_size, middle = border(fd, size / 2, size);
        for (unsigned i = 0; i < 2; i++)
            workers[i] = (worker){.fd = fd,
                                  .from = i ? middle : 0,
                                  .to = i ? size : middle,
                                  .index = i,
                                  .in = &rings[1 - i],
                                  .out = &rings[i]};
        good = run_workers(workers);
    }
    if (good)
        *count = (bare_count){workers[0].result.words + workers[1].result.words,
                              workers[0].result.distinct + workers[1].result.distinct,
                              workers[0].result.checksum + workers[1].result.checksum};
    else
        fprintf(stderr, "%s: the bare word count failed\n", path);
    for (int i = 0; i < 2; i++) {
        table_fini(&workers[i].counts);
        free(rings[i].segments);
    }
    if (fd >= 0)
        close(fd);
    return good ? 0 : -1;
}
