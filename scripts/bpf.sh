#!/usr/bin/env bash
# The compiled eBPF programs of the repository:  scripts/bpf.sh [build|check]
#
# NAME.bpf.o is compiled from NAME.bpf.c beside it, so that nobody needs clang to build Thalweg. NAME.bpf.origin records
# the SHA-256 of both and the compiler. `build` compiles every program and records that. `check` fails if a source or an
# object is not the recorded one; with the recorded compiler it also compiles the source again and compares the bytes.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly CLANG=${CLANG:-clang}

compile() { # SOURCE OBJECT: the same bytes wherever the repository is
  # Debian keeps <asm/types.h>, which <linux/bpf.h> includes, in a folder of the architecture.
  (cd "$(dirname "$1")" && "$CLANG" -target bpfel -O2 -g -Wall -Wextra -Werror -fdebug-compilation-dir=. \
    -idirafter "/usr/include/$(uname -m)-linux-gnu" -c "$(basename "$1")" -o "$2")
}

# The compiler and the kernel headers, whose structures are in the debug information.
compiler() {
  local headers
  headers=$(echo '#include <linux/version.h>
    LINUX_VERSION_MAJOR.LINUX_VERSION_PATCHLEVEL.LINUX_VERSION_SUBLEVEL' | "$CLANG" -E -P - | tr -d ' ')
  echo "$("$CLANG" --version | head -n1), headers of Linux $headers"
}

sha256() { sha256sum <"$1" | cut -d' ' -f1; }

recorded() { sed -n "s/^$1: //p" "$2"; } # KEY FILE

build() {
  local source=$1 name=${1%.c}
  compile "$source" "$PWD/$name.o"
  {
    echo "source sha256: $(sha256 "$source")"
    echo "object sha256: $(sha256 "$name.o")"
    echo "compiler: $(compiler)"
  } >"$name.origin"
  echo "bpf: built $name.o"
}

check() {
  local source=$1 name=${1%.c} again
  if [ "$(recorded 'source sha256' "$name.origin")" != "$(sha256 "$source")" ] ||
    [ "$(recorded 'object sha256' "$name.origin")" != "$(sha256 "$name.o")" ]; then
    echo "bpf: $name.o is not built from the present $source: run scripts/bpf.sh build" >&2
    return 1
  fi
  if ! command -v "$CLANG" >/dev/null || [ "$(compiler)" != "$(recorded compiler "$name.origin")" ]; then
    echo "bpf: $name.o has the recorded hash; it is not compiled again without $(recorded compiler "$name.origin")"
    return 0
  fi
  again=$(mktemp)
  compile "$source" "$again"
  if ! cmp "$again" "$name.o"; then
    echo "bpf: the recorded compiler makes other bytes of $source: run scripts/bpf.sh build" >&2
    rm -f "$again"
    return 1
  fi
  rm -f "$again"
  echo "bpf: $name.o is what its source compiles to"
}

action=${1:-build}
case $action in
  build | check) ;;
  *)
    echo "usage: scripts/bpf.sh [build|check]" >&2
    exit 2
    ;;
esac

mapfile -t sources < <(git ls-files --cached --others --exclude-standard -- '*.bpf.c' 2>/dev/null ||
  find crates -name '*.bpf.c' | sort)
for source in "${sources[@]}"; do "$action" "$source"; done
