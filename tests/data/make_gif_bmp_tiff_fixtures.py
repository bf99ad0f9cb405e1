#!/usr/bin/env python3
"""Writes the GIF, BMP, TIFF and AVIF pictures of tests/data/media, and what they decode to.

    build/venv/bin/python tests/data/make_gif_bmp_tiff_fixtures.py

The references are Pillow's pixels, composited on white by numpy where there is transparency; where
Pillow clamps or refuses (16 bits), they are written down from the samples. See
make_media_fixtures.py, whose tools are used here. The golden values are in
media/golden_gif_bmp_tiff.json.
"""

import io
import struct

import numpy as np
from PIL import Image, ImageOps, TiffImagePlugin

from make_media_fixtures import MEDIA, crc, on_white, save, scene, write_json

VERSIONS = {"gif": 1, "bmp": 1, "tiff": 2}
golden = {name: {"version": version, "files": {}} for name, version in VERSIONS.items()}


def flattened(image: Image.Image) -> np.ndarray:
    """As Pillow sees it, on white."""
    image = ImageOps.exif_transpose(image)
    has_alpha = image.mode in ("RGBA", "LA", "PA", "RGBa") or "transparency" in image.info
    if not has_alpha:
        return np.asarray(image.convert("RGB"))
    rgba = np.asarray(image.convert("RGBA"))
    return on_white(rgba[..., :3], rgba[..., 3])


def add(name: str, data: bytes, expected: np.ndarray | None = None) -> None:
    (MEDIA / name).write_bytes(data)
    if expected is None:
        expected = flattened(Image.open(io.BytesIO(data)))
    kind = name.rsplit(".", 1)[1]
    golden[kind]["files"][name] = {"width": expected.shape[1], "height": expected.shape[0],
                                   "crc32": crc(expected)}


# --- GIF ------------------------------------------------------------------------------------------

def add_gifs() -> None:
    image = Image.fromarray(scene(37, 23)).quantize(64)
    add("plain.gif", save(image, "GIF", interlace=0))
    add("interlaced.gif", save(image, "GIF", interlace=1))
    add("two_colors.gif", save(image.convert("1"), "GIF"))
    add("gray.gif", save(image.convert("L"), "GIF"))
    add("transparent.gif", save(image, "GIF", transparency=image.getpixel((20, 15))))
    later = [Image.fromarray(np.roll(scene(37, 23), 5 * i, 1)).quantize(64) for i in (1, 2)]
    add("animated.gif", save(image, "GIF", save_all=True, append_images=later, duration=80))
    add("one_pixel.gif", save(Image.new("P", (1, 1)), "GIF"))
    plain = save(image, "GIF", interlace=0)
    add("offset.gif", on_canvas(plain, (50, 40), (7, 9)))
    add("offset_transparent.gif",
        on_canvas(save(image, "GIF", transparency=3, interlace=0), (50, 40), (7, 9)))
    add("beyond_canvas.gif", on_canvas(plain, (30, 30), (7, 9)))


def on_canvas(gif: bytes, size: tuple[int, int], offset: tuple[int, int]) -> bytes:
    """The same frame on another canvas."""
    data = bytearray(gif)
    data[6:10] = struct.pack("<HH", *size)
    flags = data[10]
    at = 13 + (3 * 2 ** ((flags & 7) + 1) if flags & 0x80 else 0)
    while data[at] == 0x21:  # extensions
        at += 2
        while data[at] != 0:
            at += data[at] + 1
        at += 1
    assert data[at] == 0x2C
    data[at + 1:at + 5] = struct.pack("<HH", *offset)
    return bytes(data)


# --- BMP ------------------------------------------------------------------------------------------

def bmp(size: tuple[int, int], bits: int, rows: bytes, *, palette: bytes = b"",
        compression: int = 0, masks: bytes = b"", header: int = 40, colors: int = 0) -> bytes:
    width, height = size
    info = struct.pack("<IiiHHIIiiII", header, width, height, 1, bits, compression, len(rows), 2835,
                       2835, colors, 0)
    if header > 40:
        info += masks + bytes(header - 40 - len(masks))
    else:
        info += masks
    start = 14 + len(info) + len(palette)
    return struct.pack("<2sIHHI", b"BM", start + len(rows), 0, 0, start) + info + palette + rows


def bottom_up(rows: list[bytes]) -> bytes:
    return b"".join(row + bytes(-len(row) % 4) for row in reversed(rows))


