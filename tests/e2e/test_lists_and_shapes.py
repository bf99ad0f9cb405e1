"""Lists where a text or a number belongs, and pictures that are split into items in more ways than one:
field case B18. Features that somebody has computed already are no input here: they are refused by name.
"""

import itertools

import pytest

from bystander import Bystander
from odd_media import animation
from pixels import STUB_BY_SIZE
from support import data_url, picture, png_url, refused

pytestmark = pytest.mark.usefixtures("bystander")


@pytest.fixture(scope="module")
def server(start_shared):
    return start_shared(encoder=STUB_BY_SIZE)


# What is no text, by the kind of fault: numbers, features in several partitions and shapes, flags.
WRONG = {
    "a list": [1, 2, 3, 4],
    "a list of lists": [[1, 2], [3, 4, 5]],
    "the same, divided differently": [[1, 2, 3], [4, 5]],
    "an empty list": [],
    "a list of texts": ["a", "b"],
    "frames": [[[0.5] * 4] * 4] * 3,
    "an object": {"shape": [2, 2], "data": [1, 2, 3, 4]},
    "an empty object": {},
    "a whole number": 7,
    "a fraction": 0.5,
    "true": True,
    "false": False,
}
GOOD = png_url(1)
UNKNOWN = ["data", "text", "image", "params", "pixel_values", "image_embeds", "uuid", "mm_hash"]


def item(**fields):
    return {"mm_items": [GOOD, {"url": GOOD, **fields}, GOOD]}


def request(**fields):
    return {"mm_items": [GOOD, GOOD], **fields}


# Field -> (what its body is, the item at fault, the kinds of values that are right there)
LISTS = {name for name, value in WRONG.items() if isinstance(value, list)}
OBJECTS = {name for name, value in WRONG.items() if isinstance(value, dict)}
FIELDS = {
    "mm_items, one of them": (lambda value: {"mm_items": [GOOD, value]}, 1, OBJECTS),
    "url": (lambda value: {"mm_items": [GOOD, {"url": value}]}, 1, set()),
    "digest": (lambda value: {"mm_items": [GOOD, {"digest": value}]}, 1, set()),
    "digest beside a url": (lambda value: item(digest=value), 1, set()),
    "modality of an item": (lambda value: item(modality=value), 1, set()),
    "mm_processor_kwargs of an item": (
        lambda value: item(mm_processor_kwargs=value), 1, OBJECTS),
    "mm_items": (lambda value: {"mm_items": value}, None, LISTS - {"an empty list"}),
    "modality": (lambda value: request(modality=value), None, set()),
    "mm_processor_kwargs": (lambda value: request(mm_processor_kwargs=value), None, OBJECTS),
    "hashes": (lambda value: request(hashes=value), None, set()),
    "hashes, one of them": (lambda value: request(hashes=[None, value]), 1, set()),
    "return": (lambda value: request(**{"return": value}), None, set()),
    "req_id": (lambda value: request(req_id=value), None, set()),
    "num_parts": (lambda value: request(num_parts=value), None, {"a whole number"}),
    "part_idx": (lambda value: request(part_idx=value), None, set()),
}
FIELDS |= {f"{name} of an item": (lambda value, name=name: item(**{name: value}), 1, set())
           for name in UNKNOWN}
FIELDS |= {name: (lambda value, name=name: request(**{name: value}), None, set())
           for name in UNKNOWN}


def field_of(place):
    """As the message says it."""
    return place.split(",")[0].split(" ")[0]


@pytest.mark.parametrize("place", FIELDS)
def test_a_value_of_a_wrong_type_is_refused_by_the_name_of_its_field(server, place):
    """B18: whatever the value is; a request beside it does not notice, and nothing is kept or lost."""
    body_of, at_fault, right = FIELDS[place]
    kept = server.metrics().sum("vitrove_entries", state="ready")
    for name in WRONG.keys() - right:
        reply = server.post("/encode", {"req_id": "a-bad-one", **body_of(WRONG[name])})
        assert reply.status == 400, (name, reply.body)
        assert field_of(place) in reply.error["message"], (name, reply.body)
        assert reply.error["item"] in (at_fault, 0 if place == "hashes" else at_fault), name
        assert place == "req_id" or reply.error["req_id"] == "a-bad-one"
    server.encode_ok([GOOD])
    assert server.metrics().sum("vitrove_entries", state="ready") <= kept + 1, "the good one at most"


@pytest.mark.parametrize("kwargs", [
    {"fps": value} for value in WRONG.values() if not isinstance(value, (int, float)) or value is True
], ids=str)
def test_a_parameter_of_a_wrong_type_is_refused_by_its_name(server, kwargs):
    """B18."""
    clip = data_url(moving(0, 1))
    assert "fps" in refused(server, [clip], 400, modality="video", mm_processor_kwargs=kwargs)["message"]


