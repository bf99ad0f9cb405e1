"""GETs of Mooncake's own client into registered memory, one after the other: bytes a second on
standard output. It is the call that Vitrove's helper makes, without Vitrove.

Arguments: the master's address, bytes of a value, seconds.
"""

import ctypes
import mmap
import os
import sys
import time

from mooncake import store as mooncake

KEYS = 16

master, size, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
memory = mmap.mmap(-1, size)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
memory.write(b"x" * size)

client = mooncake.MooncakeDistributedStore()
assert client.setup("127.0.0.1", "P2PHANDSHAKE", 0, 16 << 20, "tcp", "", master) == 0
assert client.register_buffer(address, size) == 0
names = [f"bench/{os.getpid()}/{number}" for number in range(KEYS)]
for name in names:
    assert client.batch_put_from_multi_buffers([name], [[address]], [[size]],
                                               mooncake.ReplicateConfig()) == [0]

count = 0
started = time.monotonic()
while (took := time.monotonic() - started) < seconds:
    got = client.batch_get_into_multi_buffers([names[count % KEYS]], [[address]], [[size]])
    assert got == [size], got
    count += 1
for name in names:
    client.remove(name, True)
print(count * size / took, flush=True)
os._exit(0)  # closing the client takes a second
