#!/usr/bin/env python3
"""Runs benchmark programs: behind `./run bench`.

Each program under bench/ measures both sides of its claims in one run and prints ratios. With
--json every program prints one object a line: {"name", "unit", "ours", "other", "other_name",
"ratio", "target", "ok"}.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def programs(build):
    found = {}
    for path in sorted((build / "bench").glob("bench_*")):
        if path.is_file() and os.access(path, os.X_OK):
            found[path.name.removeprefix("bench_")] = path
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--list", action="store_true", help="names of the benchmarks")
    parser.add_argument("names", nargs="*", help="which to run (default: all)")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    args = parser.parse_args()

    found = programs(args.build.resolve())
    if args.list:
        print("\n".join(found))
        return 0
    unknown = [name for name in args.names if name not in found]
    if unknown:
        print(f"unknown benchmark '{unknown[0]}'; there are: {', '.join(found)}", file=sys.stderr)
        return 2
    status = 0
    for name in args.names or found:
        if not args.json:
            print(f"\n== {name}", flush=True)
        command = [found[name]] + (["--json"] if args.json else [])
        status = max(status, subprocess.run(command, cwd=ROOT).returncode)
    return status


if __name__ == "__main__":
    sys.exit(main())
