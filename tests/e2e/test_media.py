"""What pictures may look like: field cases B01 to B05.

Tests of exact pixels use the stub encoder, whose rows are a function of the decoded picture and
differ for every pixel. Where a lossy codec stands between two pictures, a small real network judges
how close they are.
"""

import concurrent.futures
import functools

import numpy
import pytest
from PIL import Image

import odd_media
from odd_media import GRAY, GRAY_ALPHA, RGB, UPRIGHT, oriented, raw_png, raw_tiff, upright
from pixels import STUB_BY_SIZE, distance, item_of, rows_of, same_rows
from support import TINY_VIT, data_url, encoded, picture

pytestmark = pytest.mark.usefixtures("bystander")


@pytest.fixture(scope="module")
def server(start_shared):
    return start_shared(encoder=STUB_BY_SIZE)


# B01

STORED = {k: picture(k, 640, 480) for k in range(1, 9)}


@pytest.mark.parametrize("format, options", [("PNG", {}), ("WEBP", {"lossless": True}),
                                             ("TIFF", {})])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_applied_to_the_last_pixel(server, format, options, orientation):
    """B01, for codecs without loss."""
    stored = picture(orientation, 120, 90)
    tagged = oriented(stored, orientation, format, **options)
    assert same_rows(server, tagged, encoded(upright(stored, orientation)))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photo_held_any_way_gives_what_the_turned_photo_gives(vit, beside, orientation):
    """B01."""
    beside(vit)
    stored = STORED[orientation]
    tagged = oriented(stored, orientation, quality=95)
    turned = encoded(upright(stored, orientation), "JPEG", quality=95)
    assert distance(vit, tagged, turned) < 0.02
    if orientation != 1:
        assert distance(vit, tagged, encoded(stored, "JPEG", quality=95)) > 0.05, "the test sees it"


@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_grid_is_that_of_the_upright_picture(server, orientation):
    """B01."""
    item = item_of(server, oriented(STORED[orientation], orientation))
    lying, standing = [1, 35, 46], [1, 46, 35]
    assert item["grid"] == (standing if orientation >= 5 else lying)


def test_orientations_of_one_photo_do_not_share_an_entry(server):
    """B01."""
    first, sixth = (oriented(picture(20, 640, 480), k) for k in (1, 6))
    reply = server.embeddings([data_url(first), data_url(sixth)])
    assert [item["source"] for item in reply.metadata["items"]] == ["encoded", "encoded"]
    assert len({item["key"] for item in reply.metadata["items"]}) == 2
    assert reply.item(0).tobytes() != reply.item(1).tobytes()


@pytest.mark.parametrize("name", odd_media.BROKEN_EXIF)
def test_a_malformed_exif_block_counts_as_upright(server, name):
    """B01."""
    plain = encoded(picture(21), "JPEG")
    assert same_rows(server, odd_media.with_app1(plain, odd_media.BROKEN_EXIF[name]), plain)


def test_every_way_to_turn_a_picture_is_known_to_this_file():
    corner = numpy.zeros((4, 6), numpy.uint8)
    corner[0, 0] = 255
    image = Image.fromarray(corner)
    turned = {numpy.asarray(upright(image, k)).tobytes() + bytes(upright(image, k).size)
              for k in UPRIGHT}
    assert len(turned) == 8


# B02

@functools.cache
def grays(seed):
    image = picture(seed).convert("L")
    with_alpha = image.convert("LA")
    return {
        "jpeg": encoded(image, "JPEG"),
        "png": encoded(image),
        "png with alpha": encoded(with_alpha),
        "webp": encoded(image, "WEBP", lossless=True),
    }


@pytest.fixture(scope="module")
def pairing_vit(start_shared):
    """A network that waits for a second picture."""
    return start_shared("--max-batch-size", "2", "--max-batch-wait", "30s", encoder=TINY_VIT)


@pytest.mark.parametrize("kind", grays(0))
def test_gray_beside_colour_gives_what_each_gives_alone(vit, pairing_vit, kind):
    """B02: in one request, and in two at once that share a batch."""
    gray, colour = grays(31)[kind], encoded(picture(32), "JPEG")
    alone = [rows_of(vit, gray), rows_of(vit, colour)]
    vit.post("/flush?scope=local")
    together = vit.embeddings([data_url(gray), data_url(colour)])
    pairing_vit.post("/flush?scope=local")
    before = pairing_vit.stats()["encoder"]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        at_once = list(pool.map(lambda file: rows_of(pairing_vit, file), [gray, colour]))
    after = pairing_vit.stats()["encoder"]
    assert [after[what] - before[what] for what in ("items", "batches")] == [2, 1]
    for index in range(2):
        assert numpy.allclose(together.item(index), alone[index], rtol=1e-4, atol=1e-5)
        assert numpy.allclose(at_once[index], alone[index], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["png", "png with alpha", "webp"])
def test_gray_is_repeated_in_three_channels(server, kind):
    """B02."""
    assert same_rows(server, grays(33)[kind], encoded(picture(33).convert("L").convert("RGB")))


# B04

def ramp():
    """256 x 64 values of 16 bits, from black to white."""
    line = numpy.linspace(0, 65535, 256).astype(">u2")
    return numpy.tile(line, (64, 1))


