"""The demo: its claims hold, and it leaves no process and no file outside the checkout."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT, VITROVE, seconds, wait_until


@pytest.fixture
def demo(tmp_path):
    """The running demo, in an environment in which it could leave files where people keep theirs."""
    home = tmp_path / "home"
    home.mkdir()
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "scripts" / "demo.py"), "--vitrove", str(VITROVE)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        cwd=home, env={**os.environ, "HOME": str(home), "TMPDIR": str(home)})
    yield process
    process.kill()
    process.wait()
    process.stdout.close()
    try:
        wait_until(lambda: not servers(), 30, "the servers to end")
    finally:
        for number in servers():
            os.kill(number, signal.SIGKILL)
    assert list(home.iterdir()) == []


def servers():
    """Ids of all running servers of a demo."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        of_demo = any(str(ROOT / "build" / "demo").encode() in word for word in words)
        if words[0] == str(VITROVE.resolve()).encode() and of_demo:
            found.append(int(entry.name))
    return found


def until_both_serve(demo):
    for line in demo.stdout:
        if re.search("server B .* ms$", line):
            return
    raise AssertionError("it ended early")


def test_the_demo_keeps_its_claims(demo):
    text, _ = demo.communicate(timeout=seconds(240))
    assert demo.returncode == 0, text
    assert text.count("✓") == 4 and "✗" not in text
    assert not (ROOT / "build" / "demo" / "store").exists()


def test_a_demo_that_is_told_to_end_takes_its_servers_along(demo):
    until_both_serve(demo)
    assert len(servers()) == 2
    demo.send_signal(signal.SIGTERM)
    demo.communicate(timeout=seconds(60))
    assert demo.returncode == 128 + signal.SIGTERM
    assert servers() == []
    assert not (ROOT / "build" / "demo" / "store").exists()


def test_a_demo_that_is_killed_takes_its_servers_along(demo):
    until_both_serve(demo)
    assert len(servers()) == 2
    demo.kill()
    wait_until(lambda: not servers(), 30, "the servers to notice")
