"""How a process ends when something hangs that nobody waits for any more: field case B78."""

import contextlib
import os
import signal

import pytest
from raw_http import RawClient, encode_request
from support import STUB, SwitchedStore, png_url, seconds, wait_until

SLOW = int(seconds(120))  # that the encoder takes: more than any test waits

SOON_STUCK = ("--stall-timeout", "200ms")  # then /ready tells that an encode is running
ENDS = "ended with something still running"


def leave_during_an_encode(server):
    """The encoder runs on for a client that has left."""
    with RawClient(server.port) as client:
        client.send(encode_request([png_url(1)]))
        wait_until(lambda: server.get("/ready").status == 503, 60, "the encoder to be at it")
    wait_until(lambda: server.metrics().sum("vitrove_entries", state="filling") == 0, 60,
               "the server to notice that its client left")


def end(server, limit):
    """The exit code, of a process that has to end within the limit."""
    server.process.wait(seconds(limit))
    return server.process.returncode


def test_an_encode_for_nobody_does_not_outlast_the_drain(start):
    server = start("--drain-timeout", "1s", *SOON_STUCK, encoder=f"{STUB},delay_ms={SLOW * 1000}")
    server.expect_unclean = True
    leave_during_an_encode(server)
    server.signal(signal.SIGTERM)
    assert end(server, 60) == 0, "whatever somebody waited for was done"
    assert ENDS in server.log


def test_an_encode_that_had_its_504_does_not_outlast_the_drain(start):
    server = start("--drain-timeout", "1s", "--request-timeout", "300ms",
                   encoder=f"{STUB},delay_ms={SLOW * 1000}")
    server.expect_unclean = True
    assert server.encode([png_url(1)]).status == 504
    server.signal(signal.SIGTERM)
    assert end(server, 60) == 0


def test_a_second_signal_ends_what_runs_for_nobody(start):
    server = start("--drain-timeout", f"{SLOW}s", *SOON_STUCK, encoder=f"{STUB},delay_ms={SLOW * 1000}")
    server.expect_unclean = True
    leave_during_an_encode(server)
    server.signal(signal.SIGTERM)
    wait_until(lambda: "draining" in server.log, 60)
    server.signal(signal.SIGTERM)
    assert end(server, 60) == 1


def test_a_store_that_hangs_when_asked_how_it_is_keeps_nobody_from_leaving(start, tmp_path):
    store = SwitchedStore("sleeping", tmp_path, "&health=yes")
    server = start("--drain-timeout", "1s", **store.options)
    server.expect_unclean = True
    store.misbehave()
    asked = store.switch.with_name(store.switch.name + ".asked")
    wait_until(lambda: server.get("/health").status == 200 and asked.exists(), 60)
    server.signal(signal.SIGTERM)
    try:
        assert end(server, 60) == 0
    finally:
        store.behave()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_start_that_hangs_can_be_ended(start, tmp_path, number):
    """Reading a pipe that nobody writes to stands for a file system that does not answer."""
    pipe = tmp_path / "keys"
    os.mkfifo(pipe)
    server = start("--tenant-keys", pipe, wait=False)
    server.expect_unclean = True

    def open_to_write():  # once somebody reads
        with contextlib.suppress(OSError):
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)

    writer = wait_until(open_to_write, 60, "the server to read its keys")
    try:
        server.signal(number)
        assert end(server, 60) == 128 + number
    finally:
        os.close(writer)


def test_a_hang_up_that_is_ignored_is_nothing(start):
    """nohup: what a process was started to ignore is no second signal, and no first one."""
    server = start(launcher=("nohup",))
    server.signal(signal.SIGHUP)
    assert server.sources([png_url(1)]) == ["encoded"]
    assert server.get("/ready").status == 200
    server.signal(signal.SIGTERM)
    assert server.stop() == 0
    assert server.log.count("draining") == 1
    assert f"signal {int(signal.SIGTERM)}: draining" in server.log
