"""GETs of redis-py with hiredis, one after the other: bytes a second on standard output.

Arguments: port, bytes of a value, seconds.
"""

import sys
import time

import redis
from redis.utils import HIREDIS_AVAILABLE

KEYS = 16

assert HIREDIS_AVAILABLE
port, size, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
client = redis.Redis(port=port)
names = [f"bench:{number}" for number in range(KEYS)]
for name in names:
    client.set(name, b"x" * size)

count = 0
started = time.monotonic()
while (took := time.monotonic() - started) < seconds:
    assert len(client.get(names[count % KEYS])) == size
    count += 1
client.delete(*names)
print(count * size / took)
