#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Settings come from a file, the environment, options and the job, of which later ones win; mistakes are refused with
# the place where they stand.
# shellcheck source=tests/tools/lib.sh
. "$(dirname -- "$0")/lib.sh"
lines=$jobs/lines.so

# value KEY TEXT FROM: what `leat config` has said.
value() { grep -qxE "${1//./\\.}: $2 +# $3" "$work/out"; }
listed() { ended_with 0 && silent err && value "$@"; }
yaml() { printf '%s\n' "$@" >"$work/leat.yaml"; }

leat_run config
claim 'a default is listed as such' listed memory.segment-size '32 KiB' default
claim 'a key has its type, range, default and meaning' grep -qxF -- \
    '# size, 1 KiB to 1 MiB, default 32 KiB' "$work/out"

# The layers, each over the ones before.
yaml 'workers: 3' 'parallelism: 4' 'memory:' '  segment-size: 64 KiB' 'buffer-timeout: 5 ms'
leat_run config --config "$work/leat.yaml"
claim 'a file overrules the default' listed workers 3 "$work/leat.yaml:1"
claim 'nested maps and dotted keys say the same' listed memory.segment-size '64 KiB' "$work/leat.yaml:4"
export LEAT_WORKERS=5 LEAT_BUFFER_TIMEOUT=6ms
leat_run config --config "$work/leat.yaml" -D buffer-timeout=7ms
claim 'the environment overrules the file' listed workers 5 LEAT_WORKERS
claim 'an option overrules the environment' listed buffer-timeout '7 ms' -D
claim 'what is not overruled stays' listed parallelism 4 "$work/leat.yaml:2"
leat_run config --config "$work/leat.yaml" -p 9
claim 'an option that stands for a key is named' listed parallelism 9 -p
unset LEAT_WORKERS LEAT_BUFFER_TIMEOUT
leat_run plan --config "$work/leat.yaml" "$lines"
claim 'a job gets what the file says' grep -q 'parallelism 4' "$work/out"
leat_run plan -p 2 "$jobs/settings.so"
claim 'what the job function sets overrules options' grep -q 'parallelism 3' "$work/out"
LEAT_WORKERS='' leat_run config
claim 'an empty variable is none' listed workers 0 default

# Where the file is looked for.
mkdir -p "$work/home/.config/leat" "$work/xdg/leat"
echo 'workers: 11' >"$work/home/.config/leat/leat.yaml"
echo 'workers: 12' >"$work/xdg/leat/leat.yaml"
echo 'workers: 13' >"$work/named.yaml"
located() { (unset LEAT_CONFIG XDG_CONFIG_HOME; env "${@:1:$#-1}" "$leat" config workers | grep -q "# .*${*: -1}:1$"); }
claim 'below the home folder' located "HOME=$work/home" "$work/home/.config/leat/leat.yaml"
claim 'below XDG_CONFIG_HOME' located "HOME=$work/home" "XDG_CONFIG_HOME=$work/xdg" "$work/xdg/leat/leat.yaml"
claim 'LEAT_CONFIG before these' located "HOME=$work/home" "XDG_CONFIG_HOME=$work/xdg" \
    "LEAT_CONFIG=$work/named.yaml" "$work/named.yaml"
HOME=$work/home LEAT_CONFIG='' leat_run config workers
claim 'an empty LEAT_CONFIG is none' listed workers 11 "$work/home/.config/leat/leat.yaml:1"
LEAT_CONFIG=$work/named.yaml leat_run config --config "$work/xdg/leat/leat.yaml" workers
claim '--config before all' listed workers 12 "$work/xdg/leat/leat.yaml:1"
leat_run run --config "$work/none.yaml" "$lines"
claim 'a named file must be there' refused 2 "$work/none.yaml" 'No such file'
LEAT_CONFIG=$work/none.yaml leat_run run "$lines"
claim 'so must the one that LEAT_CONFIG names' refused 2 "$work/none.yaml" 'No such file'

