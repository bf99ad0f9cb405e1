#!/usr/bin/env bash
# Behind ./run: builds, tests, demo, benchmarks and checks. Everything it makes lies below build/;
# every step can be repeated, and does nothing when there is nothing to do.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
jobs=${VITROVE_JOBS:-$(nproc)}

# Objects are found again by a clone in another folder.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=time_macros

# Whoever has a compiler cache goes on using it, with its own limit. For others there is one below
# build/, so that nothing is left outside the checkout.
has_ccache() {
  [ -n "${CCACHE_DIR:-}" ] || [ -d "${XDG_CACHE_HOME:-${HOME:-}/.cache}/ccache" ] \
    || [ -d "${HOME:-}/.ccache" ] || [ -f "${XDG_CONFIG_HOME:-${HOME:-}/.config}/ccache/ccache.conf" ]
}
has_ccache || export CCACHE_DIR=$root/build/.ccache CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-5G}

export PATH=$PATH:$root/build/bin  # redis-server, where the system has none

# The library's telemetry would leave a device id in the home folder, whoever loads it.
export ORT_DISABLE_TELEMETRY=1

# Compilers, npm and tests leave things in the temporary folder: here they get one of their own, which
# goes with the run. Its name is short, since the sockets of some tests lie in it.
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/vt.XXXXXX")
chmod 711 "$TMPDIR" # some tests go on as nobody
export TMPDIR
remove_temporary() {
  # A folder that a killed test has locked keeps all but root out.
  rm -rf "$TMPDIR" 2>/dev/null || { chmod -R u+rwx "$TMPDIR"; rm -rf "$TMPDIR"; } || true
}
trap remove_temporary EXIT

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
took() { printf '%d min %02d s' $((SECONDS / 60)) $((SECONDS % 60)); }  # all of it so far

usage() {
  cat <<'EOF'
usage: ./run COMMAND [OPTION...]

  demo              install what is missing, build, fetch the sample model and pictures, and show two
                    encode servers sharing one store; --store redis or mooncake starts such an engine
                    for them, --store URL takes one that is there
  test              unit, contract and real-process tests on the release build
  test --all        the same, and files of other projects, exports with PyTorch, sanitizers, crash tests,
                    fuzzing, formatting and static analysis
  build [PRESET [TARGET...]]
                    build a preset: release (default), debug, asan, tsan, fuzz; all of it or some
                    targets
  bench [NAME]      run one benchmark (http, file_store, stores, ...) or all; --json for one object
                    a line; --list for their names
  soak [--minutes N] [--seconds N] [--threads N] [--seed N] [--policy NAME] [--write-behind]
                    the cache under hits, misses, aborts, evictions, flushes and store faults for so
                    long (default: one minute); its promises are checked all the while
  lint [--quick|--fix]
                    shellcheck, clang-format and clang-tidy; --quick as test --all does it, without
                    the analyzer
  fuzz [SECONDS]    fuzz all targets for so many seconds together (default 600)
  setup [WHAT]      only install and fetch: build, sample, tests, more, check, all or bench
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
  local status=0
  build/venv/bin/python scripts/demo.py --vitrove build/release/vitrove "$@" || status=$?
  say "The whole took $(took), set-up and build included"
  return "$status"
}

run_tests() {
  local all=no
  case ${1:-} in
    '') ;;
    --all) all=yes ;;
    *) echo "unknown option '$1': test takes --all or nothing" >&2; return 2 ;;
  esac
  setup build
  python3 scripts/namespaces.py
  setup sample
  setup tests
  build release
  [ "$all" = no ] || { setup check; setup more; }
  local args=(--build build/release --set-up-seconds "$SECONDS")
  [ "$all" = no ] || args+=(--all)
  # Counts every test of every kind and closes with the one line "N passed, N failed".
  local status=0
  build/venv/bin/python scripts/run_tests.py "${args[@]}" || status=$?
  return "$status"
}

# One for each program, and `stores`, which is two of them together (scripts/run_bench.py).
bench_names() {
  local source
  for source in bench/bench_*.cpp; do
    source=${source#bench/bench_}
    echo "${source%.cpp}"
  done
  echo stores
}

bench_usage() {
  cat <<'EOF'
usage: ./run bench [NAME...] [--json]

  runs the benchmarks of these names, or all: each measures both sides of its claims in one run, and
  prints ratios

  --list   their names, and nothing else
  --json   one object a line: name, unit, ours, other, other_name, ratio, target, ok
EOF
}

# Standard output is the benchmarks' alone. Nothing is built for a question, or for a wrong word.
bench() {
  local word
  for word in "$@"; do
    case $word in
      --list) bench_names; return ;;
      -h | --help) bench_usage; return ;;
      --json) ;;
      -*) echo "unknown option '$word'" >&2; bench_usage >&2; return 2 ;;
      *) bench_names | grep -xF -- "$word" >/dev/null || {
           echo "unknown benchmark '$word'; there are: $(bench_names | paste -sd ' ')" >&2
           return 2
         } ;;
    esac
  done
  setup build >&2
  setup sample >&2
  build release >&2
  build/venv/bin/python scripts/run_bench.py --build build/release "$@"
}

soak() {
  setup build
  build release soak
  build/release/tests/soak "$@"
}

command=${1:-help}
[ $# -gt 0 ] && shift
mkdir -p build
case $command in
  demo) demo "$@" ;;
  test) run_tests "$@" ;;
  build) build "$@" ;;
  bench) bench "$@" ;;
  soak) soak "$@" ;;
  lint) setup build; setup check; bash scripts/lint.sh "$@" ;;
  fuzz) build fuzz; bash scripts/fuzz.sh "${1:-600}" ;;
  setup) setup "${1:-all}" ;;
  clean) rm -rf build ;;
  help | -h | --help) usage ;;
  *) echo "unknown command '$command'" >&2; usage >&2; exit 2 ;;
esac
