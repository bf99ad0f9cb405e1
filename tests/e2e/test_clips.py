"""Clips and sounds through a running server: field cases B13, B14, B22, B28, with good requests
beside the bad ones."""

import concurrent.futures
import json
import os
import random
import struct

import pytest

from clips import SAMPLES, SECONDS, SOUNDS, VIDEOS, clip, clip_url, wav
from redis_server import RedisServer
from support import data_url, file_store, refused, wait_for_puts, wait_until
from test_towers import TOWERS

BY_SIZE = "stub:dim=64,tokens=1-4096,seed=1"
PATCHES = 4 * 5  # of 14 x 14, in a frame
pytestmark = pytest.mark.usefixtures("bystander")


@pytest.fixture(scope="module")
def server(start_shared):
    return start_shared(encoder=BY_SIZE)


def item_of(server, name, modality, **fields):
    return server.encode_ok([clip_url(name)], modality=modality, **fields)["items"][0]


# Video

@pytest.mark.parametrize("name", VIDEOS)
def test_a_clip_is_sampled_by_the_documented_formula(server, name):
    """1.2 seconds at 2 a second are less than the least of 4 frames."""
    item = item_of(server, name, "video")
    assert item["modality"] == "video"
    assert item["grid"] == [4, 4, 5]
    assert item["tokens"] == 4 * PATCHES
    assert item["timestamps"] == pytest.approx([0, 0.4, 0.7, 1.1], abs=0.002)
    assert item["seconds_per_grid"] == pytest.approx(1.2 / 4, abs=0.01)


def test_every_parameter_of_sampling_is_part_of_the_identity(server):
    """B22: each combination is a miss first and a hit then, and has the rows of its formula."""
    table = [({"fps": 5}, 6), ({"fps": 10}, 12), ({"num_frames": 8}, 8), ({"num_frames": 2}, 2),
             ({"max_frames": 6, "fps": 100}, 6), ({"min_frames": 8}, 8)]
    for kwargs, frames in table:
        for source in ("encoded", "local"):
            item = item_of(server, "vp9.webm", "video", mm_processor_kwargs=kwargs)
            assert item["source"] == source
            assert item["tokens"] == frames * PATCHES


def test_a_default_and_the_same_value_given_are_one_entry(server):
    """B22."""
    plain = item_of(server, "vp8.webm", "video")
    told = item_of(server, "vp8.webm", "video",
                   mm_processor_kwargs={"fps": 2.0, "min_frames": 4, "max_frames": 768})
    assert told["key"] == plain["key"]


def test_items_of_one_request_keep_their_own_parameters(server):
    """B22: also when one of them is cached already."""
    item_of(server, "hevc.mp4", "video", mm_processor_kwargs={"num_frames": 8})
    items = [{"url": clip_url("hevc.mp4"), "mm_processor_kwargs": {"num_frames": count}}
             for count in (8, 10)]
    reply = server.encode_ok(items, modality="video")
    assert [item["tokens"] for item in reply["items"]] == [8 * PATCHES, 10 * PATCHES]
    assert [item["source"] for item in reply["items"]] == ["local", "encoded"]


@pytest.mark.parametrize("kwargs", [
    {"fps": 0}, {"fps": -1}, {"fps": "2"}, {"num_frames": 1}, {"num_frames": 2.5},
    {"num_frames": 4, "fps": 1}, {"min_frames": 9, "max_frames": 8}, {"frames": 4},
    {"num_frames": 100}], ids=json.dumps)
def test_parameters_that_make_no_sense_are_refused(server, kwargs):
    refused(server, [clip_url("h264.mp4")], 400, modality="video", mm_processor_kwargs=kwargs)


def test_the_servers_own_defaults_count(start):
    server = start("--mm-process-config", json.dumps({"video": {"num_frames": 6}}),
                   encoder=BY_SIZE)
    assert item_of(server, "h264.mp4", "video")["tokens"] == 6 * PATCHES


def test_a_gif_is_a_picture_or_a_clip_as_asked(server):
    as_clip = item_of(server, "moving.gif", "video")
    as_picture = item_of(server, "moving.gif", "image")
    assert as_clip["tokens"] == 4 * as_picture["tokens"]
    assert as_clip["key"] != as_picture["key"]


