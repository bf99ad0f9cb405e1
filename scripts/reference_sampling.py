"""Which frames of a clip a model's own code takes: what the fixtures of clips are made with.

Qwen2-VL and Qwen2.5-VL by qwen-vl-utils, which their cards tell to use; Qwen3-VL by its video processor.
"""

import torch
import transformers
from qwen_vl_utils.vision_process import smart_nframes
from transformers.video_utils import VideoMetadata


def places_by_qwen_vl_utils(total: int, rate: float, kwargs: dict) -> list[int]:
    named = {{"num_frames": "nframes"}.get(name, name): value for name, value in kwargs.items()}
    count = smart_nframes(named, total_frames=total, video_fps=rate)
    # As its readers of files do once they know how many.
    return torch.linspace(0, total - 1, count).round().long().tolist()


def places_by_qwen3(total: int, rate: float, kwargs: dict) -> list[int]:
    bounds = {name: value for name, value in kwargs.items() if name in ("min_frames", "max_frames")}
    processor = transformers.Qwen3VLVideoProcessor(**bounds)
    metadata = VideoMetadata(total_num_frames=total, fps=rate)
    places = processor.sample_frames(metadata, num_frames=kwargs.get("num_frames"), fps=kwargs.get("fps"))
    return [int(place) for place in places]


REFERENCES = {"qwen2_vl": places_by_qwen_vl_utils, "qwen3_vl": places_by_qwen3}


def reference_places(family: str, total: int, rate: float, kwargs: dict | None = None) -> list[int]:
    return REFERENCES[family](total, rate, kwargs or {})
