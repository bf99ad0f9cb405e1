"""What makes two items the same, seen through HTTP: field cases, group B.

In each test stands, beside a pair that must not share an entry, one that must.
"""

import hashlib
import io
import json
import random
import shutil
import subprocess
import sys

import numpy
import pytest
from PIL import Image

from bystander import Bystander
from odd_media import GRAY, RGB, raw_png
from origin import Origin, changing, content
from pixels import STUB_BY_SIZE
from stored_value import StoredValue
from support import (ROOT, TINY_VIT, data_url, encoded, file_store, png, png_url, stored_values,
                     wait_for_puts)

pytestmark = pytest.mark.usefixtures("bystander")


@pytest.fixture(scope="module")
def server(start_shared):
    return start_shared("--allow-private-media", encoder=STUB_BY_SIZE)


@pytest.fixture(scope="module")
def trusting(start_shared):
    return start_shared("--trust-client-digests")


@pytest.fixture
def origin():
    with Origin() as running:
        yield running


def all_differ(server, *files):
    """New to the server, with keys and rows of their own, in one request and in two."""
    urls = [data_url(file) for file in files]
    together = server.embeddings(urls)
    items = together.metadata["items"]
    assert {item["source"] for item in items} == {"encoded"}
    assert len({item["key"] for item in items}) == len(files)
    rows = [together.item(index).tobytes() for index in range(len(files))]
    assert len(set(rows)) == len(files)
    alone = [server.embeddings([url]) for url in urls]
    assert [reply.metadata["items"][0]["source"] for reply in alone] == ["local"] * len(files)
    assert [reply.item(0).tobytes() for reply in alone] == rows
    return items


# B16

def test_the_same_samples_in_another_shape_are_another_picture(server):
    """B16."""
    samples = numpy.random.RandomState(16).bytes(30 * 150)
    wide, tall = raw_png(150, 30, 8, GRAY, samples), raw_png(30, 150, 8, GRAY, samples)
    items = all_differ(server, wide, tall)
    assert [item["grid"] for item in items] == [[1, 3, 11], [1, 11, 3]]


def test_one_colour_in_another_shape_is_another_picture(server):
    """B16: not one sample differs anywhere."""
    wide, tall = (encoded(Image.new("RGB", size, (9, 99, 199))) for size in ((42, 28), (28, 42)))
    all_differ(server, wide, tall)


def test_the_same_samples_as_gray_and_as_colour_are_two_pictures(server):
    """B16."""
    samples = numpy.random.RandomState(17).bytes(96 * 32)
    all_differ(server, raw_png(96, 32, 8, GRAY, samples), raw_png(32, 32, 8, RGB, samples))


# B17

