#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What help says is so: every example of every verb works, and the same descriptions make manual pages and JSON.
# shellcheck source=tests/tools/lib.sh
. "$(dirname -- "$0")/lib.sh"
here=$(cd -- "$(dirname -- "$0")" && pwd)
sources=${here%/tests/tools}
verbs=(run plan new build config version help)
# Theirs want a cluster, and are run by test_submit.sh.
remote=(cluster submit list status why cancel logs metrics jobmanager taskmanager)
all=("${verbs[@]}" "${remote[@]}")

# The examples of a verb: lines of that part that are indented by two blanks only.
examples() {
    "$leat" help "$1" | awk '/^[A-Z]/ { inside = /^Examples:/ } inside && /^  [^ ]/ { print substr($0, 3) }'
}

mkdir "$work/place"
cp "$jobs/../../examples/wordcount.so" "$work/place"
cp "$sources/templates/job.h.in" "$work/place/job.h"
cp "$sources/templates/job.c.in" "$work/place/job.c"
echo 'to be or not to be' >"$work/place/words.txt"
mkdir "$work/bin"
ln -s "$leat" "$work/bin/leat"
works() { (cd "$work/place" && PATH=$work/bin:$PATH bash -euo pipefail -c "$1" >"$work/out" 2>"$work/err"); }
count=0
for verb in "${verbs[@]}"; do
    while IFS= read -r example; do
        count=$((count + 1))
        # Only this compiler knows the option of that example.
        [[ $example != *-fanalyzer* ]] || example=${example/gcc -fanalyzer/cc -O1}
        claim "example of $verb: $example" works "$example"
    done < <(examples "$verb")
done
claim 'every verb but new has two examples at least' test "$count" -ge 15

all_help() { for verb in "${all[@]}"; do "$leat" help "$verb"; done; }
narrow() { all_help | awk 'length($0) > 80 { print; bad = 1 } END { exit bad }'; }
claim 'help fits into 80 columns' narrow
plain() { ! all_help | grep -q "$(printf '\033')"; }
claim 'help has no escapes when it is not for a terminal' plain
listed() {
    local verb option
    for verb in "${all[@]}"; do
        grep -qF "\`leat $verb" "$sources/docs/cli.md" || { echo "docs/cli.md: leat $verb"; return 1; }
        while IFS= read -r option; do
            grep -qF -- "$option" "$sources/docs/cli.md" || { echo "docs/cli.md: $verb $option"; return 1; }
        done < <("$leat" help "$verb" | grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+')
    done
}
two_each() {
    local verb
    for verb in "${remote[@]}"; do
        [ "$(examples "$verb" | wc -l)" -ge 2 ] || { echo "$verb"; return 1; }
    done
}
claim 'verbs of a cluster have two examples each' two_each
claim 'docs/cli.md has every verb and option' listed

if command -v groff >/dev/null; then
    sound() {
        local verb
        for verb in '' "${all[@]}"; do
            # shellcheck disable=SC2086 # no verb is the page of the program
            "$leat" help --man $verb >"$work/page.1"
            groff -man -ww -Tutf8 "$work/page.1" >"$work/page" 2>&1 && grep -q 'LEAT' "$work/page" || return 1
            # man.local is the site's own file of macros, which is missing on some machines.
            ! grep 'warning' "$work/page" | grep -v "man\.local'" || return 1
        done
    }
    claim 'manual pages have no faults' sound
fi
if command -v jq >/dev/null; then
    leat_run help --json
    claim 'help --json has all verbs' json_has 'length == 17 and all(.verb and .summary and (.options | length) > 0)'
    leat_run help run --json
    claim 'and one of them when it is named' json_has \
        '.options[] | select(.short == "-p") | .option == "--parallelism"'
    leat_run version --json
    claim 'version --json says what it is made of' json_has \
        '.library == .program and .job_interface > 0 and (.dependencies | length) >= 5'
fi
if command -v script >/dev/null; then
    mkfifo "$work/never"
    exec 8<>"$work/never"
    seen() {
        timeout 20 script -qfec "$1" /dev/null <&8 >"$work/screen" 2>&1
        grep -q "$(printf '\033')" "$work/screen"
    }
    unseen() { ! seen "$1"; }
    claim 'headings are bold on a terminal' seen "TERM=xterm '$leat' help run"
    claim 'mistakes stand out there' seen "TERM=xterm '$leat' frobnicate"
    claim 'NO_COLOR is honoured' unseen "export NO_COLOR=1 TERM=xterm; '$leat' help run; '$leat' frobnicate"
fi
done_testing
