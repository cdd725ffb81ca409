#!/usr/bin/env bash
# Compares analyses of flow records with other programs; results in bench/results/.
#
#   bench/records.sh reconstruct [RECORDS]   flows and flowsets: ours, DuckDB, Polars, DataFusion (20 M records)
#   bench/records.sh top [RECORDS]           top source addresses: ours and nfdump, on the same records (20 M)
#   bench/records.sh memory [RECORDS]        ours within 4 GiB (200 M records: 25 GB of disk)
#   bench/records.sh ingest [RECORDS]        NetFlow v9 over loopback into files: ours and nfcapd (20 M records)
#   bench/records.sh engines [RECORDS] [ENGINE=RECORDS...]   analyses on native, duckdb, clickhouse, spark (2 M records)
# One thread on one processor; ingest has its sender on another one, and Spark two workers on any. Records are generated
# by
# the library of `thalweg synth` and kept in target/bench-records/. Programs that are not installed are skipped with a
# message; `scripts/python.sh bench` installs the Python packages.
set -euo pipefail
cd "$(dirname "$0")/.."

subject=${1:?reconstruct, top, memory, ingest or engines}
case $subject in
  reconstruct | top | ingest) records=${2:-20000000} ;;
  memory) records=${2:-200000000} ;;
  engines) records=${2:-2000000} ;;
  *)
    echo "bench/records.sh: expected reconstruct, top, memory, ingest or engines, found $subject" >&2
    exit 2
    ;;
esac
target=${CARGO_TARGET_DIR:-target}
python=${BENCH_PYTHON:-.venv/bin/python} # with the package thalweg: scripts/python.sh bench
data=$target/bench-records
cpu=$(taskset -cp $$ | sed 's/.*[:,-] *//')
mkdir -p "$data"

step() { echo "==> $*"; "$@"; }
if [ "$subject" = ingest ]; then
  step cargo build --release -p thalweg
else
  step cargo build --release -p thalweg-records -p thalweg-synth --examples
fi

case $subject in
  reconstruct | memory)
    file=$data/sampled-$records.parquet
    [ -s "$file" ] || step "$target/release/examples/synthetic_records" "$records" 1000 1 "$file"
    step taskset -c "$cpu" "$python" bench/peers/records/measure.py "$subject" "$data/out" "$file" \
      --analyse "$target/release/examples/analyse"
    ;;
  top)
    # Unsampled, because nfdump scales only by options templates.
    file=$data/whole-$records.parquet
    nfcapd=$data/nfcapd-$records
    if command -v nfcapd >/dev/null; then
      if [ ! -d "$nfcapd" ] || [ ! -s "$file" ]; then
        rm -rf "$nfcapd" && mkdir -p "$nfcapd.part"
        nfcapd -p 29995 -b 127.0.0.1 -w "$nfcapd.part" -t 3600 -B 200000000 &
        collector=$!
        trap 'kill $collector 2>/dev/null || true' EXIT
        sleep 1
        step "$target/release/examples/synthetic_records" "$records" 1 1 "$file" 127.0.0.1:29995
        sleep 3
        kill $collector
        wait $collector || true
        mv "$nfcapd.part" "$nfcapd"
      fi
    else
      echo 'nfdump: skipped, not installed'
      [ -s "$file" ] || step "$target/release/examples/synthetic_records" "$records" 1 1 "$file"
    fi
    step taskset -c "$cpu" "$python" bench/peers/records/measure.py top "$data/out" "$file" --nfcapd "$nfcapd"
    ;;
  ingest)
    # The last processor, as above, and the first.
    step "$python" bench/peers/records/ingest.py "$data/ingest" "$target/release/thalweg" "$records" "$cpu" 0
    ;;
  engines)
    declare -A size=()
    for own in "${@:3}"; do size[${own%%=*}]=${own#*=}; done
    measured=()
    for count in $records "${size[@]}"; do
      file=$data/sampled-$count.parquet
      [ -s "$file" ] || step "$target/release/examples/synthetic_records" "$count" 1000 1 "$file"
    done
    for engine in native duckdb clickhouse spark; do
      count=${size[$engine]:-$records}
      # Whoever has a size of its own is compared with compiled code.
      [ "$count" = "$records" ] || measured+=("native=$data/sampled-$count.parquet")
      measured+=("$engine=$data/sampled-$count.parquet")
    done
    step "$python" bench/peers/records/engines.py "$data/scratch" "${measured[@]}"
    ;;
esac
