#!/usr/bin/env bash
# Makes the Python package ready in .venv:  scripts/python.sh run|bench
# Makes .venv ready for its tests:          scripts/python.sh test
# Installs a compiled module into it:       scripts/python.sh module PROFILE
# Makes a wheel of it in target/wheels:     scripts/python.sh wheel
#
# Installs pinned versions (python/requirements*.txt) when they have changed, and the package itself, editable. Its compiled
# part is built by cargo beside the program, with the same features and profile, so that what was built for one serves the
# other. `test` leaves that to scripts/test.sh, which builds the workspace, and without Python says so and goes on.
set -euo pipefail
cd "$(dirname "$0")/.."
timed_by_caller=${STEP_TIMES:-}
. scripts/steps.sh

case ${1:-} in
  run) pins=(python/requirements.txt) missing=1 ;;
  test) pins=(python/requirements.txt python/requirements-test.txt) missing=0 ;;
  bench) pins=(python/requirements.txt python/requirements-bench.txt) missing=0 ;;
  wheel) pins=(python/requirements.txt) missing=1 ;;
  module) ;;
  *)
    echo "usage: scripts/python.sh run|test|bench|wheel|module PROFILE" >&2
    exit 2
    ;;
esac

# Copies what cargo has built into the package. A module that Python has loaded is replaced, not overwritten.
install_module() { # PROFILE
  local module=python/thalweg/_native.abi3.so
  cp "${CARGO_TARGET_DIR:-target}/$1/lib_native.so" "$module.new"
  mv "$module.new" "$module"
}

if [ "$1" = module ]; then
  install_module "$2"
  exit
fi

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
# The package is where it is in the repository.
echo "$PWD/python" >"$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/thalweg.pth"

case $1 in
  run | bench)
    step cargo build --release -p thalweg -p thalweg-python
    scripts/symbols.sh "${CARGO_TARGET_DIR:-target}/release/thalweg"
    install_module release
    ;;
  wheel) (cd python && step ../.venv/bin/maturin build --release --out ../target/wheels) ;;
  test) ;;
esac
[ -n "$timed_by_caller" ] || print_steps
