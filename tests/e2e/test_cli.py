"""The command line, run as a process."""

import json
import re
import struct

import pytest
from support import (SAMPLE_MODEL, STUB, file_store, free_port, png, png_url, run_cli,
                     stored_values, wait_until, without_licence)


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    for seed in range(3):
        (folder / f"{seed}.png").write_bytes(png(seed))
    return folder


def items(result):
    return json.loads(result.stdout)["items"]


def encode_here(files, store, *more):
    return run_cli("encode", files, "--encoder", STUB, "--store", store, "--json", *more)


def test_encode_without_a_server_stores_and_then_hits(files, store_folder):
    store = file_store(store_folder)
    first = encode_here(files, store)
    assert first.returncode == 0, first.stderr
    assert [item["source"] for item in items(first)] == ["encoded"] * 3
    second = encode_here(files, store)
    assert [item["source"] for item in items(second)] == ["store"] * 3
    assert [item["key"] for item in items(first)] == [item["key"] for item in items(second)]
    assert [json.loads(result.stdout)["unstored"] for result in (first, second)] == [0, 0]


@pytest.mark.parametrize("how, unstored", [
    ("locked", "6 unstored, file EACCES"), ("no place", "6 unstored, file ENOENT"),
    ("small values only", "3 unstored, memory too_large")])
def test_encode_says_what_has_not_reached_the_store(files, store_folder, how, unstored):
    """Each embedding and its alias, which is small."""
    store_folder.chmod(0o555)
    store = {"locked": file_store(store_folder), "no place": "file:///proc/nowhere",
             "small values only": "memory:?capacity=1KiB"}[how]
    for more in ([], ["--json"]):
        result = run_cli("encode", files, "--encoder", STUB, "--store", store, *more,
                         launcher=without_licence())
        assert result.returncode == 4, result.stderr
        assert f"not all embeddings reached the store: {unstored}" in result.stderr
        if more:
            facts = json.loads(result.stdout)
            assert (facts["encoded"], facts["unstored"]) == (3, int(unstored[0]))
        else:
            assert "3 files: 3 encoded" in result.stdout
    (files / "broken.png").write_bytes(b"not a picture")
    assert run_cli("encode", files, "--encoder", STUB, "--store", store,
                   launcher=without_licence()).returncode == 5, "that is worse"


def test_encode_says_what_it_refused_and_goes_on(files, store_folder):
    (files / "broken.png").write_bytes(b"not a picture")
    result = run_cli("encode", files, "--encoder", STUB, "--store", file_store(store_folder))
    assert result.returncode == 5
    assert "refused" in result.stdout and "broken.png" in result.stdout
    assert "4 files: 3 encoded" in result.stdout


def test_encode_through_servers_survives_a_dead_one(start, files, tmp_path):
    server = start()
    dead = f"http://127.0.0.1:{free_port()}"
    result = run_cli("encode", files, "--server", dead, "--server",
                     f"http://127.0.0.1:{server.port}", "--json", "-o", tmp_path / "out.safetensors")
    assert result.returncode == 0, result.stderr
    assert len(items(result)) == 3
    assert read_header(tmp_path / "out.safetensors").keys() == {
        "__metadata__", "embedding.0", "embedding.1", "embedding.2"}
    only_dead = run_cli("encode", files, "--server", dead)
    assert only_dead.returncode == 4


def read_header(path):
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8:8 + length])


def test_ls_stat_get_rm_on_a_store(files, store_folder, tmp_path):
    store = file_store(store_folder)
    key = items(encode_here(files, store))[0]["key"]

    listing = json.loads(run_cli("ls", "--store", store, "--json").stdout)
    assert (listing["embeddings"], listing["aliases"], listing["unreadable"]) == (3, 3, 0)
    listed = listing["values"]
    assert sorted(line["kind"] for line in listed) == ["alias"] * 3 + ["embedding"] * 3
    assert key in run_cli("ls", "--store", store).stdout

    fact = json.loads(run_cli("stat", key, "--store", store, "--json").stdout)
    assert (fact["tokens"], fact["dim"], fact["dtype"]) == (16, 64, "float32")

    out = tmp_path / "one.safetensors"
    assert run_cli("get", key, "--store", store, "-o", out).returncode == 0
    assert read_header(out)["embedding"]["shape"] == [16, 64]

    assert run_cli("rm", key, "--store", store).returncode == 0
    assert run_cli("rm", key, "--store", store).returncode == 3
    assert run_cli("stat", key, "--store", store).returncode == 3
    assert run_cli("get", key, "--store", store, "-o", out).returncode == 3
    assert run_cli("stat", "vt1-xyz", "--store", store).returncode == 2


