"""One utterance in many layouts, through a real network: field case B14."""

import itertools

import numpy
import pytest

from bystander import Bystander
from clips import wav
from support import data_url, file_store, wait_for_puts
from test_towers import TOWERS

SECONDS = 3.0
HEARD = 4.0  # seconds of a sound, by the small Whisper of the tests: its chunk_length
pytestmark = pytest.mark.usefixtures("bystander")


def voice(rate, pitch=110, stretch=1.0):
    """Syllables of a buzz with two wandering formants, all below 3.4 kHz: the same sound, by formula, at
    every rate."""
    t = numpy.arange(int(SECONDS * rate)) / rate / stretch
    syllables = numpy.sin(numpy.pi * 2.5 * t) ** 2
    formants = [(500 + 300 * numpy.sin(3 * t), 120), (1700 + 700 * numpy.sin(1.7 * t + 1), 200)]
    sound = numpy.zeros_like(t)
    for harmonic in range(1, 3300 // (pitch + 10)):
        phase = 2 * numpy.pi * harmonic * (pitch * t + 1.5 * numpy.sin(2 * t))
        loudness = sum(1 / (1 + ((harmonic * pitch - at) / width) ** 2) for at, width in formants)
        sound += loudness * numpy.sin(phase)
    return 0.1 * syllables * sound


def stereo(sound):
    """Two unequal channels whose mean is `sound`."""
    return numpy.stack([1.5 * sound, 0.5 * sound], -1).reshape(-1)


LAYOUTS = {
    "16 kHz mono": wav(voice(16000), 16000, bits=16),
    "16 kHz stereo": wav(stereo(voice(16000)), 16000, channels=2, bits=16),
    "44.1 kHz stereo": wav(stereo(voice(44100)), 44100, channels=2, bits=16),
    "8 kHz mono": wav(voice(8000), 8000, bits=16),
    "float": wav(voice(16000), 16000),
    "48 kHz, 24 bits": wav(voice(48000), 48000, bits=24),
}
# What a mistake would make of it: the channels one after the other, half the rate, another speaker.
MISTAKES = {
    "stereo heard as mono": wav(stereo(voice(16000)), 16000, bits=16),
    "heard at half the speed": wav(voice(16000, stretch=2.0), 16000, bits=16),
    "somebody else": wav(voice(16000, pitch=190), 16000, bits=16),
}


@pytest.fixture(scope="module")
def whisper(start_shared):
    return start_shared(encoder=TOWERS / "whisper")


@pytest.fixture
def bystander(whisper):
    """Good sounds all the while; none of them may notice."""
    with Bystander(whisper, "audio") as somebody:
        yield somebody


def rows_of(server, file):
    return server.embeddings([data_url(file)], modality="audio").item(0)


def similarity(first, second):
    """The cosine."""
    return float((first * second).sum() / numpy.linalg.norm(first) / numpy.linalg.norm(second))


@pytest.fixture(scope="module")
def common(whisper):
    return rows_of(whisper, wav(numpy.full(16000, 1e-3)))


def test_one_utterance_has_one_embedding_in_every_layout(whisper, common):
    """Also without what all sounds have in common, such as where a row stands."""
    rows = {name: rows_of(whisper, file) for name, file in LAYOUTS.items()}
    for first, second in itertools.combinations(rows, 2):
        assert rows[first].shape == rows[second].shape
        assert similarity(rows[first], rows[second]) > 0.99, (first, second)
        assert similarity(rows[first] - common, rows[second] - common) > 0.98, (first, second)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_measure_tells_what_a_mistake_would_sound_like(whisper, common, mistake):
    right = rows_of(whisper, LAYOUTS["16 kHz mono"]) - common
    assert similarity(right, rows_of(whisper, MISTAKES[mistake]) - common) < 0.95


def test_every_layout_gives_the_same_bytes_again(whisper, start):
    """Also in another process."""
    first = {name: rows_of(whisper, file).tobytes() for name, file in LAYOUTS.items()}
    whisper.post("/flush?scope=local")
    assert {name: rows_of(whisper, file).tobytes() for name, file in LAYOUTS.items()} == first
    other = start(encoder=TOWERS / "whisper")
    assert {name: rows_of(other, file).tobytes() for name, file in LAYOUTS.items()} == first


def test_every_layout_has_as_many_tokens_as_it_has_seconds(start):
    server = start(encoder="stub:dim=64,tokens=1-4096,seed=1")
    for name, file in LAYOUTS.items():
        tokens = server.encode_ok([data_url(file)], modality="audio")["items"][0]["tokens"]
        assert tokens == SECONDS / 0.04, name


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_sample_that_is_no_number_makes_no_entry(whisper, bad):
    samples = voice(16000)
    samples[1000] = bad
    entries = whisper.metrics().sum("vitrove_entries", state="ready")
    assert whisper.encode([data_url(wav(samples))], modality="audio").status == 400
    assert whisper.metrics().sum("vitrove_entries", state="ready") == entries


@pytest.mark.parametrize("seconds, used", [(SECONDS, SECONDS), (HEARD, HEARD), (47.5, HEARD)])
def test_a_reply_says_how_much_of_a_sound_the_rows_are_of(start, store_folder, seconds, used):
    """Also on hits, and from another server."""
    url = data_url(wav(numpy.full(int(seconds * 16000), 0.1), bits=16))
    store = file_store(store_folder)
    first = start(encoder=TOWERS / "whisper", store=store)
    items = [first.encode_ok([url], modality="audio")["items"][0] for _ in range(2)]
    wait_for_puts(first)
    second = start(encoder=TOWERS / "whisper", store=store)
    items.append(second.encode_ok([url], modality="audio")["items"][0])
    assert [item["source"] for item in items] == ["encoded", "local", "store"]
    assert [item["seconds"] for item in items] == [seconds] * 3
    assert [item["seconds_used"] for item in items] == [used] * 3


def test_two_sounds_of_one_start_keep_their_lengths(whisper):
    """Their features are the same to the last byte."""
    for seconds in (35, 40):
        url = data_url(wav(numpy.full(seconds * 16000, 0.1), bits=16))
        item = whisper.encode_ok([url], modality="audio")["items"][0]
        assert (item["seconds"], item["seconds_used"]) == (seconds, HEARD)
