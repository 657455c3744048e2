// SPDX-License-Identifier: Apache-2.0
// The yardsticks of records that go from one process to another: the same records, encoded into
// segments of a small pool, moved gathered, and decoded on the other side by one thread each; the
// bytes alone over plain sockets; and a round trip.
#ifndef LEATI_BENCH_BARE_REMOTE_H
#define LEATI_BENCH_BARE_REMOTE_H

#include <stdint.h>

typedef struct bare_load {
    uint64_t records;
    uint32_t body;  // as in pair_plan
    uint32_t plain; // 1: no records, the bytes only, and no nng
} bare_load;

typedef struct bare_result {
    uint64_t records, sum;
} bare_result;

// All return 0, or -1 after saying why.
int bare_remote(const bare_load *load, bare_result *result);

// Round trips of 64 bytes over nng_stream, one at a time, `interval_ns` apart: the middle one and
// the 99th of a hundred, halved, in µs.
typedef struct bare_trips {
    uint64_t count;
    int64_t interval_ns; // 0: without a pause
} bare_trips;
typedef struct bare_halves {
    double p50, p99;
} bare_halves;
int bare_round_trips(const bare_trips *trips, bare_halves *halves);

// The mains of the other process, for the roles "--bare" and "--echo".
int bare_far_main(void);
int bare_echo_main(void);

#endif
