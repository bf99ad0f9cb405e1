"""A tower's weights out of a checkpoint, without loading the language model around it."""

import torch
from safetensors import safe_open

from vitrove_export.checkpoint_files import own_name, safetensors_files
from vitrove_export.errors import ExportError

# Buffers that older checkpoints hold and towers make themselves.
COMPUTED = ("position_ids", "rotary_pos_emb.inv_freq")


def tower_weights(directory, names):
    """The tensors whose names begin with a key of `names`, under the tower's own names, as float32."""
    weights = {}
    for name, read in tensors_of(safetensors_files(directory, names)):
        own = own_name(name, names)
        if own is not None and not own.endswith(COMPUTED):
            weights[own] = read().to(torch.float32)
    if not weights:
        raise ExportError(f"the checkpoint has no tensor whose name begins with {' or '.join(names)}")
    return weights


def tensors_of(files):
    """Names, each with a function that reads the tensor."""
    for file in files:
        with safe_open(file, framework="pt") as opened:
            for name in opened.keys():
                yield name, lambda name=name: opened.get_tensor(name)
