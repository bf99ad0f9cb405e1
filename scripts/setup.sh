#!/usr/bin/env bash
# Gets a fresh Debian 12 ready for Vitrove.
#
#   scripts/setup.sh build    compilers and libraries (apt-packages.txt), and ONNX Runtime
#   scripts/setup.sh sample   Python environment, Mooncake, sample model, tiny test model, pictures, trace
#   scripts/setup.sh tests    what the tests need on top: promtool
#   scripts/setup.sh more     what `./run test --all` needs on top: files of other projects, PyTorch for CPUs
#   scripts/setup.sh check    what linting and fuzzing need on top (apt-packages-check.txt)
#   scripts/setup.sh all      all of these
#   scripts/setup.sh bench    the other side of `./run bench controller` (apt-packages-bench.txt, SGLang)
#
# Why: nobody should have to read a list of prerequisites, and everybody should have the same versions.
#
# Leaves: Debian packages on the system; everything else below build/, which can be deleted at any time:
#         build/bin/{redis-server,promtool}   build/deps/onnxruntime   build/venv   build/mooncake-venv   build/sample/{model,tiny-vit,pictures}
#         build/traces/conversation.jsonl
#         build/sglang-venv
#
# Nothing is done twice: a second run takes less than a second and needs neither network nor root.
# Two runs at the same time wait for each other. Needs root (or sudo) only when packages are missing.
#
# On another system: install by its own means what apt-packages.txt names, then set VITROVE_SKIP_APT=1.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup_lib.sh"

usage() { sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

# missing_packages NAME...: prints those that are not installed, one a line.
missing_packages() {
    local installed name
    installed=$(dpkg-query -W -f '${binary:Package} ${db:Status-Status}\n' "$@" 2>/dev/null |
        sed -nE 's/^([^: ]+)(:[^ ]+)? installed$/\1/p') || true
    for name in "$@"; do
        grep -qxF -- "$name" <<<"$installed" || printf '%s\n' "$name"
    done
}

# packages_in FILE: the names, without comments.
packages_in() { sed -E 's/#.*//; s/[[:space:]]+//g; /^$/d' "$1"; }

# install_packages NAME...: apt-get for those that are missing; otherwise nothing, not even an update.
install_packages() {
    local missing=() as_root=() attempt apt
    [ -z "${VITROVE_SKIP_APT:-}" ] || return 0
    if command -v dpkg-query >/dev/null; then
        mapfile -t missing < <(missing_packages "$@")
        [ "${#missing[@]}" -gt 0 ] || return 0
    else
        missing=("$@")
    fi

    local ID='' VERSION_ID='' PRETTY_NAME='this system'
    # shellcheck source=/dev/null
    [ ! -r /etc/os-release ] || . /etc/os-release
    if [ "$ID" != debian ] || [ "$VERSION_ID" != 12 ]; then
        die "$PRETTY_NAME is not Debian 12, the only system whose package names are known here.
  Still missing under those names: ${missing[*]}
  Install their equivalents yourself, then run this again with VITROVE_SKIP_APT=1"
    fi
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null ||
            die "packages are missing and there is no sudo; as root: apt-get install ${missing[*]}"
        as_root=(sudo)
    fi

    lock apt
    mapfile -t missing < <(missing_packages "$@")
    [ "${#missing[@]}" -gt 0 ] || return 0
    say "installing ${#missing[@]} Debian packages: ${missing[*]}"
    # Its helpers, which are not root, need a temporary folder that is open to all.
    apt=("${as_root[@]}" env -u TMPDIR DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0)
    for attempt in 1 2 3; do # another program may be updating the lists at this moment
        ! "${apt[@]}" update || break
        [ "$attempt" -lt 3 ] || die "apt-get update failed (its own words are above)"
        sleep 5
    done
    "${apt[@]}" install --yes --no-install-recommends "${missing[@]}" >/dev/null ||
        die "apt-get install failed (its own words are above)"
    mapfile -t missing < <(missing_packages "$@")
    [ "${#missing[@]}" -eq 0 ] || die "apt-get installed everything but: ${missing[*]}"
}

# Debian's package redis-server starts a service. The very same program is in redis-tools, called
# redis-check-rdb; under the name of a server it is one. ./run puts build/bin last in PATH.
link_redis_server() {
    [ -z "${VITROVE_SKIP_APT:-}" ] || return 0
    mkdir -p "$BUILD/bin"
    ln -sfn /usr/bin/redis-check-rdb "$BUILD/bin/redis-server"
}

setup_build() {
    local packages
    mapfile -t packages < <(packages_in "$SCRIPTS/apt-packages.txt")
    install_packages "${packages[@]}"
    link_redis_server
    "$SCRIPTS/fetch_onnxruntime.sh"
    # shellcheck disable=SC2154  # setup_lib.sh has it
    rm -rf "$npm_config_cache"
}

setup_sample() {
    install_packages ca-certificates python3 python3-venv libibverbs1 libcurl4 libnuma1
    "$SCRIPTS/setup_python.sh"
    "$SCRIPTS/setup_mooncake.sh"
    "$VENV/bin/python" "$SCRIPTS/make_sample_model.py"
    "$VENV/bin/python" "$SCRIPTS/make_tiny_vit.py"
    "$VENV/bin/python" "$SCRIPTS/fetch_pictures.py"
    "$VENV/bin/python" "$SCRIPTS/fetch_trace.py"
}

setup_tests() {
    install_packages ca-certificates
    "$SCRIPTS/fetch_promtool.sh"
}

setup_more() {
    setup_sample
    "$VENV/bin/python" "$SCRIPTS/fetch_real_files.py"
    "$SCRIPTS/setup_export.sh"
}

setup_check() {
    local packages
    mapfile -t packages < <(packages_in "$SCRIPTS/apt-packages-check.txt")
    install_packages "${packages[@]}"
}

setup_bench() {
    local packages
    mapfile -t packages < <(packages_in "$SCRIPTS/apt-packages-bench.txt")
    install_packages python3 python3-venv "${packages[@]}"
    "$SCRIPTS/setup_sglang.sh"
}

[ "$(uname -s)" = Linux ] || die "Vitrove runs on Linux only; this is $(uname -s)"
case "${1:-}" in
    build) setup_build ;;
    sample) setup_sample ;;
    tests) setup_tests ;;
    more) setup_more ;;
    check) setup_check ;;
    bench) setup_bench ;;
    all)
        setup_build
        setup_sample
        setup_tests
        setup_more
        setup_check
        ;;
    -h | --help) usage ;;
    *)
        usage >&2
        exit 2
        ;;
esac
[ "${1#-}" != "$1" ] || say "$1: done"
