#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What shells offer: verbs, options, their values, keys and files.
# shellcheck source=tests/tools/lib.sh
. "$(dirname -- "$0")/lib.sh"
here=$(cd -- "$(dirname -- "$0")" && pwd)
completions=${here%/tests/tools}/completions
mkdir "$work/place" "$work/bin"
ln -s "$leat" "$work/bin/leat"
cd -- "$work/place" || exit 1
mkdir folder
touch job.so job.c other.cc text.txt 'two words.c'
PATH=$work/bin:$PATH
# shellcheck source=/dev/null # the file that this tests
. "$completions/leat.bash"

# offered WORD…: what bash would offer for the last word, sorted, in COMPREPLY's form.
offered() {
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    _leat
    [ "${#COMPREPLY[@]}" -eq 0 ] || printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' '|'
}
# bash CLAIM EXPECTED WORD…
bash_offers() {
    local got
    got=$(offered "${@:3}")
    claim "bash: $1" test "$2" = "$got"
}
claim 'the function is registered' eval 'complete -p leat | grep -q -- "-F _leat"'
verbs='build|cancel|cluster|config|help|jobmanager|list|logs|metrics|new|plan|run|status|submit|taskmanager|'
bash_offers 'verbs' "${verbs}version|why|" leat ''
bash_offers 'the beginning of a verb' 'plan|' leat p
bash_offers 'options of the verb' '--parallelism|' leat run --p
bash_offers 'only those of the verb' '--output|' leat build --o
bash_offers 'a job is a shared object, a source file, or in a folder' \
    'folder|job.c|job.so|other.cc|two words.c|' leat run ''
bash_offers 'what build takes' 'job.c|' leat build j
bash_offers 'new takes a folder' 'folder|' leat new ''
bash_offers 'submit takes a job' 'job.c|job.so|' leat submit job
bash_offers 'cluster takes an action' 'start|status|stop|' leat cluster ''
bash_offers 'an option of several verbs' '--jobmanager|' leat why --jo
bash_offers 'a folder behind its option' 'folder|' leat jobmanager --folder ''
bash_offers 'an id is not known' '' leat status ''
bash_offers 'help takes a verb' 'run|' leat help r
bash_offers 'config takes a key' 'memory.network|memory.segment-size|' leat config mem
bash_offers '-D takes a key' 'memory.network=|memory.segment-size=|' leat run -D mem
bash_offers '--set too' 'workers=|' leat run --set wor
bash_offers 'a flag has two values' 'false|true|' leat run -D chaining = ''
bash_offers 'the beginning of a value' 'false|' leat run -D chaining = f
bash_offers '--format has three' 'dot|json|text|' leat plan --format ''
bash_offers 'also behind =' 'json|' leat plan --format = j
bash_offers '--config takes any file' 'text.txt|' leat run --config te
bash_offers 'behind -- stand files' 'text.txt|' leat run job.so -- te
bash_offers 'an option that wants no known word' '' leat run --name ''
bash_offers 'nothing for an unknown verb' '' leat frobnicate ''

if command -v zsh >/dev/null; then
    cat >"$work/zsh" <<'TEXT'
compadd() { while [ "$1" != -a ]; do shift; done; printf '%s|' "${(@P)2}" }
_files() { printf 'files %s|' "$*" }
completion=$1; shift
words=("$@") CURRENT=$#
. $completion
TEXT
    # zsh_offers CLAIM EXPECTED WORD…
    zsh_offers() {
        local got
        got=$(zsh -f "$work/zsh" "$completions/_leat" "${@:3}" 2>&1)
        claim "zsh: $1" test "$2" = "$got"
    }
    verbs='run|plan|new|build|cluster|submit|list|status|why|cancel|logs|metrics|config|jobmanager|taskmanager|'
    zsh_offers 'verbs' "${verbs}version|help|" leat ''
    zsh_offers 'options of the verb' '--set|--stats|' leat run --s
    zsh_offers 'a key' 'workers=|' leat run -D wor
    zsh_offers 'a value' 'chaining=true|' leat run -D chaining=t
    zsh_offers 'the value of an option' '--format=json|' leat plan --format=j
    zsh_offers 'files' 'files -g *(.so|.c|.cc|.cpp|.cxx)(-.)|' leat run ''
    zsh_offers 'folders' 'files -/|' leat new ''
    zsh_offers 'words in quotes' 'workers=|' leat run "'a b.so'" -D wor
fi
done_testing
