#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Random faults of the network and of processes while random jobs run, on three machines. A fault that is shorter than
# the silence after which a peer counts as lost must leave no trace: both jobs of the round end right. After a longer
# one each of them ends right, or fails for a reason that has to do with it. Nothing hangs, the cluster is whole again
# before the next round, and at the end no process has more files open or threads than it needs.
#
# With CABLE, cables lose, delay, double and cut packets too.
#
# usage: soak.sh LEAT JOBS MINUTES [SEED [CABLE]]
# shellcheck source=tests/cluster/machines.sh
. "$(dirname -- "$0")/machines.sh"
leave_for_namespaces "$0" "$@"
# shellcheck source=tests/cluster/lib.sh
. "$(dirname -- "$0")/lib.sh"
minutes=$3
seed=${4:-$(date +%s)}
printf '# seed %s\n' "$seed"
RANDOM=$seed
# shellcheck source=tests/cluster/cables.sh
. "$(dirname -- "$0")/cables.sh"
faults=8
if [ -n "${5:-}" ] && has_cables "$5"; then
    faults=10
else
    printf '# no lossy cables\n'
fi

machines 3
times=(-D cluster.heartbeat-interval=200ms -D cluster.heartbeat-timeout=4s)
worker_options=(-s 2 -D taskmanager.connect-timeout=4s)
start_manager "${times[@]}"
for i in 1 2 3; do
    start_worker worker$i "${worker_options[@]}"
done
claim 'three task managers register' patiently slots_are 6
# Nothing of the rest can go well then.
slots_are 6 || { done_testing; exit 1; }

# --- jobs ---

flags=(false true)
# random_job: `job` gets the arguments of submit, `count` how many numbers it sums up.
random_job() {
    local settings=(-D network.debloat="${flags[RANDOM % 2]}" -D buffer-timeout="$((RANDOM % 3 * 50))ms")
    [ $((RANDOM % 2)) -eq 0 ] || settings=()
    count=$((RANDOM * 20 + 1000))
    case $((RANDOM % 4)) in
    0) job=(-p $((RANDOM % 3 + 1)) "$many" -- sum "$count" $((count / (RANDOM % 4 + 1)))) ;;
    1) job=(-p $((RANDOM % 3 + 1)) "$many" -- stall "$count" $((RANDOM % 3 + 1))) ;;
    *) job=(-p 3 "$jobs/shapes.so" -- $RANDOM "$count" $((count / (RANDOM % 3 + 1)))) ;;
    esac
    job=("${settings[@]}" "${job[@]}")
}

# --- faults ---

any() { printf 'worker%d' $((RANDOM % 3 + 1)); }
# Sets `one` and `other`, which are two.
two() {
    local first=$((RANDOM % 3 + 1))
    one=worker$first
    other=worker$(((first + RANDOM % 2) % 3 + 1))
}
moment() { sleep "0.$((RANDOM % 8))"; }
long() { sleep $((RANDOM % 3 + 5)); }
some_time() { if [ "$fatal" = 1 ]; then long; else moment; fi; }

# random_fault: `fault` says what it was, `fatal` whether jobs may fail of it.
random_fault() {
    local where shape
    fatal=$((RANDOM % 3 == 0))
    where=$(any)
    two
    case $((RANDOM % faults)) in
    0)
        fault="$where unplugged"
        unplug "$where"
        some_time
        plug "$where"
        ;;
    1)
        fault="$one does not get through to $other"
        deafen "$one" "$other"
        some_time
        undeafen "$one" "$other"
        ;;
    2)
        fault="$where does not get through to the job manager"
        deafen "$where" manager
        some_time
        undeafen "$where" manager
        ;;
    3)
        fault="$where does not hear the job manager"
        deafen manager "$where"
        some_time
        undeafen manager "$where"
        ;;
    4)
        fault="$where stands still"
        signal "$where" STOP
        some_time
        signal "$where" CONT
        ;;
    5)
        fault="the connections between $one and $other break"
        fatal=1
        reset "$one" "$other"
        ;;
    6)
        fault="$where is killed"
        fatal=1
        lose "$where"
        moment
        start_worker "$where" "${worker_options[@]}"
        ;;
    7)
        fault="none"
        fatal=0
        moment
        ;;
    8)
        # Both ways of one machine. Those that lose much are slow: signs of life may come too late.
        shape="$((RANDOM % 6)) $((RANDOM % 3)) $((RANDOM % 20)) $((RANDOM % 20))"
        fault="the cable of $where: $shape"
        fatal=$((${shape%% *} > 3))
        tell "$where" "shape both $shape"
        some_time
        tell "$where" 'shape both 0 0 0 0'
        ;;
    9)
        fault="a connection of $where is cut in the middle of a packet"
        fatal=1
        tell "$where" "reset $((RANDOM % 3 ? 7000 : 8082))"
        moment
        tell "$where" 'reset 0'
        ;;
    esac
    [ "$fatal" = 0 ] || fault="$fault (for long)"
}

# --- rounds ---

explains='taskmanager|connection|silent|no heartbeat|slots'
good=0 failed=0 bad=0 round=0
bad() {
    bad=$((bad + 1))
    printf '# round %d: %s; fault: %s; job: %s\n' "$round" "$1" "$fault" "${job[*]}"
}
# judge ID COUNT
judge() {
    id=$1
    if ! patiently job_ended; then
        bad "$id does not end, it is $(job_state)"
    elif job_is FINISHED; then
        if sums_of "$2" | cmp -s - <(job_output | sort -n); then good=$((good + 1)); else bad "$id is wrong"; fi
    elif [ "$fatal" = 1 ] && grep -qE -- "$explains" <(job_failure); then
        failed=$((failed + 1))
    else
        bad "$id $(job_state): $(job_failure)"
    fi
}

# What the job manager has open, and its threads: it lives through all of it.
handles() {
    find "/proc/${process[manager]}/fd" "/proc/${process[manager]}/task" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l
}
before=$(handles)
end_seconds=$((SECONDS + minutes * 60))
while [ $SECONDS -lt $end_seconds ] && [ $bad -lt 10 ]; do
    round=$((round + 1))
    ids=() counts=() fault='none yet'
    for _ in 1 2; do
        random_job
        if detach "${job[@]}"; then
            ids+=("$id")
            counts+=("$count")
        else
            bad "not submitted: $(cat "$work/err")"
        fi
    done
    moment
    random_fault
    for i in "${!ids[@]}"; do
        judge "${ids[i]}" "${counts[i]}"
    done
    patiently slots_are 6 || { bad 'the cluster is not whole'; break; }
done
claim "in $round rounds each job ends well ($good right, $failed failed for a good reason)" test "$bad" -eq 0
claim 'some are right' test "$good" -gt 0
# Connections of clients may linger for a moment.
calm() { [ "$(handles)" -le $((before + 16)) ]; }
claim "the job manager has no more files and threads than before ($before, $(handles))" wait_until calm
job_ids_running() {
    at_client 20 list --json &&
        [ "$(jq '[.jobs[] | select(.state == "RUNNING" or .state == "CREATED")] | length' "$work/out")" = 0 ]
}
claim 'no job is left' job_ids_running
done_testing
