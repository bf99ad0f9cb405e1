"""Small files that ask for gigabytes: field case B83."""

import concurrent.futures

import pytest

import odd_clips
import odd_media
from support import MEMORY_FACTOR, TINY_VIT, data_url, in_time, png_url

MEMORY_ALLOWED = (300 << 20) * MEMORY_FACTOR


@pytest.fixture(scope="module")
def server(start_shared):
    return start_shared()


BOMBS = {name: ("image", *bomb) for name, bomb in odd_media.BOMBS.items()} | odd_clips.BOMBS
pytestmark = pytest.mark.usefixtures("bystander")


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_from_its_header(server, name):
    """B83: singly."""
    modality, make, statuses = BOMBS[name]
    url = data_url(make())
    server.encode_ok([png_url(1)])
    server.reset_peak()
    before = server.memory()
    reply = in_time(0.2, lambda: server.encode([url], modality=modality))
    assert reply.status in statuses, reply.body
    assert server.memory("VmHWM") - before < MEMORY_ALLOWED
    assert server.encode([png_url(1)]).status == 200


def test_fifty_bombs_at_once_are_fifty_refusals(server):
    """B83: with good requests between them."""
    names = sorted(name for name, (_, _, statuses) in BOMBS.items() if 200 not in statuses)
    urls = {name: data_url(BOMBS[name][1]()) for name in names}
    server.encode_ok([png_url(1)])
    server.reset_peak()
    before = server.memory()
    chosen = [names[i % len(names)] for i in range(50)]
    with concurrent.futures.ThreadPoolExecutor(60) as pool:
        bombs = [pool.submit(server.encode, [urls[name]], modality=BOMBS[name][0])
                 for name in chosen]
        good = [pool.submit(server.encode, [png_url(830 + i)]) for i in range(10)]
        assert [job.result().status for job in good] == [200] * 10
        for name, job in zip(chosen, bombs):
            assert job.result().status in BOMBS[name][2], name
    assert server.memory("VmHWM") - before < MEMORY_ALLOWED


def test_the_limit_of_pixels_is_the_operators(start, beside):
    """B83: one pixel makes the difference."""
    server = beside(start("--max-image-pixels", "10000"))
    assert server.encode([png_url(831, 100, 100)]).status == 200
    for width, height in ((101, 100), (100, 101), (10001, 1)):
        reply = server.encode([png_url(831, width, height)])
        assert reply.status == 413
        assert "10000" in reply.error["message"]


def test_a_small_picture_is_not_blown_up_by_preprocessing(start, beside):
    """B83: neither by parameters nor by its shape."""
    server = beside(start(encoder=TINY_VIT))
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