def test_stat_says_that_a_value_is_damaged(files, store_folder):
    store = file_store(store_folder)
    key = items(encode_here(files, store))[0]["key"]
    path = next(p for p in stored_values(store_folder) if p.name.startswith(key))
    content = bytearray(path.read_bytes())
    content[300] ^= 1
    path.write_bytes(content)
    result = run_cli("stat", key, "--store", store)
    assert result.returncode == 1
    assert "damaged" in result.stderr


def test_flush_and_stats_of_a_server(start, store_folder):
    server = start(store=file_store(store_folder))
    server.encode_ok([png_url(1)])
    wait_until(lambda: server.metrics().sum("vitrove_store_pending") == 0)
    address = f"http://127.0.0.1:{server.port}"
    table = run_cli("stats", "--server", address)
    assert table.returncode == 0 and "lookups" in table.stdout
    models = next(line for line in table.stdout.splitlines() if line.startswith("image"))
    assert models.split()[2] == "1" and "0 %" in models, "one entry, and no hit yet"
    server.encode_ok([png_url(1)])
    key = server.encode_ok([png_url(1)])["items"][0]["key"]
    assert key in run_cli("stats", "--server", address).stdout, "what saves most is named"
    assert isinstance(json.loads(run_cli("stats", "--server", address, "--json").stdout), dict)
    flushed = run_cli("flush", "--server", address, "--scope", "all")
    assert flushed.returncode == 0, flushed.stderr
    assert stored_values(store_folder) == []
    assert run_cli("stats", "--server", f"http://127.0.0.1:{free_port()}").returncode == 4


def test_doctor_tells_good_from_bad(start, store_folder):
    server = start()
    good = run_cli("doctor", file_store(store_folder), "--encoder", SAMPLE_MODEL, "--pool-size",
                   "64MiB", "--json")
    assert good.returncode == 0, good.stdout
    report = json.loads(good.stdout)
    assert report["state"] == "good"
    findings = {finding["what"]: finding for finding in report["findings"]}
    assert {finding["state"] for finding in findings.values()} == {"good"}
    assert "libavcodec" in findings["decoders"]["says"]
    assert run_cli("doctor", "--server", f"http://127.0.0.1:{server.port}").returncode == 0
    bad = run_cli("doctor", "file:///proc/nowhere?capacity=1GiB", "--pool-size", "64MiB")
    assert bad.returncode == 1 and "bad" in bad.stdout
    assert stored_values(store_folder) == [], "the doctor leaves nothing behind"


def test_options_come_from_flags_then_environment_then_file(start, tmp_path):
    config = tmp_path / "vitrove.toml"
    config.write_text('encoder = "stub:dim=8,tokens=2,seed=1"\nmax-items = 1\nstore = ["none"]\n'
                      "[serve]\nmax-queue = 7\n")
    server = start("--config", config, encoder="stub:dim=16,tokens=2,seed=1",
                   env={"VITROVE_MAX_ITEMS": "2"})
    assert server.encode_ok([png_url(1)])["embedding_dim"] == 16, "the flag won"
    assert server.encode([png_url(1)] * 2).status == 200, "the environment won over the file"
    assert server.encode([png_url(1)] * 3).status in (400, 413)


@pytest.mark.parametrize("text, says", [
    ("colour = 1\n", "colour"), ("encoder = [", "configuration file"), ("port = 'x'\n", "port"),
    ("[sevre]\napi-key = 'k'\n", "sevre")])
def test_a_wrong_configuration_file_is_one_clear_line(tmp_path, text, says):
    config = tmp_path / "bad.toml"
    config.write_text(text)
    result = run_cli("serve", "--config", config, "--encoder", STUB, "--store", "none")
    assert result.returncode == 2
    assert says in result.stderr


def test_usage_errors_have_their_own_exit_code():
    assert run_cli().returncode == 2
    assert run_cli("serve").returncode == 2
    assert run_cli("frobnicate").returncode == 2
    assert run_cli("frobnicate", "--help").returncode == 2
    assert "frobnicate" in run_cli("frobnicate", "--help").stderr
    assert run_cli("serve", "--encoder", STUB, "--pool-size", "many").returncode == 2
    assert run_cli("--version").stdout.startswith("vitrove 0.")
    assert "default" in run_cli("serve", "--help").stdout.lower()


