"""The demo: its claims hold, and it leaves no process and no file outside the checkout."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from redis_server import RedisServer
from support import ROOT, VITROVE, seconds, wait_until


@pytest.fixture
def start_demo(tmp_path):
    """start_demo(*arguments) gives the running demo, in an environment in which it could leave
    files where people keep theirs."""
    home = tmp_path / "home"
    home.mkdir()
    started = []

    def start_one(*arguments):
        started.append(subprocess.Popen(
            [sys.executable, str(ROOT / "scripts" / "demo.py"), "--vitrove", str(VITROVE),
             *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            cwd=home, env={**os.environ, "HOME": str(home), "TMPDIR": str(home)}))
        return started[-1]

    yield start_one
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()
    try:
        wait_until(lambda: not processes_of_demo(), 30, "what the demo started to end")
    finally:
        for number in processes_of_demo():
            os.kill(number, signal.SIGKILL)
    assert list(home.iterdir()) == []


@pytest.fixture
def demo(start_demo):
    return start_demo()


def processes_of_demo(program=None):
    """Ids of all that was started by a demo and runs, or of those of one program."""
    home = str(ROOT / "build" / "demo")
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            output = os.readlink(entry / "fd" / "1")
        except OSError:
            continue
        of_demo = output.startswith(home + "/") or any(home in word for word in words)
        if of_demo and (program is None or program in words[0]):  # a title may follow the name
            found.append(int(entry.name))
    return found


def servers():
    return processes_of_demo(str(VITROVE.resolve()))


def until_both_serve(demo):
    for line in demo.stdout:
        if re.search("server B .* ms$", line):
            return
    raise AssertionError("it ended early")


def check_claims(demo):
    text, _ = demo.communicate(timeout=seconds(240))
    assert demo.returncode == 0, text
    assert text.count("✓") == 4 and "✗" not in text
    assert not (ROOT / "build" / "demo" / "store").exists()
    assert processes_of_demo() == []
    return text


def test_the_demo_keeps_its_claims(demo):
    check_claims(demo)


@pytest.mark.parametrize("engine", ["redis", "mooncake"])
def test_it_keeps_them_on_an_engine_that_it_starts_and_ends(start_demo, engine):
    assert f"--store {engine}://127.0.0.1:" in check_claims(start_demo("--store", engine))


def test_it_keeps_them_on_a_store_that_is_there_and_leaves_no_embedding_in_it(start_demo, tmp_path):
    redis = RedisServer(tmp_path / "redis", password="a secret")
    try:
        redis("SET", "vitrove:other", "x" * 2000)
        for _ in range(2):  # what the first run has left is not found by the second
            assert "secret" not in check_claims(start_demo("--store", redis.url()))
        assert redis.values() == ["vitrove:other"]
    finally:
        redis.stop()


def test_a_store_that_does_not_work_is_said_at_the_end(start_demo):
    demo = start_demo("--store", "redis://127.0.0.1:1?odd=1")
    text, _ = demo.communicate(timeout=seconds(60))
    assert demo.returncode == 1
    assert "The demo failed" in text and "odd" in text


def test_a_claim_that_does_not_hold_is_said_loudly(start_demo):
    """Servers that share nothing encode everything twice."""
    demo = start_demo("--store", "memory:")
    text, _ = demo.communicate(timeout=seconds(240))
    assert demo.returncode == 1, text
    broken = re.findall("✗ (.*)", text)
    assert len(broken) == 1 and re.match("22 pictures, 4[0-9] encodes", broken[0]), text
    assert f"The demo failed: {broken[0]}" in text


def test_a_demo_that_is_told_to_end_takes_its_servers_along(demo):
    until_both_serve(demo)
    assert len(servers()) == 2
    demo.send_signal(signal.SIGTERM)
    demo.communicate(timeout=seconds(60))
    assert demo.returncode == 128 + signal.SIGTERM
    assert servers() == []
    assert not (ROOT / "build" / "demo" / "store").exists()


@pytest.mark.parametrize("store", [(), ("--store", "redis")])
def test_a_demo_that_is_killed_takes_all_it_started_along(start_demo, store):
    demo = start_demo(*store)
    until_both_serve(demo)
    assert len(servers()) == 2
    assert len(processes_of_demo("redis-server")) == (1 if store else 0)
    demo.kill()
    wait_until(lambda: not processes_of_demo(), 30, "them to notice")
