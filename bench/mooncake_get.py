"""GETs of Mooncake's own client into registered memory: one JSON line with bytes a second. It is the
call that Vitrove's helper makes, without Vitrove, on memory of the same kind and size.

Arguments: the master's address, bytes of a value, values a call, seconds.
"""

import ctypes
import json
import mmap
import os
import sys
import time

from mooncake import store as mooncake

KEYS = 16

master = sys.argv[1]
size, batch = map(int, sys.argv[2:4])
seconds = float(sys.argv[4])
file = os.memfd_create("bench")
os.ftruncate(file, size * batch)
memory = mmap.mmap(file, size * batch)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
memory.write(b"x" * size * batch)

client = mooncake.MooncakeDistributedStore()
assert client.setup("127.0.0.1", "P2PHANDSHAKE", 0, 16 << 20, "tcp", "", master) == 0
assert client.register_buffer(address, size * batch) == 0
names = [f"bench/{os.getpid()}/{number}" for number in range(KEYS)]
for name in names:
    assert client.batch_put_from_multi_buffers([name], [[address]], [[size]],
                                               mooncake.ReplicateConfig()) == [0]

pointers = [[address + i * size] for i in range(batch)]
sizes = [[size]] * batch
expected = [size] * batch
count = 0
started = time.monotonic()
while (took := time.monotonic() - started) < seconds:
    keys = [names[(count + i) % KEYS] for i in range(batch)]
    got = client.batch_get_into_multi_buffers(keys, pointers, sizes)
    assert got == expected, got
    count += batch
for name in names:
    client.remove(name, True)
print(json.dumps({"speed": count * size / took}), flush=True)
os._exit(0)  # closing the client takes a second
