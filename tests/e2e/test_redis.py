"""What clients of the encode server see while its Redis fails: nothing but time.

Field cases B43, B49 to B53, B56, B57, B62, B63, B76, B78, B79, B86, B87 and B89 as they touch
Redis, with real processes on both sides.
"""

import random
import re
import signal
import threading
import time

import pytest
from bystander import Bystander
from redis_server import HarmfulProxy, RedisServer, make_certificates
from support import (HURRIED, STUB, TIME_FACTOR, Server, file_store, png_url, run_cli, seconds,
                     wait_for_puts, wait_until)

FAST = f"timeout={int(1000 * TIME_FACTOR)}ms&connect_timeout={int(1000 * TIME_FACTOR)}ms"
SEEDS = 24


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    """Rows of the first pictures as an encoder without any cache makes them."""
    server = Server(tmp_path_factory.mktemp("golden"), "--pool-size", "0")
    rows = [server.embeddings([png_url(seed)]).item(0).tobytes() for seed in range(SEEDS)]
    assert server.stop() == 0
    return rows


@pytest.fixture
def start_redis(tmp_path):
    """start_redis(*arguments, password=..., tls=...) gives a running RedisServer."""
    started = []

    def start_one(*arguments, **options):
        started.append(RedisServer(tmp_path / f"redis-{len(started)}", *arguments, **options))
        return started[-1]

    yield start_one
    for server in started:
        server.stop()


@pytest.fixture
def redis(start_redis):
    return start_redis()


def url_of(redis):
    return f"{redis.url()}?{FAST}"


def rows_of(server, seed):
    return server.embeddings([png_url(seed)]).item(0).tobytes()


class Load:
    """Clients that ask for golden embeddings all the time; any other answer is a failure."""

    def __init__(self, servers, golden, clients=4):
        self.servers, self.golden = servers, golden
        self.may_fail = set()  # servers that a test kills; their answers do not count
        self.count, self.failures, self.slowest = 0, [], 0.0
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.ask, args=(number,))
                        for number in range(clients)]

    def ask(self, number):
        choose = random.Random(number)
        while not self.ended.is_set():
            server, seed = choose.choice(self.servers), choose.randrange(SEEDS)
            start = time.monotonic()
            try:
                if rows_of(server, seed) != self.golden[seed]:
                    self.failures.append("other rows")
            except Exception as error:  # whatever it is, the test fails with it
                if server in self.may_fail:
                    continue
                self.failures.append(repr(error))
            self.slowest = max(self.slowest, time.monotonic() - start)
            self.count += 1

    def more(self, count):
        """Waits until so many more requests were answered."""
        target = self.count + count
        wait_until(lambda: self.count >= target or self.failures, 60, "requests to be answered")

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()
        assert self.failures == []


def hits_come(server, seed=0):
    """True when the item, forgotten locally, is found in the store."""
    wait_for_puts(server)
    server.post("/flush?scope=local")
    return server.sources([png_url(seed)]) == ["store"]


def test_two_servers_share_embeddings(start, redis, golden):
    """B63: a fresh instance, all in the store; mixed; without a pool."""
    first = start(store=redis.url())
    first.encode_ok([png_url(seed) for seed in range(4)])
    wait_for_puts(first)
    assert len(redis.values()) == 4
    second = start(store=redis.url(scheme="valkey"))
    assert second.sources([png_url(0), png_url(1)]) == ["store"] * 2
    assert second.sources([png_url(2), png_url(9)]) == ["store", "encoded"]
    third = start("--pool-size", "0", store=redis.url())
    for seed in (0, 1, 2, 9):
        wait_for_puts(second)
        assert rows_of(third, seed) == golden[seed]
    assert third.encodes() == 0


