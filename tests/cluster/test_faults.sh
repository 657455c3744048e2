#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Faults of user code, of files and of clients: each ends with the right reason, and the cluster takes the next job.
#
# usage: test_faults.sh LEAT JOBS
# shellcheck source=tests/cluster/lib.sh
. "$(dirname -- "$0")/lib.sh"

leat_do 40 cluster start -w 2 -s 2 -D cluster.jobs-kept=1000 -D cluster.slot-timeout=20s \
    -D taskmanager.artifact-cache=1MiB
claim 'a cluster of two starts' ended_with 0
sums_of 1000 >"$work/expected"
healthy() {
    wait_until slots_free 4 || return 1
    leat_do 60 submit -p 4 "$many" -- sum 1000 0
    cmp <(sort -n "$work/out") "$work/expected"
}

# --- user code that crashes ---

signal_of() { case $1 in segv | overflow) echo SIGSEGV ;; abort) echo SIGABRT ;; fpe) echo SIGFPE ;; esac; }
for how in segv abort fpe overflow; do
    leat_do 60 submit -p 1 "$many" -- crash $how 500
    claim "$how in user code fails the job" ended_with 1
    claim "$how: the failure names the signal" err_has "$(signal_of $how)"
    claim "$how: and the operator" err_has boom
    claim "$how: the cluster goes on" healthy
done
leat_do 60 submit -p 1 "$many" -- crash exit 500
claim 'exit in user code fails the job' ended_with 1
claim 'exit: the cluster goes on' healthy
leat_do 60 submit -p 2 "$many" -- fail 500
claim 'a function that fails fails the job' ended_with 1
claim 'with its own words' err_has 'record 500 is the one'
claim 'naming operator and subtask' grep -qE 'boom \([12]/2\)' "$work/err"

# --- job functions ---

LEAT_JOB_CLIENT=1 leat_do 60 submit "$many" -- random
claim 'a job function that is not deterministic is refused' ended_with 1
claim 'with the first difference' err_has other
LEAT_JOB_CLIENT=1 leat_do 60 submit "$many" -- build fail
claim 'one that fails on the task manager fails the job' ended_with 1
claim 'with its words' err_has 'no such job'
LEAT_JOB_CLIENT=1 leat_do 60 submit "$many" -- build crash
claim 'one that crashes there fails the job' err_has SIGSEGV
leat_do 60 submit "$many" -- nonsense
claim 'one that fails in the client is refused there' refused 3 'no such job: "nonsense"'
claim 'the cluster goes on' healthy

# --- slots ---

leat_do 60 submit -p 5 "$many" -- sum 1000 0
claim 'a job that needs more slots than there are fails in time' ended_with 1
claim 'with what it needs and what there is' grep -qE '5 slots.* 4' "$work/err"

# --- files ---

head -c $(($(stat -c %s "$many") * 2 / 3)) "$many" >"$work/short.so"
leat_do 60 submit "$work/short.so" -- sum 10 0
claim 'a truncated job file is refused by the client' refused 3 truncated
head -c 3000000 /dev/urandom >"$work/large"
leat_do 60 submit --file large="$work/large" "$many" -- sum 1000 0
claim 'a file larger than the artifact cache fails the job' ended_with 1
claim 'and the reason names the setting' err_has taskmanager.artifact-cache
leat_do 60 submit --file x="$work/missing" "$many" -- sum 1000 0
claim 'a file that is not there is refused by the client' refused 3 missing
claim 'the cluster goes on' healthy

# --- clients that go away ---

for after in 0.005 0.02 0.05 0.1 0.2; do
    timeout -s KILL $after "$leat" submit -p 1 "$many" -- sum 1000 0 >/dev/null 2>&1
done
nothing_runs() { [ "$("$leat" cluster status --json | jq '.jobs.running + .jobs.created')" = 0 ]; }
claim 'clients killed while they submit leave no job behind that does not end' wait_until nothing_runs
timeout 60 "$leat" submit "$many" -- print 1000000000000 2>/dev/null | head -n 3 >"$work/head"
claim 'a reader that has seen enough ends the job' wait_until nothing_runs
claim 'and has seen the beginning' cmp "$work/head" <(printf '1\n2\n3\n')

# --- cancelling at every moment ---

cancelled=0
for after in 0 0.01 0.02 0.03 0.05 0.08 0.12 0.2 0.3 0.5; do
    if submit_detached -p 4 "$many" -- slow 50; then
        sleep $after
        "$leat" cancel "$id" >/dev/null 2>&1
        ends_as "$id" CANCELED && cancelled=$((cancelled + 1))
    fi
done
claim 'a job can be cancelled at every moment' test "$cancelled" -eq 10
claim 'the cluster goes on' healthy

# --- many at once ---

for i in $(seq 40); do
    (
        for _ in 1 2 3 4 5; do
            "$leat" submit --detach "$many" -- sum 1000 0 >>"$work/ids.$i" 2>>"$work/errors" 
        done
    ) &
done
wait
cat "$work"/ids.* >"$work/ids"
claim 'of 200 jobs submitted at once each gets an id of its own' test "$(sort -u "$work/ids" | wc -l)" -eq 200
patiently() { local i; for ((i = 0; i < 12; i++)); do wait_until nothing_runs && return 0; done; return 1; }
finished() {
    "$leat" list -a --json | jq -r '.jobs[] | select(.state == "FINISHED") | .id' | sort |
        comm -12 - <(sort -u "$work/ids") | wc -l
}
claim 'all of them end' patiently
claim 'and have finished' test "$(finished)" -eq 200
claim 'the cluster goes on' healthy
leat_do 20 cluster stop
claim 'and stops' ended_with 0
done_testing
