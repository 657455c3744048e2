#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `meson install` puts into a prefix is whole: program, library, headers, manual pages and completion, and a new
# project builds against it. Only the prefix is used, not the build folder.
# shellcheck source=tests/tools/lib.sh
. "$(dirname -- "$0")/lib.sh"
build=$(cd -- "$jobs/../.." && pwd)
sources=$(cd -- "$(dirname -- "$0")/../.." && pwd)
if ! command -v meson >/dev/null; then
    printf '1..0 # SKIP meson is not installed\n'
    exit 0
fi

root=$work/root
install() { meson install -C "$build" --no-rebuild --destdir "$root" >"$work/out" 2>"$work/err"; }
claim 'it can be installed' install
leat=$(find "$root" -path '*/bin/leat')
prefix=${leat%/bin/leat}
library=$(dirname -- "$(find "$root" -name libleat.so)")
export LD_LIBRARY_PATH=$library PKG_CONFIG_PATH=$library/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root

headers() { diff -r "$sources/include/leat" "$prefix/include/leat"; }
claim 'all public headers are there' headers
if [ -e "$build/tools/leat.1" ]; then
    pages() {
        local verb
        for verb in '' -run -plan -new -build -cluster -submit -list -status -why -cancel -logs -metrics -config \
            -jobmanager -taskmanager -version -help; do
            grep -q '^\.SH SYNOPSIS' "$prefix/share/man/man1/leat$verb.1" || return 1
        done
    }
    claim 'so is a manual page for the program and each verb' pages
fi
loaded() { bash -c '. "$1" && complete -p leat' - "$prefix/share/bash-completion/completions/leat"; }
claim 'completion for bash can be loaded' loaded
claim 'completion for zsh is there' test -s "$prefix/share/zsh/site-functions/_leat"

cd -- "$work" || exit 1
leat_run version
claim 'the program finds its library' ended_with 0
leat_run new clicks
claim 'it makes a project' ended_with 0
in_project() { (cd clicks && "$@" >"$work/out" 2>"$work/err"); }
claim 'which is configured against what was installed' in_project meson setup --werror build
claim 'builds' in_project meson compile -C build
claim 'and passes its test' in_project meson test -C build
cp clicks/src/job.? .
leat_run build -v job.c
claim 'leat build takes the headers that were installed' err_has "-I $prefix/include"
echo 'b b' >words.txt
leat_run run job.so -- words.txt
claim 'and its job runs' out_is "b$(printf '\t')2"
export XDG_STATE_HOME=$work/state
leat_run cluster start -w 1
claim 'a cluster starts from what was installed' ended_with 0
leat_run submit job.so -- "$work/words.txt"
claim 'and runs the job' out_is "b$(printf '\t')2"
leat_run cluster stop
claim 'and ends' ended_with 0
done_testing
