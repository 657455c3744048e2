#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The processes of a cluster by themselves: in the foreground, with logs where they are wanted, ended in order.
# shellcheck source=tests/tools/lib.sh
. "$(dirname -- "$0")/lib.sh"
# shellcheck source=tests/tools/cluster_lib.sh
. "$(dirname -- "$0")/cluster_lib.sh"
if ! command -v jq >/dev/null; then
    printf '1..0 # SKIP jq is not installed\n'
    exit 0
fi
export TMPDIR=$work/tmp
mkdir "$TMPDIR"
cd -- "$work" || exit 1
daemons=()
# Whatever happens, none of them outlives the test.
trap '[ "$BASHPID" -ne "$$" ] || { kill -KILL "${daemons[@]}" 2>/dev/null; cluster_end; }' EXIT
# daemon NAME ARGUMENT…: in the background; its id is in `pid`.
daemon() {
    "$leat" "${@:2}" >"$1.out" 2>"$1.err" &
    pid=$!
    daemons+=("$pid")
}
# ends PID STATUS
ends() {
    local got=0
    wait_until gone "$1" || return 1
    wait "$1" 2>/dev/null || got=$?
    [ "$got" -eq "$2" ] || { echo "status $got"; return 1; }
}

daemon manager jobmanager --port 0 --rpc-port 0 --state-file state.json
manager=$pid
claim 'a job manager says where it is' wait_until test -s state.json
rest=$(jq -r .rest state.json) rpc=$(jq -r .rpc state.json)
claim 'its log is on standard error, with day, time and level' \
    grep -qE '^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}\.[0-9]{3} info  ' manager.err
claim 'and nothing on standard output' test ! -s manager.out
leat_run list -m "$rest"
claim 'it takes requests' ended_with 0
daemon worker taskmanager -m "$rpc" -s 2 --log-file worker.log
worker=$pid
slots() { [ "$("$leat" cluster status -m "$rest" --json | jq .slots_free)" = "$1" ]; }
claim 'a task manager offers its slots' wait_until slots 2
claim 'its log is where it was wanted' grep -qE '^[0-9-]{10} [0-9:.]{12} info  ' worker.log
quiet() { [ ! -s worker.err ] && [ ! -s worker.out ]; }
claim 'and nowhere else' quiet
echo 'a b a' >words.txt
leat_run submit -m "$rest" -p 2 "$jobs/../../examples/wordcount.so" -- --input words.txt
claim 'together they run jobs' test "$(sort out | tr '\t\n' '  ')" = 'a 2 b 1 '
leat_run cluster status -m "$rest"
claim 'status shows them' out_has 'taskmanager'
daemon third jobmanager --port "${rest##*:}" --rpc-port 0
claim 'a port in use is an error' ends "$pid" 1
claim 'which is told' grep -q 'leat jobmanager: .*in use' third.err
daemon stranger taskmanager -m "$rest" -D taskmanager.registration-timeout=1s
claim 'a task manager that finds no job manager gives up' ends "$pid" 1
kill -TERM "$worker"
claim 'SIGTERM ends a task manager in order' ends "$worker" 0
claim 'its slots are gone' wait_until slots 0
kill -HUP "$manager"
leat_run list -m "$rest"
claim 'SIGHUP does nothing' ended_with 0
kill -INT "$manager"
claim 'SIGINT ends a job manager in order' ends "$manager" 0
claim 'and it removes its state' test ! -e state.json
claim 'nothing is left in TMPDIR' test -z "$(ls -A "$TMPDIR")"

daemon both jobmanager --port 0 --rpc-port 0 --state-file state.json -w 2 -D workers=1
both=$pid
wait_until test -s state.json
rest=$(jq -r .rest state.json)
claim 'one with -w has task managers of its own' wait_until slots 2
workers=$(jq -r '.taskmanagers[].pid' state.json)
kill -TERM "$both"
claim 'it ends in order' ends "$both" 0
# shellcheck disable=SC2086 # a process each
claim 'with them' gone $workers
claim 'nothing is left in TMPDIR of all that' test -z "$(ls -A "$TMPDIR")"
done_testing
