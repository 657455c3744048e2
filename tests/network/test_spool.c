// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exchange.h"

static char folder[] = "/tmp/leat-spool-XXXXXX";

// Each test has a folder of its own, in which nothing may ever be seen.
static void enter_folder(void)
{
    cr_assert(mkdtemp(folder) && setenv("TMPDIR", folder, 1) == 0);
}

static size_t count_entries(const char *path)
{
    size_t count = 0;
    DIR *dir = opendir(path);
    cr_assert_not_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

static void leave_folder(void)
{
    cr_assert(rmdir(folder) == 0, "a file was left");
}

TestSuite(spool, .init = enter_folder, .fini = leave_folder, .timeout = 60);

static leati_spool *make_spool(uint32_t channels)
{
    leati_spool *spool;
    cr_assert(leati_spool_create(NULL, channels, &spool) == LEAT_OK, "%s", strerror(errno));
    return spool;
}

// The spool's descriptor: the only one that leads into the folder.
static int descriptor_of_spool(void)
{
    for (int fd = 3; fd < 1000; fd++) {
        char name[64], path[PATH_MAX];
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        ssize_t size = readlink(name, path, sizeof path);
        if (size > 0 && (size_t)size > strlen(folder) && !memcmp(path, folder, strlen(folder)))
            return fd;
    }
    return -1;
}

// --- pieces ---

static uint8_t byte_of(uint32_t channel, size_t piece, uint32_t at)
{
    return (uint8_t)(channel * 71 + piece * 31 + at * 7 + 1);
}

static uint32_t size_of(uint32_t channel, size_t piece)
{
    return (channel * 977 + (uint32_t)piece * 7919) % 5000 + 1;
}

Test(spool, each_channel_gets_its_pieces_in_their_order)
{
    enum { CHANNELS = 5, PIECES = 200 };
    static uint8_t data[5000];
    leati_spool *spool = make_spool(CHANNELS);
    cr_assert(!leati_spool_is_complete(spool));
    for (size_t p = 0; p < PIECES; p++)
        for (uint32_t c = 0; c + 1 < CHANNELS; c++) { // the last one stays empty
            uint32_t size = size_of(c, p);
            for (uint32_t i = 0; i < size; i++)
                data[i] = byte_of(c, p, i);
            cr_assert(leati_spool_append(spool, c, 1, data, size) == LEAT_OK);
        }
    cr_assert(!leati_spool_is_complete(spool));
    leati_spool_complete(spool);
    cr_assert(leati_spool_is_complete(spool));
    for (size_t p = PIECES; p-- > 0;)
        for (uint32_t c = 0; c + 1 < CHANNELS; c++) {
            uint32_t size = leati_spool_piece(spool, c, p);
            cr_assert(size == size_of(c, p));
            cr_assert(leati_spool_read(spool, c, p, data) == LEAT_OK);
            for (uint32_t i = 0; i < size; i++)
                cr_assert(data[i] == byte_of(c, p, i));
        }
    for (uint32_t c = 0; c < CHANNELS; c++)
        cr_assert(leati_spool_piece(spool, c, c + 1 < CHANNELS ? PIECES : 0) == 0);
    leati_spool_destroy(&spool);
    cr_assert_null(spool);
    leati_spool_destroy(&spool);
}

Test(spool, what_several_channels_get_is_stored_once)
{
    leati_spool *spool = make_spool(6);
    char got[8] = "";
    cr_assert(leati_spool_append(spool, 0, 1, "own", 3) == LEAT_OK);
    cr_assert(leati_spool_append(spool, 1, 4, "common", 6) == LEAT_OK);
    cr_assert(leati_spool_append(spool, 0, 6, "", 0) == LEAT_OK);
    leati_spool_complete(spool);
    struct stat stat;
    cr_assert(fstat(descriptor_of_spool(), &stat) == 0 && stat.st_size == 9);
    for (uint32_t c = 1; c <= 4; c++) {
        cr_assert(leati_spool_piece(spool, c, 0) == 6 && leati_spool_piece(spool, c, 1) == 0);
        cr_assert(leati_spool_read(spool, c, 0, got) == LEAT_OK && !memcmp(got, "common", 6));
    }
    cr_assert(leati_spool_piece(spool, 0, 0) == 3 && leati_spool_piece(spool, 0, 1) == 0);
    cr_assert(leati_spool_piece(spool, 5, 0) == 0);
    leati_spool_destroy(&spool);
}

// --- the file ---

Test(spool, the_file_has_no_name_and_goes_with_the_spool)
{
    size_t before = count_entries("/proc/self/fd");
    leati_spool *spool = make_spool(1);
    cr_assert(leati_spool_append(spool, 0, 1, "x", 1) == LEAT_OK);
    cr_assert(count_entries(folder) == 0);
    int fd = descriptor_of_spool();
    cr_assert(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
    leati_spool_destroy(&spool);
    cr_assert(count_entries("/proc/self/fd") == before);
}

Test(spool, the_folder_is_what_the_environment_says)
{
    cr_assert_str_eq(leati_spool_folder(), folder);
    setenv("TMPDIR", "", 1);
    cr_assert_str_eq(leati_spool_folder(), "/tmp");
    unsetenv("TMPDIR");
    cr_assert_str_eq(leati_spool_folder(), "/tmp");
}

Test(spool, a_folder_that_does_not_do_is_an_error_with_its_reason)
{
    char endless[5000];
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    const struct {
        const char *path;
        int reason;
    } cases[] = {
        {"/nowhere/at/all", ENOENT}, {"/proc/self/stat", ENOTDIR}, {endless, ENAMETOOLONG}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leati_spool *spool = NULL;
        setenv("TMPDIR", cases[i].path, 1);
        errno = 0;
        cr_assert(leati_spool_create(NULL, 1, &spool) == LEAT_EIO);
        cr_assert(errno == cases[i].reason && !spool, "%s: %s", cases[i].path, strerror(errno));
    }
}

Test(spool, a_write_that_fails_adds_nothing)
{
    static uint8_t data[3000];
    leati_spool *spool = make_spool(2);
    cr_assert(leati_spool_append(spool, 0, 2, data, 1000) == LEAT_OK);
    // What the first part of a write that is too long has put there does not count.
    struct rlimit before, limit;
    getrlimit(RLIMIT_FSIZE, &before);
    limit = (struct rlimit){2000, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    cr_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    leat_err err = leati_spool_append(spool, 0, 2, data, 3000);
    int reason = errno;
    setrlimit(RLIMIT_FSIZE, &before);
    cr_assert(err == LEAT_EIO && reason == EFBIG);
    memset(data, 7, 1000);
    cr_assert(leati_spool_append(spool, 1, 1, data, 1000) == LEAT_OK);
    leati_spool_complete(spool);
    cr_assert(leati_spool_piece(spool, 0, 1) == 0);
    cr_assert(leati_spool_piece(spool, 1, 1) == 1000 && leati_spool_piece(spool, 1, 2) == 0);
    memset(data, 0, 1000);
    cr_assert(leati_spool_read(spool, 1, 1, data) == LEAT_OK && data[0] == 7 && data[999] == 7);
    leati_spool_destroy(&spool);
}

Test(spool, any_allocation_may_fail)
{
    size_t failed = 0;
    for (size_t n = 0;; n++) {
        meter m;
        meter_init(&m, n);
        leati_spool *spool = NULL;
        leat_err err = leati_spool_create(&m.hook, 3, &spool);
        for (uint32_t i = 0; i < 40 && !err; i++)
            err = leati_spool_append(spool, 0, 3, "abc", 3);
        // A piece is added to all channels or to none.
        size_t counts[3] = {0};
        for (uint32_t c = 0; spool && c < 3; c++)
            while (leati_spool_piece(spool, c, counts[c]))
                counts[c]++;
        cr_assert(counts[0] == counts[1] && counts[1] == counts[2]);
        bool made = spool != NULL;
        leati_spool_destroy(&spool);
        cr_assert(m.blocks == 0);
        if (!err) {
            cr_assert(failed > 4 && counts[0] == 40);
            break;
        }
        cr_assert(err == LEAT_ENOMEM && (made || n == 0));
        failed++;
    }
}

// --- channels ---

static void open_blocking(exchange *x)
{
    x->options.spool = make_spool(x->options.channels);
    x->options.buffer_timeout_ms = -1;
    exchange_open(x);
    for (uint32_t i = 0; i < x->options.channels; i++)
        leati_channel_set_spool(x->channel[i], x->options.spool, i);
}

static void close_blocking(exchange *x)
{
    exchange_close(x);
    leati_spool_destroy(&x->options.spool);
}

Test(spool, nothing_is_seen_before_the_end_and_everything_after_it)
{
    enum { CHANNELS = 3, RECORDS = 3000 };
    exchange x;
    exchange_init(&x, LEATI_PARTITION_BROADCAST, CHANNELS);
    x.segments = 2; // they come back at once, whether anybody reads or not
    open_blocking(&x);
    for (int64_t i = 0; i < RECORDS; i++)
        cr_assert(put_pair(&x, i) == LEAT_OK);
    leati_writer_flush(x.writer);
    leati_writer_tick(x.writer);
    pair record;
    leati_element element;
    for (uint32_t c = 0; c < CHANNELS; c++) {
        cr_assert(x.consumer[c].wakes == 0 && !leati_gate_has_data(x.gate[c]));
        cr_assert(!get_pair(&x, c, &record));
    }
    cr_assert(x.producer.waits == 0);
    cr_assert(put_event(&x, LEATI_TAG_END_OF_DATA, 0) == LEAT_OK);
    for (uint32_t c = 0; c < CHANNELS; c++) {
        cr_assert(x.consumer[c].wakes == 1);
        for (int64_t i = 0; i < RECORDS; i++)
            cr_assert(get_pair(&x, c, &record) && record.a == i && record.b == -i);
        cr_assert(get(&x, c, &element) == LEATI_READ_EVENT && element.tag == LEATI_TAG_END_OF_DATA);
        cr_assert(get(&x, c, &element) == LEATI_READ_NONE);
    }
    close_blocking(&x);
}

Test(spool, records_larger_than_a_segment_are_put_together_again)
{
    static uint8_t bytes[90000];
    static const size_t sizes[] = {0, 1, 1000, 1019, 1024, 5000, 90000, 3};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 13 + i / 256);
    exchange x;
    exchange_init(&x, LEATI_PARTITION_REBALANCE, 1);
    x.options.type = LEAT_TYPE(blob);
    x.segments = 2;
    open_blocking(&x);
    for (size_t i = 0; i < COUNT; i++)
        cr_assert(put_blob(&x, bytes, sizes[i]) == LEAT_OK);
    cr_assert(put_event(&x, LEATI_TAG_END_OF_DATA, 0) == LEAT_OK);
    leati_element element;
    for (size_t i = 0; i < COUNT; i++) {
        blob got;
        cr_assert(get(&x, 0, &element) == LEATI_READ_ELEMENT);
        cr_assert(leat_record_decode(LEAT_TYPE(blob), element.payload, element.size, &got, NULL) ==
                  LEAT_OK);
        cr_assert(got.bytes.size == sizes[i] && !memcmp(got.bytes.data, bytes, sizes[i]));
    }
    cr_assert(get(&x, 0, &element) == LEATI_READ_EVENT);
    close_blocking(&x);
}

Test(spool, an_empty_stream_is_only_its_end)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_REBALANCE, 2);
    open_blocking(&x);
    cr_assert(put_event(&x, LEATI_TAG_END_OF_DATA, 0) == LEAT_OK);
    cr_assert(put_event(&x, LEATI_TAG_END_OF_PARTITION, 0) == LEAT_OK);
    leati_element element;
    for (uint32_t c = 0; c < 2; c++) {
        cr_assert(get(&x, c, &element) == LEATI_READ_EVENT && element.tag == LEATI_TAG_END_OF_DATA);
        cr_assert(get(&x, c, &element) == LEATI_READ_EVENT &&
                  element.tag == LEATI_TAG_END_OF_PARTITION);
        cr_assert(get(&x, c, &element) == LEATI_READ_NONE);
    }
    close_blocking(&x);
}

