#!/usr/bin/env bash
# Makes the Python environment of the other side of `./run bench controller`: SGLang's cache controller
# from its wheel on PyPI, without what it depends on, over the system's PyTorch (CPU).
#
# Why: only that benchmark needs it. The version is pinned by hash, and only the ready-made wheel is taken.
# Leaves: build/sglang-venv. Again at no cost unless the pin, this script or Debian's Python changed.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup_lib.sh"

venv=$BUILD/sglang-venv
requirements=$SCRIPTS/requirements-sglang.txt
python=$(system_python)
key=$(key_of "$python" "$("$python" --version)" "$requirements" "${BASH_SOURCE[0]}")

ready() { up_to_date "$venv/.packages" "$key" "$venv/bin/python"; }

ready && exit 0
lock sglang
ready && exit 0

say "installing the wheel of $(basename "$requirements") into build/sglang-venv"
rm -rf "$venv"
"$python" -m venv --system-site-packages "$venv" >/dev/null ||
    die "$python cannot make virtual environments; on Debian: apt-get install python3-venv"
"$venv/bin/python" -m pip install --quiet --no-deps --require-hashes --only-binary :all: -r "$requirements" ||
    die "pip could not install $(basename "$requirements") (its own words are above)"
"$venv/bin/python" -c 'import torch' ||
    die "$python has no PyTorch; on Debian: apt-get install python3-torch"
stamp "$venv/.packages" "$key"
say "ready"
