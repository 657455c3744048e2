#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is no job file is refused with status 3 and a reason, without harm; a job file may be named in any way.
# shellcheck source=tests/tools/lib.sh
. "$(dirname -- "$0")/lib.sh"
lines=$jobs/lines.so

leat_run run "$work/none.so"
claim 'a missing file is refused' refused 3 'none.so' 'No such file'
leat_run run "$work"
claim 'a directory is refused' refused 3 'is a directory'
: >"$work/nothing.so"
leat_run run "$work/nothing.so"
claim 'an empty file is refused' refused 3 'is empty'
echo 'int main(void);' >"$work/text.so"
leat_run run "$work/text.so"
claim 'a text file is refused' refused 3 'not a shared object' '-shared'
mkfifo "$work/fifo.so"
leat_run run "$work/fifo.so"
claim 'a FIFO is refused without waiting' refused 3 'not a regular file'
if [ "$(id -u)" -ne 0 ]; then
    cp "$lines" "$work/secret.so"
    chmod 0 "$work/secret.so"
    leat_run run "$work/secret.so"
    claim 'a file that may not be read is refused' refused 3 'Permission denied'
fi

# Cut anywhere, a shared object must never get as far as the loader, which may crash on it.
size=$(wc -c <"$lines")
cut_everywhere() {
    local at
    for at in 1 3 4 20 63 64 100 512 "$((size / 4))" "$((size / 2))" "$((size * 3 / 4))" "$((size - 1))"; do
        head -c "$at" "$lines" >"$work/cut.so"
        leat_run run "$work/cut.so"
        refused 3 "$work/cut.so" || { printf 'cut at %s\n' "$at"; return 1; }
    done
}
claim 'a shared object cut at any length is refused' cut_everywhere
head -c "$((size / 4))" "$lines" >"$work/cut.so"
leat_run run "$work/cut.so"
claim 'a truncated shared object is called so' err_has 'is truncated'
leat_run run "$leat"
claim 'a program is refused' refused 3
# Byte 18 and 19 of the header are the machine; no machine has the number 0xfefe.
{ head -c 18 "$lines"; printf '\376\376'; tail -c +21 "$lines"; } >"$work/foreign.so"
leat_run run "$work/foreign.so"
claim 'a file for another machine is refused' refused 3 'another kind of machine'
# Byte 16 is the type: 1 is an object file.
{ head -c 16 "$lines"; printf '\001\000'; tail -c +19 "$lines"; } >"$work/object.so"
leat_run run "$work/object.so"
claim 'an object file is refused' refused 3 'object file' '-shared'

leat_run run "$jobs/empty.so"
claim 'a shared object without the symbols is refused' refused 3 'no job file' 'leat_job_abi'
leat_run run "$jobs/no_main.so"
claim 'a shared object without a job function is refused' refused 3 'no job file' 'leat_job_main'
leat_run run "$jobs/no_function.so"
claim 'a job function that is none is refused' refused 3 'no job file' 'leat_job_main is no function'
leat_run run "$jobs/wrong_abi.so"
claim 'a job file for another interface is refused before it is called' refused 3 'interface 4242' 'compile it'
leat_run plan "$jobs/undefined.so"
claim 'an undefined symbol is named' refused 3 'leat_from_the_future' 'another version'

cd -- "$jobs" || exit 1
leat_run run arguments.so -- here
claim 'a bare name is a file of the current directory' out_has here
leat_run run ./arguments.so -- here
claim 'a relative path works' out_has here
mkdir -p "$work/with a space"
cp arguments.so "$work/with a space/ä job.so"
leat_run run "$work/with a space/ä job.so" -- here
claim 'a path may hold blanks and any bytes' out_has here
leat_run run ''
claim 'an empty name is refused' refused 3 'has no name'
done_testing
