#!/usr/bin/env bash
# lint.sh [--fix | --format | --quick]
#
#   (nothing)  clang-format over every source, and clang-tidy, with its path-sensitive analyzer, over
#              every translation unit of src/, one by one: about half an hour on two cores
#   --quick    the same without the analyzer, over units put together by dozens, so that what they
#              all include is looked at once: minutes. A part of `./run test --all`
#   --format   clang-format only
#
# All but --fix look at the shell scripts, too.
#
#   --fix      formats in place
#
# What was found clean and has not changed since (its own text, all project headers, the
# configuration) is not analysed again: stamps lie in build/tidy/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
jobs=${VITROVE_JOBS:-$(nproc)}
what=${1:-all}

mapfile -t sources < <(git ls-files '*.cpp' '*.h')
if [ "$what" = --fix ]; then
  clang-format-16 -i "${sources[@]}"
  exit 0
fi

mapfile -t scripts < <(git ls-files run .ci/run '*.sh')
echo "shellcheck: ${#scripts[@]} scripts"
# SC2016 would have what is passed on to another shell expanded here.
shellcheck --external-sources --source-path=SCRIPTDIR --exclude=SC2016 "${scripts[@]}"

echo "clang-format: ${#sources[@]} files"
clang-format-16 --dry-run --Werror "${sources[@]}"
[ "$what" = --format ] && exit 0

mkdir -p build/tidy/stamps
configure() {  # configure DIRECTORY OPTION...
  cmake -S . -B "$@" -G Ninja -DVITROVE_BUILD_TESTS=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
    >build/tidy/configure.log 2>&1 || { tail -n 40 build/tidy/configure.log; exit 1; }
}
common=$( (cat .clang-tidy "${BASH_SOURCE[0]}"; git ls-files -z '*.h' | xargs -0 cat) | sha256sum | cut -c1-32)
stamp_of() {  # stamp_of FILE...
  (echo "$common $what"; cat "$@") | sha256sum | cut -c1-32
}

todo=()
if [ "$what" = --quick ]; then
  # Putting together means including sources.
  database=build/tidy/together checks='-clang-analyzer-*,-bugprone-suspicious-include'
  configure $database -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=12
  mapfile -t units < <(build/venv/bin/python -c "
import json, sys
print(*(entry['file'] for entry in json.load(open(sys.argv[1]))), sep='\n')" \
    $database/compile_commands.json)
  for unit in "${units[@]}"; do
    # A unity file names its members and includes nothing else.
    mapfile -t members < <(sed -n 's/^#include "\(.*\)"$/\1/p' "$unit" | grep '\.cpp$' || true)
    todo+=("$unit:build/tidy/stamps/$(stamp_of "$unit" "${members[@]}")")
  done
else
  database=build/tidy/single checks=
  configure $database
  mapfile -t units < <(git ls-files 'src/*.cpp')
  for unit in "${units[@]}"; do todo+=("$unit:build/tidy/stamps/$(stamp_of "$unit")"); done
fi
# A list that could not be made must not pass for a clean one.
[ ${#units[@]} -gt 0 ] || { echo "lint: there is nothing to analyse"; exit 1; }
waiting=()
for entry in "${todo[@]}"; do [ -e "${entry##*:}" ] || waiting+=("$entry"); done
echo "clang-tidy: ${#units[@]} units, ${#waiting[@]} to analyse"
[ ${#waiting[@]} -eq 0 ] && exit 0

tidy_one() {  # tidy_one UNIT:STAMP DATABASE CHECKS
  local unit=${1%%:*} stamp=${1##*:} log
  log=$(mktemp)
  if clang-tidy-16 -quiet -p "$2" ${3:+"-checks=$3"} --extra-arg=-Wno-unknown-warning-option "$unit" \
       >"$log" 2>/dev/null; then
    touch "$stamp"
  else
    cat "$log"
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}
export -f tidy_one
printf '%s\n' "${waiting[@]}" |
  xargs -P "$jobs" -I{} bash -c 'tidy_one "$1" "$2" "$3"' _ {} "$database" "$checks"
