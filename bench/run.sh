#!/usr/bin/env bash
# Runs all benchmarks (results in bench/results/) and experiments (results in experiments/). Takes 50 to 80 minutes on
# a quiet machine, 25 GB of disk and 4 GB of memory. Called by `make bench`.
#
#   bench/run.sh                          everything
#   BENCH_PACKETS=1000000 bench/run.sh    a small run: every trace has at most this many packets
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
limit=${BENCH_PACKETS:-38000000}
cpus=$(taskset -cp $$ | sed 's/.*[:,-] *//') # the last allowed one, as in the meters benchmark

step() { echo "==> $*"; "$@"; }
bench() { step taskset -c "$cpus" "$target/release/thalweg-bench" "$@"; }
bench_on_all() { step "$target/release/thalweg-bench" "$@"; } # benchmarks that compare or use all cores
at_most() { echo $(($1 < limit ? $1 : limit)); }

step cargo build --release -p thalweg -p thalweg-bench

packets=$(at_most 10000000)
if [ "$limit" -gt 10000000 ]; then packets+=,$limit; fi
bench meters --packets "$packets" --thalweg "$target/release/thalweg" --traces "$target/bench-traces"
bench stages --packets "$(at_most 10000000)"
bench scaling --packets "$(at_most 1000000),$(at_most 10000000),$limit"
bench detectors --packets "$limit"
bench tasks --packets "$limit"
bench flood --packets "$(at_most 10000000)"
bench sketches --packets "$(at_most 10000000)" --build "$target/bench-peers" --keys "$target/bench-keys"
bench threshold --seconds "$(at_most 38000000 | awk '{ print $1 < 38000000 ? 60 : 3600 }')"
bench_on_all emulator --packets "$(at_most 30000000)" --build "$target/bench-peers/ns3"
for experiment in cheetah-hash-buckets cheetah-length-filter cheetah-reported; do
  bench experiment "$experiment" --packets "$limit"
done
for experiment in nitro-throughput nitro-memory nitro-convergence nitro-skew nitro-packet-sampling; do
  bench experiment "$experiment" --packets "$(at_most 10000000)"
done
emulated=()
if [ "$limit" -lt 10000000 ]; then emulated=(--seconds 0.1 --seeds 1); fi
for experiment in queues completion trade-off hull-threshold lines cross-check; do
  bench_on_all experiment "flexplane-$experiment" --build "$target/bench-peers/ns3" "${emulated[@]}"
done
emulated=()
if [ "$limit" -lt 10000000 ]; then emulated=(--seconds 0.01 --seeds 1); fi
for experiment in bursts latency slow-start error timeline; do
  bench_on_all experiment "planck-$experiment" "${emulated[@]}"
done
if [ -x "${BENCH_PYTHON:-.venv/bin/python}" ]; then
  step bench/records.sh reconstruct "$(at_most 20000000)"
  step bench/records.sh top "$(at_most 20000000)"
  step bench/records.sh memory "${BENCH_PACKETS:-200000000}"
  step bench/records.sh ingest "$(at_most 20000000)"
  # Spark takes a minute for any number of records.
  [ "$limit" -lt 2000000 ] || step bench/records.sh engines "$(at_most 20000000)" spark=2000000
else
  echo 'records: skipped, the Python package is missing (install it with scripts/python.sh bench)'
fi
