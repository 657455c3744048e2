#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A cluster on machines whose cables lose, delay, double and cut what goes through them (tests/cluster/cable.c), with
# jobs whose result is checked by its sums, to which each record contributes once. One job has a task that takes nothing
# for very long meanwhile, on two machines of its own: whatever befalls the other two, it ends right.
#
# usage: test_lossy.sh LEAT JOBS CABLE [long]
# shellcheck source=tests/cluster/machines.sh
. "$(dirname -- "$0")/machines.sh"
leave_for_namespaces "$0" "$@"
# shellcheck source=tests/cluster/lib.sh
. "$(dirname -- "$0")/lib.sh"
# shellcheck source=tests/cluster/cables.sh
. "$(dirname -- "$0")/cables.sh"
cables_or_skip "$3"
length=${4:-short}
seed=${5:-$(date +%s)}
printf '# seed %s\n' "$seed"
RANDOM=$seed
stall_seconds=20
[ "$length" = short ] || stall_seconds=180

machines 4
start_manager -D cluster.heartbeat-interval=200ms -D cluster.heartbeat-timeout=5s
worker_options=(-D taskmanager.connect-timeout=4s)
for i in 1 2 3 4; do
    start_worker worker$i "${worker_options[@]}"
done
claim 'four task managers on machines of their own register' patiently slots_are 4
# Nothing of the rest can go well then.
slots_are 4 || { done_testing; exit 1; }

# --- buffers that are full: a job of its own for all that time ---

claim 'a task that takes nothing for long: a job runs' detach -p 2 "$many" -- stall 300000 "$stall_seconds"
claim 'a task that takes nothing for long: it runs' wait_until job_runs
stalled=$id
# The machines of the job, by the ids of their processes.
machines_of() {
    local i ids
    ids=$(job_json | jq -r '.. | .worker? // empty')
    for i in 1 2 3 4; do
        ! grep -qF -- "pid ${process[worker$i]})" <<<"$ids" || printf 'worker%d\n' "$i"
    done
}
mapfile -t its < <(machines_of)
mapfile -t free < <(printf 'worker%d\n' 1 2 3 4 | grep -vxF -f <(printf '%s\n' "${its[@]}"))
claim 'it is on two machines' test "${#its[@]}" -eq 2
one=${free[0]} other=${free[1]}
stall_runs() { local id=$stalled; job_is RUNNING; }

# --- jobs on the other two ---

# right MODE COUNT MORE: such a job's result is right.
right() {
    at_client 120 submit -p 2 "$many" -- "$@"
    ended_with 0 && sums_of "$2" | cmp - <(sort -n "$work/out")
}
whole() { patiently slots_are 2 && right sum 100000 0; }
needed=2 # slots that are free
runs() {
    count=$2
    patiently slots_are $needed && detach -p 2 "$many" -- "$@" && wait_until job_runs
}
ends_right() { patiently job_is FINISHED && sums_of "$count" | cmp - <(job_output | sort -n); }
# fails_with PATTERN
fails_with() {
    wait_until job_ended && job_is FAILED && grep -qE -- "$1" <(job_failure) && return 0
    printf 'state %s: %s\n' "$(job_state)" "$(job_failure)"
    return 1
}
all_lines() { for to in "${!control[@]}"; do tell "$to" "shape $*"; done; }
# has_lost WAY: some of what this machine sent, or got ("late"), since the cables are there.
figure() {
    tell "$1" tell
    sleep 0.1
    grep '^out' "$work/$1.cable" | tail -n 1 | cut -d ' ' -f "$2"
}

