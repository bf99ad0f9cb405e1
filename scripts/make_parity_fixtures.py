#!/usr/bin/env python3
"""Writes what Hugging Face's processors make of pictures, clips and sounds, for the parity tests.

    scripts/setup_transformers.sh
    build/transformers-venv/bin/python scripts/make_parity_fixtures.py

Why: preprocessing promises the tensors that `transformers` would have fed the model; the tests compare
with these and need neither PyTorch nor transformers. Versions are pinned in
requirements-transformers.txt and written into the index. Runs for a minute; deterministic.

Leaves below tests/data/parity:
  index.json    every fixture: configuration, input, parameters, what is expected
  values.bin.z  the tensors' values: float32, little-endian, the four bytes of all values apart
                (first bytes, second bytes, ...), compressed by zlib
  odd.gif       a clip of an odd number of frames

Tensors of up to WHOLE values stand there whole; of larger ones SAMPLES values (value i is the one at
position i * STEP mod size) and the sums of CHUNKS equal parts.
"""

import importlib.metadata
import json
import zlib
from pathlib import Path

import numpy as np
import torch
import transformers
from PIL import Image, ImageOps
from transformers.video_utils import VideoMetadata

from reference_sampling import REFERENCES, clip_size_by_qwen_vl_utils, reference_places

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
WHOLE, SAMPLES, STEP, CHUNKS = 8192, 2048, 2654435761, 32
PACKAGES = ("transformers", "torch", "torchvision", "numpy", "pillow", "qwen-vl-utils")
ODD_FRAMES, CLIP_RATE = 13, 10.0  # frames a second, of all clips that are files

OPENAI = {"image_mean": [0.48145466, 0.4578275, 0.40821073],
          "image_std": [0.26862954, 0.26130258, 0.27577711]}
HALF = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}

