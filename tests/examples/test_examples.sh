#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The examples do what their first lines say. (README.md runs wordcount.c and embedded.c.)
#
# usage: test_examples.sh LEAT JOBS, the program and the folder of the compiled examples
# shellcheck source=tests/tools/lib.sh
. "$(dirname -- "$0")/../tools/lib.sh"

# run_sorted ARGUMENT…: leat_run, with its output sorted.
run_sorted() {
    leat_run "$@"
    sort -o "$work/out" "$work/out"
}
succeeded() { ended_with 0 && out_is "$1"; }

# --- csv_sums: the columns stand in another order, an amount is missing, one line is too short ---

printf 'Amount (cents),Item,Shop\r\n' >"$work/orders.csv"
printf '250,"tea, green",Oslo\r\n100,milk,Turku\r\n,bag,Turku\r\n-50,"tea, green",Oslo\r\nrubbish\r\n' \
    >>"$work/orders.csv"
printf '7,"a ""very""\nlong name",Bergen\r\n' >>"$work/orders.csv"
for p in 1 3; do
    run_sorted run -p "$p" "$jobs/csv_sums.so" -- "$work/orders.csv"
    claim "csv_sums: sums by shop at parallelism $p" succeeded $'Bergen\t7\nOslo\t200\nTurku\t100'
    claim "csv_sums: a bad line is told with its place at parallelism $p" grep -qE 'orders\.csv.*6.*rubbish' "$work/err"
done
leat_run run -p 2 "$jobs/csv_sums.so" -- "$work/orders.csv" "$work/sums.csv"
claim 'csv_sums: the result is CSV with a header' \
    cmp <(printf 'Shop,Amount (cents)\nBergen,7\nOslo,200\nTurku,100\n') \
    <(head -n 1 "$work/sums.csv" && tail -n +2 "$work/sums.csv" | sort)
leat_run run "$jobs/csv_sums.so" -- "$work/none.csv"
claim 'csv_sums: a missing file is named' err_has 'none.csv'
leat_run run "$jobs/csv_sums.so"
claim 'csv_sums: without arguments it says how it is used' refused 3 'usage: csv_sums.so'

# --- side_outputs ---

printf '%s\n' 'INFO begun' 'ERROR disk full' 'WARN slow' 'ERROR disk gone' 'ERRORS' 'WARN ' >"$work/server.log"
for p in 1 3; do
    run_sorted run -p "$p" "$jobs/side_outputs.so" -- "$work/server.log"
    # `WARN ` is a warning without a text; `ERRORS` is no error.
    claim "side_outputs: lines are sorted, united and counted at parallelism $p" \
        cmp "$work/out" <(printf '%s\n' 'ERRORS' 'INFO begun' $'alert> ERROR\tdisk full' $'alert> ERROR\tdisk gone' \
            $'alert> WARN\t' $'alert> WARN\tslow' $'count> ERROR\t2' $'count> WARN\t2' | sort)
done

# --- control_stream: each step waits until the one before has shown ---

mkfifo "$work/words" "$work/control"
shows() { [ "$(grep -cxF -- "$1" "$work/out")" -eq "$2" ]; }
: >"$work/out"
timeout 60 "$leat" run "$jobs/control_stream.so" -- "$work/control" <"$work/words" >"$work/out" 2>"$work/err" &
pid=$!
exec 8>"$work/words" 9>"$work/control"
printf 'tea\nmilk\n' >&8
claim 'control_stream: at first nothing is blocked' wait_until shows milk 1
printf 'block tea\n' >&9
claim 'control_stream: a word is blocked while the job runs' wait_until shows '(blocked: tea)' 1
printf 'tea\nbread\n' >&8
claim 'control_stream: others still pass' wait_until shows bread 1
printf 'nonsense\nallow tea\n' >&9
claim 'control_stream: the word is allowed again' wait_until shows '(allowed: tea)' 1
printf 'tea\n' >&8
exec 8>&- 9>&-
status=0
wait "$pid" || status=$?
claim 'control_stream: the blocked word is missing, and nothing else' \
    succeeded $'tea\nmilk\n(blocked: tea)\nbread\n(allowed: tea)\ntea'
