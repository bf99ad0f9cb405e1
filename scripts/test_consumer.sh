#!/usr/bin/env bash
# test_consumer.sh BUILD: installs the library of BUILD into a folder of its own, then configures,
# builds and runs tests/consumer against the installed copy only, as a user's project would.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$1
work=$PWD/build/consumer
rm -rf "$work"
cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S tests/consumer -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_PREFIX_PATH="$work/prefix"
cmake --build "$work/build"
"$work/build/consumer"
