"""Tenants see nothing of each other: field case B88.

Beside everything that must fail stands the nearest thing that must work, so that a server that
refuses all does not pass.
"""

import concurrent.futures
import hashlib

import pytest

from bystander import Bystander
from support import (STUB, Client, data_url, encoded, file_store, picture, png, png_url, run_cli,
                     wait_for_puts)


pytestmark = pytest.mark.usefixtures("bystander")


@pytest.fixture(scope="module")
def tenants(start_shared, tmp_path_factory):
    """A server of four tenants; `anna` has two keys."""
    keys = tmp_path_factory.mktemp("keys") / "tenants"
    keys.write_text("# who is who\nkey-anna-1 anna\nkey-anna-2 anna\n\n"
                    "key-bert bert\nkey-carl carl\nkey-dora dora\n")
    store = tmp_path_factory.mktemp("tenant-store")
    return start_shared("--tenant-keys", str(keys), "--admin-key", "key-admin",
                        "--trust-client-digests", store=file_store(store),
                        encoder="stub:dim=64,tokens=16,seed=1,delay_ms=20",
                        headers={"Authorization": "Bearer key-admin"})


def as_tenant(server, key):
    return Client(server.port, {"Authorization": f"Bearer {key}"})


@pytest.fixture
def bystander(tenants):
    """A tenant who has nothing to do with any of it, and must not notice."""
    with Bystander(as_tenant(tenants, "key-dora")) as somebody:
        yield somebody


@pytest.fixture
def anna(tenants):
    return as_tenant(tenants, "key-anna-1")


@pytest.fixture
def bert(tenants):
    return as_tenant(tenants, "key-bert")


def test_a_tenant_cannot_tell_what_another_has_sent(tenants, anna, bert):
    """B88: a miss for the other one, a hit for the same; rows are equal, keys are not."""
    url = png_url(880)
    first = anna.embeddings([url])
    second = bert.embeddings([url])
    items = [reply.metadata["items"][0] for reply in (first, second)]
    assert [item["source"] for item in items] == ["encoded", "encoded"]
    assert items[0]["key"] != items[1]["key"]
    assert first.raw == second.raw
    assert anna.sources([url]) == ["local"]
    assert bert.sources([url]) == ["local"]
    assert as_tenant(tenants, "key-anna-2").sources([url]) == ["local"], "another key, same tenant"
    assert as_tenant(tenants, "key-carl").sources([url]) == ["encoded"]


def test_a_twin_of_another_tenants_picture_is_no_hit(anna, bert):
    """B88: the feature key has a tenant too."""
    image = picture(881)
    files = [encoded(image, compress_level=level) for level in (1, 9)]
    assert files[0] != files[1]
    assert anna.sources([data_url(files[0])]) == ["encoded"]
    assert bert.sources([data_url(files[1])]) == ["encoded"]
    assert anna.sources([data_url(files[1])]) != ["encoded"], "for the same tenant it is one"


def test_tenants_do_not_join_each_others_encodes(tenants, anna, bert):
    """B88: requests at the same moment."""
    url = png_url(882)
    encodes = tenants.encodes()
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        sources = list(pool.map(lambda n: ((anna, bert)[n % 2].sources([url]))[0], range(12)))
    for start in (0, 1):
        assert sources[start::2].count("encoded") == 1
    assert tenants.encodes() == encodes + 2


def test_the_store_keeps_tenants_apart(tenants, anna, bert):
    """B88: behind the pool, too."""
    url = png_url(883)
    assert anna.sources([url]) == ["encoded"]
    wait_for_puts(tenants)
    tenants.post("/flush?scope=local")
    assert bert.sources([url]) == ["encoded"]
    assert anna.sources([url]) == ["store"]


def test_a_digest_finds_only_what_its_own_tenant_has(anna, bert):
    """B88, B24."""
    item = {"digest": hashlib.sha256(png(884)).hexdigest()}
    assert anna.sources([png_url(884)]) == ["encoded"]
    assert bert.encode([item]).status == 404
    assert anna.sources([item]) == ["local"]


def test_another_tenants_key_is_a_key_that_nobody_has(tenants, anna, bert):
    """B88: the same answer, by pool and by store."""
    key = anna.encode_ok([png_url(885)])["items"][0]["key"]
    wait_for_puts(tenants)
    for scope in (None, "local"):
        if scope:
            tenants.post(f"/flush?scope={scope}")
        foreign = bert.get(f"/embeddings/{key}", headers={"X-Request-Id": "same"})
        missing = bert.get(f"/embeddings/vt1-{'0' * 64}", headers={"X-Request-Id": "same"})
        assert foreign.status == missing.status == 404
        assert foreign.body == missing.body
    assert anna.get(f"/embeddings/{key}").status == 200
    assert tenants.get(f"/embeddings/{key}").status == 200, "the operator sees all"


@pytest.mark.parametrize("method, path", [
    ("POST", "/flush?scope=all"), ("POST", "/reload"), ("GET", "/stats"),
    ("DELETE", f"/embeddings/vt1-{'0' * 64}")])
def test_tenants_are_no_operators(tenants, anna, method, path):
    """B88."""
    assert anna.request(method, path).status == 403
    assert Client(tenants.port).request(method, path).status == 401
    assert tenants.request(method, path, {} if "reload" in path else None).status in (200, 400, 404)


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Bearer wrong", "Basic key-anna-1",
                                    "key-anna-1", "Bearer key-anna-1x", "Bearer key-anna",
                                    "Bearer # who", "Bearer anna", "Bearer " + "k" * 8000])
def test_without_a_key_there_is_nothing(tenants, header):
    """B88."""
    stranger = Client(tenants.port, {"Authorization": header} if header else {})
    reply = stranger.encode([png_url(1)])
    assert reply.status == 401
    assert "bearer" in reply.headers["www-authenticate"].lower()
    for path in ("/health", "/ready", "/metrics", "/"):
        assert stranger.get(path).status == 200


@pytest.mark.parametrize("field", ["tenant", "salt", "cache_salt", "user"])
def test_a_tenant_is_who_holds_the_key_and_not_who_says_so(anna, bert, field):
    """B88: from the authenticated side alone."""
    url = png_url(886)
    anna.encode_ok([url])
    assert bert.encode([url], **{field: "anna"}).status == 400
    known = bert.encode_ok([url])["items"][0]["key"]
    dressed = Client(bert.port, {**bert.headers, "X-Tenant": "anna", "Tenant": "anna"})
    assert dressed.encode_ok([url])["items"][0]["key"] == known


@pytest.mark.parametrize("text", ["", "# nobody\n", "key-alone\n", "key tenant more\n",
                                  "same a\nsame b\n"])
def test_a_file_of_keys_that_means_nothing_stops_at_start(tmp_path, text):
    """B88: one clear line, without the keys."""
    keys = tmp_path / "keys"
    keys.write_text(text)
    result = run_cli("serve", "--port", "0", "--encoder", STUB, "--store", "none", "--tenant-keys",
                     keys, timeout=30)
    assert result.returncode == 2
    assert "--tenant-keys" in result.stderr
    assert "key-alone" not in result.stderr and "same" not in result.stderr


