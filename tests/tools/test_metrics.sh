#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What user functions count is shown at the end.
# shellcheck source=tests/tools/lib.sh
. "$(dirname -- "$0")/lib.sh"

# counting TEXT ARGUMENT…: runs the job with the words on standard input.
# shellcheck disable=SC2086 # one word a line
counting() { leat_run run "${@:2}" < <(printf '%s\n' $1); }
err_is() { [ "$(cat "$work/err")" = "$1" ]; }
err_line() { grep -qxF -- "$1" "$work/err"; }
err_lacks() { ! grep -q -- "$1" "$work/err"; }
accumulators='accumulator bytes: 9
accumulator half bytes: 4.5
accumulator mean size: 2.25
accumulator shortest: 2
accumulator longest: 3
accumulator sizes: 4 values, min 2, mean 2.25, p50 2, p95 3, p99 3, max 3
accumulator all sizes: 4 values: 2, 2, 2, 3
accumulator nothing: none
accumulator seen: 4 values: to, be, or, not'

counting 'to be or not' "$jobs/counting.so"
claim 'a job with accumulators succeeds' ended_with 0
claim 'standard output has the results only' out_is $'to\nbe\nor\nnot'
claim 'accumulators of every kind are shown on standard error' err_is "$accumulators"
counting '1 2 3 4 5 6 7 8 9 10 11 12' "$jobs/counting.so"
claim 'of a long list the beginning is shown' err_line \
    'accumulator seen: 12 values: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ..'
counting 'a boom' "$jobs/counting.so"
claim 'a job that failed shows no accumulators' err_lacks '^accumulator'
claim 'but why it failed' err_line 'leat: job failed: counting (1/1): boom'

counting 'to be or not' --stats "$jobs/counting.so"
claim '--stats shows counters' err_line 'metric counting (1/1) bytes: 9'
claim '--stats shows gauges' err_line 'metric counting (1/1) half: 1.5'
claim '--stats shows meters' grep -qE '^metric counting \(1/1\) words: 4, [0-9.]+/s$' "$work/err"
claim '--stats shows histograms' err_line \
    'metric counting (1/1) sizes: 4 values, min 2, mean 2.25, p50 2, p95 3, p99 3, max 3'
claim '--stats shows each accumulator once' test "$(grep -c '^accumulator' "$work/err")" -eq 9
counting 'to be or not' --stats="$work/stats" "$jobs/counting.so"
claim 'with --stats=FILE accumulators stay on standard error' err_is "$accumulators"
claim 'and are in the file too' test "$(grep -c '^accumulator' "$work/stats")" -eq 9

counting 'to boom be boom' "$jobs/counting.so" -- skip
claim 'a job that rejects records goes on' out_is $'to\nbe'
claim 'rejected records are told at the end' err_line '2 records rejected by counting'
counting 'to boom' --stats "$jobs/counting.so" -- skip
claim 'one record is one record, with --stats too' test "$(grep -cx '1 record rejected by counting' "$work/err")" -eq 1

counting 'to be or not' --json --stats="$work/stats.json" "$jobs/counting.so"
claim '--json prints one JSON object' grep -qzE '^\{.*\}.$' "$work/stats.json"
if command -v jq >/dev/null; then
    holds() { [ "$(jq -c "$2" "$1")" = "$3" ]; }
    claim 'with the state' holds "$work/stats.json" '[.state, .records_read, (.tasks | length)]' '["FINISHED",4,1]'
    claim 'with metrics' holds "$work/stats.json" \
        '[.metrics[] | [.operator, .kind, .name, .count, (.value.max? // null)]]' \
        "$(printf '%s' '[["counting","counter","bytes",9,null],["counting","gauge","half",null,null],' \
            '["counting","meter","words",4,null],["counting","histogram","sizes",4,3]]')"
    claim 'with accumulators' holds "$work/stats.json" \
        '[.accumulators[] | select(.kind != "histogram") | .value]' \
        '[9,4.5,2.25,2,3,[2,2,2,3],null,["to","be","or","not"]]'
    counting 'a boom' --json --stats="$work/stats.json" "$jobs/counting.so"
    claim 'a failed job has no accumulators there either' \
        holds "$work/stats.json" '[.state, .accumulators]' '["FAILED",[]]'
fi
counting 'to' --json "$jobs/counting.so"
claim '--json alone goes to standard error' grep -qzE '^\{.*\}.$' "$work/err"
counting 'to' --json --stats=/dev/full "$jobs/counting.so"
claim 'statistics that cannot be written are an error' ended_with 1
claim 'and it says so' err_has 'leat: --stats=/dev/full: No space left on device'
done_testing
