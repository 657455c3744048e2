#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of clusters share. Sourced with the program and the folder of the test jobs as arguments, by way of
# tests/tools/lib.sh; further arguments are left in "$@". Each test has a state folder of its own, so clusters of
# several tests do not meet, and whatever is left running at the end is killed.
# shellcheck source=tests/tools/lib.sh disable=SC2034,SC2154
. "$(dirname -- "${BASH_SOURCE[0]}")/../tools/lib.sh"
export XDG_STATE_HOME=$work/state XDG_CACHE_HOME=$work/cache
mkdir -p "$XDG_STATE_HOME"
unset LEAT_JOBMANAGER LEAT_CLUSTER LEAT_SECRET_FILE
# shellcheck disable=SC2034 # the tests use it
many=$jobs/many.so

# Processes of this test: those that have its folder on their command line.
ours() { pgrep -f -- "$work/" | grep -vx "$$" || true; }
sweep() {
    "$leat" cluster stop >/dev/null 2>&1
    local pid
    for pid in $(ours); do
        kill -KILL "$pid" 2>/dev/null
    done
    rm -rf -- "$work"
}
trap '[ "$BASHPID" -ne "$$" ] || sweep' EXIT

# leat_do LIMIT ARGUMENT…: as leat_run, with a limit of so many seconds.
leat_do() {
    status=0
    timeout "$1" "$leat" "${@:2}" >"$work/out" 2>"$work/err" || status=$?
}

# The state of a job, "RUNNING" say.
state_of() { "$leat" status --json "$1" 2>/dev/null | jq -r .state; }
state_is() { [ "$(state_of "$1")" = "$2" ]; }
# ends_as ID STATE: within ten seconds.
ends_as() { wait_until state_is "$1" "$2"; }
failure_of() { "$leat" status --json "$1" 2>/dev/null | jq -r .failure; }
failure_has() { failure_of "$1" | grep -qF -- "$2"; }
# submit_detached ARGUMENT…: the id goes to `id`.
submit_detached() {
    id=$(LEAT_JOB_CLIENT=1 timeout 30 "$leat" submit --detach "$@" 2>"$work/err")
    # shellcheck disable=SC2034 # the tests use it
    [[ $id =~ ^[0-9a-f]{32}$ ]]
}
all_running() { [ "$("$leat" status --json "$1" 2>/dev/null | jq '.tasks | .total == .running')" = true ]; }
manager_pid() { jq .pid "$XDG_STATE_HOME/leat/default/cluster.json"; }
# worker_pid INDEX
worker_pid() { jq ".taskmanagers[] | select(.index == $1) | .pid" "$XDG_STATE_HOME/leat/default/cluster.json"; }
slots_free() { [ "$("$leat" cluster status --json 2>/dev/null | jq '.slots_free')" = "$1" ]; }
# sums_of COUNT: what the job "sum COUNT" prints, worked out by awk.
sums_of() {
    awk -v n="$1" 'BEGIN {
        for (i = 0; i < n; i++) s[i % 10] += i
        for (d = 0; d < 10; d++) printf "%d\t%.0f\n", d, s[d]
    }'
}
