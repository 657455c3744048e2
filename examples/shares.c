// SPDX-License-Identifier: Apache-2.0
// Broadcast variables: what share of all amounts each line of a file is. The job file shares.so:
//
//     leat run shares.so -- amounts.csv
//
// The file has the columns "name" and "amount". The sum of all amounts is computed first, by the
// same job, and is then at hand in every subtask that divides by it; the lines wait in temporary
// files meanwhile. `leat plan shares.so -- amounts.csv` shows both.
#include <leat/leat.h>

typedef struct {
    leat_str name;
    double amount;
} row;
LEAT_RECORD(row, LEAT_FIELD(name, LEAT_STR), LEAT_FIELD(amount, LEAT_F64));

typedef struct {
    double amount;
} total;
LEAT_RECORD(total, LEAT_FIELD(amount, LEAT_F64));

typedef struct {
    leat_str name;
    double percent;
} share;
LEAT_RECORD(share, LEAT_FIELD(name, LEAT_STR), LEAT_FIELD(percent, LEAT_F64));

static int amount_of(leat_ctx *ctx, const void *in, void *out)
{
    ((total *)out)->amount = ((const row *)in)->amount;
    return 0;
}

static int same_key(leat_ctx *ctx, const void *in, void *key)
{
    *(bool *)key = true;
    return 0;
}

static int add(leat_ctx *ctx, void *accumulator, const void *in)
{
    ((total *)accumulator)->amount += ((const total *)in)->amount;
    return 0;
}

static int share_of(leat_ctx *ctx, const void *in, void *out)
{
    const row *line = in;
    size_t count;
    const total *all = leat_ctx_broadcast(ctx, "total", &count);
    if (!all)
        return -1;
    // There is a line, so there is a total of one or more.
    *(share *)out = (share){line->name, 100 * line->amount / all[0].amount};
    return 0;
}

LEAT_JOB(env, argc, argv)
{
    if (argc != 2) {
        leat_env_fail(env, LEAT_EINVAL, "usage: shares.so AMOUNTS.csv");
        return;
    }
    leat_stream *rows = leat_read_csv(env, argv[1], LEAT_TYPE(row), NULL);
    leat_stream *amounts = leat_map(rows, amount_of, LEAT_TYPE(total));
    leat_stream *keyed = leat_key_by_fn(amounts, same_key, leat_type_scalar(LEAT_BOOL));
    leat_stream *sum = leat_final_only(leat_reduce(keyed, add));

    leat_stream *shares = leat_map(rows, share_of, LEAT_TYPE(share));
    leat_broadcast_variable(shares, "total", sum);
    leat_parallelism(leat_print(shares), 1);
}
