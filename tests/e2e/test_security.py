"""What a server must not fetch, read, swallow or listen to: field cases B80 to B86.

Beside everything that must fail stands the nearest thing that must work, so that a server that
refuses all does not pass.
"""

import concurrent.futures
import contextlib
import itertools
import os
import re
import socket
import time
from pathlib import Path

import pytest

import network
import odd_media
import origin as faults
from local_files import FILE_URLS, allowed_folder
from origin import Origin, content, redirect
from raw_http import RawClient
from support import (MEMORY_FACTOR, TINY_VIT, Servers, data_url, in_time, png, png_url,
                     seconds, wait_until)

MIB = 1 << 20
MEMORY_ALLOWED = 300 * MIB * MEMORY_FACTOR
FLAT = 64 * MIB * MEMORY_FACTOR


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


@pytest.mark.parametrize("host", FORBIDDEN_HOSTS)
def test_no_spelling_of_a_private_address_is_fetched(world, host):
    """B80: refused before a single connection is made, and so is each redirect to there."""
    with world.inside():
        reply = world.guarded.encode([world.url(host)])
        assert 400 <= reply.status < 500, reply.body
        assert reply.error["item"] == 0
        world.origin.serve("/bounce", redirect(world.url(host)))
        reply = world.guarded.encode([world.url(PUBLIC, "/bounce")])
        assert 400 <= reply.status < 500, reply.body
        assert world.guarded.encode([world.url(PUBLIC, "/picture.png")]).status == 200
    assert world.origin.hits["/canary"] == 0


@pytest.mark.parametrize("url", MALFORMED_URLS)
def test_no_trick_of_spelling_gets_a_private_address_fetched(world, url):
    """B80."""
    url = url.format(port=world.origin.port)
    with world.inside():
        assert 400 <= world.guarded.encode([url]).status < 500
        world.origin.serve("/bounce", redirect(url.strip().replace("\t", "")))
        assert 400 <= world.guarded.encode([world.url(PUBLIC, "/bounce")]).status < 500
    assert world.origin.hits["/canary"] == 0


@pytest.mark.parametrize("modality", ["image", "video", "audio"])
def test_no_modality_is_a_way_round(world, modality):
    """B80."""
    with world.inside():
        for host in ("127.0.0.1", METADATA, "localhost"):
            item = {"url": world.url(host), "modality": modality}
            assert 400 <= world.guarded.encode([item]).status < 500
    assert world.origin.hits["/canary"] == 0


def test_the_canary_can_sing(world):
    """The other half of the tests above: the very same forms reach it once they may."""
    world.origin.serve("/free", content(png(802)))
    with world.inside():
        for host in ("127.0.0.1", "127.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]",
                     "localhost", METADATA, PRIVATE, "[fd00::1]", "[64:ff9b::7f00:1]"):
            assert world.open.encode([world.url(host, "/free")]).status == 200, host
    assert world.origin.hits["/free"] == 11


def test_public_media_need_no_permission_and_follow_redirects(world):
    """B80: the fix must not break users."""
    world.origin.serve("/moved", redirect("/picture.png"))
    world.origin.serve("/moved-whole", redirect(world.url(PUBLIC, "/picture.png"), 308))
    with world.inside():
        for path in ("/picture.png", "/moved", "/moved-whole"):
            assert world.guarded.encode([world.url(PUBLIC, path)]).status == 200


def test_only_listed_hosts_are_fetched_from(world, start):
    """B80: the list holds for each hop, and does not make a private address public."""
    world.origin.serve("/same", redirect("/picture.png"))
    world.origin.serve("/elsewhere", redirect(world.url(PRIVATE, "/canary")))
    with world.inside():
        listed = start("--allow-private-media", "--allowed-media-domains", PUBLIC)
        assert listed.encode([world.url(PUBLIC, "/same")]).status == 200
        assert listed.encode([world.url("127.0.0.1")]).status == 403
        assert listed.encode([world.url(PUBLIC, "/elsewhere")]).status == 403
        assert listed.encode([world.url(f"{PUBLIC}.evil.example")]).status == 403
        strict = start("--allowed-media-domains", "127.0.0.1",
                       "--allowed-media-domains", "localhost")
        assert strict.encode([world.url("127.0.0.1")]).status == 403
        assert strict.encode([world.url("localhost")]).status == 424
        assert listed.stop() == 0 and strict.stop() == 0
    assert world.origin.hits["/canary"] == 0


