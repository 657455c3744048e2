#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The first signal cancels, the second ends at once.
# shellcheck source=tests/tools/lib.sh
. "$(dirname -- "$0")/lib.sh"

# start ARGUMENT…: the program in the background; its standard input stays open, and nothing is written to it.
mkfifo "$work/stdin"
exec 9<>"$work/stdin"
start() {
    # What the last program wrote must not be taken for this one's.
    : >"$work/out"
    : >"$work/err"
    # A command in the background of a script ignores SIGINT; the program takes it nevertheless.
    "$leat" "$@" <"$work/stdin" >"$work/out" 2>"$work/err" 9>&- &
    pid=$!
}
# finish LIMIT: waits for the program, at most that many ms; then its status is in `status`. One that hangs is killed.
finish() {
    local began took
    began=$(now_ms)
    wait_until ended || kill -KILL "$pid"
    took=$(($(now_ms) - began))
    status=0
    wait "$pid" 2>/dev/null || status=$?
    [ "$took" -le "$1" ]
}
ended() { ! jobs -rp | grep -qx "$pid"; }
signalled() {
    kill "-$1" "$pid"
    finish 2000 && ended_with "$2"
}
running() { [ -d "/proc/$pid/task" ] && [ "$(find "/proc/$pid/task" -mindepth 1 -maxdepth 1 | wc -l)" -gt 2 ]; }

start run "$jobs/lines.so"
printf 'one\n' >&9
wait_until grep -q one "$work/out"
claim 'SIGINT ends a job that waits for standard input' signalled INT 130
claim 'what was printed before is kept' out_is one
claim 'a cancelled job is no failure to be told' silent err

start run --stats "$jobs/endless.so" -- drop
wait_until running
sleep 0.3
claim 'SIGTERM ends a busy job' signalled TERM 143
claim 'the table says that it was cancelled' grep -qE '^cancelled after [0-9.]+ s: [0-9]+ records read' "$work/err"

start run "$jobs/endless.so"
wait_until test -s "$work/out"
claim 'SIGINT ends a job that prints' signalled INT 130
claim 'and the last line is whole' test -z "$(tail -c 1 "$work/out" | tr -d '\n')"

start run --stats "$jobs/endless.so" -- drop
wait_until running
sleep 0.3
together() { kill -TERM "$pid" "$pid"; finish 2000 && ended_with 143; }
claim 'two signals sent together are one' together
claim 'and the end is in order' err_has 'cancelled after'

start run "$jobs/slow_build.so"
wait_until grep -q building "$work/err"
claim 'SIGINT ends the building of a graph' signalled INT 130

start run "$jobs/stubborn.so"
wait_until grep -q hanging "$work/err"
kill -INT "$pid"
sleep 0.3
claim 'a function that does not return keeps the job after one signal' running
claim 'a second signal ends the process at once' signalled INT 130

start run "$jobs/stubborn.so"
wait_until grep -q hanging "$work/err"
kill -INT "$pid"
sleep 0.1
claim 'the second signal counts, whichever it is' signalled TERM 143
done_testing
