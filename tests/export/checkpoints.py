"""Makes whole small checkpoints of every class that vitrove-export knows, as they lie on a hub, and exports them.

    build/export-python/python tests/export/checkpoints.py DIRECTORY

Prints a line of JSON a model. Weights are random, in bfloat16, over several files; configurations and processors
are those that transformers writes. The last one is exported with a mistake in its graph.
"""

import contextlib
import io
import json
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import nn

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "vitrove-export"))

from vitrove_export import cli, export  # noqa: E402

TEXT = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 1000}
WORDS = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
         "vocab_size": 100, "max_position_embeddings": 16}
PATCHES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4,
           "image_size": 56, "patch_size": 14}
PICTURE = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "resample": 3}
QWEN = {**PICTURE, "image_processor_type": "Qwen2VLImageProcessor", "patch_size": 14, "temporal_patch_size": 2,
        "merge_size": 2, "min_pixels": 3136, "max_pixels": 200704}


def qwen2_vl():
    vision = {"depth": 2, "embed_dim": 32, "hidden_size": 64, "num_heads": 4, "mlp_ratio": 2}
    return (transformers.Qwen2VLForConditionalGeneration,
            transformers.Qwen2VLConfig(vision_config=vision, **TEXT), QWEN)


def qwen2_5_vl():
    vision = {"depth": 4, "hidden_size": 32, "intermediate_size": 64, "num_heads": 4, "out_hidden_size": 64,
              "window_size": 112, "fullatt_block_indexes": [1, 3]}
    return (transformers.Qwen2_5_VLForConditionalGeneration,
            transformers.Qwen2_5_VLConfig(vision_config=vision, **TEXT), QWEN)


def qwen3_vl():
    vision = {"depth": 4, "hidden_size": 32, "intermediate_size": 64, "num_heads": 4, "out_hidden_size": 64,
              "num_position_embeddings": 64, "deepstack_visual_indexes": [0, 2]}
    text = {**TEXT, "head_dim": 16, "rope_scaling": {"rope_type": "default", "mrope_section": [4, 2, 2]}}
    return (transformers.Qwen3VLForConditionalGeneration,
            transformers.Qwen3VLConfig(vision_config=vision, text_config=text),
            {**QWEN, "patch_size": 16, "processor_class": "Qwen3VLProcessor"})


def clip():
    size = {"height": 56, "width": 56}
    return (transformers.CLIPModel, transformers.CLIPConfig(text_config=WORDS, vision_config=PATCHES),
            {**PICTURE, "image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 56}, "crop_size": size})


def siglip():
    return (transformers.SiglipModel, transformers.SiglipConfig(text_config=WORDS, vision_config=PATCHES),
            {**PICTURE, "image_processor_type": "SiglipImageProcessor", "size": {"height": 56, "width": 56}})


def whisper():
    config = transformers.WhisperConfig(
        d_model=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=64, decoder_layers=1,
        decoder_attention_heads=4, decoder_ffn_dim=64, num_mel_bins=80, vocab_size=100, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=3)
    return (transformers.WhisperForConditionalGeneration, config,
            {"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 80, "sampling_rate": 16000,
             "hop_length": 160, "n_fft": 400, "chunk_length": 30})


# What is asked of the exporter beside the model and the target.
OPTIONS = {qwen2_vl: [], qwen2_5_vl: ["--dtype", "bfloat16"], qwen3_vl: [],
           clip: ["--feature-layer", "-2", "--dtype", "float16"], siglip: [], whisper: ["--revision", "abc"]}


def as_on_a_hub(directory):
    """Towers of the Qwen family are `visual.` there, and `model.visual.` in what transformers writes today."""
    index = directory / "model.safetensors.index.json"
    listed = json.loads(index.read_text())

    def rename(name):
        return name.replace("model.visual.", "visual.")

    for file in set(listed["weight_map"].values()):
        tensors = {rename(name): tensor for name, tensor in load_file(directory / file).items()}
        save_file(tensors, directory / file, metadata={"format": "pt"})
    listed["weight_map"] = {rename(name): file for name, file in listed["weight_map"].items()}
    index.write_text(json.dumps(listed))


def save(make, directory):
    torch.manual_seed(1)
    model, config, preprocessor = make()
    model(config).to(torch.bfloat16).save_pretrained(directory, max_shard_size="60KB")
    (directory / "preprocessor_config.json").write_text(json.dumps(preprocessor))
    if make in (qwen2_vl, qwen2_5_vl):
        as_on_a_hub(directory)
    return len(list(directory.glob("*.safetensors")))


def run(name, arguments, **more):
    said, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        code = cli.main(arguments)
    print(json.dumps({"name": name, "exit": code, "said": said.getvalue(), "complained": complained.getvalue(),
                      **more}), flush=True)


class OffByAThousandth(nn.Module):
    """A tower whose graph is not quite the original."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *inputs):
        return self.module(*inputs) * 1.001


def export_with_a_mistake(name, arguments):
    right = export.exported_module

    def wrong(*arguments_of_it):
        module, output = right(*arguments_of_it)
        return OffByAThousandth(module).eval(), output

    export.exported_module = wrong
    try:
        run(name, arguments)
    finally:
        export.exported_module = right


def main():
    base = Path(sys.argv[1])
    for make, options in OPTIONS.items():
        name = make.__name__
        shards = save(make, base / name)
        run(name, [str(base / name), str(base / f"{name}-out"), *options], shards=shards)
    for name in ("siglip", "qwen2_5_vl"):
        export_with_a_mistake(f"{name} with a mistake", [str(base / name), str(base / f"{name}-wrong")])


if __name__ == "__main__":
    main()