def test_a_name_is_as_private_as_what_it_resolves_to(world, start, tmp_path):
    """B80: names that lead inside, and one that changes its mind between two lookups."""
    world.origin.serve("/rebound", content(png(803)))
    with world.inside():
        names = network.NameServer(
            {"troubled.example.com"}, good_example_com=[PUBLIC], evil_example_com=["127.0.0.1"],
            metadata_example_com=[METADATA], rebinding_example_com=[PUBLIC, "127.0.0.1"])
        try:
            server = start(launcher=network.resolver_launcher(tmp_path))
            assert server.encode([world.url("good.example.com", "/picture.png")]).status == 200
            answers = [server.encode([world.url(name)]) for name in
                       ("evil.example.com", "metadata.example.com", "nobody.example.com",
                        "troubled.example.com")]
            assert {(a.status, a.error["message"]) for a in answers} == {
                (424, answers[0].error["message"])}, "no telling which names mean something inside"
            rebinding = world.url("rebinding.example.com", "/rebound")
            statuses = [server.encode([rebinding]).status for _ in range(4)]
            assert statuses[0] == 200 and set(statuses) <= {200, 424}
            assert server.stop() == 0
        finally:
            names.close()
    assert world.origin.reached["/rebound"] == {PUBLIC}
    assert world.origin.hits["/canary"] == 0


def test_a_resolver_that_is_away_is_a_424(world, start, tmp_path):
    """B12: an outage of names is no refusal; the next request after it is served."""
    with world.inside():
        server = start(launcher=network.resolver_launcher(tmp_path))
        assert server.encode([world.url("good.example.com", "/picture.png")]).status == 424
        names = network.NameServer(good_example_com=[PUBLIC])
        try:
            assert server.encode([world.url("good.example.com", "/picture.png")]).status == 200
            assert server.stop() == 0
        finally:
            names.close()


def test_proxies_of_the_environment_are_not_a_way_out(world, start):
    """B80: a proxy would connect wherever it is told."""
    with world.inside():
        proxy = world.url("127.0.0.1", "")
        server = start(env={name: proxy for name in ("http_proxy", "HTTP_PROXY", "all_proxy")})
        before = world.origin.hits.copy()
        assert server.encode([world.url("127.0.0.1")]).status == 403
        assert server.encode([world.url(PUBLIC, "/picture.png")]).status == 200
        assert server.stop() == 0
    assert world.origin.hits - before == {"/picture.png": 1}


# B82

