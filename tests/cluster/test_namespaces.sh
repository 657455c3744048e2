#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each process of a cluster in a mount and a network namespace of its own, joined by a bridge, as if each were on a
# machine of its own: what a job needs has to travel. Skipped where namespaces cannot be made.
#
# usage: test_namespaces.sh LEAT JOBS
# shellcheck source=tests/cluster/machines.sh
. "$(dirname -- "$0")/machines.sh"
leave_for_namespaces "$0" "$@"
# shellcheck source=tests/cluster/lib.sh
. "$(dirname -- "$0")/lib.sh"

machines 3
start_manager -D cluster.heartbeat-timeout=5s
for i in 1 2 3; do
    start_worker worker$i
done
claim 'three task managers on machines of their own register' wait_until slots_are 3

# --- what the job brings along is on the client's machine alone ---

inside client mkdir -p "$work/private/job/bin/deep"
inside client cp "$jobs/brought.so" "$jobs/libbrought_number.so" "$work/private/job/"
inside client bash -c "printf 'the table\n' >$work/private/job/table.txt
    printf '#!/bin/sh\necho the tool\n' >$work/private/job/bin/deep/tool; chmod +x $work/private/job/bin/deep/tool"
hidden() { ! inside worker1 test -e "$work/private/job" && ! test -e "$work/private/job"; }
claim 'nobody else sees its files' hidden
submit() { at_client 60 submit "$@"; }
submit -p 3 --file table="$work/private/job/table.txt" --file bin="$work/private/job/bin" "$work/private/job/brought.so"
claim 'a job with a library and cached files succeeds' ended_with 0
expected=$(printf '%s 4711 the table the tool\n' 0 1 2)
claim 'everything has arrived at each of them, executable bit included' test "$(sort "$work/out")" = "$expected"
submit -p 3 "$many" -- sum 100000 0
sums_of 100000 >"$work/expected"
claim 'records cross from machine to machine' cmp <(sort -n "$work/out") "$work/expected"
# Established ones with port 7000, which is 1B58, at either end.
# shellcheck disable=SC2016 # for awk
by_port() { inside "$1" awk '$4 == "01" && $2 $3 ~ /:1B58/' /proc/net/tcp | wc -l; }
over_network() { [ "$(by_port worker1) $(by_port worker2) $(by_port worker3)" = '2 2 2' ]; }
claim 'over the network, as their socket files cannot be seen from elsewhere' over_network

# --- a machine that is cut off ---

claim 'a job is submitted' detach -p 3 "$many" -- slow 100
claim 'it runs on all three' wait_until job_runs
unplug worker2
claim 'cut off, one of them fails the job' wait_until job_is FAILED
claim 'and the failure names it' grep -q 'taskmanager' <(job_failure)
plug worker2
claim 'when it is back, it registers again' wait_until slots_are 3
submit -p 3 "$many" -- sum 100000 0
claim 'and the next job runs on all three' cmp <(sort -n "$work/out") "$work/expected"
done_testing
