"""Parameters of preprocessing are part of the key: field case B22. Those of clips are in
test_clips.py."""

import json

import numpy
import pytest

from bystander import Bystander
from support import TINY_VIT, data_url, encoded, file_store, picture, png_url

pytestmark = pytest.mark.usefixtures("bystander")


@pytest.fixture(scope="module")
def server(vit):
    """Where the bystander stands."""
    return vit


VARIANTS = [
    {"resample": 2},
    {"resample": 0},
    {"size": {"shortest_edge": 96}},
    {"size": {"height": 64, "width": 64}},
    {"do_center_crop": False, "size": {"height": 64, "width": 64}},
    {"do_normalize": False},
    {"do_rescale": False},
    {"rescale_factor": 1 / 127.5},
    {"image_mean": [0.5, 0.5, 0.5]},
    {"image_mean": [0.48145466, 0.4578275, 0.408]},
    {"image_std": [0.5, 0.5, 0.5]},
    {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]},
]
PORTRAIT = png_url(22, 90, 150)


def test_each_parameter_is_part_of_the_key(vit):
    """B22: a matrix of one picture; each variant is a miss and then a hit, with rows of its own."""
    replies = []
    for kwargs in [{}, *VARIANTS]:
        first = vit.embeddings([PORTRAIT], mm_processor_kwargs=kwargs)
        second = vit.embeddings([PORTRAIT], mm_processor_kwargs=kwargs)
        assert second.metadata["items"][0]["source"] == "local", kwargs
        assert first.raw == second.raw
        replies.append(first)
    keys = [reply.metadata["items"][0]["key"] for reply in replies]
    assert len(set(keys)) == len(keys)
    sources = [reply.metadata["items"][0]["source"] for reply in replies]
    assert sources.count("encoded") >= len(sources) - 1, "two may make the same tensors"
    assert len({reply.raw["embedding"] for reply in replies}) >= len(replies) - 1


DEFAULTS = {
    "do_resize": True,
    "size": {"shortest_edge": 64},
    "resample": 3,
    "do_center_crop": True,
    "crop_size": {"height": 64, "width": 64},
    "do_rescale": True,
    "do_normalize": True,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}


@pytest.mark.parametrize("kwargs", [{name: value} for name, value in DEFAULTS.items()] + [DEFAULTS],
                         ids=lambda kwargs: "+".join(kwargs) if len(kwargs) < 3 else "all")
def test_a_default_given_explicitly_is_the_default(vit, kwargs):
    """B22."""
    url = png_url(23)
    known = vit.encode_ok([url])["items"][0]
    item = vit.encode_ok([url], mm_processor_kwargs=kwargs)["items"][0]
    assert item["key"] == known["key"]
    assert item["source"] == "local"


def test_the_order_of_parameters_does_not_matter(vit):
    """B22."""
    one = {"resample": 2, "do_normalize": False}
    other = {"do_normalize": False, "resample": 2}
    assert vit.sources([png_url(24)], mm_processor_kwargs=one) == ["encoded"]
    assert vit.sources([png_url(24)], mm_processor_kwargs=other) == ["local"]


def test_parameters_of_an_item_stay_with_their_item(vit):
    """B22: a partial hit does not shift them."""
    first, second = png_url(25, 150, 100), png_url(26, 150, 100)
    plain, smooth = {}, {"resample": 2}

    def item(url, kwargs):
        return {"url": url, "mm_processor_kwargs": kwargs}

    alone = {(url, kind): vit.embeddings([item(url, kwargs)]).item(0).tobytes()
             for url in (first, second) for kind, kwargs in (("plain", plain), ("smooth", smooth))}
    assert len(set(alone.values())) == 4
    vit.post("/flush?scope=local")

    both = vit.embeddings([item(first, plain), item(first, smooth)])
    assert [i["source"] for i in both.metadata["items"]] == ["encoded", "encoded"]
    assert both.item(0).tobytes() == alone[first, "plain"]
    assert both.item(1).tobytes() == alone[first, "smooth"]

    mixed = vit.embeddings([item(first, plain), item(second, smooth)])
    assert [i["source"] for i in mixed.metadata["items"]] == ["local", "encoded"]
    assert mixed.item(1).tobytes() == alone[second, "smooth"]


