"""Pictures that are cut or damaged: field case B06."""

import functools

import pytest

import odd_media
from pixels import STUB_BY_SIZE, item_of, rows_of
from support import data_url, encoded, picture, png, png_url, refused

pytestmark = pytest.mark.usefixtures("bystander")


@pytest.fixture(scope="module")
def server(start_shared):
    return start_shared(encoder=STUB_BY_SIZE)


# B06

@functools.cache
def damaged():
    """Name -> (damaged file, the intact one)."""
    jpeg = encoded(picture(51, 640, 480), "JPEG", quality=90)
    progressive = encoded(picture(52, 640, 480), "JPEG", quality=90, progressive=True)
    webp = encoded(picture(53, 640, 480), "WEBP", quality=90)
    lossless = encoded(picture(54), "WEBP", lossless=True)
    png_file = png(55, 320, 240)
    half = {"jpeg": jpeg, "progressive jpeg": progressive, "webp": webp,
            "lossless webp": lossless, "png": png_file}
    half |= {format.lower(): encoded(picture(50, 320, 240), format)
             for format in ("GIF", "BMP", "TIFF", "AVIF")}
    files = {f"half a {name}": (file[:len(file) // 2], file) for name, file in half.items()}
    files |= {f"{name} less its last {count} bytes": (file[:-count], file)
              for name, file in half.items() for count in (1, 128)}
    return files | {
        "jpeg with a zeroed tail": (jpeg[:-4000] + bytes(4000), jpeg),
        "jpeg of headers alone": (jpeg[:jpeg.index(b"\xff\xda")], jpeg),
        "png with a bad checksum": (odd_media.damaged_png_crc(56), png(56)),
        "png with half its data": (
            odd_media.with_png_data(lambda data: data[:len(data) // 2], 57), png(57)),
        "png with senseless data": (
            odd_media.with_png_data(lambda data: data[:2] + b"\xff" * 500, 62), png(62)),
        "png with no data": (odd_media.with_png_data(lambda data: b"", 63), png(63)),
        "png of a signature alone": (png_file[:8], png_file),
    }


@pytest.mark.parametrize("name", damaged())
def test_a_damaged_picture_is_refused_and_the_intact_one_is_not(server, uncached, name):
    """B06."""
    broken, intact = damaged()[name]
    error = refused(server, [data_url(broken)], 400)
    assert "damaged" in error["message"]
    assert server.get(f"/embeddings/{item_of(server, intact)['key']}").status == 200
    assert rows_of(server, intact).tobytes() == rows_of(uncached, intact).tobytes()


def test_a_damaged_picture_leaves_no_trace_for_the_intact_one(server):
    """B06: the second is a miss."""
    intact = encoded(picture(58, 640, 480), "JPEG")
    refused(server, [data_url(intact[:-200])], 400)
    assert server.sources([data_url(intact)]) == ["encoded"]
    assert server.sources([data_url(intact)]) == ["local"]


def test_text_named_png_is_refused_for_what_it_is(server):
    """B06."""
    error = refused(server, [data_url(b"just some text", "image/png")], 415)
    assert "text" in error["message"]


def test_one_bad_item_fails_the_request_and_is_named(server):
    """B06: never a 200 with partial data; the good ones are served alone afterwards."""
    good = [png_url(59), png_url(60)]
    bad = data_url(png(61)[:-60])
    reply = server.encode([good[0], bad, good[1]], req_id="three")
    assert reply.status == 400
    assert reply.error["item"] == 1
    assert reply.error["req_id"] == "three"
    assert len(server.encode_ok(good)["items"]) == 2