# As published with the models, sizes made smaller where only the file's length would grow.
CONFIGS = {
    "clip": {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 224},
             "crop_size": {"height": 224, "width": 224}, "resample": 3, **OPENAI},
    "clip_fast": {"image_processor_type": "CLIPImageProcessorFast", "size": {"shortest_edge": 48},
                  "crop_size": {"height": 40, "width": 56}, "resample": 3, **OPENAI},
    "siglip": {"image_processor_type": "SiglipImageProcessor", "size": {"height": 64, "width": 64},
               "resample": 3, **HALF},
    "vit": {"image_processor_type": "ViTImageProcessor", "size": {"height": 48, "width": 48},
            "resample": 2, **HALF},
    "deit": {"image_processor_type": "DeiTImageProcessor", "size": {"height": 64, "width": 64},
             "crop_size": {"height": 56, "width": 56}, "resample": 3, **IMAGENET},
    "bit": {"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 64},
            "crop_size": {"height": 56, "width": 56}, "resample": 3, **IMAGENET},
    "convnext": {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 56},
                 "crop_pct": 0.875, "resample": 3, **IMAGENET},
    "efficientnet": {"image_processor_type": "EfficientNetImageProcessor",
                     "size": {"height": 60, "width": 60}, "resample": 0, "include_top": True,
                     "rescale_offset": False, "image_mean": IMAGENET["image_mean"],
                     "image_std": [0.47853944, 0.4732864, 0.47434163]},
    "qwen2_vl": {"image_processor_type": "Qwen2VLImageProcessor", "processor_class": "Qwen2VLProcessor",
                 "min_pixels": 3136, "max_pixels": 12845056, "patch_size": 14,
                 "temporal_patch_size": 2, "merge_size": 2, **OPENAI},
    "qwen2_5_vl": {"image_processor_type": "Qwen2VLImageProcessor",
                   "processor_class": "Qwen2_5_VLProcessor", "min_pixels": 3136,
                   "max_pixels": 12845056, "patch_size": 14, "temporal_patch_size": 2,
                   "merge_size": 2, **OPENAI},
    "qwen2_vl_defaults": {"image_processor_type": "Qwen2VLImageProcessor"},
    "qwen3_vl": {"image_processor_type": "Qwen2VLImageProcessorFast",
                 "processor_class": "Qwen3VLProcessor",
                 "size": {"shortest_edge": 65536, "longest_edge": 16777216}, "patch_size": 16,
                 "temporal_patch_size": 2, "merge_size": 2, **HALF},
    "whisper": {"feature_extractor_type": "WhisperFeatureExtractor",
                "processor_class": "WhisperProcessor", "feature_size": 80, "sampling_rate": 16000,
                "hop_length": 160, "chunk_length": 30, "n_fft": 400, "padding_value": 0.0,
                "padding_side": "right", "return_attention_mask": False},
    "whisper_v3": {"feature_extractor_type": "WhisperFeatureExtractor",
                   "processor_class": "WhisperProcessor", "feature_size": 128,
                   "sampling_rate": 16000, "hop_length": 160, "chunk_length": 30, "n_fft": 400,
                   "padding_value": 0.0, "return_attention_mask": False},
    "qwen2_audio": {"feature_extractor_type": "WhisperFeatureExtractor",
                    "processor_class": "Qwen2AudioProcessor", "feature_size": 128,
                    "sampling_rate": 16000, "hop_length": 160, "chunk_length": 30, "n_fft": 400,
                    "padding_value": 0.0, "padding_side": "right", "return_attention_mask": True},
}
VIDEO_CONFIGS = {
    "qwen2_vl": {"video_processor_type": "Qwen2VLVideoProcessor", "min_pixels": 3136,
                 "max_pixels": 602112, "patch_size": 14, "temporal_patch_size": 2, "merge_size": 2,
                 "do_sample_frames": False, **OPENAI},
    "qwen3_vl": {"video_processor_type": "Qwen3VLVideoProcessor",
                 "size": {"shortest_edge": 4096, "longest_edge": 25165824}, "patch_size": 16,
                 "temporal_patch_size": 2, "merge_size": 2, "fps": 2, "min_frames": 4,
                 "max_frames": 768, "do_sample_frames": True, **HALF},
}


# --- inputs, which the tests make as well ---------------------------------------------------------

def hashed(count: int, seed: int) -> np.ndarray:
    """Pseudo-random 32-bit words; the tests' hashed()."""
    mask = np.uint64(0xFFFFFFFF)
    n = (np.arange(count, dtype=np.uint64) + np.uint64(seed * 0x9E3779B9 & 0xFFFFFFFF)) & mask
    n = (n * np.uint64(0x85EBCA6B)) & mask
    n ^= n >> np.uint64(13)
    return (n * np.uint64(0xC2B2AE35)) & mask


def noise(width: int, height: int, seed: int) -> np.ndarray:
    return (hashed(width * height * 3, seed) >> np.uint64(24)).astype(np.uint8).reshape(height, width, 3)


def pattern(width: int, height: int, seed: int) -> np.ndarray:
    """Slopes and curves with hard edges: more like a picture than noise is."""
    y, x, c = np.mgrid[0:height, 0:width, 0:3]
    return ((x * (3 + c) + y * (5 - c) + (x * y >> 4) + seed * 37) % 256).astype(np.uint8)


