// SPDX-License-Identifier: Apache-2.0
// What a sink function can ask about the record at hand.
#include <inttypes.h>

#include "run.h"

enum { RECORDS = 20 };

// Emits the numbers from 0, every other one with ten times itself as its timestamp, and after each
// third the watermark n * 10 - 5.
typedef struct timed_source {
    leat_operator base;
    int64_t next;
} timed_source;

static leat_err timed_poll(leat_operator *self, leat_out *out, uint32_t max_records,
                           leat_poll *state)
{
    timed_source *op = (timed_source *)self;
    int64_t n = op->next++;
    leat_err err = n % 2 ? leat_collect(out, &n) : leat_collect_at(self->ctx, out, &n, n * 10);
    if (!err && n % 3 == 2)
        err = leat_emit_watermark(out, n * 10 - 5);
    *state = op->next < RECORDS ? LEAT_POLL_MORE : LEAT_POLL_END;
    return err;
}

static void timed_dispose(leat_operator *self)
{
    free(self);
}

static leat_err timed_create(const leat_factory *factory, leat_ctx *ctx, leat_operator **op)
{
    static const leat_operator_ops ops = {
        .kind = "timed", .poll = timed_poll, .dispose = timed_dispose};
    timed_source *made = calloc(1, sizeof *made);
    cr_assert(made);
    made->base.ops = &ops;
    *op = &made->base;
    return LEAT_OK;
}

static int check(leat_ctx *ctx, const void *in)
{
    int64_t n = *(const int64_t *)in, time;
    bool stamped = leat_ctx_timestamp(ctx, &time);
    cr_assert_eq(stamped, n % 2 == 0);
    cr_assert_eq(time, stamped ? n * 10 : INT64_MIN);
    // The last watermark came behind the last record before this one that is 2 modulo 3.
    int64_t marked = n - 1 - n % 3;
    cr_assert_eq(leat_ctx_watermark(ctx), n < 3 ? INT64_MIN : marked * 10 - 5, "%" PRId64, n);
    ++*(int64_t *)leat_ctx_user_data(ctx);
    return 0;
}

Test(sink_context, a_sink_sees_timestamps_and_the_watermark)
{
    for (int exchange = 0; exchange < 2; exchange++) {
        run r;
        int64_t seen = 0;
        leat_factory factory = {.create = timed_create};
        leat_env *env = run_begin(&r, 1);
        leat_stream *in = leat_source(env, "timed", &factory, leat_type_scalar(LEAT_I64));
        leat_user_data(leat_sink(exchange ? leat_rebalance(in) : in, check), &seen);
        cr_assert_eq(run_execute(&r), LEAT_OK, "%s", r.failure);
        cr_assert_eq(seen, RECORDS);
        run_end(&r);
    }
}
