"""The main job: two encode servers, one shared store, each picture encoded once."""

import concurrent.futures
import random

import numpy
import pytest
from bystander import Bystander
from support import (SAMPLE_MODEL, PICTURES, STUB, data_url, encoded, file_store, picture, png,
                     png_url, stored_values, wait_until)


def wait_for_puts(server):
    wait_until(lambda: server.metrics().sum("vitrove_store_pending") == 0, 30, "puts to land")


def test_a_picture_is_encoded_once_by_two_servers_over_one_store(start, store_folder):
    first = start(store=file_store(store_folder))
    second = start(store=file_store(store_folder))
    assert first.sources([png_url(1)]) == ["encoded"]
    wait_for_puts(first)
    assert second.sources([png_url(1)]) == ["store"]
    assert second.sources([png_url(1)]) == ["local"]
    assert first.encodes() + second.encodes() == 1
    assert len(stored_values(store_folder)) == 2, "the embedding, and the alias of its features"


def test_every_source_answers_with_the_same_bytes_and_facts(start, store_folder):
    first = start(store=file_store(store_folder))
    second = start(store=file_store(store_folder))
    replies = [first.embeddings([png_url(2)])]
    wait_for_puts(first)
    replies += [second.embeddings([png_url(2)]), second.embeddings([png_url(2)])]
    assert [r.metadata["items"][0]["source"] for r in replies] == ["encoded", "store", "local"]
    assert len({r.raw["embedding"] for r in replies}) == 1
    facts = []
    for reply in replies:
        metadata = dict(reply.metadata)
        metadata.pop("req_id")
        metadata["items"] = [{k: v for k, v in item.items() if k != "source"}
                             for item in metadata["items"]]
        facts.append(metadata)
    assert facts[0] == facts[1] == facts[2], "a hit differs from a miss in its source alone (B28)"


def test_a_restarted_server_finds_what_it_wrote(start, store_folder):
    server = start(store=file_store(store_folder))
    server.encode_ok([png_url(3)])
    assert server.stop() == 0
    again = start(store=file_store(store_folder), env={"LC_ALL": "C", "TZ": "Asia/Tokyo"})
    with Bystander(again):
        encodes = again.encodes()
        assert again.sources([png_url(3)]) == ["store"], "keys are the same in every process (B25)"
        assert again.encodes() == encodes


def test_a_burst_for_one_new_picture_runs_the_encoder_once(start):
    server = start(encoder="stub:dim=64,tokens=16,seed=1,delay_ms=300")
    url = png_url(4)
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        replies = list(pool.map(lambda _: server.embeddings([url]), range(64)))
    sources = [reply.metadata["items"][0]["source"] for reply in replies]
    assert sources.count("encoded") == 1
    assert set(sources) <= {"encoded", "joined", "local"}
    assert len({reply.raw["embedding"] for reply in replies}) == 1
    assert server.encodes() == 1


def test_rows_belong_to_their_items_whatever_the_cache_holds(start, store_folder):
    """B29: 200 random requests of 1 to 8 items, some local, some in the store, some new."""
    reference = start(store="none")
    golden = [reference.embeddings([png_url(seed)]).item(0).tobytes() for seed in range(20)]
    writer = start(store=file_store(store_folder))
    writer.encode_ok([png_url(seed) for seed in range(0, 20, 3)])
    wait_for_puts(writer)
    reader = start("--pool-size", "512KiB", store=file_store(store_folder))
    choose = random.Random(7)
    for _ in range(200):
        seeds = [choose.randrange(20) for _ in range(choose.randint(1, 8))]
        reply = reader.embeddings([png_url(seed) for seed in seeds])
        assert [reply.item(i).tobytes() for i in range(len(seeds))] == [golden[s] for s in seeds]


def test_the_same_picture_twice_in_a_request_is_one_encode(start):
    server = start()
    reply = server.embeddings([png_url(5), png_url(6), png_url(5)])
    assert reply.item(0).tobytes() == reply.item(2).tobytes() != reply.item(1).tobytes()
    assert server.encodes() == 2


def test_twin_files_share_one_embedding_under_their_own_keys(start, store_folder):
    """The feature key: other compression, same pixels, one encode."""
    server = start(store=file_store(store_folder))
    same = picture(8)
    small, large = encoded(same, compress_level=9), encoded(same, compress_level=0)
    first = server.embeddings([data_url(small)])
    wait_for_puts(server)
    second = server.embeddings([data_url(large)])
    assert server.encodes() == 1
    assert first.raw["embedding"] == second.raw["embedding"]
    assert first.metadata["items"][0]["key"] != second.metadata["items"][0]["key"]
    wait_for_puts(server)
    other = start(store=file_store(store_folder))
    assert other.sources([data_url(large)]) == ["store"], "an alias leads a new server there"
    assert other.encodes() == 0


