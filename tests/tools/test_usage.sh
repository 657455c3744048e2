#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Mistakes of the command line are refused with status 2 and a hint; help is printed where it belongs.
# shellcheck source=tests/tools/lib.sh
. "$(dirname -- "$0")/lib.sh"
lines=$jobs/lines.so

leat_run
claim 'no verb is a usage error' refused 2 'a verb is missing' 'leat help'
leat_run rnu "$lines"
claim 'an unknown verb suggests the nearest' refused 2 '"rnu"' 'did you mean "run"?'
leat_run -p 4 run "$lines"
claim 'an option before the verb is explained' refused 2 'leat VERB -p'
leat_run $'fr\e[31m\nob'
claim 'what is quoted cannot get at the terminal' refused 2 '"fr?[31m?ob"'
claim 'and the message is one line' err_lines 1
leat_run frobnicate
claim 'a verb near to nothing points to help' refused 2 '"frobnicate"' 'leat help'
leat_run run
claim 'a missing job file is a usage error' refused 2 'leat run: the job file is missing' 'JOB.so'
leat_run plan --
claim 'nothing before -- is a missing job file' refused 2 'leat plan: the job file is missing'
leat_run run "$lines" --statz
claim 'an unknown option suggests the nearest' refused 2 '--statz' 'did you mean --stats?'
leat_run run "$lines" --input x
claim 'an option of the job before -- is explained' refused 2 '--input' 'behind "--"'
leat_run run "$lines" -x
claim 'an unknown letter is named' refused 2 'no option -x'
leat_run run "$lines" file.txt
claim 'an argument of the job before -- is explained' refused 2 '"file.txt"' 'behind "--"'
leat_run plan --stats "$lines"
claim 'an option of another verb says whose it is' refused 2 '--stats' 'leat run'
leat_run run --dot "$lines"
claim 'an option of plan is refused by run' refused 2 '--dot' 'leat plan'
leat_run run "$lines" -p
claim 'a missing value is named' refused 2 'a value is missing behind -p'
leat_run run --workers
claim 'a missing value of a long option is named' refused 2 'a value is missing behind --workers'
leat_run run --quiet=yes "$lines"
claim 'a value that is not wanted is refused' refused 2 '--quiet takes no value'
leat_run plan --format=yaml "$lines"
claim 'an unknown format lists the formats' refused 2 'yaml' 'text, json, dot'
leat_run run -p 0 "$lines"
claim 'parallelism 0 is refused' refused 2 '-p 0'
leat_run run -p 32769 "$lines"
claim 'parallelism above the limit is refused' refused 2 '-p 32769' '32768'
leat_run run --parallelism=two "$lines"
claim 'parallelism that is no number is refused' refused 2 'two'
leat_run run --workers -3 "$lines"
claim 'a negative number of workers is refused' refused 2 '--workers -3'
leat_run run -D memory.segment-sise=64KiB "$lines"
claim 'a misspelt key suggests the nearest' refused 2 'memory.segment-sise' 'memory.segment-size' 'leat config'
leat_run run -D memory.segment-size=large "$lines"
claim 'a bad value names the key' refused 2 'memory.segment-size' 'large'
leat_run run -D nothing "$lines"
claim 'a setting without = is explained' refused 2 '-D nothing' 'key=value'
leat_run run -D a=1 -D b=2 "$lines"
claim 'every wrong setting is reported' refused 2 '-D a=1' '-D b=2'
leat_run plan -q "$lines"
claim 'a letter of another verb says whose it is' refused 2 '-q' 'leat run'
leat_run version --parallelism 2
claim 'a long option of another verb says whose it is' refused 2 '--parallelism' 'leat run'
leat_run new
claim 'new wants a folder' refused 2 'the folder is missing'
leat_run build
claim 'build wants a source file' refused 2 'the source file is missing'
leat_run build one.c two.c
claim 'flags of the compiler before -- are explained' refused 2 '"two.c"' 'behind "--"'
leat_run new one -- two
claim 'a -- that nothing may follow is refused' refused 2 '"--"'
leat_run taskmanager
claim 'a task manager wants its job manager' refused 2 'leat taskmanager: the job manager is missing' '-m HOST:PORT'
leat_run jobmanager --port 65536
claim 'a port beyond the last is refused' refused 2 '--port 65536' '65535'
leat_run jobmanager --port http
claim 'so is one that is no number' refused 2 '--port http'
leat_run help rum
claim 'help for an unknown verb suggests one' refused 2 'did you mean "run"?'
leat_run help run plan
claim 'help takes one verb' refused 2 '"plan"'
leat_run version now
claim 'version takes no argument' refused 2 '"now"'

helped() { ended_with 0 && silent err && out_has "$1"; }
for words in 'help' '--help' '-h'; do
    leat_run "$words"
    claim "leat $words lists the verbs" helped 'plan'
done
leat_run help complete
claim 'what is not listed has its help too' helped 'Usage: leat complete'
for verb in run plan new build cluster submit list status why cancel logs metrics config jobmanager taskmanager \
    version help; do
    leat_run help "$verb"
    claim "help $verb prints its usage" helped "Usage: leat $verb"
    leat_run "$verb" --help
    claim "$verb --help prints its usage" helped "Usage: leat $verb"
done
leat_run run --help -D nothing
claim 'the first mistake or --help wins' ended_with 2
for words in 'version' '--version' '-V'; do
    leat_run "$words"
    claim "leat $words prints the version" grep -qE '^leat [0-9]+\.[0-9]+\.[0-9]+ \(job interface [0-9]+\)$' "$work/out"
done
full() { "$leat" help >/dev/full 2>"$work/err"; [ $? -eq 1 ] && err_has 'No space left'; }
claim 'help that cannot be written is an error' full
done_testing
