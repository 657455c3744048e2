#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A stranger on a machine of his own: he has heard all that was ever said to the ports of a cluster with a secret, and
# says it again; he says it slowly; he says nothing, at so many connections as he gets. Jobs run meanwhile and are
# right, and each process logs him once.
#
# usage: test_strangers.sh LEAT JOBS CABLE GARBAGE
# shellcheck source=tests/cluster/machines.sh
. "$(dirname -- "$0")/machines.sh"
leave_for_namespaces "$0" "$@"
# shellcheck source=tests/cluster/lib.sh
. "$(dirname -- "$0")/lib.sh"
# shellcheck source=tests/cluster/cables.sh
. "$(dirname -- "$0")/cables.sh"
cables_or_skip "$3"
garbage=$(readlink -f -- "$4")
seed=1

machines 3
machine stranger 66
mkdir "$work/heard" "$work/again"
for name in manager worker1 worker2; do
    mkdir "$work/heard/$name"
    tell $name "record $work/heard/$name"
done
start_manager -D cluster.heartbeat-timeout=10s
start_worker worker1
start_worker worker2
claim 'a cluster of two task managers with a secret' patiently slots_are 2
# Nothing of the rest can go well then.
slots_are 2 || { done_testing; exit 1; }
right() {
    at_client 90 submit -p "$1" "$many" -- sum "$2" 0
    ended_with 0 && sums_of "$2" | cmp - <(sort -n "$work/out")
}
claim 'a job is right' right 2 100000
logged() { grep -cF -- "refused: $2://$(address stranger)" "$work/$1.log"; }
jobs_so_far() { at_client 20 list -a --json && jq '.jobs | length' "$work/out"; }

# say FILE MACHINE PORT PAUSE: the stranger does; the answer is in $work/again/NAME, and when it was closed in NAME.ms.
say() {
    local name
    name=$2-$3-$(basename -- "$1")
    inside stranger "$garbage" say "$1" "$(address "$2"):$3" "$4" >"$work/again/$name" 2>"$work/again/$name.ms"
}

# --- what was heard ---

heard() { find "$work/heard/$1" -name "$2-*" -size +400c; }
mapfile -t sessions < <(heard manager 8082)
mapfile -t data < <(heard worker1 7000; heard worker2 7000)
mapfile -t rest < <(find "$work/heard/manager" -name '8081-*' -size +0c)
claim 'two sessions with the job manager were heard' test "${#sessions[@]}" -eq 2
claim 'the session of the task managers was heard, at both ends' test "${#data[@]}" -eq 2
claim 'it has records' test "$(stat -c %s "${data[0]}")" -gt 10000
claim 'at both ends the same' cmp "${data[@]}"
claim 'requests were heard' test "${#rest[@]}" -ge 1

# --- he says it again ---

before=$(jobs_so_far)
claim 'a job runs' detach -p 2 "$many" -- sum 500000 100000
claim 'on both' wait_until job_runs
for file in "${sessions[@]}"; do
    # The hand-shake alone, whose answer is not lost: hello, nonce, and the code.
    head -c 440 "$file" >"$work/hand-shake-$(basename -- "$file")"
    say "$work/hand-shake-$(basename -- "$file")" manager 8082 0
    say "$file" manager 8082 0
done
head -c 440 "${data[0]}" >"$work/hand-shake-data"
for name in worker1 worker2; do
    say "$work/hand-shake-data" $name 7000 0
    say "${data[0]}" $name 7000 0
done
# He is answered as who has a wrong code: hello, nonce, a code of 0 bytes; and was closed.
turned_away() {
    [ "$(stat -c %s "$1")" -eq $((16 + 328 + 16 + 32 + 16)) ] && grep -qE '^[0-9]+$' "$1.ms"
}
closed_both() { ! cat "$work/again/"*.ms | grep -v '^[0-9]*$'; }
for file in "$work"/again/*hand-shake*[!s]; do
    claim "hand-shake: ${file##*/} is refused" turned_away "$file"
done
claim 'all of it is closed' closed_both
saying=()
for file in "${rest[@]}"; do
    say "$file" manager 8081 0 &
    saying+=($!)
done
wait "${saying[@]}"
# Good answers are there for what everybody may ask.
grants() { cat "$work"/again/manager-8081-* | grep -ac '^HTTP/1.1 2'; }
open_to_all() { cat "${rest[@]}" | grep -acE '^GET (/v1)?/(challenge|health) '; }
claim 'requests: no other answer than a new challenge' test "$(grants)" -le "$(open_to_all)"
claim 'requests: they are refused' grep -qa '^HTTP/1.1 401' "$work"/again/manager-8081-*
claim 'no job was made of it' test "$(jobs_so_far)" -eq $((before + 1))
job_is_right() { patiently job_is FINISHED && sums_of 500000 | cmp - <(job_output | sort -n); }
claim 'the job that runs meanwhile is right' job_is_right
claim 'the job manager has logged him once at its port for task managers' test "$(logged manager tcp)" -eq 1
claim 'and once at that for requests' test "$(logged manager http)" -eq 1
claim 'each task manager has logged him once' test "$(logged worker1 tcp) $(logged worker2 tcp)" = '1 1'

# --- he says it slowly, and nothing at very many connections ---

slow=() holders=()
for target in 'manager 8082' 'worker1 7000'; do
    read -r name port <<<"$target"
    say "$work/hand-shake-data" "$name" "$port" 300 &
    slow+=($!)
done
mkfifo "$work/end"
for target in "$(address manager):8082" "$(address worker1):7000" "$(address manager):8081"; do
    : >"$work/held-$target"
    # Not by `inside`, as in `start`; it reads from what never ends.
    nsenter -t "${holder[stranger]}" -m -n -- "$garbage" hold 1100 "$target" <>"$work/end" >"$work/held-$target" &
    holders+=($!)
    claim "he holds connections to $target" wait_until grep -q held "$work/held-$target"
done
start_worker worker3
claim 'another task manager registers none the less' patiently slots_are 3
claim 'a job on all three is right, with new connections between them' right 3 100000
# A thousand a second more, of all kinds.
inside stranger "$garbage" 3 "$(address manager):8082" "$(address worker1):7000" "$(address worker3):7000" \
    "$(address manager):8081" >"$work/thrown" &
thrower=$!
claim 'and so is one when a thousand more come each second' right 3 200000
wait "$thrower"
claim 'they have come' test "$(sed 's/ .*//' "$work/thrown")" -gt 1000
{
    kill "${holders[@]}"
    wait "${holders[@]}" "${slow[@]}"
} 2>/dev/null
# Of the many that came, or when its time was over: ten seconds, or the connect timeout.
for name in manager-8082 worker1-7000; do
    claim "who is slow is closed in time: $name" test "$(cat "$work/again/$name-hand-shake-data.ms")" -lt 20000
done
claim 'a job is right afterwards' right 3 100000
log_is_short() { [ "$(cat "$work"/*.log | grep -c 'warn\|so were')" -lt 20 ] || grep -h warn "$work"/*.log; }
claim 'the logs are not flooded' log_is_short
done_testing
