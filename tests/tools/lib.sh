#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of the program share. Sourced with LEAT, the program, and JOBS, the folder of the test jobs, as
# arguments; prints TAP.
set -uo pipefail
export LC_ALL=C
# What whoever runs the tests has set for themselves must not count.
unset "${!LEAT_@}" MALLOC_CONF NO_COLOR CC CXX
export LEAT_CONFIG=/dev/null
leat=$(readlink -f -- "$1")
# shellcheck disable=SC2034 # the tests use it
jobs=$(readlink -f -- "$2")
work=$(mktemp -d)
# A subshell that a signal ends would run the trap too.
trap '[ "$BASHPID" -ne "$$" ] || rm -rf -- "$work"' EXIT
claims=0
# shellcheck disable=SC2034 # tests set it too
status=0

# leat_run ARGUMENT…: runs the program; its status is left in `status`, what it printed in $work/out and $work/err.
leat_run() {
    status=0
    timeout 20 "$leat" "$@" >"$work/out" 2>"$work/err" || status=$?
}

# claim TEXT COMMAND…: holds when the command succeeds.
claim() {
    claims=$((claims + 1))
    if "${@:2}" >"$work/said" 2>&1; then
        printf 'ok %d - %s\n' "$claims" "$1"
    else
        printf 'not ok %d - %s\n' "$claims" "$1"
        {
            printf 'command: %s\nlast status: %s\n' "${*:2}" "$status"
            cat "$work/said"
            sed 's/^/out: /' "$work/out" | head -n 20
            sed 's/^/err: /' "$work/err" | head -n 20
        } 2>/dev/null | sed 's/^/# /'
    fi
}

# The checks that claims are made of.
ended_with() { [ "$status" -eq "$1" ]; }
out_is() { [ "$(cat "$work/out")" = "$1" ]; }
out_has() { grep -qF -- "$1" "$work/out"; }
err_has() { grep -qF -- "$1" "$work/err"; }
err_lines() { [ "$(wc -l <"$work/err")" -eq "$1" ]; }
silent() { [ ! -s "$work/$1" ]; }

# Whether a jq filter holds for what was printed.
json_has() { jq -e "$1" "$work/out"; }

# refused STATUS TEXT…: the status, nothing on standard output, and each text on standard error.
refused() {
    local text
    ended_with "$1" && silent out || return 1
    for text in "${@:2}"; do
        err_has "$text" || return 1
    done
}

# Seconds and milliseconds since some moment, in ms.
now_ms() {
    local seconds=${EPOCHREALTIME/./}
    printf '%s' "$((seconds / 1000))"
}

# wait_until COMMAND…: tries for at most ten seconds.
wait_until() {
    local i
    for ((i = 0; i < 200; i++)); do
        if "$@"; then
            return 0
        fi
        sleep 0.05
    done
    return 1
}

done_testing() { printf '1..%d\n' "$claims"; }
