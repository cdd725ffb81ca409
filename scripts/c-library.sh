#!/usr/bin/env bash
# Installs the C library of the sketches:  scripts/c-library.sh PREFIX [PROFILE]
#
# PREFIX/include/thalweg_sketch.h, PREFIX/lib/libthalweg_sketch.a and .so, PREFIX/lib/pkgconfig/thalweg_sketch.pc. PROFILE is
# release (the default) or dev. The shared library is linked here from the static one, because its symbols have versions.
# THALWEG_C_ARCHIVE names a static library that is built already.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
  echo "usage: scripts/c-library.sh PREFIX [release|dev]" >&2
  exit 2
fi
readonly PREFIX=$1 PROFILE=${2:-release} CRATE=crates/thalweg-c
readonly TARGET=${CARGO_TARGET_DIR:-target}
case $PROFILE in
  release) folder=release ;;
  dev) folder=debug ;;
  *)
    echo "scripts/c-library.sh: the profile is release or dev, not $PROFILE" >&2
    exit 2
    ;;
esac

archive=${THALWEG_C_ARCHIVE:-}
if [ -z "$archive" ]; then
  cargo build --quiet --profile "$PROFILE" -p thalweg-c
  archive=$TARGET/$folder/libthalweg_c.a
fi
version=$(sed -n '/^\[workspace.package\]/,/^\[/ s/^version = "\(.*\)"/\1/p' Cargo.toml)
# The number of the interface: the version of the symbols.
interface=$(sed -n 's/^THALWEG_\([0-9]*\) {/\1/p' $CRATE/thalweg_sketch.map | tail -n1)
system_libraries="-lpthread -ldl -lm"

mkdir -p "$PREFIX/include" "$PREFIX/lib/pkgconfig"
install -m 644 $CRATE/include/thalweg_sketch.h "$PREFIX/include/"
install -m 644 "$archive" "$PREFIX/lib/libthalweg_sketch.a"
shared=libthalweg_sketch.so
# shellcheck disable=SC2086 # several options
${CC:-cc} -shared -o "$PREFIX/lib/$shared.$interface.$version" \
  -Wl,-soname,$shared."$interface" -Wl,--version-script=$CRATE/thalweg_sketch.map \
  -Wl,--whole-archive "$archive" -Wl,--no-whole-archive \
  -Wl,--gc-sections -Wl,-z,relro,-z,now -Wl,-z,defs -lgcc_s $system_libraries -lc
ln -sf "$shared.$interface.$version" "$PREFIX/lib/$shared.$interface"
ln -sf "$shared.$interface" "$PREFIX/lib/$shared"
prefix=$(cd "$PREFIX" && pwd)
cat >"$PREFIX/lib/pkgconfig/thalweg_sketch.pc" <<PC
prefix=$prefix
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: thalweg_sketch
Description: Sketches with NitroSketch sampling
Version: $version
Cflags: -I\${includedir}
Libs: -L\${libdir} -lthalweg_sketch
Libs.private: -lgcc_s $system_libraries
PC
echo "installed libthalweg_sketch $version (interface $interface) in $prefix"
