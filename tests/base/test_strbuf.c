// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strbuf.h"

static void *refuse_allocate(void *user, size_t size_bytes)
{
    return NULL;
}

// Grows what exists `*user` times, then refuses.
static void *limited_reallocate(void *user, void *ptr, size_t size_bytes)
{
    int *left = user;
    return (*left)-- > 0 ? realloc(ptr, size_bytes) : NULL;
}

static void plain_release(void *user, void *ptr)
{
    free(ptr);
}

static leat_allocator limited(int *left)
{
    return (leat_allocator){refuse_allocate, limited_reallocate, plain_release, left};
}

Test(strbuf, an_empty_buffer_is_empty_text)
{
    leati_strbuf buffer;
    leati_strbuf_init(&buffer, NULL);
    cr_assert_str_eq(leati_strbuf_text(&buffer), "");
    cr_assert_eq(buffer.size, 0);
    char *text = leati_strbuf_take(&buffer);
    cr_assert_str_eq(text, "");
    leati_free(NULL, text);
    leati_strbuf_fini(&buffer);
}

Test(strbuf, appends_follow_each_other_and_end_in_nul)
{
    leati_strbuf buffer;
    leati_strbuf_init(&buffer, NULL);
    leati_strbuf_puts(&buffer, "one");
    cr_assert_str_eq(leati_strbuf_text(&buffer), "one");
    leati_strbuf_putc(&buffer, ' ');
    leati_strbuf_append(&buffer, "two!", 3);
    leati_strbuf_append(&buffer, NULL, 0);
    leati_strbuf_printf(&buffer, " %d %s %5.2f", -3, "four", 5.0);
    cr_assert_str_eq(leati_strbuf_text(&buffer), "one two -3 four  5.00");
    cr_assert_eq(buffer.size, 21);
    leati_strbuf_fini(&buffer);
    cr_assert_str_eq(leati_strbuf_text(&buffer), "");
}

Test(strbuf, any_byte_is_kept)
{
    leati_strbuf buffer;
    leati_strbuf_init(&buffer, NULL);
    for (int i = 0; i < 1000; i++)
        leati_strbuf_putc(&buffer, (char)i);
    cr_assert_eq(buffer.size, 1000);
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(buffer.data[i], (char)i);
    cr_assert_eq(buffer.data[1000], '\0');
    leati_strbuf_fini(&buffer);
}

Test(strbuf, printf_has_no_limit_of_its_own)
{
    leati_strbuf buffer;
    leati_strbuf_init(&buffer, NULL);
    leati_strbuf_printf(&buffer, "[%*d]", 20000, 7);
    cr_assert_eq(buffer.size, 20002);
    cr_assert_eq(buffer.data[0], '[');
    cr_assert_eq(buffer.data[1], ' ');
    cr_assert_str_eq(buffer.data + 19999, " 7]");
    leati_strbuf_fini(&buffer);
}

Test(strbuf, a_json_string_is_quoted_where_the_text_ends)
{
    leati_strbuf buffer;
    leati_strbuf_init(&buffer, NULL);
    leati_strbuf_puts(&buffer, "{");
    leati_strbuf_json_string(&buffer, "say \"hi\"\n", 9);
    leati_strbuf_puts(&buffer, ":");
    leati_strbuf_json_string(&buffer, "", 0);
    leati_strbuf_puts(&buffer, "}");
    cr_assert_str_eq(leati_strbuf_text(&buffer), "{\"say \\\"hi\\\"\\n\":\"\"}");
    leati_strbuf_fini(&buffer);
}

Test(strbuf, take_hands_the_text_over_and_leaves_an_empty_buffer)
{
    leati_strbuf buffer;
    leati_strbuf_init(&buffer, NULL);
    leati_strbuf_puts(&buffer, "mine");
    char *text = leati_strbuf_take(&buffer);
    cr_assert_eq(buffer.size, 0);
    leati_strbuf_puts(&buffer, "next");
    cr_assert_str_eq(text, "mine");
    cr_assert_str_eq(leati_strbuf_text(&buffer), "next");
    leati_free(NULL, text);
    leati_strbuf_fini(&buffer);
}

Test(strbuf, running_out_of_memory_is_remembered)
{
    // However many growths succeed before, the text is either whole or not there.
    for (int growths = 0; growths < 8; growths++) {
        int left = growths;
        leat_allocator allocator = limited(&left);
        leati_strbuf buffer;
        leati_strbuf_init(&buffer, &allocator);
        for (int i = 0; i < 1000; i++)
            leati_strbuf_puts(&buffer, "x");
        leati_strbuf_printf(&buffer, "%d", 12345);
        leati_strbuf_json_string(&buffer, "y", 1);
        cr_assert(buffer.failed);
        // 4, 8, 16 … bytes of room, one of them for the NUL.
        size_t expected = growths ? ((size_t)4 << (growths - 1)) - 1 : 0;
        cr_assert_eq(buffer.size, expected, "%d growths: %zu", growths, buffer.size);
        cr_assert_eq(strlen(leati_strbuf_text(&buffer)), expected);
        cr_assert_null(leati_strbuf_take(&buffer));
        cr_assert_eq(buffer.size, 0);
        leati_strbuf_fini(&buffer);
    }
}

Test(strbuf, a_size_that_overflows_is_a_failure)
{
    leati_strbuf buffer;
    leati_strbuf_init(&buffer, NULL);
    leati_strbuf_puts(&buffer, "kept");
    leati_strbuf_append(&buffer, "never read", SIZE_MAX);
    cr_assert(buffer.failed);
    cr_assert_str_eq(leati_strbuf_text(&buffer), "kept");
    leati_strbuf_fini(&buffer);
}