WHAT_IT_IS = {
    "image": ["moving.gif"],
    "video": ["h264.mp4", "fragmented.mp4", "exact.mov", "h264.mkv", "vp9.webm", "mjpeg.avi", "both.mp4",
              "both.mov", "both.mkv", "both.webm"],
    # Sound alone, whatever may hold a clip as well; a cover is no clip.
    "audio": ["plain.wav", "aac.m4a", "alac.m4a", "pcm.mov", "opus.webm", "flac.mkv", "cover.m4a",
              "cover.mkv"],
}


@pytest.mark.parametrize("name, modality", [(name, modality) for modality, names in WHAT_IT_IS.items()
                                            for name in names])
def test_an_item_that_names_no_modality_is_taken_for_what_it_is(server, name, modality):
    """Under the same key, and with the parameters of that modality."""
    body = {"mm_items": [clip_url(name)]}
    if modality == "video":
        body["mm_processor_kwargs"] = {"num_frames": 6}
    reply = server.post("/encode", body)
    assert reply.status == 200, reply.body
    item = reply.json["items"][0]
    assert item["modality"] == modality
    told = server.post("/encode", {**body, "modality": modality}).json["items"][0]
    assert (told["key"], told["source"]) == (item["key"], "local")


@pytest.mark.parametrize("name", ["aac.m4a", "pcm.mov", "flac.mkv", "opus.webm"])
def test_a_damaged_sound_in_a_container_is_called_damaged_without_a_modality_too(server, name):
    """B13: before its list of streams, amid it, and behind it."""
    whole = clip(name)
    for cut in (50, 500, len(whole) // 2, len(whole) - 300):
        error = refused(server, [data_url(whole[:cut])], 400, modality=None)
        assert "damaged" in error["message"], cut


def test_a_tower_without_sound_refuses_one_with_one_code_whatever_it_is_called(start, beside):
    """A container that holds nothing for it, or another format, and what the request says it is."""
    server = beside(start(encoder=TOWERS / "qwen2_5_vl"))
    says = {None: "file holds no video", "video": "file holds no video",
            "image": "cannot decode", "audio": "does not take audio"}
    for name in ("aac.m4a", "opus.webm", "cover.mkv", "plain.wav"):
        for modality, message in says.items():
            error = refused(server, [clip_url(name)], 415, modality=modality)
            assert error["code"] == "unsupported_format"
            assert name == "plain.wav" or message in error["message"]


def test_a_tower_of_sounds_takes_those_of_clips(start):
    server = start(encoder=TOWERS / "whisper")
    for name in ("both.mp4", "aac.m4a", "cover.m4a"):
        item = server.post("/encode", {"mm_items": [clip_url(name)]}).json["items"][0]
        assert item["modality"] == "audio"


def test_what_a_model_does_not_take_is_refused_without_a_modality_too(vit, beside):
    beside(vit)
    for name in ("h264.mp4", "plain.wav"):
        reply = vit.post("/encode", {"mm_items": [clip_url(name)]})
        assert reply.status == 415
        assert "cannot decode" in reply.error["message"]


def test_a_turned_clip_has_the_grid_of_the_upright_one(server):
    """B01, for clips."""
    assert item_of(server, "turned.mp4", "video")["grid"] == [4, 5, 4]


def bare(name, kind):
    """The box of brands made one that means nothing."""
    whole = clip(name)
    assert whole[4:8] == b"ftyp"
    return whole[:4] + kind + whole[8:]


@pytest.mark.parametrize("kind", [b"free", b"skip", b"wide"])
@pytest.mark.parametrize("name", ["h264.mov", "exact.mov"])
def test_a_quicktime_file_may_begin_without_brands(server, name, kind):
    """As those do that are older than brands."""
    told = server.embeddings([clip_url(name)], modality="video")
    untold = server.embeddings([data_url(bare(name, kind))], modality="video")
    assert untold.raw == told.raw
    refused(server, [data_url(bare(name, kind)[:2000])], 400, modality="video")


@pytest.fixture(params=["file", "redis"])
def shared_store(request, tmp_path, store_folder):
    """The URL of a store that several servers can use."""
    if request.param == "file":
        yield file_store(store_folder)
        return
    redis = RedisServer(tmp_path / "redis")
    yield redis.url()
    redis.stop()


@pytest.mark.parametrize("modality", SAMPLES)
def test_hit_and_miss_answer_alike(shared_store, start, beside, modality):
    """B28: in every field but the source, also from a second server."""
    # The store goes last, so it is asked for first.
    url = data_url(SAMPLES[modality])
    first = beside(start(encoder=BY_SIZE, store=shared_store))
    replies = [first.embeddings([url], modality=modality) for _ in range(2)]
    wait_for_puts(first)
    second = beside(start(encoder=BY_SIZE, store=shared_store))
    replies.append(second.embeddings([url], modality=modality))
    items = [reply.metadata["items"][0] for reply in replies]
    assert [item.pop("source") for item in items] == ["encoded", "local", "store"]
    assert items[0] == items[1] == items[2]
    assert replies[0].raw == replies[1].raw == replies[2].raw


# B13

def damaged_clips():
    whole = clip("h264.mp4")
    index = whole.index(b"stsz") + 4
    return {
        "the index is missing": whole.replace(b"moov", b"xxxx"),
        "half of it": whole[:len(whole) // 2],
        "a third of a matroska file": clip("h264.mkv")[:700],
        "no frames": whole[:index + 8] + bytes(4) + whole[index + 12:],
        "a header that claims a million frames": (
            whole[:index + 4] + struct.pack(">II", 1, 1_000_000) + whole[index + 12:]),
    }


@pytest.mark.parametrize("name", damaged_clips())
def test_a_damaged_clip_is_refused(server, name):
    """B13."""
    refused(server, [data_url(damaged_clips()[name])], 400, 413, modality="video")


def held_by(server):
    """Threads, and open files that are no connections."""
    process = f"/proc/{server.process.pid}"
    files = [os.readlink(entry.path) for entry in os.scandir(f"{process}/fd")]
    return (len(os.listdir(f"{process}/task")),
            len([file for file in files if not file.startswith("socket:")]))


def test_two_hundred_damaged_clips_are_answered_and_leave_nothing_behind(server):
    """B13: at eight a time."""
    item_of(server, "h264.mp4", "video")
    before = held_by(server)
    dice = random.Random(13)
    urls = []
    for i in range(200):
        damaged = bytearray(clip(VIDEOS[i % len(VIDEOS)]))
        for _ in range(dice.randint(1, 8)):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        urls.append(data_url(bytes(damaged)))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda one: server.encode([one], modality="video").status, urls))
    assert set(replies) <= {200, 400, 413, 415}
    assert 400 in replies
    wait_until(lambda: held_by(server) == before, 30, "threads and files to go")
    assert item_of(server, "h264.mp4", "video")["tokens"] == 4 * PATCHES


