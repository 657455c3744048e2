// SPDX-License-Identifier: Apache-2.0
// Relative paths in a folder that is not the process's, and files that a job brings along.
#include "graph/stream_graph.h"
#include "outputs.h"
#include "run.h"

TestSuite(folder, .init = enter_outputs, .fini = leave_outputs, .timeout = 120);

static void begin(run *r, uint32_t parallelism)
{
    leat_env *env = run_begin(r, parallelism);
    cr_assert(mkdir("there", 0777) == 0);
    cr_assert(mkdir("there/deep", 0777) == 0);
    spill("there/deep/a", "1\n2\n");
    spill("there/deep/b", "3\n");
    spill("there/c", "4\n");
    cr_assert(leati_env_set_folder(env, "there") == LEAT_OK);
}

Test(folder, sources_read_what_lies_in_it)
{
    run r;
    begin(&r, 2);
    const char *const paths[] = {"deep", "c"};
    leat_parallelism(leat_print(leat_read_text_files(r.env, paths, 2)), 1);
    run_expect_lines(&r, "1\n2\n3\n4\n", "read");
}

Test(folder, absolute_paths_are_what_they_are)
{
    char path[600], *here = get_current_dir_name();
    run r;
    begin(&r, 1);
    spill("outside", "9\n");
    snprintf(path, sizeof path, "%s/outside", here);
    leat_print(leat_read_text(r.env, path));
    run_expect_lines(&r, "9\n", "absolute");
    free(here);
}

Test(folder, sinks_write_into_it)
{
    run r;
    begin(&r, 1);
    leat_write_text(leat_read_text(r.env, "c"), "deep/out");
    leat_stream *parts = leat_write_text(leat_rebalance(leat_sequence(r.env, 1, 4)), "parts");
    leat_parallelism(parts, 2);
    cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    expect_file("there/deep/out", "4\n");
    cr_assert(count_entries("there/parts") == 2 && count_entries(".") == 1);
    run_end(&r);
}

Test(folder, messages_keep_the_paths_of_the_user)
{
    run r;
    begin(&r, 1);
    leat_print(leat_read_text(r.env, "missing"));
    cr_assert_eq(run_execute(&r), LEAT_ENOENT);
    cr_expect(strstr(r.failure, "cannot read missing: No such file"), "%s", r.failure);
    run_end(&r);
}

Test(folder, one_that_is_missing_matters_to_relative_paths_only)
{
    run r;
    begin(&r, 1);
    cr_assert(leati_env_set_folder(r.env, "nowhere") == LEAT_OK);
    leat_print(leat_read_text(r.env, "/dev/null"));
    cr_expect_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
    leat_print(leat_read_text(r.env, "c"));
    cr_expect_eq(run_execute(&r), LEAT_ENOENT);
    cr_expect(strstr(r.failure, "cannot open the folder of the job, nowhere: No such"), "%s",
              r.failure);
    run_end(&r);
}

// --- functions that open files themselves ---

static int folder_of(leat_ctx *ctx, const void *in, void *out)
{
    const char *folder = leat_ctx_folder(ctx);
    if (!folder)
        return -1;
    *(leat_str *)out = (leat_str){folder, strlen(folder)};
    return 0;
}

static void print_folders(run *r)
{
    leat_stream *folders =
        leat_map(leat_sequence(r->env, 1, 2), folder_of, leat_type_scalar(LEAT_STR));
    leat_print(folders);
}

Test(folder, functions_get_it_as_an_absolute_path)
{
    static const char *const folders[] = {NULL, "there", "/usr/share"};
    char *here = get_current_dir_name(), expected[1400];
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        run r;
        leat_env *env = run_begin(&r, 1);
        if (folders[i])
            cr_assert(leati_env_set_folder(env, folders[i]) == LEAT_OK);
        print_folders(&r);
        const char *front = i < 2 ? here : "";
        const char *back = i == 0 ? "" : i == 1 ? "/there" : "/usr/share";
        snprintf(expected, sizeof expected, "%s%s\n%s%s\n", front, back, front, back);
        run_expect_lines(&r, expected, "folders");
    }
    free(here);
}

Test(folder, a_working_folder_that_is_gone_fails_the_job)
{
    run r;
    char *here = get_current_dir_name();
    run_begin(&r, 1);
    print_folders(&r);
    cr_assert(mkdir("gone", 0777) == 0 && chdir("gone") == 0 && rmdir("../gone") == 0);
    cr_expect(run_execute(&r) != LEAT_OK);
    cr_assert(chdir(here) == 0);
    free(here);
    cr_expect(strstr(r.failure, "the working folder cannot be found: No such file"), "%s",
              r.failure);
    run_end(&r);
}

// --- cached files ---

static int first_line_of(leat_ctx *ctx, const void *in, void *out)
{
    char line[64];
    const char *path = leat_ctx_cached_file(ctx, leat_ctx_user_data(ctx));
    if (!path)
        return -1;
    if (*path != '/')
        return leat_fail(ctx, "%s is not absolute", path);
    FILE *file = fopen(path, "r");
    if (!file || !fgets(line, sizeof line, file))
        return leat_fail(ctx, "%s cannot be read", path);
    fclose(file);
    *(int64_t *)out = *(const int64_t *)in + strtol(line, NULL, 10);
    return 0;
}

static void add_lookup(run *r, const char *name)
{
    leat_stream *in = leat_sequence(r->env, 1, 2);
    leat_stream *mapped = leat_map(in, first_line_of, leat_type_scalar(LEAT_I64));
    leat_parallelism(leat_print(leat_user_data(mapped, (void *)name)), 1);
}

Test(folder, a_cached_file_is_found_by_its_name_wherever_the_process_goes)
{
    run r;
    run_begin(&r, 2);
    spill("ten", "10\n");
    leat_cache_file(r.env, "offset", "ten");
    add_lookup(&r, "offset");
    cr_assert(mkdir("elsewhere", 0777) == 0 && chdir("elsewhere") == 0);
    leat_err err = run_execute(&r);
    // Back before anything is asserted: what tidies up removes the working folder.
    cr_assert(chdir("..") == 0);
    cr_assert_eq(err, LEAT_OK, "%s", r.failure);
    run_sort(r.out[0].data);
    cr_assert_str_eq(leati_strbuf_text(&r.out[0]), "11\n12\n");
    run_end(&r);
}

Test(folder, an_unknown_name_fails_the_job_with_those_that_there_are)
{
    run r;
    run_begin(&r, 1);
    leat_cache_file(r.env, "one", "/dev/null");
    leat_cache_file(r.env, "two", "/dev/null");
    add_lookup(&r, "three");
    cr_assert_eq(run_execute(&r), LEAT_EUSER);
    cr_expect(
        strstr(r.failure, "there is no cached file \"three\": the job's are \"one\", \"two\""),
        "%s", r.failure);
    run_end(&r);
    run_begin(&r, 1);
    add_lookup(&r, "three");
    cr_assert_eq(run_execute(&r), LEAT_EUSER);
    cr_expect(strstr(r.failure, "there is no cached file \"three\": the job has none"), "%s",
              r.failure);
    run_end(&r);
}
