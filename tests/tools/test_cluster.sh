#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Clusters of this machine: starting, twice and over a dead one, showing, stopping; nothing is left behind.
# shellcheck source=tests/tools/lib.sh
. "$(dirname -- "$0")/lib.sh"
# shellcheck source=tests/tools/cluster_lib.sh
. "$(dirname -- "$0")/cluster_lib.sh"
if ! command -v jq >/dev/null; then
    printf '1..0 # SKIP jq is not installed\n'
    exit 0
fi
folder=$XDG_STATE_HOME/leat/default

leat_run list
claim 'without a cluster there is a hint' refused 1 'no cluster is running' 'leat cluster start'
leat_run list --cluster other
claim 'which names the cluster that was asked for' refused 1 '"other"' '--cluster other'
leat_run cluster status
claim 'status says that none is running' refused 3 '"default" is not running'
leat_run cluster stop
claim 'stop has nothing to do' ended_with 0
claim 'and says so' out_is 'cluster "default" was not running'
leat_run cluster start -w 0
claim 'a cluster without task managers is refused' refused 2 '-w 0'
leat_run cluster begin
claim 'an unknown action is refused' refused 2 '"begin"' 'start, stop, status'
leat_run cluster start --cluster ../evil
claim 'a name that leaves the folder is refused' refused 2 '"../evil"'
leat_run cluster start -D taskmanager.slotz=2
claim 'a misspelt setting starts nothing' refused 2 'taskmanager.slotz' 'taskmanager.slots'
leat_run cluster stop -m 127.0.0.1:1
claim '-m cannot be stopped' refused 2 '-m'

exec 7<>"$work/open"
leat_run cluster start -w 2
exec 7<&-
claim 'start prints the address and what there is' grep -qxE \
    'cluster "default" is running at 127\.0\.0\.1:[0-9]+: 2 task managers, 2 slots' "$work/out"
leat_run cluster status --json
inherits() { ! find -L "/proc/$(state .pid)/fd" -samefile "$work/open" 2>/dev/null | grep -q .; }
claim 'what was open where it was started is not open in it' inherits
claim 'it can take jobs then' json_has '.taskmanagers == 2 and .slots_total == 2 and .slots_free == 2'
leat_run cluster status
claim 'status shows its task managers' out_has 'taskmanager 2 ('
address=$(state .rest)
leat_run cluster start
claim 'started twice, start says that it is running' ended_with 0
claim 'where it is running' out_is "cluster \"default\" is running already at $address: 2 task managers, 2 slots"
leat_run cluster start -w 3
claim 'another shape is refused' refused 3 'running already' '2 task managers' 'leat cluster stop'
leat_run cluster start --cluster third --port "${address##*:}"
claim 'a port in use is an error that says so' refused 1 'in use'
claim 'and leaves nothing behind but logs' test -z \
    "$(find "$XDG_STATE_HOME/leat/third" -mindepth 1 ! -name '*.log*')"
leat_run list -m "${address##*:}"
claim 'an address without a host is refused' refused 1 "${address##*:}"
leat_run list -m "$address"
claim '-m names the job manager' ended_with 0
leat_run list -m 127.0.0.1:http
claim 'a port that is none is refused' refused 2 '127.0.0.1:http' 'HOST:PORT'
leat_run list -m 127.0.0.1:1
claim 'nobody there is an error' refused 1 '127.0.0.1:1' 'refused'
LEAT_JOBMANAGER=127.0.0.1:1 leat_run list
claim 'LEAT_JOBMANAGER is heeded' refused 1 '127.0.0.1:1'
LEAT_JOBMANAGER=127.0.0.1:1 leat_run list --cluster default
claim '--cluster is stronger' ended_with 0

# Another one does not meet it.
leat_run cluster start -w 1 -s 3 --cluster other --json
claim 'a second cluster has another name' json_has '.cluster == "other" and .slots == 3 and .already_running == false'
other=$(processes other)
leat_run submit --detach --cluster other "$jobs/endless.so" -- drop
claim 'jobs go to the one that is named' test "$("$leat" list --json --cluster other | jq '.jobs | length')" = 1
claim 'and only there' test "$("$leat" list --json | jq '.jobs | length')" = 0
LEAT_CLUSTER=other leat_run cluster stop
claim 'LEAT_CLUSTER names it too' out_is 'cluster "other" is stopped'
# shellcheck disable=SC2086 # a process each
claim 'its processes are gone' gone $other
claim 'the other one goes on' "$leat" list

# A task manager that dies comes back.
victim=$(state '.taskmanagers[0].pid')
kill -KILL "$victim"
back() {
    [ "$(state '.taskmanagers[0].pid')" != "$victim" ] &&
        [ "$("$leat" cluster status --json | jq .slots_total)" = 2 ]
}
claim 'a task manager that dies is started again' wait_until back

# A job manager that dies leaves its task managers behind.
left=$(processes)
kill -KILL "$(state .pid)"
wait_until gone "$(head -n 1 <<<"$left")"
leat_run list
claim 'a dead job manager is told' refused 1 'is gone' 'leat cluster start'
leat_run cluster status
claim 'to status it is no cluster' refused 3 '"default" is not running' 'leat cluster start'
leat_run cluster start -w 1
claim 'start cleans up after it' grep -qE \
    'had died; its files are removed(, and its (2 task managers are|task manager is) ended)?$' "$work/err"
claim 'and starts a new one' out_has 'is running at 127.0.0.1:'
# shellcheck disable=SC2086 # a process each
claim 'the old processes are gone' gone $left
left=$(processes)
kill -KILL "$(state .pid)"
wait_until gone "$(head -n 1 <<<"$left")"
leat_run cluster stop
claim 'stop cleans up after one that died' ended_with 0
# shellcheck disable=SC2086 # a process each
claim 'its task managers are gone' gone $left

# One that is stopped cannot answer, but can be ended.
leat_run cluster start -w 1
left=$(processes)
kill -STOP "$(state .pid)"
leat_run cluster start -w 1
claim 'one that does not answer is not taken for one that runs' refused 1 'does not answer' 'leat cluster stop'
leat_run cluster stop
claim 'one that was stopped by a signal is ended' ended_with 0
# shellcheck disable=SC2086 # a process each
claim 'with all it has' gone $left
claim 'only logs are left' test -z "$(find "$folder" -mindepth 1 ! -name '*.log*')"
claim 'which nobody else may read' test -z "$(find "$folder" -mindepth 1 -perm /077)"
HOME=$work XDG_STATE_HOME=relative leat_run cluster status
claim 'a relative XDG_STATE_HOME is passed over aloud' refused 3 'XDG_STATE_HOME' '"relative" is not an absolute path'
claim 'once' err_lines 2
mkdir "$work/home"
HOME=$work/home XDG_STATE_HOME=relative leat_run cluster start -w 1
claim 'nor more often at a start' err_lines 1
HOME=$work/home XDG_STATE_HOME=relative leat_run cluster status
claim 'and a status' err_lines 1
HOME=$work/home XDG_STATE_HOME=relative leat_run cluster stop
claim 'or at an end' err_lines 1

# Two starts at once are one start.
"$leat" cluster start -w 1 >"$work/one" 2>&1 &
first=$!
leat_run cluster start -w 1
wait "$first"
said() { cat "$work/one" "$work/out" | grep -c "$1"; }
once() { [ "$(said 'is running at')" = 1 ] && [ "$(said 'running already')" = 1 ]; }
claim 'of two starts at once the second finds the first' once
leat_run cluster stop
done_testing
