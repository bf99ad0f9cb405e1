#!/usr/bin/env bash
# Fetches Mooncake Store (master, client and Python package) from its wheel on PyPI.
#
# Why: the tests of the Mooncake store and its demo run a real cluster on this machine. Vitrove itself
# needs none of it to build. An environment of its own, so that nothing of it meets other packages.
# The version is pinned by hash, and only the ready-made wheel is taken: no compiler runs.
# Leaves: build/mooncake-venv. Again at no cost unless the pin, this script or Debian's Python changed.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup_lib.sh"

venv=$BUILD/mooncake-venv
requirements=$SCRIPTS/requirements-mooncake.txt
python=$(system_python)
key=$(key_of "$python" "$("$python" --version)" "$requirements" "${BASH_SOURCE[0]}")

ready() { up_to_date "$venv/.packages" "$key" "$venv/bin/python" "$venv/bin/mooncake_master"; }

if ready; then
    say "up to date"
    exit 0
fi
lock mooncake
if ready; then
    say "up to date"
    exit 0
fi

say "installing the wheel of $(basename "$requirements") into build/mooncake-venv"
rm -rf "$venv"
"$python" -m venv "$venv" >/dev/null ||
    die "$python cannot make virtual environments; on Debian: apt-get install python3-venv"
"$venv/bin/python" -m pip install --quiet --no-deps --require-hashes --only-binary :all: -r "$requirements" ||
    die "pip could not install $(basename "$requirements") (its own words are above)"
"$venv/bin/python" -c 'import mooncake.store' ||
    die "the wheel does not load; on Debian: apt-get install libibverbs1 libcurl4 libnuma1"
stamp "$venv/.packages" "$key"
say "ready"
