#!/bin/sh
# Installs the builder of tools in Python, pinned, in DIR/guest-python.
#
# usage: install-python.sh DIR
#
# Does nothing where it is there already. Needs python3 with venv and pip, and any index that has the package. About 75 MB on disk.
set -eu

dir=${1:?usage: install-python.sh DIR}/guest-python
pins=$(cd "$(dirname "$0")" && pwd)/python/requirements.txt

if ! cmp -s "$pins" "$dir/requirements.txt"; then
    python3 -m venv --clear "$dir"
    "$dir/bin/python" -m pip install --quiet --disable-pip-version-check --no-input -r "$pins"
    # Last, so that an installation that broke off is made again.
    cp "$pins" "$dir/requirements.txt"
fi
echo "guests in Python: $dir"
