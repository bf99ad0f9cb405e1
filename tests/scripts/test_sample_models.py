"""What scripts/setup.sh sample left in build/sample, and that the checkpoint reader cannot be made to run code.

Run with build/venv/bin/python -m pytest tests/scripts
"""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
SAMPLE = ROOT / "build" / "sample"
DATA = ROOT / "tests" / "data"
sys.path.insert(0, str(SCRIPTS))

import setup_lib  # noqa: E402
import torch_weights  # noqa: E402


def digest(path):
    return setup_lib.sha256(path.read_bytes())


def make_tiny_vit(directory, seed):
    subprocess.run([sys.executable, SCRIPTS / "make_tiny_vit.py", "--seed", str(seed), "--out", directory], check=True)
    return digest(directory / "model.onnx")


# Fingerprints in golden files hold only if everybody has the very same bytes.
@pytest.mark.parametrize(("model", "reference"), [
    ("model", "imagenet_labels_excerpt.json"), ("tiny-vit", "tiny_vit_reference.json")])
def test_the_models_are_those_the_reference_numbers_belong_to(model, reference):
    assert digest(SAMPLE / model / "model.onnx") == json.loads((DATA / reference).read_text())["model_sha256"]


def test_one_seed_is_one_model_and_two_seeds_are_two(tmp_path):
    one, again, other = (make_tiny_vit(tmp_path / name, seed) for name, seed in (("a", 1), ("b", 1), ("c", 2)))
    assert one == again != other


@pytest.mark.parametrize("model", ["model", "tiny-vit"])
def test_vitrove_json_names_an_input_and_an_output_of_the_graph(model):
    graph = onnx.load(SAMPLE / model / "model.onnx").graph
    config = json.loads((SAMPLE / model / "vitrove.json").read_text())
    assert config["input"] in [value.name for value in graph.input]
    assert config["output"] in [value.name for value in graph.output]


def test_the_pictures_are_those_the_reference_numbers_belong_to():
    for picture in json.loads((DATA / "imagenet_labels_excerpt.json").read_text())["pictures"]:
        assert digest(SAMPLE / "pictures" / picture["file"]) == picture["sha256"]


class Hostile:
    def __reduce__(self):
        return os.mkdir, ("hostile-was-here",)


def checkpoint(tensors_pickle, order=(), storages=b""):
    parts = [torch_weights._MAGIC, torch_weights._PROTOCOL, {"little_endian": True}]
    return (b"".join(pickle.dumps(part, 2) for part in parts) + tensors_pickle + pickle.dumps(list(order), 2) + storages)


def test_a_checkpoint_that_names_a_function_is_refused_before_it_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(torch_weights.NotACheckpoint, match="mkdir"):
        torch_weights.read(checkpoint(pickle.dumps({"weight": Hostile()}, 2)))
    assert not list(tmp_path.iterdir())


class Pickler(pickle._Pickler):
    """Writes what PyTorch writes for a tensor, with any numbers one likes."""

    class Tensor:
        def __init__(self, count, offset, shape, strides):
            self.count, self.args = count, (offset, shape, strides)

    def save(self, obj, *args, **kwargs):
        if not isinstance(obj, Pickler.Tensor):
            return super().save(obj, *args, **kwargs)
        self.write(b"ctorch._utils\n_rebuild_tensor_v2\n(")
        self.write(b"(")
        super().save("storage")
        self.write(b"ctorch\nFloatStorage\n")
        for part in ("key", "cpu", obj.count, None):
            super().save(part)
        self.write(b"tQ")
        for part in (*obj.args, False, None):
            super().save(part)
        self.write(b"tR")


def tensor_file(tmp_path, count, offset, shape, strides):
    path = tmp_path / "tensors"
    with path.open("wb") as file:
        Pickler(file, 2).dump({"weight": Pickler.Tensor(count, offset, shape, strides)})
    numbers = np.arange(6, dtype="<f4")
    return checkpoint(path.read_bytes(), ["key"], (6).to_bytes(8, "little") + numbers.tobytes())


def test_a_transposed_tensor_is_read_in_its_own_order(tmp_path):
    weights = torch_weights.read(tensor_file(tmp_path, 6, 0, (3, 2), (1, 3)))
    assert weights["weight"].tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize(("count", "offset", "shape", "strides"), [
    (6, 1, (3, 2), (2, 1)),         # one element past the end
    (6, 0, (2,), (1 << 40,)),       # far past it
    (6, 5, (3,), (-1,)),            # backwards
    (6, -1, (1,), (1,)),            # before it
    (6, 0, (2, 2), (1,)),           # shape and strides do not match
    (1 << 40, 0, (1,), (1,)),       # a storage larger than any file
    (7, 0, (1,), (1,)),             # a storage larger than this file
])
def test_a_tensor_outside_its_storage_is_refused(tmp_path, count, offset, shape, strides):
    with pytest.raises(torch_weights.NotACheckpoint):
        torch_weights.read(tensor_file(tmp_path, count, offset, shape, strides))
