#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows that run_docs.sh sees what is wrong in a page: a failing command, other output, and no more than that.
#
# usage: self_test.sh RUN_DOCS
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
mkdir -p "$work/tree/docs" "$work/a build"
printf 'made by the build\n' >"$work/a build/thing"
cat >"$work/tree/README.md" <<'PAGE'
```sh run
echo 'a [b] * c'; cat build/thing
```

```text output
a [b] * c
made by ... build
```

```sh
false, but not marked
```

```c file=said.txt
from a block
```

```sh run
cat said.txt; test -f README.md
```

```text output
from a block
```
PAGE
cat >"$work/tree/docs/wrong.md" <<'PAGE'
```sh run
echo before
false
echo after
```

```sh run
echo one
```

```text output
two
```

```sh run
test ! -e said.txt
```
PAGE
bash "$1" "$work/tree" "$work/a build" >"$work/said"
sed '/^#/d' "$work/said" >"$work/results"
diff "$work/results" - <<'EXPECTED'
ok 1 - README.md:1
ok 2 - README.md:18
not ok 3 - docs/wrong.md:1
not ok 4 - docs/wrong.md:7
ok 5 - docs/wrong.md:15
1..5
EXPECTED
