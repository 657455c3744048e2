#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Holds the sources to the rules of CONTRIBUTING.md that a machine can check. Prints TAP: one line for each rule, and
# above it a comment line for each place that breaks it.
#
# usage: tidy.sh SOURCES BUILD
# Environment: CC, and CXX when there is a C++ compiler.
set -uo pipefail
shopt -s lastpipe # so that the last command of a pipe, `rule`, can count
export LC_ALL=C

cd -- "$1" || exit 1
build=$2
cc=${CC:-cc}
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
rules=0

# rule NAME: standard input holds the findings, a line each; none means that the rule is kept.
rule() {
    local findings
    findings=$(cat)
    rules=$((rules + 1))
    if [ -z "$findings" ]; then
        printf 'ok %d - %s\n' "$rules" "$1"
    else
        printf '%s\n' "$findings" | sed 's/^/# /'
        printf 'not ok %d - %s\n' "$rules" "$1"
    fi
}

skip() {
    rules=$((rules + 1))
    printf 'ok %d - %s # SKIP %s\n' "$rules" "$1" "$2"
}

# From the ground up: a room sees the rooms before it.
floors=(base record graph network runtime operators cluster tools)
library='base|record|graph|network|runtime|operators|cluster'

# --- the files, and a copy of each without comments, strings and character constants --------------------------------

find . -type d \( -name .git -o -path './build*' -o -exec test -d '{}/meson-private' \; \) -prune -o \
    -type f -print | sed 's|^\./||' | sort >"$work/all"
grep -E '\.(c|h|cc)$' "$work/all" >"$work/c"
grep -E '\.sh$|^dev$|^\.ci/run$' "$work/all" >"$work/shell"
mapfile -t c_files <"$work/c"
mapfile -t shell_files <"$work/shell"

