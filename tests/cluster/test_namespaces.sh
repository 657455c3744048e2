#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each process of a cluster in a mount and a network namespace of its own, joined by a bridge, as if each were on a
# machine of its own: what a job needs has to travel. Skipped where namespaces cannot be made.
#
# usage: test_namespaces.sh LEAT JOBS
if [ "${LEAT_TEST_INSIDE:-}" != 1 ]; then
    options=(-mn)
    [ "$(id -u)" -eq 0 ] || options=(-Urmn)
    if ! command -v ip >/dev/null || ! unshare "${options[@]}" ip link add test0 type bridge 2>/dev/null; then
        printf '1..0 # SKIP namespaces cannot be made here\n'
        exit 0
    fi
    LEAT_TEST_INSIDE=1 exec unshare "${options[@]}" bash "$0" "$@"
fi
unset LEAT_TEST_INSIDE
# shellcheck source=tests/cluster/lib.sh
. "$(dirname -- "$0")/lib.sh"

# --- five machines on a bridge ---

ip link set lo up
ip link add br0 type bridge
ip link set br0 up
declare -A holder
# Its private folder is the same path everywhere, and a file system of its own in each.
mkdir -p "$work/private"
machine() {
    local name=$1 number=$2
    unshare -mn --propagation private sleep 600 >/dev/null 2>&1 &
    holder[$name]=$!
    wait_until inside "$name" true
    # Until it has left the namespace of this script, it would be this one that gets the interface.
    wait_until apart "${holder[$name]}"
    ip link add "v$number" type veth peer name eth0 netns "${holder[$name]}"
    ip link set "v$number" master br0 up
    inside "$name" ip link set lo up
    inside "$name" ip addr add "10.77.0.$number/24" dev eth0
    inside "$name" ip link set eth0 up
    inside "$name" mount -t tmpfs private "$work/private"
}
inside() { nsenter -t "${holder[$1]}" -m -n -- "${@:2}"; }
apart() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink "/proc/$$/ns/net")" ]; }
end() {
    local pid
    for pid in "${holder[@]}" $(jobs -p); do
        kill -KILL "$pid" 2>/dev/null
    done
    sweep
}
trap '[ "$BASHPID" -ne "$$" ] || end' EXIT

machine manager 1
machine worker1 2
machine worker2 3
machine worker3 4
machine client 5

start() {
    local where=$1
    inside "$where" "$leat" "${@:2}" --folder "$work/private/state" --log-file "$work/$where.log" </dev/null \
        >/dev/null 2>&1 &
}
start manager jobmanager --bind 10.77.0.1 --port 8081 --rpc-port 8082
for i in 1 2 3; do
    start worker$i taskmanager -m 10.77.0.1:8082 --bind 10.77.0.$((i + 1))
done
overview() { inside client "$leat" cluster status -m 10.77.0.1:8081 --json 2>/dev/null; }
complete() { [ "$(overview | jq .slots_free)" = 3 ]; }
claim 'three task managers on machines of their own register' wait_until complete

# --- what the job brings along is on the client's machine alone ---

inside client mkdir -p "$work/private/job/bin/deep"
inside client cp "$jobs/brought.so" "$jobs/libbrought_number.so" "$work/private/job/"
inside client bash -c "printf 'the table\n' >$work/private/job/table.txt
    printf '#!/bin/sh\necho the tool\n' >$work/private/job/bin/deep/tool; chmod +x $work/private/job/bin/deep/tool"
hidden() { ! inside worker1 test -e "$work/private/job" && ! test -e "$work/private/job"; }
claim 'nobody else sees its files' hidden
submit() {
    status=0
    inside client timeout 60 "$leat" submit -m 10.77.0.1:8081 "$@" >"$work/out" 2>"$work/err" || status=$?
}
submit -p 3 --file table="$work/private/job/table.txt" --file bin="$work/private/job/bin" "$work/private/job/brought.so"
claim 'a job with a library and cached files succeeds' ended_with 0
expected=$(printf '%s 4711 the table the tool\n' 0 1 2)
claim 'everything has arrived at each of them, executable bit included' test "$(sort "$work/out")" = "$expected"
submit -p 3 "$many" -- sum 100000 0
sums_of 100000 >"$work/expected"
claim 'records cross from machine to machine' cmp <(sort -n "$work/out") "$work/expected"

# --- a machine that is cut off ---

id=$(inside client "$leat" submit -m 10.77.0.1:8081 --detach -p 3 "$many" -- slow 100)
job() { inside client "$leat" status -m 10.77.0.1:8081 --json "$id"; }
is_running() { [ "$(job | jq '.tasks | .running == .total')" = true ]; }
has_failed() { [ "$(job | jq -r .state)" = FAILED ]; }
claim 'a job runs on all three' wait_until is_running
ip link set v3 down
claim 'cut off, one of them fails the job' wait_until has_failed
claim 'and the failure names it' grep -q 'taskmanager' <(job | jq -r .failure)
ip link set v3 up
claim 'when it is back, it registers again' wait_until complete
submit -p 3 "$many" -- sum 100000 0
claim 'and the next job runs on all three' cmp <(sort -n "$work/out") "$work/expected"
done_testing
