#!/usr/bin/env bash
# Makes the Python environment of scripts/make_parity_fixtures.py and tests/data/make_tower_fixtures.py: PyTorch,
# transformers and ONNX.
#
# Why: only who makes these fixtures anew needs it; tests do not. Versions are pinned by hash, and only
# ready-made wheels are taken. They are 3 GB to fetch and 7 GB on disk.
# Leaves: build/transformers-venv. Again at no cost unless the pins, this script or Debian's Python changed.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup_lib.sh"

pinned_venv transformers python transformers "the wheels do not load"
