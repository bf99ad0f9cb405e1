"""`vitrove encode` over several servers, of which one hangs, or dies and comes back (B61)."""

import json
import subprocess

import pytest
from support import STUB, VITROVE, free_port, png, run_cli, seconds, wait_until

HANGING = f"{STUB},delay_ms=3600000"
FILES = 40


def pictures(folder, count):
    folder.mkdir()
    for seed in range(count):
        (folder / f"{seed:03}.png").write_bytes(png(seed, 32, 32))
    return folder


@pytest.fixture
def folder(tmp_path):
    return pictures(tmp_path / "pictures", FILES)


def address(server):
    return f"http://127.0.0.1:{server.port}"


class Encode:
    """The command at work."""

    def __init__(self, folder, servers, *more):
        at = [word for server in servers for word in ("--server", address(server))]
        self.process = subprocess.Popen(
            [str(VITROVE), "encode", str(folder), *at, "--json", *more], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def finish(self):
        out, _ = self.process.communicate(timeout=seconds(120))
        assert self.process.returncode == 0, out
        return json.loads(out)


def filling(server):
    return server.metrics().sum("vitrove_entries", state="filling")


@pytest.mark.parametrize("jobs", ["4", "8"])
def test_a_server_whose_encoder_hangs_keeps_one_file(start, folder, jobs):
    good = start()
    hanging = start("--request-timeout", "1h", encoder=HANGING)
    with Encode(folder, [good, hanging], "-j", jobs) as encode:
        wait_until(lambda: good.encodes() == FILES - 1, 60, "the others to be encoded")
        wait_until(lambda: filling(hanging) == 2, 60, "the one: by its bytes and its features")
        hanging.kill()
        assert encode.finish()["encoded"] == FILES
    assert good.encodes() == FILES, "that one, too"


def test_a_server_that_answers_too_late_is_left_alone(start, folder):
    good = start()
    hanging = start("--request-timeout", "1s", encoder=HANGING)
    result = run_cli("encode", folder, "--server", address(good), "--server", address(hanging),
                     "-j", "1", "--json")
    assert result.returncode == 0, result.stdout
    assert json.loads(result.stdout)["encoded"] == FILES and good.encodes() == FILES
    timed_out = hanging.metrics().sum("vitrove_requests_total", code="504")
    assert 1 <= timed_out < FILES / 8, "each costs the whole time limit"
    hanging.expect_unclean = True  # its encoder sleeps
    hanging.kill()


def test_a_killed_server_that_comes_back_is_used_again(start, tmp_path):
    """What stands at its address may be another one: nothing is started anew here."""
    slow = f"{STUB},delay_ms=20"
    folder = pictures(tmp_path / "many", 1200)
    stays = start(encoder=slow)
    port = free_port()
    goes = start(encoder=slow, port=port)
    with Encode(folder, [stays, goes], "-j", "2") as encode:
        wait_until(lambda: goes.encodes() > 5, 60, "both to be used")
        goes.kill()
        comes = start(encoder=slow, port=port)
        wait_until(lambda: comes.encodes() > 5, 60, "the new one to be used")
        facts = encode.finish()
    assert (facts["encoded"], facts["hits"], facts["refused"]) == (1200, 0, 0)
