#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `leat why` on a cluster of three: faults of ten kinds begin at some time in random graphs, and it has to name the
# operator, the cause and the beginning; before that, and on healthy jobs, it names nothing.
#
# usage: test_why.sh LEAT JOBS ROUNDS
# shellcheck source=tests/cluster/lib.sh
. "$(dirname -- "$0")/lib.sh"
rounds=${3:-1}
planted=$jobs/planted.so
first_seed=${SEED:-$(date +%s)}
printf '# SEED=%s\n' "$first_seed"

now_ms() { date +%s%3N; }
why() { timeout 10 "$leat" why --json "$id" >"$work/why" 2>"$work/err"; }
# found CAUSE: the bottleneck is "planted", for that reason.
found() {
    why && jq -e --arg cause "$1" '.bottleneck | .name == "planted" and .cause == $cause' "$work/why" >/dev/null
}
names_nothing() { why && jq -e '.bottleneck == null' "$work/why" >/dev/null; }
# since FROM TO: the beginning that it names, in ms since the epoch.
since() { jq -e ".bottleneck.since | . >= $1 and . <= $2" "$work/why" >/dev/null; }
ready() { all_running "$id"; }
tell() { printf '# %s\n' "$(jq -c '.bottleneck' "$work/why") begin=$begin seed=$seed"; }

# finds CAUSE EARLY LATE: within 40 s, with a beginning that lies between so many ms before and after the real one.
# Records that wait in buffers keep a fault from being felt for a while.
finds() {
    wait_until_long found "$1" && since $((begin - $2)) $((begin + $3)) && return 0
    tell
    return 1
}
wait_until_long() {
    local i
    for ((i = 0; i < 160; i++)); do
        "$@" && return 0
        sleep 0.25
    done
    return 1
}

# plant KIND DELAY: submits it with a fault that begins so many ms from now.
plant() {
    seed=$((seed + 1))
    begin=$(($(now_ms) + $2))
    submit_detached -p 2 "$planted" -- "$seed" "$1" "$begin"
}

leat_do 40 cluster start -w 3 -s 4 -D cluster.heartbeat-interval=200ms -D cluster.heartbeat-timeout=60s
claim 'a cluster starts' ended_with 0
[ "$status" -eq 0 ] || {
    done_testing
    exit 1
}

round() {
    local kind cause
    while read -r kind cause; do
        plant "$kind" 4000
        claim "$kind: it runs" wait_until ready
        claim "$kind: before it begins, nothing is named" names_nothing
        claim "$kind: operator, cause ($cause) and beginning are named" finds "$cause" 1500 9000
        "$leat" cancel "$id" >/dev/null
        ends_as "$id" CANCELED
    done <<'KINDS'
slow slow
blocking blocking
stuck stuck
stuck-blocking stuck
skew skew
slow-task slow task
KINDS

    plant opening 60000
    begin=$(now_ms)
    claim 'opening: operator, cause and beginning are named' finds opening 3000 3000
    "$leat" cancel "$id" >/dev/null
    ends_as "$id" CANCELED

    seed=$((seed + 1))
    begin=$(now_ms)
    submit_detached -p 100 "$planted" -- "$seed" calm 0
    claim 'slots: cause and beginning are named' slots_named
    "$leat" cancel "$id" >/dev/null
    ends_as "$id" CANCELED

    print_unread
    claim 'print: operator, cause and beginning are named' finds output 1500 9000
    kill "$reader" 2>/dev/null
    wait "$client" 2>/dev/null
    ends_as "$id" CANCELED

    plant calm 0
    claim 'silent: it runs' wait_until ready
    # One that has tasks of the job, which need not be all three.
    why
    stopped=$(jq -r '.tasks[0].worker' "$work/why")
    silenced=${stopped%% (*} stopped=${stopped##*pid } stopped=${stopped%)}
    begin=$(now_ms)
    kill -STOP "$stopped"
    claim 'silent: the task manager and the beginning are named' silent_named
    kill -CONT "$stopped"
    claim 'once it goes on, nothing is named' wait_until names_nothing
    for _ in 1 2 3 4 5 6 7 8; do
        names_nothing || break
        sleep 0.25
    done
    claim 'a healthy job has no bottleneck, at any moment' names_nothing
    "$leat" cancel "$id" >/dev/null
    ends_as "$id" CANCELED
}
slots_named() {
    why && jq -e '.bottleneck.cause == "slots"' "$work/why" >/dev/null && since $((begin - 500)) $((begin + 2000))
}
silent_named() {
    wait_until_long is_silent && since $((begin - 1000)) $((begin + 500)) && return 0
    tell
    return 1
}
is_silent() {
    why && jq -e --arg name "$silenced " \
        '.bottleneck | .cause == "silent" and (.text | startswith($name))' "$work/why" >/dev/null
}

# A client that waits, whose output goes to somebody who does not read it.
print_unread() {
    seed=$((seed + 1))
    begin=$(($(now_ms) + 3000))
    rm -f "$work/fifo"
    mkfifo "$work/fifo"
    # shellcheck disable=SC2217 # not to read is the point
    sleep 600 <"$work/fifo" &
    reader=$!
    "$leat" submit --wait --name unread -p 2 "$planted" -- "$seed" print "$begin" >"$work/fifo" 2>/dev/null &
    client=$!
    wait_until unread_listed
    id=$(unread_id)
}
unread_id() {
    "$leat" list --json 2>/dev/null |
        jq -r '[.jobs[] | select(.name == "unread" and .state == "RUNNING")][0].id // ""'
}
unread_listed() { [ -n "$(unread_id)" ]; }

seed=$first_seed
for ((r = 0; r < rounds; r++)); do
    round
done
leat_do 40 cluster stop
claim 'the cluster stops' ended_with 0
done_testing
