"""What Pillow makes of a file, by the rules of docs/media.md."""

import concurrent.futures
import resource
import warnings

import numpy
import pi_heif  # reading.py knows where it lies
from PIL import Image, ImageFile, ImageOps

pi_heif.register_heif_opener()
ImageFile.LOAD_TRUNCATED_IMAGES = False
Image.MAX_IMAGE_PIXELS = None
MOST_PIXELS = 64_000_000  # --max-image-pixels
MOST_MEMORY = 6 << 30  # that Pillow may take for a file that lies about itself


def bound_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def on_white(rgba):
    color, alpha = rgba[..., :3].astype(numpy.uint32), rgba[..., 3:].astype(numpy.uint32)
    return ((2 * (color * alpha + 255 * (255 - alpha)) + 255) // 510).astype(numpy.uint8)


def gray_of_16_bits(image):
    """Scaled, where Pillow clamps when it is asked for RGB."""
    values = numpy.asarray(image).astype(numpy.uint16)
    gray = (values >> 8).astype(numpy.uint8)
    if "transparency" in image.info:
        gray[values == image.info["transparency"]] = 255
    return numpy.repeat(gray[..., None], 3, 2)


def pixels(path):
    """[height, width, 3]; throws what Pillow throws."""
    with warnings.catch_warnings(), Image.open(path) as image:
        warnings.simplefilter("ignore")
        if image.width * image.height > MOST_PIXELS:
            raise ValueError("too many pixels")
        image = ImageOps.exif_transpose(image)
        if image.mode.startswith("I;16"):
            return gray_of_16_bits(image)
        transparent = image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info
        if transparent:
            return on_white(numpy.asarray(image.convert("RGBA")))
        return numpy.asarray(image.convert("RGB"))


def pixels_or_nothing(path):
    try:
        return pixels(path)
    except Exception:  # readers of odd files throw everything there is
        return None


class Reader:
    """Pillow in a process of its own, which a file may bring down."""

    def __init__(self):
        self.pool = None

    def pixels(self, path):
        """Nothing where it does not read the file."""
        if self.pool is None:
            self.pool = concurrent.futures.ProcessPoolExecutor(1, initializer=bound_memory)
        try:
            return self.pool.submit(pixels_or_nothing, path).result()
        except concurrent.futures.process.BrokenProcessPool:
            self.close()
            return None

    def close(self):
        if self.pool is not None:
            self.pool.shutdown()
            self.pool = None


def difference(ours, theirs):
    """Nothing when equal, else the largest difference, the mean, and the share of values that differ."""
    if numpy.array_equal(ours, theirs):
        return None
    apart = numpy.abs(ours.astype(numpy.int16) - theirs)
    return int(apart.max()), float(apart.mean()), float((apart > 0).mean())
