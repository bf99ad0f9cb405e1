"""What errors say: field case B87. conftest judges every error reply that any test has seen.

Beside everything that must fail stands the nearest thing that must work, so that a server that
refuses all does not pass.
"""

import pytest

import odd_media
import origin as faults
from bystander import Bystander
from local_files import FILE_URLS
from origin import Origin, content, redirect
from support import (STUB, Client, check_error_body, data_url, encoded, error_replies, picture, png,
                     png_url, run_cli)


pytestmark = pytest.mark.usefixtures("bystander")


@pytest.fixture(scope="module")
def server(start_shared):
    return start_shared()


LEAK_BAIT = {
    "not JSON": ("POST", "/encode", b"{"),
    "not an object": ("POST", "/encode", b"[]"),
    "not UTF-8": ("POST", "/encode", b'{"mm_items": ["\xff\xfe"]}'),
    "deep JSON": ("POST", "/encode", b"[" * 100_000),
    "no items": ("POST", "/encode", {}),
    "empty items": ("POST", "/encode", {"mm_items": []}),
    "an item of the wrong type": ("POST", "/encode", {"mm_items": [7]}),
    "an unknown field": ("POST", "/encode", {"mm_items": ["data:,x"], "callback": "y"}),
    "too many items": ("POST", "/encode", {"mm_items": ["data:,x"] * 1000}),
    "parts out of range": ("POST", "/encode", {"mm_items": ["data:,x"], "part_idx": 9}),
    "no such route": ("GET", "/no/such/route", None),
    "a wrong method": ("DELETE", "/encode", None),
    "no key": ("GET", "/embeddings/nonsense", None),
    "a key that nobody has": ("GET", f"/embeddings/vt1-{'0' * 64}", None),
    "removing what is not there": ("DELETE", f"/embeddings/vt1-{'0' * 64}", None),
    "an unknown scope": ("POST", "/flush?scope=everything", None),
    "a model that is none": ("POST", "/flush?scope=store&model=xyz", None),
    "reloading nothing": ("POST", "/reload", {}),
    "reloading a folder that is not there": ("POST", "/reload", {"encoder": "/no/such/folder"}),
    "reloading a folder without a model": ("POST", "/reload", {"encoder": "/proc"}),
    "reloading a file": ("POST", "/reload", {"encoder": "/etc/passwd"}),
}


@pytest.mark.parametrize("name", LEAK_BAIT)
def test_an_error_says_what_is_wrong_and_nothing_about_us(server, name):
    """B87. conftest judges every error reply that any of these tests sees in the same way."""
    method, path, body = LEAK_BAIT[name]
    reply = server.request(method, path, body)
    assert 400 <= reply.status < 500, reply.body
    check_error_body(reply)
    assert error_replies[-1].body == reply.body


def test_errors_of_media_say_nothing_about_us(start, beside, files):
    """B87: damaged pictures, dead origins, missing files, in one sweep."""
    server = beside(start("--allow-private-media", "--allowed-local-media-path", str(files),
                          "--fetch-timeout", "1s"))
    formats = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")
    broken = [encoded(picture(1), format)[:cut] for format in formats
              for cut in (-1, -100, 40, 30, 20, 12)]
    with Origin() as origin:
        urls = [data_url(file) for file in broken]
        urls += [data_url(file) for file in odd_media.refused_formats().values()]
        urls += [url.format(root=files) for url in FILE_URLS if url != "{root}/picture.png"]
        urls += [origin.serve("/500", faults.status(500, b"at /home/user/app.py 0xdeadbeef00")),
                 origin.serve("/gone", faults.status(404)), origin.serve("/up", faults.hang_up()),
                 origin.serve("/loop", redirect("/loop")), "http://127.0.0.1:1/", "http://[::1]:1/"]
        replies = [server.encode([url]) for url in urls]
    assert all(400 <= reply.status < 500 for reply in replies)
    for reply in replies:
        check_error_body(reply)
    assert len(replies) > 70


def test_a_broken_encoder_says_nothing_about_us(start):
    """B87, with a 500."""
    server = start(encoder=STUB + ",fail=error")
    reply = server.encode([png_url(870)])
    assert reply.status == 500
    check_error_body(reply)


SECRETS = {"password": "hunter2-in-url", "token": "signed-token-4711", "key": "api-key-0815",
           "admin": "admin-key-2342"}


def test_secrets_stay_out_of_replies_and_logs(start):
    """B87: of media URLs, of keys, at the most talkative level."""
    server = start("--allow-private-media", "--api-key", SECRETS["key"], "--admin-key",
                   SECRETS["admin"], "--log-level", "trace", "--fetch-timeout", "1s",
                   headers={"Authorization": f"Bearer {SECRETS['key']}"})
    with Origin() as origin, Bystander(server):
        origin.serve("/good.png?sig=" + SECRETS["token"], content(png(871)))
        assert server.encode([origin.url("/good.png?sig=" + SECRETS["token"])]).status == 200
        bodies = [server.encode([url]).body for url in (
            f"http://user:{SECRETS['password']}@127.0.0.1:{origin.port}/a.png",
            origin.url("/missing.png?sig=" + SECRETS["token"]),
            f"http://127.0.0.1:1/a.png?sig={SECRETS['token']}",
            f"http://no-such-host.invalid/?sig={SECRETS['token']}",
            f"nonsense://user:{SECRETS['password']}@host/?sig={SECRETS['token']}")]
        wrong = Client(server.port, {"Authorization": "Bearer " + SECRETS["password"]})
        bodies.append(wrong.encode([png_url(1)]).body)
        admin = Client(server.port, {"Authorization": f"Bearer {SECRETS['admin']}"})
        assert server.get("/stats").status == 403
        assert admin.get("/stats").status == 200
        for path in ("/metrics", "/", "/stats"):
            bodies += [server.get(path).body, admin.get(path).body]
    assert server.stop() == 0
    for secret in SECRETS.values():
        assert secret not in server.log
        assert not any(secret.encode() in body for body in bodies)
    assert "req_id=" in server.log, "the log is not simply empty"


def test_passwords_of_stores_stay_out_of_the_log(tmp_path):
    """B87: even when the store cannot be used."""
    for url in ("nosuch://user:hunter2-in-url@host:1/", "file://user:hunter2-in-url@host/x",
                "memory://:hunter2-in-url@host"):
        result = run_cli("serve", "--port", "0", "--encoder", STUB, "--store", url, timeout=30)
        assert result.returncode == 2, result.stderr
        assert "hunter2" not in result.stdout + result.stderr


