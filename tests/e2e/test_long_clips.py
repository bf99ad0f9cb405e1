"""Long clips in HD with the limits that Qwen2.5-VL and Qwen3-VL are published with: taken by default, within the
memory that the server is given, and refused with what would take less."""

import json
import shutil

import pytest

from support import data_url
from test_towers import TOWERS

# Two minutes of 1920 x 1080, two frames a second.
HD = data_url((TOWERS.parent / "parity" / "long_hd.mp4").read_bytes())
DECODE_BYTES = 1 << 30
PUBLISHED = {
    "qwen2_5_vl": {"preprocessor_config.json": {"min_pixels": 3136, "max_pixels": 12845056}},
    "qwen3_vl": {"preprocessor_config.json": {"size": {"longest_edge": 16777216, "shortest_edge": 65536}},
                 "video_preprocessor_config.json": {"size": {"longest_edge": 25165824, "shortest_edge": 4096}}},
}


@pytest.fixture
def published(start, tmp_path):
    """Starts a server of the tiny tower with the pixel limits of the real model."""
    def run(tower, *options):
        folder = tmp_path / tower
        shutil.copytree(TOWERS / tower, folder)
        for name in ("preprocessor_config.json", "video_preprocessor_config.json"):
            file = folder / name
            if name not in PUBLISHED[tower]:
                file.unlink()
                continue
            config = json.loads(file.read_text())
            for limit in ("size", "min_pixels", "max_pixels"):
                config.pop(limit, None)
            file.write_text(json.dumps(config | PUBLISHED[tower][name]))
        return start("--request-timeout", "300s", *options, encoder=folder)
    return run


def test_two_minutes_in_hd_fit_into_the_default_budget(published):
    """Its 240 frames would be 1.5 GB if they were kept. Fewer pixels than the model may have: its tower would
    take long."""
    server = published("qwen3_vl")
    before = server.memory()
    item = server.encode_ok([HD], modality="video", mm_processor_kwargs={"max_pixels": 1 << 20})["items"][0]
    assert item["grid"][0] == 120
    assert server.memory("VmHWM") - before < DECODE_BYTES // 2


def test_frames_of_qwen2_are_held_between_the_bounds_of_its_utilities(published):
    """1008 x 560 instead of 1932 x 1092."""
    server = published("qwen2_5_vl")
    item = server.encode_ok([HD], modality="video", mm_processor_kwargs={"num_frames": 4})["items"][0]
    assert item["grid"] == [2, 560 // 14, 1008 // 14]
    small = server.encode_ok([HD], modality="video", mm_processor_kwargs={"num_frames": 4, "max_pixels": 100352})
    assert small["items"][0]["grid"][1] < 560 // 14


def test_what_the_budget_cannot_hold_is_refused_with_what_takes_less(published, beside):
    """B83."""
    server = beside(published("qwen2_5_vl", "--max-decode-bytes", "256MiB"))
    reply = server.encode([HD], modality="video")
    assert reply.status == 413
    assert f"limit of {256 << 20} bytes (a smaller fps, num_frames or max_pixels" in reply.error["message"]
    server.encode_ok([HD], modality="video", mm_processor_kwargs={"num_frames": 4})
