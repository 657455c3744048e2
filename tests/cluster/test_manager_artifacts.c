// SPDX-License-Identifier: Apache-2.0
// The store of artifacts: by hash, within a limit, and what a job uses stays.
#include "tests/cluster/manager_testing.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { SIZE = 40000 };

static void hash_of(const void *data, size_t size, char hash[LEATI_ID_SIZE])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, size));
    for (size_t i = 0; i < sizeof canonical.digest; i++)
        snprintf(hash + 2 * i, 3, "%02x", canonical.digest[i]);
}

static void write_upload(const boss *b, const void *data, size_t size, char path[128])
{
    snprintf(path, 128, "%s/upload", b->folder);
    FILE *file = fopen(path, "w");
    cr_assert(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

// `SIZE` bytes of that value.
static leat_err put_filled(const boss *b, int value, char hash[LEATI_ID_SIZE])
{
    static char data[SIZE];
    char path[128], why[300];
    memset(data, value, sizeof data);
    hash_of(data, sizeof data, hash);
    write_upload(b, data, sizeof data, path);
    leat_err err = leati_artifact_put(b->manager, hash, path, why, sizeof why);
    cr_expect(access(path, F_OK) != 0, "the upload is left behind");
    return err;
}

static bool is_there(const boss *b, const char *hash)
{
    char path[LEATI_PATH_SIZE];
    bool there = leati_artifact_path(b->manager, hash, path);
    cr_expect(there == (access(path, F_OK) == 0));
    return there;
}

Test(artifacts, are_known_by_the_hash_of_their_bytes)
{
    boss b;
    char path[LEATI_PATH_SIZE], upload[128], why[300] = "";
    boss_init(&b);
    boss_start(&b);
    cr_expect(!leati_artifact_path(b.manager, SO_HASH, path) && path[0] != '\0');
    put_artifact(&b);
    put_artifact(&b);
    cr_expect(is_there(&b, SO_HASH));
    write_upload(&b, "so\r", 3, upload);
    cr_expect(leati_artifact_put(b.manager, SO_HASH, upload, why, sizeof why) == LEAT_ECORRUPT);
    cr_expect(strstr(why, "the bytes are not those of " SO_HASH ": what came, 3 bytes,") != NULL,
              "\"%s\"", why);
    static const char *const bad[] = {"", "2DBB6498EE31E1B3E104480D46A416D9", "../../etc/passwd",
                                      "2dbb6498ee31e1b3e104480d46a416d90",
                                      "2dbb6498ee31e1b3/104480d46a416d9"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_expect(!leati_artifact_path(b.manager, bad[i], path) && path[0] == '\0');
        write_upload(&b, "so\n", 3, upload);
        cr_expect(leati_artifact_put(b.manager, bad[i], upload, why, sizeof why) == LEAT_EINVAL);
    }
    boss_stop(&b);
}

// A job with that file, which ends at once: it waits no more for whoever has sent it.
static void run_with(boss *b, char *hash)
{
    submission s;
    char id[LEATI_ID_SIZE];
    simple_submission(&s, 1);
    s.job.job_file = (leati_msg_file){leati_text("a.so"), leati_text(hash), SIZE, false};
    submit(b, &s, false, id);
    cancel(b, id);
    free(s.graph);
}

Test(artifacts, those_used_longest_ago_go_when_room_is_needed)
{
    boss b;
    char hash[4][LEATI_ID_SIZE];
    boss_init(&b);
    boss_set(&b, LEATI_CONFIG_ARTIFACT_STORE, 3 * SIZE);
    boss_start(&b);
    for (int i = 0; i < 3; i++) {
        cr_expect(put_filled(&b, i, hash[i]) == LEAT_OK);
        run_with(&b, hash[i]);
    }
    cr_expect(is_there(&b, hash[0])); // which is a use
    cr_expect(put_filled(&b, 3, hash[3]) == LEAT_OK);
    cr_expect(!is_there(&b, hash[1]));
    cr_expect(is_there(&b, hash[0]) && is_there(&b, hash[2]) && is_there(&b, hash[3]));
    boss_stop(&b);
}

Test(artifacts, that_were_just_sent_or_asked_for_wait_for_their_job)
{
    boss b;
    char hash[3][LEATI_ID_SIZE], path[128], why[300] = "";
    static const char data[SIZE];
    boss_init(&b);
    boss_set(&b, LEATI_CONFIG_ARTIFACT_STORE, 2 * SIZE);
    boss_start(&b);
    cr_expect(put_filled(&b, 1, hash[0]) == LEAT_OK);
    cr_expect(put_filled(&b, 2, hash[1]) == LEAT_OK);
    hash_of(data, SIZE, hash[2]);
    write_upload(&b, data, SIZE, path);
    cr_expect(leati_artifact_put(b.manager, hash[2], path, why, sizeof why) == LEAT_ENOBUFS);
    cr_expect(strstr(why, "80000 bytes are in use by jobs that have not ended or are being "
                          "submitted, and the store takes 80000 (cluster.artifact-store)"),
              "\"%s\"", why);
    // Both have had their job; then one is asked for, for another one.
    run_with(&b, hash[0]);
    run_with(&b, hash[1]);
    cr_expect(is_there(&b, hash[0]));
    cr_expect(put_filled(&b, 0, hash[2]) == LEAT_OK);
    cr_expect(!is_there(&b, hash[1]) && is_there(&b, hash[0]));
    boss_stop(&b);
}

Test(artifacts, of_jobs_that_have_not_ended_stay)
{
    boss b;
    char hash[3][LEATI_ID_SIZE], id[LEATI_ID_SIZE];
    submission s;
    boss_init(&b);
    boss_set(&b, LEATI_CONFIG_ARTIFACT_STORE, 2 * SIZE);
    boss_start(&b);
    cr_expect(put_filled(&b, 1, hash[0]) == LEAT_OK);
    cr_expect(put_filled(&b, 2, hash[1]) == LEAT_OK);
    simple_submission(&s, 1);
    s.job.job_file = (leati_msg_file){leati_text("a.so"), leati_text(hash[0]), SIZE, false};
    leati_msg_file cached = {leati_text("data/x"), leati_text(hash[1]), SIZE, true};
    s.job.cached = (leat_list){&cached, 1};
    submit(&b, &s, false, id);
    cr_expect(put_filled(&b, 3, hash[2]) == LEAT_ENOBUFS);
    run_with(&b, hash[0]); // which is refused when the file is not there
    run_with(&b, hash[1]);
    cancel(&b, id);
    cr_expect(put_filled(&b, 3, hash[2]) == LEAT_OK);
    cr_expect(is_there(&b, hash[2]));
    free(s.graph);
    boss_stop(&b);
}

Test(artifacts, are_fetched_in_pieces)
{
    boss b;
    fake f;
    enum { LARGE = 600000 };
    static uint8_t data[LARGE], got[LARGE];
    char hash[LEATI_ID_SIZE], path[128], why[300] = "";
    boss_init(&b);
    boss_start(&b);
    for (size_t i = 0; i < LARGE; i++)
        data[i] = (uint8_t)(i * i >> 7);
    hash_of(data, LARGE, hash);
    write_upload(&b, data, LARGE, path);
    cr_assert(leati_artifact_put(b.manager, hash, path, why, sizeof why) == LEAT_OK);
    fake_start(&f, &b, 1, 1);
    leati_msg_piece chunk, fetch = {.hash = leati_text(hash)};
    while (fetch.offset < LARGE) {
        fake_send(&f, LEATI_MESSAGE_FETCH, LEAT_TYPE(leati_msg_piece), &fetch);
        fake_expect(&f, LEATI_MESSAGE_CHUNK, LEAT_TYPE(leati_msg_piece), &chunk);
        cr_assert(chunk.refused.size == 0 && chunk.offset == fetch.offset && chunk.total == LARGE);
        cr_assert(chunk.bytes.size > 0 && chunk.bytes.size <= 262144);
        memcpy(got + fetch.offset, chunk.bytes.data, chunk.bytes.size);
        fetch.offset += chunk.bytes.size;
    }
    cr_expect(memcmp(got, data, LARGE) == 0);
    static const char *const none[] = {SO_HASH, "", "../upload"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        fetch = (leati_msg_piece){.hash = leati_text(none[i])};
        fake_send(&f, LEATI_MESSAGE_FETCH, LEAT_TYPE(leati_msg_piece), &fetch);
        fake_expect(&f, LEATI_MESSAGE_CHUNK, LEAT_TYPE(leati_msg_piece), &chunk);
        cr_expect(chunk.refused.size > 0 && chunk.bytes.size == 0);
    }
    fake_stop(&f);
    boss_stop(&b);
}
