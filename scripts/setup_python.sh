#!/usr/bin/env bash
# Makes the Python environment that the other scripts and the Python tests run in.
#
#   scripts/setup_python.sh          build/venv with everything in requirements.txt
#   scripts/setup_python.sh --bare   build/venv with nothing but pip (enough to fetch packages)
#
# Why: Debian's Python must stay as it is, and the versions must be the same for everybody.
# Packages are pinned by version and hash, and only ready-made wheels are taken: no compiler runs.
# Leaves: build/venv. Again at no cost unless requirements.txt, this script or Debian's Python changed.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup_lib.sh"

bare=false
case "${1:-}" in
    '') ;;
    --bare) bare=true ;;
    *) die "unknown argument '$1' (only --bare)" ;;
esac

python=$(system_python)
version=$("$python" --version)
base_key=$(key_of "$python" "$version")
full_key=$(key_of "$base_key" "$SCRIPTS/requirements.txt" "${BASH_SOURCE[0]}")

ready() {
    up_to_date "$VENV/.base" "$base_key" "$VENV/bin/python" || return 1
    $bare || up_to_date "$VENV/.packages" "$full_key"
}

if ready; then
    say "up to date"
    exit 0
fi
lock python
if ready; then
    say "up to date"
    exit 0
fi

if ! up_to_date "$VENV/.base" "$base_key" "$VENV/bin/python"; then
    say "making build/venv from $python ($version)"
    rm -rf "$VENV"
    "$python" -m venv "$VENV" >/dev/null ||
        die "$python cannot make virtual environments; on Debian: apt-get install python3-venv"
    stamp "$VENV/.base" "$base_key"
fi
if $bare; then
    say "ready, without packages"
    exit 0
fi

say "installing the packages of scripts/requirements.txt"
"$VENV/bin/python" -m pip install --quiet --require-hashes --only-binary :all: -r "$SCRIPTS/requirements.txt" ||
    die "pip could not install scripts/requirements.txt (its own words are above)"
stamp "$VENV/.packages" "$full_key"
say "ready"
