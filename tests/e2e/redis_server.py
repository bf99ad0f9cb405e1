"""Real redis-server processes, a client that is just enough for the tests, and a proxy that harms.

redis-server is Debian's, or the one that scripts/setup.sh finds in redis-tools: no service is needed.
"""

import contextlib
import signal
import socket
import subprocess
import threading
import urllib.parse
from pathlib import Path

from support import TIME_FACTOR, free_port, seconds, wait_until


# Beyond what a busy machine keeps a node from answering for, which is no reason for a failover.
NODE_TIMEOUT_MS = int(5000 * min(TIME_FACTOR, 2))


class RedisError(Exception):
    pass


class RedisClient:
    """One connection; call it with the words of a command. Bulk replies are bytes."""

    def __init__(self, port, password=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=seconds(60))
        self.stream = self.socket.makefile("rb")
        if password:
            self("AUTH", password)

    def close(self):
        self.stream.close()
        self.socket.close()

    def __call__(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words)
                            + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        return self.read()

    def read(self):
        line = self.stream.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("redis-server hung up")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RedisError(rest.decode())
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.stream.read(int(rest) + 2)[:-2]
        return [self.read() for _ in range(int(rest))]


class RedisServer:
    """A server on a port and in a directory of its own."""

    def __init__(self, folder, *arguments, password=None, tls=None):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.password = password
        self.tls = tls
        self.tls_port = free_port() if tls else None
        self.arguments = [*arguments]
        if password:
            self.arguments += ["--requirepass", password]
        if tls:
            self.arguments += ["--tls-port", self.tls_port, "--tls-auth-clients", "no",
                               "--tls-ca-cert-file", tls / "ca.crt",
                               "--tls-cert-file", tls / "server.crt",
                               "--tls-key-file", tls / "server.key"]
        self.process = None
        self.start()

    def start(self, wait=True):
        command = ["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--dir", self.folder,
                   "--save", "", "--appendonly", "no", "--logfile", "redis.log", *self.arguments]
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL)
        if wait:
            wait_until(self.answers, 60, "redis-server to answer")

    def is_loading(self):
        """Its file, still."""
        try:
            self("PING")
        except RedisError as error:
            return str(error).startswith("LOADING")
        except OSError:
            pass
        return False

    def answers(self):
        assert self.process.poll() is None, (self.folder / "redis.log").read_text()
        try:
            return self("PING") == b"PONG"
        except (OSError, RedisError):
            return False

    def __call__(self, *words):
        with contextlib.closing(RedisClient(self.port, self.password)) as client:
            return client(*words)

    def url(self, scheme=None, port=None, **options):
        scheme = scheme or ("rediss" if self.tls else "redis")
        login = f":{urllib.parse.quote(self.password, safe='')}@" if self.password else ""
        if self.tls:
            options.setdefault("tls_ca", self.tls / "ca.crt")
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return (f"{scheme}://{login}127.0.0.1:{port or self.tls_port or self.port}"
                + (f"?{query}" if query else ""))

    def keys(self):
        """All but claims, which come and go."""
        return sorted(key.decode() for key in self("KEYS", "*") if b"claim:vt1-" not in key)

    def values(self):
        """Keys of embeddings; aliases are shorter."""
        return [key for key in self.keys() if self("STRLEN", key) > 1024]

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()


