#!/usr/bin/env bash
# Moves the debug information of a program that cargo has built to PROGRAM.debug beside it:  scripts/symbols.sh PROGRAM
#
# The program is half as large then. It names the file that has the rest: debuggers find it, and so do backtraces of the
# program itself, as long as it stays there. Does nothing if that is done already, or without objcopy.
set -euo pipefail

program=$1
command -v objcopy >/dev/null || { echo "symbols: no objcopy (package binutils): $program keeps them" >&2; exit 0; }
if ! objdump --section-headers "$program" | grep -q '\.debug_info'; then exit 0; fi

objcopy --only-keep-debug "$program" "$program.debug"
objcopy --strip-all --add-gnu-debuglink="$program.debug" "$program" "$program.new"
# Cargo keeps the program under a second name, a link to the same file, which it would put back.
mapfile -t names < <(find "$(dirname "$program")/deps" -samefile "$program" 2>/dev/null)
mv "$program.new" "$program"
for name in "${names[@]}"; do ln -f "$program" "$name"; done
