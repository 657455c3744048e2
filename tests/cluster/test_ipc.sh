#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Task managers of one host talk over socket files by themselves: which users see where they look, which come and go
# with their processes, and which nobody needs.
#
# usage: test_ipc.sh LEAT JOBS
# shellcheck source=tests/cluster/lib.sh
. "$(dirname -- "$0")/lib.sh"
# shellcheck source=tests/cluster/certificates.sh
. "$(dirname -- "$0")/certificates.sh"
state=$XDG_STATE_HOME/leat/default
sums_of 100000 >"$work/expected"
sum_is_right() {
    leat_do 60 submit -p 3 "$many" -- sum 100000 0
    ended_with 0 && cmp <(sort -n "$work/out") "$work/expected"
}

# --- what is open, as the system sees it ---

# The connections that task managers have accepted at socket files below this folder.
by_socket() { awk -v folder="$1/" '$6 == "03" && index($0, folder)' /proc/net/unix | wc -l; }
# logs_tell PATTERN: what it has found, in the logs of all task managers.
logs_tell() { sed -n "s|.*takes data at $1.*|\\1|p" "$XDG_STATE_HOME"/leat/default/taskmanager-?.log; }
data_ports() { logs_tell 'tcp://[^:]*:\([0-9]*\)[ ;]'; }
# Those at the ports for data.
by_port() {
    data_ports | while read -r port; do
        grep -ciE "^ *[0-9]+: [0-9A-F]{8}:$(printf '%04X' "$port") [0-9A-F:]+ 01 " /proc/net/tcp
    done | awk '{ sum += $1 } END { print sum + 0 }'
}
uses() { [ "$(by_socket "$work") $(by_port)" = "$1 $2" ]; }
sockets() { find "$work" -type s; }
files_are() { [ "$(sockets | wc -l)" -eq "$1" ]; }

# --- by themselves ---

leat_do 40 cluster start -w 3
claim 'a cluster of three starts' ended_with 0
claim 'each has a socket file' files_are 3
modes() { find "$state" "$@" -printf '%m\n' | sort -u; }
private() { [ "$(modes -type s) $(modes -name sockets)" = '600 700' ]; }
claim 'which only its user can reach' private
leat_do 20 cluster status
tells_ports() { grep -qE 'tcp://127\.0\.0\.1:[0-9]+' "$work/out" && ! grep -q 'ipc:' "$work/out"; }
claim 'people are told the ports' tells_ports
tells_sockets() { cmp <(logs_tell '.* ipc://\(.*\); ' | sort) <(sockets | sort); }
claim 'the logs tell of the socket files' tells_sockets
claim 'a job is right' sum_is_right
claim 'it went by the socket files, one connection for each pair' uses 3 0

# --- one is killed ---

before=$(sockets | sort)
mine=$state/taskmanager-2/sockets/mine
echo 'of a user' >"$mine"
kill -KILL "$(worker_pid 2)"
claim 'one that is killed is started again' wait_until slots_free 3
claim 'what it has left is gone' files_are 3
claim 'what is no socket stays' [ "$(cat "$mine")" = 'of a user' ]
rm "$mine"
claim 'its new socket file has a name of its own' [ "$(sockets | sort | comm -12 - <(echo "$before") | wc -l)" -eq 2 ]
claim 'the next job is right' sum_is_right
claim 'and went by the socket files' uses 3 0

# --- a socket file is lost under way ---

find "$state/taskmanager-1" "$state/taskmanager-3" -type s -delete
kill -KILL "$(worker_pid 2)"
claim 'one is started again while the others have lost theirs' wait_until slots_free 3
claim 'the next job is right all the same' sum_is_right
leat_do 30 cluster stop
claim 'it stops' ended_with 0
claim 'and leaves no socket file' files_are 0
claim 'nor a folder for one' [ -z "$(find "$state" -name sockets)" ]

# --- not wanted, not possible ---

leat_do 40 cluster start -w 3 -D network.ipc=false
claim 'it starts without network.ipc' ended_with 0
claim 'then there are no socket files' files_are 0
claim 'a job is right then' sum_is_right
claim 'which went by the ports' uses 0 3
leat_do 30 cluster stop
long=$work/$(printf '%080d' 0)
mkdir -p "$long"
XDG_STATE_HOME=$long leat_do 40 cluster start -w 3
claim 'a folder whose path is too long for a socket does not keep it from starting' ended_with 0
said() { [ "$(grep -c 'network.ipc: /.* has more than 107 bytes' "$long/leat/default/taskmanager-$1.log")" -eq 1 ]; }
said_by_all() { said 1 && said 2 && said 3; }
claim 'each says so once' said_by_all
export XDG_STATE_HOME=$long
claim 'a job is right there too' sum_is_right
claim 'by the ports' uses 0 3
leat_do 30 cluster stop
export XDG_STATE_HOME=$work/state

# --- certificates ---

if command -v openssl >/dev/null; then
    make_authority "$work/ca" 2>/dev/null && make_certificate "$work/ca" node 30 2>/dev/null
    tls=(--tls-cert "$work/ca/node.pem" --tls-key "$work/ca/node.key" --tls-ca "$work/ca/ca.pem")
    leat_do 40 cluster start -w 3 "${tls[@]}"
    claim 'a cluster with certificates starts' ended_with 0
    sum_with_certificates() {
        leat_do 60 submit -p 3 "${tls[@]}" "$many" -- sum 100000 0
        cmp <(sort -n "$work/out") "$work/expected"
    }
    claim 'a job is right there' sum_with_certificates
    claim 'and went by the socket files' [ "$(by_socket "$work")" -eq 3 ]
    leat_do 30 cluster stop "${tls[@]}"
fi
done_testing
