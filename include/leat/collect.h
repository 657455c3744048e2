// SPDX-License-Identifier: Apache-2.0
// Taking a stream's records into the program that embeds the job.
//
//     leat_collection *totals;
//     leat_collection_create(NULL, &totals);
//     leat_collect_records(stream, totals);
//     leat_start(runtime, env, &job);
//     const void *record;
//     while (leat_collection_next(totals, -1, &record) == LEAT_OK)
//         use(record);
//     result = leat_job_wait(job, -1);    // whether these were all
//     leat_job_destroy(&job);
//     leat_collection_destroy(&totals);
//
// Threading. Of any thread, but one at a time takes records. Bounds. What has been collected and
// not yet taken is bounded; when it is full, the job waits until something is taken (back-pressure;
// cancelling the job ends the wait), or fails, as the options say. So a program that takes its
// records only after the job, having called leat_execute say, must give a bound that holds them all
// and should ask for failure, because the job would wait for ever.
#ifndef LEAT_COLLECT_H
#define LEAT_COLLECT_H

#include "leat/stream.h"

LEAT_BEGIN_DECLS

typedef struct leat_collection leat_collection;

// Zeros are the defaults.
typedef struct leat_collection_options {
    const leat_allocator *allocator; // NULL: the default. Copied
    size_t max_bytes;                // of the records kept at a time; 0: 64 MiB
    size_t max_records;              // 0: bounded by their bytes only
    bool fail_when_full;             // the job fails, naming the bound, instead of waiting
} leat_collection_options;

// Made before the job. `options` may be NULL. LEAT_ENOMEM.
LEAT_API LEAT_MUST_USE leat_err leat_collection_create(const leat_collection_options *options,
                                                       leat_collection **collection);

// A sink that puts deep copies of all records of `in` into the collection, which must outlive the
// jobs made from the environment. Records of one subtask keep their order. A collection takes the
// records of one stream only; another is a fault. In a second run of the same environment it goes
// on collecting.
LEAT_API leat_stream *leat_collect_records(leat_stream *in, leat_collection *collection);

// Takes the next record, which stays valid until the next call or destroy; waits for it at most
// `timeout_ms` (-1: for ever, 0: not at all). LEAT_EAGAIN: there is none yet. LEAT_ECLOSED: there
// will be none, the stream has come to its end or the job has failed or was cancelled;
// leat_job_wait tells which. `*record` is then unchanged.
LEAT_API LEAT_MUST_USE leat_err leat_collection_next(leat_collection *collection,
                                                     int64_t timeout_ms, const void **record);

// Says that no job will fill the collection any more, so that nobody waits for it in vain: needed
// only when the graph has faults, so that leat_start makes no job, while a thread is in
// leat_collection_next already. Any thread.
LEAT_API void leat_collection_end(leat_collection *collection);

// The type of the records; NULL before leat_collect_records. Borrowed.
LEAT_API const leat_type *leat_collection_type(const leat_collection *collection);

// Frees it and what was not taken. No job may run that fills it: leat_job_wait has told its end.
// The environment may have ended before.
LEAT_API void leat_collection_destroy(leat_collection **collection);

LEAT_END_DECLS

#endif
