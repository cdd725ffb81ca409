#!/usr/bin/env bash
# Runs fuzz targets, all if none is named, for FUZZ_SECONDS (60) each, from its kept corpus in fuzz/corpus/TARGET:
#
#   FUZZ_SECONDS=600 scripts/fuzz.sh netflow ipfix sflow
#
# What it finds on the way goes to target/fuzz-corpus/TARGET, so that the kept corpus grows only by hand;
# an input that crashes goes to fuzz/artifacts/TARGET. Without nightly Rust and cargo-fuzz it says so, and
# runs the kept corpora as the ordinary tests that they also are.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly SECONDS_EACH=${FUZZ_SECONDS:-60}

step() { echo "==> $*"; "$@"; }

missing=
cargo +nightly --version >/dev/null 2>&1 || missing="nightly Rust (rustup toolchain install nightly)"
cargo fuzz --version >/dev/null 2>&1 || missing+="${missing:+ and }cargo-fuzz (cargo install --locked cargo-fuzz)"
if [ -n "$missing" ]; then
  echo "fuzz: no fuzzing without $missing; running the kept corpora as tests instead"
  step cargo test --workspace corpus
  exit
fi

targets=${*:-$(cargo +nightly fuzz list)}
for target in $targets; do
  mkdir -p "target/fuzz-corpus/$target" "fuzz/corpus/$target"
  step cargo +nightly fuzz run "$target" "target/fuzz-corpus/$target" "fuzz/corpus/$target" -- \
    -max_total_time="$SECONDS_EACH" -print_final_stats=1
done
echo "==> nothing crashed: $(echo "$targets" | wc -w) targets, $SECONDS_EACH s each"
