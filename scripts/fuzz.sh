#!/usr/bin/env bash
# fuzz.sh SECONDS: fuzzes all targets for SECONDS together, each for its share and as many side by
# side as there are cores, starting from the committed corpus. Findings stay in build/fuzz-findings/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=$1
jobs=${VITROVE_JOBS:-$(nproc)}

mapfile -t targets < <(find build/fuzz/tests -maxdepth 1 -type f -executable -name 'fuzz_*' | sort)
[ ${#targets[@]} -gt 0 ] || { echo "no fuzz targets built" >&2; exit 1; }
each=$((seconds / ${#targets[@]}))
[ "$each" -ge 1 ] || each=1
echo "fuzzing ${#targets[@]} targets, $each s each, $jobs side by side"

export LSAN_OPTIONS=suppressions=$PWD/scripts/lsan.supp

fuzz_one() {
  local target=$1 each=$2 name
  name=$(basename "$target")
  local found=build/fuzz-findings/$name work=build/fuzz-corpus/$name log=build/fuzz-findings/$name.log
  mkdir -p "$found" "$work"
  if "$target" -max_total_time="$each" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
       -artifact_prefix="$found/" "$work" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
    echo "ok   $name $(grep -m1 -o 'number_of_executed_units: *[0-9]*' "$log" || true)"
  else
    echo "FAIL $name"
    tail -n 40 "$log"
    return 1
  fi
}
export -f fuzz_one
printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I{} bash -c 'fuzz_one "$1" "$2"' _ {} "$each"