def painted(palette, transparency=None):
    """One index plane, always the same, under a palette."""
    indexes = (numpy.arange(48 * 48).reshape(48, 48) // 7 % 2).astype(numpy.uint8)
    image = Image.fromarray(indexes, "L").convert("P")
    image.putdata(indexes.ravel().tolist())
    image.putpalette(palette)
    return encoded(image, **({} if transparency is None else {"transparency": transparency}))


RED_ON_WHITE, BLUE_ON_BLACK = [255, 255, 255, 255, 0, 0], [0, 0, 0, 0, 0, 255]


def test_the_same_indexes_under_other_colours_are_another_picture(server):
    """B17."""
    all_differ(server, painted(RED_ON_WHITE), painted(BLUE_ON_BLACK))


def test_the_same_palette_with_other_transparency_is_another_picture(server):
    """B17."""
    solid, holes, thin = (painted([10, 20, 30, 200, 0, 0], alpha)
                          for alpha in (None, 0, bytes([128, 255])))
    all_differ(server, solid, holes, thin)


def test_a_palette_is_only_a_spelling(server):
    """B17, the other way round: the same colours without a palette are the same tensors, so the
    encoder has nothing to do."""
    indexed = painted([1, 2, 3, 200, 100, 50])
    with Image.open(io.BytesIO(indexed)) as image:
        plain = encoded(image.convert("RGB"))
    first = server.embeddings([data_url(indexed)])
    encodes = server.encodes()
    second = server.embeddings([data_url(plain)])
    assert server.encodes() == encodes
    assert first.raw == second.raw
    assert first.metadata["items"][0]["key"] != second.metadata["items"][0]["key"]


# B19

def test_keys_are_whole_digests(server):
    """B19: 256 bits of them, none equal."""
    items = server.encode_ok([png_url(seed, 28, 28) for seed in range(60)])["items"]
    keys = [item["key"] for item in items]
    assert len(set(keys)) == 60
    for key in keys:
        prefix, _, digits = key.partition("-")
        assert prefix == "vt1"
        assert len(digits) == 64 and set(digits) <= set("0123456789abcdef")
    for length in (8, 16, 32):
        assert len({key[4:4 + length] for key in keys}) == 60
        assert len({key[-length:] for key in keys}) == 60


FORGERIES = {
    "another width": ("shape", lambda value: value.set("dim", 32).set("rows", 32)),
    "another type": ("shape", lambda value: value.set("dtype", 2).set("rows", 32)),
    "another modality": ("shape", lambda value: value.set("modality", 2)),
    "another key": ("key", lambda value: value.set("key", bytes(32))),
    "another model": ("model", lambda value: value.set("model", bytes(32))),
    "another tenant": ("tenant", lambda value: value.set("tenant", b"t" * 32)),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_hit_is_compared_with_what_was_asked_for(start, beside, store_folder, name):
    """B19, B26: the value under this key is sound in itself, and belongs to something else. It is a
    miss, it is counted, and what is encoded takes its place."""
    reason, forge = FORGERIES[name]
    writer = start(store=file_store(store_folder))
    golden = writer.embeddings([png_url(19)])
    assert writer.stop() == 0
    key = golden.metadata["items"][0]["key"]
    path = next(path for path in stored_values(store_folder) if path.name == key)
    value = StoredValue(path.read_bytes())
    assert value.is_sound() and value.get("key").hex() == key[4:]
    path.write_bytes(value.sealed())
    assert start(store=file_store(store_folder)).sources([png_url(19)]) == ["store"], "the tool is"

    path.write_bytes(forge(StoredValue(path.read_bytes())).sealed())
    reader = beside(start(store=file_store(store_folder)))
    reply = reader.embeddings([png_url(19)])
    assert reply.metadata["items"][0]["source"] == "encoded"
    assert reply.raw == golden.raw
    assert reader.metrics().sum("vitrove_rejected_values_total", reason=reason) == 1
    wait_for_puts(reader)
    assert StoredValue(path.read_bytes()).rows == golden.raw["embedding"]


# B21

def test_rows_come_in_the_order_of_the_request(server):
    """B21."""
    urls = [png_url(seed) for seed in (211, 212, 213)]
    rows = [server.embeddings([url]).item(0).tobytes() for url in urls]
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 0, 1], [2, 0, 2]):
        reply = server.embeddings([urls[i] for i in order])
        assert [reply.item(i).tobytes() for i in range(3)] == [rows[i] for i in order]


def test_an_item_does_not_inherit_the_hit_of_its_neighbour(server):
    """B21: (A, V) is known; of (B, V), B is new all the same."""
    first, second, shared = png_url(214), png_url(215), png_url(216)
    assert server.sources([first, shared]) == ["encoded", "encoded"]
    assert server.sources([second, shared]) == ["encoded", "local"]
    assert server.sources([shared, second]) == ["local", "local"]


# B24

def digest_of(url_or_bytes):
    return hashlib.sha256(url_or_bytes).hexdigest()


def test_a_digest_that_does_not_match_its_media_fails_that_request(server):
    """B24."""
    mine, other = png(241), png(242)
    reply = server.encode([data_url(mine)], hashes=[digest_of(other)])
    assert reply.status == 400 and reply.error["item"] == 0
    reply = server.encode([png_url(1), {"url": data_url(mine), "digest": digest_of(other)}])
    assert reply.status == 400 and reply.error["item"] == 1
    assert server.sources([data_url(mine)], hashes=[digest_of(mine)]) == ["encoded"]
    assert server.sources([{"url": data_url(mine), "digest": digest_of(mine)}]) == ["local"]
    assert server.sources([data_url(other)]) == ["encoded"], "nothing was kept under its digest"


