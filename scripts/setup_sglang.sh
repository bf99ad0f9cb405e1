#!/usr/bin/env bash
# Makes the Python environment of the other side of `./run bench controller`: SGLang's cache controller
# from its wheel on PyPI, without what it depends on, over the system's PyTorch (CPU).
#
# Why: only that benchmark needs it. The version is pinned by hash, and only the ready-made wheel is taken.
# Leaves: build/sglang-venv. Again at no cost unless the pin, this script or Debian's Python changed.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup_lib.sh"

pinned_venv sglang python torch "the system has no PyTorch; on Debian: apt-get install python3-torch" \
    --system-site-packages
