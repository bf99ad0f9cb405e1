"""Clips and sounds that a decoder might step over the damage of: field cases B06 and B13."""

import pytest

from broken_clips import BROKEN
from clips import clip_url
from support import data_url, refused

pytestmark = pytest.mark.usefixtures("bystander")


@pytest.fixture(scope="module")
def server(start_shared):
    return start_shared(encoder="stub:dim=64,tokens=1-4096,seed=1")


@pytest.mark.parametrize("name", BROKEN)
def test_damage_inside_a_clip_or_sound_is_a_400_each_time(server, name):
    """B06, B13: what is refused is not kept, so the second answer is no hit."""
    modality, make = BROKEN[name]
    url = data_url(make())
    for _ in range(2):
        assert "damaged" in refused(server, [url], 400, modality=modality)["message"]


@pytest.mark.parametrize("name", ["trimmed.mp4", "trimmed.mkv"])
def test_a_clip_that_was_cut_by_its_container_is_whole(server, name):
    assert server.sources([clip_url(name)], modality="video") == ["encoded"]
