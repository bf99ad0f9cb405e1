"""Every picture of other projects' tests: what Pillow reads we read to the same last bit, or it is listed here."""

import collections

import numpy
import pytest

import reading
from pictures import Reader, difference

PACKAGES = ["pillow", "pillow-heif", "hachoir", "mutagen"]
AT_A_TIME = 64
TAKEN_FORMATS = {"jpeg", "png", "webp", "gif", "bmp", "tiff", "avif", "heic"}

# Pillow reads them, we do not. 415: a kind that docs/media.md says is not taken. 400: damage, which Pillow fills up.
KINDS = {
    "numbers of 32 bits, whole or floating": ["pillow/10ct_32bit_128.tiff", "pillow/16_bit_binary_pgm.tiff"],
    "gray of 12 bits": ["pillow/12bit.cropped.tif"],
    "signed numbers": ["pillow/16bit.s.tif", "pillow/8bit.s.tif", "pillow/separate_planar_extra_samples.tiff"],
    "Lab": ["pillow/hopper.Lab.tif", "pillow/lab.tif", "pillow/lab-green.tif", "pillow/lab-red.tif"],
    "the JPEG of TIFF 6, replaced in 1995": [
        "pillow/old-style-jpeg-compression.tif", "pillow/old-style-jpeg-compression-no-samplesperpixel.tif"],
    "a palette with alpha": ["pillow/rdf.tif"],
}
DAMAGED = {
    "a colour beyond the palette": ["pillow/bmp/b/pal8badindex.bmp", "pillow/mmap_error.bmp"],
    "a run of pixels beyond the picture": ["pillow/bmp/b/badrle.bmp"],
    "1214 stray bytes in the header": ["pillow/hopper_bad_exif.jpg"],
    "codes of eleven bits, of which GIF has eight": ["pillow/issue_2811.gif"],
    "no record where one must begin": ["pillow/test_extents_transparency.gif"],
    "the end of the file is missing": ["pillow-heif/heif_truncated/truncated.heic"],
}
# We read them, Pillow does not.
OURS_ALONE = {
    "the default image of an APNG whose frames are wrong": ["pillow/apng/chunk_no_fctl.png"],
    "a header of a size of its own": ["pillow/bmp/b/badheadersize.bmp"],
    "a palette that is told too large": ["pillow/bmp/b/badpalettesize.bmp", "pillow/bmp/q/pal8oversizepal.bmp"],
    "bit fields of other widths": [
        "pillow/bmp/g/rgb32bf.bmp", "pillow/bmp/q/rgb16-231.bmp", "pillow/bmp/q/rgb32-111110.bmp",
        "pillow/bmp/q/rgba16-4444.bmp", "pillow/bmp/q/rgba32abf.bmp"],
    "WebP in TIFF": ["pillow/hopper_webp.tif"],
    "a text without end, which is not unpacked": ["pillow/png_decompression_dos.png"],
    "metadata that pillow-heif cannot read": ["pillow-heif/heif_special/invalid_metadata_type.heic"],
    "tiles of JPEG larger than they are told": ["pillow/tiff_tiled_jpeg_oob_read.tif"],
}
# Both read them, and not alike.
OTHER_PIXELS = {
    "multiplied alpha is put on white, and not divided first": [
        "pillow/pil136.tiff", "pillow/tiff_16bit_RGBa.tiff", "pillow/tiff_strip_planar_16bit_RGBa.tiff",
        "pillow/tiff_tiled_planar_16bit_RGBa.tiff"],
    "a fourth sample that no tag explains is no transparency": ["pillow/tiff_wrong_bits_per_sample_3.tiff"],
    "an AVIF lies as its own turns say, whatever XMP says": ["pillow/avif/xmp_tags_orientation.avif"],
    "the primary item is the one that the file names": ["pillow-heif/heif_other/invalid_id.heic"],
    "tiles of ten bits with a limited range, which libheif 1.15 takes for the full one": [
        "pillow-heif/heif_special/guitar_cw90.hif"],
}
# Two decoders of these may round colours that are stored at half the size differently.
LOSSY = {"avif", "heic"}
LOSSY_MEAN, LOSSY_MOST = 1.5, 64


def named(groups):
    return {name for names in groups.values() for name in names}


def verdict(ours, path, reader):
    """What became of a file, in a word or two."""
    if ours.refused and ours.line["status"] == 415 and ours.line["format"] not in TAKEN_FORMATS:
        return "another format"
    theirs = reader.pixels(path)
    if theirs is None:
        return "both refuse" if ours.refused else "ours alone"
    if ours.refused:
        return {415: "kind", 400: "damaged"}.get(ours.line["status"], ours.why)
    shape = (ours.line["height"], ours.line["width"], 3)
    if shape != theirs.shape:
        return "other pixels"
    apart = difference(numpy.frombuffer(ours.values(), numpy.uint8).reshape(shape), theirs)
    if apart is None:
        return "equal"
    most, mean, _ = apart
    close = ours.line["format"] in LOSSY and mean <= LOSSY_MEAN and most <= LOSSY_MOST
    return "close" if close else "other pixels"


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    found = collections.defaultdict(set)
    reader = Reader()
    files = list(reading.files_of(*PACKAGES).items())
    for start in range(0, len(files), AT_A_TIME):
        part = files[start:start + AT_A_TIME]
        decoded = reading.decode([("image", path) for _, path in part], tmp_path_factory.mktemp("part"))
        for (name, path), ours in zip(part, decoded, strict=True):
            assert ours.line["took"] < reading.SECONDS, name
            found[verdict(ours, path, reader)].add(name)
            ours.forget()
    reader.close()
    print({what: len(names) for what, names in sorted(found.items())})
    return found


def test_hundreds_of_pictures_are_pillows_to_the_last_bit(verdicts):
    assert len(verdicts["equal"]) >= 700
    assert len(verdicts["close"]) >= 36


@pytest.mark.parametrize("what, listed", [
    ("kind", KINDS), ("damaged", DAMAGED), ("ours alone", OURS_ALONE), ("other pixels", OTHER_PIXELS)])
def test_every_difference_has_its_reason(verdicts, what, listed):
    assert verdicts[what] == named(listed)


def test_there_is_nothing_else(verdicts):
    """Such as a file that is whole and too large, or a server's fault."""
    assert set(verdicts) <= {"equal", "close", "kind", "damaged", "ours alone", "other pixels", "both refuse",
                             "another format"}
