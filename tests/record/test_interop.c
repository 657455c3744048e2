// SPDX-License-Identifier: Apache-2.0
// What msgpack-c packs is decoded, and what is encoded is unpacked by msgpack-c.
#include <criterion/criterion.h>
#include <msgpack.h>

#include "samples.h"

static const double score = 0.5;
static const address work = {{"work", 4}, 70, {"city", 4}};
static const leat_str tags[] = {{"x", 1}, {"yz", 2}};
static const leat_list values[] = {{tags, 2}, {NULL, 0}};
static const int64_t one = -1;
static const int64_t *const numbers[] = {NULL, &one};
static const leat_list visits[] = {{numbers, 2}};
static const person full = {
    5000,  {{"s", 1}, 1, {"c", 1}}, {tags, 2}, {tags, values, 2}, &score, {&work, 1},
    &work, {&work, visits, 1},      true};

static void pack_str(msgpack_packer *packer, const char *text)
{
    msgpack_pack_str(packer, strlen(text));
    msgpack_pack_str_body(packer, text, strlen(text));
}

static void pack_address(msgpack_packer *packer, const char *street, int number, const char *city)
{
    msgpack_pack_array(packer, 3);
    pack_str(packer, street);
    msgpack_pack_int(packer, number);
    pack_str(packer, city);
}

static void pack_tags(msgpack_packer *packer)
{
    msgpack_pack_array(packer, 2);
    pack_str(packer, "x");
    pack_str(packer, "yz");
}

// The record `full`, written with the calls that a foreign program would make.
static void pack_person(msgpack_packer *packer)
{
    msgpack_pack_array(packer, 9);
    msgpack_pack_int(packer, 5000);
    pack_address(packer, "s", 1, "c");
    pack_tags(packer);
    msgpack_pack_map(packer, 2);
    pack_str(packer, "x");
    pack_tags(packer);
    pack_str(packer, "yz");
    msgpack_pack_array(packer, 0);
    msgpack_pack_float(packer, 0.5f);
    msgpack_pack_array(packer, 1);
    pack_address(packer, "work", 70, "city");
    pack_address(packer, "work", 70, "city");
    msgpack_pack_map(packer, 1);
    pack_address(packer, "work", 70, "city");
    msgpack_pack_array(packer, 2);
    msgpack_pack_nil(packer);
    msgpack_pack_int(packer, -1);
    msgpack_pack_true(packer);
}

Test(interop, what_msgpack_c_packs_is_decoded)
{
    msgpack_sbuffer buffer;
    msgpack_sbuffer_init(&buffer);
    msgpack_packer packer;
    msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
    pack_person(&packer);
    const leat_type *both[] = {LEAT_TYPE(person), twin_of(NULL, LEAT_TYPE(person))};
    leat_scratch *scratch;
    cr_assert(leat_scratch_create(NULL, &scratch) == LEAT_OK);
    for (int t = 0; t < 2; t++) {
        person got;
        cr_assert(leat_record_decode(both[t], (const uint8_t *)buffer.data, buffer.size, &got,
                                     scratch) == LEAT_OK);
        cr_assert(leat_record_equal(LEAT_TYPE(person), &full, &got));
        leat_scratch_reset(scratch);
    }
    leat_type_release(both[1]);
    leat_scratch_destroy(&scratch);
    msgpack_sbuffer_destroy(&buffer);
}

static bool is_str(const msgpack_object *object, const char *text)
{
    return object->type == MSGPACK_OBJECT_STR && object->via.str.size == strlen(text) &&
           memcmp(object->via.str.ptr, text, strlen(text)) == 0;
}

