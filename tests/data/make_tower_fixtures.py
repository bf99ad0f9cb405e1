#!/usr/bin/env python3
"""Makes tests/data/towers: small towers of every exported class, and what PyTorch says about them.

    scripts/setup_transformers.sh
    build/transformers-venv/bin/python tests/data/make_tower_fixtures.py

CI needs neither PyTorch nor transformers: it runs the exported graphs, and compares the rows. Deterministic: with the
pinned versions the same files come out again.

Every tower is made from its configuration with random weights, saved as Hugging Face would save it, and exported by
vitrove-export. The reference chain is Pillow, the model's own processor in transformers, and the original tower.

Leaves: media/                 pictures, a clip and a sound
        TOWER/                 the exported model directory
        TOWER/rows.bin         the reference's rows, float32, little-endian, case after case
        towers.json            what belongs to what
        grid_inputs.json       what transformers' own functions compute from grids
"""

import json
import math
import shutil
import sys
import tempfile
import wave
from pathlib import Path

import numpy as np
import torch
import torchvision
import transformers
from PIL import Image
from safetensors.torch import save_file
from transformers import (CLIPImageProcessor, CLIPVisionConfig, Qwen2_5_VLConfig, Qwen2VLConfig,
                          Qwen2VLImageProcessor, Qwen2VLVideoProcessor, Qwen3VLConfig, Qwen3VLVideoProcessor,
                          SiglipImageProcessor, SiglipVisionConfig, WhisperConfig, WhisperFeatureExtractor)

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "tests" / "data" / "towers"
sys.path[:0] = [str(ROOT / "python" / "vitrove-export"), str(ROOT / "scripts")]

from reference_sampling import reference_places  # noqa: E402
from vitrove_export import families  # noqa: E402
from vitrove_export.export import Settings, export  # noqa: E402
from vitrove_export.towers import load_source, make_tower, reference_rows  # noqa: E402

PICTURES = {"wide.png": (231, 117), "tall.png": (90, 200), "square.jpg": (150, 150)}
CLIP_FRAMES, CLIP_SIZE, CLIP_FPS = 12, (112, 84), 10
SOUND_SECONDS, RATE = 2.5, 16000
TEXT = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4,
        "num_key_value_heads": 4, "vocab_size": 32}


