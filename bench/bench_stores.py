#!/usr/bin/env python3
"""Stores beside what else gets values from the same engine, both sides in one run.

Redis: GET into page runs beside redis-py with hiredis, with the CPU of both clients. (Beside
redis-benchmark, with how busy the server is, it is measured by bench_redis.) Mooncake: GET beside the
same call made directly on Mooncake's own client. Engines are started here, on ports of their own. Our
side is `vitrove bench store`. Both sides have as many calls on the way, with as many values in each.

Our values arrive in the pages of a pool. redis-py's are copied into a pool's memory, since that is
what it takes to have them there (`python`); where they are left in Python's heap is told as well
(`python_heap`), without a target. Fifty callers are what redis-benchmark has without -c.

Mooncake's client lives in a process of its own beside Vitrove, so that a lone caller's get waits for
two wakings more than the direct call. `bound` is what these alone would leave of its speed.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from local_engines import MOONCAKE, Mooncake, Redis  # noqa: E402

REDIS_PYTHON = ROOT / "build" / "bench-venv" / "bin" / "python"
# Bytes of a value, values a call, callers at the same time.
CASES = {"redis": {"64KiB/by_1": (64 << 10, 1, 1), "64KiB/by_4": (64 << 10, 4, 1),
                   "64KiB/by_16": (64 << 10, 16, 1), "64KiB/4_callers": (64 << 10, 1, 4),
                   "64KiB/50_callers": (64 << 10, 1, 50),
                   "1MiB/by_1": (1 << 20, 1, 1), "1MiB/by_4": (1 << 20, 4, 1),
                   "1MiB/4_callers": (1 << 20, 1, 4), "1MiB/50_callers": (1 << 20, 1, 50),
                   "8MiB/by_1": (8 << 20, 1, 1), "8MiB/by_4": (8 << 20, 4, 1),
                   "8MiB/4_callers": (8 << 20, 1, 4), "8MiB/50_callers": (8 << 20, 1, 50)},
         "mooncake": {"64KiB/by_1": (64 << 10, 1, 1), "64KiB/by_16": (64 << 10, 16, 1),
                      "64KiB/4_callers": (64 << 10, 1, 4), "1MiB/by_1": (1 << 20, 1, 1),
                      "1MiB/by_4": (1 << 20, 4, 1), "1MiB/4_callers": (1 << 20, 1, 4),
                      "8MiB/by_1": (8 << 20, 1, 1)}}
HANDOVER_WORK = 1e-4  # seconds
ROW = "%-42s %10s %-7s %10s %-28s %8s  %-16s %s"


def ours(vitrove, url, size, batch, callers, seconds):
    """Of our GETs: bytes a second, CPU seconds a gigabyte."""
    run = subprocess.run(
        [vitrove, "bench", "store", url, "--size", str(size), "--count", "16", "--batch",
         str(batch), "--threads", str(callers), "--time", f"{int(seconds * 1000)}ms", "--json",
         "--quiet"],
        stdout=subprocess.PIPE, text=True, check=True)
    (get,) = [each for each in json.loads(run.stdout)["runs"] if each["op"] == "get"]
    gigabytes = get["operations"] * size / 1e9
    return {"speed": get["megabytes_per_second"] * 1e6, "cpu": get["cpu_seconds"] / gigabytes}


def theirs(python, program, *arguments):
    environment = {**os.environ, "MC_TCP_ENABLE_CONNECTION_POOL": "1", "GLOG_minloglevel": "2"}
    run = subprocess.run([python, ROOT / "bench" / program, *map(str, arguments)], text=True,
                         capture_output=True, env=environment)
    if run.returncode != 0:
        raise SystemExit(f"{program} failed:\n{run.stderr[-2000:]}")
    return json.loads(run.stdout.splitlines()[-1])


class Report:
    def __init__(self, args):
        self.args = args
        self.missed = 0
        if not args.json:
            print(ROW % ("name", "ours", "unit", "other", "other is", "ratio", "target", ""))

    def compare(self, name, other_name, target, ours, other):
        """As bench/harness.h does: in turn, in changing order, the median of the pairs' ratios."""
        pairs = []
        for number in range(self.args.pairs):
            if number % 2 == 0:
                pairs.append((ours(), other()))
            else:
                its = other()
                pairs.append((ours(), its))
        speeds = [(a["speed"] / 1e9, b["speed"] / 1e9) for a, b in pairs]
        self.print(name, "GB/s", speeds, other_name, target)
        if all("cpu" in side for pair in pairs for side in pair):
            costs = [(a["cpu"], b["cpu"]) for a, b in pairs]
            self.print(f"{name}/client_cpu", "s/GB", costs, other_name)
        return statistics.median(b for _, b in speeds)

    def print(self, name, unit, pairs, other_name, target=None):
        mine, its = (statistics.median(side) for side in zip(*pairs))
        ratio = statistics.median(a / b for a, b in pairs)
        ok = None if target is None else ratio >= target
        self.missed += ok is False
        text = None if target is None else f"ratio >= {target:g}"
        if self.args.json:
            print(json.dumps({"name": name, "unit": unit, "ours": mine, "other": its,
                              "other_name": other_name, "ratio": ratio, "target": text, "ok": ok}),
                  flush=True)
        else:
            verdict = {None: "", True: "ok", False: "MISSED"}[ok]
            print(ROW % (name, f"{mine:.4g}", unit, f"{its:.4g}", other_name, f"{ratio:.4g}",
                         text or "-", verdict), flush=True)


