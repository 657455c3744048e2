// SPDX-License-Identifier: Apache-2.0
#include "operators/file_away.h"

static leat_err failed(leat_ctx *ctx, leat_err err)
{
    // The other process ends its part of the job before this task has heard of it.
    if (leat_ctx_cancelled(ctx))
        return LEAT_ECANCELLED;
    return leati_ctx_error(ctx, err,
                           "the next file could not be had from the process with subtask 1: %s",
                           leat_err_message(err));
}

static leat_err ask(leati_file_away *away, leat_ctx *ctx)
{
    leat_err err = leati_ctx_ask(ctx, NULL, 0, &away->answer);
    return err == LEAT_OK ? LEAT_OK : failed(ctx, err);
}

static leat_err take_answer(leati_file_away *away, leat_ctx *ctx, leati_file_home *home)
{
    away->at = 0;
    leat_err err = leati_file_batch_decode(leat_ctx_allocator(ctx), leati_file_home_splits(home),
                                           leati_file_home_machine(home), away->answer.bytes,
                                           away->answer.size, &away->batch);
    leati_answer_reset(&away->answer);
    if (err != LEAT_OK)
        return failed(ctx, err);
    away->ended = away->batch.count == 0;
    return LEAT_OK;
}

leat_err leati_file_away_next(leati_file_away *away, leat_ctx *ctx, leati_file_home *home,
                              leati_file_split *split, leati_split_result *result)
{
    leat_err err = LEAT_OK;
    if (away->at == away->batch.count && !away->ended) {
        if (leati_answer_get(&away->answer) == LEATI_ANSWER_NONE)
            err = ask(away, ctx);
        leati_answer_state state = leati_answer_get(&away->answer);
        if (err == LEAT_OK && state == LEATI_ANSWER_FAILED)
            err = failed(ctx, away->answer.err);
        else if (err == LEAT_OK && state == LEATI_ANSWER_READY)
            err = take_answer(away, ctx, home);
    }
    if (err != LEAT_OK)
        return err;
    *result = LEATI_SPLIT_WAIT;
    if (away->at < away->batch.count) {
        *split = away->batch.splits[away->at++];
        *result = away->batch.lost ? LEATI_SPLIT_LOST : LEATI_SPLIT_FOUND;
    } else if (away->ended) {
        *result = LEATI_SPLIT_NONE;
    }
    return LEAT_OK;
}

void leati_file_away_fini(leati_file_away *away, leati_file_home *home)
{
    while (away->at < away->batch.count)
        leati_file_splits_release(leati_file_home_splits(home), &away->batch.splits[away->at++]);
    leati_answer_reset(&away->answer);
}
