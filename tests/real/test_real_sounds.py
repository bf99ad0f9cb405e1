"""Every sound of other projects' tests: what libsndfile (mpg123, libvorbis, libopus, libFLAC) makes of it we make
of it too, or it is listed here."""

import collections

import numpy
import pytest

import reading

import soundfile  # reading.py knows where it lies

PACKAGES = ["mutagen", "hachoir", "pymediainfo"]
CLOSE = 1e-5  # of samples from -1 to 1
FORMATS = {"wav", "mp3", "flac", "ogg", "aac", "mp4", "quicktime", "webm"}

# libsndfile reads them, we do not.
REFUSED = {
    "the last frame is cut": [
        "hachoir/sheep_on_drugs.mp3", "mutagen/bad-xing.mp3", "mutagen/id3v22-test.mp3", "mutagen/vbri.mp3",
        "mutagen/xing.mp3"],
    "less sound than its header says": ["mutagen/apev2-lyricsv2.mp3", "hachoir/ladouce_1h15.wav"],
}
# We read them, libsndfile does not: containers that it does not know, and an MP3 of one frame.
OURS_ALONE = {
    "hachoir/flashmob.mkv", "hachoir/quicktime.mp4", "mutagen/alac.m4a", "mutagen/covr-with-name.m4a",
    "mutagen/empty.aac", "mutagen/empty.oggflac", "mutagen/ep7.m4b", "mutagen/ep9.m4b", "mutagen/has-tags.m4a",
    "mutagen/lame397v9short.mp3", "mutagen/no-tags.3g2", "mutagen/no-tags.m4a", "mutagen/sample_length.oggtheora",
    "pymediainfo/aac_he_v2.aac", "pymediainfo/mp4-with-audio.mp4", "pymediainfo/sample.mp4",
    "pymediainfo/vbr_requires_parsespeed_1.mp4"}
# Both read them, and not alike.
OTHER_SAMPLES = {
    "FFmpeg takes speech of Opus to 48 kHz by another filter than libopus": ["mutagen/example.opus"],
    "FFmpeg begins 128 silent samples later": ["mutagen/empty.ogg", "mutagen/multipagecomment.ogg"],
}


def named(groups):
    return {name for names in groups.values() for name in names}


def reference(path):
    """(mono samples, rate), or nothing."""
    try:
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
        return samples.mean(axis=1, dtype=numpy.float32), rate
    except Exception:  # readers of odd files throw everything there is
        return None


def verdict(ours, theirs):
    if ours.refused and (ours.line["status"] == 415 and ours.line["format"] not in FORMATS):
        return "another format"
    if theirs is None:
        return "both refuse" if ours.refused else "ours alone"
    if ours.refused:
        return "refused"
    samples = numpy.frombuffer(ours.values(), numpy.float32)
    alike = len(samples) == len(theirs[0]) and numpy.allclose(samples, theirs[0], rtol=0, atol=CLOSE)
    return "alike" if alike else "other samples"


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    files = reading.files_of(*PACKAGES)
    references = {name: reference(path) for name, path in files.items()}
    rates = {name: known[1] if known else 16000 for name, known in references.items()}
    decoded = reading.decode([(f"audio:{rates[name]}", path) for name, path in files.items()],
                             tmp_path_factory.mktemp("sounds"))
    found = collections.defaultdict(set)
    for name, ours in zip(files, decoded, strict=True):
        assert ours.line["took"] < reading.SECONDS, name
        found[verdict(ours, references[name])].add(name)
    print({what: len(names) for what, names in sorted(found.items())})
    return found


def test_sounds_are_those_of_another_reader(verdicts):
    assert len(verdicts["alike"]) >= 20


@pytest.mark.parametrize("what, listed", [
    ("refused", named(REFUSED)), ("ours alone", OURS_ALONE), ("other samples", named(OTHER_SAMPLES))])
def test_every_difference_has_its_reason(verdicts, what, listed):
    assert verdicts[what] == listed


def test_there_is_nothing_else(verdicts):
    assert set(verdicts) <= {"alike", "refused", "ours alone", "other samples", "both refuse", "another format"}