def add_bmps() -> None:
    color = scene(37, 23)
    image = Image.fromarray(color)
    add("rgb.bmp", save(image, "BMP"))
    add("gray.bmp", save(image.convert("L"), "BMP"))
    add("palette.bmp", save(image.quantize(200), "BMP"))
    add("two_colors.bmp", save(image.convert("1"), "BMP"))
    alpha = np.linspace(0, 255, 37 * 23).astype(np.uint8).reshape(23, 37)
    rgba = np.dstack([color[..., ::-1], alpha])
    rows = bottom_up([row.tobytes() for row in rgba])
    add("deep32.bmp", bmp((37, 23), 32, rows), color)
    masks = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    add("alpha.bmp", bmp((37, 23), 32, rows, compression=3, masks=masks, header=124),
        on_white(color, alpha))
    top_down = b"".join(row.tobytes() for row in rgba)
    add("top_down.bmp", bmp((37, -23), 32, top_down), color)

    r, g, b = (color[..., c].astype(np.uint16) for c in range(3))
    fives = (r >> 3 << 10 | g >> 3 << 5 | b >> 3).astype("<u2")
    add("rgb555.bmp", bmp((37, 23), 16, bottom_up([row.tobytes() for row in fives])))
    sixes = (r >> 3 << 11 | g >> 2 << 5 | b >> 3).astype("<u2")
    add("rgb565.bmp", bmp((37, 23), 16, bottom_up([row.tobytes() for row in sixes]), compression=3,
                          masks=struct.pack("<III", 0xF800, 0x7E0, 0x1F)))

    palette = b"".join(bytes([i * 16, 255 - i * 9, i * i % 256, 0]) for i in range(16))
    index = (np.add.outer(np.arange(23), np.arange(37)) // 3 % 16).astype(np.uint8)
    padded = np.pad(index, ((0, 0), (0, 1)))
    nibbles = padded[:, ::2] << 4 | padded[:, 1::2]
    four = bottom_up([row.tobytes() for row in nibbles])
    add("palette4.bmp", bmp((37, 23), 4, four, palette=palette, colors=16))
    add("rle8.bmp", bmp((37, 23), 8, rle8(index), palette=palette, colors=16, compression=1))
    literal = b"\0\x04\x12\x34\x05\x67\0\0" + b"\x06\x9a\0\x02\x02\x01\x03\x11\0\1"
    colors = np.frombuffer(palette, np.uint8).reshape(16, 4)[:, 2::-1]
    jumps = np.zeros((3, 9), np.uint8)
    jumps[2] = 1, 2, 3, 4, 6, 7, 6, 7, 6
    jumps[1, :6] = 9, 10, 9, 10, 9, 10
    jumps[0, 8] = 1
    add("rle4.bmp", bmp((9, 3), 4, literal, palette=palette, colors=16, compression=2),
        colors[jumps])
    os2 = struct.pack("<IHHHH", 12, 37, 23, 1, 4)
    small = b"".join(palette[i:i + 3] for i in range(0, 64, 4))
    start = 14 + 12 + len(small)
    add("os2.bmp", struct.pack("<2sIHHI", b"BM", start + len(four), 0, 0, start) + os2 + small
        + four)


def rle8(index: np.ndarray) -> bytes:
    out = b""
    for row in index[::-1]:
        start = 0
        while start < len(row):
            end = start
            while end < len(row) and row[end] == row[start]:
                end += 1
            out += bytes([end - start, row[start]])
            start = end
        out += b"\0\0"
    return out + b"\0\1"


# --- TIFF -----------------------------------------------------------------------------------------

def tiff(samples: np.ndarray, photometric: int, *, extra: int | None = None, order: str = "<",
         tags: dict[int, tuple[str, tuple]] | None = None) -> bytes:
    """An uncompressed TIFF of one strip, of samples that Pillow does not write."""
    height, width, count = samples.shape
    bits = 8 * samples.dtype.itemsize
    data = samples.astype(samples.dtype.newbyteorder(order)).tobytes()
    entries = {256: ("H", (width,)), 257: ("H", (height,)), 258: ("H", (bits,) * count),
               259: ("H", (1,)), 262: ("H", (photometric,)), 273: ("I", (8,)),
               277: ("H", (count,)), 278: ("H", (height,)), 279: ("I", (len(data),))}
    if extra is not None:
        entries[338] = ("H", (extra,))
    entries |= tags or {}
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8 + len(data))
    at = 8 + len(data) + 2 + 12 * len(entries) + 4
    directory, overflow = struct.pack(order + "H", len(entries)), b""
    for tag, (kind, values) in sorted(entries.items()):
        packed = struct.pack(order + kind * len(values), *values)
        field = struct.pack(order + "HHI", tag, {"H": 3, "I": 4}[kind], len(values))
        if len(packed) <= 4:
            directory += field + packed.ljust(4, b"\0")
        else:
            directory += field + struct.pack(order + "I", at + len(overflow))
            overflow += packed
    return head + data + directory + bytes(4) + overflow