@pytest.mark.parametrize("place", FIELDS)
def test_null_is_as_good_as_nothing_or_is_refused_by_name(server, place):
    """B18: it never counts as a value."""
    body_of, _, _ = FIELDS[place]
    reply = server.post("/encode", body_of(None))
    if place in ("mm_items, one of them", "url", "digest", "mm_items") or field_of(place) in UNKNOWN:
        assert reply.status == 400
        assert field_of(place) in reply.error["message"]
        return
    assert reply.status == 200, reply.body
    known = server.encode_ok([GOOD])["items"][0]
    assert {told["key"] for told in reply.json["items"]} == {known["key"]}


def test_the_pixels_of_a_picture_are_no_item_however_many_they_are(server):
    """B18: they are not even all read."""
    pixels = [[[0.5] * 3] * 224] * 224
    reply = server.post("/encode", {"mm_items": [pixels]})
    assert reply.status == 413
    assert "JSON values" in reply.error["message"]


# Pictures and frames, split

SEEDS = [180, 181, 180, 182, 183, 181]  # one comes twice, two stand apart
SPLITS = [[6], [3, 3], [2, 4], [4, 2], [1, 5], [1] * 6]


def parts_of(things, counts):
    """In order, so many at a time."""
    rest = iter(things)
    return [list(itertools.islice(rest, count)) for count in counts]


@pytest.mark.parametrize("counts", SPLITS, ids=str)
def test_pictures_have_their_own_rows_however_they_are_split_into_requests(server, uncached, counts):
    """B18: as parts of one whole, while half of them are known and while all are."""
    golden = [uncached.embeddings([png_url(seed, 28 + 14 * (seed % 3), 28)]).item(0).tobytes()
              for seed in SEEDS]
    urls = [png_url(seed, 28 + 14 * (seed % 3), 28) for seed in SEEDS]
    server.post("/flush?scope=local")
    server.encode_ok(urls[3:4])
    for _ in range(2):
        rows = []
        for index, part in enumerate(parts_of(urls, counts)):
            reply = server.embeddings(part, num_parts=len(counts), part_idx=index)
            assert len(reply.metadata["items"]) == len(part)
            rows += [reply.item(place).tobytes() for place in range(len(part))]
        assert rows == golden


def moving(*seeds):
    """A clip of a frame for each."""
    return animation([picture(1800 + seed, 28, 28) for seed in seeds], "GIF")


FRAMES = [0, 1, 2, 3, 4, 5]
CLIP_SPLITS = [[6], [2, 4], [4, 2], [2, 2, 2]]


def clip_item(seeds):
    return {"url": data_url(moving(*seeds)), "mm_processor_kwargs": {"num_frames": len(seeds)}}


def test_frames_are_kept_apart_by_the_clips_that_they_are_split_into(server, uncached):
    """B18: (0 1)(2 3 4 5) and (0 1 2 3)(4 5) are six frames each time, and four clips."""
    keys, rows = {}, {}
    for counts in CLIP_SPLITS:
        clips = parts_of(FRAMES, counts)
        reply = server.embeddings([clip_item(seeds) for seeds in clips], modality="video")
        assert [told["grid"] for told in reply.metadata["items"]] == [[n, 2, 2] for n in counts]
        assert [told["tokens"] for told in reply.metadata["items"]] == [4 * n for n in counts]
        for place, seeds in enumerate(clips):
            alone = uncached.embeddings([clip_item(seeds)], modality="video").item(0).tobytes()
            assert reply.item(place).tobytes() == alone, (counts, seeds)
            keys.setdefault(tuple(seeds), set()).add(reply.metadata["items"][place]["key"])
            rows.setdefault(tuple(seeds), set()).add(alone)
    assert all(len(one) == 1 for one in [*keys.values(), *rows.values()]), "the same clip, again"
    assert len(set.union(*keys.values())) == len(keys) == 6
    assert len(set.union(*rows.values())) == 6


@pytest.mark.parametrize("seeds", [(1, 0, 2, 3), (0, 1, 3, 2), (0, 1), (0, 1, 2, 3, 4, 5)], ids=str)
def test_a_clip_is_its_frames_in_their_order_and_number(server, seeds):
    """B18."""
    first, other = (server.embeddings([clip_item(one)], modality="video") for one in ((0, 1, 2, 3), seeds))
    assert first.metadata["items"][0]["key"] != other.metadata["items"][0]["key"]
    assert first.raw != other.raw


def test_clips_and_pictures_of_one_request_keep_their_places(server, uncached):
    """B18, B21: with somebody else's requests to the uncached server, too."""
    items = [png_url(184, 28, 28), {**clip_item((0, 1)), "modality": "video"}, png_url(185, 42, 28),
             {**clip_item((2, 3, 4, 5)), "modality": "video"}, png_url(184, 28, 28)]
    with Bystander(uncached):
        golden = [uncached.embeddings([one]).item(0).tobytes() for one in items]
    assert len(set(golden)) == 4
    for order in ([0, 1, 2, 3, 4], [3, 1, 4, 0, 2], [1, 3, 3, 1, 0]):
        reply = server.embeddings([items[place] for place in order])
        assert [reply.item(at).tobytes() for at in range(5)] == [golden[place] for place in order]
