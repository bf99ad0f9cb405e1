"""Hostile names, identifiers and keys: field case B89.

Beside everything that must fail stands the nearest thing that must work, so that a server that
refuses all does not pass.
"""

import concurrent.futures
import json
import re
from pathlib import Path

import pytest

from raw_http import RawClient
from support import error_replies, file_store, in_time, png_url, wait_for_puts

pytestmark = pytest.mark.usefixtures("bystander")
MIB = 1 << 20

HOSTILE_WORDS = {
    "five megabytes": "x" * (5 * MIB), "257 characters": "x" * 257, "nothing": "",
    "a path": "../../../../../../escaped", "an absolute path": "/tmp/escaped",
    "NUL": "a\0b", "CRLF": "a\r\nX-Injected: yes\r\n\r\n", "a glob": "*?[a-z]{a,b}",
    "RESP": "\r\n*1\r\n$8\r\nFLUSHALL\r\n", "a command": "\r\nDEL x\r\n",
    "a shell": "$(touch escaped);`touch escaped`", "bytes": "\u00ff\u0100\u2028\U0001f600",
    "control characters": "\x1b[2Jgone\x7f\x08", "a format": "%s%n%x{}{0}",
    "markup": "<script>alert(1)</script>\"'",
}
HARMLESS = {"a path", "an absolute path", "a glob", "a shell", "a format", "markup"}


class Watched:
    """A server whose store lies deep in a folder of its own."""

    def __init__(self, folder, start):
        self.store = folder / "a" / "b" / "store"
        self.store.mkdir(parents=True)
        self.server = start("--trust-client-digests", store=file_store(self.store))

    def check_tree(self):
        """Nothing has come to be around the store; within, names are of our own making."""
        for parent in [*self.store.parents, self.server.folder, Path("/tmp")]:
            assert not (parent / "escaped").exists()
        around = self.store.parents[1]
        assert [p.name for p in around.rglob("*") if not p.is_relative_to(self.store)] == ["b"]
        for path in self.store.rglob("*"):
            assert re.fullmatch(r"[0-9A-Za-z._-]{1,100}", path.name), path


@pytest.fixture(scope="module")
def watched(start_shared, tmp_path_factory):
    return Watched(tmp_path_factory.mktemp("tree"), start_shared)


@pytest.fixture(scope="module")
def server(watched):
    """Where the bystander stands."""
    return watched.server


@pytest.mark.parametrize("name", HOSTILE_WORDS)
def test_a_hostile_req_id_is_refused_or_harmless(watched, name):
    """B89: length and characters are limited; names of files come from digests alone."""
    word, server = HOSTILE_WORDS[name], watched.server
    reply = server.encode([png_url(890)], req_id=word)
    assert server.encode([png_url(889)]).status == 200
    if name in HARMLESS:
        assert reply.status == 200
        assert reply.json["req_id"] == word
    else:
        assert reply.status == 400
        assert len(reply.error["req_id"]) < 100
    assert "x-injected" not in reply.headers
    wait_for_puts(server)
    watched.check_tree()
    assert not re.search(r"^(X-Injected|DEL x|\*1)", server.log, re.MULTILINE)
    assert "\x1b" not in server.log


@pytest.mark.parametrize("name", HOSTILE_WORDS)
@pytest.mark.parametrize("place", ["digest", "hash", "modality", "return", "field", "kwarg", "url"])
def test_hostile_words_anywhere_else_are_refused(watched, name, place):
    """B89."""
    word, server = HOSTILE_WORDS[name], watched.server
    body = {
        "digest": {"mm_items": [{"digest": word}]},
        "hash": {"mm_items": [png_url(1)], "hashes": [word]},
        "modality": {"mm_items": [png_url(1)], "modality": word},
        "return": {"mm_items": [png_url(1)], "return": word},
        "field": {"mm_items": [png_url(1)], word or " ": 1},
        "kwarg": {"mm_items": [png_url(1)], "mm_processor_kwargs": {word or " ": 1}},
        "url": {"mm_items": [word]},
    }[place]
    # What is wrong may be quoted, and then these words are the client's own.
    reply = server.post("/encode", body)
    error_replies.clear()
    assert 400 <= reply.status < 500, reply.body[:300]
    assert len(reply.body) < 2000
    assert "x-injected" not in reply.headers
    assert server.encode([png_url(1)]).status == 200
    watched.check_tree()


@pytest.mark.parametrize("key", [
    "..%2f..%2fetc%2fpasswd", "vt1-..%2f..%2f" + "0" * 52, "vt1-" + "G" * 64, "vt1-" + "0" * 63,
    "vt1-" + "0" * 65, "VT1-" + "0" * 64, "vt1-" + "A" * 64, "*", "vt1-*", "%00",
    "vt1-" + "0" * 5000, "%0d%0aDEL%20x", "vt1-" + "0" * 60 + "%00%00"])
def test_a_hostile_key_is_refused(watched, key):
    """B89: for looking and for removing; the right spelling finds its value."""
    server = watched.server
    good = server.encode_ok([png_url(891)])["items"][0]["key"]
    for method in ("GET", "DELETE"):
        assert server.request(method, f"/embeddings/{key}").status in (400, 404)
    assert server.get(f"/embeddings/{good}").status == 200


@pytest.mark.parametrize("model", ["..", "*/../*", "x" * 5000, "%00", "%0d%0aFLUSHALL", "?",
                                   "a" * 63])
def test_a_hostile_model_flushes_nothing(watched, model):
    """B89."""
    server = watched.server
    server.encode_ok([png_url(892)])
    wait_for_puts(server)
    assert server.post(f"/flush?scope=store&model={model}").status == 400
    server.post("/flush?scope=local")
    assert server.sources([png_url(892)]) == ["store"]


def test_hostile_words_do_not_slow_others_down(watched):
    """B89: five megabytes again and again beside small requests."""
    server = watched.server
    huge = json.dumps({"mm_items": [png_url(1)], "req_id": "x" * (5 * MIB)})
    server.encode_ok([png_url(893)])
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        storm = [pool.submit(server.post, "/encode", huge) for _ in range(6)]
        while not all(job.done() for job in storm):
            assert in_time(1, lambda: server.encode([png_url(893)])).status == 200
        assert {job.result().status for job in storm} == {400}


@pytest.mark.parametrize("word", ["a\r\nX-Injected: yes", "\0", "x" * 300])
def test_a_hostile_request_header_is_dropped(watched, word):
    """B89: X-Request-Id is echoed only when it is clean."""
    with RawClient(watched.server.port) as client:
        client.send(b"GET /health HTTP/1.1\r\nHost: x\r\nX-Request-Id: " + word.encode()
                    + b"\r\nConnection: close\r\n\r\n")
        answer = client.read(65536)
    head = answer.split(b"\r\n\r\n")[0]
    assert re.match(rb"HTTP/1.1 (200|400) ", head)
    assert b"X-Injected" not in head
    assert word.encode() not in answer
