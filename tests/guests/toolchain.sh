#!/usr/bin/env bash
# Makes a Rust compiler with a ready standard library for wasm32-wasip2 in DIR, from the packages
# of Debian 13, for machines where `rustup target add wasm32-wasip2` cannot be had.
#
#   toolchain.sh DIR     then: RUSTC=DIR/bin/rustc cargo build --release --target wasm32-wasip2
#
# Nothing is installed or compiled: the packages are unpacked below DIR and the compiler runs under
# Debian 13's own loader, so an older Debian is enough. cargo and the linkers come from the Rust
# toolchain of this machine. A finished DIR is used again. About 200 MB to fetch, 800 MB on disk.
#
# The packages come from the mirror that this machine's apt is set up with; CAPSULE_DEBIAN_MIRROR
# names another. apt checks their signatures.
set -euo pipefail
shopt -s inherit_errexit

HOST=x86_64-unknown-linux-gnu
SUITE=trixie
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
# What the compiler needs at run time, besides the LLVM that its own package names.
LIBRARIES=(libc6 libgcc-s1 libstdc++6 zlib1g libzstd1 libffi8 libxml2 libedit2 libtinfo6 liblzma5
  libicu76 libbsd0 libmd0 libz3-4)

die() {
  echo "guest toolchain: $1" >&2
  echo "guest toolchain: with rustup, 'rustup target add wasm32-wasip2' does without it" >&2
  exit 1
}

# The mirror of this machine's own Debian release, from either format of apt's source lists.
find_mirror() {
  if [ -n "${CAPSULE_DEBIAN_MIRROR:-}" ]; then
    echo "$CAPSULE_DEBIAN_MIRROR"
    return
  fi
  local release
  release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  # Formats: "URIs: U" before "Suites: R ..." in .sources, "deb [options] U R ..." in .list.
  find /etc/apt -name '*.sources' -exec cat {} + -o -name '*.list' -exec cat {} + | awk -v release="$release" '
    /^URIs:/   { uri = $2 }
    /^Suites:/ { for (i = 2; i <= NF; i++) if ($i == release && !found) found = uri }
    /^deb /    { sub(/\[[^]]*\] */, ""); if ($3 == release && !found) found = $2 }
    END        { print found }'
}

# An apt of its own below $1, which neither reads nor changes the system's package state.
make_apt() {
  local apt=$1 mirror=$2
  mkdir -p "$apt"/{lists/partial,cache/archives/partial,state,deb}
  : > "$apt/state/status"
  echo "deb [signed-by=$KEYRING] $mirror $SUITE main" > "$apt/sources.list"
  cat > "$apt/apt.conf" <<CONF
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State "$apt/state";
Dir::State::lists "$apt/lists";
Dir::State::status "$apt/state/status";
Dir::Cache "$apt/cache";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
CONF
}

# The one dependency of package $1 whose name matches $2.
dependency() {
  apt-cache depends "$1" | awk -v pattern="$2" '$2 ~ pattern { name = $2 } END { print name }'
}

fetch_packages() {
  local apt=$1 std llvm
  export APT_CONFIG=$apt/apt.conf
  apt-get update -qq
  std=$(dependency libstd-rust-dev '^libstd-rust-[0-9.]+$')
  llvm=$(dependency "$std" '^libllvm[0-9]+$')
  (cd "$apt/deb" && apt-get download -qq rustc "$std" libstd-rust-dev libstd-rust-dev-wasm32 \
    "$llvm" "${LIBRARIES[@]}")
  unset APT_CONFIG
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
  local linkers dir mirror
  linkers=$(rustc --print sysroot)/lib/rustlib/$HOST/bin
  [ -x "$linkers/wasm-component-ld" ] || die "no wasm-component-ld in $linkers"
  dir=$(mkdir -p "$1" && cd "$1" && pwd)
  exec 9> "$dir/.lock"
  flock 9 # two builds at once: the second waits, and finds the toolchain finished

  if [ ! -e "$dir/.done" ]; then
    command -v apt-get > /dev/null || die "it needs apt-get"
    [ -e "$KEYRING" ] || die "it needs Debian's archive keys ($KEYRING)"
    mirror=$(find_mirror)
    [ -n "$mirror" ] || die "no Debian mirror in apt's source lists; CAPSULE_DEBIAN_MIRROR names one"
    rm -rf "$dir/apt" "$dir/root" && mkdir -p "$dir/root"
    make_apt "$dir/apt" "$mirror"
    fetch_packages "$dir/apt"
    (cd "$dir/apt/deb" && sha256sum ./*.deb) > "$dir/packages.sha256"
    for package in "$dir"/apt/deb/*.deb; do dpkg -x "$package" "$dir/root"; done
    rm -rf "$dir/apt" "$dir/root/usr/share"
    write_compiler "$dir"
  fi
  # rustc looks for its linkers here. Anew each time: this machine's Rust may have been updated.
  ln -sfn "$linkers" "$dir/root/usr/lib/rustlib/$HOST/bin"
  "$dir/bin/rustc" --version > "$dir/.done"
  echo "guest toolchain: $dir ($(cat "$dir/.done"))"
}

main "$@"
