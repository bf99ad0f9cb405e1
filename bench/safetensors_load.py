"""Loads safetensors files with the Python library; the other side of bench_file_store.

Started with file names as arguments. For each line on standard input it loads all of them once and
prints the seconds that took, until the input ends. What was loaded is kept until the round is over, as
an engine keeps its embeddings: a tensor dropped at once would hand its warm memory to the next.
"""

import sys
import time

from safetensors.numpy import load_file


def main() -> None:
    files = sys.argv[1:]
    for _ in sys.stdin:
        start = time.perf_counter()
        kept = [load_file(file)["embedding"] for file in files]
        seconds = time.perf_counter() - start
        assert all(tensor.size > 0 for tensor in kept)
        del kept
        print(seconds, flush=True)


if __name__ == "__main__":
    main()
