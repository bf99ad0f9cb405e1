"""A tower's weights out of a checkpoint, without loading the language model around it."""

import json

import torch
from safetensors import safe_open

from vitrove_export.errors import ExportError

# Buffers that older checkpoints hold and towers make themselves.
COMPUTED = ("position_ids", "rotary_pos_emb.inv_freq")


def tower_weights(directory, names):
    """The tensors whose names begin with a key of `names`, under the tower's own names, as float32."""
    weights = {}
    for name, read in tensors_of(directory):
        own = own_name(name, names)
        if own is not None and not own.endswith(COMPUTED):
            weights[own] = read().to(torch.float32)
    if not weights:
        raise ExportError(f"the checkpoint has no tensor whose name begins with {' or '.join(names)}")
    return weights


def own_name(name, names):
    for beginning, own in names.items():
        if name.startswith(beginning):
            return own + name.removeprefix(beginning)
    return None


def tensors_of(directory):
    """Names, each with a function that reads the tensor."""
    for file in safetensors_files(directory):
        with safe_open(file, framework="pt") as opened:
            for name in opened.keys():
                yield name, lambda name=name: opened.get_tensor(name)


def safetensors_files(directory):
    index = directory / "model.safetensors.index.json"
    if index.is_file():
        named = json.loads(index.read_text())["weight_map"].values()
        files = [directory / name for name in sorted(set(named))]
    else:
        files = [directory / "model.safetensors"]
    for file in files:
        if not file.is_file():
            raise ExportError(f"{file.name} is missing; weights are read from safetensors files")
    return files
