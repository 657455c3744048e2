#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whether every test that docs/coverage.md names is there. Prints TAP.
#
# usage: coverage.sh SOURCES
# shellcheck disable=SC2016 # the backquotes are those of the page
set -uo pipefail

cd -- "$1" || exit 1
missing=()
count=0
while IFS= read -r name; do
    count=$((count + 1))
    if [[ $name == *" / "* ]]; then
        grep -rqE "^Test\(${name% / *}, ${name#* / }[,)]" tests || missing+=("$name")
    else
        [ -e "$name" ] || missing+=("$name")
    fi
done < <(grep -E '^\|' docs/coverage.md | grep -oE '`[^`]+`' | tr -d '`' | sort -u)
printf '1..1\n'
if [ "$count" -gt 0 ] && [ "${#missing[@]}" -eq 0 ]; then
    printf 'ok 1 - all %d tests that docs/coverage.md names are there\n' "$count"
else
    printf '# not there: %s\n' "${missing[@]}"
    printf 'not ok 1 - tests that docs/coverage.md names are there\n'
    exit 1
fi