# Lines keep their numbers. Prints file:line:text.
cat >"$work/bare.awk" <<'AWK'
FNR == 1 { inside = 0 }
{
    line = $0; out = ""
    while (line != "") {
        if (inside) {
            end = index(line, "*/")
            if (!end) break
            line = substr(line, end + 2); inside = 0
        }
        if (!match(line, /\/\/|\/\*|"|'/)) { out = out line; break }
        out = out substr(line, 1, RSTART - 1)
        mark = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        if (mark == "//") break
        if (mark == "/*") { inside = 1; continue }
        body = mark == "\"" ? "^([^\"\\\\]|\\\\.)*\"" : "^([^'\\\\]|\\\\.)*'"
        line = match(line, body) ? substr(line, RLENGTH + 1) : ""
        out = out mark mark
    }
    print FILENAME ":" FNR ":" out
}
AWK
awk -f "$work/bare.awk" "${c_files[@]}" >"$work/bare"

# --- text ---------------------------------------------------------------------------------------------------------

# Bytes that continue a UTF-8 character do not count.
awk '{ text = $0; gsub(/[\200-\277]/, "", text); if (length(text) > 100) print FILENAME ":" FNR ": " length(text) }' \
    "${c_files[@]}" | rule 'lines of C have at most 100 characters'
awk '{ text = $0; gsub(/[\200-\277]/, "", text); if (length(text) > 120) print FILENAME ":" FNR ": " length(text) }' \
    "${shell_files[@]}" | rule 'lines of scripts have at most 120 characters'
wc -l "${c_files[@]}" | awk '$2 != "total" && $1 > 600 { print $2 ": " $1 " lines" }' |
    rule 'files of C have at most 600 lines'
awk -F: '
    $2 == 1 { depth = start = 0 }
    {
        text = substr($0, length($1) + length($2) + 3)
        if (text ~ /^\{/ && depth == 0) start = $2
        depth += gsub(/\{/, "{", text) - gsub(/\}/, "}", text)
        if (depth < 0) depth = 0
        if (text ~ /^\}/) {
            if (start && $2 - start > 80) print $1 ":" start ": " $2 - start " lines"
            start = 0
        }
    }' "$work/bare" | rule 'functions have at most 80 lines'
for file in "${c_files[@]}"; do
    [ "$(head -n 1 -- "$file")" = '// SPDX-License-Identifier: Apache-2.0' ] || printf '%s\n' "$file"
done | rule 'files of C begin with the licence line'
for file in "${shell_files[@]}"; do
    [ "$(sed -n 2p -- "$file")" = '# SPDX-License-Identifier: Apache-2.0' ] || printf '%s\n' "$file"
done | rule 'scripts have the licence line second'
# The words are put together here so that this file does not break its own rules.
grep -nE '\b(TO''DO|FIX''ME|XX''X|HA''CK)\b' "${c_files[@]}" "${shell_files[@]}" | grep -vE '#[0-9]+' |
    rule 'what is left to do carries the number of an issue'
grep -E '\.(c|h|cc|sh|md|json|build)$|^dev$|^\.ci/run$' "$work/all" | tr '\n' '\0' |
    xargs -0 grep -nE "(^|[^[:alnum:]_.])/(ho""me|ro""ot|wo""rk)/" | rule 'no file names a path of one machine'

# --- headers and floors -------------------------------------------------------------------------------------------

grep -E '\.h$' "$work/c" | while read -r file; do
    case $file in
    include/leat/*) guard=${file#include/} ;;
    tests/* | bench/* | examples/*) guard=$file ;;
    *) guard=leati/$file ;;
    esac
    guard=$(printf '%s' "$guard" | tr 'a-z/.-' 'A-Z___')
    # Nobody but the folder itself includes these.
    [[ $file != tests/* && $file != bench/* && $file != examples/* ]] || guard="(LEATI?_)?$guard"
    { grep -qxE "#ifndef $guard" "$file" && grep -qxE "#define $guard" "$file"; } ||
        printf '%s: %s\n' "$file" "$guard"
done | rule 'header guards follow from the path'

grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "${c_files[@]}" |
    sed -E 's/^([^:]*):([0-9]*):.*"(.*)".*/\1 \2 \3/' >"$work/includes"
awk -v floors="${floors[*]}" '
    BEGIN { count = split(floors, names, " "); for (i = 1; i <= count; i++) floor[names[i]] = i }
    {
        split($1, path, "/"); split($3, wanted, "/")
        from = path[1]; to = wanted[1]
        bad = ""
        if ($3 !~ /\// && from ~ /^(tests|bench|examples)$/) bad = ""
        else if ($3 !~ /\// || $3 ~ /\.\./) bad = "is not named from the root"
        else if (to == "leat") bad = ""
        else if (from == "include" || from == "examples") bad = "is not public"
        else if (from == "tests" || from == "bench") { if (!(to in floor) && to != from) bad = "is no room" }
        else if (!(to in floor)) bad = "is no room"
        else if (floor[to] > floor[from]) bad = "is on a higher floor"
        if (bad) print $1 ":" $2 ": " $3 " " bad
    }' "$work/includes" | rule 'a file includes only from its own floor and lower ones'
grep -nE '#[[:space:]]*include[[:space:]]*<nng/' "${c_files[@]}" |
    grep -vE '^(network/nng|cluster|tests|bench)/' | rule 'nng is included where it is spoken to, nowhere else'

# compile_alone "COMPILER LANGUAGE" OPTION… -- FILE…: each file alone; the compiler's first complaint on failure.
compile_alone() {
    local compiler=$1 file options=()
    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    for file in "$@"; do
        # A file of C may not be empty, as it would be after a header of macros only.
        printf '#include "%s"\nextern int leati_alone;\n' "${file#include/}" >"$work/alone.${compiler##* }"
        "${compiler%% *}" -x "${compiler##* }" "${options[@]}" -Wall -Wextra -Werror -Wno-unused-function \
            -Wno-unused-const-variable -fsyntax-only "$work/alone.${compiler##* }" >"$work/said" 2>&1 || {
            printf '%s: %s\n' "$file" "$(grep -m 1 -E 'error|warning' "$work/said")"
        }
    done
}
mapfile -t public < <(grep -E '^include/leat/.*\.h$' "$work/c")
mapfile -t rooms < <(grep -E "^($library|tools)/.*\.h$" "$work/c")
compile_alone "${cc%% *} c" -std=c11 -pedantic -Iinclude -- "${public[@]}" |
    rule 'each public header compiles alone as C11'
if [ -n "${CXX:-}" ] && command -v "${CXX%% *}" >/dev/null; then
    compile_alone "${CXX%% *} c++" -std=c++17 -Iinclude -- "${public[@]}" |
        rule 'each public header compiles alone as C++17'
else
    skip 'each public header compiles alone as C++17' 'no C++ compiler'
fi
compile_alone "${cc%% *} c" -std=gnu11 -D_GNU_SOURCE -Wno-unused-parameter -I. -Iinclude -- "${rooms[@]}" |
    rule 'each internal header compiles alone'
if [ -f include/leat/leat.h ]; then
    "${cc%% *}" -MM -Iinclude include/leat/leat.h | tr -s ' \\\n' '\n' | sort >"$work/reached"
    printf '%s\n' "${public[@]}" | sort | comm -23 - "$work/reached" | rule 'leat.h includes every public header'
fi

# --- calls ---------------------------------------------------------------------------------------------------------

# calls WHERE NAMES: uses of the functions in files that match; members and longer names do not count.
calls() {
    grep -E "^($1)" "$work/bare" | grep -E "(^|[^[:alnum:]_.>])($2)[[:space:]]*\("
}
calls '' 'strcpy|strcat|stpcpy|sprintf|vsprintf|gets|alloca|strtok|atoi|atol|system' |
    rule 'no call that cannot be made safely'
grep -E '(^|[^[:alnum:]_])volatile([^[:alnum:]_]|$)' "$work/bare" | grep -vE '(__asm__|asm) volatile' |
    rule 'no volatile'
{
    calls "($library)/" 'printf|vprintf|puts|putchar|perror|exit|_exit|_Exit|quick_exit|abort|signal|sigaction|raise' |
        # It asks whether there is a handler; a task manager reports crashes of user code.
        grep -vE '^(base/thread|cluster/worker/crash)\.c:'
    grep -E "^($library)/" "$work/bare" | grep -E '(^|[^[:alnum:]_])stderr([^[:alnum:]_]|$)'
} | rule 'the library does not print, exit or handle signals'
allocators='malloc|calloc|realloc|free|strdup|strndup|asprintf|vasprintf|aligned_alloc|posix_memalign'
calls "($library)/" "$allocators" | grep -v '^base/alloc\.c:' | rule 'the library allocates through the hook only'

# --- symbols -------------------------------------------------------------------------------------------------------

find "$build" -name 'lib*.a' | grep -E "/($library)(/[^/]+)*/lib[^/]+\.a$" | sort >"$work/archives"
while read -r archive; do
    nm -A --defined-only --extern-only "$archive" 2>/dev/null | sed "s|^$build/||"
done <"$work/archives" | awk '$NF !~ /^leati?_/' | rule 'what is not static is named leat_ or leati_'
while read -r archive; do
    objdump -t "$archive" 2>/dev/null | awk -v archive="${archive#"$build"/}" '
        /file format/ { object = $0 }
        # What the signal handler works on, which has no other way to it.
        object ~ /worker_crash\.c\.o:/ { next }
        $0 ~ / O \.(data|bss)[^.[:alnum:]]/ { print archive object " " $NF }'
done <"$work/archives" | rule 'the library has no writable globals'
if [ -e "$build/libleat.so" ]; then
    nm -D --defined-only "$build/libleat.so" |
        awk '$NF !~ /^leat_/ && $NF !~ /^leati_.*@@LEAT_PRIVATE$/ && $2 != "A" { print $NF }' |
        rule 'libleat.so exports leat_ names, and others for its modules only'
else
    printf 'libleat.so is not there\n' | rule 'libleat.so exports leat_ names, and others for its modules only'
fi

printf '1..%d\n' "$rules"
