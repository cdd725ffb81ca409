#!/usr/bin/env bash
# Format, lints, documentation, links and shell scripts. Changes nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/steps.sh

step cargo fmt --all --check
# The same packages and features as in scripts/test.sh.
workspace=(--workspace)
if command -v make >/dev/null; then workspace+=(--features thalweg/kafka); fi
step cargo clippy "${workspace[@]}" --all-targets --quiet -- -D warnings
RUSTDOCFLAGS="-D warnings" step cargo doc "${workspace[@]}" --no-deps --document-private-items --quiet
step scripts/check-links.sh
step scripts/experiments.sh check
step scripts/check-features.sh
step scripts/bpf.sh check
if [ -x .venv/bin/mypy ]; then
  step .venv/bin/ruff check --quiet python
  (cd python && step ../.venv/bin/mypy --no-error-summary)
else
  echo "==> python: not checked: scripts/python.sh test makes .venv"
fi

mapfile -t shell_scripts < <(
  find .ci scripts bench examples experiments packaging -type f \( -name '*.sh' -o -path .ci/run -o -path 'packaging/snmp/*' \) 2>/dev/null | sort
)
if command -v shellcheck >/dev/null; then
  step shellcheck "${shell_scripts[@]}"
else
  for script in "${shell_scripts[@]}"; do step bash -n "$script"; done
fi

print_steps
