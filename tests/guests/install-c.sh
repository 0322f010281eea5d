#!/usr/bin/env bash
# Makes a C compiler for WebAssembly, clang with wasi-libc, in DIR/guest-c from the packages of Debian 13, for machines that do not have
# those packages themselves. Does nothing where it is there already. Where the packages come from: debian.sh.
#
#   install-c.sh DIR     then: PATH=DIR/guest-c/bin:$PATH clang-19 --target=wasm32-wasip2 tool.c -o tool.wasm
#
# Nothing is installed. The linker is that of this machine's Rust toolchain. About 90 MB to fetch, 350 MB on disk. Linux on x86_64.
set -euo pipefail
shopt -s inherit_errexit

HERE=$(cd "$(dirname "$0")" && pwd)
# What the compiler needs at run time, besides the LLVM that its own package names.
LIBRARIES=(libc6 libgcc-s1 libstdc++6 zlib1g libzstd1 libffi8 libxml2 libedit2 libtinfo6 liblzma5
  libicu76 libbsd0 libmd0 libz3-4)

die() {
  echo "guests in C: $1" >&2
  exit 1
}

# shellcheck source=debian.sh
. "$HERE/debian.sh"

packages() {
  local llvm cpp
  llvm=$(dependency clang-19 '^libllvm[0-9]+$')
  cpp=$(dependency clang-19 '^libclang-cpp[0-9]+$')
  printf '%s\n' clang-19 libclang-common-19-dev libclang-rt-19-dev-wasm32 wasi-libc "$llvm" "$cpp" "${LIBRARIES[@]}"
}

# Paths relative to the wrapper, so that DIR may be moved. The compiler starts itself again to compile (-cc1), by the name that it was
# called by; it does not find its own headers, since it runs under a loader; and a --sysroot given counts for less than this one.
write_compiler() {
  mkdir -p "$1/bin"
  cat > "$1/bin/clang-19" <<'SH'
#!/bin/sh
program=$(readlink -f "$0")
root=$(dirname "$program")/../root
case ${1:-} in
-cc1*) ;;
*) set -- -no-canonical-prefixes -resource-dir "$root/usr/lib/llvm-19/lib/clang/19" "$@" --sysroot="$root/usr" ;;
esac
exec "$root/usr/lib64/ld-linux-x86-64.so.2" --argv0 "$program" --library-path "$root/usr/lib/x86_64-linux-gnu" \
  "$root/usr/lib/llvm-19/bin/clang" "$@"
SH
  chmod +x "$1/bin/clang-19"
}

main() {
  [ $# -eq 1 ] || die "usage: install-c.sh DIR"
  [ "$(uname -m)-$(uname -s)" = x86_64-Linux ] || die "it is for Linux on x86_64"
  local dir
  dir=$(mkdir -p "$1/guest-c" && cd "$1/guest-c" && pwd)
  exec 9> "$dir/.lock"
  flock 9
  if [ ! -e "$dir/.done" ]; then
    unpack_packages "$dir" packages
    write_compiler "$dir"
    # Last, so that an installation that broke off is made again.
    "$dir/bin/clang-19" --version | sed -n 1p > "$dir/.done"
  fi
  echo "guests in C: $dir ($(cat "$dir/.done"))"
}

main "$@"
