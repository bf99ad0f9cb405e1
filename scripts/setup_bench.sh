#!/usr/bin/env bash
# Makes the Python environment of the other side of `./run bench stores`: redis-py with hiredis.
#
# Why: only that benchmark needs it. Versions are pinned by hash, and only ready-made wheels are taken.
# Leaves: build/bench-venv. Again at no cost unless the pins, this script or Debian's Python changed.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup_lib.sh"

venv=$BUILD/bench-venv
requirements=$SCRIPTS/requirements-bench.txt
python=$(system_python)
key=$(key_of "$python" "$("$python" --version)" "$requirements" "${BASH_SOURCE[0]}")

ready() { up_to_date "$venv/.packages" "$key" "$venv/bin/python"; }

ready && exit 0
lock bench
ready && exit 0

say "installing the packages of $(basename "$requirements") into build/bench-venv"
rm -rf "$venv"
"$python" -m venv "$venv" >/dev/null ||
    die "$python cannot make virtual environments; on Debian: apt-get install python3-venv"
"$venv/bin/python" -m pip install --quiet --no-deps --require-hashes --only-binary :all: -r "$requirements" ||
    die "pip could not install $(basename "$requirements") (its own words are above)"
stamp "$venv/.packages" "$key"
say "ready"
