"""vitrove bench trace, run as a process."""

import json
import xml.etree.ElementTree as ElementTree

import pytest
from support import run_cli

POLICIES = ["lru", "s3fifo", "gdsf"]


@pytest.fixture
def trace(tmp_path):
    """Conversations of ten media each, every one asked for three times."""
    path = tmp_path / "trace.jsonl"
    with path.open("w") as file:
        for turn in range(3):
            for talk in range(20):
                ids = [talk * 10 + i for i in range(10)]
                file.write(json.dumps({"timestamp": (turn * 20 + talk) * 1000, "hash_ids": ids}) + "\n")
    return path


def measured(trace, *more):
    result = run_cli("bench", "trace", trace, "--json", *more)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)["runs"]


def test_every_policy_is_measured_at_every_pool_size(trace):
    lines = measured(trace, "--pool-size", "2GiB", "--pool-size", "100MiB", "--pool-size", "0")
    assert [(line["pool_bytes"], line["policy"]) for line in lines] == [
        (size, policy) for size in (0, 100 << 20, 2 << 30) for policy in POLICIES]
    for line in lines:
        assert line["requests"] == 600 and line["media"] == 200
        assert 0 <= line["saved_seconds"] <= line["offline_most_seconds"] + 1e-6
        assert line["offline_seconds"] <= line["offline_most_seconds"] + 1e-6
    nothing, everything = lines[0], lines[-1]
    assert nothing["hit_ratio"] == 0 and nothing["saved_seconds"] == 0
    assert everything["hit_ratio"] == pytest.approx(2 / 3), "all but the first of three"
    assert everything["byte_hit_ratio"] == pytest.approx(2 / 3)
    assert everything["saved_seconds"] == pytest.approx(everything["offline_most_seconds"])


def test_the_seed_decides_what_media_weigh(trace):
    def weight(seed):
        return measured(trace, "--seed", seed, "--pool-size", "1GiB", "--policy", "lru")[0]["media_bytes"]
    assert weight("1") == weight("1") != weight("2")


def test_the_table_and_the_picture_show_the_same_policies(trace, tmp_path):
    picture = tmp_path / "saved.svg"
    result = run_cli("bench", "trace", trace, "--pool-size", "100MiB", "--pool-size", "200MiB",
                     "--policy", "gdsf", "--policy", "lru", "--plot", picture)
    assert result.returncode == 0, result.stderr
    assert [line.split()[2] for line in result.stdout.splitlines()[2:]] == [
        "gdsf", "lru", "offline", "at"] * 2
    words = {element.text for element in ElementTree.parse(picture).iter() if element.text}
    assert {"gdsf", "lru", "offline", "100.0 MiB", "200.0 MiB"} <= words


def test_shares_change_who_goes(trace):
    pool = ["--pool-size", "500MiB", "--policy", "gdsf"]
    free = measured(trace, *pool)[0]
    assert free["hit_ratio"] > 0
    assert measured(trace, *pool, "--modality-share", "image=0:1")[0] == free
    held = measured(trace, *pool, "--modality-share", "image=0.8:", "--modality-share", "video=:0.1")[0]
    assert held["byte_hit_ratio"] != free["byte_hit_ratio"]


@pytest.mark.parametrize("wrong", [
    ["--policy", "mru"], ["--pool-size", "much"], ["--plot", "saved.png"],
    ["--modality-share", "image"], ["--media", "text"]])
def test_wrong_use_is_told(trace, wrong):
    result = run_cli("bench", "trace", trace, *wrong)
    assert result.returncode == 2
    assert wrong[1] in result.stderr or "svg" in result.stderr


def test_a_file_that_is_no_trace_is_told_by_its_line(tmp_path):
    path = tmp_path / "odd.jsonl"
    path.write_text('{"timestamp": 1, "hash_ids": [1]}\n{"key": 1}\n')
    result = run_cli("bench", "trace", path)
    assert result.returncode == 2 and "line 2" in result.stderr
    assert run_cli("bench", "trace", tmp_path / "none").returncode == 2
    assert run_cli("bench").returncode == 2
