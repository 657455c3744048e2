#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows that no rule of tidy.sh is asleep: a tree that breaks each of them must make each of them fail, and the same
# tree mended must make all of them pass.
#
# usage: self_test.sh TIDY
# Environment: CC, CXX as for tidy.sh.
set -euo pipefail
export LC_ALL=C

tidy=$1
cc=${CC:-cc}
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
spdx='// SPDX-License-Identifier: Apache-2.0'

make_libraries() {
    local tree=$1
    mkdir -p "$work/build/base"
    rm -f "$work/build/base/libbase.a"
    "${cc%% *}" -D_GNU_SOURCE -w -fPIC -I"$tree" -I"$tree/include" -c "$tree/base/room.c" -o "$work/build/base/room.o"
    ar rc "$work/build/base/libbase.a" "$work/build/base/room.o"
    "${cc%% *}" -shared -o "$work/build/libleat.so" "$work/build/base/room.o"
}

# header FOLDER NAME GUARD TEXT
header() {
    mkdir -p "$work/tree/$1"
    printf '%s\n#ifndef %s\n#define %s\n%s\n#endif\n' "$spdx" "$3" "$3" "$4" >"$work/tree/$1/$2"
}

good_tree() {
    rm -rf "$work/tree"
    header include/leat base.h LEAT_BASE_H '#include <stddef.h>
size_t leat_size(void);'
    header include/leat leat.h LEAT_LEAT_H '#include "leat/base.h"'
    header base room.h LEATI_BASE_ROOM_H '#include "leat/base.h"
static inline int leati_one(void) { return 1; }'
    header record room.h LEATI_RECORD_ROOM_H '#include "base/room.h"'
    cat >"$work/tree/base/room.c" <<C
$spdx
#include "base/room.h"
// malloc(volatile) and "strcpy(" in a comment or a string are no calls.
static const char *const words[] = {"strcpy(", "volatile", "printf(\"exit(1)\")"};
size_t leat_size(void)
{
    return sizeof words;
}
C
    printf '#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n' >"$work/tree/run.sh"
}

bad_tree() {
    good_tree
    header include/leat base.h LEAT_WRONG_H 'size_t leat_size(void); extern int template;'
    header include/leat alone.h LEAT_ALONE_H 'class;'
    header base room.h LEATI_BASE_ROOM_H '#include "record/room.h"
unknown leati_thing;'
    {
        printf '#include <nng/nng.h>\n%0101d\nvoid long_one(void)\n{\n' 0
        printf '\n%.0s' {1..600}
        printf '}\nint writable = 1;\n'
        printf 'void calls(void) { strcpy(a, b); volatile int x; printf("x"); free(x); }\n'
        printf '// TO''DO later\n// /ho''me/somebody/file\n'
    } >"$work/tree/base/more.c"
    printf 'int writable = 1;\nvoid bare_name(void) {}\n' >"$work/tree/base/room.c"
    printf '%0121d\n\n' 0 >"$work/tree/run.sh"
}

good_tree
make_libraries "$work/tree"
bash "$tidy" "$work/tree" "$work/build" >"$work/good" || true
if grep '^not ok' "$work/good"; then
    cat "$work/good"
    exit 1
fi
bad_tree
make_libraries "$work/tree"
bash "$tidy" "$work/tree" "$work/build" >"$work/bad" || true
# What this machine cannot check is skipped in both.
if grep '^ok' "$work/bad" | grep -v '# SKIP'; then
    cat "$work/bad"
    exit 1
fi
[ "$(grep -c '^not ok' "$work/bad")" -ge 18 ]
