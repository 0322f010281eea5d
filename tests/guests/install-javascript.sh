#!/bin/sh
# Installs the builder of tools in JavaScript, pinned, in DIR/guest-javascript.
#
# usage: install-javascript.sh DIR
#
# Does nothing where it is there already. Needs npm and any registry that has the packages. About 350 MB on disk.
set -eu

dir=${1:?usage: install-javascript.sh DIR}/guest-javascript
pins=$(cd "$(dirname "$0")" && pwd)/javascript
installed=$dir/installed

wanted=$(cat "$pins/package.json" "$pins/package-lock.json" | sha256sum)
if [ ! -f "$installed" ] || [ "$(cat "$installed")" != "$wanted" ]; then
    mkdir -p "$dir"
    rm -f "$installed"
    cp "$pins/package.json" "$pins/package-lock.json" "$dir/"
    # Not `npm ci`: it refuses a lock that leaves out an optional package of another system.
    npm install --prefix "$dir" --ignore-scripts --no-audit --no-fund --no-save --loglevel error
    # Last, so that an installation that broke off is made again.
    echo "$wanted" >"$installed"
fi
echo "guests in JavaScript: $dir"