def test_a_value_that_vanishes_after_it_was_seen_is_encoded(start, redis, golden):
    """B43: the key is deleted right after the answer that it is there."""
    warm = start(store=redis.url())
    warm.encode_ok([png_url(seed) for seed in range(8)])
    wait_for_puts(warm)
    deleted = []

    def harm(command, reply):
        if command[0] == b"STRLEN" and reply != b":0\r\n":
            redis("DEL", command[1])
            deleted.append(command[1])
        return reply

    proxy = HarmfulProxy(redis, harm)
    try:
        server = start("--pool-size", "0", store=redis.url(port=proxy.port))
        for seed in range(8):
            assert rows_of(server, seed) == golden[seed]
        assert server.encodes() == 8
        assert len(deleted) >= 8
        assert server.metrics().sum("vitrove_store_errors_total", op="get") == 0
    finally:
        proxy.stop()


def test_a_server_that_lies_is_found_out(start, redis, golden):
    """B56: short, long, damaged and missing values, and success without data."""
    warm = start(store=redis.url())
    warm.encode_ok([png_url(seed) for seed in range(SEEDS)])
    wait_for_puts(warm)
    choose = random.Random(56)

    def harm(command, reply):
        if command[0] == b"SET" and choose.random() < 0.3:
            redis("DEL", command[1])
        if command[0] == b"STRLEN" and choose.random() < 0.3:
            return b":%d\r\n" % choose.choice([1, 255, 4352, 1 << 40])
        if command[0] == b"GET" and reply != b"$-1\r\n" and choose.random() < 0.8:
            body = reply[reply.index(b"\r\n") + 2:-2]
            return choose.choice([
                b"$-1\r\n", b"$0\r\n\r\n", b"+OK\r\n", b":0\r\n",
                b"$%d\r\n%s\r\n" % (len(body) - 1, body[:-1]),
                b"$%d\r\n%s\r\n" % (len(body), bytes(len(body))),
                b"$%d\r\n%s\r\n" % (len(body), body[:300] + b"?" + body[301:])])
        return reply

    proxy = HarmfulProxy(redis, harm)
    try:
        server = start("--pool-size", "0", store=redis.url(port=proxy.port) + f"?{FAST}")
        for _ in range(3):
            for seed in range(SEEDS):
                assert rows_of(server, seed) == golden[seed]
        assert server.metrics().sum("vitrove_rejected_values_total") > 0
    finally:
        proxy.stop()


def test_redis_may_come_later_and_go_and_come_again(start, redis, golden):
    """B49: away at the start, then restarted five times under load."""
    redis.kill()
    server = start(*HURRIED, store=url_of(redis))
    assert rows_of(server, 0) == golden[0]
    wait_until(lambda: server.get("/health").json["status"] == "degraded", 60, "to be degraded")
    assert server.get("/ready").status == 200
    told = run_cli("doctor", "--server", f"http://127.0.0.1:{server.port}").stdout
    assert "warning" in told and "redis is down" in told
    redis.start()
    wait_until(lambda: server.get("/health").json["status"] == "ok", 60, "to be well again")

    def puts_appear():
        server.encode_ok([png_url(100 + len(redis.keys()))])
        wait_for_puts(server)
        return redis.keys()

    wait_until(puts_appear, 60, "puts to appear")
    small = start("--pool-size", "1MiB", *HURRIED, store=url_of(redis))
    with Load([server, small], golden) as load:
        for _ in range(5):
            redis.kill()
            load.more(20)
            redis.start()
            load.more(20)
    wait_until(lambda: hits_come(server), 60, "hits to resume")


def test_a_redis_that_hangs_costs_a_deadline_at_most(start, redis, golden):
    """B50: SIGSTOP under load, and hits again after SIGCONT."""
    server = start(*HURRIED, store=url_of(redis))
    with Load([server], golden) as load:
        load.more(50)
        for _ in range(3):
            redis.signal(signal.SIGSTOP)
            server.post("/flush?scope=local")
            load.more(60)
            redis.signal(signal.SIGCONT)
            load.more(20)
    assert load.slowest < seconds(20), "nobody waits for Redis beyond the budget"
    assert server.metrics().sum("vitrove_store_errors_total") > 0, "errors are no misses"
    wait_until(lambda: hits_come(server), 60, "hits to resume")
    assert server.metrics().sum("vitrove_pool_bytes", state="quarantined") == 0


