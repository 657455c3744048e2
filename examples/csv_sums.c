// SPDX-License-Identifier: Apache-2.0
// CSV in, grouped sums out: what each shop has sold. The job file csv_sums.so:
//
//     leat run csv_sums.so -- orders.csv               prints shop and sum
//     leat run csv_sums.so -- orders.csv sums.csv      writes them as CSV
//
// The header needs the columns "Shop" and "Amount (cents)", wherever they stand. Orders without an
// amount do not count; lines that are no orders are told on standard error.
#include <leat/leat.h>

typedef struct {
    leat_str shop;
    const int64_t *amount; // NULL where the column is empty
} order;
LEAT_RECORD(order, LEAT_FIELD(shop, LEAT_STR), LEAT_FIELD_OPTIONAL(amount, LEAT_SCALAR(LEAT_I64)));

LEAT_JOB(env, argc, argv)
{
    static const leat_column columns[] = {{"shop", "Shop"}, {"amount", "Amount (cents)"}};
    const leat_csv_options csv = {.columns = columns, .column_count = 2};
    if (argc < 2 || argc > 3) {
        leat_env_fail(env, LEAT_EINVAL, "usage: csv_sums.so -- FILE.csv [RESULT.csv]");
        return;
    }
    leat_env_set_name(env, "sums by shop");
    leat_stream *orders = leat_read_csv(env, argv[1], LEAT_TYPE(order), &csv);
    leat_stream *bad = leat_parallelism(leat_print_to_err(leat_rejects(orders)), 1);
    leat_name(bad, "bad lines");
    leat_stream *sums = leat_final_only(leat_sum(leat_key_by(orders, "shop"), "amount"));
    leat_stream *out = argc > 2 ? leat_write_csv(sums, argv[2], &csv) : leat_print(sums);
    // One subtask, so that there is one file, and no line begins with the number of its subtask.
    leat_parallelism(out, 1);
}
