#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kills and stops the processes of a cluster at random while jobs run. Each job has to end FINISHED with the right sums,
# or FAILED for a reason that has to do with what was done; nothing may hang, and at the end the cluster works.
#
# usage: chaos.sh LEAT JOBS ROUNDS [SEED]
# shellcheck source=tests/cluster/lib.sh
. "$(dirname -- "$0")/lib.sh"
rounds=$3 RANDOM=${4:-$$}
printf '# seed %s\n' "${4:-$$}"

leat_do 40 cluster start -w 3 -s 2 -D cluster.heartbeat-interval=100ms -D cluster.heartbeat-timeout=1s \
    -D taskmanager.connect-timeout=2s
claim 'a cluster of three starts' ended_with 0
sums_of 200000 >"$work/expected"
good=0 failed=0 bad=0

has_ended() { [[ $(state_of "$1") =~ ^(FINISHED|FAILED|CANCELED)$ ]]; }
patiently() { wait_until "$@" || wait_until "$@" || wait_until "$@"; }
# What it takes for a failure to count as explained by what was done.
explains='taskmanager|job manager|connection|signal|slots'

judge() {
    if ! patiently has_ended "$id"; then
        printf '# round %d: %s does not end: %s\n' "$1" "$id" "$(state_of "$id")"
        bad=$((bad + 1))
    elif state_is "$id" FINISHED; then
        "$leat" logs --out "$id" | sort -n | cmp - "$work/expected" && good=$((good + 1)) || bad=$((bad + 1))
    elif failure_of "$id" | grep -qE "$explains"; then
        failed=$((failed + 1))
    else
        printf '# round %d: %s: %s\n' "$1" "$id" "$(failure_of "$id")"
        bad=$((bad + 1))
    fi
}

for ((round = 0; round < rounds; round++)); do
    patiently slots_free 6 || { printf '# round %d: the cluster is not whole\n' "$round"; bad=$((bad + 1)); break; }
    if ! submit_detached -p 6 "$many" -- sum 200000 200000; then
        printf '# round %d: not submitted\n' "$round"
        bad=$((bad + 1))
        continue
    fi
    sleep "0.$((RANDOM % 9))"
    victim=$(worker_pid $((RANDOM % 3 + 1)))
    case $((RANDOM % 4)) in
    0) kill -KILL "$victim" ;;
    1) kill -STOP "$victim"; sleep 1.5; kill -CONT "$victim" ;;
    2) kill -STOP "$victim"; sleep "0.$((RANDOM % 5))"; kill -CONT "$victim" ;;
    3) ;;
    esac
    judge "$round"
done
claim "each of $rounds jobs ends well ($good finished, $failed failed for a good reason)" test "$bad" -eq 0
claim 'some finish' test "$good" -gt 0

# --- the job manager itself ---

patiently slots_free 6
submit_detached -p 6 "$many" -- slow 100
kill -KILL "$(manager_pid)"
leat_do 20 status "$id"
claim 'without its job manager a client is told so' test "$status" -ne 0
leat_do 40 cluster start -w 3 -s 2
claim 'a cluster starts over a dead one' ended_with 0
claim 'which it tells' grep -q 'had died' "$work/out" "$work/err"
leat_do 60 submit -p 6 "$many" -- sum 200000 0
claim 'and works' cmp <(sort -n "$work/out") "$work/expected"
leat_do 20 cluster stop
claim 'and stops' ended_with 0
done_testing