class RedisCluster:
    """Three masters that share the slots."""

    BOUNDS = [0, 5461, 10923, 16384]

    def __init__(self, folder, password=None, tls=None):
        self.folder, self.password, self.tls = Path(folder), password, tls
        self.servers = []
        for i in range(3):
            server = self.add_server()
            server("CLUSTER", "ADDSLOTSRANGE", self.BOUNDS[i], self.BOUNDS[i + 1] - 1)
        wait_until(self.is_whole, 60, "the cluster to be whole")

    def add_server(self):
        """One more, which knows the first."""
        number = len(self.servers)
        arguments = ["--cluster-enabled", "yes", "--cluster-port", free_port(),
                     "--cluster-node-timeout", NODE_TIMEOUT_MS,
                     "--cluster-require-full-coverage", "no"]
        if self.tls:
            arguments += ["--tls-cluster", "yes", "--tls-replication", "yes"]
        if self.password:
            arguments += ["--masterauth", self.password]
        server = RedisServer(self.folder / f"node-{number}", *arguments, password=self.password,
                             tls=self.tls)
        self.servers.append(server)
        server("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        if number > 0:
            first = self.servers[0]
            bus = first("CONFIG", "GET", "cluster-port")[1]
            server("CLUSTER", "MEET", "127.0.0.1", first.tls_port or first.port, bus)
        return server

    def add_replica(self, master):
        replica = self.add_server()
        master_id = master("CLUSTER", "MYID").decode()
        wait_until(lambda: master_id.encode() in replica("CLUSTER", "NODES"), 60, "acquaintance")
        wait_until(self.is_whole, 60, "the cluster to be whole")
        replica("CLUSTER", "REPLICATE", master_id)
        wait_until(lambda: b"master_link_status:up" in replica("INFO", "replication"), 60,
                   "the replica to follow")
        return replica

    def is_whole(self):
        return all(b"cluster_state:ok" in info and b"cluster_slots_ok:16384" in info
                   and b"cluster_known_nodes:%d" % len(self.servers) in info
                   for info in (server("CLUSTER", "INFO") for server in self.servers))

    def url(self, **options):
        first = self.servers[0]
        return first.url(scheme="rediss+cluster" if first.tls else "redis+cluster", **options)

    def keys(self):
        return sorted(key for server in self.servers for key in server.keys())

    def values(self):
        return sorted(key for server in self.servers for key in server.values())

    def move_slot(self, slot, source, target):
        """A slot with its keys, as operators' tools do it."""
        target_id = target("CLUSTER", "MYID").decode()
        target("CLUSTER", "SETSLOT", slot, "IMPORTING", source("CLUSTER", "MYID").decode())
        source("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)
        login = ["AUTH", source.password] if source.password else []
        for key in source("CLUSTER", "GETKEYSINSLOT", slot, 1000):
            source("MIGRATE", "127.0.0.1", target.tls_port or target.port, key, 0, 10000, *login)
        for server in [target, source, *self.servers]:
            server("CLUSTER", "SETSLOT", slot, "NODE", target_id)

    def stop(self):
        for server in self.servers:
            server.stop()


def make_certificates(folder):
    """ca.crt, server.crt and server.key for 127.0.0.1."""
    folder = Path(folder)
    folder.mkdir(parents=True)

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    for name in ("ca", "server"):
        openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")
    openssl("req", "-x509", "-new", "-key", "ca.key", "-subj", "/CN=test-ca", "-days", "2",
            "-out", "ca.crt")
    openssl("req", "-new", "-key", "server.key", "-subj", "/CN=server", "-out", "server.csr")
    (folder / "extensions").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
            "-CAcreateserial", "-days", "2", "-extfile", "extensions", "-out", "server.crt")
    return folder


class HarmfulProxy:
    """Stands before a server and calls on_reply(command words, reply bytes) for each pair; what
    that returns goes to the client. Understands what the store sends: pipelined commands, and
    replies of one value each."""

    def __init__(self, server, on_reply):
        self.server, self.on_reply = server, on_reply
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.ended = False
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.ended:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client, contextlib.suppress(OSError, ValueError):
            upstream = socket.create_connection(("127.0.0.1", self.server.port))
            with upstream, client.makefile("rb") as commands, upstream.makefile("rb") as replies:
                while True:
                    command, raw = self.take(commands)
                    upstream.sendall(raw)
                    _, answer = self.take(replies)
                    client.sendall(self.on_reply(command, answer))

    def take(self, stream):
        """The next command or reply: its words, and its bytes."""
        line = stream.readline()
        if not line:
            raise OSError("end")
        if line[:1] == b"$" and line != b"$-1\r\n":
            body = stream.read(int(line[1:]) + 2)
            return [body[:-2]], line + body
        if line[:1] == b"*":
            parts = [self.take(stream) for _ in range(int(line[1:]))]
            return [word for words, _ in parts for word in words[:1]], line + b"".join(raw for _, raw in parts)
        return [line[1:-2]], line

    def stop(self):
        self.ended = True
        self.listener.close()


