#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Submitting jobs to a cluster, and following them.
# shellcheck source=tests/tools/lib.sh
. "$(dirname -- "$0")/lib.sh"
# shellcheck source=tests/tools/cluster_lib.sh
. "$(dirname -- "$0")/cluster_lib.sh"
if ! command -v jq >/dev/null; then
    printf '1..0 # SKIP jq is not installed\n'
    exit 0
fi
wordcount=$jobs/../../examples/wordcount.so
remote=$jobs/remote.so
cd -- "$work" || exit 1
for ((i = 0; i < 2000; i++)); do echo "to be or not to be $((i % 7))"; done >words.txt

leat_run cluster start -w 2
claim 'a cluster is there' ended_with 0

# --- output that is lost ---
# A client that stands still is given up after 15 s, and the job goes on without it; what that is worth is seen below.
leat_run cluster start --cluster small -w 1 -s 2 -D cluster.job-output=4KiB -D cluster.artifact-store=1MiB
claim 'a cluster is there that keeps little' ended_with 0
mkfifo held
exec 9<>held
"$leat" submit --cluster small "$remote" -- wider >&9 2>held_err &
held=$!
held_job() { "$leat" list -a --json --cluster small | jq -re '.jobs[0].id'; }
wait_until held_job >/dev/null
kill -STOP "$held"

# --- waiting ---
"$leat" run -p 2 "$wordcount" -- --input words.txt | sort >expected
leat_run submit -p 2 "$wordcount" -- --input words.txt
claim 'a job that has finished gives 0' ended_with 0
same() { sort out | cmp - expected; }
claim 'its output is what leat run prints' same
claim 'the last line says how it went' grep -qE '^job [0-9a-f]{32} FINISHED after [0-9.]+ m?s$' err
leat_run submit "$remote" -- arguments 'two words' '' é
claim 'arguments arrive as they are' out_is '[arguments][two words][][é]'
leat_run submit "$remote" -- sum
claim 'accumulators are told' err_has 'accumulator sum: 55'
claim 'the greatest' err_has 'accumulator most: 10'
claim 'a list' err_has 'accumulator all: 10 values: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10'
claim 'a histogram' err_has 'accumulator sizes: 10 values, min 1, mean 5.5'
leat_run submit --json "$remote" -- sum
result() { jq -e '.state == "FINISHED" and (.accumulators[] | select(.name == "sum").value == 55)' err; }
claim '--json tells the result in JSON' result
leat_run submit "$remote" -- fail
claim 'a job that fails gives 1' ended_with 1
claim 'and its reason' err_has 'job failed: '
claim 'which names operator and text' grep -q 'unlucky.*seven is unlucky' err
leat_run submit "$remote" -- wide
summed() { awk '{ s += $1 } END { printf "%d %.0f", NR, s }' out; }
claim 'long output arrives whole' test "$(summed)" = '200000 20000100000'
slow() { "$leat" submit "$remote" -- wide 2>err | { sleep 1; sort -n; } | tail -n 1 | grep -qx 200000; }
claim 'also to a slow reader' slow
head_of() {
    "$leat" submit "$jobs/endless.so" 2>err | head -n 2 >out
    [ "${PIPESTATUS[0]}" = 141 ] && silent err
}
claim 'when the reader goes, it ends without a word' head_of
none_runs() { [ "$("$leat" list --json | jq '[.jobs[] | select(.end_time == 0)] | length')" = 0 ]; }
claim 'and the job is cancelled' wait_until none_runs
full() { timeout 20 "$leat" submit "$jobs/endless.so" >/dev/full 2>err; [ $? = 1 ] && err_has 'No space left'; }
claim 'a full disk is an error' full
claim 'and cancels the job' wait_until none_runs

# --- what is refused here ---
before=$("$leat" list -a --json | jq '.jobs | length')
leat_run submit "$jobs/faults.so"
claim 'faults of the graph are told here' refused 3 'usage: faults nothing' 'no_such_field'
leat_run submit "$jobs/no_function.so"
claim 'so are job files that are none' ended_with 3
leat_run submit "$remote" -- $'\xff\xfe'
claim 'arguments that are no UTF-8 are refused' refused 3 'argument 1' 'UTF-8'
leat_run submit "$jobs/lines.so" </dev/null
claim 'standard input stays here' ended_with 3
leat_run submit --file note=nowhere.txt "$remote" -- note
claim 'a file that is not there is refused' ended_with 3
claim 'which names it' refused 3 '"note"' 'nowhere.txt' 'No such file'
leat_run submit --file note "$remote" -- note
claim 'a file needs a name' refused 2 '--file note' 'name=path'
leat_run submit --detach --wait "$remote"
claim 'one cannot wait and not wait' refused 2 '--detach'
leat_run submit -p 40000 "$remote"
claim 'a bad setting is refused' refused 2 '-p 40000'
claim 'and no job is created' test "$before" = "$("$leat" list -a --json | jq '.jobs | length')"

