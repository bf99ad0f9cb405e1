"""What pictures may look like, and what happens to those that cannot be used: field cases, group A.

Tests of exact pixels use the stub encoder, whose rows are a function of the decoded picture and
differ for every pixel. Where a lossy codec stands between two pictures, a small real network judges
how close they are.
"""

import base64
import concurrent.futures
import functools
import itertools
import time

import numpy
import pytest
from PIL import Image

import odd_media
from odd_media import (GRAY, GRAY_ALPHA, RGB, UPRIGHT, animation, oriented, raw_png, rebuilt_png,
                       upright)
from support import TINY_VIT, data_url, encoded, picture, png, png_url, refused, seconds

# Every picture of the stub gets as many rows as it has patches of 14 x 14, so that the number of
# rows tells the grid.
STUB_BY_SIZE = "stub:dim=64,tokens=1-4096,seed=1"


@pytest.fixture(scope="module")
def server(start_shared):
    return start_shared(encoder=STUB_BY_SIZE)


@pytest.fixture(scope="module")
def uncached(start_shared):
    """Says what an item's rows are, whatever `server` has seen."""
    return start_shared("--pool-size", "0", encoder=STUB_BY_SIZE)


@pytest.fixture(scope="module")
def vit(start_shared):
    return start_shared(encoder=TINY_VIT)


def rows_of(server, file, **fields):
    return server.embeddings([data_url(file)], **fields).item(0)


def same_rows(server, first, second):
    return rows_of(server, first).tobytes() == rows_of(server, second).tobytes()


def distance(vit, first, second):
    """Relative, of what a network makes of two pictures."""
    a, b = rows_of(vit, first), rows_of(vit, second)
    return float(numpy.linalg.norm(a - b) / numpy.linalg.norm(a))


def item_of(server, file):
    return server.encode_ok([data_url(file)])["items"][0]


# B01

STORED = {k: picture(k, 640, 480) for k in range(1, 9)}


@pytest.mark.parametrize("format, options", [("PNG", {}), ("WEBP", {"lossless": True})])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_applied_to_the_last_pixel(server, format, options, orientation):
    """B01, for codecs without loss."""
    stored = picture(orientation, 120, 90)
    tagged = oriented(stored, orientation, format, **options)
    assert same_rows(server, tagged, encoded(upright(stored, orientation)))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photo_held_any_way_gives_what_the_turned_photo_gives(vit, orientation):
    """B01."""
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


@pytest.mark.parametrize("kind", grays(0))
def test_gray_beside_colour_gives_what_each_gives_alone(vit, kind):
    """B02: in one request, and in two at once that may share a batch."""
    gray, colour = grays(31)[kind], encoded(picture(32), "JPEG")
    alone = [rows_of(vit, gray), rows_of(vit, colour)]
    vit.post("/flush?scope=local")
    together = vit.embeddings([data_url(gray), data_url(colour)])
    vit.post("/flush?scope=local")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        at_once = list(pool.map(lambda file: rows_of(vit, file), [gray, colour]))
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


# B08

JPEG_IN_DISGUISE = encoded(picture(71), "JPEG")
PNG_BYTES = png(72)
PLAIN = base64.b64encode(PNG_BYTES).decode()
ESCAPED = "".join(f"%{byte:02x}" for byte in PNG_BYTES)


@pytest.mark.parametrize("url", [
    f"data:image/png;base64,{PLAIN}",
    f"data:image/png;charset=utf-8;base64,{PLAIN}",
    f"data:image/png;name=a.png;base64,{PLAIN.rstrip('=')}",
    f"data:;base64,{PLAIN}",
    f"data:text/html;base64,{PLAIN}",
    f"DATA:Image/PNG;BASE64,{PLAIN}",
    "data:image/png;base64," + "\n".join(PLAIN[i:i + 76] for i in range(0, len(PLAIN), 76)),
    "data:image/png;base64," + "\r\n".join(PLAIN[i:i + 76] for i in range(0, len(PLAIN), 76)),
    "data:image/png;base64," + PLAIN.replace("+", "%2B").replace("/", "%2f").replace("=", "%3D"),
    f"data:image/png,{ESCAPED}",
    f"data:,{ESCAPED}",
], ids=lambda url: url[:40])
def test_every_wrapping_of_the_same_bytes_is_one_key(server, url):
    """B08: the first stands for all."""
    known = server.encode_ok([data_url(PNG_BYTES)])["items"][0]
    item = server.encode_ok([url])["items"][0]
    assert item["key"] == known["key"]
    assert item["source"] == "local"


