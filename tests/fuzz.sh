#!/usr/bin/env bash
# Fuzzes on a stable compiler, for a fixed number of runs: tests/fuzz.sh [CRATE/TARGET...]
#
# Without arguments all targets of all fuzz crates run. The flags are what `cargo fuzz --sanitizer none` passes: coverage by the compiler, and
# libFuzzer as the library that the target links. Each target starts from a copy of its committed seeds; what it finds is written below the
# target directory, and the path is printed. A fixed seed makes a run repeatable as long as the program is the same.
#
#   RUNS              runs a target, in place of its own number
#   CARGO_TARGET_DIR  builds and findings are in `fuzz` below it
set -euo pipefail
cd "$(dirname "$0")/.."

# Crate, target, longest input in bytes, runs.
all="
transports/http/event_stream 4096 150000
transports/http/json_lines 4096 150000
host/manifest/manifest 2048 8000
host/tools/values 512 12000
host/tools/component 4096 60
"

target=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
triple=$(rustc -vV | sed -n 's/^host: //p')
pass="-Cllvm-args=-sanitizer-coverage"
export RUSTFLAGS="-Cpasses=sancov-module $pass-level=4 $pass-inline-8bit-counters $pass-pc-table --cfg fuzzing"

fuzz() {
    local crate=${1%/*} name=${1##*/} max_len=$2 runs=${RUNS:-$3}
    # The triple keeps the flags away from build scripts and procedural macros.
    cargo build --quiet --locked --target "$triple" --target-dir "$target" --manifest-path "$crate/fuzz/Cargo.toml" --bin "$name"
    local corpus found=$target/found/$name
    corpus=$(mktemp -d)
    mkdir -p "$found"
    cp "$crate/fuzz/seeds/$name"/* "$corpus"
    printf '%s: ' "$1"
    if ! "$target/$triple/debug/$name" -runs="$runs" -seed=1 -max_len="$max_len" -timeout=10 -rss_limit_mb=2048 \
        -artifact_prefix="$found/" "$corpus" >"$corpus.log" 2>&1; then
        echo "failed"
        # The report of a panic stands before libFuzzer's own.
        grep -v '^#[0-9]*\s\(NEW\|REDUCE\|pulse\|INITED\|RELOAD\)' "$corpus.log" | tail -n 40 >&2
        echo "reproduce: $target/$triple/debug/$name FILE" >&2
        return 1
    fi
    grep '^Done' "$corpus.log"
    rm -rf "$corpus" "$corpus.log"
}

asked=" $* "
ran=0
while read -r name max_len runs; do
    [ -n "$name" ] || continue
    [ "$#" -eq 0 ] || [[ $asked == *" $name "* ]] || continue
    fuzz "$name" "$max_len" "$runs"
    ran=$((ran + 1))
done <<<"$all"
if [ "$ran" -eq 0 ] || { [ "$#" -gt 0 ] && [ "$ran" -ne "$#" ]; }; then
    echo "$ran of the targets asked for are known:$all" >&2
    exit 2
fi