Test(spool, a_priority_event_comes_before_the_end)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_REBALANCE, 1);
    open_blocking(&x);
    cr_assert(put_pair(&x, 1) == LEAT_OK);
    cr_assert(put_event(&x, LEATI_TAG_BARRIER, 1) == LEAT_OK);
    leati_element element;
    cr_assert(get(&x, 0, &element) == LEATI_READ_EVENT && element.tag == LEATI_TAG_BARRIER);
    cr_assert(get(&x, 0, &element) == LEATI_READ_NONE);
    close_blocking(&x);
}

Test(spool, a_writer_that_cannot_write_is_broken_and_says_why)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_REBALANCE, 1);
    open_blocking(&x);
    struct rlimit before, limit;
    getrlimit(RLIMIT_FSIZE, &before);
    limit = (struct rlimit){3 * 1024, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    leat_err err = LEAT_OK;
    for (int64_t i = 0; i < 10000 && !err; i++)
        err = put_pair(&x, i);
    cr_assert(err == LEAT_ECANCELLED && last_error == LEAT_EIO);
    cr_assert_str_eq(last_message, "writing to a temporary file: File too large");
    cr_assert(put_event(&x, LEATI_TAG_END_OF_DATA, 0) == LEAT_ECANCELLED);
    setrlimit(RLIMIT_FSIZE, &before);
    cr_assert(!leati_spool_is_complete(x.options.spool) && x.consumer[0].wakes == 0);
    close_blocking(&x);
}

