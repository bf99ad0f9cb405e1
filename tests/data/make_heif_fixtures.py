#!/usr/bin/env python3
"""Writes the HEIC and AVIF pictures of tests/data/media that Pillow cannot write: with turns and
mirrors, and with a picture inside that is larger than the file says.

    build/venv/bin/python tests/data/make_heif_fixtures.py

The ffmpeg program encodes one frame; the container around it is made here, box by box. Not part of a
test run: the files are committed, and another version of the encoders would write others.
"""

import struct
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from make_media_fixtures import MEDIA, save, scene

CODECS = {
    "heic": ("hvc1", b"hvcC", ["-c:v", "libx265", "-tag:v", "hvc1", "-x265-params",
                               "qp=8:log-level=none:range=full"]),
    "avif": ("av01", b"av1C", ["-c:v", "libaom-av1", "-crf", "8", "-cpu-used", "8"]),
}


def box(kind: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack(">I", 8 + len(body)) + kind + body


def full_box(kind: bytes, version: int, *parts: bytes) -> bytes:
    return box(kind, struct.pack(">I", version << 24), *parts)


def boxes(content: bytes):
    at = 0
    while at < len(content):
        (size,) = struct.unpack(">I", content[at:at + 4])
        yield content[at + 4:at + 8], content[at:at + size]
        at += size


def coded(kind: str, pixels: np.ndarray) -> tuple[bytes, bytes]:
    """The decoder's configuration, as a box, and one frame."""
    _, config, options = CODECS[kind]
    height, width, _ = pixels.shape
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.mp4"
        subprocess.run(
            ["ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s",
             f"{width}x{height}", "-i", "-", "-vf", "scale=out_range=full:out_color_matrix=bt601",
             "-pix_fmt", "yuv420p", "-color_range", "pc", *options, "-frames:v", "1",
             "-fflags", "+bitexact", "-flags:v", "+bitexact", str(path)],
            input=pixels.tobytes(), check=True)
        film = path.read_bytes()
    frame = next(whole[8:] for name, whole in boxes(film) if name == b"mdat")
    at = film.index(config) - 4
    (size,) = struct.unpack(">I", film[at:at + 4])
    return film[at:at + size], frame


def container(kind: str, config: bytes, frame: bytes, width: int, height: int,
              *turns: bytes) -> bytes:
    item, _, _ = CODECS[kind]
    colour = box(b"colr", b"nclx", struct.pack(">HHHB", 1, 13, 6, 0x80))  # BT.601, full range
    size = full_box(b"ispe", 0, struct.pack(">II", width, height))
    properties = [config, size, colour, *turns]
    uses = bytes(0x80 | (1 + i) for i in range(len(properties)))
    head = box(b"ftyp", kind.encode(), bytes(4), b"mif1", kind.encode())

    def meta(offset: int) -> bytes:
        return full_box(
            b"meta", 0,
            full_box(b"hdlr", 0, bytes(4), b"pict", bytes(12), b"\0"),
            full_box(b"pitm", 0, struct.pack(">H", 1)),
            full_box(b"iinf", 0, struct.pack(">H", 1),
                     full_box(b"infe", 2, struct.pack(">HH", 1, 0), item.encode(), b"\0")),
            box(b"iprp", box(b"ipco", *properties),
                full_box(b"ipma", 0, struct.pack(">IHB", 1, 1, len(uses)), uses)),
            full_box(b"iloc", 0, struct.pack(">BBHHHHII", 0x44, 0, 1, 1, 0, 1, offset,
                                             len(frame))))

    offset = len(head) + len(meta(0)) + 8
    return head + meta(offset) + box(b"mdat", frame)


def grid(kind: str, pixels: np.ndarray, tile: int, *turns: bytes) -> bytes:
    """A picture in tiles, as phones write them; those at its right and lower edge go beyond it."""
    item, _, _ = CODECS[kind]
    height, width, _ = pixels.shape
    rows, columns = -(-height // tile), -(-width // tile)
    whole = np.pad(pixels, ((0, rows * tile - height), (0, columns * tile - width), (0, 0)), "edge")
    tiles = [coded(kind, whole[y * tile:(y + 1) * tile, x * tile:(x + 1) * tile])
             for y in range(rows) for x in range(columns)]
    frames = [frame for _, frame in tiles]
    count, own = len(frames), len(frames) + 1  # items are numbered from 1; the picture is the last
    plan = struct.pack(">BBBBHH", 0, 0, rows - 1, columns - 1, width, height)
    colour = box(b"colr", b"nclx", struct.pack(">HHHB", 1, 13, 6, 0x80))
    sizes = [full_box(b"ispe", 0, struct.pack(">II", *sides))
             for sides in ((tile, tile), (width, height))]
    properties = box(b"ipco", tiles[0][0], sizes[0], colour, sizes[1], *turns)
    of_tiles = bytes([3, 0x81, 0x82, 3])
    of_whole = bytes([2 + len(turns), 0x84, 3, *range(0x85, 0x85 + len(turns))])
    uses = b"".join(struct.pack(">H", i + 1) + of_tiles for i in range(count))
    uses += struct.pack(">H", own) + of_whole
    head = box(b"ftyp", kind.encode(), bytes(4), b"mif1", kind.encode())

    def meta(offset: int) -> bytes:
        places = b""
        for i, frame in enumerate(frames):
            places += struct.pack(">HHHHII", i + 1, 0, 0, 1, offset, len(frame))
            offset += len(frame)
        places += struct.pack(">HHHHII", own, 1, 0, 1, 0, len(plan))  # in this very box
        kinds = [item.encode()] * count + [b"grid"]
        return full_box(
            b"meta", 0,
            full_box(b"hdlr", 0, bytes(4), b"pict", bytes(12), b"\0"),
            full_box(b"pitm", 0, struct.pack(">H", own)),
            full_box(b"iinf", 0, struct.pack(">H", own),
                     *[full_box(b"infe", 2, struct.pack(">HH", i + 1, 0), name, b"\0")
                       for i, name in enumerate(kinds)]),
            box(b"iprp", properties, full_box(b"ipma", 0, struct.pack(">I", own), uses)),
            full_box(b"iref", 0, box(b"dimg", struct.pack(">HH", own, count),
                                     *[struct.pack(">H", i + 1) for i in range(count)])),
            box(b"idat", plan),
            full_box(b"iloc", 1, struct.pack(">BBH", 0x44, 0, own), places))

    offset = len(head) + len(meta(0)) + 8
    return head + meta(offset) + box(b"mdat", *frames)


def write_grids() -> None:
    pixels = scene(180, 120)
    (MEDIA / "grid_as_png.png").write_bytes(save(Image.fromarray(pixels), "PNG"))
    for kind in CODECS:
        (MEDIA / f"grid.{kind}").write_bytes(grid(kind, pixels, 64))
        (MEDIA / f"grid_turned.{kind}").write_bytes(grid(kind, pixels, 64, box(b"irot", b"\1")))


def main() -> None:
    write_grids()
    pixels = scene(48, 32)
    height, width, _ = pixels.shape
    (MEDIA / "heif_as_png.png").write_bytes(save(Image.fromarray(pixels), "PNG"))
    turn = box(b"irot", b"\1")    # a quarter, anticlockwise
    mirror = box(b"imir", b"\1")  # left and right
    for kind in CODECS:
        config, frame = coded(kind, pixels)
        for name, turns in (("upright", []), ("turned", [turn]), ("mirrored", [mirror])):
            (MEDIA / f"{name}.{kind}").write_bytes(
                container(kind, config, frame, width, height, *turns))
        config, frame = coded(kind, np.full((4096, 8192, 3), 99, np.uint8))
        (MEDIA / f"larger_inside.{kind}").write_bytes(
            container(kind, config, frame, width, height))


if __name__ == "__main__":
    main()