# Mistakes, each with its place.
# wrong CLAIM LINE TEXT YAML…
wrong() {
    yaml "${@:4}"
    leat_run run --config "$work/leat.yaml" "$lines"
    claim "$1" refused 2 "leat: $work/leat.yaml:$2: " "$3"
}
wrong 'a misspelt key suggests the right one' 2 'did you mean "memory.segment-size"?' 'workers: 1' \
    'memory.segment-sise: 64KiB'
wrong 'so does one in a map' 2 'did you mean "memory.segment-size"?' 'memory:' '  segment-sise: 64KiB'
wrong 'so does a misspelt map' 2 'did you mean "memory.segment-size"?' 'memroy:' '  segment-size: 64KiB'
wrong 'a bad value names its line' 3 '"large" is not a size' '# one' '# two' 'memory.segment-size: large'
wrong 'a value out of range names its line' 1 'out of range' 'workers: 5000'
wrong 'a list is refused' 1 'not a list' 'workers: [1, 2]'
wrong 'a key that is set twice is refused' 3 'is set already, in line 1' 'memory.network: 1GiB' 'memory:' \
    '  network: 2GiB'
wrong 'what is no map is refused' 1 'a key, a colon, and a value' 'just text'
wrong 'what is no YAML is refused' 2 'this is not YAML' 'workers: 1' 'memory: @x'
wrong 'a key without a value is refused' 1 'workers has no value' 'workers:'
yaml 'workers: x' 'paralelism: 2'
LEAT_CHAINING=perhaps leat_run run --config "$work/leat.yaml" -D buffer-timeout=soon "$lines"
claim 'all mistakes are told at once' refused 2 'leat.yaml:1: ' 'leat.yaml:2: ' 'LEAT_CHAINING' '-D buffer-timeout=soon'
LEAT_MEMORY_SEGMENT_SISE=64KiB leat_run run "$lines"
claim 'a misspelt variable suggests the right one' refused 2 'LEAT_MEMORY_SEGMENT_SISE' \
    'did you mean LEAT_MEMORY_SEGMENT_SIZE?'
LEAT_LOGG=info leat_run run "$lines"
claim 'also when that is no setting' refused 2 'did you mean LEAT_LOG?'
LEAT_JOB_ANYTHING=1 LEAT_BENCH_X=1 leat_run config workers
claim 'variables of jobs and benches are left alone' listed workers 0 default
yaml 'memory:' '# all of it is commented out'
leat_run config --config "$work/leat.yaml" memory
claim 'an empty group is no mistake' listed memory.network '64 MiB' default
: >"$work/leat.yaml"
leat_run config --config "$work/leat.yaml"
claim 'nor is an empty file' listed workers 0 default

# The listing.
leat_run config network
only_network() { ended_with 0 && [ "$(grep -c '^[a-z]' "$work/out")" -eq "$(grep -c '^network\.' "$work/out")" ]; }
claim 'a group can be asked for' only_network
claim 'and has its keys' listed network.floating-buffers 8 default
leat_run config worker
claim 'a misspelt key is refused' refused 2 'did you mean "workers"?'
again() {
    "$leat" config -D memory.network=1GiB -p 3 >"$work/kept.yaml" && "$leat" config --config "$work/kept.yaml" |
        sed 's/ *#.*//' | grep . | diff - <(sed 's/ *#.*//' "$work/kept.yaml" | grep .)
}
claim 'the listing is a configuration file' again
if command -v jq >/dev/null; then
    leat_run config --json --config "$work/kept.yaml"
    claim '--json has every key' json_has ".settings | length == $("$leat" config | grep -c '^[a-z]')"
    claim 'with value, default and origin' json_has '.settings[] | select(.key == "memory.network") |
        .value == 1073741824 and .default == 67108864 and .variable == "LEAT_MEMORY_NETWORK" and
        (.from | endswith("kept.yaml:17"))'
    leat_run config --json chaining
    claim 'flags are booleans' json_has '.settings[0].value == true'
fi
done_testing
