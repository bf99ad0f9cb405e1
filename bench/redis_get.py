"""GETs of redis-py with hiredis: one JSON line with bytes a second and CPU seconds a gigabyte.

Arguments: port, bytes of a value, values a call, callers at the same time, seconds, and where the
values go: `pool` (copied into memory made before, as a cache of pages needs them) or `heap` (left
where redis-py made them).
"""

import json
import mmap
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import redis
from redis.utils import HIREDIS_AVAILABLE

KEYS = 16

assert HIREDIS_AVAILABLE
port, size, batch, callers = map(int, sys.argv[1:5])
seconds = float(sys.argv[5])
into_pool = {"pool": True, "heap": False}[sys.argv[6]]
client = redis.Redis(port=port)  # its connections are a pool: one for each caller
names = [f"bench:{number}" for number in range(KEYS)]
for name in names:
    client.set(name, b"x" * size)
pool = memoryview(mmap.mmap(-1, size * batch * callers))
pool[:] = bytes(len(pool))


def get(caller, started):
    """Values got by one caller."""
    first = caller * batch * size
    slots = [pool[first + i * size:first + (i + 1) * size] for i in range(batch)]
    count = 0
    while time.monotonic() - started < seconds:
        # The values of the call before are kept until these are there, as an engine keeps them.
        values = client.mget([names[(caller * batch + count + i) % KEYS] for i in range(batch)])
        assert all(len(value) == size for value in values)
        if into_pool:
            for slot, value in zip(slots, values):
                slot[:] = value
        count += batch
    return count


cpu = time.process_time()
started = time.monotonic()
with ThreadPoolExecutor(callers) as threads:
    count = sum(threads.map(lambda caller: get(caller, started), range(callers)))
took = time.monotonic() - started
cpu = time.process_time() - cpu
client.delete(*names)
print(json.dumps({"speed": count * size / took, "cpu": cpu / (count * size / 1e9)}))
