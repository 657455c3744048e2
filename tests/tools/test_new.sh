#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `leat new` makes a project that builds, passes its test and runs as it is, and touches nothing that is there already.
# shellcheck source=tests/tools/lib.sh
. "$(dirname -- "$0")/lib.sh"
build=$(cd -- "$jobs/../.." && pwd)
cd -- "$work" || exit 1
files=(.gitignore README.md meson.build src/job.c src/job.h tests/test_job.c)

all_there() { [ "$(cd "$1" && find . -type f | sed 's|^\./||' | LC_ALL=C sort | tr '\n' ' ')" = "${files[*]} " ]; }
leat_run new some/where/clicks
claim 'a project is made, with the folders before it' eval 'ended_with 0 && silent err && all_there some/where/clicks'
claim 'and one is told how to go on' out_has 'cd some/where/clicks'
claim 'it has the name of its folder' grep -q "project('clicks'" some/where/clicks/meson.build
claim 'no mark is left in it' eval '! grep -rE "@[A-Z]+@" some'
leat_run new some/where/clicks
claim 'a folder that is not empty is refused' refused 3 'some/where/clicks' 'is not empty'
mkdir 'a b'"'"'c'
leat_run new "a b'c"
claim 'an empty folder is taken, and its name made fit' grep -qF "project('a_b_c'" "a b'c/meson.build"
there() { (eval "$(grep '^  cd ' "$work/out")" && [ -f src/job.c ]); }
claim 'a shell can go where it was told to' there
mkdir here
in_place() { (cd here && "$leat" new . >/dev/null) && grep -q "project('here'" here/meson.build; }
claim 'so is the current folder' in_place
leat_run new text.txt/x
claim 'a folder below nothing is made' ended_with 0
echo x >file
leat_run new file/x
claim 'a folder below a file is refused' refused 3 'file/x'
leat_run new file
claim 'a file is refused' refused 3 'file'
leat_run new ''
claim 'an empty name is refused' refused 3 'must have a name'
if [ "$(id -u)" -ne 0 ]; then
    mkdir -m 555 locked
    leat_run new locked
    claim 'a folder that may not be written to is refused' refused 3 'locked' 'Permission denied'
fi
if command -v jq >/dev/null; then
    leat_run new --json other
    claim '--json lists the files' json_has '.directory == "other" and (.files | length) == 6'
fi

# The project's test would have to be built for the same sanitizer as the library.
plain() { "$leat" version --json | grep -q '"sanitizers": "none"'; }
if command -v meson >/dev/null && plain; then
    export PKG_CONFIG_PATH=$build/meson-uninstalled
    in_project() { (cd some/where/clicks && "$@" >"$work/out" 2>"$work/err"); }
    claim 'it is configured' in_project meson setup --werror build
    claim 'it builds without warnings' in_project meson compile -C build
    claim 'its test passes' in_project meson test -C build
    echo 'to be or not to be' >words.txt
    leat_run run some/where/clicks/build/job.so -- words.txt
    counted() { [ "$(sort "$work/out" | tr '\t\n' '= ')" = 'be=2 not=1 or=1 to=2 ' ]; }
    claim 'it runs' counted
    run_standard() { echo 'b b' | "$leat" run some/where/clicks/build/job.so | grep -qx "b$(printf '\t')2"; }
    claim 'also from standard input' run_standard
    sed -i 's/to=2/to=3/' some/where/clicks/tests/test_job.c
    fails() { ! in_project meson test -C build && grep -rq 'wanted: be=1 to=3' some/where/clicks/build/meson-logs; }
    claim 'its test fails when something else is expected' fails
fi
done_testing
