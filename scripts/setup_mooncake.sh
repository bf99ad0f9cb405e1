#!/usr/bin/env bash
# Fetches Mooncake Store (master, client and Python package) from its wheel on PyPI.
#
# Why: the tests of the Mooncake store and its demo run a real cluster on this machine. Vitrove itself
# needs none of it to build. An environment of its own, so that nothing of it meets other packages.
# The version is pinned by hash, and only the ready-made wheel is taken: no compiler runs.
# Leaves: build/mooncake-venv. Again at no cost unless the pin, this script or Debian's Python changed.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup_lib.sh"

pinned_venv mooncake mooncake_master mooncake.store \
    "the wheel does not load; on Debian: apt-get install libibverbs1 libcurl4 libnuma1"