def test_content_decides_and_not_the_declared_type(server):
    """B08: called a PNG, it is a JPEG."""
    first = server.encode_ok([data_url(JPEG_IN_DISGUISE, "image/png")])["items"][0]
    second = server.encode_ok([data_url(JPEG_IN_DISGUISE, "image/jpeg")])["items"][0]
    assert [first["source"], second["source"]] == ["encoded", "local"]


@pytest.mark.parametrize("url", [
    "data:image/png;base64,",
    "data:image/png;base64,    ",
    "data:image/png,",
    "data:,",
    "data:image/png;base64",
    "data:",
    "data:image/png;base64,Zm9v!!",
    f"data:image/png;base64,{PLAIN[:-6]}!{PLAIN[-5:]}",
    f"data:image/png;base64,{PLAIN[:1001]}",
    f"data:image/png;base64,{PLAIN}====",
    f"data:image/png;base64,{PLAIN[:400]}=={PLAIN[400:]}",
    f"data:image/png,{ESCAPED}%4",
    f"data:image/png,{ESCAPED}%zz",
    f"data:image/png,{PLAIN}",
    f"data:image/png;base64;charset=utf-8,{PLAIN}",
], ids=lambda url: f"{url[:30]}...{url[-8:]}")
def test_a_data_url_that_is_none_is_refused(server, url):
    """B08: never decoded in part."""
    refused(server, [url], 400, 415)


# B09

def frames(*seeds):
    return [picture(seed) for seed in seeds]


@pytest.mark.parametrize("format, options", [("PNG", {}), ("WEBP", {"lossless": True})])
def test_of_an_animation_the_first_picture_is_taken(server, format, options):
    """B09: documented in media.h, and stable once cached."""
    moving = animation(frames(81, 82, 83), format, **options)
    other_end = animation(frames(81, 84, 85), format, **options)
    assert moving != other_end
    still = encoded(picture(81))
    rows = rows_of(server, moving).tobytes()
    assert rows == rows_of(server, still).tobytes() == rows_of(server, other_end).tobytes()
    assert rows == rows_of(server, moving).tobytes()
    other_start = animation(frames(86, 82, 83), format, **options)
    assert rows != rows_of(server, other_start).tobytes()


def test_the_default_image_of_an_apng_counts_even_outside_of_the_animation(server):
    """B09."""
    moving = animation(frames(87, 88, 89), default_image=True)
    assert same_rows(server, moving, encoded(picture(87)))


def test_a_first_frame_with_palette_and_transparency_is_decoded(server):
    """B09."""
    first = Image.new("RGBA", (64, 64), (200, 30, 30, 255))
    first.paste((0, 0, 0, 0), (10, 10, 40, 40))
    second = Image.new("RGBA", (64, 64), (30, 30, 200, 255))
    flat = Image.new("RGB", (64, 64), "white")
    flat.paste(first, mask=first.getchannel("A"))
    for moving in (animation([first, second]),
                   animation([first, second], "WEBP", lossless=True, exact=True)):
        assert same_rows(server, moving, encoded(flat))