# --- a store that is too small ---
for i in 1 2 3 4; do head -c 600000 /dev/urandom >"large$i"; done
leat_run submit --cluster small --file one=large1 --file two=large2 "$remote" -- arguments
claim 'files that are too much together are refused' refused 3 'bytes together' 'cluster.artifact-store'
at_once() {
    local i pids=()
    for i in 1 2 3 4; do
        timeout 60 "$leat" submit --cluster small --file "note=large$i" "$remote" -- arguments "$i" >"at_once$i" 2>&1 &
        pids+=("$!")
    done
    for i in 1 2 3 4; do
        wait "${pids[i - 1]}" || { cat "at_once$i" && return 1; }
        grep -qF "[arguments][$i]" "at_once$i" || return 1
    done
}
claim 'of those that do not fit at the same time, one waits for the other' at_once

# --- files and source files ---
echo 'remember the milk' >note.txt
leat_run submit --file note=note.txt "$remote" -- note
claim 'a named file comes along' out_is 'remember the milk'
if command -v "${CC:-cc}" >/dev/null; then
    cat >job.c <<'TEXT'
#include <leat/leat.h>
LEAT_JOB(env, argc, argv)
{
    leat_print(leat_sequence(env, 1, argc > 1 ? 2 : 3));
}
TEXT
    leat_run submit job.c
    claim 'a source file is compiled first' test "$(sort out | tr '\n' ' ')" = '1 2 3 '
fi

# --- detached ---
leat_run submit --detach -p 2 --name 'my words' "$wordcount" -- --input words.txt
id=$(cat out)
claim 'detached, the id is all that is printed' grep -qxE '[0-9a-f]{32}' out
claim 'and it is over soon' wait_until job_state "$id" FINISHED
leat_run logs --out "${id:0:8}"
claim 'its output is kept' same
leat_run logs --out --json "$id"
claim 'also as JSON' json_has '.output | contains("be\t4000\n")'
leat_run logs "$id"
claim 'it has a log' out_has FINISHED
leat_run list
claim 'list shows what has not ended' silent out
leat_run list -a
claim 'with -a the others too' out_has 'my words'
leat_run list --json
claim 'so does its JSON' json_has '.jobs == []'
leat_run list --json -a
claim 'which has the others with -a' json_has '[.jobs[] | select(.name == "my words")] | length == 1'
leat_run status "${id:0:6}"
claim 'status shows the tasks' out_has 'count words'
leat_run status --json "$id"
claim 'and is JSON if wanted' json_has '.name == "my words" and .state == "FINISHED" and (.vertices | length) == 3'
leat_run why "$id"
claim 'why has nothing to say of it' out_has 'nothing holds it up'
leat_run why --json "$id"
claim 'in JSON neither' json_has '.bottleneck == null'
leat_run metrics "$id"
claim 'it has metrics' out_has numRecordsIn
leat_run metrics --get numRestarts --json "$id"
claim 'which can be chosen' json_has 'length == 1 and .[0].id == "numRestarts" and .[0].value == "0"'
leat_run metrics --get numRestarts,noSuch,nor.this "$id"
claim 'names that there are not are an error' refused 1 '"noSuch"' '"nor.this"'
claim 'and only those are named' err_lines 2
leat_run cancel "$id"
claim 'what has ended cannot be cancelled' refused 1 FINISHED
for verb in status cancel logs why metrics; do
    leat_run "$verb" ffffffffffff
    claim "$verb of an unknown job is an error" refused 1 ffffffffffff
    leat_run "$verb" xyz
    claim "$verb of what is no id is a usage error" refused 2 xyz 'leat list -a'
    leat_run "$verb"
    claim "$verb wants an id" refused 2 'the id of the job is missing'
done

# --- cancelling ---
long=$(printf 'long %.0s' {1..60})
leat_run submit --detach --name "$long" "$jobs/endless.so" -- drop
id=$(cat out)
claim 'an endless job runs' wait_until job_state "$id" RUNNING
leat_run list
claim 'and is listed' out_has "${id:0:12}"
claim 'its long name is shortened' test "$(wc -L <out)" -le 120
leat_run cancel "${id:0:10}"
claim 'cancel ends it, and names it in full' out_is "$id CANCELED"
leat_run submit --detach -p 2 "$jobs/endless.so" -- drop
first=$(cat out)
leat_run submit --detach -p 2 "$jobs/endless.so" -- drop
second=$(cat out)
waits() { "$leat" status "$second" | grep -q '^waits for 2 slots'; }
claim 'a job without slots says what it waits for' wait_until waits
leat_run cancel "$second"
claim 'it can be cancelled as well' out_is "$second CANCELED"
leat_run cancel --json "$first"
claim 'cancel --json' json_has '.state == "CANCELED"'