def measure_redis(args, folder, report, cases):
    subprocess.run([ROOT / "scripts" / "setup_bench.sh"], check=True, stdout=sys.stderr)
    with Redis(folder) as redis:
        for name, case in cases.items():
            for suffix, place, target in (("", "pool", 2), ("_heap", "heap", None)):
                report.compare(name + suffix, f"redis-py, into its {place}", target,
                               lambda: ours(args.vitrove, redis.url, *case, args.seconds),
                               lambda: theirs(REDIS_PYTHON, "redis_get.py", redis.port, *case,
                                              args.seconds, place))


def handover_seconds():
    """A question and its answer between two processes that sleep until they come, each on a CPU of its
    own, which is where Linux wakes them when it rests. The one who answers works for a tenth of a
    millisecond in between, as long as the smallest of Mooncake's calls takes."""
    cpus = sorted(os.sched_getaffinity(0))
    asker, answerer = socket.socketpair()
    child = os.fork()
    os.sched_setaffinity(0, {cpus[0 if child else -1]})
    if child == 0:
        asker.close()
        while answerer.recv(64):
            until = time.perf_counter() + HANDOVER_WORK
            while time.perf_counter() < until:
                pass
            answerer.send(b"answer")
        os._exit(0)
    answerer.close()
    took = []
    for _ in range(2000):
        began = time.perf_counter()
        asker.send(b"question")
        asker.recv(64)
        took.append(time.perf_counter() - began - HANDOVER_WORK)
    asker.close()
    os.waitpid(child, 0)
    os.sched_setaffinity(0, cpus)
    return statistics.median(took)


def measure_mooncake(args, folder, report, cases):
    with Mooncake(folder) as mooncake:
        master = f"127.0.0.1:{mooncake.port}"
        for name, case in cases.items():
            before = handover_seconds()
            speed = report.compare(
                name, "Mooncake's own client", 0.95,
                lambda: ours(args.vitrove, mooncake.url, *case, args.seconds),
                lambda: theirs(MOONCAKE / "bin" / "python", "mooncake_get.py", master, *case,
                               args.seconds))
            size, batch, callers = case
            if callers == 1:
                took = size * batch / (speed * 1e9)
                handover = min(before, handover_seconds())  # the bound is to err to our cost
                bound = speed * took / (took + handover)
                report.print(f"{name}/bound", "GB/s", [(bound, speed)], "the direct call above")


def run(args, folder):
    report = Report(args)
    for engine, measure in (("redis", measure_redis), ("mooncake", measure_mooncake)):
        named = {f"{engine}_get/{label}/python": case for label, case in CASES[engine].items()}
        wanted = {name: case for name, case in named.items() if args.only in name}
        if wanted:
            measure(args, folder / engine, report, wanted)
    return report.missed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vitrove", type=Path, required=True)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2, help="of each side of a pair")
    parser.add_argument("--only", default="", help="measurements whose name holds it")
    parser.add_argument("--check", action="store_true", help="a missed target is exit code 1")
    args = parser.parse_args()
    args.vitrove = args.vitrove.resolve()
    with tempfile.TemporaryDirectory(prefix="vitrove-bench-") as folder:
        missed = run(args, Path(folder))
    return 1 if args.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
