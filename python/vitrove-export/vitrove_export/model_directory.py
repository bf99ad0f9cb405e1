"""Writing a Vitrove model directory: whole, or not at all."""

import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import onnx

from vitrove_export.errors import ExportError
from vitrove_export.families import preprocessing_family

PREPROCESSOR = "preprocessor_config.json"
VIDEO_PREPROCESSOR = "video_preprocessor_config.json"  # clips have a file of their own in newer models
GRAPH = "model.onnx"
WEIGHTS = "model.onnx.data"
# A protobuf file ends at 2 GiB; below this, one file is handier.
LARGEST_SINGLE_FILE = 1 << 30
SMALLEST_EXTERNAL_TENSOR = 1024


def refuse_full_target(target):
    """Nothing of somebody else's is ever written over."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ExportError(f"{target} exists and is no empty directory")


@contextmanager
def new_directory(target):
    """A directory to write into, which becomes `target` when all went well and vanishes when not."""
    refuse_full_target(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    working = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield working
        working.chmod(0o755)
        if target.exists():
            target.rmdir()
        os.rename(working, target)
    except BaseException:
        shutil.rmtree(working, ignore_errors=True)
        raise


def read_preprocessing_family(directory):
    if not (directory / PREPROCESSOR).is_file():
        raise ExportError(f"{directory} has no {PREPROCESSOR}")
    video = directory / VIDEO_PREPROCESSOR
    return preprocessing_family(json.loads((directory / PREPROCESSOR).read_text()),
                                json.loads(video.read_text()) if video.is_file() else None)


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


def write_graph(exported, directory, output, shape):
    """Writes the graph that stands in file `exported`, with its weights beside it when they are large.

    `shape` is what is known of its output: exporters often leave open what is not.
    """
    model = onnx.load(exported)
    declared = next(value for value in model.graph.output if value.name == output)
    elements = declared.type.tensor_type.elem_type
    declared.CopyFrom(onnx.helper.make_tensor_value_info(output, elements, shape))
    # Not ByteSize(): that serializes, which a message of more than 2 GiB does not survive.
    if sum(len(tensor.raw_data) for tensor in model.graph.initializer) <= LARGEST_SINGLE_FILE:
        onnx.save_model(model, directory / GRAPH)
        return
    onnx.save_model(model, directory / GRAPH, save_as_external_data=True, all_tensors_to_one_file=True,
                    location=WEIGHTS, size_threshold=SMALLEST_EXTERNAL_TENSOR)
    # Not for the owner alone, as onnx leaves it: whoever may read the graph may serve it.
    (directory / WEIGHTS).chmod((directory / GRAPH).stat().st_mode & 0o777)
