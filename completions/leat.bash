# SPDX-License-Identifier: Apache-2.0
# Completion for bash. The program itself says what fits.
# shellcheck shell=bash

_leat() {
    local words=() word i line file ending
    # bash takes "=" for a word of its own; the program wants "--name=value" as it was typed.
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [ "${#words[@]}" -gt 0 ] && [[ $word = '=' || ${words[-1]} = *[^=]= && ${COMP_WORDS[i - 1]} = '=' ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
    done
    COMPREPLY=()
    local typed=${words[-1]} last=${COMP_WORDS[COMP_CWORD]}
    [ "$last" != '=' ] || last=
    while IFS= read -r line; do
        case $line in
        :nospace) compopt -o nospace 2>/dev/null ;;
        :folders) _leat_files -d "$last" ;;
        :files) _leat_files -f "$last" ;;
        :files\ *)
            _leat_files -d "$last"
            for ending in ${line#:files }; do
                while IFS= read -r file; do
                    [ -d "$file" ] || COMPREPLY+=("$file")
                done < <(compgen -f -X "!*$ending" -- "$last")
            done
            ;;
        *)
            word=${line%%$'\t'*}
            # Only what follows the last "=" is replaced.
            COMPREPLY+=("${word:$((${#typed} - ${#last}))}")
            ;;
        esac
    done < <("${COMP_WORDS[0]}" complete "${words[@]}" 2>/dev/null)
}

_leat_files() {
    local file
    compopt -o filenames 2>/dev/null
    while IFS= read -r file; do
        COMPREPLY+=("$file")
    done < <(compgen "$1" -- "$2")
}

complete -F _leat leat
