#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The jobs of tests/cases give the results that were worked out elsewhere, at every parallelism.
#
# usage: test_cases.sh LEAT JOBS, the program and the folder of the compiled jobs
# shellcheck source=tests/tools/lib.sh
. "$(dirname -- "$0")/../tools/lib.sh"
cases=$(readlink -f -- "$(dirname -- "$0")")

# columns LIST FILE: some columns of a table, in its order.
columns() { cut -f "$1" -- "$2" >"$work/expected"; }

# The last output holds the lines expected: in any order, in this order, or in this order where the first column is the
# same (a stable sort keeps it).
same_set() { ended_with 0 && cmp <(sort "$work/expected") <(sort "$work/out"); }
same_order() { ended_with 0 && cmp "$work/expected" "$work/out"; }
same_order_by_key() {
    ended_with 0 && cmp <(sort -t $'\t' -k 1,1 -s "$work/expected") <(sort -t $'\t' -k 1,1 -s "$work/out")
}

for p in 1 2 4 7; do
    case_dir=$cases/05-csv-missing
    columns 1- "$case_dir/expected.tsv"
    leat_run run -p "$p" -D source.split-size=64KiB "$jobs/05-csv-missing.so" -- "$case_dir/in.csv"
    claim "05-csv-missing: an aggregation at parallelism $p" same_set
    while read -r what field column; do
        columns "1,$column" "$case_dir/expected.tsv"
        leat_run run -p "$p" -D source.split-size=64KiB "$jobs/05-csv-missing.so" -- "$case_dir/in.csv" "$what" "$field"
        claim "05-csv-missing: $what of the $field at parallelism $p" same_set
    done <<<$'sum cost 3\nmax cost 4\nmin speed 6\nmax speed 7'

    case_dir=$cases/08-rolling-reduce
    order=same_order_by_key
    [ "$p" -gt 1 ] || order=same_order
    columns 1- "$case_dir/expected.tsv"
    leat_run run -p "$p" "$jobs/08-rolling-reduce.so" -- "$case_dir/in.tsv"
    claim "08-rolling-reduce: a reduce at parallelism $p" "$order"
    while read -r what column; do
        columns "1,$column" "$case_dir/expected.tsv"
        leat_run run -p "$p" "$jobs/08-rolling-reduce.so" -- "$case_dir/in.tsv" "$what"
        claim "08-rolling-reduce: $what at parallelism $p" "$order"
    done <<<$'sum 3\nmin 4\nmax 5'
done
done_testing
