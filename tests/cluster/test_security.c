// SPDX-License-Identifier: Apache-2.0
// Where processes may listen, what is not shown, and how often refusals are logged.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "cluster/security.h"
#include "leat/leat.h"

// --- listening ---

static char logged[1000];

static void note(void *user, leat_log_level level, const char *line)
{
    (void)user;
    cr_assert_eq(level, LEAT_LOG_WARN);
    snprintf(logged, sizeof logged, "%s", line);
}

static leat_err try_listen(const char *host, const leati_auth *auth, bool insecure, char *why,
                           size_t why_size)
{
    const leat_logger logger = {.write = note, .level = LEAT_LOG_INFO};
    logged[0] = why[0] = '\0';
    return leati_may_listen(host, auth, insecure, &logger, why, why_size);
}

Test(security, own_addresses_of_the_machine_need_nothing)
{
    static const char *const hosts[] = {"127.0.0.1", "127.3.2.1", "::1", "::ffff:127.0.0.1"};
    char why[600];
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        cr_assert_eq(try_listen(hosts[i], NULL, false, why, sizeof why), LEAT_OK, "%s: %s",
                     hosts[i], why);
    cr_assert_str_eq(logged, "");
}

Test(security, elsewhere_it_takes_a_secret_or_the_word)
{
    static const char *const hosts[] = {
        "0.0.0.0", "10.1.2.3", "::", "fe80::1", "128.0.0.1", "::ffff:10.0.0.1"};
    leati_auth auth = {.secret.size = 20};
    char why[600];
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        cr_assert_eq(try_listen(hosts[i], NULL, false, why, sizeof why), LEAT_EINVAL, "%s",
                     hosts[i]);
        cr_assert(strstr(why, hosts[i]) && strstr(why, "--secret-file") &&
                      strstr(why, "--insecure"),
                  "%s", why);
        cr_assert_eq(try_listen(hosts[i], &auth, false, why, sizeof why), LEAT_OK);
        cr_assert_str_eq(logged, "");
        cr_assert_eq(try_listen(hosts[i], NULL, true, why, sizeof why), LEAT_OK);
        cr_assert(strstr(logged, "--insecure") && strstr(logged, hosts[i]), "%s", logged);
    }
}

Test(security, host_that_is_none_is_told)
{
    char why[600];
    cr_assert_eq(try_listen("no host", NULL, false, why, sizeof why), LEAT_EINVAL);
    cr_assert(strstr(why, "no host"), "%s", why);
}

// --- masking ---

static void masked(const char *const *args, size_t count, const char *wanted)
{
    leati_strbuf all;
    bool follows = false;
    leati_strbuf_init(&all, NULL);
    for (size_t i = 0; i < count; i++) {
        if (i)
            leati_strbuf_putc(&all, ' ');
        leati_mask_argument(args[i], strlen(args[i]), &follows, &all);
    }
    cr_assert_str_eq(leati_strbuf_text(&all), wanted);
    leati_strbuf_fini(&all);
}
#define MASKED(wanted, ...)                                                                        \
    masked((const char *const[]){__VA_ARGS__},                                                     \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), wanted)

Test(security, values_of_secret_names_are_masked)
{
    MASKED("--input words.txt -n 3", "--input", "words.txt", "-n", "3");
    MASKED("--password *** --input x", "--password", "hunter2", "--input", "x");
    MASKED("--db-Password=*** x", "--db-Password=hunter2", "x");
    MASKED("-token *** x", "-token", "abc", "x");
    MASKED("SECRET=*** CREDENTIALS=***", "SECRET=a=b", "CREDENTIALS=");
    MASKED("api-key=*** --key=*** --key name", "api-key=123", "--key=123", "--key", "name");
    MASKED("--password --input x", "--password", "--input", "x");
    MASKED("--password ***", "--password", "-");
    MASKED("password hunter2", "password", "hunter2"); // a word like any other
    MASKED("- --", "-", "--");
    MASKED("", "");
    MASKED("=x monkeys=3", "=x", "monkeys=3");
}

Test(security, names_are_known_in_any_case)
{
    static const char *const secret[] = {
        "password",    "PASSWD", "my.secret.file", "authToken", "AWS_SECRET_ACCESS_KEY",
        "credentials", "key",    "api_key"};
    static const char *const open[] = {"", "ke", "keys", "parallelism", "pass", "keyed"};
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
        cr_assert(leati_is_secret_name(secret[i], strlen(secret[i])), "%s", secret[i]);
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        cr_assert(!leati_is_secret_name(open[i], strlen(open[i])), "%s", open[i]);
}

// --- refusals ---

#define SECOND INT64_C(1000000000)

Test(security, each_host_is_logged_once_a_minute)
{
    leati_refusals r;
    uint32_t more;
    int64_t now = 100 * SECOND;
    leati_refusals_init(&r);
    cr_assert(leati_refusals_take(&r, "tcp://10.0.0.1:4711 says nothing", now, &more));
    cr_assert(!leati_refusals_take(&r, "tcp://10.0.0.1:4712 says nothing", now, &more));
    cr_assert(!leati_refusals_take(&r, "tcp://10.0.0.1:1", now + 59 * SECOND, &more));
    cr_assert(leati_refusals_take(&r, "tcp://10.0.0.2:4711 x", now, &more) && more == 0);
    cr_assert(leati_refusals_take(&r, "http://10.0.0.1: x", now, &more) && more == 0);
    cr_assert(leati_refusals_take(&r, "tcp://[::1]:4711 x", now, &more) && more == 0);
    cr_assert(!leati_refusals_take(&r, "tcp://[::1]:4712 x", now, &more));
    cr_assert(leati_refusals_take(&r, "tcp://10.0.0.1:2", now + 60 * SECOND, &more) && more == 2);
    cr_assert(!leati_refusals_take(&r, "tcp://10.0.0.1:2", now + 61 * SECOND, &more));
    leati_refusals_fini(&r);
}

Test(security, many_hosts_do_not_flood_the_log)
{
    leati_refusals r;
    uint32_t more, told = 0;
    leati_refusals_init(&r);
    for (int i = 0; i < 10000; i++) {
        char peer[64];
        snprintf(peer, sizeof peer, "tcp://10.%d.%d.1:80", i / 256, i % 256);
        told += leati_refusals_take(&r, peer, 100 * SECOND, &more);
    }
    cr_assert_eq(told, LEATI_REFUSALS);
    cr_assert(leati_refusals_take(&r, "tcp://11.0.0.1:80", 160 * SECOND, &more));
    leati_refusals_fini(&r);
}
