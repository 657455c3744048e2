#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Faults of the network between the machines of a cluster. What is shorter than the time after which a peer counts as
# lost must not be seen in any result; what is longer fails the job, in time and with a reason that names who was not
# heard; and when the network is whole again the next job runs on all machines. Every result is checked by its sums, to
# which each record contributes once.
#
# usage: test_links.sh LEAT JOBS
# shellcheck source=tests/cluster/machines.sh
. "$(dirname -- "$0")/machines.sh"
leave_for_namespaces "$0" "$@"
# shellcheck source=tests/cluster/lib.sh
. "$(dirname -- "$0")/lib.sh"

machines 3
# Signs of life each 200 ms; silence of 3 s is a loss.
times=(-D cluster.heartbeat-interval=200ms -D cluster.heartbeat-timeout=3s)
start_manager "${times[@]}"
for i in 1 2 3; do
    start_worker worker$i -D taskmanager.connect-timeout=3s
done
claim 'three task managers on machines of their own register' patiently slots_are 3
# Nothing of the rest can go well then.
slots_are 3 || { done_testing; exit 1; }

# sum COUNT …: a job whose result is right.
right() {
    at_client 90 submit -p 3 "$many" -- "$1" "$2" "$3"
    ended_with 0 && sums_of "$2" | cmp - <(sort -n "$work/out")
}
whole() { patiently slots_are 3 && right sum 100000 0; }
claim 'records cross from machine to machine' whole

# runs MODE COUNT MORE: such a job runs; its id is in `id`, its count in `count`.
runs() {
    count=$2
    detach -p 3 "$many" -- "$@" && wait_until job_runs
}
ends_right() { patiently job_is FINISHED && sums_of "$count" | cmp - <(job_output | sort -n); }
# fails_with PATTERN: in time, which is far less than `wait_until` waits, and for that reason.
fails_with() {
    wait_until job_ended && job_is FAILED && grep -qE -- "$1" <(job_failure) && return 0
    printf 'state %s: %s\n' "$(job_state)" "$(job_failure)"
    return 1
}
# survives TEXT COMMAND…: while such a job runs.
survives() {
    claim "$1: a job runs" runs sum 600000 150000
    "${@:2}"
    claim "$1: it still runs" job_is RUNNING
    claim "$1: its result is right" ends_right
}
# is_fatal TEXT PATTERN COMMAND…
is_fatal() {
    claim "$1: a job runs" runs sum 100000000 150000
    "${@:3}"
    claim "$1: the job fails in time, and the reason says so" fails_with "$2"
}
is_mended() {
    "${@:2}"
    claim "$1: mended, the next job is right" whole
}

# --- cables ---

blink() { unplug worker2; sleep 0.8; plug worker2; }
survives 'a cable that is out for a moment' blink
is_fatal 'a cable that is pulled out' 'taskmanager .*(lost|silent|not been heard)' unplug worker2
is_mended 'a cable that is pulled out' plug worker2
# Nobody can be asked meanwhile.
unplug_manager_for_long() { unplug manager; sleep 5; plug manager; }
is_fatal 'the cable of the job manager' 'taskmanager .*(lost|silent|not been heard)' unplug_manager_for_long
is_mended 'the cable of the job manager' true

# --- one direction ---

# none_gets_through SLOTS PATTERN: a job that needs them all fails for that reason.
none_gets_through() {
    patiently slots_are "$1"
    at_client 60 submit -p "$1" "$many" -- sum 1000 0
    ended_with 1 && grep -qE -- "$2" "$work/err"
}
lisp() { deafen worker1 worker2; sleep 0.8; undeafen worker1 worker2; }
survives 'one direction between two task managers, for a moment' lisp
is_fatal 'one direction between two task managers' 'connection to .*(silent|lost)' deafen worker1 worker2
claim 'one direction between two task managers: another job does not get through either' \
    none_gets_through 3 'no connection to'
is_mended 'one direction between two task managers' undeafen worker1 worker2
is_fatal 'the other direction' 'connection to .*(silent|lost)' deafen worker2 worker1
is_mended 'the other direction' undeafen worker2 worker1
is_fatal 'what a task manager says to the job manager' 'taskmanager .*(lost|silent|not been heard)' \
    deafen worker3 manager
is_mended 'what a task manager says to the job manager' undeafen worker3 manager
is_fatal 'what the job manager says to a task manager' 'taskmanager .*(lost|silent|not been heard)' \
    deafen manager worker3
is_mended 'what the job manager says to a task manager' undeafen manager worker3

# --- packets that are lost, late, or in the wrong order ---

