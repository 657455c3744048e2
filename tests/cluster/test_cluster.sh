#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A local cluster of three, from start to stop: what a user sees.
#
# usage: test_cluster.sh LEAT JOBS WORDCOUNT
# shellcheck source=tests/cluster/lib.sh
. "$(dirname -- "$0")/lib.sh"
wordcount=$(readlink -f -- "$3")

# Real text, of some megabytes.
cat /usr/share/common-licenses/* >"$work/licences.txt" 2>/dev/null
for _ in 1 2 3 4 5 6 7 8; do cat "$work/licences.txt"; done >"$work/text.txt"

leat_do 20 list
claim 'without a cluster a client says so' refused 1 'no cluster' 'leat cluster start'
leat_do 40 cluster start -w 3
claim 'a cluster of three starts' ended_with 0
claim 'and tells its address' grep -qE '127\.0\.0\.1:[0-9]+' "$work/out"
leat_do 20 cluster status --json
claim 'all three are there' json_has '.taskmanagers == 3 and .slots_total == 3 and .slots_free == 3'
leat_do 20 cluster start -w 3
claim 'started twice, it says so and leaves the first alone' ended_with 0
claim 'in words' grep -qi 'already' "$work/out" "$work/err"

# --- word count ---

leat_do 60 run -p 3 "$wordcount" -- --input "$work/text.txt"
sort "$work/out" >"$work/embedded"
leat_do 60 submit --wait -p 3 "$wordcount" -- --input "$work/text.txt"
sort "$work/out" >"$work/cluster"
claim 'a word count over three task managers succeeds' ended_with 0
claim 'and gives what the embedded one gives' cmp "$work/embedded" "$work/cluster"
tr -s ' \t\n\v\f\r' '\n' <"$work/text.txt" | grep -v '^$' | sort | uniq -c |
    awk '{ print $2 "\t" $1 }' | sort >"$work/awk"
claim 'which is what sort and uniq give' cmp "$work/awk" "$work/cluster"
leat_do 20 list --json -a
claim 'the job is listed as finished' json_has '.jobs[0].state == "FINISHED"'

# --- relative paths are the client's ---

relative() { (cd "$work" && timeout 60 "$leat" submit -p 3 "$wordcount" -- --input text.txt | sort | cmp - embedded); }
claim 'a relative path is meant from where the client stands' relative
own_sink() {
    (cd "$work" && timeout 60 "$leat" submit "$(dirname -- "$wordcount")/custom_source_sink.so" -- 3 1 ticks.txt)
}
claim 'for functions that open files themselves too' own_sink
claim 'which is where their files are' grep -qx 'tick 3 of subtask 0' "$work/ticks.txt"

# --- accumulators, states, ids ---

leat_do 60 submit -p 3 "$many" sum 1000 0
claim 'arguments stand behind --' refused 2
leat_do 60 submit -p 3 "$many" -- sum 100000 0
claim 'a keyed sum over three task managers' ended_with 0
sums_of 100000 >"$work/expected"
claim 'is right' cmp <(sort -n "$work/out") "$work/expected"
claim 'the client tells the accumulators' grep -qE 'records.*100000' "$work/err"
leat_do 60 submit -D memory.network=64KiB -D buffer-timeout=10ms "$many" -- sum 1000 0
claim 'a setting of processes is told to have no effect on a job' err_has 'memory.network is a setting of the cluster'
claim 'and no other' test "$(grep -c note: "$work/err")" = 1
submit_detached --name 'a job that lasts' -p 3 "$many" -- slow 100
claim 'a detached submission prints the id' test ${#id} -eq 32
claim 'all its tasks run' wait_until all_running "$id"
leat_do 20 status "${id:0:8}"
claim 'an id may be shortened' out_has 'a job that lasts'
leat_do 20 status "${id:0:8}zz"
claim 'one that is none is refused' refused 2 zz
leat_do 20 status "00000000"
claim 'and so is one that no job has' refused 1 00000000
leat_do 20 cancel "$id"
claim 'an unbounded job is cancelled' ended_with 0
claim 'and is CANCELED' ends_as "$id" CANCELED
claim 'its slots are free' wait_until slots_free 3

# --- the output of a detached job ---

submit_detached -p 1 "$many" -- sum 1000 0
sums_of 1000 >"$work/expected"
claim 'a detached job finishes' ends_as "$id" FINISHED
leat_do 20 logs --out "$id"
claim 'its output is kept' cmp <(sort -n "$work/out") "$work/expected"

# --- why ---

submit_detached -p 1 "$many" -- slow 20000
wait_until all_running "$id"
names_slow_sink() { "$leat" why --json "$id" 2>/dev/null | jq -e '.bottleneck.name | test("slow sink")'; }
claim 'why names a slow sink' wait_until names_slow_sink
leat_do 20 why "$id"
claim 'in words too' out_has 'slow sink'
leat_do 20 cancel "$id"
ends_as "$id" CANCELED

# --- a task manager dies ---

submit_detached -p 3 "$many" -- slow 100
wait_until all_running "$id"
kill -KILL "$(worker_pid 2)"
claim 'a job whose task manager was killed fails' ends_as "$id" FAILED
claim 'and says which one and why' failure_has "$id" 'signal 9'
claim 'the task manager is started again' wait_until slots_free 3
leat_do 60 submit -p 3 "$many" -- sum 1000 0
claim 'and takes part in the next job' cmp <(sort -n "$work/out") "$work/expected"

# --- rejected records ---

printf 'Amount (cents),Item,Shop\n250,tea,Oslo\nrubbish\n' >"$work/orders.csv"
examples=$(dirname -- "$wordcount")
leat_do 60 run "$examples/csv_sums.so" -- "$work/orders.csv"
grep 'record rejected by' "$work/err" >"$work/rejected"
leat_do 60 submit "$examples/csv_sums.so" -- "$work/orders.csv"
claim 'rejected records are told as leat run tells them' grep -qxFf "$work/rejected" "$work/err"

# --- output that is kept in part ---

export LEAT_CLUSTER=small
leat_do 40 cluster start -w 1 -D cluster.job-output=4KiB
submit_detached "$wordcount" -- --input "$work/text.txt"
claim 'a job that prints more than is kept finishes' ends_as "$id" FINISHED
leat_do 20 logs --out "$id"
claim 'what is no longer kept is told' grep -q 'no longer kept' "$work/err"
claim 'the newest output is there' test "$(wc -c <"$work/out")" -gt 2000
claim 'in whole lines' test -z "$(sort "$work/out" | comm -23 - "$work/cluster")"
leat_do 20 cluster stop
unset LEAT_CLUSTER

# --- the end ---

leat_do 20 cluster stop
claim 'stop succeeds' ended_with 0
nothing_left() { [ -z "$(ours)" ]; }
claim 'no process is left' wait_until nothing_left
claim 'nor any state' test ! -e "$XDG_STATE_HOME/leat/default/cluster.json"
leat_do 20 cluster stop
claim 'stopping again says that there is none' out_has 'was not running'
done_testing
