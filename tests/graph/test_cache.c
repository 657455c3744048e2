// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "graph_testing.h"

static void expect_last_fault(leat_env *env, const char *part)
{
    size_t count = leat_env_fault_count(env);
    cr_assert(count > 0, "no fault says \"%s\"", part);
    cr_assert(strstr(leat_env_fault(env, count - 1), part), "\"%s\" is not in: %s", part,
              leat_env_fault(env, count - 1));
}

Test(cache, a_name_is_found_where_it_was_when_it_was_named)
{
    leat_env *env = new_env(1);
    cr_assert(chdir("/usr") == 0);
    leat_cache_file(env, "words", "share/words");
    leat_cache_file(env, "model", "/models/big");
    cr_assert(chdir("/") == 0);
    cr_assert(leati_env_cached_count(env) == 2 && leat_env_fault_count(env) == 0);
    const leati_cached_file *first = leati_env_cached_at(env, 0);
    cr_expect_str_eq(first->name, "words");
    cr_expect_str_eq(first->path, "share/words");
    cr_expect_str_eq(first->found, "/usr/share/words");
    cr_expect_str_eq(leati_env_cached(env, "model")->found, "/models/big");
    cr_expect(!leati_env_cached(env, "mode") && !first->replaced);
    leat_env_destroy(&env);
}

Test(cache, relative_paths_belong_to_the_folder_of_the_environment)
{
    leat_env *env = new_env(1);
    cr_assert(chdir("/usr") == 0);
    cr_assert(leati_env_set_folder(env, "/data") == LEAT_OK);
    leat_cache_file(env, "a", "a.txt");
    leat_cache_file(env, "b", "/b.txt");
    cr_assert(leati_env_set_folder(env, "share") == LEAT_OK);
    leat_cache_file(env, "c", "c.txt");
    cr_assert(leati_env_set_folder(env, NULL) == LEAT_OK);
    leat_cache_file(env, "d", "d.txt");
    cr_expect_str_eq(leati_env_cached(env, "a")->found, "/data/a.txt");
    cr_expect_str_eq(leati_env_cached(env, "b")->found, "/b.txt");
    cr_expect_str_eq(leati_env_cached(env, "c")->found, "/usr/share/c.txt");
    cr_expect_str_eq(leati_env_cached(env, "d")->found, "/usr/d.txt");
    leat_env_destroy(&env);
}

Test(cache, what_is_set_takes_the_place_of_what_the_job_names_in_either_order)
{
    leat_env *env = new_env(1);
    cr_assert(leati_env_set_cache(env, "early", "/cache/1") == LEAT_OK);
    leat_cache_file(env, "early", "/mine/1");
    leat_cache_file(env, "late", "/mine/2");
    cr_assert(leati_env_set_cache(env, "late", "/cache/2") == LEAT_OK);
    cr_assert(leati_env_set_cache(env, "extra", "/cache/3") == LEAT_OK);
    cr_assert(leati_env_set_cache(env, "extra", "/cache/4") == LEAT_OK);
    cr_assert(leati_env_cached_count(env) == 3 && leat_env_fault_count(env) == 0);
    cr_expect_str_eq(leati_env_cached(env, "early")->found, "/cache/1");
    cr_expect_str_eq(leati_env_cached(env, "early")->path, "/mine/1");
    cr_expect_str_eq(leati_env_cached(env, "late")->found, "/cache/2");
    cr_expect_str_eq(leati_env_cached(env, "extra")->found, "/cache/4");
    cr_expect(leati_env_cached(env, "extra")->path == NULL);
    leat_env_destroy(&env);
}

Test(cache, a_name_stands_for_one_file)
{
    leat_env *env = new_env(1);
    leat_cache_file(env, "x", "/a");
    leat_cache_file(env, "x", "/b");
    expect_last_fault(env, "leat_cache_file: \"x\" is /a already");
    cr_expect_str_eq(leati_env_cached(env, "x")->found, "/a");
    leat_env_destroy(&env);
}

Test(cache, names_and_paths_that_cannot_be_are_faults)
{
    char longest[202];
    memset(longest, 'n', sizeof longest - 1);
    longest[201] = 0;
    const char *const bad[] = {"", ".", "..", "a/b", "a=b", "a\nb", "\x7f", longest, NULL};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        leat_env *env = new_env(1);
        leat_cache_file(env, bad[i], "/a");
        expect_last_fault(env, "is no name for a cached file");
        leat_err err = leati_env_set_cache(env, bad[i], "/a");
        cr_expect(err == LEAT_EINVAL && leati_env_cached_count(env) == 0);
        leat_env_destroy(&env);
    }
    leat_env *env = new_env(1);
    longest[200] = 0;
    leat_cache_file(env, longest, "/a");
    leat_cache_file(env, "two words \xc3\xa9", "/b");
    cr_expect(leat_env_fault_count(env) == 0 && leati_env_cached_count(env) == 2);
    leat_cache_file(env, "empty", "");
    expect_last_fault(env, "the path of the cached file \"empty\" is empty");
    leat_env_destroy(&env);
}

Test(cache, what_does_not_exist_is_told_by_name_and_path)
{
    leat_env *env = new_env(1);
    leat_cache_file(env, "root", "/");
    cr_expect(leati_env_check_cached(env) == LEAT_OK);
    leat_cache_file(env, "gone", "/no/such/file");
    cr_expect(leati_env_check_cached(env) == LEAT_ENOENT);
    expect_last_fault(env, "the cached file \"gone\" cannot be found at /no/such/file: No such");
    leat_env_destroy(&env);
}

Test(cache, operators_that_need_the_own_process_are_marked)
{
    leat_env *env = new_env(1);
    leat_collection *collection;
    cr_assert(leat_collection_create(NULL, &collection) == LEAT_OK);
    leat_stream *in = leat_read_text(env, "-"), *file = leat_read_text(env, "words.txt");
    leat_stream *out = leat_collect_records(in, collection), *printed = leat_print(file);
    cr_expect(leati_stream_node(in)->flags & LEATI_NODE_LOCAL);
    cr_expect(leati_stream_node(out)->flags & LEATI_NODE_LOCAL);
    cr_expect(!(leati_stream_node(file)->flags & LEATI_NODE_LOCAL));
    cr_expect(!(leati_stream_node(printed)->flags & LEATI_NODE_LOCAL));
    leat_env_destroy(&env);
    leat_collection_destroy(&collection);
}
