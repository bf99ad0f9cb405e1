"""How large an item becomes for the model is what its encode costs: a request's parameters stay within
what the operator allows, whoever else is served meanwhile. Field case B83."""

import json
import re

import pytest

from bystander import Bystander
from support import ROOT, data_url, png, png_url, refused, run_cli
from test_towers import TOWERS, media_url

pytestmark = pytest.mark.usefixtures("bystander")

# Of the tower: 48 tokens of 28 x 28 pixels.
MOST_PIXELS = 28 * 28 * 48
SMALL, LARGE = png_url(41, 30, 20), data_url(png(42, 700, 420))
TOO_MUCH = [
    {"max_pixels": 16_777_216},
    {"max_pixels": 16_777_216, "min_pixels": 16_777_216},
    {"size": {"shortest_edge": 12_845_056, "longest_edge": 12_845_056}},
    {"do_resize": False},
]


@pytest.fixture(scope="module")
def server(start_shared):
    return start_shared(encoder=TOWERS / "qwen2_5_vl")


@pytest.mark.parametrize("kwargs", TOO_MUCH, ids=json.dumps)
def test_a_request_cannot_ask_for_more_than_the_models_own_configuration(server, kwargs):
    """It is refused before it is decoded, and named."""
    server.encode_ok([png_url(1)])  # which refused() asks for
    before = server.metrics().sum("vitrove_encoder_items_total")
    error = refused(server, [LARGE], 413, mm_processor_kwargs=kwargs)
    assert f"limit of {MOST_PIXELS} processed pixels" in error["message"]
    assert server.metrics().sum("vitrove_encoder_items_total") == before


def test_a_request_may_ask_for_less(server):
    whole = server.encode_ok([LARGE])["items"][0]
    less = server.encode_ok([LARGE], mm_processor_kwargs={"max_pixels": 28 * 28 * 12})["items"][0]
    assert 24 < whole["tokens"] <= 48
    assert less["tokens"] <= 12
    full = server.encode_ok([SMALL], mm_processor_kwargs={"min_pixels": MOST_PIXELS})["items"][0]
    assert full["tokens"] >= 40
    harmless = server.encode_ok([SMALL], mm_processor_kwargs={"max_pixels": 16_777_216})
    assert harmless["items"][0]["tokens"] == server.encode_ok([SMALL])["items"][0]["tokens"]


def test_what_the_readme_sends_to_the_server_that_it_starts_is_served(server):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "serve --encoder tests/data/towers/qwen2_5_vl" in text
    (asked,) = re.findall(r'{"max_pixels": (\d+)}', text)
    (allowed,) = re.findall(r"\((\d+) in `tests/data/towers/qwen2_5_vl`", text)
    whole = server.encode_ok([LARGE])["items"][0]
    less = server.encode_ok([LARGE], mm_processor_kwargs={"max_pixels": int(asked)})["items"][0]
    assert less["tokens"] < whole["tokens"]
    assert int(allowed) == MOST_PIXELS
    refused(server, [LARGE], 413, mm_processor_kwargs={"max_pixels": 50_000})


def test_a_clip_has_a_bound_for_its_frames_and_for_all_of_them(server):
    error = refused(server, [media_url("clip.gif")], 413, modality="video",
                    mm_processor_kwargs={"min_pixels": 10_000_000, "max_pixels": 10_000_000})
    assert f"limit of {MOST_PIXELS} processed pixels" in error["message"]


def test_the_operator_raises_the_bounds(start):
    """The least that will do, and less."""
    wanted = {"min_pixels": 28 * 28 * 64, "max_pixels": 28 * 28 * 64}
    for limit, allowed in ((28 * 28 * 64, True), (28 * 28 * 64 - 1, False)):
        server = start("--max-processed-pixels", limit, encoder=TOWERS / "qwen2_5_vl")
        with Bystander(server):
            reply = server.encode([SMALL], mm_processor_kwargs=wanted)
        assert (reply.status == 200) == allowed, reply.body
        if not allowed:
            assert named_limit(limit) in reply.error["message"]
        assert server.encode([LARGE]).status == 200, "what the model's own configuration allows"
        assert server.stop() == 0


