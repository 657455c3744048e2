#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes C in which the templates stand as arrays, so that the program needs no files beside it.
#
# usage: embed.sh OUTPUT NAME TEMPLATE [NAME TEMPLATE]…
set -euo pipefail

exec >"$1"
shift
printf '// SPDX-License-Identifier: Apache-2.0\n// Made by templates/embed.sh.\n'
printf '#include "tools/templates.h"\n\nconst leati_template leati_templates[] = {\n'
while [ $# -gt 1 ]; do
    printf '{"%s", (const char[]){\n' "$1"
    od -An -v -td1 -w24 -- "$2" | sed -E 's/ +(-?[0-9]+)/\1,/g'
    printf '0}},\n'
    shift 2
done
printf '{NULL, NULL},\n};\n'
