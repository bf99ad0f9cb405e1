# shellcheck shell=bash
# What the set-up scripts share. It is sourced, never run:
#
#   say, die             one plain line of progress, or of failure (then exit 1)
#   verify_sha256        a file is what we pinned, or die
#   key_of               one digest for "these pins and these scripts"
#   up_to_date, stamp    has this very key been finished before? / it is finished now
#   lock                 one run at a time; a second one waits
#   system_python        Debian's own Python, not whatever PATH has in front of it
#
# Everything these scripts make lies below build/ and can be deleted at any time.

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034  # for the scripts that source this file
SCRIPTS=$ROOT/scripts
BUILD=$ROOT/build
# shellcheck disable=SC2034
VENV=$BUILD/venv
SELF=$(basename "$0" .sh)

say() { printf '%s: %s\n' "$SELF" "$*"; }
die() {
    printf '%s: error: %s\n' "$SELF" "$*" >&2
    exit 1
}

# verify_sha256 FILE EXPECTED: dies unless the file has that digest.
verify_sha256() {
    local got
    got=$(sha256sum "$1" | cut -d' ' -f1)
    [ "$got" = "$2" ] || die "$(basename "$1") has SHA-256 $got, expected $2; nothing was installed"
}

# key_of FILE-OR-WORD...: files count by their content, words by themselves.
key_of() {
    local item
    for item in "$@"; do
        if [ -f "$item" ]; then sha256sum <"$item"; else printf '%s\n' "$item"; fi
    done | sha256sum | cut -d' ' -f1
}

# up_to_date STAMP KEY FILE...: the stamp says KEY and every file is still there.
up_to_date() {
    local stamp=$1 key=$2 file
    shift 2
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$key" ] || return 1
    for file in "$@"; do [ -e "$file" ] || return 1; done
}

# stamp STAMP KEY: written last and whole, so that a killed run is not taken for a finished one.
stamp() {
    printf '%s\n' "$2" >"$1.$$"
    mv "$1.$$" "$1"
}

# lock NAME: held until this script ends, however it ends. Asking again for one's own is fine.
declare -A locks_held=()
lock() {
    local dir=$BUILD fd
    [ -z "${locks_held[$1]:-}" ] || return 0
    locks_held[$1]=1
    mkdir -p "$dir"
    exec {fd}>"$dir/.lock-$1"
    flock -n "$fd" && return
    say "waiting for another run to finish"
    flock -w 3600 "$fd" || die "another run has held $dir/.lock-$1 for an hour"
}

# system_python: prints the interpreter that virtual environments are made from.
system_python() {
    local python=/usr/bin/python3
    [ -x "$python" ] || python=$(command -v python3) ||
        die "no python3 found; on Debian: apt-get install python3 python3-venv"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        die "$python is too old, 3.11 or newer is needed"
    printf '%s\n' "$python"
}

# pinned_venv NAME PROGRAM MODULE HINT [OPTION...]: build/NAME-venv with what requirements-NAME.txt pins
# by hash, from ready-made wheels; it must hold PROGRAM and import MODULE, or else HINT is said. Options
# are those of venv. Again at no cost unless the pins, the calling script or Debian's Python changed.
pinned_venv() {
    local name=$1 program=$2 module=$3 hint=$4 venv=$BUILD/$1-venv requirements=$SCRIPTS/requirements-$1.txt
    local python key
    shift 4
    python=$(system_python)
    key=$(key_of "$python" "$("$python" --version)" "$requirements" "${BASH_SOURCE[1]}")
    is_ready() { up_to_date "$venv/.packages" "$key" "$venv/bin/python" "$venv/bin/$program"; }
    if is_ready || { lock "$name" && is_ready; }; then
        say "up to date"
        return
    fi
    say "installing what $(basename "$requirements") pins into build/$name-venv"
    rm -rf "$venv"
    "$python" -m venv "$@" "$venv" >/dev/null ||
        die "$python cannot make virtual environments; on Debian: apt-get install python3-venv"
    "$venv/bin/python" -m pip install --quiet --no-deps --require-hashes --only-binary :all: -r "$requirements" ||
        die "pip could not install $(basename "$requirements") (its own words are above)"
    "$venv/bin/python" -c "import $module" || die "$hint"
    stamp "$venv/.packages" "$key"
    say "ready"
}

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore
# What is fetched is fetched once; no copy of it stays outside the checkout.
export PIP_NO_CACHE_DIR=1 npm_config_cache=$BUILD/.npm NODE_DISABLE_COMPILE_CACHE=1