def test_a_digest_alone_is_for_servers_that_trust_their_clients(server, trusting, beside):
    """B24."""
    beside(trusting)
    item = {"digest": digest_of(png(243))}
    assert server.encode([item]).status == 403
    assert server.encode_ok([png_url(243)])
    assert server.encode([item]).status == 403, "known or not"

    missing = trusting.encode([item])
    assert missing.status == 404 and missing.error["item"] == 0
    encodes = trusting.encodes()
    assert trusting.encode([item]).status == 404, "and no entry was made"
    assert trusting.encodes() == encodes
    whole = trusting.embeddings([png_url(243)])
    known = trusting.embeddings([item])
    assert known.metadata["items"][0]["source"] == "local"
    assert known.metadata["items"][0]["key"] == whole.metadata["items"][0]["key"]
    assert known.raw == whole.raw


def test_a_missing_digest_is_named_among_good_items(trusting, beside):
    """B24."""
    beside(trusting)
    reply = trusting.encode([png_url(244), {"digest": "ab" * 32}, png_url(245)])
    assert reply.status == 404 and reply.error["item"] == 1
    assert trusting.encode([png_url(244), png_url(245)]).status == 200


@pytest.mark.parametrize("digest", ["", "abc", "g" * 64, "ab" * 33, "../" * 20, 7, ["ab" * 32]])
def test_what_is_no_digest_is_refused(trusting, beside, digest):
    """B24."""
    beside(trusting)
    assert trusting.encode([{"digest": digest}]).status == 400
    assert trusting.encode([png_url(1)], hashes=[digest]).status == 400
    assert trusting.encode([png_url(1)], hashes=[None]).status == 200


@pytest.mark.parametrize("field", ["uuid", "mm_hash", "multi_modal_uuids", "cache_salt", "key"])
def test_an_identifier_that_we_would_not_honour_is_refused(server, field):
    """B24: silence would let a caller believe in it."""
    reply = server.encode([png_url(1)], **{field: "x"})
    assert reply.status == 400
    assert field in reply.error["message"]
    assert server.encode([{"url": png_url(1), field: "x"}]).status == 400


# B26

@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Relatives of the tiny network. All take the same pictures and give rows of the same shape."""
    folder = tmp_path_factory.mktemp("models")

    def copy(name):
        shutil.copytree(TINY_VIT, folder / name)
        return folder / name

    def edit(path, **fields):
        settings = json.loads(path.read_text())
        path.write_text(json.dumps({**settings, **fields}))

    subprocess.run([sys.executable, ROOT / "scripts" / "make_tiny_vit.py", "--seed", "2",
                    "--out", folder / "other weights"], check=True, capture_output=True)
    edit(copy("half") / "vitrove.json", dtype="float16")
    edit(copy("other preprocessing") / "preprocessor_config.json", image_mean=[0.5, 0.5, 0.5])
    edit(copy("renamed") / "vitrove.json", name="another name", revision="9")
    return folder


def test_a_model_reads_only_what_it_wrote(start, store_folder, models):
    """B26: one store, kept while models change."""
    store, urls = file_store(store_folder), [png_url(261), png_url(262)]
    answers = {}
    for name in ("first", "other weights", "half", "other preprocessing"):
        server = start(encoder=TINY_VIT if name == "first" else models / name, store=store)
        with Bystander(server):
            reply = server.embeddings(urls)
        assert [item["source"] for item in reply.metadata["items"]] == ["encoded"] * 2, name
        answers[name] = reply.raw["embedding"]
        assert server.metrics().sum("vitrove_rejected_values_total") == 0, "not even looked at"
        assert server.stop() == 0
    assert len(set(answers.values())) == 4
    for name in ("first", "half"):
        server = start(encoder=TINY_VIT if name == "first" else models / name, store=store)
        reply = server.embeddings(urls)
        assert [item["source"] for item in reply.metadata["items"]] == ["store"] * 2
        assert reply.raw["embedding"] == answers[name]


def test_a_model_is_what_it_computes_and_not_what_it_is_called(start, store_folder, models):
    """B26: the fingerprint is computed; a folder may move, and names are for people."""
    store = file_store(store_folder)
    first = start(encoder=TINY_VIT, store=store)
    assert first.sources([png_url(263)]) == ["encoded"]
    assert first.stop() == 0
    second = start(encoder=models / "renamed", store=store)
    assert second.sources([png_url(263)]) == ["store"]


def test_an_epoch_abandons_everything_and_can_be_taken_back(start, store_folder):
    """B26: the operator's way."""
    store = file_store(store_folder)
    expected = {"0": "encoded", "1": "encoded"}
    for epoch in ("0", "1", "0"):
        server = start("--epoch", epoch, store=store)
        with Bystander(server):
            assert server.sources([png_url(264)]) == [expected[epoch]]
        assert server.stop() == 0
        expected[epoch] = "store"


