"""vitrove doctor URL: what is wrong with a store, in words that tell an operator what to do. Real
servers that are wrong in every way that is easily got wrong."""

import contextlib
import json
import signal
import socket
import stat

import pytest
from mooncake import Cluster
from redis_server import RedisCluster, RedisServer, make_certificates
from support import free_port, run_cli, without_licence


def finding(url, **options):
    """(state, what doctor says of the store)"""
    result = run_cli("doctor", url, "--json", "--pool-size", "16MiB", **options)
    found = json.loads(result.stdout)["findings"][0]
    assert found["what"].startswith("store "), result.stdout
    assert result.returncode == (1 if found["state"] == "bad" else 0)
    return found["state"], found["says"]


def check(url, state, *says, **options):
    found, words = finding(url, **options)
    assert found == state, words
    for part in says:
        assert part in words, words
    assert "secret" not in words


@pytest.fixture(scope="module")
def redis_kinds(tmp_path_factory):
    """One of each, started once."""
    folder = tmp_path_factory.mktemp("redis")
    certificates = folder / "tls"
    make_certificates(certificates)
    kinds = {
        "open": RedisServer(folder / "open"),
        "locked": RedisServer(folder / "locked", password="secret"),
        "tls": RedisServer(folder / "tls-server", tls=certificates),
        "full": RedisServer(folder / "full", "--maxmemory", "1"),
        "cluster": RedisCluster(folder / "cluster"),
    }
    kinds["locked"]("ACL", "SETUSER", "reader", "on", ">secret2", "~vitrove:*", "+get", "+strlen",
                    "+ping", "+hello", "+select")
    kinds["locked"]("ACL", "SETUSER", "no-claims", "on", ">secret2", "~vitrove:vt1*", "+@all")
    kinds["locked"]("ACL", "SETUSER", "no-eval", "on", ">secret2", "~vitrove:*",
                    "+@all", "-eval")
    kinds["locked"]("ACL", "SETUSER", "no-parts", "on", ">secret2", "~vitrove:*",
                    "+@all", "-getrange")
    kinds["locked"]("ACL", "SETUSER", "no-look", "on", ">secret2", "~vitrove:*",
                    "+@all", "-strlen")
    kinds["replica"] = RedisServer(folder / "replica", "--replicaof",
                                   f"127.0.0.1 {kinds['open'].port}")
    yield kinds
    for server in kinds.values():
        server.stop()


def local(port, scheme="redis", login="", options=""):
    return f"{scheme}://{login}127.0.0.1:{port}{options}"


REDIS = {
    "good": (lambda k: k["open"].url(), "good", ["put, get and remove work; claims work", "used"]),
    "good_cluster": (lambda k: k["cluster"].url(), "good", ["put, get and remove work; claims work"]),
    "wrong_port": (lambda k: local(free_port()), "bad",
                   ["Connection refused", "does the server run, and on this port?"]),
    "no_such_host": (lambda k: "redis://no-such-host.invalid:6379", "bad",
                     ["no-such-host.invalid", "is not known"]),
    "no_password": (lambda k: local(k["locked"].port), "bad",
                    ["NOAUTH", "the server wants a password"]),
    "wrong_password": (lambda k: local(k["locked"].port, login=":secret3@"), "bad",
                       ["WRONGPASS", "user or password is wrong"]),
    "password_not_wanted": (lambda k: local(k["open"].port, login=":secret@"), "bad",
                            ["login refused", "the server has no password set"]),
    "no_permission": (lambda k: local(k["locked"].port, login="reader:secret2@"), "bad",
                      ["NOPERM", "docs/stores.md lists the commands"]),
    "may_not_claim": (lambda k: local(k["locked"].port, login="no-claims:secret2@"), "warning",
                      ["put, get and remove work; no claim could be made (denied",
                       "encode the same at the same time", "docs/stores.md lists the commands"]),
    "may_not_eval": (lambda k: local(k["locked"].port, login="no-eval:secret2@"), "warning",
                     ["put, get and remove work", "a claim could not be renewed (denied",
                      "a claim could not be released (denied",
                      "docs/stores.md lists the commands"]),
    "may_not_read_parts": (lambda k: local(k["locked"].port, login="no-parts:secret2@"), "good",
                           ["put, get and remove work; claims work",
                            "values above 832 KiB come whole", "NOPERM", "'getrange'",
                            "grant STRLEN and GETRANGE"]),
    "may_not_look": (lambda k: local(k["locked"].port, login="no-look:secret2@"), "bad",
                     ["could not be looked for: denied", "docs/stores.md lists the commands"]),
    "tls_to_plain": (lambda k: local(k["open"].port, "rediss"), "bad",
                     ["TLS", "is it redis:// there?"]),
    "plain_to_tls": (lambda k: local(k["tls"].tls_port), "bad", ["is it rediss:// there?"]),
    "unknown_authority": (lambda k: local(k["tls"].tls_port, "rediss"), "bad",
                          ["certificate", "tls_ca="]),
    "cluster_as_single": (lambda k: local(k["cluster"].servers[0].port), "bad",
                          ["write redis+cluster://"]),
    "single_as_cluster": (lambda k: local(k["open"].port, "redis+cluster"), "bad",
                          ["write redis://"]),
    "full": (lambda k: local(k["full"].port), "bad", ["OOM", "maxmemory-policy"]),
    "replica": (lambda k: local(k["replica"].port), "bad",
                ["READONLY", "name the server that it follows"]),
    "unknown_option": (lambda k: local(k["open"].port, options="?tls=1"), "bad", ["'tls'"]),
}