def named_limit(pixels):
    return f"limit of {pixels} processed pixels (--max-processed-pixels)"


def test_the_operator_lowers_the_bounds_below_the_models_own(start, beside):
    """The encoder of a request that is refused costs nobody anything; smaller items are served."""
    limit = 28 * 28 * 24
    server = beside(start("--max-processed-pixels", limit, encoder=TOWERS / "qwen2_5_vl"))
    server.encode_ok([png_url(1)])  # which refused() asks for
    before = server.metrics().sum("vitrove_encoder_items_total")
    assert named_limit(limit) in refused(server, [LARGE], 413)["message"]
    assert server.metrics().sum("vitrove_encoder_items_total") == before
    less = server.encode_ok([LARGE], mm_processor_kwargs={"max_pixels": limit})
    assert less["items"][0]["tokens"] <= 24


def test_encode_on_the_command_line_keeps_to_the_same_bounds(tmp_path):
    name = tmp_path / "large.png"
    name.write_bytes(png(42, 700, 420))
    command = ["encode", name, "--encoder", TOWERS / "qwen2_5_vl", "--json",
               "--store", "none"]
    for flags, allowed in (((), True), (("--max-processed-pixels", 28 * 28 * 24), False)):
        done = run_cli(*command, *flags)
        (item,) = json.loads(done.stdout)["items"]
        assert ("error" not in item) == allowed, item
        if not allowed:
            assert item["error"]["code"] == "too_large"
            assert named_limit(28 * 28 * 24) in item["error"]["message"]


@pytest.mark.parametrize("tower,flag,limit", [
    ("qwen2_5_vl", "--max-processed-pixels", 1),
    ("qwen2_5_vl", "--max-processed-clip-pixels", 1),
    ("whisper", "--max-processed-seconds", 3),
])
def test_a_bound_that_would_refuse_everything_is_no_start(tower, flag, limit):
    done = run_cli("serve", "--port", 0, "--encoder", TOWERS / tower, flag, limit)
    assert done.returncode != 0
    assert f"{flag} {limit} is less than the " in done.stderr


def test_the_operator_lowers_the_bounds_with_the_defaults(start):
    config = json.dumps({"image": {"max_pixels": 28 * 28 * 16},
                         "video": {"max_pixels": 28 * 28 * 16, "num_frames": 4}})
    for flags, allowed in (((), False), (("--max-processed-clip-pixels", 28 * 28 * 16 * 12), True)):
        server = start("--mm-process-config", config, *flags, encoder=TOWERS / "qwen2_5_vl")
        assert server.encode_ok([LARGE])["items"][0]["tokens"] <= 16
        with Bystander(server):
            error = refused(server, [LARGE], 413, mm_processor_kwargs={"max_pixels": MOST_PIXELS})
            assert f"limit of {28 * 28 * 16} processed pixels" in error["message"]
            reply = server.encode([media_url("clip.gif")], modality="video",
                                  mm_processor_kwargs={"num_frames": 12, "min_pixels": 28 * 28 * 16})
        assert (reply.status == 200) == allowed, reply.body
        if not allowed:
            assert f"limit of {28 * 28 * 16 * 4} processed clip pixels" in reply.error["message"]
        assert server.stop() == 0


def test_sounds_are_not_filled_up_beyond_the_models_own_chunk(start, beside):
    sound = [media_url("sound.wav")]
    server = start(encoder=TOWERS / "whisper")
    with Bystander(server, "audio"):
        reply = server.encode(sound, modality="audio", mm_processor_kwargs={"chunk_length": 5})
    assert reply.status == 413
    assert "limit of 4 processed seconds" in reply.error["message"]
    assert server.encode_ok(sound, modality="audio")
    assert server.stop() == 0
    # The graph is made for four seconds, which is then what is said.
    larger = beside(start("--max-processed-seconds", 5, encoder=TOWERS / "whisper"), "audio")
    reply = larger.encode(sound, modality="audio", mm_processor_kwargs={"chunk_length": 5})
    assert reply.status == 400
