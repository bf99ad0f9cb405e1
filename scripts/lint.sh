#!/usr/bin/env bash
# clang-format over every source, clang-tidy over every translation unit of src/. --fix formats in
# place, --format checks the formatting alone. A unit whose inputs (its own text, all project headers, the configuration) did not change
# since it was last found clean is not analysed again: stamps lie in build/tidy/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
jobs=${VITROVE_JOBS:-$(nproc)}
what=${1:-all}

mapfile -t sources < <(git ls-files '*.cpp' '*.h')
if [ "$what" = --fix ]; then
  clang-format-16 -i "${sources[@]}"
  exit 0
fi

echo "clang-format: ${#sources[@]} files"
clang-format-16 --dry-run --Werror "${sources[@]}"
[ "$what" = --format ] && exit 0

[ -f build/release/compile_commands.json ] \
  || cmake --preset release -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
mkdir -p build/tidy
mapfile -t units < <(git ls-files 'src/*.cpp')
common=$( (cat .clang-tidy; git ls-files '*.h' | xargs cat) | sha256sum | cut -c1-32)
todo=()
for unit in "${units[@]}"; do
  stamp=build/tidy/$( (echo "$common $unit"; cat "$unit") | sha256sum | cut -c1-32)
  [ -e "$stamp" ] || todo+=("$unit:$stamp")
done
echo "clang-tidy: ${#units[@]} units, ${#todo[@]} to analyse"
[ ${#todo[@]} -eq 0 ] && exit 0

tidy_one() {
  local unit=${1%%:*} stamp=${1##*:} log
  log=$(mktemp)
  if clang-tidy-16 -quiet -p build/release --extra-arg=-Wno-unknown-warning-option "$unit" \
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
printf '%s\n' "${todo[@]}" | xargs -P "$jobs" -I{} bash -c 'tidy_one "$1"' _ {}
