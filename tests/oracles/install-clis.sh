#!/bin/sh
# Installs the CLIs that the tests drive, pinned and checked, below a directory of their own.
#
# usage: install-clis.sh DIR
#
# Does nothing where they are there already. Needs npm (any registry that has the packages) and Linux on x86_64.
set -eu

dir=${1:?usage: install-clis.sh DIR}

# install NAME VERSION SPEC BINARY SUM
#
# Installs the package SPEC below DIR/NAME; its BINARY must have the sha256 SUM.
install() {
    binary=$dir/$1/node_modules/$4
    if ! echo "$5  $binary" | sha256sum --check --status 2>/dev/null; then
        case "$(uname -s)-$(uname -m)" in
        Linux-x86_64) ;;
        *)
            echo "no pinned CLI for $(uname -s) on $(uname -m)" >&2
            exit 1
            ;;
        esac
        mkdir -p "$dir/$1"
        npm install --prefix "$dir/$1" --ignore-scripts --no-audit --no-fund --no-save "$3"
        if ! echo "$5  $binary" | sha256sum --check --status; then
            echo "$binary is not the file it should be (sha256 $5)" >&2
            exit 1
        fi
    fi
    echo "$1 $2 is installed: $binary"
}

# The platform packages themselves: the wrapper packages start the binary as a child of theirs, and the one of claude takes an older
# version on older node versions without a word.
install claude 2.1.332 "@anthropic-ai/claude-code-linux-x64@2.1.332" \
    "@anthropic-ai/claude-code-linux-x64/claude" \
    a2df1f41bb00250992926420d0063f89b127cb81abdd284dbefb80c50ff1d026
install codex 0.171.0 "@openai/codex-linux-x64@npm:@openai/codex@0.171.0-linux-x64" \
    "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex" \
    b76a027d6b210f9a8da7aaf321dd235c700f0ef7a794d4a5314b9af6c134f0f0
