#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who is let into a cluster and who is not, by a secret and by TLS; and that garbage on its ports disturbs nobody.
#
# usage: test_security.sh LEAT JOBS GARBAGE
# The quoted commands are for shells of their own.
# shellcheck disable=SC2016
# shellcheck source=tests/cluster/lib.sh
. "$(dirname -- "$0")/lib.sh"
# shellcheck source=tests/cluster/certificates.sh
. "$(dirname -- "$0")/certificates.sh"
garbage=$(readlink -f -- "$3")
state=$XDG_STATE_HOME/leat/default
sums_of 200000 >"$work/expected"
sum_is_right() {
    leat_do 120 submit -p 2 "$many" "$@" -- sum 200000
    cmp <(sort -n "$work/out") "$work/expected"
}
rest() { jq -r .rest "$state/cluster.json"; }
rpc() { jq -r .rpc "$state/cluster.json"; }
# ask PATH: the head of the answer to a request of a stranger.
ask() {
    exec 9<>"/dev/tcp/127.0.0.1/$(rest | sed 's/.*://')" &&
        printf 'GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' "$1" >&9 && timeout 10 cat <&9
    exec 9>&-
}
answers() { ask "$1" | head -n 1 | grep -q " $2 "; }
logged() { grep -cF -- "$1" "$state/jobmanager.log"; }
logged_once() { [ "$(logged "$1")" -eq 1 ]; }
# A task manager that is not let in, for three seconds.
stranger() { leat_do 3 taskmanager -m "$(rpc)" --folder "$work/stranger" "$@"; }

# --- a local cluster has a secret ---

leat_do 40 cluster start -w 2
claim 'a cluster starts' ended_with 0
claim 'with a secret that only its user can read' [ "$(stat -c %a "$state/secret")" = 600 ]
claim 'a job runs as ever' sum_is_right
leat_do 20 list -m "$(rest)"
claim 'its secret is found for its address too' ended_with 0
claim 'strangers see that it is alive' answers /health 200
claim 'and nothing else' answers /v1/jobs 401
claim 'not even its metrics' answers /metrics 401
head -c 32 /dev/urandom | base64 >"$work/other"
chmod 600 "$work/other"
leat_do 20 list -m "$(rest)" --secret-file "$work/other"
claim 'another secret is refused' refused 1 'not that of this cluster'
chmod 644 "$work/other"
leat_do 20 list -m "$(rest)" --secret-file "$work/other"
claim 'one that others can read is not taken' refused 1 'chmod 600'
chmod 600 "$work/other"
LEAT_SECRET_FILE=$work/other leat_do 20 list
claim 'the own cluster needs none from the environment' ended_with 0
stranger
claim 'a task manager without a secret is told' err_has 'wants a secret'
stranger --secret-file "$work/other"
claim 'and one with another' err_has 'has another secret'
claim 'the job manager logs that once a minute' logged_once 'somebody who connected was refused: tcp://127.0.0.1'
claim 'the secret is nowhere to be seen' sh -c '! grep -rqF "$(cat "$1/secret")" "$1" --exclude=secret' - "$state"
claim 'nor on a command line' sh -c '! ps axo args | grep -F "$(cat "$1/secret")" | grep -qv grep' - "$state"

# --- where to listen ---

leat_do 20 jobmanager --bind 0.0.0.0 --port 0 --rpc-port 0
claim 'a job manager does not listen everywhere without a secret' refused 1 0.0.0.0 --secret-file --insecure
stranger --bind 0.0.0.0
claim 'neither does a task manager' refused 1 0.0.0.0 --secret-file
leat_do 2 jobmanager --bind 0.0.0.0 --port 0 --rpc-port 0 --insecure
claim 'unless it is told to, which it warns of' err_has 'everybody who reaches 0.0.0.0 can run code'
leat_do 2 jobmanager --bind 0.0.0.0 --port 0 --rpc-port 0 --secret-file "$work/other"
claim 'with a secret it does' err_has 'REST at 0.0.0.0:'

# --- what is masked ---

leat_do 30 submit "$many" -- sum 10 0 --db-password hunter2 --token=hunter2
id=$("$leat" list -a --json | jq -r '.jobs[0].id')
claim 'secrets among the arguments are not logged' sh -c '! grep -rqF hunter2 "$1"/*.log' - "$state"

# --- garbage ---