Test(spool, a_file_that_has_lost_its_end_is_noticed)
{
    exchange x;
    exchange_init(&x, LEATI_PARTITION_REBALANCE, 1);
    open_blocking(&x);
    for (int64_t i = 0; i < 1000; i++)
        cr_assert(put_pair(&x, i) == LEAT_OK);
    cr_assert(put_event(&x, LEATI_TAG_END_OF_DATA, 0) == LEAT_OK);
    cr_assert(ftruncate(descriptor_of_spool(), 1500) == 0);
    leati_element element;
    leati_read read;
    int records = 0;
    while ((read = get(&x, 0, &element)) == LEATI_READ_ELEMENT)
        records++;
    cr_assert(read == LEATI_READ_FAILED && records > 0 && records < 1000);
    close_blocking(&x);
}

Test(spool, no_memory_for_a_piece_is_told_apart)
{
    leati_spool *spool = make_spool(1);
    cr_assert(leati_spool_append(spool, 0, 1, "abcd", 4) == LEAT_OK);
    leati_spool_complete(spool);
    meter m;
    meter_init(&m, SIZE_MAX);
    leati_channel *channel;
    leati_chunk chunk;
    cr_assert(leati_channel_create(&m.hook, NULL, 1, 0, &channel) == LEAT_OK);
    leati_channel_set_spool(channel, spool, 0);
    size_t blocks = m.blocks;
    m.left = 0;
    cr_assert(leati_channel_peek(channel, &chunk) == LEATI_CHUNK_NO_MEMORY);
    m.left = SIZE_MAX;
    cr_assert(leati_channel_peek(channel, &chunk) == LEATI_CHUNK_DATA && chunk.size == 4);
    leati_channel_advance(channel, 3);
    cr_assert(leati_channel_peek(channel, &chunk) == LEATI_CHUNK_DATA && chunk.size == 1);
    cr_assert(chunk.data[0] == 'd' && m.blocks == blocks + 1);
    leati_channel_advance(channel, 1);
    cr_assert(leati_channel_peek(channel, &chunk) == LEATI_CHUNK_NONE);
    cr_assert(m.blocks == blocks, "a channel that has been read holds no piece");
    leati_channel_destroy(&channel);
    leati_spool_destroy(&spool);
    cr_assert(m.blocks == 0);
}
