"""Media behind URLs whose origin fails in every way there is: field case B12.

While one request meets a fault another must pass, and once the origin has healed so must the first.
"""

import concurrent.futures
import itertools

import pytest

import origin as faults
from origin import Origin, content
from support import TIME_FACTOR, free_port, in_time, png, png_url, refused

pytestmark = pytest.mark.usefixtures("bystander")
FETCH_SECONDS = 1.5 * min(TIME_FACTOR, 4)


@pytest.fixture(scope="module")
def server(start_shared):
    return start_shared("--allow-private-media", "--fetch-timeout",
                        f"{int(FETCH_SECONDS * 1000)}ms")


@pytest.fixture(scope="module")
def origin():
    with Origin() as running:
        yield running


PICTURE = png(101)
ONCE, AGAIN = range(1, 2), range(2, 4)
FAULTS = {
    "404": (faults.status(404), {424}, ONCE),
    "403": (faults.status(403), {424}, ONCE),
    "410": (faults.status(410), {424}, ONCE),
    "429": (faults.status(429), {424}, ONCE),
    "500": (faults.status(500), {424}, AGAIN),
    "503": (faults.status(503), {424}, AGAIN),
    "404 with a picture": (faults.status(404, PICTURE), {424}, ONCE),
    "HTML with 200": (faults.html(), {415}, ONCE),
    "204": (faults.no_content(), {424}, ONCE),
    "206": (faults.status(206, PICTURE), {424}, ONCE),
    "nothing with 200": (content(b""), {424}, ONCE),
    "silence": (faults.silence(), {424}, range(1, 4)),
    "slow head": (faults.slow_head(), {424}, range(1, 4)),
    "slow body": (faults.dripping(PICTURE), {424}, range(1, 4)),
    "RST midway": (faults.reset_midway(PICTURE), {424}, range(1, 4)),
    "Content-Length longer than the body": (faults.short_body(PICTURE), {424}, AGAIN),
    "broken chunks": (faults.broken_chunks(PICTURE), {424}, range(1, 4)),
    "hang up": (faults.hang_up(), {424}, AGAIN),
    "not HTTP": (faults.no_http(), {424}, range(1, 4)),
    "redirect without target": (faults.status(302), {424}, range(1, 4)),
    "redirect to a file": (faults.redirect("file:///etc/passwd"), {400, 403, 424}, ONCE),
    "redirect to another protocol": (
        faults.redirect("gopher://127.0.0.1/1"), {400, 403, 424}, ONCE),
}


numbers = itertools.count()


@pytest.mark.parametrize("name", FAULTS)
def test_a_failing_origin_is_named_in_time_and_not_remembered(server, origin, name):
    """B12: while it fails a good request passes; once it has healed, so does this one."""
    fault, statuses, visits = FAULTS[name]

    def meet_the_fault():
        path = f"/{name.replace(' ', '-')}-{next(numbers)}"
        url = origin.serve(path, fault)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(server.encode, [png_url(1), url], req_id="fetch-me")
            assert server.encode([png_url(2)]).status == 200
            return path, waiting.result()

    encodes = server.encodes()
    path, reply = in_time(FETCH_SECONDS / TIME_FACTOR + 1, meet_the_fault)
    assert reply.status in statuses, reply.body
    assert reply.error["req_id"] == "fetch-me"
    assert reply.error["item"] == 1
    assert origin.hits[path] in visits
    assert server.encodes() <= encodes + 2, "only the good ones"

    url = origin.serve(path, content(PICTURE))
    server.post("/flush?scope=local")
    assert server.sources([url]) == ["encoded"]


def test_an_origin_that_heals_in_time_is_asked_again(server, origin):
    """B12: few retries, for passing faults."""
    for number, fault in enumerate([faults.status(503), faults.hang_up()]):
        path = f"/heals-{number}"
        url = origin.serve(path, faults.healing(2, fault, content(png(110 + number))))
        assert server.sources([url]) == ["encoded"]
        assert origin.hits[path] == 3


@pytest.mark.parametrize("url", [
    "http://no-such-host.invalid/a.png",
    "http://127.0.0.1:{free}/a.png",
    "https://127.0.0.1:{origin}/a.png",
])
def test_an_origin_out_of_reach_is_a_424(server, origin, url):
    """B12: no such name, nobody there, no TLS there."""
    in_time(FETCH_SECONDS / TIME_FACTOR + 1, lambda: refused(
        server, [url.format(free=free_port(), origin=origin.port)], 424))


def test_redirects_are_followed_up_to_a_bound(server, origin):
    """B12, with the good beside the bad."""
    origin.serve("/here", content(png(120)))
    url = origin.serve("/there", faults.redirect("/here"))
    assert server.sources([url]) == ["encoded"]
    for code in (301, 303, 307, 308):
        url = origin.serve(f"/moved-{code}", faults.redirect("/here", code))
        assert server.sources([url]) == ["local"], "identity is the bytes, wherever they are"

    loop = origin.serve("/loop", faults.redirect("/loop"))
    refused(server, [loop], 424)
    assert origin.hits["/loop"] <= 10
    first = origin.serve("/ping", faults.redirect("/pong"))
    origin.serve("/pong", faults.redirect("/ping"))
    refused(server, [first], 424)
    assert origin.hits["/ping"] + origin.hits["/pong"] <= 10


@pytest.mark.parametrize("behaviour", [content, faults.chunked, faults.until_closed])
def test_every_framing_of_a_body_is_understood(server, origin, behaviour):
    url = origin.serve(f"/framed-{behaviour.__name__}", behaviour(png(121)))
    known = server.encode_ok([png_url(121)])["items"][0]
    assert server.encode_ok([url])["items"][0]["key"] == known["key"]


def test_many_urls_in_one_request_keep_their_order(server, origin):
    urls = [origin.serve(f"/many-{seed}", content(png(seed))) for seed in range(130, 150)]
    reply = server.embeddings(urls)
    for index, seed in enumerate(range(130, 150)):
        assert reply.item(index).tobytes() == server.embeddings([png_url(seed)]).raw["embedding"]


