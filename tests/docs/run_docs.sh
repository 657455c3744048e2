#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does what the documentation says. In README.md and docs/ a fenced block
#     ```sh run         is run with bash; it must succeed
#     ```text output    after such a block must be its standard output; `...` stands for anything
#     ```c file=NAME    (any language) is written to the file NAME first
# All blocks of a page are run in one fresh folder in which everything of the project's root is found, and the build
# folder as `build`. Prints TAP: one line for each block that was run.
#
# usage: run_docs.sh SOURCES BUILD [PAGE…]
set -uo pipefail
shopt -s lastpipe

sources=$1 build=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
blocks=0

# The place that a page's commands see.
make_place() {
    local entry
    rm -rf -- "$work/place"
    mkdir -- "$work/place"
    for entry in "$sources"/* "$sources"/.[!.]*; do
        case ${entry##*/} in
        build* | .git | '*' | '.[!.]*') ;;
        *) ln -s -- "$entry" "$work/place/${entry##*/}" ;;
        esac
    done
    ln -s -- "$build" "$work/place/build"
}

# split PAGE FOLDER: writes each marked block to FOLDER/NUMBER.KIND and lists `number kind line` in order.
split_page() {
    awk -v folder="$2" '
        /^```/ && inside { inside = 0; if (to) close(to); to = ""; next }
        to { print > to }
        inside { next }
        /^```/ {
            inside = 1
            kind = $2 ~ /^file=/ ? "file" : $1 == "```sh" && $2 == "run" ? "run" : $2 == "output" ? "output" : ""
            if (kind != "") {
                number++
                to = folder "/" number "." kind
                printf "" > to
                print number, kind, FNR, substr($2, 6)
            }
        }' "$1"
}

# Whether the text of file $2 is what file $1 expects.
matches() {
    local expected actual
    expected=$(<"$1")
    actual=$(<"$2")
    # Everything that a pattern would take for more than itself is quoted first.
    expected=$(printf '%s' "$expected" | sed 's/[][\\*?]/\\&/g; s/\.\.\./*/g')
    # shellcheck disable=SC2053 # a pattern is what is wanted
    [[ $actual == $expected ]]
}

run_page() {
    local page=$1 number kind line name ran=0
    local parts=$work/parts
    rm -rf -- "$parts"
    mkdir -- "$parts"
    make_place
    split_page "$page" "$parts" >"$parts/list"
    local label=${page#"$sources/"} good=1 text=''
    while read -r number kind line name; do
        case $kind in
        file)
            finish_block
            # A link to a file of the project must not be written through.
            rm -f -- "$work/place/$name"
            cp -- "$parts/$number.file" "$work/place/$name"
            ;;
        run)
            finish_block
            ran=$number good=1 text="$label:$line"
            (cd -- "$work/place" && bash -euo pipefail "$parts/$number.run") \
                >"$parts/out" 2>"$parts/err" </dev/null || {
                printf '# exit status %d\n' $?
                good=0
                tail -n 20 "$parts/err" | sed 's/^/# /'
            }
            ;;
        output)
            if [ "$ran" -gt 0 ] && ! matches "$parts/$number.output" "$parts/out"; then
                good=0
                printf '# the output is not as the page says:\n'
                diff "$parts/$number.output" "$parts/out" | head -n 40 | sed 's/^/# /'
            fi
            ;;
        esac
    done <"$parts/list"
    finish_block
}

# Reports the block that was run last; its output block, if any, has been seen by now.
finish_block() {
    [ "$ran" -gt 0 ] || return 0
    blocks=$((blocks + 1))
    if [ "$good" -eq 1 ]; then
        printf 'ok %d - %s\n' "$blocks" "$text"
    else
        printf 'not ok %d - %s\n' "$blocks" "$text"
    fi
    ran=0
}

if [ $# -eq 0 ]; then
    find "$sources/docs" -name '*.md' | sort | mapfile -t pages
    [ ! -f "$sources/README.md" ] || pages=("$sources/README.md" "${pages[@]}")
    set -- "${pages[@]}"
fi
for page in "$@"; do
    run_page "$page"
done
if [ "$blocks" -eq 0 ]; then
    printf '1..0 # SKIP no page has a block to run\n'
else
    printf '1..%d\n' "$blocks"
fi
