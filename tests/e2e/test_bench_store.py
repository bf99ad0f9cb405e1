"""vitrove bench store: figures of real stores, and nothing left behind in them."""

import json
import re
import signal
import subprocess
import sys

import pytest
from redis_server import RedisServer
from support import (ROOT, VITROVE, file_store, free_port, on_a_terminal, run_cli, seconds,
                     stored_values, wait_until)

QUICK = ("--size", "4KiB,1MiB", "--count", "8", "--time", "50ms")


@pytest.fixture
def redis(tmp_path):
    server = RedisServer(tmp_path / "redis")
    yield server
    server.stop()


def lines(result):
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)["runs"]


def check_figures(found, name, batch=1, threads=1):
    assert [(line["op"], line["value_bytes"]) for line in found] == [
        (op, size) for size in (4096, 1 << 20) for op in ("put", "exist", "get")]
    for line in found:
        assert line["store"] == name
        assert (line["batch"], line["threads"]) == (batch, threads)
        # Puts are as many as were asked for; of the others a slow machine may do one call in the time.
        assert line["failed"] == 0 and line["operations"] >= (8 if line["op"] == "put" else batch)
        assert line["operations_per_second"] == pytest.approx(line["operations"] / line["seconds"])
        assert 0 < line["p50_us"] <= line["p99_us"]
        assert line["cpu_seconds"] > 0
        if line["op"] == "exist":
            assert line["megabytes_per_second"] is None
        else:
            assert line["megabytes_per_second"] == pytest.approx(
                line["operations"] * line["value_bytes"] / 1e6 / line["seconds"])


def test_memory_is_measured():
    check_figures(lines(run_cli("bench", "store", "memory:", "--json", *QUICK)), "memory")


def test_a_size_that_is_no_round_one_is_not_taken_for_another():
    result = run_cli("bench", "store", "memory:", "--size", "768KiB,786433", "--count", "1", "--time", "0",
                     "--quiet")
    assert result.returncode == 0, result.stderr
    values = [line.split("  ")[1:] for line in result.stdout.splitlines()[1:]]
    named = [next(cell.strip() for cell in cells if cell.strip()) for cells in values]
    assert named == 3 * ["768.0 KiB"] + 3 * ["786433 B"]


def test_files_are_measured_and_removed(store_folder):
    result = run_cli("bench", "store", file_store(store_folder), "--json", "--batch", 4,
                     "--threads", 2, *QUICK)
    check_figures(lines(result), "file", batch=4, threads=2)
    assert stored_values(store_folder) == []


def test_a_real_redis_is_measured_and_left_as_it_was(redis):
    redis("SET", "other", "people's")
    check_figures(lines(run_cli("bench", "store", redis.url(), "--json", *QUICK)), "redis")
    assert redis.keys() == ["other"]


def test_without_json_there_is_a_table(redis):
    result = run_cli("bench", "store", redis.url(), *QUICK)
    assert result.returncode == 0, result.stderr
    header, *rows = [line.split() for line in result.stdout.splitlines()]
    assert header == ["OP", "VALUE", "MB/s", "OPS/s", "P50", "P99", "FAILED"]
    assert [row[0] for row in rows] == ["put", "exist", "get"] * 2


def test_on_a_terminal_progress_is_a_bar_that_goes_away(redis):
    seen, out = on_a_terminal("bench", "store", redis.url(), *QUICK)
    assert re.search(r"\[=+ +\] \d+/\d+ ", seen), seen[:500]
    (steps,) = {int(total) for total in re.findall(r"\] \d+/(\d+)", seen)}
    for what in ("put", "exist", "get"):
        assert re.search(rf"\] \d+/{steps} .*{what}", seen), what
    assert f"[{'=' * 30}] {steps}/{steps}" in seen
    assert seen.endswith("\r\033[K")
    assert len(out.splitlines()) == 7 and out.startswith("OP ")
    quiet, _ = on_a_terminal("bench", "store", redis.url(), "--quiet", *QUICK)
    assert "[=" not in quiet


def test_what_fails_is_counted_and_named(redis):
    redis("CONFIG", "SET", "maxmemory", "3mb")
    result = run_cli("bench", "store", redis.url(), "--json", "--size", "1MiB", "--count", 16,
                     "--time", "0")
    assert result.returncode == 1
    put, exist, get = json.loads(result.stdout)["runs"]
    assert put["failed"] > 0 and put["operations"] + put["failed"] == 16
    assert "no_space" in put["fault"]
    assert exist["failed"] == get["failed"] == put["failed"] and get["fault"] == "absent"
    assert redis.keys() == []


def test_a_store_that_is_away_is_one_clear_line():
    result = run_cli("bench", "store", f"redis://127.0.0.1:{free_port()}")
    assert result.returncode == 4
    assert "the store does not work: unavailable" in result.stderr
    assert "Connection refused" in result.stderr


def test_bad_options_are_usage_errors():
    for words in (["--size", "1"], ["--size", "much"], ["--batch", "0"], ["--threads", "-1"]):
        result = run_cli("bench", "store", "memory:", *words)
        assert result.returncode == 2, (words, result.stdout)
    assert run_cli("bench").returncode == 2


def test_a_value_larger_than_the_store_takes_is_refused():
    result = run_cli("bench", "store", "memory:?capacity=1MiB", "--size", "8MiB")
    assert result.returncode == 2
    assert "8.0 MiB" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_bench_that_is_told_to_end_removes_what_it_put(redis, number):
    process = subprocess.Popen([str(VITROVE), "bench", "store", redis.url(), "--time", "1000s"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(redis.keys, 30, "values to be put")
        process.send_signal(number)
        assert process.wait(seconds(60)) == 128 + number
    finally:
        process.kill()
        process.wait()
    assert redis.keys() == []


def test_options_of_a_command_in_a_group_may_stand_in_the_environment():
    result = run_cli("bench", "store", "memory:", "--json", *QUICK, env={"VITROVE_BATCH": "2"})
    assert {line["batch"] for line in lines(result)} == {2}


def test_the_benchmark_of_stores_runs_both_sides_on_a_real_engine():
    run = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "bench_stores.py"), "--vitrove", str(VITROVE), "--json",
         "--pairs", "2", "--seconds", "0.05", "--only", "mooncake_get/64KiB/by_16"],
        capture_output=True, text=True, timeout=seconds(240))
    assert run.returncode == 0, run.stderr
    line, bound = [json.loads(line) for line in run.stdout.splitlines()]
    assert line["name"] == "mooncake_get/64KiB/by_16/python" and line["unit"] == "GB/s"
    assert line["ours"] > 0 and line["other"] > 0 and line["ratio"] > 0
    assert line["ok"] == (line["ratio"] >= 0.95)
    assert bound["name"] == line["name"] + "/bound" and bound["other"] == line["other"]
    assert 0 < bound["ratio"] < 1, "two processes are slower than one"
