"""What a server must not fetch, and not listen to: field cases B80 and B86.

Beside everything that must fail stands the nearest thing that must work, so that a server that
refuses all does not pass.
"""

import contextlib
import os
import re
import socket
from pathlib import Path

import pytest

import network
from bystander import Bystander
from clips import SAMPLES
from origin import Origin, content, redirect
from raw_http import RawClient
from support import Servers, png, png_url

MODALITIES = ["image", "video", "audio"]


@pytest.fixture(scope="module")
def server(start_shared):
    return start_shared()


# B80

PUBLIC, METADATA, PRIVATE = "93.184.216.34", "169.254.169.254", "10.1.2.3"

# Ways to say "an address that is not public"; {port} is one that a canary listens on.
FORBIDDEN_HOSTS = [
    "127.0.0.1", "127.0.0.2", "127.255.255.254", "127.1", "2130706433", "0x7f000001", "0x7f.1",
    "0177.0.0.1", "017700000001", "0.0.0.0", "0", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "localhost",
    "LOCALHOST", "localhost.", "127.0.0.1.", "169.254.169.254", "[::ffff:a9fe:a9fe]", "2852039166",
    "0xa9fea9fe", "10.1.2.3", "0xa010203", "[fd00::1]", "[fe80::1%25lo]", "127.0.0%2E1",
    "%31%32%37.0.0.1", "\u2460\u2461\u2466.0.0.1", "127。0。0。1",
]
MALFORMED_URLS = [
    "http:127.0.0.1:{port}/canary", "http:///127.0.0.1:{port}/canary",
    "//127.0.0.1:{port}/canary", "http:\\\\127.0.0.1:{port}\\canary",
    "http://93.184.216.34:{port}@127.0.0.1:{port}/canary",
    "http://127.0.0.1:{port}#@93.184.216.34/canary", "http://127.0.0.1:{port}\t/canary",
    " http://127.0.0.1:{port}/canary", "ftp://127.0.0.1:{port}/canary",
    "gopher://127.0.0.1:{port}/_canary", "dict://127.0.0.1:{port}/canary",
    "http+unix://127.0.0.1:{port}/canary", "http://user:secret@127.0.0.1:{port}/canary",
]


class World:
    """A network in which every address of this file is real, an origin that listens on all of them,
    a server that was started with nothing special, and one that may fetch from anywhere."""

    def __init__(self, internet, folder):
        self.inside = internet.inside
        self.servers = Servers(folder)
        with self.inside():
            self.origin = Origin("::")
            self.guarded = self.servers()
            self.open = self.servers("--allow-private-media")
        self.origin.serve("/canary", content(png(800)))
        self.origin.serve("/picture.png", content(png(801)))

    def close(self):
        with self.inside():
            self.servers.finish()
            self.origin.close()

    def url(self, host, path="/canary"):
        return self.origin.url(path, host)


@pytest.fixture(scope="module")
def world(tmp_path_factory, namespaces):
    addresses = [f"{PUBLIC}/32", f"{METADATA}/32", f"{PRIVATE}/32", "fd00::1/128",
                 "64:ff9b::7f00:1/128"]
    with network.Internet(*addresses) as internet:
        here = World(internet, tmp_path_factory.mktemp("world"))
        yield here
        here.close()


@pytest.fixture
def company(world):
    """Somebody else's good requests; their thread stays in the network that it was started in."""
    with contextlib.ExitStack() as others:
        with world.inside():
            others.enter_context(Bystander(world.guarded))
        yield


@pytest.mark.usefixtures("company")
@pytest.mark.parametrize("modality", MODALITIES)
@pytest.mark.parametrize("host", FORBIDDEN_HOSTS)
def test_no_spelling_of_a_private_address_is_fetched(world, host, modality):
    """B80: refused before a single connection is made, and so is each redirect to there."""
    with world.inside():
        reply = world.guarded.encode([world.url(host)], modality=modality)
        assert 400 <= reply.status < 500, reply.body
        assert reply.error["item"] == 0
        world.origin.serve("/bounce", redirect(world.url(host)))
        reply = world.guarded.encode([world.url(PUBLIC, "/bounce")], modality=modality)
        assert 400 <= reply.status < 500, reply.body
        assert world.guarded.encode([world.url(PUBLIC, "/picture.png")]).status == 200
    assert world.origin.hits["/canary"] == 0


