"""data: URLs in all their forms: field case B08."""

import base64

import pytest

from pixels import STUB_BY_SIZE
from support import data_url, encoded, picture, png, refused

pytestmark = pytest.mark.usefixtures("bystander")


@pytest.fixture(scope="module")
def server(start_shared):
    return start_shared(encoder=STUB_BY_SIZE)


# B08

JPEG_IN_DISGUISE = encoded(picture(71), "JPEG")
PNG_BYTES = png(72)
PLAIN = base64.b64encode(PNG_BYTES).decode()
ESCAPED = "".join(f"%{byte:02x}" for byte in PNG_BYTES)


@pytest.mark.parametrize("url", [
    f"data:image/png;base64,{PLAIN}",
    f"data:image/png;charset=utf-8;base64,{PLAIN}",
    f"data:image/png;name=a.png;base64,{PLAIN.rstrip('=')}",
    f"data:;base64,{PLAIN}",
    f"data:text/html;base64,{PLAIN}",
    f"DATA:Image/PNG;BASE64,{PLAIN}",
    "data:image/png;base64," + "\n".join(PLAIN[i:i + 76] for i in range(0, len(PLAIN), 76)),
    "data:image/png;base64," + "\r\n".join(PLAIN[i:i + 76] for i in range(0, len(PLAIN), 76)),
    "data:image/png;base64," + PLAIN.replace("+", "%2B").replace("/", "%2f").replace("=", "%3D"),
    f"data:image/png,{ESCAPED}",
    f"data:,{ESCAPED}",
], ids=lambda url: url[:40])
def test_every_wrapping_of_the_same_bytes_is_one_key(server, url):
    """B08: the first stands for all."""
    known = server.encode_ok([data_url(PNG_BYTES)])["items"][0]
    item = server.encode_ok([url])["items"][0]
    assert item["key"] == known["key"]
    assert item["source"] == "local"


def test_content_decides_and_not_the_declared_type(server):
    """B08: called a PNG, it is a JPEG."""
    first = server.encode_ok([data_url(JPEG_IN_DISGUISE, "image/png")])["items"][0]
    second = server.encode_ok([data_url(JPEG_IN_DISGUISE, "image/jpeg")])["items"][0]
    assert [first["source"], second["source"]] == ["encoded", "local"]


@pytest.mark.parametrize("url", [
    "data:image/png;base64,",
    "data:image/png;base64,    ",
    "data:image/png,",
    "data:,",
    "data:image/png;base64",
    "data:",
    "data:image/png;base64,Zm9v!!",
    f"data:image/png;base64,{PLAIN[:-6]}!{PLAIN[-5:]}",
    f"data:image/png;base64,{PLAIN[:1001]}",
    f"data:image/png;base64,{PLAIN}====",
    f"data:image/png;base64,{PLAIN[:400]}=={PLAIN[400:]}",
    f"data:image/png,{ESCAPED}%4",
    f"data:image/png,{ESCAPED}%zz",
    f"data:image/png,{PLAIN}",
    f"data:image/png;base64;charset=utf-8,{PLAIN}",
], ids=lambda url: f"{url[:30]}...{url[-8:]}")
def test_a_data_url_that_is_none_is_refused(server, url):
    """B08: never decoded in part."""
    refused(server, [url], 400, 415)
