"""What a server must not read from its own disk: field case B82.

Beside everything that must fail stands the nearest thing that must work.
"""

import pytest

from local_files import FILE_URLS
from origin import Origin, redirect
from support import in_time, png_url

pytestmark = pytest.mark.usefixtures("bystander")
MODALITIES = ["image", "video", "audio"]


@pytest.fixture(scope="module")
def server(start_shared):
    return start_shared()


@pytest.fixture(scope="module")
def reading(start_shared, files):
    return start_shared("--allowed-local-media-path", str(files))


@pytest.mark.parametrize("path", ["picture.png", "deep/picture.png", "with%20space.png",
                                  "inner-link.png", "deep/../picture.png", "./picture.png"])
def test_files_below_the_allowed_folder_are_read(reading, files, path):
    """B82, the good half. Going up and down again below the root may be refused as well."""
    reply = reading.encode([f"file://{files}/{path}"])
    assert reply.status == 200 or (".." in path and reply.status == 404)


@pytest.mark.parametrize("modality", MODALITIES)
def test_every_modality_is_read_from_files(reading, files, modality):
    """B82, the good half."""
    assert reading.encode([f"file://{files}/{modality}"], modality=modality).status == 200


def test_a_file_url_may_name_localhost(reading, files):
    assert reading.encode([f"file://localhost{files}/picture.png"]).status == 200


@pytest.mark.parametrize("modality", MODALITIES)
@pytest.mark.parametrize("url", FILE_URLS)
def test_no_other_file_is_read(reading, server, beside, files, url, modality):
    """B82: neither with an allowed folder nor, of course, without one."""
    beside(reading)
    url = url.format(root=files)
    for target in (reading, server):
        reply = in_time(1, lambda: target.encode([url], modality=modality))
        assert 400 <= reply.status < 500, reply.body
        assert reply.error["item"] == 0
    assert reading.encode([f"file://{files}/picture.png"]).status == 200


def test_missing_and_forbidden_files_look_alike(reading, beside, files):
    """B82: a reply does not tell what exists."""
    beside(reading)

    def answer(url):
        reply = reading.encode([url], req_id="same")
        return reply.status, reply.json

    missing = answer(f"file://{files}/no-such.png")
    assert missing[0] == 404
    for url in ("file:///etc/passwd", "file:///etc/no-such", "file:///root/.ssh/id_rsa",
                f"file://{files}/link-out.png", f"file://{files}/fifo.png", f"file://{files}/deep",
                f"file://{files}/../secret.png", f"file://{files}-too/picture.png"):
        assert answer(url) == missing, url


def test_files_are_off_by_default(server, files):
    """B82."""
    assert server.encode([f"file://{files}/picture.png"]).status == 403
    assert server.encode([png_url(821)]).status == 200


def test_a_redirect_does_not_lead_to_a_file(start, beside, files):
    """B82: not even where files may be read."""
    with Origin() as origin:
        server = beside(start("--allow-private-media", "--allowed-local-media-path", str(files)))
        url = origin.serve("/to-file", redirect(f"file://{files}/picture.png"))
        assert 400 <= server.encode([url]).status < 500
        assert server.encode([f"file://{files}/picture.png"]).status == 200