@pytest.mark.usefixtures("company")
@pytest.mark.parametrize("modality", MODALITIES)
@pytest.mark.parametrize("url", MALFORMED_URLS)
def test_no_trick_of_spelling_gets_a_private_address_fetched(world, url, modality):
    """B80."""
    url = url.format(port=world.origin.port)
    with world.inside():
        assert 400 <= world.guarded.encode([url], modality=modality).status < 500
        world.origin.serve("/bounce", redirect(url.strip().replace("\t", "")))
        bounced = world.guarded.encode([world.url(PUBLIC, "/bounce")], modality=modality)
        assert 400 <= bounced.status < 500
    assert world.origin.hits["/canary"] == 0


@pytest.mark.usefixtures("company")
@pytest.mark.parametrize("modality", MODALITIES)
def test_the_canary_can_sing(world, modality):
    """The other half of the tests above: the very same forms reach it once they may."""
    path = f"/free-{modality}"
    world.origin.serve(path, content(SAMPLES[modality]))
    with world.inside():
        for host in ("127.0.0.1", "127.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]",
                     "localhost", METADATA, PRIVATE, "[fd00::1]", "[64:ff9b::7f00:1]"):
            reply = world.open.encode([world.url(host, path)], modality=modality)
            assert reply.status == 200, host
    assert world.origin.hits[path] == 11


@pytest.mark.usefixtures("company")
@pytest.mark.parametrize("modality", MODALITIES)
def test_public_media_need_no_permission_and_follow_redirects(world, modality):
    """B80: the fix must not break users."""
    world.origin.serve("/good", content(SAMPLES[modality]))
    world.origin.serve("/moved", redirect("/good"))
    world.origin.serve("/moved-whole", redirect(world.url(PUBLIC, "/good"), 308))
    with world.inside():
        for path in ("/good", "/moved", "/moved-whole"):
            reply = world.guarded.encode([world.url(PUBLIC, path)], modality=modality)
            assert reply.status == 200


@pytest.mark.usefixtures("company")
def test_only_listed_hosts_are_fetched_from(world, start):
    """B80: the list holds for each hop, and does not make a private address public."""
    world.origin.serve("/same", redirect("/picture.png"))
    world.origin.serve("/elsewhere", redirect(world.url(PRIVATE, "/canary")))
    with world.inside():
        listed = start("--allow-private-media", "--allowed-media-domains", PUBLIC)
        with Bystander(listed):
            assert listed.encode([world.url(PUBLIC, "/same")]).status == 200
            assert listed.encode([world.url("127.0.0.1")]).status == 403
            assert listed.encode([world.url(PUBLIC, "/elsewhere")]).status == 403
            assert listed.encode([world.url(f"{PUBLIC}.evil.example")]).status == 403
        strict = start("--allowed-media-domains", "127.0.0.1",
                       "--allowed-media-domains", "localhost")
        with Bystander(strict):
            assert strict.encode([world.url("127.0.0.1")]).status == 403
            assert strict.encode([world.url("localhost")]).status == 424
        assert listed.stop() == 0 and strict.stop() == 0
    assert world.origin.hits["/canary"] == 0


