#!/usr/bin/env bash
# Makes the Python package ready in .venv:  scripts/python.sh run|test|bench
# Makes a wheel of it in target/wheels:     scripts/python.sh wheel
#
# Installs pinned versions (python/requirements*.txt) when they have changed, and the package itself, editable, its compiled part
# built by cargo. `run` has that part optimised; `test` builds it beside what the tests of Rust build, and without Python
# says so and goes on.
set -euo pipefail
cd "$(dirname "$0")/.."
timed_by_caller=${STEP_TIMES:-}
. scripts/steps.sh

case ${1:-} in
  run) pins=(python/requirements.txt) does=(develop --release) missing=1 ;;
  test) pins=(python/requirements.txt python/requirements-test.txt) does=(develop) missing=0 ;;
  bench) pins=(python/requirements.txt python/requirements-bench.txt) does=(develop --release) missing=0 ;;
  wheel) pins=(python/requirements.txt) does=(build --release --out ../target/wheels) missing=1 ;;
  *)
    echo "usage: scripts/python.sh run|test|bench|wheel" >&2
    exit 2
    ;;
esac

if ! python3 -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "python: without Python 3.11 or newer and its venv (package python3-venv), the package is not installed" >&2
  exit "$missing"
fi
[ -x .venv/bin/python ] || step python3 -m venv .venv

# What was installed is written down, and stays until the pins say otherwise.
wanted=$(sha256sum "${pins[@]}")
stamp=.venv/installed.$1
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
  step .venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement "${pins[-1]}"
  echo "$wanted" >"$stamp"
fi

cd python
export VIRTUAL_ENV=$PWD/../.venv
step ../.venv/bin/maturin "${does[@]}"
[ -n "$timed_by_caller" ] || print_steps
