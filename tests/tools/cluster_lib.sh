#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of clusters share beside lib.sh: a place of their own for the state, and an end that leaves nothing
# running whatever happens. Sourced after lib.sh.
# shellcheck disable=SC2154 # which sets work and leat
export XDG_STATE_HOME=$work/state
unset http_proxy HTTP_PROXY
cluster_end() {
    local folder
    for folder in "$XDG_STATE_HOME"/leat/*/; do
        [ -e "${folder}cluster.json" ] || continue
        timeout 60 "$leat" cluster stop --cluster "$(basename -- "$folder")" >/dev/null 2>&1
    done
    rm -rf -- "$work"
}
trap '[ "$BASHPID" -ne "$$" ] || cluster_end' EXIT

# state FILTER [NAME]: of the state file of a cluster.
state() { jq -r "$1" "$XDG_STATE_HOME/leat/${2:-default}/cluster.json"; }
# The processes of a cluster, a line each.
processes() { state '.pid, .taskmanagers[].pid' "${1:-default}"; }
gone() {
    local pid
    for pid in "$@"; do
        if [ -e "/proc/$pid/stat" ] && ! grep -q ') [ZX] ' "/proc/$pid/stat"; then
            echo "process $pid is there"
            return 1
        fi
    done
}
# job_state ID STATE: whether the job is in that state.
job_state() { "$leat" status --json "$1" 2>/dev/null | jq -e --arg state "$2" '.state == $state' >/dev/null; }
