"""Which models can be exported, and what their directories say to Vitrove.

Nothing here imports PyTorch: a tower is described by names and numbers.
"""

import math
from dataclasses import dataclass, field

from vitrove_export.errors import ExportError

# What preprocessor_config.json calls a processor, and what Vitrove calls its family: part of the fingerprint.
# The names ending in "Fast" are the same family.
PROCESSOR_FAMILIES = {
    "CLIPImageProcessor": "clip",
    "CLIPFeatureExtractor": "clip",
    "SiglipImageProcessor": "siglip",
    "Qwen2VLImageProcessor": "qwen2_vl",
    "Qwen2_5_VLImageProcessor": "qwen2_vl",
    "WhisperFeatureExtractor": "whisper",
}

# Inputs that Vitrove computes from the grids, by what they are. The graph's inputs have the same names.
PACKED_INPUTS = ["cu_seqlens", "position_ids"]
WINDOW_INPUTS = ["segment_ids", "window_index"]
LEARNED_POSITION_INPUTS = ["pos_embed_index", "pos_embed_weight"]


@dataclass(frozen=True)
class Family:
    """A kind of tower. `weights` maps the beginnings of a checkpoint's names to the tower's own."""

    module: str  # below transformers.models
    tower: str  # its class there
    preprocessing: str  # Vitrove's family
    modalities: list
    layout: str
    weights: dict
    input: str = "pixel_values"
    output: str = "last_hidden_state"
    aux_inputs: list = field(default_factory=list)


CLIP = Family("clip.modeling_clip", "CLIPVisionModel", "clip", ["image"], "tokens",
              {"vision_model.": "vision_model."})
SIGLIP = Family("siglip.modeling_siglip", "SiglipVisionModel", "siglip", ["image"], "tokens",
                {"vision_model.": "vision_model."})
WHISPER = Family("whisper.modeling_whisper", "WhisperEncoder", "whisper", ["audio"], "tokens",
                 {"model.encoder.": "", "encoder.": ""}, input="input_features")


def qwen(module, tower, further_inputs, preprocessing="qwen2_vl"):
    return Family(module, tower, preprocessing, ["image", "video"], "packed", {"model.visual.": "", "visual.": ""},
                  output="rows", aux_inputs=PACKED_INPUTS + further_inputs)


QWEN2_VL = qwen("qwen2_vl.modeling_qwen2_vl", "Qwen2VisionTransformerPretrainedModel", [])
QWEN2_5_VL = qwen("qwen2_5_vl.modeling_qwen2_5_vl", "Qwen2_5_VisionTransformerPretrainedModel", WINDOW_INPUTS)
QWEN3_VL = qwen("qwen3_vl.modeling_qwen3_vl", "Qwen3VLVisionModel", LEARNED_POSITION_INPUTS, "qwen3_vl")

# By config.json's model_type.
FAMILIES = {
    "clip": CLIP,
    "clip_vision_model": CLIP,
    "siglip": SIGLIP,
    "siglip_vision_model": SIGLIP,
    "whisper": WHISPER,
    "qwen2_vl": QWEN2_VL,
    "qwen2_5_vl": QWEN2_5_VL,
    "qwen3_vl": QWEN3_VL,
}


def family_of(model_type):
    if model_type in FAMILIES:
        return FAMILIES[model_type]
    raise ExportError(f"config.json says model_type {model_type!r}, which cannot be exported "
                      f"(known: {', '.join(FAMILIES)})")


def preprocessing_family(preprocessor_config, video_config=None):
    """What Vitrove calls the preprocessing that a preprocessor_config.json describes.

    `video_config` is the video_preprocessor_config.json beside it, where there is one.
    """
    names = ("image_processor_type", "feature_extractor_type")
    kind = next((preprocessor_config[name] for name in names if preprocessor_config.get(name)), None)
    if kind is None:
        raise ExportError("preprocessor_config.json names no image_processor_type or feature_extractor_type")
    family = PROCESSOR_FAMILIES.get(kind.removesuffix("Fast"))
    if family is None:
        raise ExportError(f"preprocessor_config.json names {kind}, which no exported tower is fed by "
                          f"(known: {', '.join(PROCESSOR_FAMILIES)})")
    if family == "qwen2_vl" and is_qwen3(preprocessor_config, video_config or {}):
        return "qwen3_vl"
    return family


def is_qwen3(preprocessor_config, video_config):
    """Pictures have the same processor as before; clips do not."""
    video = video_config.get("video_processor_type") or preprocessor_config.get("video_processor_type") or ""
    return (video.removesuffix("Fast") == "Qwen3VLVideoProcessor" or
            preprocessor_config.get("processor_class") == "Qwen3VLProcessor")


def aux_params(family, tower):
    """What Vitrove needs to know beside the grids. `tower` is the tower's configuration, as a dict."""
    params = {}
    if family.aux_inputs:
        params["spatial_merge_size"] = tower["spatial_merge_size"]
    if "window_index" in family.aux_inputs:
        params |= {"window_size": tower["window_size"], "patch_size": tower["patch_size"]}
    if "pos_embed_index" in family.aux_inputs:
        positions = tower["num_position_embeddings"]
        side = math.isqrt(positions)
        if side * side != positions:
            raise ExportError(f"num_position_embeddings is {positions}, which is no square")
        params["num_grid_per_side"] = side
    return params


def vitrove_json(family, tower, *, name, revision, dtype, output=None):
    """vitrove.json of an exported tower."""
    modality = family.modalities[0] if len(family.modalities) == 1 else family.modalities
    config = {
        "name": name,
        "revision": revision,
        "modality": modality,
        "input": family.input,
        "output": output or family.output,
        "layout": family.layout,
        "dtype": dtype,
    }
    if family.aux_inputs:
        config["aux_inputs"] = {kind: kind for kind in family.aux_inputs}
        config["aux_params"] = aux_params(family, tower)
    return config
