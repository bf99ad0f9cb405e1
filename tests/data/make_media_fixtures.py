#!/usr/bin/env python3
"""Writes the pictures and reference results that the tests of media/ and preprocess/ compare with.

    build/venv/bin/python tests/data/make_media_fixtures.py

The references come from Pillow and numpy, never from Vitrove: what Pillow decodes and resizes, and
what Hugging Face's image processors compute from it, written down here as plain numpy. Everything
is deterministic, so a second run changes no file unless Pillow itself changed.

Leaves below tests/data:
  media/*            pictures, a few KB each
  media/golden.json  size and CRC-32 of the RGB bytes that each picture decodes to, per decoder
                     version
  resize/golden.json CRC-32 of Pillow's output for many sizes, ratios and filters
  preprocess/*.json  processor configurations, and CRC-32 of the tensors they lead to
"""

import io
import json
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, PngImagePlugin

DATA = Path(__file__).resolve().parent
MEDIA = DATA / "media"

# Must equal decoder_versions() in the code; raise both when the bytes are meant to change.
DECODER_VERSIONS = {"jpeg": 2, "png": 2, "webp": 2}
RESIZE_VERSION = 1
PREPROCESS_VERSION = 1


# --- pictures -------------------------------------------------------------------------------------

def scene(width: int, height: int) -> np.ndarray:
    """Smooth colours, a red left edge, a blue bar on top and a disc: every orientation differs."""
    y, x = np.mgrid[0:height, 0:width]
    pixels = np.stack([
        x * 255 // max(width - 1, 1),
        y * 255 // max(height - 1, 1),
        (x * 3 + y * 5) % 256,
    ], axis=-1).astype(np.uint8)
    pixels[: max(height // 10, 1), width // 3:] = (20, 40, 230)
    pixels[:, : max(width // 8, 1)] = (230, 20, 30)
    disc = (x - width * 0.7) ** 2 + (y - height * 0.6) ** 2 < (min(width, height) * 0.2) ** 2
    pixels[disc] = (250, 240, 60)
    return pixels


def noise(width: int, height: int, seed: int) -> np.ndarray:
    """The same pseudo-random picture as noise_image() in the C++ tests."""
    mask = np.uint64(0xFFFFFFFF)
    n = np.arange(width * height * 3, dtype=np.uint64)
    n = (n + np.uint64(seed * 0x9E3779B9 & 0xFFFFFFFF)) & mask
    n = (n * np.uint64(0x85EBCA6B)) & mask
    n ^= n >> np.uint64(13)
    n = (n * np.uint64(0xC2B2AE35)) & mask
    return (n >> np.uint64(24)).astype(np.uint8).reshape(height, width, 3)


def on_white(color: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """round((c * a + 255 * (255 - a)) / 255)"""
    c = color.astype(np.uint32)
    a = alpha.astype(np.uint32)[..., None]
    return ((2 * (c * a + 255 * (255 - a)) + 255) // 510).astype(np.uint8)


def crc(array: np.ndarray) -> str:
    return f"{zlib.crc32(np.ascontiguousarray(array).tobytes()):08x}"


def exif_block(orientation: int, order: str = ">") -> bytes:
    """A TIFF structure with nothing but tag 0x0112."""
    head = b"MM\0*" if order == ">" else b"II*\0"
    return head + struct.pack(f"{order}IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)


def insert_exif_into_jpeg(jpeg: bytes, block: bytes) -> bytes:
    body = b"Exif\0\0" + block
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + jpeg[2:]


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(
        ">I", zlib.crc32(kind + data))


ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
         (0, 1, 1, 2)]


def pack_rows(samples: np.ndarray, depth: int) -> bytes:
    """Rows of unfiltered samples; samples are [height, width, channels]."""
    rows = []
    for row in samples.reshape(samples.shape[0], -1):
        if depth == 16:
            data = row.astype(">u2").tobytes()
        elif depth == 8:
            data = row.astype(np.uint8).tobytes()
        else:
            bits = "".join(f"{int(v):0{depth}b}" for v in row)
            bits += "0" * (-len(bits) % 8)
            data = int(bits, 2).to_bytes(len(bits) // 8, "big")
        rows.append(b"\0" + data)
    return b"".join(rows)


def png(samples: np.ndarray, color_type: int, depth: int, *, palette: bytes = b"",
        trns: bytes = b"", interlaced: bool = False, before: bytes = b"", after: bytes = b"",
        size: tuple[int, int] | None = None) -> bytes:
    """A PNG of exactly this form, which Pillow cannot be asked for."""
    height, width = samples.shape[:2]
    if interlaced:
        raw = b"".join(pack_rows(samples[y::dy, x::dx], depth) for x, y, dx, dy in ADAM7
                       if samples[y::dy, x::dx].size)
    else:
        raw = pack_rows(samples, depth)
    head = struct.pack(">IIBBBBB", *(size or (width, height)), depth, color_type, 0, 0,
                       int(interlaced))
    result = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + before
    if palette:
        result += chunk(b"PLTE", palette)
    if trns:
        result += chunk(b"tRNS", trns)
    return result + chunk(b"IDAT", zlib.compress(raw, 9)) + after + chunk(b"IEND", b"")


def save(image: Image.Image, kind: str, **options) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


class Pictures:
    """Writes files and remembers what each has to decode to."""

    def __init__(self) -> None:
        self.golden = {name: {"version": version, "files": {}}
                       for name, version in DECODER_VERSIONS.items()}
        MEDIA.mkdir(exist_ok=True)

    def add(self, name: str, data: bytes, expected: np.ndarray) -> None:
        assert expected.dtype == np.uint8 and expected.shape[2] == 3, name
        (MEDIA / name).write_bytes(data)
        decoder = {"jpg": "jpeg", "png": "png", "webp": "webp"}[name.rsplit(".", 1)[1]]
        self.golden[decoder]["files"][name] = {
            "width": expected.shape[1], "height": expected.shape[0], "crc32": crc(expected)}

    def write(self) -> None:
        write_json(MEDIA / "golden.json", self.golden)


def write_json(path: Path, value) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")


def pillow_rgb(data: bytes, *, upright: bool = True) -> np.ndarray:
    image = Image.open(io.BytesIO(data))
    if upright:
        image = ImageOps.exif_transpose(image)
    return np.asarray(image.convert("RGB"))


# --- media ----------------------------------------------------------------------------------------

def add_jpegs(pictures: Pictures) -> None:
    color = Image.fromarray(scene(67, 45))
    plain = save(color, "JPEG", quality=90)
    pictures.add("plain.jpg", plain, pillow_rgb(plain))
    for name, options in {
        "444": {"subsampling": 0}, "422": {"subsampling": 1}, "420": {"subsampling": 2},
        "progressive": {"progressive": True, "quality": 80},
        "restart": {"restart_marker_blocks": 3},
    }.items():
        data = save(color, "JPEG", **options)
        pictures.add(f"{name}.jpg", data, pillow_rgb(data))
    gray = save(color.convert("L"), "JPEG", quality=90)
    pictures.add("gray.jpg", gray, pillow_rgb(gray))
    cmyk = save(color.convert("CMYK"), "JPEG", quality=95)
    pictures.add("cmyk.jpg", cmyk, pillow_rgb(cmyk))
    one = save(Image.fromarray(scene(1, 1)), "JPEG")
    pictures.add("one_pixel.jpg", one, pillow_rgb(one))

    stored = save(Image.fromarray(scene(48, 32)), "JPEG", quality=92)
    for orientation in range(1, 9):
        order = "<" if orientation % 2 else ">"
        data = insert_exif_into_jpeg(stored, exif_block(orientation, order))
        pictures.add(f"orientation_{orientation}.jpg", data, pillow_rgb(data))
    bad = b"MM\0*" + struct.pack(">I", 0x7FFFFFF0)
    data = insert_exif_into_jpeg(stored, bad)
    pictures.add("orientation_bad_offset.jpg", data, pillow_rgb(stored))
    data = insert_exif_into_jpeg(stored, exif_block(9))
    pictures.add("orientation_out_of_range.jpg", data, pillow_rgb(stored))


def add_png_types(pictures: Pictures) -> None:
    """Every colour type and depth, plain and interlaced."""
    color = scene(21, 13)
    gray8 = color[..., 1]
    ramp = np.arange(21 * 13, dtype=np.uint32).reshape(13, 21) * 65535 // (21 * 13 - 1)
    palette = bytes(v for i in range(16) for v in (i * 17, 255 - i * 13, i * i % 256))
    index = (np.add.outer(np.arange(13), np.arange(21)) % 16).astype(np.uint8)
    colors = np.frombuffer(palette, np.uint8).reshape(16, 3)
    deep = (np.stack([ramp, ramp[::-1], ramp[:, ::-1]], -1)).astype(np.uint32)
    for interlaced in (False, True):
        tail = "_interlaced.png" if interlaced else ".png"

        def put(name: str, samples, color_type, depth, expected, **options):
            data = png(samples if samples.ndim == 3 else samples[..., None], color_type, depth,
                       interlaced=interlaced, **options)
            pictures.add(name + tail, data, expected)

        for depth in (1, 2, 4):
            levels = gray8 >> (8 - depth)
            wide = (levels.astype(np.uint32) * 255 // (2 ** depth - 1)).astype(np.uint8)
            put(f"gray{depth}", levels, 0, depth, np.repeat(wide[..., None], 3, 2))
        put("gray8", gray8, 0, 8, np.repeat(gray8[..., None], 3, 2))
        put("gray16", ramp, 0, 16, np.repeat((ramp >> 8).astype(np.uint8)[..., None], 3, 2))
        put("rgb8", color, 2, 8, color)
        put("rgb16", deep, 2, 16, (deep >> 8).astype(np.uint8))
        for depth in (4, 8):
            put(f"palette{depth}", index, 3, depth, colors[index], palette=palette)
        alpha = np.linspace(0, 255, 21 * 13).astype(np.uint8).reshape(13, 21)
        put("la8", np.stack([gray8, alpha], -1), 4, 8,
            on_white(np.repeat(gray8[..., None], 3, 2), alpha))
        put("rgba8", np.dstack([color, alpha]), 6, 8, on_white(color, alpha))
        wide_alpha = alpha.astype(np.uint32) * 257
        put("la16", np.stack([ramp, wide_alpha], -1), 4, 16,
            on_white(np.repeat((ramp >> 8).astype(np.uint8)[..., None], 3, 2), alpha))
        put("rgba16", np.dstack([deep, wide_alpha]), 6, 16,
            on_white((deep >> 8).astype(np.uint8), alpha))
        transparency = bytes(range(0, 256, 17))
        put("palette_trns", index, 3, 8,
            on_white(colors[index], np.frombuffer(transparency, np.uint8)[index]),
            palette=palette, trns=transparency)
        put("palette_short_trns", index, 3, 4,
            on_white(colors[index],
                     np.array(list(transparency[:5]) + [255] * 11, np.uint8)[index]),
            palette=palette, trns=transparency[:5])
        key = int(gray8[5, 9])
        put("gray8_trns", gray8, 0, 8,
            on_white(np.repeat(gray8[..., None], 3, 2), np.where(gray8 == key, 0, 255)),
            trns=struct.pack(">H", key))
        # A 16-bit key is compared in full: the neighbour with the same upper byte stays.
        two = np.where(np.arange(21) % 2 == 0, 0x8001, 0x8002) * np.ones((13, 1), int)
        put("gray16_trns", two.astype(np.uint32), 0, 16,
            on_white(np.full((13, 21, 3), 0x80, np.uint8), np.where(two == 0x8001, 0, 255)),
            trns=struct.pack(">H", 0x8001))
        spot = tuple(int(v) for v in color[6, 14])
        put("rgb8_trns", color, 2, 8,
            on_white(color, np.where((color == spot).all(-1), 0, 255)),
            trns=struct.pack(">HHH", *spot))


def add_transparency_twins(pictures: Pictures) -> None:
    """B05: five files that look alike on a white page, and the flattened one."""
    height, width = 16, 24
    inside = np.zeros((height, width), bool)
    inside[4:12, 6:18] = True
    garbage = noise(width, height, 77)
    gray = 90
    flat = np.where(inside[..., None], gray, 255).astype(np.uint8).repeat(3, 2)
    hidden = np.where(inside[..., None], gray, garbage).astype(np.uint8)
    alpha = np.where(inside, 255, 0).astype(np.uint8)
    pictures.add("twin_flat.png", png(flat, 2, 8), flat)
    pictures.add("twin_rgba.png", png(np.dstack([hidden, alpha]), 6, 8), flat)
    la = np.stack([np.where(inside, gray, garbage[..., 0]).astype(np.uint8), alpha], -1)
    pictures.add("twin_la.png", png(la, 4, 8), flat)
    index = np.where(inside, 1, 0).astype(np.uint8)[..., None]
    pictures.add("twin_palette.png",
                 png(index, 3, 8, palette=bytes([200, 10, 99, gray, gray, gray]), trns=b"\0"),
                 flat)
    keyed = np.where(inside[..., None], gray, np.array([1, 2, 3])).astype(np.uint8)
    pictures.add("twin_rgb_key.png", png(keyed, 2, 8, trns=struct.pack(">HHH", 1, 2, 3)), flat)
    gray_keyed = np.where(inside, gray, 7).astype(np.uint8)[..., None]
    pictures.add("twin_gray_key.png", png(gray_keyed, 0, 8, trns=struct.pack(">H", 7)), flat)


def add_other_pngs(pictures: Pictures) -> None:
    color = scene(24, 16)
    block = exif_block(6)
    turned = np.asarray(Image.fromarray(color).transpose(Image.Transpose.ROTATE_270))
    pictures.add("exif_before.png", png(color, 2, 8, before=chunk(b"eXIf", block)), turned)
    pictures.add("exif_after.png", png(color, 2, 8, after=chunk(b"eXIf", block)), turned)
    bomb = zlib.compress(bytes(40_000_000), 9)
    text = chunk(b"zTXt", b"Comment\0\0" + bomb) + chunk(b"iCCP", b"profile\0\0" + bomb)
    pictures.add("text_bomb.png", png(color, 2, 8, before=text), color)

    index = (np.add.outer(np.arange(10), np.arange(10)) % 2).astype(np.uint8)[..., None]
    for name, palette in {"red_on_white": bytes([255, 255, 255, 220, 0, 0]),
                          "blue_on_black": bytes([0, 0, 0, 0, 0, 220])}.items():
        expected = np.frombuffer(palette, np.uint8).reshape(2, 3)[index[..., 0]]
        pictures.add(f"index_{name}.png", png(index, 3, 1, palette=palette), expected)

    # The same bytes as 30 x 150 and as 150 x 30 (B16).
    stream = noise(30, 150, 5)
    pictures.add("tall.png", png(stream, 2, 8), stream)
    pictures.add("wide.png", png(stream.reshape(30, 150, 3), 2, 8), stream.reshape(30, 150, 3))

    frames = [Image.fromarray(np.roll(color, 5 * i, 1)) for i in range(3)]
    apng = save(frames[0], "PNG", save_all=True, append_images=frames[1:], duration=100)
    pictures.add("animated.png", apng, color)
    for width, height in ((1, 1), (1, 100), (100, 1), (3, 3)):
        pixels = scene(width, height)
        pictures.add(f"size_{width}x{height}.png", png(pixels, 2, 8), pixels)


# --- WebP -----------------------------------------------------------------------------------------

def riff(chunks: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WEBP" + chunks


def webp_chunk(kind: bytes, data: bytes) -> bytes:
    return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def u24(value: int) -> bytes:
    return struct.pack("<I", value)[:3]


def webp_animation(canvas: tuple[int, int], frames: list[tuple[int, int, Image.Image]]) -> bytes:
    """Lossless frames at even offsets on a canvas."""
    flags = 0x12  # animation, alpha
    chunks = webp_chunk(b"VP8X", bytes([flags, 0, 0, 0]) + u24(canvas[0] - 1) + u24(canvas[1] - 1))
    chunks += webp_chunk(b"ANIM", struct.pack("<IH", 0xFF0000FF, 0))
    for left, top, image in frames:
        still = save(image, "WEBP", lossless=True)
        start = still.find(b"VP8L")
        size = struct.unpack("<I", still[start + 4:start + 8])[0]
        body = webp_chunk(b"VP8L", still[start + 8:start + 8 + size])
        chunks += webp_chunk(b"ANMF", u24(left // 2) + u24(top // 2) + u24(image.width - 1)
                             + u24(image.height - 1) + u24(100) + b"\2" + body)
    return riff(chunks)


def add_webps(pictures: Pictures) -> None:
    color = scene(67, 45)
    alpha = np.linspace(0, 255, 67 * 45).astype(np.uint8).reshape(45, 67)
    lossy = save(Image.fromarray(color), "WEBP", quality=85)
    pictures.add("lossy.webp", lossy, pillow_rgb(lossy))
    lossless = save(Image.fromarray(color), "WEBP", lossless=True)
    pictures.add("lossless.webp", lossless, color)
    rgba = Image.fromarray(np.dstack([color, alpha]))
    for name, options in {"lossy_alpha": {"quality": 85},
                          "lossless_alpha": {"lossless": True, "exact": True}}.items():
        data = save(rgba, "WEBP", **options)
        decoded = np.asarray(Image.open(io.BytesIO(data)).convert("RGBA"))
        pictures.add(f"{name}.webp", data, on_white(decoded[..., :3], decoded[..., 3]))

    exif = save(Image.fromarray(scene(24, 16)), "WEBP", lossless=True, exif=exif_block(8))
    pictures.add("exif.webp", exif, pillow_rgb(exif))

    small = scene(20, 12)
    first = Image.fromarray(small)
    later = Image.fromarray(255 - small)
    white = np.full((24, 40, 3), 255, np.uint8)
    white[6:18, 10:30] = small
    pictures.add("animated_offset.webp",
                 webp_animation((40, 24), [(10, 6, first), (0, 0, later)]), white)
    pictures.add("animated.webp", webp_animation((20, 12), [(0, 0, first), (0, 0, later)]), small)


def add_foreign_formats() -> None:
    """B10: formats that are refused by name; no golden entry."""
    image = Image.fromarray(scene(16, 12))
    for name, kind in {"foreign.ico": "ICO", "foreign.jp2": "JPEG2000",
                       "foreign.ppm": "PPM"}.items():
        (MEDIA / name).write_bytes(save(image, kind))
    (MEDIA / "foreign.svg").write_text(
        '<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>\n')


# --- resizing -------------------------------------------------------------------------------------

FILTERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}


def resized(image: np.ndarray, size: tuple[int, int], resample: int) -> np.ndarray:
    """Columns first, then rows.

    That is the order of Pillow up to 12.1, with which today's models were trained. Pillow 13 takes
    the rows first when the height shrinks much more than the width, and then rounds differently in
    the last bit; asking for one axis at a time gives the same bytes with every Pillow.
    """
    width, height = size
    narrow = Image.fromarray(image).resize((width, image.shape[0]), resample)
    return np.asarray(narrow.resize((width, height), resample))


def resize_golden() -> dict:
    shapes = [
        ((224, 224), (224, 224)), ((640, 480), (298, 224)), ((480, 640), (224, 298)),
        ((1000, 667), (335, 224)), ((31, 47), (224, 339)), ((1, 1), (224, 224)),
        ((1, 1), (1, 1)), ((1, 200), (3, 7)), ((200, 1), (7, 3)), ((2, 2), (5, 3)),
        ((3, 5), (2, 2)), ((17, 13), (16, 13)), ((17, 13), (17, 12)), ((17, 13), (18, 14)),
        ((64, 64), (128, 128)), ((128, 128), (64, 64)), ((100, 100), (33, 77)),
        ((255, 256), (257, 255)), ((1023, 5), (11, 900)), ((5, 1023), (900, 11)),
        ((1920, 12), (384, 384)), ((37, 41), (1, 1)), ((333, 777), (384, 384)),
        ((12, 9), (11, 10)), ((500, 375), (299, 224)), ((301, 199), (100, 66)),
    ]
    cases = []
    for name, code in FILTERS.items():
        for seed, (source, target) in enumerate(shapes):
            out = resized(noise(*source, seed), target, code)
            cases.append({"filter": name, "from": source, "to": target, "seed": seed,
                          "crc32": crc(out)})
    return {"version": RESIZE_VERSION, "cases": cases}


# --- preprocessing --------------------------------------------------------------------------------
# What Hugging Face's processors do, on numpy. Rescaling is done in double and stored as float32,
# normalising in float32.

CLIP_MEAN = [0.48145466, 0.4578275, 0.40821073]
CLIP_STD = [0.26862954, 0.26130258, 0.27577711]
IMAGENET_MEAN = [0.485, 0.456, 0.406]
IMAGENET_STD = [0.229, 0.224, 0.225]

CONFIGS = {
    "clip": {
        "image_processor_type": "CLIPImageProcessor", "do_resize": True, "resample": 3,
        "size": {"shortest_edge": 224}, "do_center_crop": True,
        "crop_size": {"height": 224, "width": 224}, "do_rescale": True,
        "rescale_factor": 0.00392156862745098, "do_normalize": True, "do_convert_rgb": True,
        "image_mean": CLIP_MEAN, "image_std": CLIP_STD},
    "clip_legacy": {
        "feature_extractor_type": "CLIPFeatureExtractor", "do_resize": True, "resample": 3,
        "size": 224, "do_center_crop": True, "crop_size": 224, "do_normalize": True,
        "image_mean": CLIP_MEAN, "image_std": CLIP_STD},
    "clip_wide_crop": {
        "image_processor_type": "CLIPImageProcessorFast", "size": {"shortest_edge": 40},
        "crop_size": {"height": 51, "width": 64}},
    "siglip": {
        "image_processor_type": "SiglipImageProcessor", "do_resize": True, "resample": 3,
        "size": {"height": 384, "width": 384}, "do_rescale": True,
        "rescale_factor": 0.00392156862745098, "do_normalize": True,
        "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]},
    "vit": {
        "image_processor_type": "ViTImageProcessor", "do_resize": True, "resample": 2,
        "size": {"height": 224, "width": 224}, "do_normalize": True,
        "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]},
    "deit": {
        "image_processor_type": "DeiTImageProcessor", "do_resize": True, "resample": 3,
        "size": {"height": 256, "width": 256}, "do_center_crop": True,
        "crop_size": {"height": 224, "width": 224}, "do_normalize": True,
        "image_mean": IMAGENET_MEAN, "image_std": IMAGENET_STD},
    "dinov2": {
        "image_processor_type": "BitImageProcessor", "do_resize": True, "resample": 3,
        "size": {"shortest_edge": 256}, "do_center_crop": True,
        "crop_size": {"height": 224, "width": 224}, "do_normalize": True,
        "image_mean": IMAGENET_MEAN, "image_std": IMAGENET_STD},
    "convnext": {
        "image_processor_type": "ConvNextImageProcessor", "do_resize": True, "resample": 3,
        "size": {"shortest_edge": 224}, "crop_pct": 0.875, "do_normalize": True,
        "image_mean": IMAGENET_MEAN, "image_std": IMAGENET_STD},
    "convnext_384": {
        "image_processor_type": "ConvNextImageProcessor", "do_resize": True, "resample": 3,
        "size": {"shortest_edge": 384}, "crop_pct": None, "do_normalize": True,
        "image_mean": IMAGENET_MEAN, "image_std": IMAGENET_STD},
    "efficientnet": {
        "image_processor_type": "EfficientNetImageProcessor", "do_resize": True, "resample": 0,
        "size": {"height": 300, "width": 300}, "do_center_crop": False,
        "crop_size": {"height": 289, "width": 289}, "do_rescale": True, "rescale_offset": False,
        "rescale_factor": 0.00392156862745098, "do_normalize": True, "include_top": True,
        "image_mean": IMAGENET_MEAN, "image_std": [0.47853944, 0.4732864, 0.47434163]},
    "plain": {
        "image_processor_type": "CLIPImageProcessor", "do_resize": False, "do_center_crop": False,
        "do_normalize": False},
}
DEFAULTS = {
    "clip": {"resample": 3, "mean": CLIP_MEAN, "std": CLIP_STD, "crop": (224, 224)},
    "other": {"resample": 3, "mean": IMAGENET_MEAN, "std": IMAGENET_STD, "crop": None},
}


def center_crop(image: np.ndarray, height: int, width: int) -> np.ndarray:
    rows, columns = image.shape[:2]
    top, left = (rows - height) // 2, (columns - width) // 2
    if top >= 0 and left >= 0 and top + height <= rows and left + width <= columns:
        return image[top:top + height, left:left + width]
    tall, broad = max(height, rows), max(width, columns)
    padded = np.zeros((tall, broad, 3), image.dtype)
    above, before = -(-(tall - rows) // 2), -(-(broad - columns) // 2)
    padded[above:above + rows, before:before + columns] = image
    top, left = top + above, left + before
    return padded[max(0, top):min(tall, top + height), max(0, left):min(broad, left + width)]


def short_edge_size(width: int, height: int, edge: int) -> tuple[int, int]:
    short, long = min(width, height), max(width, height)
    other = int(edge * long / short)
    return (edge, other) if width <= height else (other, edge)


def pair(size) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size["height"], size["width"])


def preprocess(image: np.ndarray, name: str, config: dict) -> np.ndarray:
    defaults = DEFAULTS["clip" if name.startswith("clip") or name == "plain" else "other"]
    resample = config.get("resample", defaults["resample"])
    height, width = image.shape[:2]
    size = config.get("size", 224)
    crop = config.get("crop_size", defaults["crop"])
    if name.startswith("convnext"):
        edge = size["shortest_edge"]
        if edge < 384:
            pct = config["crop_pct"] or 224 / 256
            image = resized(image, short_edge_size(width, height, int(edge / pct)), resample)
            image = center_crop(image, edge, edge)
        else:
            image = resized(image, (edge, edge), resample)
    elif config.get("do_resize", True):
        if isinstance(size, int) or "shortest_edge" in size:
            edge = size if isinstance(size, int) else size["shortest_edge"]
            image = resized(image, short_edge_size(width, height, edge), resample)
        else:
            image = resized(image, (size["width"], size["height"]), resample)
    if config.get("do_center_crop", crop is not None) and not name.startswith("convnext"):
        image = center_crop(image, *pair(crop))
    factor = config.get("rescale_factor", 1 / 255)
    values = (image.astype(np.float64) * factor).astype(np.float32)
    if config.get("rescale_offset"):
        values = values - 1
    if config.get("do_normalize", True):
        mean = np.array(config.get("image_mean", defaults["mean"]), np.float32)
        std = np.array(config.get("image_std", defaults["std"]), np.float32)
        values = (values - mean) / std
        if config.get("include_top"):
            values = (values - np.float32(0)) / std
    return values.astype(np.float32).transpose(2, 0, 1)


def preprocess_golden() -> dict:
    sizes = [(640, 480), (480, 640), (37, 53), (1, 1), (1, 90), (90, 1), (224, 224), (225, 223),
             (39, 41), (1200, 60)]
    cases = []
    for name, config in CONFIGS.items():
        write_json(DATA / "preprocess" / f"{name}.json", config)
        for seed, (width, height) in enumerate(sizes):
            values = preprocess(noise(width, height, 100 + seed), name, config)
            middle = values[:, values.shape[1] // 2, values.shape[2] // 2]
            cases.append({"config": name, "from": [width, height], "seed": 100 + seed,
                          "shape": list(values.shape), "middle": [float(v) for v in middle],
                          "crc32": crc(values)})
    return {"version": PREPROCESS_VERSION, "cases": cases}


def main() -> None:
    pictures = Pictures()
    add_jpegs(pictures)
    add_png_types(pictures)
    add_transparency_twins(pictures)
    add_other_pngs(pictures)
    add_webps(pictures)
    add_foreign_formats()
    pictures.write()
    write_json(DATA / "resize" / "golden.json", resize_golden())
    write_json(DATA / "preprocess" / "golden.json", preprocess_golden())


if __name__ == "__main__":
    main()
