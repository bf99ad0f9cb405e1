"""Which frames of a clip a model's own code takes, and how large it makes them: what the fixtures of clips
are made with.

Qwen2-VL and Qwen2.5-VL by qwen-vl-utils, which their cards tell to use; Qwen3-VL by its video processor.
"""

from types import SimpleNamespace
from unittest import mock

import torch
import transformers
from qwen_vl_utils import vision_process
from qwen_vl_utils.vision_process import smart_nframes
from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize
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


def clip_size_by_qwen_vl_utils(width: int, height: int, frames: int, asked: dict, bounds: tuple[int, int]) -> list[int]:
    """What fetch_video() and then the video processor, with its own bounds, make of each frame of a file. No
    pixel is touched: the reader hands over frames that share one byte, and resizing only notes the size."""
    def read(_: dict) -> tuple:
        return torch.zeros(1, dtype=torch.uint8).expand(frames, 3, height, width), {}, 2.0

    def note(_: torch.Tensor, size: list[int], **__: object) -> SimpleNamespace:
        return SimpleNamespace(float=lambda: size)

    with (mock.patch.dict(vision_process.VIDEO_READER_BACKENDS, {"torchvision": read}),
          mock.patch.object(vision_process, "get_video_reader_backend", lambda: "torchvision"),
          mock.patch.object(vision_process.transforms.functional, "resize", note)):
        fetched = vision_process.fetch_video({"video": "a file", **asked})
    resized = smart_resize(*fetched, 28, *bounds)
    return [resized[1], resized[0]]
