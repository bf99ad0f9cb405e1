"""Fixtures of the real-process tests: servers that are stopped, and checked, when a test ends."""

import contextlib
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import namespaces as how_to  # noqa: E402
import support  # noqa: E402
from bystander import Bystander  # noqa: E402
from local_files import allowed_folder  # noqa: E402
from pixels import STUB_BY_SIZE  # noqa: E402

# A shell ignores it for what it starts in the background, and programs keep to what they were
# started with; the tests want to send it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def namespaces():
    """For tests that mount, or make a network: one clear line where that is not allowed."""
    if not how_to.works([]):
        pytest.fail(how_to.NEEDED, pytrace=False)


@pytest.fixture
def start(tmp_path):
    """start(*flags, encoder=..., store=...) gives a running Server of this test's own. At the end
    every one that is still alive must have its pins back at zero and end with 0 on SIGTERM."""
    servers = support.Servers(tmp_path)
    yield servers
    servers.finish()


@pytest.fixture(scope="module")
def start_shared(tmp_path_factory):
    """The same for servers that the tests of a module share because their state does not matter.
    They live until its end, must survive every test, and must be at rest after each."""
    servers = support.Servers(tmp_path_factory.mktemp("shared"))
    yield servers
    servers.finish()


@pytest.fixture(scope="module")
def vit(start_shared):
    """A server with a real, tiny network."""
    return start_shared(encoder=support.TINY_VIT)


@pytest.fixture(scope="module")
def uncached(start_shared):
    """Says what an item's rows are, whatever another server with this encoder has seen."""
    return start_shared("--pool-size", "0", encoder=STUB_BY_SIZE)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder that a server may read, with things around it that it may not."""
    return allowed_folder(tmp_path_factory.mktemp("files"))


@pytest.fixture(autouse=True)
def shared_servers_live_and_rest(start_shared):
    yield
    for server in start_shared.started:
        assert server.process.poll() is None, server.log[-4000:]
    start_shared.check_at_rest()


@pytest.fixture(autouse=True)
def error_bodies_are_proper():
    """Every error reply that a test has seen has the documented form and says too much in none."""
    support.error_replies.clear()
    yield
    for response in support.error_replies:
        support.check_error_body(response)


@pytest.fixture
def bystander(server):
    """Good requests to the module's own `server` all the while; none of them may notice."""
    with Bystander(server) as somebody:
        yield somebody


@pytest.fixture
def beside(start):
    """beside(server) is the server, with good requests to it for the rest of the test; none of them
    may notice. (Where a test ends its server, it lets a Bystander go before.)"""
    with contextlib.ExitStack() as company:
        def accompanied(server, *how, **more):
            company.enter_context(Bystander(server, *how, **more))
            return server

        yield accompanied


@pytest.fixture
def store_folder(tmp_path):
    folder = tmp_path / "store"
    folder.mkdir()
    return folder
