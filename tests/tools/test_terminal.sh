#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The progress line is drawn on a terminal, erased at the end, and nowhere else.
# shellcheck source=tests/tools/lib.sh
. "$(dirname -- "$0")/lib.sh"

if ! command -v script >/dev/null; then
    printf '1..0 # SKIP script is not installed\n'
    exit 0
fi

# on_terminal COMMAND: runs a shell command on a terminal of its own; what the terminal got is left in $work/screen.
# script passes the end of its input on, and the terminal would echo that; so its input never ends.
mkfifo "$work/never"
exec 8<>"$work/never"
on_terminal() {
    : >"$work/screen"
    TERM=xterm timeout 20 script -qfec "$1" /dev/null <&8 >"$work/screen" 2>&1 || true
}
run="timeout -s INT 1.5 '$leat' run"
drawn() { grep -qE 'records  .*/s  [0-9]+ s  back-pressure [0-9]+ %' "$work/screen"; }
not_drawn() { ! grep -q 'back-pressure' "$work/screen"; }
erased() { tail -c 5 "$work/screen" | od -An -c | tee /dev/stderr | grep -qE '\\r 033 +\[ +K'; }

on_terminal "$run '$jobs/endless.so' -- drop"
claim 'a terminal gets the progress line' drawn
claim 'it is erased at the end' erased
on_terminal "$run '$jobs/endless.so' -- drop 2>'$work/err'"
claim 'a file gets none' not_drawn
claim 'and stays empty' silent err
on_terminal "$run --quiet '$jobs/endless.so' -- drop"
claim '--quiet asks for none' not_drawn
on_terminal "TERM=dumb $run '$jobs/endless.so' -- drop"
claim 'a terminal that cannot erase gets none' not_drawn
on_terminal "stty cols 40; $run '$jobs/endless.so' -- drop"
narrow() { tr '\r' '\n' <"$work/screen" | sed 's/\x1b\[K//' | awk 'length($0) > 40 { exit 1 }'; }
claim 'the line is no wider than the terminal' narrow
on_terminal "$run --stats '$jobs/endless.so' -- drop"
claim 'the table follows the erased line' grep -qE 'K.*task +subtask' <(tr '\n' ' ' <"$work/screen")
# Once a result has been written, nothing of the progress line may stand in its row.
on_terminal "(sleep 1; echo result; sleep 0.3) | '$leat' run '$jobs/lines.so'"
clean_result() { tr -d '\r' <"$work/screen" | sed 's/.*\x1b\[K//' | grep -qx 'result'; }
claim 'results on the same terminal have rows of their own' clean_result
done_testing
