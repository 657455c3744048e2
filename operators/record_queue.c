// SPDX-License-Identifier: Apache-2.0
#include "operators/record_queue.h"

#include <string.h>

#include "base/alloc.h"

// Before each record in a buffer.
typedef struct entry {
    uint32_t size; // of the record behind it; LEATI_QUEUE_WATERMARK: there is none
    bool stamped;
    int64_t timestamp;
} entry;

leat_err leati_record_queue_init(leati_record_queue *queue, const leat_allocator *allocator,
                                 const leat_type *type)
{
    *queue = (leati_record_queue){.allocator = allocator, .type = type};
    queue->record = leati_calloc(allocator, 1, type->size);
    return queue->record ? leat_scratch_create(allocator, &queue->scratch) : LEAT_ENOMEM;
}

void leati_record_queue_fini(leati_record_queue *queue)
{
    if (!queue->allocator)
        return;
    leati_free(queue->allocator, queue->waiting.data);
    leati_free(queue->allocator, queue->taken.data);
    leati_free(queue->allocator, queue->record);
    leat_scratch_destroy(&queue->scratch);
    *queue = (leati_record_queue){.allocator = NULL};
}

leat_err leati_record_queue_put(leati_record_queue *queue, const leati_queued *item)
{
    leati_record_buffer *to = &queue->waiting;
    size_t size = item->record ? leat_record_encoded_size(queue->type, item->record) : 0;
    if (size >= LEATI_QUEUE_WATERMARK)
        return LEAT_ETOOBIG;
    entry head = {.size = item->record ? (uint32_t)size : LEATI_QUEUE_WATERMARK,
                  .stamped = item->stamped,
                  .timestamp = item->timestamp};
    if (!leati_grow(queue->allocator, (void **)&to->data, &to->capacity,
                    to->size + sizeof head + size, 1))
        return LEAT_ENOMEM;
    uint8_t *at = to->data + to->size;
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    if (item->record && !leat_record_encode(queue->type, item->record, at, at + size))
        return LEAT_EINVAL;
    to->size += sizeof head + size;
    return LEAT_OK;
}

bool leati_record_queue_take(leati_record_queue *queue)
{
    if (queue->waiting.size == 0)
        return false;
    leati_record_buffer empty = queue->taken;
    empty.size = 0;
    queue->taken = queue->waiting;
    queue->waiting = empty;
    queue->at = 0;
    return true;
}

leat_err leati_record_queue_next(leati_record_queue *queue, leati_queued *item)
{
    if (!leati_record_queue_has_next(queue))
        return LEAT_ENOENT;
    const uint8_t *from = queue->taken.data + queue->at;
    entry head;
    memcpy(&head, from, sizeof head);
    *item = (leati_queued){.stamped = head.stamped, .timestamp = head.timestamp};
    queue->at += sizeof head;
    if (head.size == LEATI_QUEUE_WATERMARK)
        return LEAT_OK;
    queue->at += head.size;
    item->record = queue->record;
    leat_scratch_reset(queue->scratch);
    return leat_record_decode(queue->type, from + sizeof head, head.size, queue->record,
                              queue->scratch);
}
