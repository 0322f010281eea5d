#!/usr/bin/env bash
# Builds the tools in JavaScript, Python and C that the tests run, by the commands of docs/guests.md, word for word.
#
#   languages.sh DIR     the components are then in DIR/guests, their builders in DIR/guest-*
#
# Installs the builders, pinned, where they are not there. Does nothing where the components are those of these sources, this page and these
# builders already. The commands run in a copy of the sources, where what the first block of the page's section installs has been installed.
# Needs npm, python3 with venv and pip, apt-get, and Rust for its linker. Linux on x86_64.
set -euo pipefail
shopt -s inherit_errexit

HERE=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
PAGE=$ROOT/docs/guests.md
declare -A SECTIONS=([javascript]=JavaScript [python]=Python [c]=C)

die() {
  echo "guests in other languages: $1" >&2
  exit 1
}

# The shell block number $2 of the page's section $1.
block() {
  awk -v title="## $1" -v wanted="$2" '
    /^## /              { found = $0 == title }
    found && /^```/     { inside = !inside && /^```sh/; count += inside; next }
    found && inside && count == wanted' "$PAGE"
}

# What the components are made from: sources, page and builders.
ingredients() {
  local dir=$1
  (cd "$ROOT" && find tests/guests/{javascript,python,c} wit -type f -not -path '*/__pycache__/*' -print0 | sort -z |
    xargs -0 sha256sum docs/guests.md tests/guests/languages.sh)
  cat "$dir/guest-c/.done"
  rustc --version
}

# The page must install what the pins of the tests install.
check_pins() {
  local jco python
  jco=$(sed -n 's/.*"@bytecodealliance\/jco": "\(.*\)".*/@bytecodealliance\/jco@\1/p' "$HERE/javascript/package.json")
  python=$(grep '^componentize-py==' "$HERE/python/requirements.txt")
  block JavaScript 1 | grep -qF -- "$jco" || die "the page installs another version than $jco"
  block Python 1 | grep -qF -- "$python" || die "the page installs another version than $python"
}

# Runs the page's commands for language $1 in folder $2, with the builders below $3.
build() {
  local language=$1 folder=$2 dir=$3 commands
  commands=$(block "${SECTIONS[$language]}" 2)
  [ -n "$commands" ] || die "docs/guests.md has no second block in its section ${SECTIONS[$language]}"
  cp -r "$HERE/$language/." "$folder"
  ln -s "$dir/guest-javascript/node_modules" "$folder/node_modules"
  ln -s "$dir/guest-python" "$folder/venv"
  echo "$commands"
  (cd "$folder" && CAPSULE="$ROOT" PATH="$dir/guest-c/bin:$PATH" PYTHONDONTWRITEBYTECODE=1 bash -euo pipefail -c "$commands")
}

main() {
  [ $# -eq 1 ] || die "usage: languages.sh DIR"
  local dir wanted language
  dir=$(mkdir -p "$1" && cd "$1" && pwd)
  "$HERE/install-javascript.sh" "$dir"
  "$HERE/install-python.sh" "$dir"
  "$HERE/install-c.sh" "$dir"
  wanted=$(ingredients "$dir")
  if [ "$(cat "$dir/guests/built" 2> /dev/null)" != "$wanted" ]; then
    check_pins
    TEMPORARY=$(mktemp -d)
    trap 'rm -rf "$TEMPORARY"' EXIT
    rm -rf "$dir/guests" && mkdir -p "$dir/guests"
    for language in javascript python c; do
      mkdir "$TEMPORARY/$language"
      build "$language" "$TEMPORARY/$language" "$dir"
      cp "$TEMPORARY/$language"/*.wasm "$dir/guests"
    done
    # Last, so that a build that broke off is made again.
    echo "$wanted" > "$dir/guests/built"
  fi
  echo "guests in other languages: $dir/guests"
}

main "$@"