def test_metadata_and_safetensors_agree(start):
    server = start()
    metadata = server.encode_ok([png_url(9), png_url(10)], req_id="r-1", num_parts=3, part_idx=2)
    tensors = server.embeddings([png_url(9), png_url(10)], req_id="r-1", num_parts=3, part_idx=2)
    for reply in (metadata, tensors.metadata):
        assert (reply["req_id"], reply["num_parts"], reply["part_idx"]) == ("r-1", 3, 2)
        assert reply["embedding_len"] == 32
        assert reply["embedding_dim"] == 64
        assert reply["embedding_size"] == 32 * 64 * 4
        assert reply["dtype"] == "float32"
        assert [item["offset"] for item in reply["items"]] == [0, 16]
    assert tensors.rows().shape == (32, 64)
    assert numpy.isfinite(tensors.rows()).all()


@pytest.mark.parametrize("dtype, name", [("float16", "F16"), ("bfloat16", "BF16")])
def test_half_precision_rows_keep_their_type(start, dtype, name):
    server = start(encoder=f"stub:dim=32,tokens=4,seed=1,dtype={dtype}")
    reply = server.embeddings([png_url(11)])
    assert reply.dtypes["embedding"] == name
    assert reply.shapes["embedding"] == [4, 32]
    assert len(reply.raw["embedding"]) == 4 * 32 * 2


def test_real_photographs_through_a_real_network(start, store_folder):
    files = sorted(path for path in PICTURES.iterdir() if path.suffix in (".png", ".jpg"))
    assert len(files) >= 8
    urls = [data_url(path.read_bytes()) for path in files]
    first = start(encoder=SAMPLE_MODEL, store=file_store(store_folder))
    fresh = [first.embeddings([url]) for url in urls]
    assert all(reply.rows().shape == (49, 1280) for reply in fresh)
    wait_for_puts(first)
    second = start(encoder=SAMPLE_MODEL, store=file_store(store_folder))
    batch = second.embeddings(urls)
    assert {item["source"] for item in batch.metadata["items"]} == {"store"}
    for index, reply in enumerate(fresh):
        assert batch.item(index).tobytes() == reply.item(0).tobytes()
    assert first.encodes() == len(files)
    assert second.encodes() == 0


def test_get_and_delete_by_key(start, store_folder):
    server = start(store=file_store(store_folder))
    whole = server.embeddings([png_url(12)])
    key = whole.metadata["items"][0]["key"]
    wait_for_puts(server)
    found = server.get(f"/embeddings/{key}")
    assert found.status == 200
    assert found.body.endswith(whole.raw["embedding"])
    assert server.request("DELETE", f"/embeddings/{key}").status == 200
    assert server.get(f"/embeddings/{key}").status == 404
    assert server.request("DELETE", f"/embeddings/{key}").status == 404
    assert server.sources([png_url(12)]) == ["encoded"]


def test_models_do_not_read_each_others_embeddings(start, store_folder):
    """B26: other weights, other width, other type, over one store that outlives them all."""
    answers = set()
    for encoder in (STUB, "stub:dim=64,tokens=16,seed=2", "stub:dim=32,tokens=16,seed=1",
                    "stub:dim=64,tokens=16,seed=1,dtype=float16"):
        server = start(encoder=encoder, store=file_store(store_folder))
        reply = server.embeddings([png_url(13)])
        assert reply.metadata["items"][0]["source"] == "encoded", encoder
        answers.add(reply.raw["embedding"])
        assert server.stop() == 0
    assert len(answers) == 4
    again = start(encoder=STUB, store=file_store(store_folder))
    assert again.sources([png_url(13)]) == ["store"], "and the first one's is still there"


def test_pool_size_zero_still_shares_through_the_store(start, store_folder):
    server = start("--pool-size", "0", store=file_store(store_folder))
    first = server.embeddings([png_url(14)])
    wait_for_puts(server)
    second = server.embeddings([png_url(14)])
    assert second.metadata["items"][0]["source"] == "store"
    assert first.raw == second.raw


def test_no_store_and_no_pool_is_a_plain_encoder(start):
    server = start("--pool-size", "0", store="none")
    assert server.sources([png_url(15)]) == ["encoded"]
    assert server.sources([png_url(15)]) == ["encoded"]
    assert png(15) == png(15)
