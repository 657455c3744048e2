#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the models of the scheduling protocol with spin: each must hold, and each mutation, which takes one recheck or
# one ordering away, must be found out. Also, that the functions that the models' steps name exist. Writes TAP.
# docs/design/scheduling.md says what the models contain. Usage: check.sh [FOLDER FOR FILES]
set -uo pipefail

here=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd -P)
root=$(cd -- "$here/../.." && pwd -P)
if [ $# -gt 0 ]; then
    work=$1
    mkdir -p -- "$work"
else
    work=$(mktemp -d)
    trap 'rm -rf -- "$work"' EXIT
fi
jobs=$(nproc 2>/dev/null || echo 2)
for tool in spin "${CC:-cc}"; do
    command -v "${tool%% *}" >/dev/null || { echo "1..0 # SKIP no $tool"; exit 0; }
done

# NAME FILE OPTION… : MUTATION… (a mutation must make the model it stands behind fail).
models=(
    'parker parker.pml : UNPARK_BEFORE_PUBLISHING NO_WAKE_OF_PARKED PARK_WITHOUT_EXPECTED'
    'sleep sleep.pml : LOOK_BEFORE_CLEAR NO_CAS_TO_IDLE NO_RECHECK_SLEEP NO_SLEEPERS_ANNOUNCE NO_ROUSE_ANOTHER
        LOOK_BEFORE_ANNOUNCE NO_END_OF_OWN_SLEEP PERMIT_LEFT_BEHIND FREE_WHILE_JOINING'
    'backlog backlog.pml : NO_RECHECK_LEND NO_SLEEPERS_ANNOUNCE'
    'lend lend.pml -DNS=2 : NO_FUTEX_WAKE WAIT_AS_IDLE NO_LOOK_IN_WAIT FUTEX_WITHOUT_EXPECTED
        NO_NOTIFIED_ON_RETURN_FROM_WAIT NO_SLEEPING_CHECK_TAKE_BACK NO_MONITOR_ROUSE_TAKE_BACK
        NO_RECHECK_MONITOR NO_ROUSE_MONITOR'
    'lend-created lend.pml -DNS=1 :'
    'lend-cancelled lend.pml -DNS=2 -DCANCEL : NO_FUTEX_WAKE'
    'take-away lend.pml -DSELF -DNS=3 -DNT=3 : NO_HOLDER_CHECK_SLEEP NO_HOLDER_CHECK_LEND NO_HOLDER_CHECK_TAKE_BACK'
    'guest lend.pml -DSELF -DNS=1 -DNG=1 : HOST_AS_SPARE NO_WAIT_FOR_GUESTS NO_HOLDER_CHECK_TAKE_BACK'
    'guests lend.pml -DSELF -DNS=1 -DNG=2 : NO_WAIT_FOR_GUESTS'
    'guest-backlog backlog.pml -DNG=1 : NO_RECHECK_HAND_BACK'
    'exchange tasks.pml -DRECORDS=3 -DSEGMENT_UNITS=1 : NO_RECHECK_GATE_DONE POLL_AFTER_READ NO_RECHECK_POOL_AWAIT
        NO_AWAIT AWAIT_AFTER_LOOK WAKE_BEFORE_PUSH NOTIFY_BEFORE_FINISH LOOK_BEFORE_CLEAR NO_CAS_TO_IDLE'
    'exchange-one-segment tasks.pml -DRECORDS=3 -DSEGMENT_UNITS=1 -DPOOL=1 : POKE_BEFORE_HOMECOMING'
    'exchange-events tasks.pml -DRECORDS=0 -DRING=1 : POKE_BEFORE_POP NO_POKE_OF_POP NO_LOOK_IN_WAIT'
    'exchange-timer tasks.pml -DTIMER : POOL=1'
    'exchange-cancelled tasks.pml -DCANCEL -DTIMER : NO_FUTEX_WAKE'
    'exchange-cut-records tasks.pml -DRECORD_UNITS=3 -DSEGMENT_UNITS=1 : AWAIT_AFTER_LOOK NO_LOOK_IN_WAIT WAIT_AS_IDLE'
    'exchange-fan-in tasks.pml -DNP=2 -DRECORDS=1 -DFIRST_EVENT=1 : WAKE_BEFORE_PUSH NO_RECHECK_GATE_DONE'
    'exchange-broadcast tasks.pml -DNG=2 -DRECORDS=1 : DROP_IN_TWO_STEPS'
)

# verify OPTIMISATION FOLDER FILE DEFINITION…: 0 holds, 1 an error was found, 2 something else went wrong.
verify() {
    local optimisation=$1 dir=$2 file=$3
    shift 3
    mkdir -p -- "$dir" && cd -- "$dir" && rm -f -- ./pan* ./*.log ./*.trail || return 2
    spin -a "$@" "$here/$file" >spin.log 2>&1 && [ -f pan.c ] || return 2
    # shellcheck disable=SC2086 # CC may carry options.
    ${CC:-cc} "$optimisation" -w -DSAFETY -DCOLLAPSE -DNOFAIR -DMEMLIM=1800 -o pan pan.c 2>>spin.log || return 2
    ./pan -n -m1000000 >pan.log 2>&1
    grep -q '^pan:1: \(invalid end state\|assertion violated\)' pan.log && return 1
    # A search that ran out of memory or depth has shown nothing.
    grep -q 'errors: 0' pan.log &&
        ! grep -qE 'max search depth too small|out of memory|not completed|Interrupted' pan.log && return 0
    return 2
}

# One line of TAP, without its number, to FOLDER/tap.
run_model() {
    local name=$1
    shift
    verify -O1 "$work/$name" "$@"
    case $? in
    0)
        printf 'ok - %s holds: %s states, depth %s\n' "$name" \
            "$(sed -nE 's/^ *([0-9.e+]+) states, stored.*/\1/p' "$work/$name/pan.log")" \
            "$(sed -nE 's/.*depth reached ([0-9]+).*/\1/p' "$work/$name/pan.log")"
        ;;
    1)
        printf 'not ok - %s holds\n# %s\n' "$name" "$(grep '^pan:1' "$work/$name/pan.log")"
        printf '# to see how: cd %s && spin -t -p %s\n' "$work/$name" "${*:2} $here/$1"
        ;;
    *) printf 'not ok - %s holds\n# %s\n' "$name" "$(tail -n 3 "$work/$name"/*.log | tr '\n' ' ')" ;;
    esac >"$work/$name/tap"
}

