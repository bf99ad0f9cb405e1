"""Decodes and resizes JPEG files with Pillow; the other side of bench_media.

Started with a directory: asked by a first, empty line it writes photographs of several sizes there
(mosaics of real ones, for the detail of a camera's) and says how many. Then for each line "FILE WIDTH HEIGHT" on standard input it decodes that file
and resizes it, bicubic, and prints the seconds of processor time that took; "FILE 0 0" only decodes.
"""

import io
import sys
import time
from pathlib import Path

from PIL import Image

PICTURES = Path(__file__).resolve().parent.parent / "build" / "sample" / "pictures"
SIZES = {"2mp": (1632, 1224), "5mp": (2592, 1944), "8mp": (3264, 2448), "12mp": (4000, 3000)}
SOURCES = ("motorcycle_left.png", "coffee.png", "astronaut.png", "chelsea.png", "rocket.jpg", "retina.jpg")


def mosaic(size: tuple[int, int]) -> Image.Image:
    """Pictures side by side in rows of 300 pixels, until the size is full."""
    tiles = [Image.open(PICTURES / name).convert("RGB") for name in SOURCES]
    canvas = Image.new("RGB", size)
    left, top, count = 0, 0, 0
    while top < size[1]:
        tile = tiles[count % len(tiles)]
        canvas.paste(tile, (left, top))
        left, count = left + tile.width, count + 1
        if left >= size[0]:
            left, top = 0, top + 300
    return canvas


def write_photographs(directory: Path) -> None:
    """As a camera does: 4:2:0, quality 90, not progressive."""
    for name, size in SIZES.items():
        mosaic(size).save(directory / f"{name}.jpg", quality=90)
    print(len(SIZES), flush=True)


def main() -> None:
    directory = Path(sys.argv[1])
    sys.stdin.readline()
    write_photographs(directory)
    files = {path.name: path.read_bytes() for path in directory.glob("*.jpg")}
    for line in sys.stdin:
        name, width, height = line.split()
        data = files[name]
        start = time.thread_time()
        image = Image.open(io.BytesIO(data)).convert("RGB")
        if int(width) > 0:
            image = image.resize((int(width), int(height)), Image.Resampling.BICUBIC)
        image.load()
        print(time.thread_time() - start, flush=True)


if __name__ == "__main__":
    main()
