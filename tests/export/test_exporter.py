"""vitrove-export over whole checkpoints of every class, with PyTorch itself; and what it has written, served."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
sys.path.insert(0, str(ROOT / "scripts"))

import support  # noqa: E402
from clips import wav  # noqa: E402

NAMES = ["qwen2_vl", "qwen2_5_vl", "qwen3_vl", "clip", "siglip", "whisper"]
WRONG = ["siglip", "qwen2_5_vl"]
ROWS = {"qwen2_vl": 64, "qwen2_5_vl": 64, "qwen3_vl": 64 * 3, "clip": 32, "siglip": 32, "whisper": 32}
DTYPES = {"qwen2_5_vl": "bfloat16", "clip": "float16"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def reports(folder):
    """What the exporter said of each model, by name."""
    done = subprocess.run([ROOT / "build" / "export-python" / "python", ROOT / "tests" / "export" / "checkpoints.py",
                           folder], capture_output=True, text=True, timeout=1200, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["name"]: line for line in lines}


@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_becomes_a_model_directory_that_equals_pytorch(reports, folder, name):
    report = reports[name]
    assert report["exit"] == 0, report["complained"]
    assert report["shards"] > 1, "weights lie in several files, as large ones do"
    described = json.loads((folder / f"{name}-out" / "export.json").read_text())
    assert 0 < described["max_relative_error"] <= 1e-4
    assert f"fingerprint: {described['fingerprint']}\n" in report["said"]
    vitrove = json.loads((folder / f"{name}-out" / "vitrove.json").read_text())
    assert vitrove["dtype"] == DTYPES.get(name, "float32")
    assert ("hidden_states.2" in vitrove["output"]) == (name == "clip"), "the layer that was asked for"
    assert vitrove.get("revision", "") == ("abc" if name == "whisper" else "")


@pytest.mark.parametrize("name", WRONG)
def test_a_graph_that_differs_is_refused_and_nothing_is_written(reports, folder, name):
    report = reports[f"{name} with a mistake"]
    assert report["exit"] == 1
    assert report["said"] == ""
    assert "differs from PyTorch by 0.001" in report["complained"]
    assert not list(folder.glob(f"{name}-wrong*")), "not even a part of it"


def url_for(name):
    if name != "whisper":
        return support.png_url(7, 120, 90)
    return support.data_url(wav([0.3 * math.sin(0.1 * i) for i in range(8000)], bits=16))


@pytest.mark.parametrize("name", NAMES)
def test_what_was_written_is_served_under_the_fingerprint_that_was_told(reports, folder, tmp_path, name):
    assert reports[name]["exit"] == 0
    servers = support.Servers(tmp_path)
    server = servers(encoder=folder / f"{name}-out")
    reply = server.encode_ok([url_for(name)], modality="audio" if name == "whisper" else "image")
    assert reply["embedding_dim"] == ROWS[name]
    assert reply["items"][0]["tokens"] > 0
    described = json.loads((folder / f"{name}-out" / "export.json").read_text())
    assert described["fingerprint"] in server.get("/stats").body.decode()
    servers.finish()
