#!/usr/bin/env python3
"""Writes JPEGs as cameras, scanners and editors make them and Pillow does not, of those that it does;
and what Pillow decodes them to, in media/golden_jpeg.json. See make_media_fixtures.py.

    build/venv/bin/python tests/data/make_jpeg_fixtures.py

One of them takes a C compiler and libjpeg, which knows arithmetic coding.
"""

import struct
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from make_media_fixtures import (DECODER_VERSIONS, MEDIA, crc, exif_block, insert_exif_into_jpeg,
                                 pillow_rgb, save, scene, write_json)


def segment_at(jpeg: bytes, marker: int) -> int:
    """Where the segment of this marker begins."""
    return jpeg.index(bytes([0xFF, marker]))


def put(content: bytes, at: int, new: bytes) -> bytes:
    return content[:at] + new + content[at + len(new):]


def without_scan_parameters(jpeg: bytes) -> bytes:
    at = segment_at(jpeg, 0xDA)
    return put(jpeg, at + 5 + 2 * jpeg[at + 4], bytes(3))


def with_first_sampling(jpeg: bytes, sampling: int) -> bytes:
    """The same blocks, dealt out in another way: of a picture of 64 x 64 it takes as many."""
    return put(jpeg, segment_at(jpeg, 0xC0) + 11, bytes([sampling]))


def without_adobe(jpeg: bytes) -> bytes:
    at = jpeg.index(b"Adobe") - 4
    (length,) = struct.unpack(">H", jpeg[at + 2:at + 4])
    return jpeg[:at] + jpeg[at + 2 + length:]


def arithmetic(jpeg: bytes) -> bytes:
    source = Path(__file__).with_name("arithmetic_jpeg.c")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "arithmetic_jpeg"
        subprocess.run(["cc", str(source), "-o", str(program), "-ljpeg"], check=True)
        return subprocess.run([str(program)], input=jpeg, capture_output=True, check=True).stdout


def whole_kinds() -> dict[str, bytes]:
    """Those that are decoded."""
    image = Image.fromarray(scene(64, 64))
    plain = save(image, "JPEG", quality=90)
    inks = save(image.convert("CMYK"), "JPEG", quality=90)
    profile = struct.pack(">I", 400) + bytes(32) + b"acsp" + bytes(range(180)) * 2
    later = Image.fromarray(np.ascontiguousarray(scene(64, 64)[::-1]))
    return {
        "scan_of_zeros": without_scan_parameters(plain),
        "440": with_first_sampling(save(image, "JPEG", quality=90, subsampling=1), 0x12),
        "411": with_first_sampling(save(image, "JPEG", quality=90, subsampling=2), 0x41),
        "rgb": save(image, "JPEG", quality=90, keep_rgb=True),
        "ycck": put(inks, inks.index(b"Adobe") + 11, b"\2"),
        "cmyk_no_adobe": without_adobe(inks),
        "icc": save(image, "JPEG", quality=90, icc_profile=profile),
        "mpo": save(image, "MPO", save_all=True, append_images=[later], quality=90),
        "arithmetic": arithmetic(plain),
    }


XMP = (b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF "
       b"xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><rdf:Description "
       b"xmlns:tiff='http://ns.adobe.com/tiff/1.0/' %s></rdf:RDF></x:xmpmeta>")


def with_xmp(jpeg: bytes, description: bytes) -> bytes:
    body = XMP % description
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + jpeg[2:]


def turned_by_xmp() -> dict[str, bytes]:
    stored = save(Image.fromarray(scene(48, 32)), "JPEG", quality=92)
    without_tag = b"MM\0*" + struct.pack(">IHI", 8, 0, 0)
    sixth = b'tiff:Orientation="6"/'
    element = b"><tiff:Orientation>8</tiff:Orientation></rdf:Description"
    return {
        "xmp_attribute": with_xmp(stored, sixth),
        "xmp_element": with_xmp(stored, element),
        "xmp_out_of_range": with_xmp(stored, b'tiff:Orientation="9"/'),
        "xmp_of_no_number": with_xmp(stored, b'tiff:Orientation="up" tiff:Orientation="3"/'),
        "xmp_beside_exif": insert_exif_into_jpeg(with_xmp(stored, sixth), exif_block(3)),
        "xmp_beside_exif_without_tag": insert_exif_into_jpeg(with_xmp(stored, sixth), without_tag),
    }


def main() -> None:
    files = {}
    for name, data in (whole_kinds() | turned_by_xmp()).items():
        (MEDIA / f"{name}.jpg").write_bytes(data)
        pixels = pillow_rgb(data)
        files[f"{name}.jpg"] = {
            "width": pixels.shape[1], "height": pixels.shape[0], "crc32": crc(pixels)}
    write_json(MEDIA / "golden_jpeg.json",
               {"jpeg": {"version": DECODER_VERSIONS["jpeg"], "files": files}})


if __name__ == "__main__":
    main()
