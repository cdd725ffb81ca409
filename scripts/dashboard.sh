#!/usr/bin/env bash
# The dashboard, a page in TypeScript and Svelte (folder dashboard). Its built files are committed, so that cargo needs no Node.js.
#
#   scripts/dashboard.sh build           build the page into dashboard/dist
#   scripts/dashboard.sh check           check the types, and that dashboard/dist is what the source gives
#   scripts/dashboard.sh test            test the page of target/debug/thalweg in a browser
#   scripts/dashboard.sh screenshots     make the pictures in docs/images with the same browser
#
# Needs Node.js 20 and npm; the last two need chromium. Without them, check and test write a line that begins with "skipped:".
set -euo pipefail
cd "$(dirname "$0")/../dashboard"

# The versions of package-lock.json, if they are not here yet.
install() {
  [ node_modules/.package-lock.json -nt package-lock.json ] ||
    npm ci --no-fund --no-audit --loglevel=error >/dev/null
}

# The types of the API come from its description, which the tests keep current.
types() { npm run --silent types >/dev/null; }

skip() { # REASON
  echo "skipped: dashboard: $1"
  exit 0
}

has_node() {
  command -v npm >/dev/null && [ "$(node --version | sed 's/^v\([0-9]*\).*/\1/')" -ge 20 ]
}

case ${1:-} in
  build)
    install && types
    npm run --silent build
    ;;
  check)
    has_node || skip "there is no npm with Node.js 20: dashboard/dist is not compared with its source"
    install && types
    npm run --silent check
    built=$(mktemp -d)
    trap 'rm -rf "$built"' EXIT
    npm run --silent build -- --outDir "$built" --logLevel warn
    diff -r dist "$built" >/dev/null || {
      echo "dashboard/dist is not what dashboard/src gives: run scripts/dashboard.sh build" >&2
      exit 1
    }
    ;;
  test)
    has_node || skip "there is no npm with Node.js 20: the page is not tested"
    command -v "${CHROMIUM:-chromium}" >/dev/null || skip "there is no chromium: the page is not tested in a browser"
    install
    shift
    exec node --test --test-reporter=spec "${@:-tests/}"
    ;;
  screenshots)
    install
    exec node tests/screenshots.mjs ../docs/images
    ;;
  *)
    echo "usage: scripts/dashboard.sh build|check|test|screenshots" >&2
    exit 2
    ;;
esac
