"""Pictures that Pillow does not write, and some that nobody should.

Every function is deterministic: equal arguments are equal bytes.
"""

import functools
import io
import struct
import zlib

from PIL import Image

from support import encoded, picture, png

GRAY, RGB, PALETTE, GRAY_ALPHA, RGBA = 0, 2, 3, 4, 6  # PNG colour types
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


# PNG, chunk by chunk

def chunk(kind, data, crc=None):
    crc = zlib.crc32(kind + data) if crc is None else crc
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)


def header_chunk(width, height, depth, colour_type, interlace=0):
    return chunk(b"IHDR", struct.pack(
        ">IIBBBBB", width, height, depth, colour_type, 0, 0, interlace))


def raw_png(width, height, depth, colour_type, samples, *extra):
    """`samples` are the rows' bytes without filters; `extra` chunks stand before the data."""
    size = len(samples) // height
    rows = b"".join(b"\0" + samples[y * size:(y + 1) * size] for y in range(height))
    return png_file(header_chunk(width, height, depth, colour_type), *extra,
                    chunk(b"IDAT", zlib.compress(rows, 6)))


def png_file(*chunks):
    return PNG_SIGNATURE + b"".join(chunks) + chunk(b"IEND", b"")


def chunks_of(content):
    """(kind, data) of every chunk."""
    at = len(PNG_SIGNATURE)
    while at < len(content):
        (length,) = struct.unpack(">I", content[at:at + 4])
        yield content[at + 4:at + 8], content[at + 8:at + 8 + length]
        at += 12 + length


def rebuilt_png(content, change):
    """The same file, each chunk replaced by the bytes that change(kind, data) gives."""
    return PNG_SIGNATURE + b"".join(change(kind, data) for kind, data in chunks_of(content))


def padded_png(size, seed=0):
    """A good picture in a file of exactly `size` bytes."""
    content = png(seed)
    padding = bytes(size - len(content) - 12)
    return rebuilt_png(content, lambda kind, data: (
        (chunk(b"viTr", padding) if kind == b"IEND" else b"") + chunk(kind, data)))


def damaged_png_crc(seed=0):
    return rebuilt_png(png(seed), lambda kind, data: chunk(
        kind, data, crc=0x12345678 if kind == b"IDAT" else None))


def with_png_data(change, seed=0):
    """Checksums of chunks are right, the compressed data is not."""
    return rebuilt_png(png(seed), lambda kind, data: (
        chunk(kind, change(data) if kind == b"IDAT" else data)))


# Orientation and EXIF

def oriented(image, orientation, format="JPEG", **options):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(image, format, exif=exif, **options)


# What brings an image stored under each orientation upright again, in Pillow's words.
UPRIGHT = {
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def upright(image, orientation):
    method = UPRIGHT[orientation]
    return image if method is None else image.transpose(method)


def with_app1(jpeg, payload):
    """The JPEG with an APP1 segment right behind its start marker."""
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(payload) + 2) + payload + jpeg[2:]


def exif_block(count, value):
    """A directory that announces `count` entries and has one: the orientation."""
    entry = struct.pack("<HHII", 0x0112, 3, 1, value)
    return b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<H", count) + entry + bytes(4)


BROKEN_EXIF = {
    "offset beyond the block": b"Exif\0\0II*\0\xff\xff\xff\x7f",
    "entry cut off": exif_block(0xffff, 6)[:24],
    "no byte order": b"Exif\0\0XX*\0\x08\0\0\0",
    "nothing": b"Exif\0\0",
    "orientation of 77": exif_block(1, 77),
}


# Containers that we name and refuse

@functools.cache
def refused_formats():
    """Name as it appears in the reply -> a file of that format."""
    image = picture(3)
    return {
        "ico": encoded(image, "ICO", sizes=[(32, 32)]),
        "jpeg 2000": encoded(image, "JPEG2000"),
        "jpeg xl": b"\0\0\0\x0cJXL \r\n\x87\n" + bytes(200),
        "svg": b"<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg' width='9'/>",
        "pdf": b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\n",
        "mp4": b"\0\0\0\x18ftypisom\0\0\2\0isomiso2" + bytes(200),
        "wav": b"RIFF\x24\0\0\0WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 16000, 32000, 2, 16)
               + b"data\0\0\0\0",
        "aiff": b"FORM\0\0\0\x2eAIFFCOMM" + bytes(200),
        "caf": b"caff\0\1\0\0desc" + bytes(200),
        "amr": b"#!AMR\n" + bytes(200),
        "flv": b"FLV\1\5\0\0\0\x09" + bytes(200),
        "asf": b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\0\xaa\0\x62\xce\x6c" + bytes(200),
        "html": b"<!DOCTYPE html><html><body>404</body></html>",
        "text": b"this is not a picture\n",
        "unknown": bytes(range(256)),
    }


