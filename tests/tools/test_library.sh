#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the library shows to the programs that link it, and what it needs. Prints TAP.
#
# usage: test_library.sh LIBRARY STATIC_LIBRARY
set -uo pipefail

library=$1 static=$2
count=0

claim() {
    count=$((count + 1))
    local name=$1 findings
    findings=$("${@:2}")
    if [ -z "$findings" ]; then
        printf 'ok %d - %s\n' "$count" "$name"
    else
        printf '%s\n' "$findings" | sed 's/^/# /' | head -n 20
        printf 'not ok %d - %s\n' "$count" "$name"
    fi
}

# Each prints what should not be there.
foreign_symbols() { nm -D --defined-only "$library" | awk '$2 != "A" &&
    $3 !~ /^leat_[a-z0-9_]+@@LEAT_[0-9]+$/ && $3 !~ /^leati_[a-z0-9_]+@@LEAT_PRIVATE$/'; }
foreign_needs() {
    readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
        grep -vE '^(libc|libm|libpthread|libdl|libz|libzstd|libmsgpackc?|libmsgpack-c|libgcc_s|ld-linux[a-z0-9-]*)\.so'
}
# Of those that are no part of the public interface, a program could only meet a clash with its own.
static_symbols() {
    nm --defined-only --extern-only "$static" 2>/dev/null | awk 'NF == 3 && $3 !~ /^leati?_/ { print $3 }'
}
# base/thread.c asks with sigaction whether the program has a handler; nobody else may know it.
no_exit() {
    nm -A --undefined-only "$static" 2>/dev/null | awk '$NF == "sigaction" && $0 !~ /:thread\.c\.o:/'
    nm -D --undefined-only "$library" | awk '{ print $2 }' | sed 's/@.*//' |
        grep -xE 'exit|_exit|quick_exit|fork|vfork|system|popen|signal|printf|puts|putchar|perror'
}

printf '1..4\n'
claim 'every exported symbol has the prefix and a version' foreign_symbols
claim 'the library needs what it says and nothing else' foreign_needs
claim 'in the static library too every symbol has a prefix of ours' static_symbols
claim 'the library neither exits, forks, handles signals nor prints' no_exit
