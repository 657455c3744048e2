#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whether what the pages for developers name is there: each path in backquotes, each name of C in backquotes, each file
# that is linked to. Prints TAP.
#
# usage: internals.sh SOURCES
# shellcheck disable=SC2016 # the backquotes are those of the pages
set -uo pipefail
export LC_ALL=C

cd -- "$1" || exit 1
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
tests=0

# What there is: the files with their folders, and every word in files of C, models and scripts, but for those here.
find . -type d \( -name .git -o -path './build*' -o -exec test -d '{}/meson-private' \; \) -prune -o -print |
    sed 's|^\./||' >"$work/files"
grep -E '\.(c|h|cc|pml|sh|map|in)$|^dev$|(^|/)meson(\.build|_options\.txt)$' "$work/files" |
    grep -v '^tests/docs/' | tr '\n' '\0' |
    xargs -0 grep -ohE '[A-Za-z_][A-Za-z0-9_]*' | sort -u >"$work/words"

declare -A word path
while read -r item; do word[$item]=1; done <"$work/words"
while read -r item; do path[$item]=1; done <"$work/files"

# is_file PAGE NAME: from the root, beside the page, a public header, or the last part of some path. "*" stands for
# anything.
is_file() {
    local name=${2%/} pattern
    [[ -z ${path[$name]:-}${path[${1%/*}/$name]:-}${path[include/$name]:-} ]] || return 0
    pattern=$(sed -E 's/[.+]/\\&/g; s/\*/[^\/]*/g' <<<"$name")
    grep -qE "(^|/)$pattern\$" "$work/files"
}

# is_word NAME: a name of C, or several where it has a "*".
is_word() {
    if [[ $1 == *\** ]]; then
        grep -qE "^${1//\*/[A-Za-z0-9_]*}\$" "$work/words"
    else
        [ -n "${word[$1]:-}" ]
    fi
}

# In "`a`" the token is a. Those with blanks are commands or texts, in which only names of our own are looked at. NAME
# and VERB stand for what one chooses.
check_token() {
    local page=$1 token=$2 name
    while read -r name; do
        is_word "$name" || printf '%s: %s is no name\n' "$page" "$name"
    done < <(grep -oE '\b(leati?|LEATI?)_[A-Za-z0-9_*]+' <<<"$token")
    case $token in
    *[!A-Za-z0-9_./*+-]* | *NAME* | *VERB* | build/* | build-* | leat.yaml | /* | *://*) ;;
    */* | *.c | *.h | *.cc | *.sh | *.md | *.py | *.pml | *.build | *.in)
        is_file "$page" "$token" || printf '%s: %s is no file\n' "$page" "$token"
        ;;
    esac
    # Functions and members of the inner pages: task_turn, final_state(), leat_job.shared.
    if [[ $page == docs/internals/* && $token =~ ^[a-z][a-z0-9]*(_[a-z0-9]+)+(\(\))?$ && $token != leat* ]]; then
        is_word "${token%()}" || printf '%s: %s is no name\n' "$page" "$token"
    elif [[ $page == docs/internals/* && $token =~ ^[a-z0-9_]+\.([a-z0-9_]+)$ && ${BASH_REMATCH[1]} != [ch] ]]; then
        is_word "${BASH_REMATCH[1]}" || printf '%s: %s has no such member\n' "$page" "$token"
    fi
}

check_link() {
    local target=${2%%#*}
    case $target in
    '' | *://*) ;;
    *) [ -e "${1%/*}/$target" ] || printf '%s: the link to %s leads nowhere\n' "$1" "$target" ;;
    esac
}

# check_page NAME FILE: the findings in the file, which counts as the page of that name. Blocks of code are left out.
check_page() {
    local item
    awk '/^```/ { inside = !inside; next } !inside && !/^    /' "$2" >"$work/text"
    grep -oE '`[^`]+`' "$work/text" | tr -d '`' | sort -u | while IFS= read -r item; do
        check_token "$1" "$item"
    done
    grep -oE '\]\([^) ]+\)' "$work/text" | sed 's/^](//; s/)$//' | sort -u | while IFS= read -r item; do
        check_link "$1" "$item"
    done
}

# result NAME: standard input holds the findings; none means that all is well.
result() {
    local findings
    findings=$(cat)
    tests=$((tests + 1))
    if [ -z "$findings" ]; then
        printf 'ok %d - %s\n' "$tests" "$1"
    else
        printf '%s\n' "$findings" | sed 's/^/# /'
        printf 'not ok %d - %s\n' "$tests" "$1"
    fi
}

shopt -s lastpipe # so that `result`, the last command of a pipe, can count
for page in docs/internals/*.md docs/design/*.md docs/threads.md docs/memory.md; do
    check_page "$page" "$page" | result "$page names what is there"
done
awk '{ text = $0; gsub(/[\200-\277]/, "", text); if (length(text) > 120) print FILENAME ":" FNR ": too long" }' \
    docs/internals/*.md | result 'lines of the pages about rooms have at most 120 characters'

# named_in PAGE NAME: a page may name a file with "*" in it.
named_in() {
    local token
    while IFS= read -r token; do
        # shellcheck disable=SC2053 # the token is a pattern
        [[ $2 == $token ]] && return
    done < <(grep -oE '`[^` ]+\.[ch]`' "$1" | tr -d '`')
    return 1
}
for room in base record graph network runtime operators tools; do
    grep -E "^$room/[^/]+\.[ch]$" "$work/files" | while read -r file; do
        named_in "docs/internals/$room.md" "${file#*/}" || printf '%s is not in docs/internals/%s.md\n' "$file" "$room"
    done
done | result 'each file of a room stands in the page of the room'

# That the checks see what is wrong.
cat >"$work/wrong.md" <<'PAGE'
`base/alloc.h`, `leat_map`, `leat_type_*_create`, [a link](../threads.md), `task_turn`, `leat/type.h`, `leat_job.shared`
`base/nowhere.h`, `leati_no_such_name`, [a link](nowhere.md), `turn_of_nobody`, `LEAT_NO_SUCH`, `leat_job.nothing_there`
PAGE
check_page docs/internals/wrong.md "$work/wrong.md" | wc -l | sed '/^ *6$/d; s/$/ of 6 mistakes were found/' |
    result 'mistakes are found'
printf '1..%d\n' "$tests"