claim 'control_stream: a line that is no command is skipped and counted' err_has '1 record'
printf 'block %s\n' beer wine >"$work/commands"
status=0
printf '%s\n' a b c d | timeout 20 "$leat" run -p 3 "$jobs/control_stream.so" -- "$work/commands" \
    2>"$work/err" | sort >"$work/out" || status=$?
claim 'control_stream: subtasks share the words, and the first acknowledges' \
    succeeded $'(blocked: beer)\n(blocked: wine)\na\nb\nc\nd'

# --- iterate: counted by hand ---

steps=$'1\t0\n10\t6\n2\t1\n3\t7\n4\t2\n5\t5\n6\t8\n7\t16\n8\t3\n9\t19'
for p in 1 2; do
    run_sorted run -p "$p" "$jobs/iterate.so" -- 10
    claim "iterate: every number arrives at parallelism $p" succeeded "$steps"
done
leat_run run "$jobs/iterate.so" -- none
claim 'iterate: a wrong argument is refused' refused 3 'usage: iterate.so'

# --- countries, shares ---

printf 'fi Finland\nno Norway\nse Sweden and more\n' >"$work/countries.txt"
printf 'no\nxx\nfi\nse\n' >"$work/codes"
for p in 1 3; do
    run_sorted run -p "$p" --file countries="$work/countries.txt" "$jobs/countries.so" -- "$work/codes"
    claim "countries: codes become names at parallelism $p" succeeded $'Finland\nNorway\nSweden and more\nxx'
done
leat_run run "$jobs/countries.so" -- "$work/codes"
claim 'countries: without the file the job fails, and says how to name it' \
    err_has 'there is no cached file "countries": the job has none'
leat_run run --file countries="$work/none" "$jobs/countries.so" -- "$work/codes"
claim 'countries: a file that is not there keeps the job from starting' \
    err_has "the cached file \"countries\" cannot be found at $work/none"
leat_run run --file countries "$jobs/countries.so" -- "$work/codes"
claim 'countries: a file needs a name and a path' refused 2 'name=path is wanted'

printf 'name,amount\na,1\nb,2.5\nc,1.5\n' >"$work/amounts.csv"
for p in 1 3; do
    run_sorted run -p "$p" "$jobs/shares.so" -- "$work/amounts.csv"
    claim "shares: each line is divided by the sum of all at parallelism $p" succeeded $'a\t20\nb\t50\nc\t30'
done
"$leat" plan -p 2 "$jobs/shares.so" -- "$work/amounts.csv" >"$work/out" 2>"$work/err"
claim 'shares: the plan shows the variable' grep -q 'broadcast variable total' "$work/out"
claim 'shares: and that the lines wait for it' grep -q 'read when complete' "$work/out"

# --- custom_source_sink ---

leat_run run "$jobs/custom_source_sink.so" -- 3 20 "$work/ticks.txt"
claim 'custom_source_sink: the file holds every tick in order' \
    cmp "$work/ticks.txt" <(printf 'tick %d of subtask 0\n' 1 2 3)
leat_run run -p 3 "$jobs/custom_source_sink.so" -- 4 1 "$work/ticks.txt"
claim 'custom_source_sink: every subtask ticks' \
    cmp <(sort "$work/ticks.txt") <(for i in 1 2 3 4; do printf "tick $i of subtask %d\n" 0 1 2; done | sort)
began=$(now_ms)
leat_run run "$jobs/custom_source_sink.so" -- 4 50 "$work/ticks.txt"
claim 'custom_source_sink: ticks take their time' test $(($(now_ms) - began)) -ge 200
leat_run run "$jobs/custom_source_sink.so" -- 1 1 "$work/no/such/folder"
claim 'custom_source_sink: a file that cannot be made fails the job by name' err_has 'no/such/folder cannot be written'
# --- embedded_cpp, where there is a C++ compiler: 1² + … + 100² and 1³ + … + 100³ ---

if [ -x "$jobs/embedded_cpp" ]; then
    "$jobs/embedded_cpp" >"$work/out" 2>"$work/err"
    status=$?
    claim 'embedded_cpp: two jobs at once give their sums, and all memory comes back' \
        succeeded $'squares 338350\ncubes 25502500'
fi
done_testing
