#!/usr/bin/env bash
# Behind ./run: builds, tests, demo, benchmarks and checks. Everything it makes lies below build/;
# every step can be repeated, and does nothing when there is nothing to do.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
jobs=${VITROVE_JOBS:-$(nproc)}

# Objects are found again by a clone in another folder.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-5G}
export CCACHE_SLOPPINESS=time_macros

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
took() { printf '%d min %02d s' $((SECONDS / 60)) $((SECONDS % 60)); }

usage() {
  cat <<'EOF'
usage: ./run COMMAND [OPTION...]

  demo              install what is missing, build, fetch the sample model and pictures, and show two
                    encode servers sharing one store
  test              unit, contract and real-process tests on the release build
  test --all        the same, and sanitizers, crash tests, fuzzing, formatting and static analysis
  build [PRESET [TARGET...]]
                    build a preset: release (default), debug, asan, tsan, fuzz; all of it or some
                    targets
  bench [NAME]      run one benchmark (http, file_store, digest, ...) or all; --json for one object
                    a line; --list for their names
  lint [--fix]      clang-format and clang-tidy
  fuzz [SECONDS]    fuzz all targets for so many seconds together (default 600)
  setup [WHAT]      only install and fetch: build, sample, check or all
  clean             remove build/
  help              this text

Settings: VITROVE_JOBS (parallel compilations, default: all cores)
EOF
}

setup() { bash scripts/setup.sh "$1"; }

# build PRESET [TARGET...]
build() {
  local preset=${1:-release}
  [ $# -gt 0 ] && shift
  case $preset in
    fuzz) setup build; setup check ;;
    release | debug | asan | tsan) setup build ;;
    *) echo "unknown preset '$preset': release, debug, asan, tsan, fuzz" >&2; return 2 ;;
  esac
  say "Building $preset"
  if [ ! -f "build/$preset/build.ninja" ]; then
    cmake --preset "$preset" >"build/$preset-configure.log" 2>&1 \
      || { tail -n 40 "build/$preset-configure.log"; return 1; }
  fi
  cmake --build "build/$preset" --parallel "$jobs" ${1:+--target "$@"}
}

demo() {
  setup build
  setup sample
  build release vitrove_cli
  say "Demo"
  build/venv/bin/python scripts/demo.py --vitrove build/release/vitrove "$@"
  say "Done in $(took)"
}

run_tests() {
  local all=no
  case ${1:-} in
    '') ;;
    --all) all=yes ;;
    *) echo "unknown option '$1': test takes --all or nothing" >&2; return 2 ;;
  esac
  setup build
  setup sample
  build release
  local args=(--build build/release)
  if [ "$all" = yes ]; then
    setup check
    args+=(--all)
  fi
  # Counts every test of every kind and closes with the one line "N passed, N failed".
  local status=0
  build/venv/bin/python scripts/run_tests.py "${args[@]}" || status=$?
  return "$status"
}

bench() {
  setup build
  setup sample
  build release >&2
  build/venv/bin/python scripts/run_bench.py --build build/release "$@"
}

command=${1:-help}
[ $# -gt 0 ] && shift
mkdir -p build
case $command in
  demo) demo "$@" ;;
  test) run_tests "$@" ;;
  build) build "$@" ;;
  bench) bench "$@" ;;
  lint) setup build; setup check; bash scripts/lint.sh "$@" ;;
  fuzz) build fuzz; bash scripts/fuzz.sh "${1:-600}" ;;
  setup) setup "${1:-all}" ;;
  clean) rm -rf build ;;
  help | -h | --help) usage ;;
  *) echo "unknown command '$command'" >&2; usage >&2; exit 2 ;;
esac
