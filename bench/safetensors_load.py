"""Loads safetensors files with the Python library; the other side of bench_file_store.

Started with file names as arguments. For each line on standard input it loads all of them once and
prints the seconds that took, until the input ends.
"""

import sys
import time

from safetensors.numpy import load_file


def main() -> None:
    files = sys.argv[1:]
    for _ in sys.stdin:
        start = time.perf_counter()
        for file in files:
            tensor = load_file(file)["embedding"]
            assert tensor.size > 0
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()
