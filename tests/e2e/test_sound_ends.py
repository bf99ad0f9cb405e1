"""Sounds whose file does not say where they end, or goes on behind them: what pipes, recorders and
taggers write."""

import struct

import pytest

from clips import CLIPS, clip
from support import data_url, refused

pytestmark = pytest.mark.usefixtures("bystander")


@pytest.fixture(scope="module")
def server(start_shared):
    return start_shared(encoder="stub:dim=64,tokens=1-4096,seed=1")


def rows_of(server, file):
    return server.embeddings([data_url(file)], modality="audio").raw


def with_sizes(wav, riff, data):
    """A head that was written before anything was known."""
    at = wav.index(b"data") + 4
    return wav[:4] + struct.pack("<I", riff) + wav[8:at] + struct.pack("<I", data) + wav[at + 4:]


UNKNOWN = {
    "nothing told": (0, 0),
    "only the head told": (36, 0),
    "all bits": (0xffffffff, 0xffffffff),
    "half of them": (0xffffffff, 0x7fffffff),
    "sox": (0x7ffff024, 0x7ffff000),
    "a recorder": (0x80000024, 0x80000000),
}


@pytest.mark.parametrize("name", ["plain.wav", "cd.wav", "float.wav", "deep.wav"])
@pytest.mark.parametrize("sizes", UNKNOWN)
def test_a_wav_of_unknown_length_is_the_sound_that_it_holds(server, name, sizes):
    """B14."""
    assert rows_of(server, with_sizes(clip(name), *UNKNOWN[sizes])) == rows_of(server, clip(name))


@pytest.mark.parametrize("more", [2, 1000, 100_000])
def test_a_wav_of_known_length_that_is_cut_is_refused(server, more):
    """B14: however the rest was lost."""
    whole = clip("plain.wav")
    data = len(whole) - whole.index(b"data") - 8
    for broken in (whole[:-2], with_sizes(whole, len(whole) - 8 + more, data + more)):
        error = refused(server, [data_url(broken)], 400, modality="audio")
        assert "damaged" in error["message"]


def test_a_wav_that_ends_with_its_head_has_no_sound(server):
    """B14."""
    whole = clip("plain.wav")
    head = with_sizes(whole, 36, 0)[:whole.index(b"data") + 8]
    refused(server, [data_url(head)], 400, modality="audio")
    refused(server, [data_url(head + b"LIST\4\0\0\0INFO")], 400, modality="audio")


def test_an_rf64_is_the_sound_of_its_wav(server):
    whole = clip("plain.wav")
    data = whole.index(b"data")
    size = len(whole) - data - 8
    sizes = b"ds64" + struct.pack("<IQQQI", 28, size + 72, size, size // 2, 0)
    large = (b"RF64\xff\xff\xff\xffWAVE" + sizes + whole[12:data] + b"data\xff\xff\xff\xff"
             + whole[data + 8:])
    assert rows_of(server, large) == rows_of(server, whole)
    refused(server, [data_url(large[:-1000])], 400, modality="audio")


TAILS = {
    "a zero byte": bytes(1),
    "16 zeros": bytes(16),
    "a frame's length of zeros": bytes(417),
    "1024 zeros": bytes(1024),
    "a kilobyte of text": b"x" * 1024,
    "lyrics": b"LYRICSBEGININD0000200000LYRICS200" + b"TAG" + b" " * 125,
}


@pytest.mark.parametrize("tail", TAILS)
def test_what_follows_an_mp3_does_not_count(server, tail):
    """B14."""
    whole = clip("stereo.mp3")
    assert rows_of(server, whole + TAILS[tail]) == rows_of(server, whole)


def test_an_mp3_with_damage_inside_or_amid_its_last_frame_is_refused(server):
    """B06, for sounds."""
    whole = clip("stereo.mp3")
    middle = whole.index(b"\xff\xfb", len(whole) // 2)
    for broken in (whole[:middle] + bytes(1024) + whole[middle:], whole[:-1], whole[:-100]):
        error = refused(server, [data_url(broken)], 400, modality="audio")
        assert "damaged" in error["message"]


def test_an_aac_stream_is_a_sound_and_a_cut_one_is_not(server):
    whole = (CLIPS / "adts.aac").read_bytes()
    item = server.encode_ok([data_url(whole)], modality="audio")["items"][0]
    assert 15 <= item["tokens"] <= 17
    refused(server, [data_url(whole[:-10])], 400, modality="audio")
