"""Fixtures of the real-process tests: servers that are stopped, and checked, when a test ends."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import support  # noqa: E402


@pytest.fixture
def start(tmp_path):
    """start(*flags, encoder=..., store=...) gives a running Server of this test's own. At the end
    every one that is still alive must have its pins back at zero and end with 0 on SIGTERM."""
    servers = []

    def start_server(*arguments, **options):
        server = support.Server(tmp_path / f"server-{len(servers)}", *arguments, **options)
        servers.append(server)
        return server

    yield start_server
    alive = [server for server in servers if server.process.poll() is None]
    try:
        for server in alive:
            if not getattr(server, "expect_unclean", False):
                server.check_at_rest()
        codes = [server.stop() for server in alive]
        assert codes == [0] * len(codes)
    finally:
        for server in servers:
            if server.process.poll() is None:
                server.kill()


@pytest.fixture
def store_folder(tmp_path):
    folder = tmp_path / "store"
    folder.mkdir()
    return folder