def test_two_thousand_frames_cost_no_more_than_one(server):
    """B09."""
    images = [Image.new("RGB", (16, 16), (i % 256, i // 8, 99)) for i in range(2000)]
    for format in ("PNG", "WEBP"):
        started = time.monotonic()
        server.encode_ok([data_url(animation(images, format, **(
            {"lossless": True} if format == "WEBP" else {})))])
        assert time.monotonic() - started < seconds(10)


def palette_frames(*seeds):
    return [picture(seed, 32, 32).quantize(64) for seed in seeds]


def test_of_a_gif_the_first_frame_is_taken_whatever_follows(server):
    """B09: of the file, on every path, and stable once cached."""
    first = palette_frames(90)[0]
    still = encoded(first.convert("RGB"))
    for later in (palette_frames(91, 92), palette_frames(93, 94)):
        moving = animation([first, *later], "GIF")
        assert rows_of(server, moving).tobytes() == rows_of(server, still).tobytes()
        assert rows_of(server, moving).tobytes() == rows_of(server, still).tobytes()
    images = [palette_frames(90, 91, 92)[i % 3] for i in range(2000)]
    started = time.monotonic()
    assert same_rows(server, animation(images, "GIF"), still)
    assert time.monotonic() - started < seconds(10)


# B10

@pytest.mark.parametrize("options", [{"quality": 80}, {"lossless": True}])
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_webp_is_decoded(server, vit, mode, options):
    """B10: lossy, lossless, with alpha."""
    image = picture(91).convert(mode)
    file = encoded(image, "WEBP", **options)
    if "lossless" in options:
        assert same_rows(server, file, encoded(image))
    assert distance(vit, file, encoded(image)) < 0.1


@pytest.mark.parametrize("format, options", [
    ("BMP", {}), ("TIFF", {}), ("TIFF", {"compression": "tiff_lzw"}),
    ("TIFF", {"compression": "tiff_adobe_deflate"})])
def test_bmp_and_tiff_are_the_picture_itself(server, format, options):
    """B10."""
    image = picture(92)
    assert same_rows(server, encoded(image, format, **options), encoded(image))


def test_avif_is_decoded_where_libheif_is_and_refused_clearly_elsewhere(start, vit):
    """B10."""
    file = encoded(picture(93), "AVIF", quality=95)
    assert distance(vit, file, encoded(picture(93))) < 0.1
    without = start(env={"VITROVE_LIBHEIF_LIBRARY": "/nowhere/libheif.so"})
    assert "libheif" in refused(without, [data_url(file)], 415)["message"]


@pytest.mark.parametrize("name", odd_media.refused_formats())
def test_other_containers_are_refused_by_name_and_kill_nobody(server, name):
    """B10."""
    error = refused(server, [data_url(odd_media.refused_formats()[name])], 415)
    assert name in error["message"]
    assert server.get("/health").status == 200


@pytest.mark.parametrize("modality", ["video", "audio"])
def test_a_modality_that_the_model_does_not_take_is_refused(vit, modality):
    reply = vit.encode([png_url(1)], modality=modality)
    assert reply.status in (400, 415)
    assert vit.encode([{"url": png_url(1), "modality": modality}]).status in (400, 415)
    assert vit.encode([png_url(1)], modality="image").status == 200


# B11

SIDES = [1, 2, 3, 13, 14, 15, 27, 28, 29, 400, 800, 4096]
EXTREME = [(1000, 1), (1, 1000), (4096, 10), (20000, 50), (50, 20000), (65535, 1), (1, 65535)]


def plain(width, height):
    shade = (width * 31 + height) % 256
    return raw_png(width, height, 8, GRAY, bytes([shade]) * (width * height))


def patches(width, height):
    return min(-(-width // 14) * -(-height // 14), 4096)


def test_sizes_of_all_kinds_have_as_many_rows_as_their_grid(server):
    """B11: the sweep, with other requests meanwhile."""
    sizes = list(itertools.product(SIDES, SIDES)) + EXTREME
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        def sweep(part):
            return [server.embeddings([data_url(plain(*size)) for size in part])]

        def good(_):
            return [server.encode([png_url(seed)]).status for seed in range(20)]

        parts = [sizes[i:i + 30] for i in range(0, len(sizes), 30)]
        others = pool.submit(good, None)
        replies = [sweep(part)[0] for part in parts]
        assert set(others.result()) == {200}
    for part, reply in zip(parts, replies):
        offset = 0
        for (width, height), item in zip(part, reply.metadata["items"], strict=True):
            assert item["grid"] == [1, -(-height // 14), -(-width // 14)]
            assert item["tokens"] == patches(width, height)
            assert item["offset"] == offset
            offset += item["tokens"]
        assert reply.rows().shape == (offset, 64)


@pytest.mark.parametrize("width, height", EXTREME + [(1, 1), (3, 3), (1, 2), (63, 64), (65, 64)])
def test_a_real_network_takes_degenerate_sizes_or_names_the_limit(vit, width, height):
    """B11."""
    reply = vit.encode([data_url(plain(width, height))])
    assert reply.status in (200, 400, 413), reply.body
    if reply.status == 200:
        assert reply.json["items"][0]["tokens"] == 17
    else:
        assert "limit" in reply.error["message"]
        assert reply.error["item"] == 0
    assert vit.encode([png_url(1)]).status == 200


def test_degenerate_sizes_do_not_always_end_in_refusal(vit):
    """The other half of the one above."""
    assert vit.encode([data_url(plain(1, 1)), data_url(plain(3, 3)), data_url(plain(63, 64))]
                      ).status == 200


def test_rebuilding_a_png_leaves_its_bytes_alone():
    """The tools of this file are sound."""
    assert rebuilt_png(png(1), odd_media.chunk) == png(1)