def test_the_defaults_that_help_shows_can_be_given_as_they_are():
    text = run_cli("serve", "--help").stdout
    shown = {name: re.search(rf"{name} [^ =]+=(\S+)", text).group(1) for name in (
        "--pool-size", "--page-size", "--store-timeout", "--store-min-bandwidth",
        "--request-timeout", "--max-item-bytes", "--max-batch-wait", "--drain-delay")}
    assert shown["--store-min-bandwidth"] == "200MB/s"
    assert shown["--request-timeout"] == "60s"
    assert shown["--pool-size"] == "4GiB"
    assert "lru, s3fifo, gdsf" in " ".join(text.split())
    words = [word for pair in shown.items() for word in pair]
    result = run_cli("serve", *words, "--encoder", STUB, "--store", "none", "--port", "none")
    assert result.returncode == 2 and "--port" in result.stderr, "nothing else is wrong"


def test_get_and_rm_speak_json(files, store_folder, tmp_path):
    store = file_store(store_folder)
    key = items(encode_here(files, store))[0]["key"]
    output = tmp_path / "rows.safetensors"
    got = run_cli("get", key, "--store", store, "-o", output, "--json")
    facts = json.loads(got.stdout)
    assert (facts["key"], facts["output"], facts["bytes"]) == (
        key, str(output), output.stat().st_size)
    gone = run_cli("rm", key, "--store", store, "--json")
    assert json.loads(gone.stdout) == {"key": key, "removed": 1, "complete": True}


def test_an_embedding_is_told_alike_by_servers_stores_and_encode(start, files, store_folder,
                                                                 tmp_path):
    server = start(store=file_store(store_folder))
    here = f"http://127.0.0.1:{server.port}"
    one = next(files.iterdir())
    told = items(run_cli("encode", one, "--server", here, "--json"))[0]
    wait_until(lambda: stored_values(store_folder) != [], what="the put")
    wait_until(lambda: server.metrics().sum("vitrove_store_pending") == 0)
    again = items(run_cli("encode", one, "--encoder", STUB, "--store", file_store(store_folder),
                          "--json"))[0]
    assert (told.pop("source"), again.pop("source")) == ("encoded", "store")
    assert told == again
    kept = []
    for number, source in enumerate((["--server", here], ["--store", file_store(store_folder)])):
        output = tmp_path / f"{number}.safetensors"
        got = run_cli("get", told["key"], *source, "-o", output, "--json")
        facts = json.loads(got.stdout)
        assert facts.pop("output") == str(output) and facts.pop("bytes") == output.stat().st_size
        header = read_header(output)
        assert json.loads(header["__metadata__"]["vitrove"]) == {"items": [facts]}
        assert facts.pop("tensor") == "embedding" and facts == {
            name: told[name] for name in told if name != "file"}
        kept.append((header, output.read_bytes()))
    assert kept[0] == kept[1], "byte for byte"


def test_one_file_serves_a_protected_server_and_those_who_use_it(start, files, tmp_path):
    """Both keys, tiers of stores and tables of commands, known to all by the environment."""
    tiers = [file_store(tmp_path / name) for name in ("near", "far")]
    config = tmp_path / "vitrove.toml"
    config.write_text(f"api-key = 'k'\nadmin-key = 'a'\nstore = {json.dumps(tiers)}\n"
                      "[serve]\nmax-items = 1\n"
                      "[bench.store]\nstore = 'nowhere:'\nsize = '1KiB'\ncount = 8\n")
    env = {"VITROVE_CONFIG": str(config)}
    server = start(store=[], port=0, env=env, headers={"Authorization": "Bearer k"})
    assert server.sources([png_url(1)]) == ["encoded"]
    assert server.encode([png_url(1)] * 2).status == 413
    here = f"http://127.0.0.1:{server.port}"
    for words in (("stats", "--server", here), ("flush", "--server", here, "--scope", "all"),
                  ("ls", "--store", tiers[0]), ("bench", "store", "memory:", "--quiet")):
        result = run_cli(*words, env=env)
        assert result.returncode == 0, (words, result.stderr)
    assert server.sources([png_url(1)]) == ["encoded"], "it was flushed, with the key of the file"