SIXTEEN_BITS = {
    "gray": (GRAY, lambda values: values),
    "gray with alpha": (GRAY_ALPHA, lambda v: numpy.dstack([v, numpy.full_like(v, 65535)])),
    "colour": (RGB, lambda v: numpy.dstack([v, v[:, ::-1], v // 2])),
}


@pytest.mark.parametrize("kind", SIXTEEN_BITS)
def test_sixteen_bits_are_scaled_and_not_clamped(server, kind):
    """B04."""
    colour_type, make = SIXTEEN_BITS[kind]
    deep = numpy.ascontiguousarray(make(ramp()), dtype=">u2")
    shallow = (deep >> 8).astype(numpy.uint8)
    file16 = raw_png(256, 64, 16, colour_type, deep.tobytes())
    file8 = raw_png(256, 64, 8, colour_type, shallow.tobytes())
    items = [item_of(server, file16), item_of(server, file8)]
    assert items[0]["key"] != items[1]["key"]
    assert same_rows(server, file16, file8)
    cut = numpy.minimum(deep, 255).astype(numpy.uint8)
    clamped = raw_png(256, 64, 8, colour_type, cut.tobytes())
    assert not same_rows(server, file16, clamped)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind, samples, colour_type", [("gray", 1, GRAY), ("colour", 3, RGB)])
def test_sixteen_bits_of_a_tiff_are_scaled_too(server, kind, samples, colour_type, order):
    """B04: in either order of bytes."""
    deep = SIXTEEN_BITS[kind][1](ramp())
    file16 = raw_tiff(256, 64, samples, deep.astype(f"{order}u2").tobytes(), 16, order)
    file8 = raw_png(256, 64, 8, colour_type, (deep >> 8).astype(numpy.uint8).tobytes())
    assert same_rows(server, file16, file8)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_fewer_bits_are_scaled_up(server, depth):
    levels = 2 ** depth
    values = numpy.arange(64 * 32).reshape(32, 64) % levels
    bits = numpy.unpackbits(values.astype(numpy.uint8)[..., None], axis=2)[..., 8 - depth:]
    packed = numpy.packbits(bits.reshape(32, -1), axis=1)
    shallow = raw_png(64, 32, depth, GRAY, packed.tobytes())
    whole = (values * (255 // (levels - 1))).astype(numpy.uint8)
    assert same_rows(server, shallow, encoded(Image.fromarray(whole)))


# B05

def shapes():
    """A gray picture with holes: (gray values, where it is opaque)."""
    values = numpy.asarray(picture(41).convert("L")).clip(1, 250)
    y, x = numpy.mgrid[0:64, 0:96]
    return values, (x - 48) ** 2 + (y - 32) ** 2 < 700


@functools.cache
def transparent_files():
    """Files that look the same on a white page; what they hide differs."""
    values, opaque = shapes()
    noise = numpy.random.RandomState(5).randint(0, 256, (64, 96, 3)).astype(numpy.uint8)
    alpha = (opaque * 255).astype(numpy.uint8)
    rgb = numpy.dstack([values] * 3)
    hidden = numpy.where(opaque[..., None], rgb, noise)
    key = numpy.where(opaque[..., None], rgb, (255, 0, 254)).astype(numpy.uint8)
    gray_key = numpy.where(opaque, values, 0).astype(numpy.uint8)
    indexed = Image.fromarray(gray_key, "L").convert("P")
    indexed.putdata(gray_key.ravel().tolist())
    indexed.putpalette([level for value in range(256) for level in [value] * 3])
    flat = numpy.where(opaque, values, 255).astype(numpy.uint8)
    rgba = Image.fromarray(numpy.dstack([hidden, alpha]))
    return {
        "flat": encoded(Image.fromarray(flat)),
        "rgba": encoded(rgba),
        "gray with alpha": encoded(Image.merge("LA", [
            Image.fromarray(numpy.where(opaque, values, noise[..., 0])), Image.fromarray(alpha)])),
        "palette": encoded(indexed, transparency=0),
        "colour key": encoded(Image.fromarray(key), transparency=(255, 0, 254)),
        "gray key": encoded(Image.fromarray(gray_key), transparency=0),
        "webp": encoded(rgba, "WEBP", lossless=True, exact=True),
        "tiff": encoded(rgba, "TIFF"),
        "gif": encoded(indexed, "GIF", transparency=0),
    }


@pytest.mark.parametrize("kind", [name for name in transparent_files() if name != "flat"])
def test_what_looks_the_same_on_white_is_the_same(server, kind):
    """B05: all forms of transparency are composited, on white."""
    files = transparent_files()
    assert same_rows(server, files[kind], files["flat"])


def test_half_transparent_pixels_are_mixed_with_white(server):
    """B05."""
    random = numpy.random.RandomState(6)
    rgba = random.randint(0, 256, (64, 96, 4)).astype(numpy.uint8)
    alpha = rgba[..., 3:].astype(int)
    mixed = (2 * (rgba[..., :3] * alpha + 255 * (255 - alpha)) + 255) // 510  # rounded
    assert same_rows(server, encoded(Image.fromarray(rgba)),
                     encoded(Image.fromarray(mixed.astype(numpy.uint8))))