# lossy TEXT SHAPE MODE COUNT MORE
lossy() {
    local before
    before=$(figure "$one" 3)
    all_lines out "$2"
    claim "$1: the result is right" right "${@:3}"
    all_lines out '0 0 0 0'
    claim "$1: packets were lost" test "$(figure "$one" 3)" -gt "$before"
}
lossy 'of 50 packets one is lost' '2 0 0 0' sum 200000 0
lossy 'of ten packets one is lost' '10 0 0 0' sum 50000 0
before=$(figure "$one" 4)
all_lines both '0 1 15 20'
claim 'each packet takes 50 ms there, some overtake, some come twice: the result is right' right sum 50000 0
all_lines both '0 0 0 0'
claim 'packets have overtaken each other' test "$(figure "$one" 4)" -gt "$before"

# --- cables ---

claim 'a cable that is out for a moment: a job runs' runs sum 400000 150000
unplug "$one"
sleep 0.7
plug "$one"
claim 'a cable that is out for a moment: its result is right' ends_right
claim 'a direction that is dropped: a job runs' runs sum 100000000 150000
since=$(now_ms)
deafen "$one" "$other"
claim 'a direction that is dropped: the job fails, and the reason says so' fails_with 'connection to .*(silent|lost)'
# The silence, and twice as much for a machine that is busy.
claim 'a direction that is dropped: in time' test $(($(now_ms) - since)) -lt 10000
undeafen "$one" "$other"

# --- connections that break in the middle of a frame ---

# cut_at_data: of a connection between the two, wherever it is.
cut_at_data() {
    tell "$one" 'reset 7000'
    wait_until grep -q '^reset' "$work/$one.cable"
}
claim 'a connection that breaks in the middle of a frame: a job runs' runs sum 10000000000 0
claim 'a connection that breaks in the middle of a frame: it does' cut_at_data
claim 'a connection that breaks in the middle of a frame: the job fails, and the reason says so' \
    fails_with 'connection to .* lost'
claim 'a connection that breaks in the middle of a frame: the next job is right' whole

# --- a peer that comes back as another one ---

claim 'another task manager at the address of one: a job runs' runs sum 100000000 150000
lose "$one"
start_worker "$one" "${worker_options[@]}"
claim 'another task manager at the address of one: the job fails, and the reason says so' \
    fails_with 'taskmanager .*lost|connection to .* lost'
claim 'another task manager at the address of one: the next job is right' whole

# --- the long form ---

some_shape() { printf '%d %d %d %d' $((RANDOM % 8)) $((RANDOM % 3)) $((RANDOM % 25)) $((RANDOM % 30)); }
if [ "$length" = long ]; then
    for ((round = 0; round < 8; round++)); do
        shape=$(some_shape)
        all_lines out "$shape"
        claim "lines that are \"$shape\": the result is right" right sum $((RANDOM + 20000)) 0
        all_lines out '0 0 0 0'
        : >"$work/$one.cable"
        claim "a connection that breaks (round $round): a job runs" runs sum 10000000000 0
        sleep "0.$((RANDOM % 9))"
        claim "a connection that breaks (round $round): it does" cut_at_data
        claim "a connection that breaks (round $round): the reason says so" fails_with 'connection to .* lost'
        claim "a connection that breaks (round $round): the next job is right" whole
    done
fi

id=$stalled count=300000
stall_ends() {
    local i
    for ((i = 0; i < stall_seconds / 10; i++)); do
        ! wait_until job_ended || break
    done
    ends_right
}
claim 'a task that takes nothing for long: nothing else has disturbed it, its result is right' stall_ends

# A process that takes nothing for as long as it may: all buffers are full, those of the system too.
if [ "$length" = long ]; then
    for i in manager worker1 worker2 worker3 worker4; do
        lose $i
    done
    start_manager -D cluster.heartbeat-interval=1s -D cluster.heartbeat-timeout=5min
    for i in 1 2 3 4; do
        start_worker worker$i
    done
    claim 'with five minutes of silence allowed they register' patiently slots_are 4
    needed=4
    claim 'a task manager that stands still for two minutes: a job runs' runs sum 3000000 150000
    signal worker2 STOP
    sleep 120
    signal worker2 CONT
    claim 'a task manager that stands still for two minutes: the result is right' ends_right
fi
done_testing
