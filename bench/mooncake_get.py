"""GETs of Mooncake's own client into registered memory: one JSON line with bytes a second. It is the
call that Vitrove's helper makes, without Vitrove, on memory of the same kind and size.

Arguments: the master's address, bytes of a value, values a call, callers at the same time, seconds.
"""

import ctypes
import json
import mmap
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from mooncake import store as mooncake

KEYS = 16

master = sys.argv[1]
size, batch, callers = map(int, sys.argv[2:5])
seconds = float(sys.argv[5])
file = os.memfd_create("bench")
os.ftruncate(file, size * batch * callers)
memory = mmap.mmap(file, size * batch * callers)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
memory.write(b"x" * size * batch * callers)

client = mooncake.MooncakeDistributedStore()
assert client.setup("127.0.0.1", "P2PHANDSHAKE", 0, 16 << 20, "tcp", "", master) == 0
assert client.register_buffer(address, size * batch * callers) == 0
names = [f"bench/{os.getpid()}/{number}" for number in range(KEYS)]
for name in names:
    assert client.batch_put_from_multi_buffers([name], [[address]], [[size]],
                                               mooncake.ReplicateConfig()) == [0]


def get(caller, started):
    """Values got by one caller."""
    first = address + caller * batch * size
    pointers = [[first + i * size] for i in range(batch)]
    sizes = [[size]] * batch
    expected = [size] * batch
    count = 0
    while time.monotonic() - started < seconds:
        keys = [names[(caller * batch + count + i) % KEYS] for i in range(batch)]
        got = client.batch_get_into_multi_buffers(keys, pointers, sizes)
        assert got == expected, got
        count += batch
    return count


started = time.monotonic()
with ThreadPoolExecutor(callers) as threads:
    count = sum(threads.map(lambda caller: get(caller, started), range(callers)))
took = time.monotonic() - started
for name in names:
    client.remove(name, True)
print(json.dumps({"speed": count * size / took}), flush=True)
os._exit(0)  # closing the client takes a second
