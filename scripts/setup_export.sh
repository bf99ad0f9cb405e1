#!/usr/bin/env bash
# Makes a Python with PyTorch for CPUs, transformers and ONNX Runtime: what vitrove-export is tested with.
#
# Why like this: PyTorch's wheel on PyPI brings 4 GB of CUDA, and Debian 12 has one that is too old. That of
# Debian 13 and all that it needs are 214 MB. apt fetches and verifies them with lists of its own; they are
# unpacked and not installed. What only PyPI has is pinned by hash.
# Leaves: build/export-python, with a program `python` in it. Again at no cost unless the pins or this script
# changed.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup_lib.sh"

TARGET=$BUILD/export-python
REQUIREMENTS=$SCRIPTS/requirements-export.txt
PACKAGES=(python3-torch python3-numpy python3-onnx python3-yaml python3-requests python3-tqdm python3-regex
    python3-packaging python3-filelock python3-protobuf)

key=$(key_of "$REQUIREMENTS" "${BASH_SOURCE[0]}")
is_ready() { up_to_date "$TARGET/.stamp" "$key" "$TARGET/python" || [ -n "${VITROVE_SKIP_APT:-}" ]; }
if is_ready || { lock export-python && is_ready; }; then
    say "up to date"
    exit 0
fi
work=$(mktemp -d "$BUILD/.export-python.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Where this system has its packages from.
repository() {
    apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 'Created-By: Packages' | sed -n 1p
}
as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)
place=$(repository)
[ -n "$place" ] || { "${as_root[@]}" env -u TMPDIR apt-get -qq update && place=$(repository); }
[ -n "$place" ] || die "apt does not say where it has Debian's packages from"

mkdir -p "$work"/{state/lists/partial,cache/archives/partial,root}
: >"$work/status"
echo "deb [arch=amd64] $place trixie main" >"$work/sources.list"
# As the user who calls: apt's own one may not write here. Nothing counts as installed.
apt13() {
    apt-get -qq -o Dir::State="$work/state" -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" \
        -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=- -o APT::Sandbox::User=root \
        -o APT::Install-Recommends=false -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
        -o Acquire::Languages=none "$@"
}
say "fetching PyTorch and what it needs out of Debian 13 (214 MB)"
apt13 update || die "apt-get could not read Debian 13's lists (its own words are above)"
apt13 install --yes --download-only "${PACKAGES[@]}" >/dev/null ||
    die "apt-get could not fetch Debian 13's packages (its own words are above)"
for package in "$work"/cache/archives/*.deb; do dpkg-deb --extract "$package" "$work/root"; done

say "fetching what $(basename "$REQUIREMENTS") pins"
"$VENV/bin/python" -m pip install --quiet --no-deps --require-hashes --only-binary :all: --target "$work/root/site" \
    --python-version 313 --implementation cp --abi cp313 --abi abi3 --abi none --platform manylinux_2_28_x86_64 \
    --platform manylinux_2_27_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
    -r "$REQUIREMENTS" || die "pip could not fetch $(basename "$REQUIREMENTS") (its own words are above)"

# Its own loader and libraries, since those of this system are older.
cat >"$work/root/python" <<'END'
#!/bin/sh
root=$(cd "$(dirname "$0")" && pwd)
export PYTHONHOME="$root/usr" PYTHONPATH="$root/site" PYTHONDONTWRITEBYTECODE=1
libraries=$root/usr/lib/x86_64-linux-gnu
exec "$root/usr/lib64/ld-linux-x86-64.so.2" --library-path "$libraries:$libraries/blas:$libraries/lapack:$root/usr/lib" \
    "$root/usr/bin/python3" "$@"
END
chmod +x "$work/root/python"
"$work/root/python" -c "import torch, onnx, onnxruntime, transformers" || die "Debian 13's PyTorch does not load here"
rm -rf "$TARGET"
mv "$work/root" "$TARGET"
stamp "$TARGET/.stamp" "$key"
say "ready"