bad_lines() { for i in 1 2 3; do shape worker$i "$@"; done; }
good_lines() { for i in 1 2 3; do shape worker$i; done; }
if has_shaping netem delay 1ms; then
    bad_lines netem delay 10ms 5ms 25% loss 2% duplicate 1% reorder 25% 50%
    claim 'packets that are lost, late, twice or in the wrong order: the result is right' right sum 200000 0
    good_lines
else
    printf '# SKIP this kernel has no netem\n'
fi
if has_shaping tbf rate 8mbit burst 4kb limit 12kb; then
    # A queue of 12 KB on a slow line: it overflows all the time, so packets are lost, and late.
    bad_lines tbf rate 8mbit burst 4kb limit 12kb
    claim 'a slow line with a short queue: the result is right' right sum 500000 0
    # A long queue instead: what is said waits behind data for much of the time that counts as silence.
    bad_lines tbf rate 2mbit burst 4kb latency 1500ms
    claim 'a slower line with a long queue: the result is right' right sum 200000 0
    good_lines
fi
claim 'mended, the next job is right' whole
stutter() {
    local i
    for ((i = 0; i < 12; i++)); do
        deafen worker$((RANDOM % 3 + 1)) worker2
        deafen worker2 worker$((RANDOM % 2 * 2 + 1))
        sleep "0.0$((RANDOM % 9 + 1))"
        for to in 1 2 3; do
            undeafen worker$to worker2
            undeafen worker2 worker$to
        done
        sleep "0.1$((RANDOM % 9))"
    done
}
survives 'packets lost in bursts, in either direction' stutter

# --- peers that do not take what they are sent ---

claim 'a task that takes nothing for long: a job runs' runs stall 300000 7
claim 'a task that takes nothing for long: the result is right' ends_right
pause() { signal worker2 STOP; sleep 1.2; signal worker2 CONT; }
survives 'a task manager that stands still for a moment' pause
is_fatal 'a task manager that stands still' 'taskmanager .*(lost|silent|not been heard)' signal worker2 STOP
is_mended 'a task manager that stands still' signal worker2 CONT

# --- connections that break ---

if runs sum 10000000000 0 && reset worker1 worker2; then
    claim 'a connection that breaks: the job fails, and the reason says so' fails_with 'connection to .* lost'
    for round in 1 2 3 4; do
        claim 'the next job is right' whole
        claim 'a job runs' runs sum 10000000000 0
        sleep "0.$((RANDOM % 9))"
        reset worker$((round % 3 + 1)) worker$(((round + 1) % 3 + 1))
        claim 'a connection that breaks at some moment: the job fails, and the reason says so' \
            fails_with 'connection to .* lost'
    done
    claim 'the next job is right' whole
    is_fatal 'the connection to the job manager breaks' 'taskmanager .*lost' reset worker1 manager
    is_mended 'the connection to the job manager breaks' true
    # Nobody uses it: the next job makes a new one.
    reset worker1 worker2
    reset worker2 worker3
    claim 'connections that break between two jobs are no matter' whole
else
    printf '# SKIP connections cannot be reset here\n'
    inside client "$leat" cancel -m "$(address manager):8081" "$id" >/dev/null 2>&1
fi

# --- another one where a peer was ---

replace() { lose worker2; start_worker worker2 -D taskmanager.connect-timeout=3s; }
is_fatal 'a task manager that is replaced at the same address' 'taskmanager .*lost' replace
is_mended 'a task manager that is replaced at the same address' true
# Lost without a word: the others still have their connections to the one that was.
replace_unheard() { unplug worker3; replace3; plug worker3; }
replace3() { lose worker3; start_worker worker3 -D taskmanager.connect-timeout=3s; }
is_fatal 'a task manager that vanishes, and another comes to its address' 'taskmanager .*lost' replace_unheard
is_mended 'a task manager that vanishes, and another comes to its address' true
# Idle connections go, so that the next job has to make new ones.
disconnected() {
    reset worker1 worker2
    wait_until apart_from worker1 worker2
}
apart_from() { [ -z "$(inside "$1" ss -Htn dst "$(address "$2")" state established)" ]; }
# Who dials worker 2 gets to another task manager, which says who it is; who is dialled by it answers to that one.
claim 'an impostor: the others are connected to nobody' disconnected
inside worker3 ip addr add "$(address worker2)/32" dev lo
number[impostor]=${number[worker2]} holder[impostor]=${holder[worker3]}
start_worker impostor
claim 'an impostor: it is there' wait_until slots_are 4
inside worker1 ip neigh replace "$(address worker2)" lladdr "$(inside worker3 cat /sys/class/net/eth0/address)" \
    nud permanent dev eth0
claim 'an impostor: a job that gets to it fails, and the reason says so' \
    none_gets_through 4 'no connection to|silent'
lose impostor
inside worker3 ip addr del "$(address worker2)/32" dev lo
is_mended 'an impostor' undeafen worker1 worker2
done_testing
