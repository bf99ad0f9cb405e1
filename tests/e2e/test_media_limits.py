"""Every limit on media is an option, is exact, and is named in the error: field cases B83, B85."""

import pytest

from bystander import Bystander, new_small_file
from clips import HEIGHT, WIDTH, clip, wav
from odd_clips import silent_flac
from pixels import STUB_BY_SIZE
from support import data_url, png, png_url, refused

PNG = png(1, 96, 64)


def of_sound(count, channels=1):
    return wav([0.1] * count * channels, channels=channels)


# Option, the least value that will do, a value that will not, the file, its modality, and what the
# error calls the unit.
LIMITS = [
    ("--max-item-bytes", len(PNG), len(PNG) - 1, PNG, "image", "bytes"),
    ("--max-request-bytes", len(PNG), len(PNG) - 1, PNG, "image", "bytes"),
    ("--max-image-pixels", 96 * 64, 96 * 64 - 1, PNG, "image", "pixels"),
    ("--max-video-pixels", WIDTH * HEIGHT, WIDTH * HEIGHT - 1, clip("h264.mp4"), "video", "pixels"),
    ("--max-video-frames", 4, 3, clip("h264.mp4"), "video", "video frames"),
    ("--max-video-seconds", 2, 1, clip("h264.mp4"), "video", "seconds"),
    ("--max-audio-seconds", 2, 1, of_sound(32000), "audio", "seconds"),
    ("--max-audio-samples", 2000, 1999, of_sound(1000, channels=2), "audio", "samples"),
    ("--max-decode-bytes", 1 << 20, 20_000, PNG, "image", "bytes"),
    ("--max-decode-bytes", 1 << 24, 100_000, clip("h264.mp4"), "video", "bytes"),
    ("--max-decode-bytes", 1 << 24, 100_000, of_sound(16000), "audio", "bytes"),
]


@pytest.mark.parametrize("option, enough, too_little, file, modality, unit", LIMITS,
                         ids=[f"{limit[0]} of {limit[4]}" for limit in LIMITS])
def test_each_limit_is_exact_and_named(start, option, enough, too_little, file, modality, unit):
    server = start(option, too_little, encoder=STUB_BY_SIZE)
    with Bystander(server, file=new_small_file):
        reply = server.encode([data_url(file)], modality=modality)
        assert reply.status == 413, reply.body
        message = reply.error["message"]
        assert f"limit of {too_little} {unit}" in message, message
        assert reply.error["item"] == 0
    assert server.stop() == 0
    allowing = start(option, enough, encoder=STUB_BY_SIZE)
    assert allowing.encode_ok([data_url(file)], modality=modality)


def test_the_items_of_a_request_are_added_up(start, beside, tmp_path):
    """Wherever they come from."""
    (tmp_path / "one.png").write_bytes(png(1))
    (tmp_path / "two.png").write_bytes(png(2))
    both = len(png(1)) + len(png(2))
    items = {"data": [png_url(1), png_url(2)],
             "file": [f"file://{tmp_path}/one.png", f"file://{tmp_path}/two.png"]}
    items["both"] = [items["data"][0], items["file"][1]]
    enough = start("--max-request-bytes", both, "--allowed-local-media-path", tmp_path)
    too_little = beside(
        start("--max-request-bytes", both - 1, "--allowed-local-media-path", tmp_path))
    for urls in items.values():
        assert len(enough.encode_ok(urls)["items"]) == 2
        reply = too_little.encode(urls)
        assert reply.status == 413
        assert f"limit of {both - 1} bytes in all" in reply.error["message"]
        assert reply.error["item"] in (0, 1)
        for url in urls:
            too_little.encode_ok([url])


def test_too_many_items_are_named(start, beside):
    server = beside(start("--max-items", 2))
    server.encode_ok([png_url(1), png_url(2)])
    reply = server.encode([png_url(1)] * 3)
    assert reply.status == 413
    assert "2 items" in reply.error["message"]


def test_a_long_silence_is_told_by_its_packets(start, beside):
    """Half an hour in 6 KB is fine; what it takes is bounded by the same rules."""
    server = beside(start("--max-audio-seconds", 1000, encoder=STUB_BY_SIZE))
    message = refused(server, [data_url(silent_flac(1800))], 413, modality="audio")["message"]
    assert "limit of 1000 seconds" in message
    assert server.encode_ok([data_url(silent_flac(900))], modality="audio")


@pytest.mark.parametrize("option", sorted({limit[0] for limit in LIMITS}))
def test_a_limit_of_nothing_is_refused_at_the_start(start, option):
    server = start(option, 0, wait=False)
    assert server.process.wait(60) != 0
    assert option in server.log
