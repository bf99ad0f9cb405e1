"""Which way is up by XMP and by the texts of a PNG, as Pillow applies them: field case B01."""

import io
import zlib

import pytest
from PIL import Image, ImageOps

from odd_media import chunk, rebuilt_png, with_app1
from pixels import STUB_BY_SIZE, item_of, same_rows
from support import data_url, encoded, picture

pytestmark = pytest.mark.usefixtures("bystander")

STORED = picture(110, 120, 90)
LYING, STANDING = [1, 7, 9], [1, 9, 7]  # the grid of patches


@pytest.fixture(scope="module")
def server(start_shared):
    return start_shared(encoder=STUB_BY_SIZE)


def attribute(value):
    return b'<rdf:Description xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="%d"/>' % value


def element(value):
    return b"<rdf:Description><tiff:Orientation>%d</tiff:Orientation></rdf:Description>" % value


def profile(orientation):
    """EXIF as ImageMagick wrote it into texts."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    block = exif.tobytes()
    digits = block.hex()
    lines = [digits[at:at + 72] for at in range(0, len(digits), 72)]
    return "\n".join(["", "exif", f"{len(block):8}", *lines, ""]).encode()


def jpeg_with(xmp, **options):
    return with_app1(encoded(STORED, "JPEG", quality=90, **options),
                     b"http://ns.adobe.com/xap/1.0/\0" + xmp)


def png_with(*texts, **options):
    return rebuilt_png(encoded(STORED, **options), lambda kind, data: (
        chunk(kind, data) + (b"".join(texts) if kind == b"IHDR" else b"")))


def packed(keyword, text):
    return chunk(b"zTXt", keyword + b"\0\0" + zlib.compress(text))


def international(keyword, text, is_packed):
    flags = b"\1\0" if is_packed else b"\0\0"
    return chunk(b"iTXt", keyword + b"\0" + flags + b"\0\0"
                 + (zlib.compress(text) if is_packed else text))


def exif_of(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


XMP, RAW = b"XML:com.adobe.xmp", b"Raw profile type exif"
# Name -> (the file, whether it stands once it is upright)
FILES = {
    **{f"jpeg, xmp {value}": (lambda value=value: jpeg_with(attribute(value)), value >= 5)
       for value in range(1, 9)},
    "jpeg, xmp as an element": (lambda: jpeg_with(element(8)), True),
    "jpeg, xmp of 9": (lambda: jpeg_with(attribute(9)), False),
    "jpeg, xmp against exif": (lambda: jpeg_with(attribute(6), exif=exif_of(3)), False),
    "png, xmp": (lambda: png_with(international(XMP, attribute(6), False)), True),
    "png, packed xmp": (lambda: png_with(international(XMP, element(7), True)), True),
    "png, packed profile": (lambda: png_with(packed(RAW, profile(6))), True),
    "png, profile": (lambda: png_with(chunk(b"tEXt", RAW + b"\0" + profile(5))), True),
    "png, profile against xmp": (
        lambda: png_with(packed(RAW, profile(3)), international(XMP, attribute(6), False)), False),
    "png, chunk against profile": (
        lambda: png_with(packed(RAW, profile(6)), exif=exif_of(3)), False),
    "webp, xmp": (lambda: encoded(STORED, "WEBP", lossless=True, xmp=attribute(8)), True),
    "webp, xmp against exif": (
        lambda: encoded(STORED, "WEBP", lossless=True, xmp=attribute(8), exif=exif_of(2)), False),
    "tiff, xmp": (lambda: encoded(STORED, "TIFF", tiffinfo={700: attribute(6)}), True),
}


@pytest.mark.parametrize("name", FILES)
def test_a_picture_lies_as_pillow_lays_it(server, name):
    """B01: to the last pixel."""
    make, stands = FILES[name]
    file = make()
    with Image.open(io.BytesIO(file)) as image:
        upright = ImageOps.exif_transpose(image).convert("RGB")
    assert item_of(server, file)["grid"] == (STANDING if stands else LYING)
    assert same_rows(server, file, encoded(upright))


def test_turns_of_one_picture_do_not_share_an_entry(server):
    """B01."""
    items = [item_of(server, jpeg_with(attribute(value))) for value in (1, 3, 6, 8)]
    assert len({item["key"] for item in items}) == 4


@pytest.mark.parametrize("text", [
    international(XMP, b'tiff:Orientation="', False),
    chunk(b"zTXt", RAW + b"\0\0\x78\x01\xff\xff"),
    packed(RAW, b"\nexif\n  4\nzzzz\n"),
    packed(XMP, b" " * (1 << 20) + attribute(6)),
], ids=["cut", "not deflated", "no digits", "too far in"])
def test_a_text_that_tells_nothing_turns_nothing(server, text):
    """B01: and what it would inflate to is never all there."""
    plain = png_with()
    assert same_rows(server, png_with(text), plain)
    reply = server.encode([data_url(png_with(text)), data_url(plain)])
    assert reply.status == 200
