#!/usr/bin/env bash
# Builds the tools of plugins/tools into plugins/tools/prebuilt, with a manifest.
#
#   build.sh                rebuild the committed components and their manifest
#   build.sh --check [DIR]  check the committed ones against their manifest, rebuild into DIR (else
#                           into a temporary folder), and compare bytes where compiler, cargo and
#                           linker are those of the manifest. With CAPSULE_TEST_REBUILT=DIR the
#                           tests of the host run on what was rebuilt.
#
# The compiler is this machine's own where it has the target wasm32-wasip2, else one made by
# toolchain.sh in CAPSULE_GUEST_TOOLCHAIN (by default below the user's cache folder).
set -euo pipefail
shopt -s inherit_errexit

TARGET=wasm32-wasip2
TOOLS=(hello read-file files-list files-read files-search files-write files-edit fetch fetch-post json table chat-driver)
COMMAND="cargo build --locked --release --target $TARGET"
HERE=$(cd "$(dirname "$0")" && pwd)
WORKSPACE=$(cd "$HERE/../../plugins/tools" && pwd)
PREBUILT=$WORKSPACE/prebuilt
BUILD=${CARGO_TARGET_DIR:-$WORKSPACE/target}
CRATES=${CARGO_HOME:-$HOME/.cargo}/registry/src

die() {
  echo "guests: $1" >&2
  exit 1
}

pick_compiler() {
  local cache=${CAPSULE_GUEST_TOOLCHAIN:-${XDG_CACHE_HOME:-$HOME/.cache}/capsule-guest-toolchain}
  if ls "$(rustc --print target-libdir --target "$TARGET")"/libstd-*.rlib > /dev/null 2>&1; then
    command -v rustc
  else
    "$HERE/toolchain.sh" "$cache" >&2
    echo "$cache/bin/rustc"
  fi
}

# Versions of the component linker and of the wasm linker below it, with its commit.
linker_version() {
  local bin lld
  bin=$("$1" --print sysroot)/lib/rustlib/$("$1" -vV | sed -n 's/^host: //p')/bin
  lld=$("$bin/gcc-ld/wasm-ld" --version | sed -n '1s/ (.* \([0-9a-f]*\))$/ \1/p')
  echo "$("$bin/wasm-component-ld" --version), $lld"
}

# The same bytes wherever sources and crates lie: no path of this machine may reach a panic message.
compile() {
  local flags source
  (cd "$WORKSPACE" && cargo fetch --locked --quiet)
  flags="--remap-path-prefix=$WORKSPACE=/tools"
  for source in "$CRATES"/*/; do
    flags+=$'\x1f'"--remap-path-prefix=${source%/}=/crates"
  done
  (cd "$WORKSPACE" && env -u RUSTFLAGS -u RUSTC_WRAPPER RUSTC="$1" CARGO_TARGET_DIR="$BUILD" \
    CARGO_ENCODED_RUSTFLAGS="$flags" $COMMAND)
}

# Copies the components into $1 and writes their manifest beside them.
collect() {
  local out=$1 rustc=$2 linker=$3 tool file between= cargo
  cargo=$(cargo --version)
  {
    printf '{\n  "files": ['
    for tool in "${TOOLS[@]}"; do
      file=$out/$tool.wasm
      install -m 644 "$BUILD/$TARGET/release/${tool//-/_}.wasm" "$file"
      grep -q 'capsule:tool' "$file" || die "$tool.wasm has no section capsule:tool"
      ! grep -q -F -e "$WORKSPACE" -e "$CRATES" "$file" || die "$tool.wasm holds a path of this machine"
      printf '%s\n    {\n' "$between"
      printf '      "file": "%s.wasm",\n' "$tool"
      printf '      "sha256": "%s",\n' "$(sha256sum < "$file" | cut -d ' ' -f 1)"
      printf '      "bytes": %d,\n' "$(stat -c %s "$file")"
      printf '      "rustc": "%s",\n      "cargo": "%s",\n' "$rustc" "$cargo"
      printf '      "linker": "%s",\n' "$linker"
      printf '      "target": "%s",\n      "command": "%s"\n    }' "$TARGET" "$COMMAND"
      between=,
    done
    printf '\n  ]\n}\n'
  } > "$out/manifest.json"
}

# The values of key $2 in manifest $1, one a line.
values() {
  sed -n "s/^ *\"$2\": \"\{0,1\}\(.*[^\",]\)\"\{0,1\},\{0,1\}$/\1/p" "$1"
}

check_committed() {
  local manifest=$PREBUILT/manifest.json
  [ "$(values "$manifest" file)" = "$(printf '%s.wasm\n' "${TOOLS[@]}")" ] ||
    die "the manifest does not list the tools ${TOOLS[*]}"
  paste -d ' ' <(values "$manifest" sha256) <(values "$manifest" file) | sed 's/ / */' |
    (cd "$PREBUILT" && sha256sum --quiet --check --strict) ||
    die "a committed component is not the one of its manifest; run build.sh"
}

compare() {
  local new=$1 key theirs ours tool
  for key in rustc cargo linker; do
    theirs=$(values "$PREBUILT/manifest.json" "$key" | sort -u)
    ours=$(values "$new/manifest.json" "$key" | sort -u)
    if [ "$theirs" != "$ours" ]; then
      echo "guests: built, bytes not compared: $key here is '$ours', of the committed ones '$theirs'"
      return
    fi
  done
  for tool in "${TOOLS[@]}"; do
    cmp "$PREBUILT/$tool.wasm" "$new/$tool.wasm" ||
      die "$tool.wasm is not what its sources give; run build.sh"
  done
  echo "guests: built, byte for byte the committed ones"
}

main() {
  local compiler rustc linker rebuilt
  case ${1:-} in
    "" | --check) ;;
    *) die "usage: build.sh [--check [DIR]]" ;;
  esac
  [ -z "${1:-}" ] || check_committed
  compiler=$(pick_compiler)
  rustc=$("$compiler" --version)
  linker=$(linker_version "$compiler")
  compile "$compiler"
  if [ -z "${1:-}" ]; then
    mkdir -p "$PREBUILT"
    collect "$PREBUILT" "$rustc" "$linker"
    echo "guests: wrote $PREBUILT"
  else
    rebuilt=${2:-}
    if [ -z "$rebuilt" ]; then
      TEMPORARY=$(mktemp -d)
      trap 'rm -rf "$TEMPORARY"' EXIT
      rebuilt=$TEMPORARY
    fi
    mkdir -p "$rebuilt"
    collect "$rebuilt" "$rustc" "$linker"
    compare "$rebuilt"
  fi
}

main "$@"
