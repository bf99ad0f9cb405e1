"""Downloads and bodies without end: field case B85."""

import concurrent.futures
import contextlib
import itertools
import time

import pytest

import odd_media
import origin as faults
from bystander import Bystander
from origin import Origin, content
from raw_http import RawClient
from support import MEMORY_FACTOR, data_url, in_time, png, png_url, seconds, wait_until

MIB = 1 << 20
FLAT = 64 * MIB * MEMORY_FACTOR


CAP = 2 * MIB


@pytest.fixture(scope="module")
def origin():
    with Origin() as running:
        yield running


@pytest.fixture(scope="module")
def capped(start_shared, files):
    return start_shared("--allow-private-media", "--max-item-bytes", str(CAP), "--fetch-timeout",
                        "1500ms", "--allowed-local-media-path", str(files))


@pytest.fixture
def company(capped):
    """Somebody else's good requests; none of them may notice."""
    with Bystander(capped):
        yield


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


@pytest.mark.usefixtures("company")
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
    assert time.monotonic() - started < seconds(30)
    assert reply.status in statuses, reply.body
    assert capped.memory("VmHWM") - before < FLAT

    def sent():
        return origin.sent[path]

    # What the kernels of both sides hold in flight comes on top of what was read.
    wait_until(lambda: sent() == (time.sleep(0.05), sent())[1], 60, "the origin to notice")
    assert sent() < 3 * (CAP + 16 * MIB)


@pytest.mark.usefixtures("company")
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


def test_a_hundred_slow_streams_do_not_starve_the_rest(start, beside, origin):
    """B85: total time is bounded, and not only idle time; /health does not wait for them."""
    server = beside(
        start("--allow-private-media", "--fetch-timeout", f"{int(seconds(4) * 1000)}ms"))
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


def test_a_body_over_the_limit_is_not_read(start, beside):
    """B85, the other door."""
    server = beside(start("--max-body-bytes", "1MiB", "--max-item-bytes", "64MiB"))
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
