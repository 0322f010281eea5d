#!/usr/bin/env bash
# Makes a Rust compiler with a ready standard library for wasm32-wasip2 in DIR, from the packages
# of Debian 13, for machines where `rustup target add wasm32-wasip2` cannot be had.
#
#   toolchain.sh DIR     then: RUSTC=DIR/bin/rustc cargo build --release --target wasm32-wasip2
#
# Nothing is installed or compiled: the packages are unpacked below DIR and the compiler runs under
# Debian 13's own loader, so an older Debian is enough. cargo and the linkers come from the Rust
# toolchain of this machine. A finished DIR is used again. About 200 MB to fetch, 800 MB on disk.
# Where the packages come from: debian.sh.
set -euo pipefail
shopt -s inherit_errexit

HOST=x86_64-unknown-linux-gnu
HERE=$(cd "$(dirname "$0")" && pwd)
# What the compiler needs at run time, besides the LLVM that its own package names.
LIBRARIES=(libc6 libgcc-s1 libstdc++6 zlib1g libzstd1 libffi8 libxml2 libedit2 libtinfo6 liblzma5
  libicu76 libbsd0 libmd0 libz3-4)

die() {
  echo "guest toolchain: $1" >&2
  echo "guest toolchain: with rustup, 'rustup target add wasm32-wasip2' does without it" >&2
  exit 1
}

# shellcheck source=debian.sh
. "$HERE/debian.sh"

packages() {
  local std llvm
  std=$(dependency libstd-rust-dev '^libstd-rust-[0-9.]+$')
  llvm=$(dependency "$std" '^libllvm[0-9]+$')
  printf '%s\n' rustc "$std" libstd-rust-dev libstd-rust-dev-wasm32 "$llvm" "${LIBRARIES[@]}"
}

# A relative path to the loader, so that DIR may be moved.
write_compiler() {
  mkdir -p "$1/bin"
  cat > "$1/bin/rustc" <<'SH'
#!/bin/sh
root=$(dirname "$(readlink -f "$0")")/../root
exec "$root/usr/lib64/ld-linux-x86-64.so.2" --library-path "$root/usr/lib/x86_64-linux-gnu" \
  "$root/usr/bin/rustc" --sysroot "$root/usr" "$@"
SH
  chmod +x "$1/bin/rustc"
}

main() {
  [ $# -eq 1 ] || die "usage: toolchain.sh DIR"
  [ "$(uname -m)-$(uname -s)" = x86_64-Linux ] || die "it is for Linux on x86_64"
  local linkers dir
  linkers=$(rustc --print sysroot)/lib/rustlib/$HOST/bin
  [ -x "$linkers/wasm-component-ld" ] || die "no wasm-component-ld in $linkers"
  dir=$(mkdir -p "$1" && cd "$1" && pwd)
  exec 9> "$dir/.lock"
  flock 9 # two builds at once: the second waits, and finds the toolchain finished

  if [ ! -e "$dir/.done" ]; then
    unpack_packages "$dir" packages
    write_compiler "$dir"
  fi
  # rustc looks for its linkers here. Anew each time: this machine's Rust may have been updated.
  ln -sfn "$linkers" "$dir/root/usr/lib/rustlib/$HOST/bin"
  "$dir/bin/rustc" --version > "$dir/.done"
  echo "guest toolchain: $dir ($(cat "$dir/.done"))"
}

main "$@"
