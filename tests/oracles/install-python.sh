#!/bin/sh
# Makes a Python environment with the official SDK, pinned, below a directory.
#
# usage: install-python.sh DIR
#
# Does nothing where it is there already. Needs python3 with venv and pip, and any index that has the packages.
set -eu

dir=${1:?usage: install-python.sh DIR}
here=$(cd "$(dirname "$0")" && pwd)
venv=$dir/oracle-venv
done=$venv/requirements.txt

if cmp -s "$here/python/requirements.txt" "$done"; then
    echo "the SDK is installed: $venv"
    exit 0
fi
python3 -m venv --clear "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input -r "$here/python/requirements.txt"
# Last, so that an installation that broke off is made again.
cp "$here/python/requirements.txt" "$done"
echo "the SDK is installed: $venv"
