"""The fingerprint of a model directory, as Vitrove computes it when it loads one.

The scheme is that of include/vitrove/model_fingerprint.h; both sides are tested on the same directories.
"""

import hashlib
import json
import struct

import onnx

from vitrove_export.errors import ExportError
from vitrove_export.model_directory import read_preprocessing_family

PRECISIONS = {
    onnx.TensorProto.FLOAT: "float32",
    onnx.TensorProto.FLOAT16: "float16",
    onnx.TensorProto.BFLOAT16: "bfloat16",
}


def fingerprint(directory, execution_provider="cpu"):
    """64 hex digits."""
    config = json.loads((directory / "vitrove.json").read_text())
    model = onnx.load(directory / "model.onnx", load_external_data=False)
    files = {"model.onnx": sha256_of(directory / "model.onnx")}
    for location in external_locations(model):
        files[f"external:{location}"] = sha256_of(directory / location)
    settings = {
        "kind": "onnx",
        "input": config["input"],
        "grid_input": config.get("grid_input", ""),
        "output": config["output"],
        "layout": config["layout"],
        "dtype": config.get("dtype", "float32"),
        "precision": output_precision(model, config["output"]),
        "execution_provider": execution_provider,
        "preprocessor": read_preprocessing_family(directory),
    }
    settings |= {f"aux_inputs.{name}": kind for name, kind in config.get("aux_inputs", {}).items()}
    settings |= {f"aux_params.{name}": str(value) for name, value in config.get("aux_params", {}).items()}
    return digest_of_parts(files, settings).hex()


def sha256_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def digest_of_parts(files, settings):
    """SHA-256 of the canonical encoding: a tag, a length and the bytes, and maps in the order of their names."""
    encoded = text("vitrove.model") + b"u" + number(1)
    encoded += map_of(files, lambda digest: b"y" + number(len(digest)) + digest)
    encoded += map_of(settings, text)
    return hashlib.sha256(encoded).digest()


def number(value):
    return struct.pack("<Q", value)


def text(value):
    encoded = value.encode()
    return b"s" + number(len(encoded)) + encoded


def map_of(values, encode):
    by_bytes = sorted(values.items(), key=lambda item: item[0].encode())
    return b"m" + number(len(values)) + b"".join(text(name) + encode(value) for name, value in by_bytes)


def output_precision(model, name):
    for output in model.graph.output:
        if output.name == name:
            return precision_of(output.type.tensor_type.elem_type)
    raise ExportError(f"the graph has no output {name}")


def precision_of(elements):
    if elements not in PRECISIONS:
        kind = onnx.TensorProto.DataType.Name(elements).lower()
        raise ExportError(f"the graph's rows are {kind}, not one of {', '.join(PRECISIONS.values())}")
    return PRECISIONS[elements]


def external_locations(model):
    """The names of the files in which a model keeps tensors."""
    found = set()
    for tensor in tensors_of(model.graph):
        found |= {entry.value for entry in tensor.external_data if entry.key == "location"}
    for function in model.functions:
        for tensor in tensors_of_nodes(function.node):
            found |= {entry.value for entry in tensor.external_data if entry.key == "location"}
    return sorted(found)


def tensors_of(graph):
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from tensors_of_nodes(graph.node)


def tensors_of_nodes(nodes):
    for node in nodes:
        for attribute in node.attribute:
            yield attribute.t
            yield from attribute.tensors
            for graph in [attribute.g, *attribute.graphs]:
                yield from tensors_of(graph)
