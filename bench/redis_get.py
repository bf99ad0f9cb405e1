"""GETs of redis-py with hiredis: one JSON line with bytes a second and CPU seconds a gigabyte.

Arguments: port, bytes of a value, values a call, seconds.
"""

import json
import sys
import time

import redis
from redis.utils import HIREDIS_AVAILABLE

KEYS = 16

assert HIREDIS_AVAILABLE
port, size, batch = map(int, sys.argv[1:4])
seconds = float(sys.argv[4])
client = redis.Redis(port=port)
names = [f"bench:{number}" for number in range(KEYS)]
for name in names:
    client.set(name, b"x" * size)

count = 0
cpu = time.process_time()
started = time.monotonic()
while (took := time.monotonic() - started) < seconds:
    # The values of the call before are kept until these are there, as an engine keeps them.
    values = client.mget([names[(count + i) % KEYS] for i in range(batch)])
    assert all(len(value) == size for value in values)
    count += batch
cpu = time.process_time() - cpu
client.delete(*names)
print(json.dumps({"speed": count * size / took, "cpu": cpu / (count * size / 1e9)}))
