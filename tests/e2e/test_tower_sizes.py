"""Pictures of all shapes on towers whose rows follow the grid, and on one whose rows do not: field case
B11, the sweep."""

import itertools

import pytest

from support import data_url
from test_formats import EXTREME, SIDES, plain
from test_towers import TOWERS

pytestmark = pytest.mark.usefixtures("bystander")

SIZES = list(itertools.product(SIDES, SIDES)) + EXTREME
LARGEST_RATIO = 200  # of sides, for these families
MERGED = 2 * 2  # patches a token


@pytest.fixture(scope="module", params=["qwen2_vl", "qwen2_5_vl", "qwen3_vl"])
def server(request, start_shared):
    return start_shared(encoder=TOWERS / request.param)


def is_too_thin(width, height):
    return max(width, height) > LARGEST_RATIO * min(width, height)


def test_there_are_shapes_of_both_kinds():
    assert 20 < sum(is_too_thin(*size) for size in SIZES) < 40
    assert len(SIZES) > 150


def test_a_shape_has_the_tokens_of_its_grid_or_is_refused_by_the_limit(server):
    """B11."""
    for size in SIZES:
        reply = server.encode([data_url(plain(*size))])
        if is_too_thin(*size):
            assert reply.status == 400, (size, reply.body)
            assert f"limit is a ratio of {LARGEST_RATIO} : 1" in reply.error["message"], size
            continue
        assert reply.status == 200, (size, reply.body)
        item = reply.json["items"][0]
        frames, rows, columns = item["grid"]
        assert item["tokens"] == frames * rows * columns // MERGED, size
        assert (rows > columns) <= (size[1] > size[0]), "the grid lies as the picture does"


def test_a_tower_without_a_grid_takes_every_shape(start, beside):
    """B11: with as many rows for each."""
    server = beside(start(encoder=TOWERS / "siglip"))
    tokens = set()
    for size in SIZES:
        reply = server.encode([data_url(plain(*size))])
        assert reply.status == 200, (size, reply.body)
        tokens.add(reply.json["items"][0]["tokens"])
    assert len(tokens) == 1