def noise_picture(width, height, seed):
    """Slopes, edges and some noise, so that no step of the chain is blind to it."""
    random = np.random.RandomState(seed)
    rows, columns = np.mgrid[0:height, 0:width]
    base = np.stack([255 * columns / width, 255 * rows / height, 127 + 127 * np.sin(rows * columns / 400)], axis=-1)
    base[height // 3:height // 2, width // 4:width // 2] = random.randint(0, 256, 3)
    return (base + random.randint(-8, 9, base.shape)).clip(0, 255).astype(np.uint8)


def make_media(folder):
    folder.mkdir(parents=True)
    for seed, (name, size) in enumerate(PICTURES.items()):
        options = {"quality": 95, "subsampling": 0} if name.endswith(".jpg") else {"optimize": True}
        Image.fromarray(noise_picture(*size, seed)).save(folder / name, **options)
    frames = [Image.fromarray(noise_picture(*CLIP_SIZE, 10 + i) // 64 * 64).quantize(64) for i in range(CLIP_FRAMES)]
    frames[0].save(folder / "clip.gif", save_all=True, append_images=frames[1:], duration=1000 // CLIP_FPS)
    at = np.arange(int(SOUND_SECONDS * RATE)) / RATE
    sound = 0.4 * np.sin(2 * math.pi * (200 + 300 * at) * at) + 0.1 * np.random.RandomState(1).randn(at.size)
    with wave.open(str(folder / "sound.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((sound.clip(-1, 1) * 32767).astype("<i2").tobytes())


def read_clip(path):
    with Image.open(path) as clip:
        frames = []
        for number in range(clip.n_frames):
            clip.seek(number)
            frames.append(np.asarray(clip.convert("RGB")))
    return torch.from_numpy(np.stack(frames)).permute(0, 3, 1, 2)


def read_sound(path):
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


def qwen_vision(**further):
    return {"depth": 4, "num_heads": 4, "spatial_merge_size": 2, "temporal_patch_size": 2, **further}


# Name, model type, configuration, the beginning of the checkpoint's names, processors to save.
def towers():
    qwen_pixels = {"min_pixels": 56 * 56, "max_pixels": 28 * 28 * 48}
    clip_pixels = {"min_pixels": 28 * 28 * 4, "max_pixels": 28 * 28 * 48}
    qwen2_processors = [Qwen2VLImageProcessor(**qwen_pixels), Qwen2VLVideoProcessor(**clip_pixels)]
    vit = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
    yield ("clip", CLIPVisionConfig(image_size=56, patch_size=14, hidden_act="quick_gelu", **vit), "",
           [CLIPImageProcessor(size={"shortest_edge": 56}, crop_size={"height": 56, "width": 56})])
    yield ("siglip", SiglipVisionConfig(image_size=64, patch_size=16, **vit), "",
           [SiglipImageProcessor(size={"height": 64, "width": 64})])
    yield ("whisper", WhisperConfig(d_model=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=64,
                                    decoder_layers=1, decoder_attention_heads=4, decoder_ffn_dim=64,
                                    max_source_positions=200, num_mel_bins=80), "model.encoder.",
           [WhisperFeatureExtractor(feature_size=80, chunk_length=4)])
    yield ("qwen2_vl", Qwen2VLConfig(text_config=TEXT, vision_config=qwen_vision(
        embed_dim=32, hidden_size=48, mlp_ratio=2)), "visual.", qwen2_processors)
    yield ("qwen2_5_vl", Qwen2_5_VLConfig(text_config=TEXT, vision_config=qwen_vision(
        hidden_size=32, intermediate_size=64, out_hidden_size=48, window_size=112, fullatt_block_indexes=[1, 3])),
        "visual.", qwen2_processors)
    yield ("qwen3_vl", Qwen3VLConfig(text_config=TEXT, vision_config=qwen_vision(
        hidden_size=32, intermediate_size=64, out_hidden_size=24, patch_size=16, num_position_embeddings=49,
        deepstack_visual_indexes=[0, 2])), "model.visual.",
        [Qwen2VLImageProcessor(patch_size=16, image_mean=[0.5] * 3, image_std=[0.5] * 3, min_pixels=64 * 64,
                               max_pixels=32 * 32 * 48),
         Qwen3VLVideoProcessor(size={"shortest_edge": 32 * 32 * 16, "longest_edge": 32 * 32 * 200})])


def fill_with_random_weights(tower, seed):
    """Far enough from zero that every layer, head and position leaves its mark on the rows."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, weight in tower.named_parameters():
            if weight.dim() > 1:
                weight.normal_(std=1.5 / math.sqrt(weight[0].numel()))
            elif "norm" in name and name.endswith("weight"):
                weight.normal_(mean=1.0, std=0.2)
            else:
                weight.normal_(std=0.2)


def save_model(folder, config, beginning, processors, seed):
    """A directory as `save_pretrained` leaves it, with the tower's tensors alone."""
    family = families.family_of(config.model_type)
    tower = make_tower(family, getattr(config, "vision_config", config))
    fill_with_random_weights(tower, seed)
    config.save_pretrained(folder)
    save_file({beginning + name: tensor.contiguous() for name, tensor in tower.state_dict().items()},
              folder / "model.safetensors")
    for processor in processors:
        processor.save_pretrained(folder)


def picture_case(source, processors, name):
    with Image.open(TARGET / "media" / name) as picture:
        features = processors[0](images=picture.convert("RGB"), return_tensors="pt")
    return run_case(source, "image", name, features["pixel_values"], features.get("image_grid_thw"))


def clip_case(source, processors, name):
    frames = read_clip(TARGET / "media" / name)
    frames = frames[reference_places(source.model_type.replace("2_5", "2"), len(frames), CLIP_FPS)]
    metadata = {"fps": CLIP_FPS, "total_num_frames": CLIP_FRAMES, "duration": CLIP_FRAMES / CLIP_FPS}
    features = processors[1](videos=[frames], video_metadata=[metadata], do_sample_frames=False, return_tensors="pt")
    return run_case(source, "video", name, features["pixel_values_videos"], features["video_grid_thw"])


def sound_case(source, processors, name):
    sound = read_sound(TARGET / "media" / name)
    features = processors[0](sound, sampling_rate=RATE, return_tensors="pt")
    return run_case(source, "audio", name, features["input_features"], None)


def run_case(source, modality, media, features, grid):
    grids = None if grid is None else [tuple(grid[0].tolist())]
    rows = reference_rows(source, features, grids)
    rows = rows[0] if grids is None else rows
    case = {"media": media, "modality": modality, "rows": rows.shape[0], "dim": rows.shape[1],
            "grid": grids[0] if grids else None}
    return case, rows.numpy().astype("<f4")


def cases_of(source, processors):
    if source.family.modalities == ["audio"]:
        yield sound_case(source, processors, "sound.wav")
        return
    for name in PICTURES:
        yield picture_case(source, processors, name)
    if "video" in source.family.modalities:
        yield clip_case(source, processors, "clip.gif")


def make_tower_fixture(name, config, beginning, processors, seed):
    with tempfile.TemporaryDirectory() as scratch:
        model = Path(scratch) / "model"
        save_model(model, config, beginning, processors, seed)
        report = export(model, TARGET / name, Settings(name=f"tiny-{name}", revision="random"))
        source = load_source(model)
        cases = list(cases_of(source, processors))
    with open(TARGET / name / "rows.bin", "wb") as file:
        for _, rows in cases:
            file.write(rows.tobytes())
    print(f"{name}: {report['max_relative_error']:.2g}, {[case['grid'] for case, _ in cases]}")
    return {"name": name, "fingerprint": report["fingerprint"], "cases": [case for case, _ in cases]}


class Counting(torch.nn.Module):
    """In place of a table of frequencies: what is looked up in it comes back as the place it was looked up at."""

    def forward(self, count):
        return torch.arange(count)[:, None].float()


def grid_cases():
    """The towers' own functions, on small grids."""
    sources = {name: make_tower(families.family_of(config.model_type), config.vision_config)
               for name, config, _, _ in towers() if name.startswith("qwen")}
    batches = [[(1, 4, 6)], [(2, 6, 4), (1, 2, 2)], [(1, 10, 8), (3, 2, 12), (1, 18, 2)]]
    positions, windows, learned = [], [], []
    for grids in batches:
        thw = torch.tensor(grids)
        windowed, stretched = sources["qwen2_5_vl"], sources["qwen3_vl"]
        order, _ = windowed.get_window_index(thw)
        windowed.rotary_pos_emb = Counting()
        positions.append({"grids": grids, "spatial_merge_size": 2,
                          "expected": windowed.rot_pos_emb(thw).long().flatten().tolist()})
        windows.append({"grids": grids, "spatial_merge_size": 2, "window_size": windowed.window_size,
                        "patch_size": windowed.patch_size, "expected": order.tolist()})
        side = stretched.num_grid_per_side
        stretched.pos_embed = torch.nn.Embedding.from_pretrained(torch.eye(side * side))
        mixture = stretched.fast_pos_embed_interpolate(thw)
        learned.append({"grids": grids, "spatial_merge_size": 2, "num_grid_per_side": side,
                        "expected": [round(value, 7) for value in mixture.flatten().tolist()]})
    return {"position_ids": positions, "window_index": windows, "pos_embed": learned}


def main():
    shutil.rmtree(TARGET, ignore_errors=True)
    make_media(TARGET / "media")
    made = [make_tower_fixture(*tower, seed) for seed, tower in enumerate(towers())]
    versions = {module.__name__: module.__version__ for module in (torch, torchvision, transformers)}
    (TARGET / "towers.json").write_text(json.dumps({"versions": versions, "towers": made}, indent=1) + "\n")
    (TARGET / "grid_inputs.json").write_text(json.dumps(grid_cases()) + "\n")


if __name__ == "__main__":
    main()
