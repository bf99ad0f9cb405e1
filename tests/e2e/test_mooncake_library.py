"""Mooncake through a libmooncake_store.so that VITROVE_MOONCAKE_LIBRARY names: encode servers share
embeddings through it, and doctor, /stats and the log say that it is in use. The library is a fake one
of tests/mooncake, whose cluster is a folder."""

import socket

import pytest
from mooncake import helper_pid, store_of, wait_ready
from support import BUILD, PATIENT, png_url, run_cli
from test_mooncake import pictures, put

LIBRARY = BUILD / "test-plugins" / "libfake_mooncake.so"
ENVIRONMENT = {"VITROVE_MOONCAKE_LIBRARY": str(LIBRARY)}
NAMED = f"through the library {LIBRARY}"


@pytest.fixture
def url(tmp_path):
    """Of a cluster whose master does nothing but answer the telephone."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as master:
        yield f"mooncake://127.0.0.1:{master.getsockname()[1]}?metadata={folder}"


def test_servers_share_through_it_and_say_so(start, url):
    a, b = (start(*PATIENT, store=url, env=ENVIRONMENT) for _ in range(2))
    for server in (a, b):
        wait_ready(server)
        assert NAMED in store_of(server)["detail"]
        assert NAMED in server.log
        assert helper_pid(server)
    put(a, pictures(500, 4))
    assert b.sources([*pictures(500, 4), png_url(510)]) == ["store"] * 4 + ["encoded"]
    assert (a.embeddings(pictures(500, 4)).rows() == b.embeddings(pictures(500, 4)).rows()).all()


def test_doctor_says_so(url):
    said = run_cli("doctor", url, "--pool-size", "16MiB", env=ENVIRONMENT)
    assert said.returncode == 0, said.stdout
    assert "put, get and remove work" in said.stdout
    assert NAMED in said.stdout


def test_doctor_says_that_there_is_none(url, tmp_path):
    missing = str(tmp_path / "libmooncake_store.so")
    said = run_cli("doctor", url, "--pool-size", "16MiB",
                   env={"VITROVE_MOONCAKE_LIBRARY": missing})
    assert said.returncode == 1
    assert missing in said.stdout
