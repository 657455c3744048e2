// SPDX-License-Identifier: Apache-2.0
// The bytes of headers and hellos, and which hellos fit together.
#include <criterion/criterion.h>
#include <string.h>

#include "leat/leat.h"
#include "network/nng/connection_impl.h"

Test(frame, header_is_little_endian_in_the_order_of_its_fields)
{
    const uint8_t expected[] = {0x04, 0x03, 0x02, 0x01, 0x05, 0x06, 0x08, 0x07,
                                0x0c, 0x0b, 0x0a, 0x09, 0x10, 0x0f, 0x0e, 0x0d};
    leati_frame frame = {.size = 0x01020304,
                         .kind = 5,
                         .flags = 6,
                         .more = 0x0708,
                         .channel = 0x090a0b0c,
                         .sequence = 0x0d0e0f10},
                back;
    uint8_t bytes[LEATI_FRAME_SIZE];
    leati_frame_put(&frame, bytes);
    cr_assert_arr_eq(bytes, expected, sizeof expected);
    leati_frame_get(&back, expected);
    cr_assert(memcmp(&back, &frame, sizeof frame) == 0);
}

static leati_hello sample(void)
{
    leati_hello hello = {.abi = 0x11223344, .segment_size = 0x8000, .term = 0x0102030405060708};
    strncpy(hello.purpose, "control", sizeof hello.purpose - 1);
    strncpy(hello.version, "1.2.3", sizeof hello.version - 1);
    strncpy(hello.cluster, "blue", sizeof hello.cluster - 1);
    strncpy(hello.process, "tm-1", sizeof hello.process - 1);
    return hello;
}

Test(frame, hello_has_its_fields_where_every_version_finds_them)
{
    leati_hello hello = sample(), back = {0};
    uint8_t bytes[LEATI_FRAME_SIZE + LEATI_HELLO_SIZE];
    leati_hello_put(&hello, bytes);
    // 8 + 4 + 4 + 8 + 16 + 32 + 128 + 128 = 328 = 0x148 bytes behind the header.
    cr_assert_arr_eq(bytes, "\x48\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    cr_assert_arr_eq(bytes + 16, "Leatnet\x01", 8);
    cr_assert_arr_eq(bytes + 24, "\x44\x33\x22\x11\0\x80\0\0\x08\x07\x06\x05\x04\x03\x02\x01", 16);
    cr_assert_arr_eq(bytes + 40, "control\0\0\0\0\0\0\0\0", 16);
    cr_assert_str_eq((const char *)bytes + 56, "1.2.3");
    cr_assert_str_eq((const char *)bytes + 88, "blue");
    cr_assert_str_eq((const char *)bytes + 216, "tm-1");
    cr_assert(leati_hello_get(&back, bytes + LEATI_FRAME_SIZE));
    cr_assert(memcmp(&back, &hello, sizeof hello) == 0);
}

Test(frame, hello_with_another_beginning_or_an_endless_text_is_none)
{
    leati_hello hello = sample(), back;
    uint8_t bytes[LEATI_FRAME_SIZE + LEATI_HELLO_SIZE];
    static const struct {
        size_t at, size;
    } texts[] = {{24, 16}, {40, 32}, {72, 128}, {200, 128}};
    leati_hello_put(&hello, bytes);
    bytes[LEATI_FRAME_SIZE] ^= 1;
    cr_assert(!leati_hello_get(&back, bytes + LEATI_FRAME_SIZE));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        leati_hello_put(&hello, bytes);
        memset(bytes + LEATI_FRAME_SIZE + texts[i].at, 'x', texts[i].size);
        cr_assert(!leati_hello_get(&back, bytes + LEATI_FRAME_SIZE), "text %zu", i);
    }
}

Test(frame, texts_of_a_hello_are_fit_for_a_log)
{
    leati_hello hello = sample(), back;
    uint8_t bytes[LEATI_FRAME_SIZE + LEATI_HELLO_SIZE];
    strncpy(hello.process, "a\nb\x1b[2J\xff", sizeof hello.process - 1);
    leati_hello_put(&hello, bytes);
    cr_assert(leati_hello_get(&back, bytes + LEATI_FRAME_SIZE));
    cr_assert_str_eq(back.process, "a?b?[2J?");
}

