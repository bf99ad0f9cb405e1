"""Towers as PyTorch modules: the original, and the one whose graph is exported."""

import importlib
import json
from dataclasses import dataclass

import torch
from torch import nn
from transformers import AutoConfig

from vitrove_export.errors import ExportError
from vitrove_export.families import Family, family_of
from vitrove_export.packed_towers import MODULES
from vitrove_export.weights import tower_weights


@dataclass
class Source:
    family: Family
    model_type: str
    config: object  # of the tower
    tower: nn.Module

    @property
    def settings(self):
        return self.config.to_dict()


def load_source(directory):
    """The tower of a local model directory, in float32."""
    path = directory / "config.json"
    if not path.is_file():
        raise ExportError(f"{directory} has no config.json")
    # As the file says it: some configurations answer with their language model's.
    model_type = json.loads(path.read_text()).get("model_type")
    family = family_of(model_type)
    config = AutoConfig.from_pretrained(directory, local_files_only=True)
    tower = make_tower(family, getattr(config, "vision_config", config))
    try:
        tower.load_state_dict(tower_weights(directory, family.weights), assign=True)
    except RuntimeError as error:  # many lines: each tensor that is missing, unexpected or of another shape
        what = " ".join(str(error).split())[:400]
        raise ExportError(f"the checkpoint does not fit its config.json: {what}") from error
    return Source(family, model_type, tower.config, tower)


def make_tower(family, config):
    module = importlib.import_module(f"transformers.models.{family.module}")
    config._attn_implementation = "eager"
    return getattr(module, family.tower)._from_config(config, attn_implementation="eager").eval()


class StackedTower(nn.Module):
    """CLIP, SigLIP and Whisper: items of one shape in a batch."""

    def __init__(self, tower, feature_layer):
        super().__init__()
        self.tower = tower
        self.feature_layer = feature_layer

    def forward(self, features):
        if self.feature_layer is None:
            return self.tower(features).last_hidden_state
        return self.tower(features, output_hidden_states=True).hidden_states[self.feature_layer]


def hidden_layers(source):
    """How many hidden states the tower has: one before each layer and one after the last."""
    name = "encoder_layers" if source.model_type == "whisper" else "num_hidden_layers"
    return getattr(source.config, name) + 1


def exported_module(source, feature_layer=None):
    """The module to export, and its output's name. `feature_layer` counts as hidden_states do."""
    if source.family.layout == "packed":
        if feature_layer is not None:
            raise ExportError(f"a feature layer can be chosen for CLIP, SigLIP and Whisper, not for "
                              f"{source.model_type}")
        return MODULES[source.family.tower](source.tower).eval(), source.family.output
    if feature_layer is None:
        return StackedTower(source.tower, None).eval(), source.family.output
    layers = hidden_layers(source)
    if not -layers <= feature_layer < layers:
        raise ExportError(f"feature layer {feature_layer} is not one of {layers} hidden states")
    return StackedTower(source.tower, feature_layer).eval(), f"hidden_states.{feature_layer % layers}"


def reference_rows(source, features, grids=None, feature_layer=None):
    """What the original tower gives: [N, tokens, dim], or [rows, dim] for items of `grids`."""
    with torch.no_grad():
        if grids is None:
            return StackedTower(source.tower, feature_layer)(features)
        output = source.tower(features, grid_thw=torch.tensor(grids))
        return torch.cat([output[0], *output[1]], dim=1) if isinstance(output, tuple) else output