run_mutation() {
    local name=$1 mutation=$2 dir=$work/$1-$2
    shift 2
    # An error is found soon, so most of the time would go into compiling.
    verify -O0 "$dir" "$@" "-D$mutation"
    if [ $? -eq 1 ]; then
        printf 'ok - %s finds out %s: %s\n' "$name" "$mutation" \
            "$(sed -nE 's/^pan:1: ([a-z ]+) .*/\1/p' "$dir/pan.log")"
    else
        printf 'not ok - %s finds out %s\n# %s\n' "$name" "$mutation" "$(tail -n 3 "$dir"/*.log | tr '\n' ' ')"
    fi >"$dir/tap"
}

# Every function that a step of a model stands for exists.
check_names() {
    local missing=() name
    while read -r name; do
        grep -qE "^[A-Za-z_].*\b$name\(" "$root"/{base,network,runtime}/*.[ch] || missing+=("$name")
    done < <(sed -nE 's|^ *// C: ([a-z_0-9]+)$|\1|p' "$here"/*.pml | sort -u)
    if [ ${#missing[@]} -eq 0 ]; then
        echo "ok - the functions that the models name exist"
    else
        printf 'not ok - the functions that the models name exist\n# missing: %s\n' "${missing[*]}"
    fi
}

# Every mutation that the models know is tried; but for the one that, as the design page says, breaks nothing.
check_mutations() {
    local untried=() name
    while read -r name; do
        case $name in
        WITH_* | TIMER | CANCEL | SELF | N[A-Z] | POOL | RING | RECORD* | SEGMENT_UNITS | FIRST_EVENT) ;;
        NO_RECHECK_STOPPING) ;;
        *) [[ " ${models[*]} " =~ [[:space:]]${name}[[:space:]] ]] || untried+=("$name") ;;
        esac
    done < <(sed -nE 's/^#ifn?def ([A-Z_]+)$/\1/p; s/.*!defined\(([A-Z_]+)\).*/\1/p' "$here"/*.pml | sort -u)
    if [ ${#untried[@]} -eq 0 ]; then
        echo "ok - all mutations of the models are tried"
    else
        printf 'not ok - all mutations of the models are tried\n# untried: %s\n' "${untried[*]}"
    fi
}

order=()
for model in "${models[@]}"; do
    read -rd '' -a words <<<"$model"
    name=${words[0]} options=() mutations=() behind=no
    for word in "${words[@]:1}"; do
        if [ "$word" = : ]; then
            behind=yes
        elif [ $behind = no ]; then
            options+=("$word")
        else
            mutations+=("$word")
        fi
    done
    for mutation in '' "${mutations[@]}"; do
        while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
            wait -n
        done
        if [ -z "$mutation" ]; then
            run_model "$name" "${options[@]}" &
            order+=("$name")
        else
            run_mutation "$name" "$mutation" "${options[@]}" &
            order+=("$name-$mutation")
        fi
    done
done
wait

number=1 failed=0
echo "1..$((${#order[@]} + 2))"
{
    check_names
    check_mutations
    for name in "${order[@]}"; do
        cat -- "$work/$name/tap"
    done
} >"$work/all"
while IFS= read -r line; do
    case $line in
    'ok - '*) printf 'ok %d%s\n' $((number++)) "${line#ok}" ;;
    'not ok - '*)
        printf 'not ok %d%s\n' $((number++)) "${line#not ok}"
        failed=1
        ;;
    *) printf '%s\n' "$line" ;;
    esac
done <"$work/all"
exit "$failed"
