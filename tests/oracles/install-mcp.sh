#!/bin/sh
# Installs the judges of our MCP server, pinned, below a directory of their own: the conformance suite and the inspector with the Node that
# they need, and the official Python SDK in both major versions.
#
# usage: install-mcp.sh DIR
#
# Does nothing where they are there already. Needs npm, python3 with venv and pip, any registry that has the packages, and Linux on x86_64.
set -eu

dir=${1:?usage: install-mcp.sh DIR}/mcp
pins=$(cd "$(dirname "$0")" && pwd)/mcp
installed=$dir/installed

wanted=$(cat "$pins/package-lock.json" "$pins/requirements-1.txt" "$pins/requirements-2.txt" | sha256sum)
if [ -f "$installed" ] && [ "$(cat "$installed")" = "$wanted" ]; then
    echo "the judges of MCP are installed: $dir"
    exit 0
fi
case "$(uname -s)-$(uname -m)" in
Linux-x86_64) ;;
*)
    echo "no pinned Node for $(uname -s) on $(uname -m)" >&2
    exit 1
    ;;
esac
mkdir -p "$dir"
rm -f "$installed"
cp "$pins/package.json" "$pins/package-lock.json" "$dir/"
# Quiet about the Node that installs, which is not the one that runs them. Not `npm ci`: it refuses a lock that leaves out an optional
# package of another system.
npm install --prefix "$dir" --ignore-scripts --no-audit --no-fund --no-save --loglevel error
for major in 1 2; do
    python3 -m venv --clear "$dir/python-$major"
    "$dir/python-$major/bin/python" -m pip install --quiet --disable-pip-version-check --no-input -r "$pins/requirements-$major.txt"
done
# Last, so that an installation that broke off is made again.
echo "$wanted" >"$installed"
echo "the judges of MCP are installed: $dir"