def add_tiffs() -> None:
    color = scene(37, 23)
    image = Image.fromarray(color)
    for name, kind in {"raw": None, "lzw": "tiff_lzw", "deflate": "tiff_adobe_deflate",
                       "packbits": "packbits"}.items():
        add(f"{name}.tiff", save(image, "TIFF", compression=kind))
    add("predictor.tiff", save(image, "TIFF", compression="tiff_lzw",
                               tiffinfo={TiffImagePlugin.PREDICTOR: 2}))
    add("jpeg.tiff", save(image, "TIFF", compression="jpeg", quality=90))
    add("gray.tiff", save(image.convert("L"), "TIFF"))
    add("two_colors.tiff", save(image.convert("1"), "TIFF"))
    add("fax.tiff", save(image.convert("1"), "TIFF", compression="group4"))
    add("palette.tiff", save(image.quantize(100), "TIFF"))
    add("cmyk.tiff", save(image.convert("CMYK"), "TIFF"))
    alpha = np.linspace(0, 255, 37 * 23).astype(np.uint8).reshape(23, 37)
    add("rgba.tiff", save(Image.fromarray(np.dstack([color, alpha])), "TIFF"))
    add("la.tiff", save(Image.merge("LA", [image.convert("L"), Image.fromarray(alpha)]), "TIFF"))
    add("pages.tiff", save(image, "TIFF", save_all=True,
                           append_images=[Image.fromarray(255 - color)]))
    for orientation in (3, 6, 8):
        add(f"orientation_{orientation}.tiff",
            save(image, "TIFF", tiffinfo={274: orientation}))
    gray = color[..., 1:2]
    add("white_is_zero.tiff", tiff(gray, 0), np.repeat(255 - gray, 3, 2))
    deep = color.astype(np.uint16) * 256 + 17
    for order, name in (("<", "little"), (">", "big")):
        add(f"rgb16_{name}.tiff", tiff(deep, 2, order=order), color)
        add(f"gray16_{name}.tiff", tiff(deep[..., :1], 1, order=order),
            np.repeat(color[..., :1], 3, 2))
    multiplied = (color.astype(np.uint16) * alpha[..., None] // 255).astype(np.uint8)
    add("multiplied_alpha.tiff", tiff(np.dstack([multiplied, alpha]), 2, extra=1),
        multiplied + (255 - alpha)[..., None])
    planes = np.concatenate([color[..., c].ravel() for c in range(3)])
    add("planes.tiff", planar(planes, 37, 23), color)
    add("tiles.tiff", tiled(color), color)


def planar(planes: np.ndarray, width: int, height: int) -> bytes:
    size = width * height
    whole = tiff(planes.reshape(3, -1)[:, :, None].reshape(3 * height, width, 1), 2, tags={
        256: ("H", (width,)), 257: ("H", (height,)), 258: ("H", (8, 8, 8)), 277: ("H", (3,)),
        278: ("H", (height,)), 273: ("I", (8, 8 + size, 8 + 2 * size)),
        279: ("I", (size,) * 3), 284: ("H", (2,))})
    return whole


def tiled(color: np.ndarray) -> bytes:
    """Tiles of 16 x 16, those at the edges padded."""
    height, width = color.shape[:2]
    padded = np.pad(color, ((0, -height % 16), (0, -width % 16), (0, 0)), constant_values=77)
    tiles = [padded[y:y + 16, x:x + 16] for y in range(0, height, 16)
             for x in range(0, width, 16)]
    stacked = np.concatenate(tiles)
    size = 16 * 16 * 3
    return tiff(stacked, 2, tags={
        256: ("H", (width,)), 257: ("H", (height,)), 322: ("H", (16,)), 323: ("H", (16,)),
        324: ("I", tuple(8 + i * size for i in range(len(tiles)))),
        325: ("I", (size,) * len(tiles))} | {273: ("I", (8,))})


def main() -> None:
    add_gifs()
    add_bmps()
    add_tiffs()
    image = Image.fromarray(scene(64, 48))
    (MEDIA / "plain.avif").write_bytes(save(image, "AVIF", quality=95, subsampling="4:4:4"))
    (MEDIA / "plain_as_png.png").write_bytes(save(image, "PNG"))
    write_json(MEDIA / "golden_gif_bmp_tiff.json", golden)


if __name__ == "__main__":
    main()