Test(interop, what_is_encoded_is_unpacked_by_msgpack_c)
{
    uint8_t bytes[512];
    uint8_t *end = leat_record_encode(LEAT_TYPE(person), &full, bytes, bytes + sizeof bytes);
    cr_assert(end != NULL);
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    size_t offset = 0;
    cr_assert(msgpack_unpack_next(&unpacked, (const char *)bytes, (size_t)(end - bytes), &offset) ==
              MSGPACK_UNPACK_SUCCESS);
    cr_assert(offset == (size_t)(end - bytes));
    msgpack_object *root = &unpacked.data;
    cr_assert(root->type == MSGPACK_OBJECT_ARRAY && root->via.array.size == 9);
    msgpack_object *fields = root->via.array.ptr;
    cr_assert(fields[0].type == MSGPACK_OBJECT_POSITIVE_INTEGER && fields[0].via.u64 == 5000);
    cr_assert(fields[1].type == MSGPACK_OBJECT_ARRAY && fields[1].via.array.size == 3);
    cr_assert(is_str(&fields[1].via.array.ptr[2], "c"));
    cr_assert(fields[2].via.array.size == 2 && is_str(&fields[2].via.array.ptr[1], "yz"));
    cr_assert(fields[3].type == MSGPACK_OBJECT_MAP && fields[3].via.map.size == 2);
    cr_assert(is_str(&fields[3].via.map.ptr[1].key, "yz"));
    cr_assert(fields[4].type == MSGPACK_OBJECT_FLOAT64 && fields[4].via.f64 == 0.5);
    msgpack_object *list = &fields[7].via.map.ptr[0].val;
    cr_assert(list->via.array.ptr[0].type == MSGPACK_OBJECT_NIL);
    cr_assert(list->via.array.ptr[1].type == MSGPACK_OBJECT_NEGATIVE_INTEGER &&
              list->via.array.ptr[1].via.i64 == -1);
    cr_assert(fields[8].type == MSGPACK_OBJECT_BOOLEAN && fields[8].via.boolean);
    msgpack_unpacked_destroy(&unpacked);
}

Test(interop, integers_of_every_size_go_both_ways)
{
    for (int bits = 0; bits < 64; bits++)
        for (int64_t near = -2; near <= 2; near++)
            for (int sign = 0; sign < 2; sign++) {
                uint64_t magnitude = (UINT64_C(1) << bits) + (uint64_t)near;
                int64_t value = (int64_t)(sign ? 0 - magnitude : magnitude), got = 0;
                msgpack_sbuffer buffer;
                msgpack_sbuffer_init(&buffer);
                msgpack_packer packer;
                msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
                msgpack_pack_int64(&packer, value);
                cr_assert(leat_record_decode(LEAT_SCALAR(LEAT_I64), (const uint8_t *)buffer.data,
                                             buffer.size, &got, NULL) == LEAT_OK);
                cr_assert(got == value);
                msgpack_sbuffer_destroy(&buffer);
                uint8_t bytes[9];
                uint8_t *end =
                    leat_record_encode(LEAT_SCALAR(LEAT_I64), &value, bytes, bytes + sizeof bytes);
                msgpack_unpacked unpacked;
                msgpack_unpacked_init(&unpacked);
                cr_assert(msgpack_unpack_next(&unpacked, (const char *)bytes, (size_t)(end - bytes),
                                              NULL) == MSGPACK_UNPACK_SUCCESS);
                cr_assert(unpacked.data.via.i64 == value);
                msgpack_unpacked_destroy(&unpacked);
            }
}

Test(interop, the_deepest_type_is_unpacked_by_msgpack_c)
{
    const leat_type *type = LEAT_SCALAR(LEAT_I64), *next;
    leat_list lists[LEAT_TYPE_MAX_DEPTH];
    int64_t leaf = 7;
    const void *items = &leaf;
    for (int i = 0; i < LEAT_TYPE_MAX_DEPTH; i++) {
        cr_assert(leat_type_list_create(NULL, type, &next) == LEAT_OK);
        leat_type_release(type);
        type = next;
        lists[i] = (leat_list){items, 1};
        items = &lists[i];
    }
    uint8_t bytes[64];
    uint8_t *end = leat_record_encode(type, items, bytes, bytes + sizeof bytes);
    cr_assert(end == bytes + LEAT_TYPE_MAX_DEPTH + 9);
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    cr_assert(msgpack_unpack_next(&unpacked, (const char *)bytes, (size_t)(end - bytes), NULL) ==
              MSGPACK_UNPACK_SUCCESS);
    msgpack_unpacked_destroy(&unpacked);
    leat_type_release(type);
}
