#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154,SC2034 # what tests/cluster/lib.sh has
# A cluster whose processes are on machines of their own: each in a mount and a network namespace, joined by a bridge.
# Sourced, with the script's arguments, by tests whose first lines call `leave_for_namespaces "$0" "$@"`: all of it then
# runs in namespaces of its own, of processes too, so that nothing outside is touched and nothing is left behind.

leave_for_namespaces() {
    if [ "${LEAT_TEST_INSIDE:-}" = 1 ]; then
        unset LEAT_TEST_INSIDE
        return 0
    fi
    local options=(-mnp --fork --kill-child --mount-proc)
    [ "$(id -u)" -eq 0 ] || options=(-Ur "${options[@]}")
    if ! command -v ip >/dev/null || ! unshare "${options[@]}" ip link add test0 type bridge 2>/dev/null; then
        printf '1..0 # SKIP namespaces cannot be made here\n'
        exit 0
    fi
    LEAT_TEST_INSIDE=1 exec unshare "${options[@]}" bash "$@"
}

# --- machines ---

declare -A holder process number

# cable NAME NUMBER: joins eth0 of the machine and vNUMBER here. A test may have one of its own.
cable() { ip link add "v$2" type veth peer name eth0 netns "${holder[$1]}"; }
# machine NAME NUMBER: its address is 10.77.0.NUMBER, the bridge's end of its cable is vNUMBER.
machine() {
    local name=$1
    number[$name]=$2
    unshare -mn --propagation private sleep infinity >/dev/null 2>&1 &
    holder[$name]=$!
    wait_until inside "$name" true
    # Until it has left the namespace of this script, it would be this one that gets the interface.
    wait_until apart "${holder[$name]}"
    cable "$1" "$2"
    ip link set "v$2" master br0 up
    inside "$name" ip link set lo up
    inside "$name" ip addr add "10.77.0.$2/24" dev eth0
    inside "$name" ip link set eth0 up
    # The same path everywhere, and a file system of its own in each.
    inside "$name" mount -t tmpfs private "$work/private"
}
inside() { nsenter -t "${holder[$1]}" -m -n -- "${@:2}"; }
apart() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink "/proc/$$/ns/net")" ]; }
address() { printf '10.77.0.%s' "${number[$1]}"; }

# All of it ends; nobody need be told.
end() {
    exec 2>/dev/null
    kill -KILL "${process[@]}" "${holder[@]}"
    sweep
}

# machines WORKERS: a bridge with a job manager's machine, a client's, and so many for task managers.
machines() {
    local i
    trap '[ "$BASHPID" -ne "$$" ] || end' EXIT
    ip link set lo up
    ip link add br0 type bridge
    ip link set br0 up
    mkdir -p "$work/private"
    head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$work/secret"
    chmod 600 "$work/secret"
    export LEAT_SECRET_FILE=$work/secret
    machine manager 1
    machine client 100
    for ((i = 1; i <= $1; i++)); do
        machine "worker$i" $((i + 1))
    done
}

# --- processes ---

# start MACHINE VERB OPTION…
start() {
    # Not by `inside`: a function runs in a shell of its own, which would be the process that is noted.
    nsenter -t "${holder[$1]}" -m -n -- "$leat" "${@:2}" --folder "$work/private/$1" --log-file "$work/$1.log" \
        </dev/null >/dev/null 2>&1 &
    process[$1]=$!
}
# start_manager OPTION…
start_manager() { start manager jobmanager --bind "$(address manager)" --port 8081 --rpc-port 8082 "$@"; }
# start_worker MACHINE OPTION…: always at the same port.
start_worker() {
    start "$1" taskmanager -m "$(address manager):8082" --bind "$(address "$1")" --data-port 7000 "${@:2}"
}
# nsenter executes the program in its own place, so what was noted is the daemon itself.
signal() { kill "-$2" "${process[$1]}" 2>/dev/null; }
# Its end is wanted, so the shell need not tell of it.
lose() {
    {
        signal "$1" KILL
        wait "${process[$1]}"
    } 2>/dev/null
}

# --- what can be done to a network ---

unplug() { ip link set "v${number[$1]}" down; }
plug() { ip link set "v${number[$1]}" up; }
# deafen FROM TO: what FROM sends to TO gets lost; the other direction works. It goes to a card that nobody has.
deafen() { inside "$1" ip neigh replace "$(address "$2")" lladdr 02:00:00:00:00:99 nud permanent dev eth0; }
# Also for pairs that hear each other: the card's number is looked up anew.
undeafen() { inside "$1" ip neigh del "$(address "$2")" dev eth0 2>/dev/null; }
# shape MACHINE ARGUMENT…: of what it sends; `shape MACHINE` ends it.
shape() {
    inside "$1" tc qdisc del dev eth0 root 2>/dev/null
    [ $# -eq 1 ] || inside "$1" tc qdisc add dev eth0 root "${@:2}"
}
has_shaping() { inside client tc qdisc add dev lo root "$@" 2>/dev/null && inside client tc qdisc del dev lo root; }
# reset FROM TO: the connections between the two end as if one of them had crashed.
reset() { inside "$1" ss -K -t dst "$(address "$2")" 2>/dev/null | grep -q ESTAB; }

# --- clients ---

# at_client LIMIT VERB ARGUMENT…: as leat_do.
at_client() {
    status=0
    inside client timeout "$1" "$leat" "$2" -m "$(address manager):8081" "${@:3}" >"$work/out" 2>"$work/err" ||
        status=$?
}
job_json() { inside client timeout 10 "$leat" status -m "$(address manager):8081" --json "$id" 2>/dev/null; }
job_state() { job_json | jq -r .state; }
job_failure() { job_json | jq -r .failure; }
job_is() { [ "$(job_state)" = "$1" ]; }
job_ended() { [[ $(job_state) =~ ^(FINISHED|FAILED|CANCELED)$ ]]; }
job_runs() { [ "$(job_json | jq '.state == "RUNNING" and (.tasks | .running == .total)')" = true ]; }
job_output() { inside client timeout 30 "$leat" logs -m "$(address manager):8081" --out "$id" 2>/dev/null; }
# detach ARGUMENT…: the id goes to `id`.
detach() {
    at_client 30 submit --detach "$@"
    id=$(cat "$work/out")
    [[ $id =~ ^[0-9a-f]{32}$ ]]
}
free_slots() {
    inside client timeout 10 "$leat" cluster status -m "$(address manager):8081" --json 2>/dev/null | jq .slots_free
}
slots_are() { [ "$(free_slots)" = "$1" ]; }
# patiently COMMAND…: for half a minute.
patiently() { wait_until "$@" || wait_until "$@" || wait_until "$@"; }
