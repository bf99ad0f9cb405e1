#!/usr/bin/env bash
# Makes the Python environment of the other side of `./run bench stores`: redis-py with hiredis.
#
# Why: only that benchmark needs it. Versions are pinned by hash, and only ready-made wheels are taken.
# Leaves: build/bench-venv. Again at no cost unless the pins, this script or Debian's Python changed.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup_lib.sh"

pinned_venv bench python redis "the wheels do not load"
