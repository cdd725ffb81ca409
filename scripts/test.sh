#!/usr/bin/env bash
# Everything that must hold before a change lands. `make test` calls it; it needs no set-up of its own.
#
# A test that cannot run here (no root, no tshark) writes one line `skipped: NAME: REASON` to standard error,
# past the test runner's capture, and passes. The closing lines list these and count them as skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { echo "==> $*"; "$@"; }

step cargo fmt --all --check
step cargo clippy --workspace --all-targets --quiet -- -D warnings
step scripts/check-links.sh

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
step cargo test --workspace --no-fail-fast 2>&1 | tee "$log" || status=$?

echo
echo "==> in all"
grep -o 'skipped: .*' "$log" | sort || true
awk '/skipped: / { skipped++ }
  /^test result:/ { passed += $4; failed += $6; ignored += $8 }
  END { printf "%d passed, %d failed, %d skipped\n", passed - skipped, failed, ignored + skipped }' "$log"
exit "$status"
