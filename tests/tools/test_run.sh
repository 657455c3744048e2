#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Results go to standard output and nothing else does; every way to end has its status.
# shellcheck source=tests/tools/lib.sh
. "$(dirname -- "$0")/lib.sh"

# piped TEXT ARGUMENT…: leat_run with the text on standard input.
piped() { leat_run "${@:2}" < <(printf '%s' "$1"); }
succeeded() { ended_with 0 && out_is "$1"; }

piped $'one\ntwo\n' run "$jobs/lines.so"
claim 'results go to standard output' succeeded $'one\ntwo'
claim 'without --stats standard error is empty' silent err
piped '' run "$jobs/lines.so"
claim 'a job without input succeeds' succeeded ''
leat_run run "$jobs/arguments.so" -- -p '' --stats -- 'a b'
claim 'what stands behind -- is the job'"'"'s, word for word' succeeded $'parallelism=1\n-p\n\n--stats\n--\na b'
leat_run run -p 3 "$jobs/arguments.so"
claim '-p sets the parallelism' succeeded 'parallelism=3'
leat_run run "$jobs/arguments.so" -D parallelism=5
claim 'options may stand behind the job file' succeeded 'parallelism=5'
leat_run run -p 3 -D parallelism=4 "$jobs/arguments.so"
claim 'of two settings of one key the last wins' succeeded 'parallelism=4'
leat_run run -p 2 --workers 1 --name me -q -D "buffer-timeout=5 ms" "$jobs/arguments.so"
claim 'all options together work' succeeded 'parallelism=2'

piped $'one\nboom\n' run "$jobs/lines.so"
claim 'a failing job ends with 1' ended_with 1
claim 'the failure names the operator and the message' \
    grep -qE '^leat: job failed: .*map.* \(1/1\).*: a line says boom' "$work/err"
claim 'the failure is one line' err_lines 1

leat_run run "$jobs/faults.so"
claim 'a wrong graph is refused with every fault' refused 3 'usage: faults nothing' 'no_such_field' 'parallelism'
claim 'each fault is a line that names the job file' test "$(grep -c "^leat: .*faults.so: " "$work/err")" -ge 3
leat_run plan "$jobs/faults.so"
claim 'plan refuses a wrong graph with every fault' refused 3 'usage: faults nothing' 'no_such_field' 'parallelism'
leat_run run -D memory.network=64KiB -D memory.segment-size=32KiB -p 64 "$jobs/wide.so"
claim 'a job that needs more segments than there are is refused with the numbers' refused 3 'segments'

printed_stats() {
    ended_with "$1" && grep -qE '^task +subtask +records in +records out +bytes in +bytes out' "$work/err" &&
        grep -qE '^(finished in|failed after) [0-9]+\.[0-9]{3} s: [0-9]+ records read' "$work/err" &&
        ! out_has subtask
}
# Every row's four shares follow its byte counts and end before the pool.
shares_sum() {
    local rows
    rows=$(sed -nE 's|^.* ([0-9]+) +([0-9]+) +([0-9]+) +([0-9]+) +[0-9]+/[0-9]+  [A-Z]+$|\1 \2 \3 \4|p' "$work/err")
    [ -n "$rows" ] && awk '$1 + $2 + $3 + $4 != 100 { exit 1 }' <<<"$rows"
}
aligned() {
    [ "$(sed -n '/^task /,/^[a-z]* [a-z]* [0-9.]* s:/p' "$work/err" | grep -E '[A-Z]$|state$' |
        sed -E 's/ +[A-Za-z]+$//' | awk '{ print length($0) }' | sort -u | wc -l)" -eq 1 ]
}
piped $'one\ntwo\nthree\n' run --stats "$jobs/lines.so"
claim 'the table of --stats goes to standard error' printed_stats 0
claim 'with --stats standard output has the results only' succeeded $'one\ntwo\nthree'
claim 'the records read are counted' err_has ': 3 records read'
claim 'shares of time sum to 100' shares_sum
claim 'the columns are aligned' aligned
piped $'one\nboom\n' run --stats "$jobs/lines.so"
claim 'a failing job has its table too' printed_stats 1

# Whoever reads the output may go at any time.
filter() {
    local began statuses
    began=$(now_ms)
    timeout 20 "$leat" run "$jobs/endless.so" 2>"$work/err" | head -n 1 >"$work/out"
    statuses=("${PIPESTATUS[@]}")
    status=${statuses[0]}
    [ "$status" -eq 141 ] && silent err && [ "$(cat "$work/out")" = 0 ] && [ $(($(now_ms) - began)) -lt 5000 ]
}
claim 'a reader that goes ends the job quietly and at once' filter
closed() { status=0; timeout 20 "$leat" run "$jobs/arguments.so" >&- 2>"$work/err" || status=$?; ended_with 1; }
claim 'closed standard output fails the job' closed
full() { status=0; timeout 20 "$leat" run "$jobs/arguments.so" >/dev/full 2>"$work/err" || status=$?; ended_with 1; }
claim 'a full device fails the job' full
claim 'and says so' err_has 'No space left'

leat_run plan "$jobs/lines.so"
claim 'plan prints to standard output' out_has 'map'
leat_run plan --json "$jobs/lines.so"
claim 'plan --json prints one JSON object' grep -qzE '^\{.*\}.?$' "$work/out"
if command -v jq >/dev/null; then
    claim 'plan --json can be parsed' jq -e 'type == "object"' "$work/out"
fi
cp "$work/out" "$work/json"
leat_run plan --format json "$jobs/lines.so"
claim '--format json is --json' cmp "$work/out" "$work/json"
leat_run plan --dot "$jobs/lines.so"
claim 'plan --dot prints a digraph' out_has 'digraph'
leat_run plan "$jobs/lines.so"
cp "$work/out" "$work/plan"
cd -- "$jobs" || exit 1
leat_run plan lines.so
claim 'the plan does not depend on how the job file is named' cmp "$work/out" "$work/plan"
plan_full() { "$leat" plan lines.so >/dev/full 2>"$work/err"; [ $? -eq 1 ] && err_has 'No space left'; }
claim 'a plan that cannot be written is an error' plan_full

LEAT_LOG=chatty leat_run run arguments.so
claim 'a wrong LEAT_LOG is complained about and the job runs' err_has 'LEAT_LOG=chatty'
claim 'and the job ran' ended_with 0
LEAT_LOG=debug leat_run run arguments.so
claim 'the log never reaches standard output' succeeded 'parallelism=1'
done_testing