# in_background ARGUMENT…: a client that waits; finish: its status is in `status`.
in_background() {
    : >out
    "$leat" submit "$@" >out 2>err &
    pid=$!
}
finish() {
    wait_until ended || kill -KILL "$pid"
    status=0
    wait "$pid" || status=$?
}
ended() { ! jobs -rp | grep -qx "$pid"; }
in_background "$jobs/endless.so"
wait_until test -s out
kill -INT "$pid"
finish
claim 'SIGINT cancels the job' ended_with 130
claim 'and says how it ended' err_has 'CANCELED after'
claim 'it is over then' none_runs
in_background "$jobs/endless.so" -- drop
wait_until eval '! none_runs'
id=$("$leat" list --json | jq -r '.jobs[0].id')
wait_until job_state "$id" RUNNING
"$leat" cancel "$id" >/dev/null
finish
claim 'a job that others cancel gives 4' ended_with 4

# --- on a terminal ---
if command -v script >/dev/null; then
    # script passes the end of its input on, and the terminal would echo that; so its input never ends.
    mkfifo never
    exec 8<>never
    TERM=xterm timeout 20 script -qfec "timeout -s INT 2 '$leat' submit '$jobs/endless.so' -- drop" /dev/null \
        <&8 >screen 2>&1
    drawn() { grep -qE 'records  .*/s  [0-9]+ s  [0-9]+/[0-9]+ tasks  back-pressure' screen; }
    claim 'a terminal gets a progress line' drawn
    claim 'which is erased before the last line' grep -qE 'K.*CANCELED after' <(tail -n 1 screen)
    TERM=xterm timeout 20 script -qfec "'$leat' submit '$remote' -- arguments x" /dev/null <&8 >screen 2>&1
    claim 'results have rows of their own' grep -qE '(^|K)\[arguments\]\[x\]' screen
fi

# --- what became of the client that stood still ---
small_finished() { "$leat" status --json --cluster small "$lost" | jq -e '.state == "FINISHED"' >/dev/null; }
lost=$("$leat" list -a --json --cluster small | jq -r '.jobs[-1].id')
wait_until small_finished || wait_until small_finished
cat <&9 >held_out &
reader=$!
kill -CONT "$held"
pid=$held
finish
claim 'a client whose job went on without it does not end with success' ended_with 1
claim 'it says that output is lost' grep -qE '[0-9]+ bytes of the job.s output are lost' held_err
kill "$reader"
leat_run cluster stop --cluster small

# --- libraries beside the job file ---
if command -v "${CC:-cc}" >/dev/null; then
    mkdir -p beside
    echo 'int seven(void); int seven(void) { return 7; }' >seven.c
    echo '#include <leat/leat.h>
int seven(void);
LEAT_JOB(env, argc, argv) { leat_print(leat_sequence(env, seven(), 7)); }' >uses_seven.c
    # shellcheck disable=SC2016 # the loader expands it
    built() {
        "${CC:-cc}" -shared -fPIC -o beside/libseven.so seven.c &&
            "$leat" build uses_seven.c -o beside/job.so -- -Lbeside -lseven '-Wl,-rpath,$ORIGIN'
    }
    if built >/dev/null 2>&1; then
        leat_run submit beside/job.so
        claim 'a library beside the job file comes along' out_is 7
    fi
fi

# --- losses ---
in_background "$jobs/endless.so" -- drop
wait_until eval '! none_runs'
id=$("$leat" list --json | jq -r '.jobs[0].id')
wait_until job_state "$id" RUNNING
worker=$("$leat" status --json "$id" | jq -r '.vertices[0].tasks[0].worker' | sed 's/.*pid \([0-9]*\).*/\1/')
kill -KILL "$worker"
finish
claim 'a task manager that dies fails the job' ended_with 1
claim 'and the client says so' grep -qE 'job failed: .*taskmanager [12] .*signal 9' err
whole() { [ "$("$leat" cluster status --json | jq .slots_free)" = 2 ]; }
wait_until whole
in_background "$jobs/endless.so" -- drop
wait_until eval '! none_runs'
kill -KILL "$(state .pid)"
finish
claim 'a job manager that dies ends the waiting' ended_with 1
claim 'with a reason' err_has 'is no longer waited for'
leat_run cluster stop
claim 'and the cluster can be stopped' ended_with 0
done_testing
