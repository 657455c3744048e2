#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job of one source file is compiled by `leat build`, and by `leat run` and `leat plan` on the way.
# shellcheck source=tests/tools/lib.sh
. "$(dirname -- "$0")/lib.sh"
here=$(cd -- "$(dirname -- "$0")" && pwd)
cd -- "$work" || exit 1
export TMPDIR=$work/tmp
mkdir tmp
cat >lines.c <<'TEXT'
#include <leat/leat.h>
LEAT_JOB(env, argc, argv)
{
    leat_print(leat_read_text(env, argc > 1 ? argv[1] : "-"));
}
TEXT
cp lines.c lines.cc
echo 'int broken(' >broken.c
echo 'int x;' >no_job.c
cat >undefined.c <<'TEXT'
#include <leat/leat.h>
void leat_nothing(leat_env *env);
LEAT_JOB(env, argc, argv)
{
    leat_nothing(env);
}
TEXT
sed 's/argc > 1/MINIMUM < argc/' lines.c >flags.c
echo hello >text.txt

good() { ended_with 0 && silent err && out_is "$1"; }
leat_run build lines.c
claim 'a job file is made beside the source' eval 'good "" && [ -f lines.so ]'
leat_run run lines.so -- text.txt
claim 'and runs' good hello
leat_run build lines.c -o other.so
claim '-o names it' eval 'good "" && [ -f other.so ]'
leat_run build flags.c -o flags.so -- -DMINIMUM=1
claim 'flags behind -- are for the compiler' good ''
leat_run build flags.c -o none.so
claim 'what the compiler says is shown, and the status is 1' eval 'ended_with 1 && err_has MINIMUM && [ ! -e none.so ]'
leat_run build -v lines.c
claim '--verbose shows the command' eval 'ended_with 0 && err_has "-shared -fPIC" && err_has "-o lines.so lines.c"'
leat_run build broken.c
claim 'a broken source file ends with 1' eval 'ended_with 1 && silent out && err_has "broken.c:1:"'
leat_run build no_job.c
claim 'a source file without a job function is refused' refused 3 'no_job.so was built' 'LEAT_JOB'
leat_run build undefined.c
claim 'an undefined function is named' refused 3 'leat_nothing'
leat_run build none.c
claim 'a missing source file is refused' refused 3 'none.c cannot be read' 'No such file'
leat_run build lines.so
claim 'another kind of file is a usage error' refused 2 '"lines.so" is no source file'
CC=no-such-compiler leat_run build lines.c
claim 'a missing compiler is refused' refused 3 'no-such-compiler' 'set CC'
CC='cc -DX' leat_run build lines.c
claim 'CC may have several words' good ''
CC='  ' leat_run build lines.c
claim 'an empty CC is none' good ''
LEAT_INCLUDE=$work leat_run build lines.c
claim 'LEAT_INCLUDE without headers is refused' refused 3 "LEAT_INCLUDE=$work" 'leat/leat.h'
LEAT_INCLUDE=$here/../../include leat_run build -v lines.c
claim 'LEAT_INCLUDE is where the headers are' err_has "-I $here/../../include"
if command -v c++ >/dev/null; then
    leat_run build lines.cc -o cpp.so
    claim 'C++ is compiled too' good ''
    leat_run run cpp.so -- text.txt
    claim 'and runs' good hello
fi
if command -v jq >/dev/null; then
    leat_run build --json lines.c
    claim '--json names the file and the command' json_has '.output == "lines.so" and .command[0] == "cc"'
fi

no_rest() { [ -z "$(ls "$TMPDIR")" ]; }
leat_run run lines.c -- text.txt
claim 'run takes a source file' good hello
claim 'and leaves nothing behind' no_rest
leat_run plan lines.c -- text.txt
claim 'plan takes a source file' eval 'ended_with 0 && out_has "source: text" && no_rest'
claim 'the job is called as the file is' out_has 'job lines'
leat_run run broken.c
claim 'run ends with 1 when it does not compile' eval 'ended_with 1 && err_has "broken.c:1:" && no_rest'
leat_run run no_job.c
claim 'run refuses a source file without a job function' eval 'refused 3 "no_job.c is no job file" && no_rest'
TMPDIR=$work/nowhere leat_run run lines.c
claim 'a folder for temporary files that is not there is named' refused 3 "$work/nowhere/leat-" 'TMPDIR'
interrupted() {
    printf '#!/bin/sh\nkill -INT $$\n' >"$work/slow" && chmod +x "$work/slow"
    CC=$work/slow leat_run run lines.c
    ended_with 130 && no_rest
}
claim 'an interrupted compiler ends the run' interrupted
done_testing