# B14

@pytest.mark.parametrize("name", SOUNDS)
def test_a_sound_has_a_row_for_every_forty_milliseconds(server, name):
    """B14."""
    item = item_of(server, name, "audio")
    assert item["grid"] is None
    assert SECONDS / 0.04 <= item["tokens"] <= SECONDS / 0.04 + 2


def test_a_sound_twice_is_the_same_to_the_last_byte(server):
    """B14."""
    for name in SOUNDS:
        first = server.embeddings([clip_url(name)], modality="audio")
        server.post("/flush?scope=local")
        assert server.embeddings([clip_url(name)], modality="audio").raw == first.raw


@pytest.mark.parametrize("samples", [[], [0.0, float("nan"), 0.0], [float("inf")]], ids=str)
def test_sound_that_is_none_is_refused_and_leaves_no_entry(server, samples):
    """B14."""
    refused(server, [data_url(wav(samples))], 400, modality="audio")


def test_ten_milliseconds_are_a_sound(server):
    """B14."""
    item = server.encode_ok([data_url(wav([0.25] * 160))], modality="audio")["items"][0]
    assert item["tokens"] == 1


def test_a_model_knows_what_a_file_is_and_not_what_it_is_called(server):
    for name, modality in (("plain.wav", "video"), ("h264.mp4", "image"), ("exact.mov", "image")):
        error = refused(server, [clip_url(name)], 415, modality=modality)
        assert "cannot decode" in error["message"]