def test_a_reload_to_another_model_does_not_serve_the_old_ones_rows(start, models):
    """B26, without a restart."""
    server = start(encoder=TINY_VIT)
    old = server.embeddings([png_url(265)])
    assert server.post("/reload", {"encoder": str(models / "other weights")}).status == 200
    new = server.embeddings([png_url(265)])
    assert new.metadata["items"][0]["source"] == "encoded"
    assert new.raw != old.raw
    assert server.post("/reload", {"encoder": str(TINY_VIT)}).status == 200
    assert server.embeddings([png_url(265)]).raw == old.raw


# B27

def test_what_is_behind_a_url_today_is_what_counts(server, origin):
    """B27."""
    url = origin.serve("/changing.png", changing(png(271), png(272)))
    first, second, third = (server.embeddings([url]) for _ in range(3))
    assert origin.hits["/changing.png"] == 3, "a hit of the cache is no reason not to look"
    for reply, seed in ((first, 271), (second, 272), (third, 272)):
        assert reply.raw == server.embeddings([png_url(seed)]).raw
    assert [r.metadata["items"][0]["source"] for r in (first, second, third)] == [
        "encoded", "encoded", "local"]


def test_the_same_bytes_behind_two_urls_are_one_item(server, origin):
    """B27: signed URLs, another host, a data: URL."""
    body = png(273)
    urls = [origin.serve(path, content(body)) for path in
            ("/a.png", "/a.png?signature=1", "/a.png?signature=2", "/b")] + [data_url(body)]
    encodes = server.encodes()
    items = [server.encode_ok([url])["items"][0] for url in urls]
    assert [item["source"] for item in items] == ["encoded"] + ["local"] * 4
    assert len({item["key"] for item in items}) == 1
    assert server.encodes() == encodes + 1


def test_the_same_url_twice_in_a_request_is_safe_even_if_it_changes(server, origin):
    """B27."""
    url = origin.serve("/twice.png", changing(png(274), png(275)))
    reply = server.embeddings([url, url])
    expected = {server.embeddings([png_url(seed)]).item(0).tobytes() for seed in (274, 275)}
    assert {reply.item(0).tobytes(), reply.item(1).tobytes()} <= expected


def test_random_pairs_never_meet(server):
    """B16 to B19 as a property: pictures that differ in one pixel, in one bit, or in shape."""
    choose = random.Random(29)
    files = set()
    for _ in range(60):
        width, height = choose.choice([(40, 20), (20, 40), (25, 32)])
        pixels = bytearray(b"\x40" * (width * height))
        pixels[choose.randrange(len(pixels))] ^= 1 << choose.randrange(8)
        files.add(raw_png(width, height, 8, GRAY, bytes(pixels)))
    files = sorted(files)
    assert len(files) > 50
    all_differ(server, *files)