def animation(frames, format="PNG", **options):
    """An animated PNG, WebP or GIF of equally large frames."""
    return encoded(frames[0], format, save_all=True, append_images=frames[1:], duration=40,
                   **options)


# Bombs: small files that ask for gigabytes

def declared_png(width, height, depth=8, colour_type=RGB, interlace=0):
    """Says that it is that large; the data is another matter."""
    return png_file(header_chunk(width, height, depth, colour_type, interlace),
                    chunk(b"IDAT", zlib.compress(bytes(1000))))


def one_colour_png(side):
    """One bit a pixel, honestly compressed."""
    row = bytes(1 + (side + 7) // 8)
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(row * 100) for _ in range(side // 100)) + packer.flush()
    return png_file(header_chunk(side, side, 1, GRAY), chunk(b"IDAT", data))


@functools.cache
def swelling(megabytes):
    packer = zlib.compressobj(9)
    piece = bytes(1 << 20)
    return b"".join(packer.compress(piece) for _ in range(megabytes)) + packer.flush()


def png_with(extra, seed=0):
    """A good small picture with a chunk more."""
    return rebuilt_png(png(seed), lambda kind, data: (
        chunk(kind, data) + (extra if kind == b"IHDR" else b"")))


def declared_jpeg(width, height, progressive=False):
    """A small JPEG whose frame header says otherwise."""
    content = bytearray(encoded(picture(0), "JPEG", progressive=progressive))
    marker = content.index(b"\xff\xc2" if progressive else b"\xff\xc0")
    content[marker + 5:marker + 9] = struct.pack(">HH", height, width)
    return bytes(content)


def many_scans_jpeg(count):
    """The last scan of a progressive JPEG, over and over."""
    content = encoded(picture(0), "JPEG", progressive=True)
    last = content.rindex(b"\xff\xda")
    return content[:last] + content[last:-2] * count + b"\xff\xd9"


def riff_webp(*chunks):
    body = b"WEBP" + b"".join(
        kind + struct.pack("<I", len(data)) + data + bytes(len(data) % 2) for kind, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def declared_webp(width, height):
    """A VP8X canvas of up to 2^24 pixels a side around a small picture."""
    sides = [struct.pack("<I", side - 1)[:3] for side in (width, height)]
    canvas = bytes(4) + b"".join(sides)
    small = encoded(picture(0), "WEBP", lossless=True)
    return riff_webp((b"VP8X", canvas), (b"VP8L", small[20:]))


def declared_lossless_webp(width, height):
    bits = (width - 1) | (height - 1) << 14
    return riff_webp((b"VP8L", b"\x2f" + struct.pack("<I", bits) + bytes(64)))


def declared_gif(width, height):
    content = bytearray(encoded(picture(0), "GIF"))
    content[6:10] = struct.pack("<HH", width, height)
    return bytes(content)


def raw_tiff(width, height, samples, data, bits=8, order="<"):
    """One strip without compression: `samples` is 1 for gray, 3 for colour."""
    start = 8 + 2 + 12 * 8 + 4
    tags = [(256, 4, 1, width), (257, 4, 1, height), (258, 3, samples, bits), (259, 3, 1, 1),
            (262, 3, 1, 1 if samples == 1 else 2), (273, 4, 1, start + 6), (277, 3, 1, samples),
            (279, 4, 1, len(data))]
    entries = b""
    for tag, kind, count, value in tags:
        short = kind == 3 and count == 1
        packed = struct.pack(f"{order}HH" if short else f"{order}I",
                             *((value, 0) if short else (start if count > 1 else value,)))
        entries += struct.pack(f"{order}HHI", tag, kind, count) + packed
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}IH", 8, len(tags))
    return head + entries + bytes(4) + struct.pack(f"{order}HHH", bits, bits, bits) + data


def declared_tiff(width, height):
    return raw_tiff(width, height, 1, bytes(100))


def declared_avif(width, height):
    content = encoded(picture(0), "AVIF")
    at = content.index(b"ispe") + 8
    return content[:at] + struct.pack(">II", width, height) + content[at + 8:]


def avif_of_many_extents(items=60_000):
    """Numbers of no bytes: each item has 65535 extents that take no place."""
    def box(kind, body):
        return struct.pack(">I", 8 + len(body)) + kind + body

    places = b"".join(struct.pack(">HHH", item, 0, 65535) for item in range(items))
    locations = box(b"iloc", bytes(4) + struct.pack(">HH", 0, items) + places)
    return box(b"ftyp", b"avif" + bytes(4) + b"avif") + box(b"meta", bytes(4) + locations)


def billion_laughs():
    out = io.StringIO()
    out.write("<?xml version='1.0'?><!DOCTYPE svg [<!ENTITY a0 'ha'>")
    for level in range(1, 30):
        out.write(f"<!ENTITY a{level} '&a{level - 1};&a{level - 1};'>")
    out.write("]><svg xmlns='http://www.w3.org/2000/svg'><text>&a29;</text></svg>")
    return out.getvalue().encode()


def text_bomb():
    return b"Comment\0\0" + swelling(256)


# Name -> (how to make it, the statuses that are right). What is small once decoded may be encoded.
HARMLESS_OR_REFUSED = {200, 400, 413}
BOMBS = {
    "png of 900 megapixels": (lambda: one_colour_png(30000), {413}),
    "png of 65535 x 65535": (lambda: declared_png(65535, 65535), {413}),
    "png of 46341 x 46341 x 64 bit": (lambda: declared_png(46341, 46341, 16, RGBA), {413}),
    "png of 2^31 - 1 squared": (lambda: declared_png(2**31 - 1, 2**31 - 1), {413}),
    "png of 2^32 - 1 squared": (lambda: declared_png(2**32 - 1, 2**32 - 1), {400, 413}),
    "png of 2^31 - 1 x 1": (lambda: declared_png(2**31 - 1, 1), {413}),
    "png of 1 x 2^31 - 1": (lambda: declared_png(1, 2**31 - 1), {413}),
    "png of no width": (lambda: declared_png(0, 100), {400}),
    "interlaced png of 400 megapixels": (lambda: declared_png(20000, 20000, interlace=1), {413}),
    "png with more data than pixels": (
        lambda: png_file(header_chunk(64, 64, 8, RGB), chunk(b"IDAT", swelling(256))),
        HARMLESS_OR_REFUSED),
    "png with a large zTXt": (
        lambda: png_with(chunk(b"zTXt", text_bomb()), 901), HARMLESS_OR_REFUSED),
    "png with a large iTXt": (
        lambda: png_with(chunk(b"iTXt", b"Comment\0\1\0\0\0" + swelling(256)), 902),
        HARMLESS_OR_REFUSED),
    "png with a large iCCP": (
        lambda: png_with(chunk(b"iCCP", text_bomb()), 903), HARMLESS_OR_REFUSED),
    "jpeg of 65535 x 65535": (lambda: declared_jpeg(65535, 65535), {400, 413}),
    "jpeg of 65500 x 65500": (lambda: declared_jpeg(65500, 65500), {413}),
    "jpeg of 65500 x 65500, cut": (lambda: declared_jpeg(65500, 65500)[:700], {400, 413}),
    "progressive jpeg of 30000 x 30000": (lambda: declared_jpeg(30000, 30000, True), {413}),
    "jpeg of 5000 scans": (lambda: many_scans_jpeg(5000), {400, 413}),
    "webp of 2^24 x 2^24": (lambda: declared_webp(2**24, 2**24), {400, 413}),
    "webp of 16383 x 16383": (lambda: declared_lossless_webp(16383, 16383), {413}),
    "gif of 65535 x 65535": (lambda: declared_gif(65535, 65535), {413}),
    "bmp of 60000 x 60000": (
        lambda: b"BM" + struct.pack("<IHHIIiiHHIIiiII", 100, 0, 0, 54, 40, 60000, 60000, 1, 24,
                                    0, 0, 1, 1, 0, 0), {413}),
    "bmp of 2^31 - 1 squared": (
        lambda: b"BM" + struct.pack("<IHHIIiiHHIIiiII", 100, 0, 0, 54, 40, 2**31 - 1, -2**31, 1,
                                    24, 0, 0, 1, 1, 0, 0), {413}),
    "bmp whose pixels are missing": (
        lambda: b"BM" + struct.pack("<IHHIIiiHHIIiiII", 100, 0, 0, 54, 40, 8000, 8000, 1, 24,
                                    0, 0, 1, 1, 0, 0), {400}),
    "bmp of runs for 9 megapixels": (
        lambda: b"BM" + struct.pack("<IHHIIiiHHIIiiII", 100, 0, 0, 58, 40, 3000, 3000, 1, 8,
                                    1, 0, 1, 1, 1, 0) + bytes(4) + b"\0\1", HARMLESS_OR_REFUSED),
    "tiff of 65535 x 65535": (lambda: declared_tiff(65535, 65535), {413}),
    "tiff of 2^32 - 1 squared": (lambda: declared_tiff(2**32 - 1, 2**32 - 1), {400, 413}),
    "tiff of 60 megapixels that are not there": (lambda: declared_tiff(7500, 8000), {400}),
    "avif of 65535 x 65535": (lambda: declared_avif(65535, 65535), {400, 413}),
    "avif of four thousand million extents": (avif_of_many_extents, {400, 413}),
    "png with a large text about its orientation": (
        lambda: png_with(chunk(b"zTXt", b"Raw profile type exif\0\0" + swelling(256)), 904),
        HARMLESS_OR_REFUSED),
    "png with a large xmp": (
        lambda: png_with(chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + swelling(256)), 905),
        HARMLESS_OR_REFUSED),
    "svg of a billion laughs": (billion_laughs, {415}),
}
