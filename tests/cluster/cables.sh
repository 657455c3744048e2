#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154,SC2034 # what tests/cluster/lib.sh and machines.sh have
# Machines whose cables are programs (cable.c), which lose, delay, cut and record what goes through them. Sourced after
# both of those, before `machines`.

declare -A control

# has_cables PROGRAM: whether the system has such interfaces; then machines get them.
has_cables() {
    cable_program=$(readlink -f -- "$1")
    [ -c /dev/net/tun ] && (: <>/dev/net/tun) 2>/dev/null || return 1
    # shellcheck disable=SC2317 # `machine` calls it
    cable() { lossy_cable "$@"; }
}
# cables_or_skip PROGRAM: skips the whole test where it has none.
cables_or_skip() {
    has_cables "$1" && return
    printf '1..0 # SKIP there is no /dev/net/tun\n'
    exit 0
}

# In the place of what machines.sh has.
lossy_cable() {
    local fd
    mkfifo "$work/$1.commands"
    : >"$work/$1.cable"
    "$cable_program" "${holder[$1]}" eth0 "v$2" "$2$seed" <>"$work/$1.commands" >>"$work/$1.cable" 2>&1 &
    process[$1.cable]=$!
    exec {fd}<>"$work/$1.commands"
    control[$1]=$fd
    if ! wait_until grep -q ready "$work/$1.cable"; then
        printf '1..0 # SKIP no interfaces of this kind can be made here: %s\n' "$(tr '\n' ' ' <"$work/$1.cable")"
        exit 0
    fi
}

# tell MACHINE COMMAND…: to its cable.
tell() { printf '%s\n' "${*:2}" >&"${control[$1]}"; }
