"""Animations, containers and odd sizes: field cases B09 to B11."""

import concurrent.futures
import io
import itertools
import json

import pytest
from PIL import Image, ImageOps

import odd_media
from odd_media import GRAY, animation, raw_png, rebuilt_png
from pixels import STUB_BY_SIZE, distance, item_of, rows_of, same_rows
from support import ROOT, data_url, encoded, in_time, picture, png, png_url, refused

MEDIA = ROOT / "tests" / "data" / "media"
pytestmark = pytest.mark.usefixtures("bystander")


@pytest.fixture(scope="module")
def server(start_shared):
    return start_shared(encoder=STUB_BY_SIZE)


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


def encode_anew(server, file):
    server.post("/flush?scope=local")
    assert server.encode_ok([data_url(file)])["items"][0]["source"] == "encoded"


def test_two_thousand_frames_cost_no_more_than_one(server):
    """B09."""
    images = [Image.new("RGB", (16, 16), (i % 256, i // 8, 99)) for i in range(2000)]
    for format in ("PNG", "WEBP"):
        moving = animation(images, format, **({"lossless": True} if format == "WEBP" else {}))
        in_time(1, lambda: encode_anew(server, moving))


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


def test_two_thousand_frames_of_a_gif_are_not_decoded(server):
    """B09: which would take half a minute."""
    flat = Image.new("RGB", (2000, 2000), (200, 30, 30))
    single = encoded(flat.quantize(2), "GIF")
    frame = 13 + (3 << (single[10] & 7) + 1)  # after the header and the table of colours
    long = single[:frame] + single[frame:-1] * 2000 + single[-1:]
    in_time(3, lambda: encode_anew(server, long))
    assert same_rows(server, long, encoded(flat))


@pytest.mark.parametrize("name", ["offset", "offset_transparent", "beyond_canvas", "interlaced"])
def test_a_first_frame_that_does_not_fill_its_canvas_is_decoded(server, name):
    """B09: as Pillow has it, on white."""
    file = (MEDIA / f"{name}.gif").read_bytes()
    with Image.open(io.BytesIO(file)) as image:
        frame = image.convert("RGBA")
    flat = Image.new("RGB", frame.size, "white")
    flat.paste(frame, mask=frame.getchannel("A"))
    assert same_rows(server, file, encoded(flat))


# B10

@pytest.mark.parametrize("options", [{"quality": 80}, {"lossless": True}])
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_webp_is_decoded(server, vit, beside, mode, options):
    """B10: lossy, lossless, with alpha."""
    beside(vit)
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


def test_avif_is_decoded_where_libheif_is_and_refused_clearly_elsewhere(start, beside, vit):
    """B10."""
    file = encoded(picture(93), "AVIF", quality=95)
    assert distance(vit, file, encoded(picture(93))) < 0.1
    without = beside(start(env={"VITROVE_LIBHEIF_LIBRARY": "/nowhere/libheif.so"}))
    assert "libheif" in refused(without, [data_url(file)], 415)["message"]


@pytest.mark.parametrize("kind", ["heic", "avif"])
@pytest.mark.parametrize("name, turn", [
    ("upright", None), ("turned", Image.Transpose.ROTATE_90),
    ("mirrored", Image.Transpose.FLIP_LEFT_RIGHT)])
def test_heic_and_avif_are_upright(vit, beside, kind, name, turn):
    """B01, B10."""
    beside(vit)
    file = (MEDIA / f"{name}.{kind}").read_bytes()
    with Image.open(MEDIA / "heif_as_png.png") as image:
        stored = image.convert("RGB")
    upright = stored if turn is None else stored.transpose(turn)
    near = distance(vit, file, encoded(upright))  # colours are stored at half the size
    assert near < 0.2
    if turn is not None:
        assert distance(vit, file, encoded(stored)) > 2 * near, "the test sees it"


@pytest.mark.parametrize("kind", ["heic", "avif"])
@pytest.mark.parametrize("name, turn", [("grid", None), ("grid_turned", Image.Transpose.ROTATE_90)])
def test_tiles_of_a_heic_or_avif_are_one_picture(server, vit, beside, kind, name, turn):
    """B10: as phones write them."""
    beside(vit)
    file = (MEDIA / f"{name}.{kind}").read_bytes()
    with Image.open(MEDIA / "grid_as_png.png") as image:
        stored = image.convert("RGB")
    upright = stored if turn is None else stored.transpose(turn)
    assert item_of(server, file)["grid"] == [1, -(-upright.height // 14), -(-upright.width // 14)]
    near = distance(vit, file, encoded(upright))
    assert near < 0.1
    other = upright.transpose(Image.Transpose.ROTATE_180)
    assert distance(vit, file, encoded(other)) > 2 * near, "the test sees it"


def on_white(image, alpha):
    flat = Image.new("RGB", image.size, "white")
    flat.paste(image, mask=alpha)
    return flat


def test_an_avif_may_be_transparent_gray_or_moving(vit, beside):
    """B02, B05, B09: near enough for a lossy codec, and far from what a mistake would make."""
    beside(vit)
    image = picture(95, 160, 120)
    alpha = Image.linear_gradient("L").resize(image.size)
    clear = image.copy()
    clear.putalpha(alpha)
    flat = encoded(on_white(image, alpha))
    file = encoded(clear, "AVIF", quality=95)
    assert distance(vit, file, flat) < 0.1 < distance(vit, encoded(image), flat)
    gray = image.convert("L")
    assert distance(vit, encoded(gray, "AVIF", quality=95), encoded(gray)) < 0.1
    moving = animation([image, picture(96, 160, 120)], "AVIF", quality=95)
    assert distance(vit, moving, encoded(image)) < 0.1


@pytest.mark.parametrize("name", odd_media.refused_formats())
def test_other_containers_are_refused_by_name_and_kill_nobody(server, name):
    """B10."""
    error = refused(server, [data_url(odd_media.refused_formats()[name])], 415)
    assert name in error["message"]
    assert server.get("/health").status == 200


@pytest.mark.parametrize("name, modality", [
    ("aiff", "audio"), ("caf", "audio"), ("amr", "audio"), ("flv", "video"), ("asf", "video"),
    ("asf", "audio")])
def test_clips_and_sounds_of_other_containers_are_refused_by_name(server, name, modality):
    """B10."""
    file = odd_media.refused_formats()[name]
    assert name in refused(server, [data_url(file)], 415, modality=modality)["message"]


@pytest.mark.parametrize("name", sorted(json.loads((MEDIA / "golden_jpeg.json").read_text())["jpeg"]["files"]))
def test_a_jpeg_of_any_colours_and_markers_is_pillows(server, name):
    """B10: to the last pixel."""
    file = (MEDIA / name).read_bytes()
    with Image.open(io.BytesIO(file)) as image:
        upright = ImageOps.exif_transpose(image).convert("RGB")
    assert same_rows(server, file, encoded(upright))


# Where the frame's header is changed, and to what.
UNKNOWN_JPEGS = {"12 bits": (4, b"\x0c"), "lossless": (1, b"\xc3"), "hierarchical": (1, b"\xc5"),
                 "a height that comes later": (5, b"\0\0")}


@pytest.mark.parametrize("kind", UNKNOWN_JPEGS)
def test_a_whole_jpeg_of_an_unknown_kind_is_not_called_damaged(server, kind):
    """B10."""
    whole = encoded(picture(94), "JPEG")
    offset, new = UNKNOWN_JPEGS[kind]
    at = whole.index(b"\xff\xc0") + offset
    error = refused(server, [data_url(whole[:at] + new + whole[at + len(new):])], 415)
    assert error["message"].endswith("this kind of jpeg is not supported")


@pytest.mark.parametrize("modality", ["video", "audio"])
def test_a_modality_that_the_model_does_not_take_is_refused(vit, beside, modality):
    """B10."""
    beside(vit)
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
def test_a_real_network_takes_degenerate_sizes_or_names_the_limit(vit, beside, width, height):
    """B11."""
    beside(vit)
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
