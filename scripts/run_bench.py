#!/usr/bin/env python3
"""Runs benchmark programs: behind `./run bench`.

Each program under bench/ measures both sides of its claims in one run and prints ratios. With
--json every program prints one object a line: {"name", "unit", "ours", "other", "other_name",
"ratio", "target", "ok"}. `stores` is all that is measured of Redis and Mooncake: the program
bench_redis and the script bench_stores.py. `controller` gets SGLang's own controller to run beside,
and measures the pages under it as well (bench_allocator).
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def programs(build):
    """The commands of each benchmark."""
    found = {}
    for path in sorted((build / "bench").glob("bench_*")):
        if path.is_file() and os.access(path, os.X_OK):
            found[path.name.removeprefix("bench_")] = [[path]]
    found["stores"] = found.get("redis", []) + [
        [sys.executable, ROOT / "bench" / "bench_stores.py", "--vitrove", build / "vitrove"]]
    if "controller" in found:
        sglang = ROOT / "build" / "sglang-venv" / "bin" / "python"
        found["controller"] = [found["controller"][0] + ["--sglang-python", sglang]]
        found["controller"] += found.get("allocator", [])
    return found


def set_up(name):
    """What only that benchmark needs."""
    if name == "controller":
        subprocess.run([ROOT / "scripts" / "setup.sh", "bench"], check=True, stdout=sys.stderr)


def default_names(found):
    """Nothing twice: `stores` holds `redis`, and `controller` `allocator`."""
    return [name for name in found if name not in ("redis", "allocator")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("names", nargs="*", help="which to run (default: all)")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    args = parser.parse_args()

    found = programs(args.build.resolve())
    unknown = [name for name in args.names if name not in found]
    if unknown:
        print(f"unknown benchmark '{unknown[0]}'; there are: {', '.join(found)}", file=sys.stderr)
        return 2
    status = 0
    for name in args.names or default_names(found):
        if not args.json:
            print(f"\n== {name}", flush=True)
        set_up(name)
        for command in found[name]:
            words = command + (["--json"] if args.json else [])
            status = max(status, subprocess.run(words, cwd=ROOT).returncode)
    return status


if __name__ == "__main__":
    sys.exit(main())
