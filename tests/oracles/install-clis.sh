#!/bin/sh
# Installs the CLIs that the tests drive, pinned and checked, below a directory of their own.
#
# usage: install-clis.sh DIR
#
# Does nothing where they are there already. Needs npm (any registry that has the packages) and Linux on x86_64.
set -eu

dir=${1:?usage: install-clis.sh DIR}
version=2.1.332
sum=a2df1f41bb00250992926420d0063f89b127cb81abdd284dbefb80c50ff1d026
package=@anthropic-ai/claude-code-linux-x64
binary=$dir/claude/node_modules/$package/claude

check() {
    echo "$sum  $binary" | sha256sum --check --status 2>/dev/null
}

if check; then
    echo "claude $version is installed: $binary"
    exit 0
fi
case "$(uname -s)-$(uname -m)" in
Linux-x86_64) ;;
*)
    echo "no pinned CLI for $(uname -s) on $(uname -m)" >&2
    exit 1
    ;;
esac
# The platform package itself: the wrapper package takes an older version on older node versions without a word.
mkdir -p "$dir/claude"
npm install --prefix "$dir/claude" --ignore-scripts --no-audit --no-fund --no-save "$package@$version"
if ! check; then
    echo "$binary is not the file it should be (sha256 $sum)" >&2
    exit 1
fi
echo "claude $version is installed: $binary"