data_ports() { sed -n 's|.*takes data at tcp://[^:]*:\([0-9]*\)[ ;].*|\1|p' "$state"/taskmanager-*.log; }
mapfile -t ports < <({ rest; rpc; data_ports; } | sed 's/.*://')
claim 'the ports of all processes are known' [ "${#ports[@]}" -eq 4 ]
mapfile -t files < <(find "$state" -type s)
claim 'and the socket files of the task managers' [ "${#files[@]}" -eq 2 ]
"$garbage" 6 "${ports[@]}" "${files[@]}" >"$work/thrown" &
thrower=$!
claim 'a job is right while garbage comes to all of them' sum_is_right
claim 'and so is the next' sum_is_right
wait "$thrower"
claim 'many connections were made' [ "$(sed 's/ .*//' "$work/thrown")" -gt 1000 ]
claim 'the cluster is whole' wait_until slots_free 2
claim 'the log is not flooded' [ "$(wc -l <"$state/jobmanager.log")" -lt 100 ]
claim 'and a job is right afterwards' sum_is_right
leat_do 30 cluster stop
claim 'it stops' ended_with 0

# --- no more files ---

# data_port INDEX: of the task manager that runs now; logs go on from one cluster to the next.
data_port() {
    sed -n 's|.*takes data at tcp://[^:]*:\([0-9]*\)[ ;].*|\1|p' "$state/taskmanager-$1.log" | tail -n 1
}
(ulimit -n 100 && leat_do 40 cluster start -w 2)
claim 'a cluster with few files starts' wait_until slots_free 2
# They get a part of the files only, however many connections they make.
mkfifo "$work/end"
holders=()
for port in "$(rest | sed 's/.*://')" "$(rpc | sed 's/.*://')" "$(data_port 1)" "$(data_port 2)"; do
    : >"$work/held-$port"
    "$garbage" hold 300 "$port" <>"$work/end" >"$work/held-$port" &
    holders+=($!)
    claim 'strangers connect as often as they get' wait_until grep -q held "$work/held-$port"
done
claim 'there are files for a job none the less' sum_is_right
claim 'and for another one' sum_is_right
claim 'and for requests' "$leat" list
{
    kill "${holders[@]}"
    wait "${holders[@]}"
} 2>/dev/null
claim 'no task manager was lost' wait_until slots_free 2
leat_do 30 cluster stop

# A task manager that has none left: what runs goes on, what needs some fails and says why, and it recovers.
leat_do 40 cluster start -w 2 -s 2
submit_detached -p 2 "$many" -- sum 500000 80000
running=$id
claim 'a job runs on two task managers' wait_until all_running "$running"
pid=$(worker_pid 1)
few() { prlimit --pid "$pid" --nofile="$(($(find "/proc/$pid/fd" -mindepth 1 | wc -l) + $1)):"; }
enough() { prlimit --pid "$pid" --nofile="$(prlimit --pid "$pid" --nofile --raw --noheadings -o HARD):"; }
# Done and right, or in vain for this reason.
says_so() {
    if ended_with 0; then
        cmp <(sort -n "$work/out") "$work/expected"
    else
        refused 1 'open files' || refused 1 'no connection to'
    fi
}
for files in 0 1 3 6 10; do
    few $files
    leat_do 60 submit -p 2 "$many" -- sum 200000
    claim "with $files files left another job is right, or says why not" says_so
done
enough
finished_right() {
    wait_until state_is "$running" FINISHED && cmp <("$leat" logs --out "$running" | sort -n) <(sums_of 500000)
}
claim 'the job that was running all the time is right' finished_right
claim 'with files again, the next one is right' sum_is_right
claim 'it is still the same task manager' [ "$(worker_pid 1)" = "$pid" ]
# The same for the job manager. The clients of one that has none at all wait.
pid=$(manager_pid)
for files in 1 2 3 5; do
    few $files
    cp "$many" "$work/new-$files.so"
    printf '%s' "$files" >>"$work/new-$files.so" # that it has not got yet
    leat_do 60 submit -p 2 "$work/new-$files.so" -- sum 200000
    claim "with $files files left at the job manager a job is right, or says why not" says_so
done
few 0
"$leat" list >"$work/listed" 2>&1 &
asking=$!
sleep 0.3
enough
wait "$asking"
claim 'a client has waited until there were some' [ $? -eq 0 ]
claim 'with files again at the job manager, the next one is right' sum_is_right
claim 'and none of its slots is lost' wait_until slots_free 4
leat_do 30 cluster stop

# --- TLS ---

if ! command -v openssl >/dev/null; then
    printf '1..%d\n' "$claims"
    exit 0
