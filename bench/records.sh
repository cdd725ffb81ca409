#!/usr/bin/env bash
# Analyses of flow records beside their peers, results under bench/results/.
#
#   bench/records.sh reconstruct [RECORDS]   flows and flowsets: ours, DuckDB, Polars, DataFusion (20 M records)
#   bench/records.sh top [RECORDS]           top source addresses: ours and nfdump, on the same records (20 M)
#   bench/records.sh memory [RECORDS]        ours within 4 GiB (200 M records: 25 GB of disk)
#
# One thread, on one processor. Records are made by the generator behind `thalweg synth` and kept in
# target/bench-records/. Contenders that are not installed are left out with a line that says so;
# `scripts/python.sh bench` installs those of Python.
set -euo pipefail
cd "$(dirname "$0")/.."

subject=${1:?reconstruct, top or memory}
case $subject in
  reconstruct | top) records=${2:-20000000} ;;
  memory) records=${2:-200000000} ;;
  *)
    echo "bench/records.sh: expected reconstruct, top or memory, found $subject" >&2
    exit 2
    ;;
esac
target=${CARGO_TARGET_DIR:-target}
python=${BENCH_PYTHON:-.venv/bin/python} # with the package thalweg: scripts/python.sh bench
data=$target/bench-records
cpu=$(taskset -cp $$ | sed 's/.*[:,-] *//')
mkdir -p "$data"

step() { echo "==> $*"; "$@"; }
step cargo build --release -p thalweg-records --examples

case $subject in
  reconstruct | memory)
    file=$data/sampled-$records.parquet
    [ -s "$file" ] || step "$target/release/examples/made_records" "$records" 1000 1 "$file"
    step taskset -c "$cpu" "$python" bench/peers/records/measure.py "$subject" "$data/out" "$file" \
      --analyse "$target/release/examples/analyse"
    ;;
  top)
    # Unsampled, as nfdump scales only by what options templates tell.
    file=$data/whole-$records.parquet
    nfcapd=$data/nfcapd-$records
    if command -v nfcapd >/dev/null; then
      if [ ! -d "$nfcapd" ] || [ ! -s "$file" ]; then
        rm -rf "$nfcapd" && mkdir -p "$nfcapd.part"
        nfcapd -p 29995 -b 127.0.0.1 -w "$nfcapd.part" -t 3600 -B 200000000 &
        collector=$!
        trap 'kill $collector 2>/dev/null || true' EXIT
        sleep 1
        step "$target/release/examples/made_records" "$records" 1 1 "$file" 127.0.0.1:29995
        sleep 3
        kill $collector
        wait $collector || true
        mv "$nfcapd.part" "$nfcapd"
      fi
    else
      echo 'nfdump: not installed, left out'
      [ -s "$file" ] || step "$target/release/examples/made_records" "$records" 1 1 "$file"
    fi
    step taskset -c "$cpu" "$python" bench/peers/records/measure.py top "$data/out" "$file" --nfcapd "$nfcapd"
    ;;
esac