def test_a_server_ends_in_time_though_redis_hangs(start, redis):
    """B78: SIGTERM with puts that cannot land."""
    server = start("--drain-timeout", "2s", *HURRIED, store=url_of(redis))
    server.encode_ok([png_url(1)])
    wait_for_puts(server)
    redis.signal(signal.SIGSTOP)
    server.encode_ok([png_url(2)])
    assert server.stop(timeout=30) == 0


def test_a_full_redis_fails_no_request(start, redis, golden):
    """B52: maxmemory without eviction; puts are counted by their reason, hits go on."""
    server = start("--pool-size", "1MiB", encoder="stub:dim=1024,tokens=64,seed=1",
                   store=url_of(redis))
    server.encode_ok([png_url(0)])
    wait_for_puts(server)
    redis("CONFIG", "SET", "maxmemory-policy", "noeviction")
    redis("CONFIG", "SET", "maxmemory", "5mb")
    for seed in range(60):
        assert server.encode([png_url(seed)]).status == 200
    wait_for_puts(server)
    metrics = server.metrics()
    assert metrics.sum("vitrove_store_errors_total", op="put", reason="ENOMEM") > 0
    assert metrics.sum("vitrove_store_errors_total", op="get") == 0
    assert hits_come(server, 0)
    redis("CONFIG", "SET", "maxmemory", "0")
    before = len(redis.keys())

    def puts_resume():
        server.encode_ok([png_url(200 + int(time.monotonic() * 1000) % 100000)])
        wait_for_puts(server)
        return len(redis.keys()) > before

    wait_until(puts_resume, 60, "puts to resume")


