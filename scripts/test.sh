#!/usr/bin/env bash
# Everything that must hold before a change lands. `make test` calls it after scripts/setup.sh.
#
# A test that cannot run here (no root, no tshark) writes one line `skipped: NAME: REASON` to standard error,
# past the test runner's capture, and passes. The closing lines list these and count them as skipped, and a table
# says what each step took, those that another script ran before under the same STEP_TIMES included.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/steps.sh

# What is left out by default is tested all the same, where it can be built. Every cargo command has the same packages and
# features, so that what one of them has compiled serves the others.
workspace=(--workspace)
if command -v make >/dev/null; then workspace+=(--features thalweg/kafka); fi

step cargo fmt --all --check
step scripts/check-links.sh
step scripts/experiments.sh check
step scripts/check-features.sh
step scripts/bpf.sh check
log=$(mktemp)
lints=$(mktemp)
python_log=$(mktemp)
unit_log=$(mktemp)
dashboard_log=$(mktemp)
clippy=
python=
units=
dashboard=
trap 'rm -f "$log" "$lints" "$python_log" "$unit_log" "$dashboard_log"; kill $clippy $python $units $dashboard 2>/dev/null || true' EXIT
status=0
# The Python environment and the dashboard are fetched and checked while the compiler works, which seldom needs all processors.
scripts/python.sh test >"$python_log" 2>&1 &
python=$!
scripts/dashboard.sh check >"$dashboard_log" 2>&1 &
dashboard=$!
# The tests, and the Python module beside them; no examples, which clippy has checked.
step cargo build "${workspace[@]}" --lib --bins --tests
# Not built again for the tests of the C library, which would wait for Clippy's lock of the build folder.
export THALWEG_C_ARCHIVE=${CARGO_TARGET_DIR:-$PWD/target}/debug/libthalweg_c.a
echo "==> scripts/python.sh test (beside the compiler)"
wait "$python" || status=$?
python=
cat "$python_log"
if [ -x .venv/bin/pytest ]; then
  step .venv/bin/ruff check --quiet python
  (cd python && step ../.venv/bin/mypy --no-error-summary)
fi
echo "==> scripts/dashboard.sh check (beside the compiler)"
wait "$dashboard" || status=$?
tee -a "$log" <"$dashboard_log"
# The tests of the Python package run beside the others, most of which wait.
if [ -x .venv/bin/pytest ]; then
  scripts/python.sh module debug
  (cd python && exec nice -n 10 ../.venv/bin/python -m pytest --quiet) >"$python_log" 2>&1 &
  python=$!
else
  echo "skipped: python: there is no .venv with its tests' packages" | tee -a "$log"
fi
# Many tests wait, for timers of the kernel or for other programs. Clippy computes meanwhile, at the lowest priority. It
# starts when the tests run, because both need the lock of the build folder before.
(sleep 10 && nice -n 19 cargo clippy "${workspace[@]}" --all-targets --quiet -- -D warnings >"$lints" 2>&1) &
clippy=$!
[ ${#workspace[@]} -gt 1 ] || echo "skipped: kafka: there is no make to build librdkafka with" | tee -a "$log"
# The tests within the crates compute as well.
(sleep 5 && exec nice -n 5 cargo test "${workspace[@]}" --lib --bins --no-fail-fast) >"$unit_log" 2>&1 &
units=$!
step cargo test "${workspace[@]}" --test it --no-fail-fast 2>&1 | tee -a "$log" || status=$?
# The largest, which are named it, have labs in real time. A browser would disturb them: its tests run beside the others.
(exec nice -n 5 scripts/dashboard.sh test) >"$dashboard_log" 2>&1 &
dashboard=$!
step cargo test "${workspace[@]}" --test '[!i]*' --test 'i[!t]*' --no-fail-fast 2>&1 | tee -a "$log" || status=$?
echo "==> cargo test ${workspace[*]} --lib --bins --no-fail-fast (beside the others)"
wait "$units" || status=$?
tee -a "$log" <"$unit_log"
echo "==> cargo clippy ${workspace[*]} --all-targets --quiet -- -D warnings (beside the tests)"
wait "$clippy" || status=$?
cat "$lints"
echo "==> scripts/dashboard.sh test (beside the tests)"
wait "$dashboard" || status=$?
tee -a "$log" <"$dashboard_log"
# DPDK is not installed for this: it has 200 packages. One crate is compiled again; no more, as long as this command and the
# one above need cbindgen, the only program here whose libraries are those of procedural macros.
if pkg-config --exists libdpdk 2>/dev/null; then
  step cargo test "${workspace[@]}" --features thalweg-capture/dpdk --test dpdk --test header 2>&1 | tee -a "$log" || status=$?
else
  echo "skipped: dpdk: there is no libdpdk" | tee -a "$log"
fi
step cargo test "${workspace[@]}" --doc --no-fail-fast 2>&1 | tee -a "$log" || status=$?
if [ -n "$python" ]; then
  echo "==> python -m pytest --quiet (beside the tests)"
  wait "$python" || status=$?
  tee -a "$log" <"$python_log"
fi

echo
print_steps
echo
echo "==> in all"
grep -o 'skipped: .*' "$log" | sort || true
awk '/^skipped: (python|kafka|dashboard|dpdk): / { skipped++; passed++; next }
  /skipped: / { skipped++ }
  /^ℹ pass / { passed += $3 }
  /^ℹ fail / { failed += $3 }
  /^ℹ skipped / { skipped += $3; passed += $3 }
  /^test result:/ { passed += $4; failed += $6; ignored += $8 }
  END { printf "%d passed, %d failed, %d skipped\n", passed - skipped, failed, ignored + skipped }' "$log"
exit "$status"
