#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Usage: check_macros.sh SOURCE_DIR INCLUDE_DIR LIBLEAT
# Compiles macros.c as C11 and as C++17 with every compiler that is installed, warnings as errors,
# and runs it; then compiles it with each of its wrong fields and expects the message that names the
# field.
set -u
source=$1/macros.c include=$2 library=$3
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
    echo "FAILED: $*"
    failed=1
}

flags=(-Wall -Wextra -Wpedantic -Wshadow -Werror -O1 -I "$include")
programs=0
for compiler in "gcc -std=c11" "clang -std=c11" "g++ -std=c++17 -x c++" \
    "clang++ -std=c++17 -x c++"; do
    read -ra command <<<"$compiler"
    command -v "${command[0]}" >/dev/null || continue
    programs=$((programs + 1))
    # The library is linked in a step of its own, as -x would apply to it too.
    if ! "${command[@]}" "${flags[@]}" -c "$source" -o "$work/macros.o"; then
        fail "$compiler does not compile macros.c"
        continue
    fi
    if ! "${command[0]}" "$work/macros.o" "$library" -Wl,-rpath,"$(dirname "$library")" \
        -o "$work/macros" || ! "$work/macros"; then
        fail "$compiler: macros.c does not run"
    fi
    wrong=0
    while grep -q "WRONG == $((wrong + 1))\$" "$source"; do
        wrong=$((wrong + 1))
        if "${command[@]}" "${flags[@]}" -DWRONG=$wrong -fsyntax-only "$source" \
            2>"$work/log"; then
            fail "$compiler accepts the wrong field $wrong"
        elif ! grep -q 'field bad of wrong must be' "$work/log"; then
            fail "$compiler does not say what is wrong with field $wrong"
            head -5 "$work/log"
        fi
    done
    echo "$compiler: compiles, runs, refuses $wrong wrong fields"
done
[ "$programs" -gt 0 ] || fail "there is no compiler"
exit $failed