def test_parameters_of_an_item_override_those_of_the_request(vit):
    """B22."""
    url = png_url(27, 150, 100)
    reply = vit.embeddings([url, {"url": url, "mm_processor_kwargs": {"resample": 3}}],
                           mm_processor_kwargs={"resample": 2})
    keys = [item["key"] for item in reply.metadata["items"]]
    assert keys[0] != keys[1]
    assert vit.encode_ok([url])["items"][0]["key"] == keys[1]


@pytest.mark.parametrize("kwargs", [
    {"resmaple": 2}, {"fps": 2}, {"resample": "bicubic!"}, {"resample": 99}, {"size": 10**9},
    {"size": {"shortest_edge": -1}}, {"size": {"shortest_edge": 10**9}}, {"image_mean": [0.5]},
    {"image_std": [0, 0, 0]}, {"do_resize": "yes"}, {"crop_size": {"height": 0, "width": 64}},
    {"rescale_factor": "x"},
], ids=json.dumps)
def test_a_parameter_that_cannot_be_followed_is_refused(vit, kwargs):
    """B22: never ignored, which would be the wrong picture under the right key."""
    reply = vit.encode([png_url(28)], mm_processor_kwargs=kwargs)
    assert reply.status in (400, 413), reply.body
    assert reply.error["item"] == 0
    assert vit.encode([png_url(28)]).status == 200


def test_a_size_that_the_network_does_not_take_is_the_clients_fault(vit):
    """B22: the graph is made for 64 x 64 pixels."""
    small = {"crop_size": {"height": 32, "width": 32}}
    reply = vit.encode([png_url(29)], mm_processor_kwargs=small)
    assert reply.status == 400
    assert vit.encode([png_url(29)]).status == 200


def test_the_servers_own_defaults_are_part_of_the_key(start, store_folder):
    """B22: other --mm-process-config over a store that stays; and what it means is what counts, not
    where it was said."""
    url, store = png_url(30, 150, 100), file_store(store_folder)
    smooth = ("--mm-process-config", json.dumps({"image": {"resample": 2}}))

    def restarted(*flags):
        return start(*flags, encoder=TINY_VIT, store=store)

    first = restarted()
    with Bystander(first):
        bicubic = first.embeddings([url])
    assert first.stop() == 0
    second = restarted(*smooth)
    with Bystander(second):
        bilinear = second.embeddings([url])
    assert bilinear.metadata["items"][0]["source"] == "encoded"
    assert bilinear.raw != bicubic.raw
    assert second.embeddings([url], mm_processor_kwargs={"resample": 3}
                             ).metadata["items"][0]["source"] == "store"
    assert second.stop() == 0
    third = restarted()
    assert third.sources([url]) == ["store"]
    again = third.embeddings([url], mm_processor_kwargs={"resample": 2})
    assert again.metadata["items"][0]["source"] == "store"
    assert again.raw == bilinear.raw


def test_scaled_decoding_of_a_jpeg_is_asked_for_and_has_a_key_of_its_own(vit):
    """Off by default; the rows are those of other pixels of the same picture."""
    photo = data_url(encoded(picture(41, 3000, 2000), "JPEG", quality=90))
    plain, off, scaled = (
        vit.embeddings([photo], mm_processor_kwargs=kwargs)
        for kwargs in ({}, {"jpeg_scaled_decode": False}, {"jpeg_scaled_decode": True}))
    items = [reply.metadata["items"][0] for reply in (plain, off, scaled)]
    assert items[0]["key"] == items[1]["key"] != items[2]["key"]
    assert items[2]["source"] == "encoded", "other tensors than those of the whole picture"
    assert items[2]["tokens"] == items[0]["tokens"]
    difference = plain.rows() - scaled.rows()
    assert 0 < numpy.linalg.norm(difference) < 0.05 * numpy.linalg.norm(plain.rows())


def test_scaled_decoding_does_nothing_to_small_and_other_pictures(vit):
    """What is not decoded smaller has the same rows."""
    for file in (encoded(picture(42, 90, 60), "JPEG"), encoded(picture(43, 3000, 2000))):
        plain = vit.embeddings([data_url(file)])
        scaled = vit.embeddings([data_url(file)], mm_processor_kwargs={"jpeg_scaled_decode": True})
        assert scaled.raw == plain.raw
