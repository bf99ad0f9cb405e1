"""From a Hugging Face model directory to a Vitrove model directory."""

import shutil
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnxruntime
import torch
import transformers

from vitrove_export import families
from vitrove_export.check import check_graph, check_grids, example_features, graph_inputs
from vitrove_export.errors import ExportError
from vitrove_export.fingerprint import fingerprint
from vitrove_export.model_directory import (GRAPH, PREPROCESSOR, VIDEO_PREPROCESSOR, new_directory,
                                            read_preprocessing_family, refuse_full_target, write_graph, write_json)
from vitrove_export.towers import exported_module, load_source, reference_rows

OPSET = 17


@dataclass
class Settings:
    name: str
    revision: str = ""
    dtype: str = "float32"  # of the cached rows; the graph computes in float32
    feature_layer: int | None = None


def check_preprocessor(directory, family):
    found = read_preprocessing_family(directory)
    if found != family.preprocessing:
        raise ExportError(f"{PREPROCESSOR} describes preprocessing of the family {found}, but the tower is fed "
                          f"by {family.preprocessing}")


def export(model_directory, target, settings):
    """Writes `target` and returns what export.json says."""
    refuse_full_target(target)
    source = load_source(model_directory)
    check_preprocessor(model_directory, source.family)
    module, output = exported_module(source, settings.feature_layer)
    with new_directory(target) as working:
        export_graph(source, module, output, working)
        for name in [PREPROCESSOR, VIDEO_PREPROCESSOR]:
            if (model_directory / name).is_file():
                shutil.copyfile(model_directory / name, working / name)
        write_json(working / "vitrove.json", families.vitrove_json(
            source.family, source.settings, name=settings.name, revision=settings.revision,
            dtype=settings.dtype, output=output))
        error = check_graph(working / GRAPH, source, settings.feature_layer)
        report = describe(source, error, fingerprint(working))
        write_json(working / "export.json", report)
    return report


def describe(source, error, digest):
    """What made the directory: for people. Vitrove does not read it."""
    return {
        "model_type": source.model_type,
        "tower": source.family.tower,
        "fingerprint": digest,
        "execution_provider": "cpu",
        "max_relative_error": error,
        "opset": OPSET,
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__,
                     "onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__},
    }


def export_graph(source, module, output, directory):
    is_packed = source.family.layout == "packed"
    grids = check_grids(source) if is_packed else None
    features = example_features(source, 2, grids)
    inputs = graph_inputs(source, features, grids)
    with (tempfile.TemporaryDirectory(dir=directory) as scratch, torch.no_grad(), warnings.catch_warnings()):
        # Towers compare shapes that the graph fixes anyway; the check shows whether the graph is right.
        warnings.simplefilter("ignore", torch.jit.TracerWarning)
        exported = Path(scratch) / GRAPH
        torch.onnx.export(module, tuple(torch.from_numpy(array) for array in inputs.values()), str(exported),
                          input_names=list(inputs), output_names=[output], opset_version=OPSET,
                          dynamic_axes=open_axes(inputs, output, is_packed), dynamo=False)
        row_shape = reference_rows(source, features, grids).shape[1:]
        write_graph(exported, directory, output, ["rows" if is_packed else "items", *row_shape])


def open_axes(inputs, output, is_packed):
    """Everything whose size depends on the items."""
    if not is_packed:
        return {name: {0: "items"} for name in [*inputs, output]}
    axes = {name: {0: "patches"} for name in inputs}
    axes["cu_seqlens"] = {0: "segments_and_one"}
    if "window_index" in inputs:
        axes["window_index"] = {0: "blocks"}
    for name in families.LEARNED_POSITION_INPUTS:
        if name in inputs:
            axes[name] = {1: "patches"}
    return {**axes, output: {0: "rows"}}