@pytest.mark.usefixtures("company")
def test_a_name_is_as_private_as_what_it_resolves_to(world, start, tmp_path):
    """B80: names that lead inside, and one that changes its mind between two lookups."""
    world.origin.serve("/rebound", content(png(803)))
    with world.inside():
        names = network.NameServer(
            {"troubled.example.com"}, good_example_com=[PUBLIC], evil_example_com=["127.0.0.1"],
            metadata_example_com=[METADATA], rebinding_example_com=[PUBLIC, "127.0.0.1"])
        try:
            server = start(launcher=network.resolver_launcher(tmp_path))
            with Bystander(server):
                assert server.encode([world.url("good.example.com", "/picture.png")]).status == 200
                answers = [server.encode([world.url(name)]) for name in
                           ("evil.example.com", "metadata.example.com", "nobody.example.com",
                            "troubled.example.com")]
                assert {(a.status, a.error["message"]) for a in answers} == {
                    (424, answers[0].error["message"])}, "no telling which mean something inside"
                rebinding = world.url("rebinding.example.com", "/rebound")
                statuses = [server.encode([rebinding]).status for _ in range(4)]
            assert statuses[0] == 200 and set(statuses) <= {200, 424}
            assert server.stop() == 0
        finally:
            names.close()
    assert world.origin.reached["/rebound"] == {PUBLIC}
    assert world.origin.hits["/canary"] == 0


@pytest.mark.usefixtures("company")
def test_a_resolver_that_is_away_is_a_424(world, start, tmp_path):
    """B12: an outage of names is no refusal; the next request after it is served."""
    with world.inside():
        server = start(launcher=network.resolver_launcher(tmp_path))
        with Bystander(server):
            assert server.encode([world.url("good.example.com", "/picture.png")]).status == 424
        names = network.NameServer(good_example_com=[PUBLIC])
        try:
            assert server.encode([world.url("good.example.com", "/picture.png")]).status == 200
            assert server.stop() == 0
        finally:
            names.close()


@pytest.mark.usefixtures("company")
def test_proxies_of_the_environment_are_not_a_way_out(world, start):
    """B80: a proxy would connect wherever it is told."""
    with world.inside():
        proxy = world.url("127.0.0.1", "")
        server = start(env={name: proxy for name in ("http_proxy", "HTTP_PROXY", "all_proxy")})
        before = world.origin.hits.copy()
        with Bystander(server):
            assert server.encode([world.url("127.0.0.1")]).status == 403
            assert server.encode([world.url(PUBLIC, "/picture.png")]).status == 200
        assert server.stop() == 0
    assert world.origin.hits - before == {"/picture.png": 1}


# B86: see test_hostile_store.py for what is stored

def listening_sockets(pid):
    """(address, port) of every TCP socket that a process listens on."""
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(entry))
            if found:
                inodes.add(found[1])
    found = []
    for table, size in (("tcp", 4), ("tcp6", 16)):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] != "0A" or words[9] not in inodes:
                continue
            address, port = words[1].split(":")
            raw = bytes.fromhex(address)
            raw = b"".join(raw[i:i + 4][::-1] for i in range(0, size, 4))
            family = socket.AF_INET if size == 4 else socket.AF_INET6
            found.append((socket.inet_ntop(family, raw), int(port, 16)))
    return found


@pytest.mark.usefixtures("bystander")
def test_a_server_listens_on_loopback_and_nowhere_else(server, start):
    """B86."""
    assert listening_sockets(server.process.pid) == [("127.0.0.1", server.port)]
    told = start("--host", "0.0.0.0")
    assert listening_sockets(told.process.pid) == [("0.0.0.0", told.port)], "unless told otherwise"


@pytest.mark.usefixtures("bystander")
@pytest.mark.parametrize("garbage", [
    b"\0" * 1000, b"\x80\x04\x95cbuiltins\neval\n.", b"\xff" * 5000, b"GET / HTTP/9.9\r\n\r\n",
    b"POST /encode HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"POST /encode HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", b"\r\n" * 5000,
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n", b"*1\r\n$8\r\nFLUSHALL\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
], ids=lambda garbage: repr(garbage[:24]))
def test_garbage_on_the_port_is_dropped(server, garbage):
    """B86: answered with an error or not at all, and never carried out."""
    with RawClient(server.port) as client:
        with contextlib.suppress(OSError):
            client.send(garbage)
            client.socket.shutdown(socket.SHUT_WR)
            answer = client.read(4096)
            assert not answer or re.match(rb"HTTP/1.1 (4|5)\d\d ", answer), answer
    assert server.encode([png_url(1)]).status == 200
