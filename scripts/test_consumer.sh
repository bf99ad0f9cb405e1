#!/usr/bin/env bash
# test_consumer.sh BUILD: installs the library of BUILD into a folder of its own, then configures,
# builds and runs tests/consumer against the installed copy only, as a user's project would. What
# was built with Gloo must bring vitrove::gloo along.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$1
work=$PWD/build/consumer
rm -rf "$work"
cmake --install "$build" --prefix "$work/prefix" >/dev/null
gloo=OFF
if grep -q '^GLOO_LIBRARY:[A-Z]*=/' "$build/CMakeCache.txt"; then gloo=ON; fi
cmake -S tests/consumer -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_PREFIX_PATH="$work/prefix" -DCONSUMER_WITH_GLOO=$gloo
cmake --build "$work/build"
"$work/build/consumer"
if [ "$gloo" = ON ]; then
  mkdir "$work/group"
  "$work/build/ranks" "$work/group"
fi