def tone(count: int, seed: int) -> np.ndarray:
    """Triangles of two pitches under a slow swell, and a little noise; exact in float32."""
    i = np.arange(count, dtype=np.int64)

    def triangle(step: int) -> np.ndarray:
        return np.abs((i * step) % 65536 - 32768) - 16384

    swell = np.abs((i * 3) % 65536 - 32768)
    grain = (hashed(count, seed) >> np.uint64(22)).astype(np.int64) - 512
    value = (triangle(901 + 40 * seed) + triangle(2741 + 90 * seed) // 2) * swell // 32768 + grain
    return (value.astype(np.float64) / 32768).astype(np.float32)


def load_file(name: str) -> np.ndarray:
    """Upright and on white; transformers' own load_image() drops what is transparent."""
    image = ImageOps.exif_transpose(Image.open(DATA / name))
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        rgba = np.asarray(image.convert("RGBA")).astype(np.uint32)
        color, alpha = rgba[..., :3], rgba[..., 3:]
        return ((2 * (color * alpha + 255 * (255 - alpha)) + 255) // 510).astype(np.uint8)
    return np.asarray(image.convert("RGB"))


def load_sound(name: str) -> np.ndarray:
    """PCM of 16 or 24 bits, or float32, at 16 kHz; channels averaged."""
    data = (DATA / name).read_bytes()
    body = data[data.find(b"data") + 8:]
    channels, bits = data[22], data[34]
    kind = data[44] if data[20] == 0xFE else data[20]
    if kind == 3:
        samples = np.frombuffer(body, "<f4")
    elif bits == 16:
        samples = np.frombuffer(body, "<i2").astype(np.float32) / 32768
    else:
        assert bits == 24
        raw = np.frombuffer(body, np.uint8).reshape(-1, 3).astype(np.int32)
        whole = raw[:, 0] << 8 | raw[:, 1] << 16 | raw[:, 2] << 24
        samples = (whole.astype(np.float64) / 2**31).astype(np.float32)
    samples = samples.reshape(-1, channels)
    total = samples[:, 0]
    for channel in range(1, channels):
        total = total + samples[:, channel]
    return (total / np.float32(channels)).astype(np.float32)


def exact_clip() -> np.ndarray:
    """The frames of clips/exact.mov, as told in make_clip_fixtures.py."""
    frames = np.zeros((12, 48, 64, 3), np.uint8)
    for i in range(12):
        frames[i] = 20 + 18 * i, 230 - 17 * i, (60 * i) % 200 + 20
        frames[i, :16, :16] = 255
    return frames


def gif_frames(path: Path) -> np.ndarray:
    image = Image.open(path)
    frames = []
    for i in range(image.n_frames):
        image.seek(i)
        frames.append(np.asarray(image.convert("RGB")))
    return np.stack(frames)


def odd_clip() -> np.ndarray:
    """The frames of parity/odd.gif: 13, of nine colours each, so that the file keeps them exactly."""
    frames = np.zeros((ODD_FRAMES, 48, 64, 3), np.uint8)
    for i in range(ODD_FRAMES):
        for column in range(8):
            frames[i, :, 8 * column:8 * column + 8] = 255 - 18 * i, 30 * column, (70 * i + 20 * column) % 256
        frames[i, 16:24, 4 * i:4 * i + 8] = 255
    return frames


def write_odd_clip() -> None:
    frames = [Image.fromarray(frame).quantize(16) for frame in odd_clip()]
    frames[0].save(DATA / "parity" / "odd.gif", save_all=True, append_images=frames[1:], duration=100, optimize=False)
    assert (gif_frames(DATA / "parity" / "odd.gif") == odd_clip()).all()


# --- what is expected -----------------------------------------------------------------------------

class Fixtures:
    def __init__(self) -> None:
        self.entries: list[dict] = []
        self.values: list[np.ndarray] = []
        self.count = 0

    def tensor(self, name: str, values: np.ndarray) -> dict:
        flat = np.ascontiguousarray(values).reshape(-1)
        entry = {"name": name, "shape": list(values.shape), "offset": self.count}
        kept = flat
        if flat.size > WHOLE:
            entry["sums"] = [float(part.astype(np.float64).sum()) for part in np.array_split(flat, CHUNKS)]
            kept = flat[np.arange(SAMPLES, dtype=np.uint64) * np.uint64(STEP) % np.uint64(flat.size)]
        entry["count"] = int(kept.size)
        self.values.append(kept.astype("<f4"))
        self.count += kept.size
        return entry

    def add(self, name: str, config: str, modality: str, source: dict, expected: dict,
            kwargs: dict | None = None, video_config: str | None = None) -> None:
        self.entries.append({"name": name, "config": config, "video_config": video_config,
                             "modality": modality, "input": source, "kwargs": kwargs or {}, **expected})

    def write(self) -> None:
        folder = DATA / "parity"
        planes = np.concatenate(self.values).view(np.uint8).reshape(-1, 4).T
        (folder / "values.bin.z").write_bytes(zlib.compress(np.ascontiguousarray(planes).tobytes(), 9))
        index = {"versions": {name: importlib.metadata.version(name) for name in PACKAGES},
                 "values": self.count, "samples": SAMPLES, "step": STEP, "chunks": CHUNKS,
                 "configs": CONFIGS, "video_configs": VIDEO_CONFIGS, "sampling": sampling_cases(),
                 "clip_sizes": clip_size_cases()}
        lines = [json.dumps(entry) for entry in self.entries]
        head = json.dumps(index)[:-1]
        (folder / "index.json").write_text(head + ',\n"fixtures": [\n' + ",\n".join(lines) + "\n]}\n")


def crc(array: np.ndarray) -> str:
    return f"{zlib.crc32(np.ascontiguousarray(array).tobytes()):08x}"


def slow_processor(config: str):
    """The class on Pillow and numpy. Qwen2VLImageProcessor of 4.57.1 forgets the size of its file (the
    Fast one does not); said as pixels it is heeded."""
    values = dict(CONFIGS[config])
    name = values.pop("image_processor_type").removesuffix("Fast")
    if name.startswith("Qwen2VL") and "size" in values:
        size = values.pop("size")
        values |= {"min_pixels": size["shortest_edge"], "max_pixels": size["longest_edge"]}
    return getattr(transformers, name)(**values)


def pillow_resized(image: np.ndarray, size: tuple[int, int], resample: int) -> dict:
    out = np.asarray(Image.fromarray(image).resize(size, resample))
    return {"size": list(size), "resample": resample, "crc32": crc(out)}


def smart_size(processor, config: str, height: int, width: int, kwargs: dict) -> tuple[int, int]:
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize
    factor = processor.patch_size * processor.merge_size
    resized = smart_resize(height, width, factor, kwargs.get("min_pixels", processor.min_pixels),
                           kwargs.get("max_pixels", processor.max_pixels))
    return resized[1], resized[0]


def picture(fixtures: Fixtures, name: str, config: str, source: dict, image: np.ndarray,
            **kwargs) -> None:
    processor = slow_processor(config)
    # Said, since of a picture of one or three rows it would be guessed wrongly.
    out = processor.preprocess(Image.fromarray(image), return_tensors="np",
                               input_data_format="channels_last", **kwargs)
    values = out["pixel_values"]
    expected: dict = {}
    if "image_grid_thw" in out:
        grid = [int(n) for n in out["image_grid_thw"][0]]
        size = smart_size(processor, config, *image.shape[:2], kwargs)
        expected = {"grid": grid, "tokens": grid[0] * grid[1] * grid[2] // processor.merge_size**2,
                    "resized": pillow_resized(image, size, 3)}
    else:
        values = values[0]
        if not config.startswith(("clip", "bit", "convnext")):
            size = processor.size
            expected = {"resized": pillow_resized(image, (size["width"], size["height"]),
                                                  int(processor.resample))}
    expected["tensors"] = [fixtures.tensor("pixel_values", values)]
    fixtures.add(name, config, "image", source, expected, kwargs)


def add_pictures(fixtures: Fixtures) -> None:
    for config in ("clip", "clip_fast", "siglip", "vit", "deit", "bit", "convnext", "efficientnet"):
        for seed, (width, height) in enumerate(((97, 61), (40, 133))):
            picture(fixtures, f"{config}_{width}x{height}", config,
                    {"pattern": [width, height, seed]}, pattern(width, height, seed))
    for config in ("clip", "siglip", "qwen2_vl"):
        for file in ("orientation_6.jpg", "gray.jpg", "rgba8.png", "palette_trns.png", "la8.png",
                     "cmyk.jpg", "420.jpg"):
            picture(fixtures, f"{config}_{file}", config, {"file": f"media/{file}"},
                    load_file(f"media/{file}"))
    picture(fixtures, "clip_extreme", "clip", {"noise": [900, 12, 5]}, noise(900, 12, 5))
    picture(fixtures, "siglip_one_pixel", "siglip", {"noise": [1, 1, 6]}, noise(1, 1, 6))
    shapes = [(56, 56), (57, 83), (200, 31), (31, 333), (1, 1), (400, 2), (13, 14), (140, 112),
              (222, 278), (1000, 5)]
    for seed, (width, height) in enumerate(shapes):
        for config in ("qwen2_vl", "qwen2_vl_defaults", "qwen3_vl"):
            picture(fixtures, f"{config}_{width}x{height}", config, {"noise": [width, height, seed]},
                    noise(width, height, seed))
    for width, height in ((640, 480), (1203, 907)):
        for config, most in (("qwen2_5_vl", 100352), ("qwen3_vl", 131072)):
            picture(fixtures, f"{config}_{width}x{height}_at_most_{most}", config,
                    {"pattern": [width, height, 3]}, pattern(width, height, 3), max_pixels=most,
                    min_pixels=3136)


def fast_picture(fixtures: Fixtures, width: int, height: int) -> None:
    """The Fast class resizes by torchvision; its rounding can be asked for."""
    image = noise(width, height, 8)
    processor = transformers.Qwen2VLImageProcessorFast(
        **{k: v for k, v in CONFIGS["qwen2_vl"].items() if k != "image_processor_type"})
    out = processor(Image.fromarray(image), return_tensors="pt")
    grid = [int(n) for n in out["image_grid_thw"][0]]
    expected = {"grid": grid, "tokens": grid[0] * grid[1] * grid[2] // 4,
                "tensors": [fixtures.tensor("pixel_values", out["pixel_values"].numpy())]}
    fixtures.add(f"qwen2_vl_as_fast_{width}x{height}", "qwen2_vl", "image",
                 {"noise": [width, height, 8]}, expected, {"resize_rounding": "torchvision"})


# --- clips ----------------------------------------------------------------------------------------

def sampling_cases() -> list[dict]:
    """What is taken of clips of odd and even lengths: the places, or of many their checksum."""
    asked = [{}, {"fps": 1}, {"fps": 4.5}, {"fps": 100}, {"num_frames": 5}, {"num_frames": 8}, {"max_frames": 9},
             {"min_frames": 7}, {"fps": 3, "min_frames": 5, "max_frames": 33}]
    lengths = [(total, rate) for total in (9, 12, 13, 54, 55, 100, 301) for rate in (10.0, 25.0, 30000 / 1001)]
    lengths += [(2, 10.0), (3, 10.0), (4321, 30.0), (100_000, 24.0), (999_999, 59.94)]
    cases = []
    for family in REFERENCES:
        for total, rate in lengths:
            if family == "qwen2_vl" and total > 100_000:
                continue  # where its float32 depends on the width of the CPU's vectors
            for kwargs in asked if total > 8 else [{}]:
                places = reference_places(family, total, rate, kwargs)
                case = {"family": family, "total": total, "rate": rate, "kwargs": kwargs, "count": len(places)}
                if len(places) <= 16:
                    case["places"] = places
                else:
                    case["crc32"] = crc(np.asarray(places, "<u4"))
                cases.append(case)
    few = {"num_frames": 8}  # more than there are
    cases.append({"family": "qwen3_vl", "total": 5, "rate": 10.0, "kwargs": few, "count": 8,
                  "places": reference_places("qwen3_vl", 5, 10.0, few)})
    return cases


def clip_size_cases() -> list[dict]:
    """Sizes of frames by qwen-vl-utils, with the bounds that Qwen2.5-VL is published with."""
    config = "qwen2_5_vl"
    bounds = CONFIGS[config]["min_pixels"], CONFIGS[config]["max_pixels"]
    sides = [(1920, 1080), (1080, 1920), (1280, 720), (3840, 2160), (640, 360), (854, 480), (64, 48), (333, 77),
             (3000, 30), (29, 500), (1000, 1000)]
    cases = []
    for width, height in sides:
        for frames in (2, 4, 30, 120, 300, 302, 600, 768):
            for asked in ({}, {"total_pixels": 10_000_000}, {"max_pixels": 200_704}):
                size = clip_size_by_qwen_vl_utils(width, height, frames, asked, bounds)
                cases.append({"config": config, "video_config": None, "kwargs": asked, "frames": frames,
                              "from": [width, height], "to": size})
    return cases


def clip(fixtures: Fixtures, name: str, config: str, source: dict, frames: np.ndarray, times: list[float],
         sample_fps: float, asked: dict | None = None, whole: np.ndarray | None = None) -> None:
    """Of `frames`; or of the `whole` file, for a processor that takes frames by itself."""
    values = {k: v for k, v in VIDEO_CONFIGS[config].items() if k != "video_processor_type"}
    kind = VIDEO_CONFIGS[config]["video_processor_type"]
    taken = torch.from_numpy(frames if whole is None else whole).permute(0, 3, 1, 2)
    given = {"do_sample_frames": False}  # these have been sampled
    if whole is not None:
        given = {"do_sample_frames": True, **(asked or {}),
                 "video_metadata": [VideoMetadata(total_num_frames=len(whole), fps=CLIP_RATE)]}
    out = getattr(transformers, kind)(**values)(videos=[taken], return_tensors="pt", **given)
    grid = [int(n) for n in out["video_grid_thw"][0]]
    steps = [(times[i] + times[min(i + 1, len(times) - 1)]) / 2 for i in range(0, len(times), 2)]
    expected = {"grid": grid, "tokens": grid[0] * grid[1] * grid[2] // 4, "timestamps": steps,
                "seconds_per_grid": 2 / sample_fps,
                "tensors": [fixtures.tensor("pixel_values_videos", out["pixel_values_videos"].numpy())]}
    alone = {"size_rule": "transformers"} if config == "qwen2_vl" else {}  # without qwen-vl-utils before it
    fixtures.add(name, config, "video", source, expected, {**(asked or {}), **alone}, config)


def clip_file(fixtures: Fixtures, config: str, file: str, frames: np.ndarray, asked: dict) -> None:
    places = reference_places(config, len(frames), CLIP_RATE, asked)
    told = "_".join(["", *(f"{name}_{value}" for name, value in asked.items())])
    clip(fixtures, f"{config}_{file}{told}", config, {"file": file}, frames[places],
         [place / CLIP_RATE for place in places], len(places) / (len(frames) / CLIP_RATE), asked,
         frames if config == "qwen3_vl" else None)


def clip_on_pillow(fixtures: Fixtures, name: str, frames: np.ndarray, source: dict,
                   times: list[float]) -> None:
    """The image processor still takes clips, and resizes their frames by Pillow."""
    processor = slow_processor("qwen2_vl")
    size = {"min_pixels": 3136, "max_pixels": 602112}
    out = processor.preprocess(images=None, videos=[[Image.fromarray(frame) for frame in frames]],
                               return_tensors="np", **size)
    grid = [int(n) for n in out["video_grid_thw"][0]]
    steps = [(times[i] + times[min(i + 1, len(times) - 1)]) / 2 for i in range(0, len(times), 2)]
    expected = {"grid": grid, "tokens": grid[0] * grid[1] * grid[2] // 4, "timestamps": steps,
                "seconds_per_grid": 1.0,
                "tensors": [fixtures.tensor("pixel_values_videos", out["pixel_values_videos"])]}
    fixtures.add(name, "qwen2_vl", "video", source, expected,
                 {"resize_rounding": "pillow", "size_rule": "transformers"}, "qwen2_vl")


def add_clips(fixtures: Fixtures) -> None:
    for seed, (count, width, height) in enumerate(((2, 70, 50), (3, 61, 97), (4, 84, 56), (7, 128, 40))):
        frames = np.stack([noise(width, height, 50 + 10 * seed + i) for i in range(count)])
        times = [i / 2 for i in range(count)]
        source = {"frames": [width, height, count, 50 + 10 * seed], "fps": 2.0}
        for config in ("qwen2_vl", "qwen3_vl"):
            clip(fixtures, f"{config}_{count}_frames_of_{width}x{height}", config, source, frames, times, 2.0)
        clip_on_pillow(fixtures, f"pillow_{count}_frames_of_{width}x{height}", frames, source, times)
    files = {"clips/exact.mov": exact_clip(), "clips/moving.gif": gif_frames(DATA / "clips" / "moving.gif"),
             "parity/odd.gif": odd_clip()}
    for file, frames in files.items():
        for config in ("qwen2_vl", "qwen3_vl"):
            for asked in ({}, {"fps": 4.5}):
                clip_file(fixtures, config, file, frames, asked)
    for config in ("qwen2_vl", "qwen3_vl"):
        clip_file(fixtures, config, "parity/odd.gif", odd_clip(), {"fps": 100})


# --- sounds ---------------------------------------------------------------------------------------

def sound(fixtures: Fixtures, name: str, config: str, source: dict, samples: np.ndarray) -> None:
    extractor = transformers.WhisperFeatureExtractor(
        **{k: v for k, v in CONFIGS[config].items() if not k.endswith(("type", "class"))})
    masked = config == "qwen2_audio"
    out = extractor(samples, sampling_rate=16000, return_tensors="np", return_attention_mask=masked)
    expected = {"tensors": [fixtures.tensor("input_features", out["input_features"][0])]}
    frames = out["input_features"].shape[-1]
    expected["tokens"] = (frames - 1) // 2 + 1
    if masked:
        mask = out["attention_mask"][0]
        expected["mask"] = {"name": "feature_attention_mask", "ones": int(mask.sum()), "size": len(mask)}
        expected["tokens"] = ((int(mask.sum()) - 1) // 2 + 1 - 2) // 2 + 1
    fixtures.add(name, config, "audio", source, expected)


def add_sounds(fixtures: Fixtures) -> None:
    lengths = {"one_second": 16000, "odd": 12345, "short": 641, "three_seconds": 48001,
               "whole_chunk": 480000, "long": 500000}
    for seed, (name, count) in enumerate(lengths.items()):
        for config in ("whisper", "whisper_v3", "qwen2_audio"):
            sound(fixtures, f"{config}_{name}", config, {"tone": [count, seed]}, tone(count, seed))
    for file in ("plain.wav", "stereo.wav", "float.wav", "deep.wav"):
        for config in ("whisper", "qwen2_audio"):
            sound(fixtures, f"{config}_{file}", config, {"file": f"clips/{file}"}, load_sound(f"clips/{file}"))


def main() -> None:
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    fixtures = Fixtures()
    (DATA / "parity").mkdir(exist_ok=True)
    write_odd_clip()
    add_pictures(fixtures)
    fast_picture(fixtures, 333, 210)
    fast_picture(fixtures, 31, 47)
    add_clips(fixtures)
    add_sounds(fixtures)
    fixtures.write()
    print(f"{len(fixtures.entries)} fixtures, {fixtures.count} values")


if __name__ == "__main__":
    main()
