"""scripts/fetch_trace.py: the published trace when it lies there, else a made-up one."""

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "fetch_trace.py"


def fetch(out, *more, traces):
    subprocess.run([sys.executable, SCRIPT, "--out", out, *more], check=True,
                   env=os.environ | {"VITROVE_TRACES": str(traces)})
    return out.read_text()


def test_a_trace_beside_the_checkout_is_copied(tmp_path):
    (tmp_path / "conversation_trace.jsonl").write_text("as it is\n")
    assert fetch(tmp_path / "new" / "trace.jsonl", traces=tmp_path) == "as it is\n"
    (tmp_path / "conversation_trace.jsonl").write_text("changed\n")
    assert fetch(tmp_path / "new" / "trace.jsonl", traces=tmp_path) == "as it is\n"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["trace.jsonl"]


def test_a_made_up_trace_depends_on_its_seed_alone(tmp_path):
    first = fetch(tmp_path / "1", traces=tmp_path)
    assert first == fetch(tmp_path / "2", traces=tmp_path)
    assert first != fetch(tmp_path / "3", "--seed", "2", traces=tmp_path)
    lines = [json.loads(line) for line in first.splitlines()]
    assert len(lines) == 12_000
    times = [line["timestamp"] for line in lines]
    assert times == sorted(times)
    asked = [media for line in lines for media in line["hash_ids"]]
    assert len(set(asked)) < len(asked) / 2, "most of it was sent before"
    assert all(line["hash_ids"][0] == 0 for line in lines)