// What is left out is this library's.
Test(frame, completed_hello_has_version_and_interface)
{
    leati_hello hello = {0};
    leati_hello_complete(&hello);
    cr_assert_str_eq(hello.version, leat_version());
    cr_assert_eq(hello.abi, LEAT_ABI);
    hello = sample();
    leati_hello_complete(&hello);
    cr_assert_str_eq(hello.version, "1.2.3");
    cr_assert_eq(hello.abi, 0x11223344);
}

Test(frame, hellos_fit_when_all_but_process_and_term_agree)
{
    char why[512];
    leati_hello ours = sample(), theirs = sample();
    theirs.term = 9;
    strncpy(theirs.process, "tm-2", sizeof theirs.process - 1);
    cr_assert_eq(leati_hello_check(&ours, &theirs, why, sizeof why), LEAT_OK);
    memset(theirs.cluster, 0, sizeof theirs.cluster);
    cr_assert_eq(leati_hello_check(&ours, &theirs, why, sizeof why), LEAT_OK);
    cr_assert_eq(leati_hello_check(&theirs, &ours, why, sizeof why), LEAT_OK);
}

Test(frame, hellos_that_differ_are_refused_with_what_both_are)
{
    char why[512];
    leati_hello ours = sample(), theirs = sample();
    strncpy(theirs.process, "tm-2", sizeof theirs.process - 1);
    strncpy(theirs.purpose, "data", sizeof theirs.purpose);
    cr_assert_eq(leati_hello_check(&ours, &theirs, why, sizeof why), LEAT_EINVAL);
    cr_assert(strstr(why, "data") && strstr(why, "control"), "%s", why);
    theirs = sample();
    theirs.version[4] = '4';
    cr_assert_eq(leati_hello_check(&ours, &theirs, why, sizeof why), LEAT_EABI);
    cr_assert(strstr(why, "1.2.3") && strstr(why, "1.2.4") && strstr(why, "tm-1"), "%s", why);
    theirs = sample();
    theirs.abi = 7;
    cr_assert_eq(leati_hello_check(&ours, &theirs, why, sizeof why), LEAT_EABI);
    cr_assert(strstr(why, "interface 7"), "%s", why);
    theirs = sample();
    theirs.cluster[0] = 'g';
    cr_assert_eq(leati_hello_check(&ours, &theirs, why, sizeof why), LEAT_EINVAL);
    cr_assert(strstr(why, "glue") && strstr(why, "blue"), "%s", why);
    theirs = sample();
    theirs.segment_size = 4096;
    cr_assert_eq(leati_hello_check(&ours, &theirs, why, sizeof why), LEAT_EINVAL);
    cr_assert(strstr(why, "4096") && strstr(why, "32768"), "%s", why);
}

Test(frame, addresses_are_tcp_with_a_port_or_ipc_with_a_path)
{
    static const struct {
        char address[32];
        bool dial, listen;
    } cases[] = {{"tcp://127.0.0.1:4711", true, true},
                 {"tcp://127.0.0.1:0", false, true},
                 {"tcp://host:65535", true, true},
                 {"tcp://[::1]:80", true, true},
                 {"ipc:///tmp/x", true, true},
                 {"tcp://host", false, false},
                 {"tcp://host:", false, false},
                 {"tcp://host:65536", false, false},
                 {"tcp://host:-1", false, false},
                 {"tcp://host:80x", false, false},
                 {"tcp://:80", false, false},
                 {"ipc://", false, false},
                 {"127.0.0.1:80", false, false},
                 {"ws://host:80", false, false},
                 {"tls+tcp://host:80", false, false},
                 {"", false, false},
                 {"tcp://host:999999999", false, false},
                 {"tcp://me@host:80", false, false},
                 {"tcp://host/a:80", false, false},
                 {"tcp://ho st:80", false, false},
                 {":", false, false}};
    char why[512];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool dial = leati_address_check(cases[i].address, 1, why, sizeof why) == LEAT_OK;
        bool listen = leati_address_check(cases[i].address, 0, why, sizeof why) == LEAT_OK;
        cr_assert(dial == cases[i].dial && listen == cases[i].listen, "%s", cases[i].address);
    }
    cr_assert_eq(leati_address_check(NULL, 1, why, sizeof why), LEAT_EINVAL);
}