def test_a_redis_that_evicts_gives_misses(start, redis, golden):
    """B52: allkeys-lru with room for a few values."""
    redis("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    redis("CONFIG", "SET", "maxmemory", "4mb")
    server = start("--pool-size", "1MiB", encoder="stub:dim=1024,tokens=64,seed=1",
                   store=url_of(redis))
    for seed in [*range(40), *range(40)]:
        assert server.encode([png_url(seed)]).status == 200
    wait_for_puts(server)
    evicted = int(re.search(rb"evicted_keys:(\d+)", redis("INFO", "stats"))[1])
    assert evicted > 0
    assert server.metrics().sum("vitrove_store_errors_total", op="get") == 0


def test_a_read_only_replica_serves_hits_and_refuses_puts_quietly(start, start_redis, golden):
    """B52, B53: after a failover the old master is a replica."""
    master, replica = start_redis(), start_redis()
    warm = start(store=master.url())
    warm.encode_ok([png_url(0), png_url(1)])
    wait_for_puts(warm)
    replica("REPLICAOF", "127.0.0.1", master.port)
    wait_until(lambda: len(replica.values()) == 2, 60, "the replica to follow")
    server = start(store=url_of(replica))
    assert server.sources([png_url(0), png_url(1)]) == ["store"] * 2
    assert rows_of(server, 2) == golden[2]
    wait_for_puts(server)
    assert server.metrics().sum("vitrove_store_errors_total", op="put") > 0
    replica("REPLICAOF", "NO", "ONE")

    def is_master():
        server.encode_ok([png_url(300 + int(time.monotonic() * 1000) % 100000)])
        wait_for_puts(server)
        return len(replica.values()) > 2

    wait_until(is_master, 60, "puts to land")


def test_a_value_beyond_the_limit_stays_local(start, redis):
    """B52: skipped, counted, and said once."""
    server = start(store=redis.url(max_value_bytes="2KiB"))
    for seed in range(3):
        assert server.sources([png_url(seed)]) == ["encoded"]
    wait_for_puts(server)
    assert redis.values() == []
    assert server.sources([png_url(0)]) == ["local"]
    assert server.log.count("beyond the limit") == 1
    assert server.metrics().sum("vitrove_store_errors_total", op="put", reason="too_large") >= 3


def test_a_flush_under_load_harms_nobody(start, redis, golden):
    server = start("--pool-size", "1MiB", store=url_of(redis))
    with Load([server], golden) as load:
        for _ in range(10):
            redis("FLUSHALL")
            load.more(10)


def test_two_models_in_one_redis_stay_apart(start, redis):
    """B62: same pictures, same server, other embeddings."""
    one = start(store=redis.url(), encoder=STUB)
    two = start(store=redis.url(), encoder=STUB.replace("seed=1", "seed=2"))
    rows = [rows_of(server, 1) for server in (one, two)]
    assert rows[0] != rows[1]
    for server in (one, two):
        wait_for_puts(server)
    for server, own in zip((one, two), rows):
        server.post("/flush?scope=local")
        assert server.sources([png_url(1)]) == ["store"]
        assert rows_of(server, 1) == own


def test_a_flush_of_the_store_leaves_foreign_keys_alone(start, redis):
    """B76."""
    redis("SET", "somebody-else", "x")
    redis("SET", "vitrove:notes", "y")
    server = start(store=redis.url())
    other = start(store=redis.url(prefix="other:"))
    for one in (server, other):
        one.encode_ok([png_url(seed) for seed in range(5)])
        wait_for_puts(one)
    assert len(redis.keys()) == 22, "values and aliases"
    assert server.post("/flush?scope=all").status == 200
    kept = redis.keys()
    assert len(kept) == 12 and "somebody-else" in kept and "vitrove:notes" in kept
    assert server.sources([png_url(0)]) == ["encoded"]
    other.post("/flush?scope=local")
    assert other.sources([png_url(0)]) == ["store"]


def test_damaged_and_foreign_values_are_misses_and_mended(start, redis, golden):
    """B86: whoever can write to Redis."""
    server = start("--pool-size", "0", store=redis.url())
    server.encode_ok([png_url(0)])
    wait_for_puts(server)
    (key,) = redis.values()
    good = redis("GET", key)
    choose = random.Random(86)

    def damaged():
        value = bytearray(good)
        value[choose.randrange(len(value))] ^= 1 << choose.randrange(8)
        return bytes(value)

    with Bystander(server):
        for value in [*(damaged() for _ in range(200)), good[:-1], good + b"x", b"x", good[:256],
                      bytes(len(good)), b"$5\r\nhello\r\n"]:
            redis("SET", key, value)
            assert rows_of(server, 0) == golden[0]
            wait_for_puts(server)
            assert redis("GET", key)[256:] == good[256:], "mended"
        redis("DEL", key)
        redis("RPUSH", key, "a", "list")
        for _ in range(6):  # more often than a breaker takes from a store
            assert rows_of(server, 0) == golden[0]
            wait_for_puts(server)
        assert redis("GET", key)[256:] == good[256:], "mended"
        assert server.get("/health").json["status"] == "ok", "nothing is wrong with the store"


def test_rm_tells_where_a_value_may_still_be(start, redis):
    server = start(store=redis.url())
    key = server.encode_ok([png_url(0)])["items"][0]["key"]
    wait_for_puts(server)
    redis("CLIENT", "PAUSE", "600000", "WRITE")
    half = run_cli("rm", key, "--server", f"http://127.0.0.1:{server.port}")
    assert half.returncode == 1 and "it may still be in redis: try again" in half.stdout
    redis("CLIENT", "UNPAUSE")
    done = run_cli("rm", key, "--server", f"http://127.0.0.1:{server.port}")
    assert done.returncode in (0, 3), "the first may have gone through by now"
    assert redis.values() == []


def test_hostile_words_reach_no_key_and_no_command(start, redis):
    """B89: keys come from digests only, and commands are framed by length."""
    redis("SET", "victim", "alive")
    server = start(store=redis.url())
    hostile = ["\r\nDEL victim\r\n", "*2\r\n$3\r\nDEL\r\n$6\r\nvictim\r\n", "../../x", "a" * 5000,
               "*", "vitrove:*", "\x00"]
    with Bystander(server):
        for seed, word in enumerate(hostile):
            server.encode([png_url(seed)], req_id=word)
            server.encode([{"digest": word}])
            server.get("/embeddings/" + re.sub(r"[^!-~]", "_", word)[:200])
    server.encode_ok([png_url(1)])
    wait_for_puts(server)
    assert redis("GET", "victim") == b"alive"
    own = [key for key in redis.keys() if key != "victim"]
    assert own and all(re.fullmatch(r"vitrove:vt1-[0-9a-f]{64}", key) for key in own)


@pytest.mark.parametrize("tls", [False, True])
def test_a_password_of_any_characters_works_and_is_never_shown(start, start_redis, tmp_path, golden,
                                                               tls):
    """B53, B87: rediss:// with a password full of delimiters, through restarts."""
    password = "p@ss:w/rd#1"
    certificates = make_certificates(tmp_path / "tls") if tls else None
    redis = start_redis(password=password, tls=certificates)
    server = start("--pool-size", "1MiB", *HURRIED,
                   store=redis.url(timeout="1s", connect_timeout="1s"))
    with Load([server], golden) as load:
        load.more(30)
        redis.kill()
        load.more(20)
        redis.start()
        load.more(20)
    wait_until(lambda: hits_come(server), 60, "hits to resume")
    shown = [server.log, server.get("/stats").body.decode(), server.get("/health").body.decode(),
             server.get("/").body.decode(), server.get("/metrics").body.decode()]
    wrong = start(store=redis.url().replace("p%40ss", "wr0ng"))
    assert rows_of(wrong, 1) == golden[1]
    wait_until(lambda: wrong.get("/health").json["status"] == "degraded", 30, "to be degraded")
    shown += [wrong.log, wrong.get("/stats").body.decode(), wrong.get("/health").body.decode()]
    for text in shown:
        for secret in (password, "p%40ss%3Aw%2Frd%231", "wr0ng"):
            assert secret not in text


@pytest.mark.parametrize("url, says", [
    ("redis://127.0.0.1?tiemout=1s", "tiemout"),
    ("redis+sentinel://127.0.0.1:26379/mymaster", "Sentinel is not supported"),
    ("redis://a:1,b:2", "redis+cluster"),
    ("redis://127.0.0.1/x", "database"),
    ("rediss://:hunter2@127.0.0.1?tls_ca=/no/such/file", "tls_ca"),
])
def test_a_wrong_url_stops_at_start_with_one_clear_line(url, says):
    """B79, B53."""
    result = run_cli("serve", "--port", "0", "--encoder", STUB, "--store", url, timeout=30)
    assert result.returncode == 2, result.stderr
    assert says in result.stderr
    assert "hunter2" not in result.stderr
    assert len(result.stderr.strip().splitlines()) <= 2


def test_a_strict_store_stops_at_start_when_redis_is_away():
    """B49."""
    url = "redis://:hunter2@127.0.0.1:1?strict=true"
    result = run_cli("serve", "--port", "0", "--encoder", STUB, "--store", url, timeout=30)
    assert result.returncode == 2, result.stderr
    assert "the server cannot be used" in result.stderr
    assert "hunter2" not in result.stderr


def test_redis_is_a_far_tier_behind_files(start, redis, store_folder, golden):
    far = start(store=redis.url())
    far.encode_ok([png_url(1)])
    wait_for_puts(far)
    server = start(store=[file_store(store_folder), redis.url()])
    assert server.sources([png_url(1)]) == ["store"]
    assert rows_of(server, 1) == golden[1]
    wait_for_puts(server)
    redis.kill()
    server.post("/flush?scope=local")
    assert server.sources([png_url(1)]) == ["store"], "copied to the nearer tier"


def test_the_command_line_lists_and_removes_what_redis_holds(start, redis):
    server = start(store=redis.url())
    key = server.encode_ok([png_url(1)])["items"][0]["key"]
    wait_for_puts(server)
    listed = run_cli("ls", "--store", redis.url())
    assert listed.returncode == 0 and key in listed.stdout, listed.stderr
    removed = run_cli("rm", key, "--store", redis.url())
    assert removed.returncode == 0, removed.stderr
    assert redis.values() == []