fi
ours=$work/ours theirs=$work/theirs
make_authority "$ours" && make_certificate "$ours" node 30 && make_certificate "$ours" old -1
make_authority "$theirs" && make_certificate "$theirs" node 30
claim 'certificates are made' [ -s "$theirs/node.pem" ]
# with CERTIFICATE AUTHORITY: the options.
with() { printf '%s\n' --tls-cert "$1.pem" --tls-key "$1.key" --tls-ca "$2/ca.pem"; }
mapfile -t good < <(with "$ours/node" "$ours")
lines=$(wc -l <"$state/jobmanager.log") worker_lines=$(wc -l <"$state/taskmanager-1.log") since=$SECONDS
leat_do 40 cluster start -w 3 "${good[@]}" -D memory.segment-size=512KiB
claim 'a cluster with certificates starts' ended_with 0
claim 'a job over TLS is right, with large frames' sum_is_right
mapfile -t options < <(with "$ours/old" "$ours")
leat_do 20 list -m "$(rest)" "${options[@]}"
claim 'a certificate that has expired is not used' refused 1 'has expired'
stranger "${options[@]}"
claim 'neither by a task manager' refused 1 'has expired'
cp "$ours/node.key" "$work/open.key" && chmod 644 "$work/open.key"
leat_do 20 list -m "$(rest)" --tls-cert "$ours/node.pem" --tls-key "$work/open.key" --tls-ca "$ours/ca.pem"
claim 'nor a key that others can read' refused 1 'can be used by others than its owner (mode 0644)'
leat_do 20 list -m "$(rest)" --tls-cert "$ours/node.pem" --tls-key "$ours/old.key" --tls-ca "$ours/ca.pem"
claim 'nor one of another certificate' refused 1 'is not the key of the certificate'
mapfile -t options < <(with "$theirs/node" "$theirs")
leat_do 20 list -m "$(rest)" "${options[@]}"
claim 'a foreign authority is refused' refused 1 'no TLS with what answers'
stranger "${options[@]}"
claim 'and told to the task manager' err_has 'does not do TLS with this process'
leat_do 20 list -m "$(rest)" --secret-file "$work/other"
claim 'without TLS there is no answer' refused 1 'wants TLS'
stranger
claim 'nor for a task manager' err_has 'does it want TLS?'
# What a client would see that does not look at its own certificate.
over_tls() {
    printf 'GET /v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' |
        timeout 10 openssl s_client -quiet -connect "$(rest)" "$@" 2>/dev/null | tr -d '\r'
}
over_tls >"$work/out"
claim 'no certificate: refused with the reason' out_has 'wants a certificate'
over_tls -cert "$ours/old.pem" -key "$ours/old.key" >"$work/out"
claim 'an expired one too' out_has 'has expired'
over_tls -cert "$theirs/node.pem" -key "$theirs/node.key" >"$work/out"
claim 'one of another authority too' out_has 'not signed for this cluster'
over_tls -cert "$ours/node.pem" -key "$ours/node.key" >"$work/out"
claim 'the right one is served' out_has '"jobs":'
ports=("$(data_port 1)" "$(data_port 2)" "$(data_port 3)")
submit_detached -p 3 "$many" -- sum 500000 80000
running=$id
# turned_away PORT ALERT OPTION…: which the other side gives as its reason.
turned_away() {
    timeout 10 openssl s_client -connect "127.0.0.1:$1" "${@:3}" < <(sleep 5) >"$work/out" 2>&1
    grep -qiE -- "alert ($2)" "$work/out"
}
for port in "$(rpc | sed 's/.*://')" "${ports[0]}"; do
    claim 'no certificate: refused with the reason' turned_away "$port" 'certificate required'
    claim 'an expired one too' \
        turned_away "$port" 'certificate expired' -cert "$ours/old.pem" -key "$ours/old.key"
    claim 'one of another authority too' \
        turned_away "$port" 'unknown ca|bad certificate|decrypt error' -cert "$theirs/node.pem" -key "$theirs/node.key"
done
"$garbage" 3 "$(rest | sed 's/.*://')" "$(rpc | sed 's/.*://')" "${ports[@]}" >"$work/thrown"
claim 'the job that runs while garbage comes is right' finished_right
# Once a minute for each port of the job manager, and each task manager.
told() { tail -n +"$(($2 + 1))" "$state/$1.log" | grep -cF 'refused: '; }
minutes=$(((SECONDS - since) / 60 + 1))
claim 'the job manager tells of it once a minute' [ "$(told jobmanager "$lines")" -le $((2 * minutes)) ]
claim 'and so does the task manager' [ "$(told taskmanager-1 "$worker_lines")" -le $minutes ]
claim 'which it does' [ "$(told taskmanager-1 "$worker_lines")" -ge 1 ]
claim 'a job is right afterwards' sum_is_right
claim 'no task manager was lost' slots_free 3
leat_do 30 cluster stop
claim 'it stops' ended_with 0
printf '1..%d\n' "$claims"
