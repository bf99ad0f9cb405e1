#!/usr/bin/env python3
"""Gets a trace of requests ready, for `vitrove bench trace` and docs/eviction.md.

    scripts/fetch_trace.py                          build/traces/conversation.jsonl
    scripts/fetch_trace.py --make --out FILE        made up, whatever lies beside the checkout

Why: policies are compared on what people really send again. Where conversation_trace.jsonl of Mooncake's
FAST'25 release lies beside the checkout (../shared/traces, or the directory that VITROVE_TRACES names) it is
copied. Otherwise a trace of the same kind is made up from a seed: conversations that begin at random, send all
that they have sent again with every turn, and add to it.

Leaves: JSON lines {"timestamp": ms, "hash_ids": [id, ...]}, ordered by time. Nothing is done twice.
"""

import argparse
import heapq
import json
import os
import random
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = "conversation_trace.jsonl"
REQUESTS = 12_000
CONVERSATIONS_A_SECOND = 1.5
MEDIAN_PAUSE_S = 45


def found_beside():
    """The published trace, when somebody has laid it beside the checkout."""
    folder = Path(os.environ.get("VITROVE_TRACES") or ROOT.parent / "shared" / "traces")
    return folder / NAME if (folder / NAME).is_file() else None


def made_up(seed):
    """Lines of a trace; the same for the same seed."""
    rng = random.Random(seed)
    common, next_id = 0, 1  # every conversation begins with the one common item
    arrival, turns = 0.0, []
    for number in range(REQUESTS):
        while not turns or arrival < turns[0][0]:
            heapq.heappush(turns, (arrival, number, rng.randint(0, 2**32), [common], 1 + int(rng.expovariate(1 / 2.5))))
            arrival += rng.expovariate(CONVERSATIONS_A_SECOND)
        at, _, tie, media, left = heapq.heappop(turns)
        for _ in range(1 + int(rng.expovariate(1 / (12 if len(media) == 1 else 3)))):
            media.append(next_id)
            next_id += 1
        yield {"timestamp": round(at * 1000), "hash_ids": media}
        if left > 1:
            pause = MEDIAN_PAUSE_S * rng.lognormvariate(0, 1.2)
            heapq.heappush(turns, (at + pause, number, tie, list(media), left - 1))


def write_whole(path, write):
    """A killed run leaves no half of a trace."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f"{path.name}.{os.getpid()}")
    write(half)
    half.replace(path)


def write_made_up(seed):
    def write(path):
        with path.open("w") as file:
            file.writelines(json.dumps(line) + "\n" for line in made_up(seed))
    return write


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "traces" / "conversation.jsonl")
    parser.add_argument("--make", action="store_true", help="make it up")
    parser.add_argument("--seed", type=int, default=1, help="of a made-up trace")
    arguments = parser.parse_args()
    if arguments.out.exists():
        return
    source = None if arguments.make else found_beside()
    if source is None:
        write_whole(arguments.out, write_made_up(arguments.seed))
    else:
        write_whole(arguments.out, lambda path: shutil.copyfile(source, path))


if __name__ == "__main__":
    main()