@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return allowed_folder(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def reading(start_shared, files):
    return start_shared("--allowed-local-media-path", str(files))


@pytest.mark.parametrize("path", ["picture.png", "deep/picture.png", "with%20space.png",
                                  "inner-link.png", "deep/../picture.png", "./picture.png"])
def test_files_below_the_allowed_folder_are_read(reading, files, path):
    """B82, the good half. Going up and down again below the root may be refused as well."""
    reply = reading.encode([f"file://{files}/{path}"])
    assert reply.status == 200 or (".." in path and reply.status == 404)


def test_a_file_url_may_name_localhost(reading, files):
    assert reading.encode([f"file://localhost{files}/picture.png"]).status == 200


@pytest.mark.parametrize("url", FILE_URLS)
def test_no_other_file_is_read(reading, server, files, url):
    """B82: neither with an allowed folder nor, of course, without one."""
    for target in (reading, server):
        reply = in_time(1, lambda: target.encode([url.format(root=files)]))
        assert 400 <= reply.status < 500, reply.body
        assert reply.error["item"] == 0
    assert reading.encode([f"file://{files}/picture.png"]).status == 200


def test_missing_and_forbidden_files_look_alike(reading, files):
    """B82: a reply does not tell what exists."""
    def answer(url):
        reply = reading.encode([url], req_id="same")
        return reply.status, reply.json

    missing = answer(f"file://{files}/no-such.png")
    assert missing[0] == 404
    for url in ("file:///etc/passwd", "file:///etc/no-such", "file:///root/.ssh/id_rsa",
                f"file://{files}/link-out.png", f"file://{files}/fifo.png", f"file://{files}/deep",
                f"file://{files}/../secret.png", f"file://{files}-too/picture.png"):
        assert answer(url) == missing, url


def test_files_are_off_by_default(server, files):
    """B82."""
    assert server.encode([f"file://{files}/picture.png"]).status == 403
    assert server.encode([png_url(821)]).status == 200


def test_a_redirect_does_not_lead_to_a_file(start, files):
    """B82: not even where files may be read."""
    with Origin() as origin:
        server = start("--allow-private-media", "--allowed-local-media-path", str(files))
        url = origin.serve("/to-file", redirect(f"file://{files}/picture.png"))
        assert 400 <= server.encode([url]).status < 500
        assert server.encode([f"file://{files}/picture.png"]).status == 200


# B83

@pytest.mark.parametrize("name", odd_media.BOMBS)
def test_a_bomb_is_refused_from_its_header(server, name):
    """B83: singly."""
    make, statuses = odd_media.BOMBS[name]
    url = data_url(make())
    server.encode_ok([png_url(1)])
    server.reset_peak()
    before = server.memory()
    reply = in_time(0.2, lambda: server.encode([url]))
    assert reply.status in statuses, reply.body
    assert server.memory("VmHWM") - before < MEMORY_ALLOWED
    assert server.encode([png_url(1)]).status == 200


def test_fifty_bombs_at_once_are_fifty_refusals(server):
    """B83: with good requests between them."""
    names = sorted(name for name, (_, statuses) in odd_media.BOMBS.items() if 200 not in statuses)
    urls = {name: data_url(odd_media.BOMBS[name][0]()) for name in names}
    server.encode_ok([png_url(1)])
    server.reset_peak()
    before = server.memory()
    chosen = [names[i % len(names)] for i in range(50)]
    with concurrent.futures.ThreadPoolExecutor(60) as pool:
        bombs = [pool.submit(server.encode, [urls[name]]) for name in chosen]
        good = [pool.submit(server.encode, [png_url(830 + i)]) for i in range(10)]
        assert [job.result().status for job in good] == [200] * 10
        for name, job in zip(chosen, bombs):
            assert job.result().status in odd_media.BOMBS[name][1], name
    assert server.memory("VmHWM") - before < MEMORY_ALLOWED


def test_the_limit_of_pixels_is_the_operators(start):
    """B83: one pixel makes the difference."""
    server = start("--max-image-pixels", "10000")
    assert server.encode([png_url(831, 100, 100)]).status == 200
    for width, height in ((101, 100), (100, 101), (10001, 1)):
        reply = server.encode([png_url(831, width, height)])
        assert reply.status == 413
        assert "10000" in reply.error["message"]


def test_a_small_picture_is_not_blown_up_by_preprocessing(start):
    """B83: neither by parameters nor by its shape."""
    server = start(encoder=TINY_VIT)
    server.encode_ok([png_url(1)])
    server.reset_peak()
    before = server.memory()
    for width, height in ((1, 60000), (60000, 1)):  # at its scale, 245 megapixels; most are cropped
        thin = odd_media.raw_png(width, height, 8, odd_media.GRAY, bytes(60000))
        assert server.encode([data_url(thin)]).status in (200, 400, 413)
        whole = {"do_center_crop": False}
        assert server.encode([data_url(thin)], mm_processor_kwargs=whole).status in (400, 413)
    for size in ({"shortest_edge": 60000}, {"height": 60000, "width": 60000},
                 {"height": 2**31 - 1, "width": 2**31 - 1}):
        reply = server.encode([png_url(832)], mm_processor_kwargs={"size": size})
        assert reply.status in (400, 413)
    assert server.memory("VmHWM") - before < MEMORY_ALLOWED
    assert server.encode([png_url(832)]).status == 200


# B85

CAP = 2 * MIB


@pytest.fixture(scope="module")
def origin():
    with Origin() as running:
        yield running


@pytest.fixture(scope="module")
def capped(start_shared, files):
    return start_shared("--allow-private-media", "--max-item-bytes", str(CAP), "--fetch-timeout",
                        "1500ms", "--allowed-local-media-path", str(files))


DOWNLOADS = {
    "endless chunks": (faults.endless_chunked(), {413}),
    "endless, no length": (faults.endless(), {413}),
    "ten gigabytes promised": (faults.huge_promise(10 << 30), {413}),
    "one byte too many promised": (faults.huge_promise(CAP + 1), {413}),
    "more than promised": (faults.longer_than_declared(png(850), 40), {400, 415}),
    "a gzip bomb": (faults.gzip_bomb(512), {415}),
    "endless head": (faults.endless_head(), {424}),
    "an endless error page": (faults.healing(9, lambda exchange: endless_error(exchange),
                                             faults.status(404)), {424}),
}


def endless_error(exchange):
    exchange.head(404)
    while exchange.pause(0):
        exchange.send(bytes(faults.PIECE))


@pytest.mark.parametrize("name", DOWNLOADS)
def test_a_download_ends_at_the_cap(capped, origin, name):
    """B85: in bounded time, memory and traffic; the connection is closed."""
    behaviour, statuses = DOWNLOADS[name]
    path = f"/{name.replace(' ', '-').replace(',', '')}"
    url = origin.serve(path, behaviour)
    capped.encode_ok([png_url(1)])
    capped.reset_peak()
    before = capped.memory()
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(capped.encode, [url])
        assert capped.encode([png_url(2)]).status == 200
        reply = waiting.result()
    assert time.monotonic() - started < seconds(10)
    assert reply.status in statuses, reply.body
    assert capped.memory("VmHWM") - before < FLAT

    def sent():
        return origin.sent[path]

    # What the kernels of both sides hold in flight comes on top of what was read.
    wait_until(lambda: sent() == (time.sleep(0.05), sent())[1], 10, "the origin to notice")
    assert sent() < 3 * (CAP + 16 * MIB)


@pytest.mark.parametrize("by", ["origin", "origin in chunks", "data", "file"])
@pytest.mark.parametrize("size, statuses", [(CAP - 1, {200}), (CAP, {200}), (CAP + 1, {413})])
def test_the_cap_is_exact_on_every_path(capped, origin, files, by, size, statuses):
    """B85: and nothing is ever cut to fit."""
    body = odd_media.padded_png(size, seed=851)
    assert len(body) == size
    if by == "data":
        url = data_url(body)
    elif by == "file":
        (files / f"{size}.png").write_bytes(body)
        url = f"file://{files}/{size}.png"
    else:
        framing = faults.chunked if "chunks" in by else content
        url = origin.serve(f"/{size}-{framing.__name__}", framing(body))
    reply = capped.encode([url])
    assert reply.status in statuses, reply.body
    if reply.status == 200:
        plain = capped.embeddings([png_url(851)])
        assert capped.embeddings([url]).raw == plain.raw
    else:
        assert str(CAP) in reply.error["message"]


def test_a_hundred_slow_streams_do_not_starve_the_rest(start, origin):
    """B85: total time is bounded, and not only idle time; /health does not wait for them."""
    server = start("--allow-private-media", "--fetch-timeout", f"{int(seconds(4) * 1000)}ms")
    path = "/slow-stream"
    photo = [png_url(855, 384, 384)]  # too large for an answer on the I/O thread
    assert len(photo[0]) > 65536
    server.encode_ok(photo)
    url = origin.serve(path, faults.dripping(png(852), 0.1))
    count = 100
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        slow = [pool.submit(server.encode, [url]) for _ in range(count)]
        wait_until(lambda: origin.hits[path] >= 8, 20, "streams to start")
        assert in_time(1, lambda: server.get("/health")).status == 200
        fresh = itertools.count(8530)
        assert in_time(1, lambda: server.encode([png_url(next(fresh))])).status == 200
        assert in_time(1, lambda: server.encode(photo)).status == 200
        statuses = {job.result().status for job in slow}
    assert statuses <= {424, 429, 503, 504} and 424 in statuses
    assert in_time(1, lambda: server.encode([png_url(854)])).status == 200


def test_a_body_over_the_limit_is_not_read(start):
    """B85, the other door."""
    server = start("--max-body-bytes", "1MiB", "--max-item-bytes", "64MiB")
    server.reset_peak()
    before = server.memory()
    reply = server.post("/encode", {"mm_items": ["data:image/png;base64," + "A" * (3 * MIB)]})
    assert reply.status == 413
    assert server.memory("VmHWM") - before < FLAT
    head = b"POST /encode HTTP/1.1\r\nHost: x\r\n"
    with RawClient(server.port) as client:
        client.send(head + b"Content-Length: 99999999999999\r\n\r\n")
        assert client.read_reply()[0] == 413
    with RawClient(server.port) as client:
        client.send(head + b"Transfer-Encoding: chunked\r\n\r\n")
        with contextlib.suppress(OSError):
            for _ in range(100):
                client.send(b"10000\r\n" + b" " * 65536 + b"\r\n")
        assert client.read_reply()[0] == 413
    assert server.encode([png_url(855)]).status == 200


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


def test_a_server_listens_on_loopback_and_nowhere_else(server, start):
    """B86."""
    assert listening_sockets(server.process.pid) == [("127.0.0.1", server.port)]
    told = start("--host", "0.0.0.0")
    assert listening_sockets(told.process.pid) == [("0.0.0.0", told.port)], "unless told otherwise"


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
