#!/usr/bin/env bash
# Every dependency of the program is built with the same features, whether the program is built alone, beside the Python
# module, or with the whole workspace. Otherwise one of these commands compiles the dependencies again.
set -euo pipefail
cd "$(dirname "$0")/.."

dependencies() { # OPTIONS: one line each, with its version and features
  cargo tree --locked --edges normal,build --prefix none --format '{p} {f}' "$@" | sed 's/ (\*)$//' | sort -u
}

alone=$(dependencies -p thalweg)
status=0
for others in "-p thalweg -p thalweg-python" "--workspace"; do
  # shellcheck disable=SC2086 # several options
  differing=$(comm -23 <(echo "$alone") <(dependencies $others))
  if [ -n "$differing" ]; then
    echo "features: -p thalweg builds these otherwise than $others does:" >&2
    echo "$differing" >&2
    status=1
  fi
done
[ $status -ne 0 ] || echo "$(echo "$alone" | wc -l) packages checked, all built with the same features"
exit $status