@pytest.mark.parametrize("case", REDIS)
def test_redis(redis_kinds, case):
    url, state, says = REDIS[case]
    check(url(redis_kinds), state, *says)


def test_a_redis_that_hangs(tmp_path):
    with contextlib.ExitStack() as stack:
        server = RedisServer(tmp_path)
        stack.callback(server.stop)
        server.process.send_signal(signal.SIGSTOP)
        stack.callback(server.process.send_signal, signal.SIGCONT)
        check(server.url(), "bad", "does it hang (stopped")


def test_a_redis_that_takes_no_more_clients(tmp_path):
    with contextlib.ExitStack() as stack:
        server = RedisServer(tmp_path)
        stack.callback(server.stop)
        server("CONFIG", "SET", "maxclients", "1")
        stack.enter_context(contextlib.closing(
            socket.create_connection(("127.0.0.1", server.port))))
        check(server.url(), "bad", "max number of clients reached")


def test_nothing_stays_in_redis(tmp_path):
    with contextlib.ExitStack() as stack:
        server = RedisServer(tmp_path)
        stack.callback(server.stop)
        check(server.url(), "good", "claims work")
        assert server("DBSIZE") == 0
        # What may not be released goes by itself.
        server("ACL", "SETUSER", "no-eval", "on", ">secret2", "~vitrove:*", "+@all", "-eval")
        check(local(server.port, login="no-eval:secret2@"), "warning", "could not be released")
        left = server("KEYS", "*")
        assert len(left) <= 1
        assert all(server("PTTL", key) != -1 for key in left)


def test_something_that_is_no_redis():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        check(local(silent.getsockname()[1], options="?connect_timeout=300ms"), "bad",
              "accepts connections and says nothing", "or is it no Redis?")


def test_files_in_a_folder_that_cannot_be_written(tmp_path):
    folder = tmp_path / "store"
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    check(f"file://{folder}", "bad", "Permission denied",
          "the folder must be writable", launcher=without_licence())


def names_in(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def test_claims_on_files_are_tried_by_whoever_is_no_guest(tmp_path):
    folder = tmp_path / "store"
    url = f"file://{folder}?capacity=16MiB"
    _, says = finding(f"{url}&guest=false")
    assert "put, get and remove work; claims work" in says
    before = names_in(folder)
    _, says = finding(url)
    assert "claims were not tried" in says and "who can put can claim" in says
    assert "claims work" not in says
    _, says = finding(f"{url}&guest=false")
    assert "claims work" in says
    assert names_in(folder) == before


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("mooncake"))
    try:
        cluster.start_master()
        yield cluster
    finally:
        cluster.stop()


def test_mooncake_without_a_master(cluster):
    port = free_port()
    check(f"mooncake://127.0.0.1:{port}?python={cluster.python}", "bad",
          f"no master answers at 127.0.0.1:{port}: cannot connect: Connection refused",
          "does mooncake_master run")


def test_mooncake_without_its_wheel(cluster):
    check(cluster.url(python="/usr/bin/python3"), "bad", "has no Mooncake",
          "install mooncake-transfer-engine")


def test_mooncake_without_python(cluster):
    check(cluster.url(python="/no/python"), "bad", "cannot start /no/python",
          "python= names the interpreter")


def test_mooncake_without_memory_in_the_cluster(cluster):
    check(cluster.url(), "bad", "no_space", "no memory that is lent to the cluster has room",
          "mooncake_client")


def test_mooncake_with_all_it_needs(cluster):
    cluster.start_holder()
    check(cluster.url(), "good", "put, get and remove work")


def test_mooncake_with_memory_that_hangs(cluster):
    name = "mooncake_client"
    if name not in cluster.processes:
        cluster.start_holder(name)
    cluster.processes[name].send_signal(signal.SIGSTOP)
    try:
        check(cluster.url(), "bad", "timeout", "a mooncake_client that lends memory, does not answer")
    finally:
        cluster.processes[name].send_signal(signal.SIGCONT)
