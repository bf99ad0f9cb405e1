"""What the command line says when something is wrong: one line of what, with what, and what to do;
the exit code that --help documents; and with --json one object on standard output."""

import contextlib
import http.server
import json
import signal
import socket
import subprocess
import threading

import pytest
from support import (ROOT, STUB, VITROVE, file_store, png, png_url, run_cli, seconds, wait_for_puts,
                     wait_until, without_licence)

KEY = "vt1-" + 64 * "0"


class Stranger(http.server.BaseHTTPRequestHandler):
    """A web server that knows nothing of us: 404, or a page for all that is asked of it."""

    status = 404

    def answer(self):
        body = b"<html>hello</html>"
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = answer

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(handler):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """What the words of the table below stand for."""
    folder = tmp_path_factory.mktemp("places")
    (folder / "a.png").write_bytes(png(1))
    (folder / "locked").mkdir(mode=0)
    with serving(Stranger) as strange, serving(type("Page", (Stranger,), {"status": 200})) as page, \
            socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # nobody else gets this port, and nobody answers there
        port = deaf.getsockname()[1]
        yield {"PORT": str(port), "DEAD": f"http://127.0.0.1:{port}", "STRANGE": strange, "PAGE": page,
               "FOLDER": str(folder), "PNG": str(folder / "a.png"), "KEY": KEY, "STUB": STUB,
               "EMPTY": f"file://{folder}/empty?capacity=1MiB",
               "NO_REDIS": f"redis://127.0.0.1:{port}"}


# The words; the exit code; what the line says.
WRONG = {
    "no command": ("", 2, ["subcommand is required", "vitrove --help"]),
    "an unknown command": ("frobnicate", 2, ["no command 'frobnicate'", "--help"]),
    "an unknown option": ("ls --colour", 2, ["--colour", "`vitrove ls --help`"]),
    "a mistyped command": ("statss", 2, ["no command 'statss'", "did you mean `vitrove stats`?"]),
    "a mistyped command of a group": ("bench stroe", 2, ["no command 'stroe'",
                                                         "did you mean `vitrove bench store`?"]),
    "a mistyped option": ("serve --pol-size 4GiB", 2, ["no option --pol-size",
                                                       "did you mean --pool-size?"]),
    "a mistyped option with its value": ("flush --scop=all", 2, ["--scop;", "--scope?"]),
    "a mistyped option among other mistakes": ("encode {FOLDER}/none.png --encodr x", 2, [
        "no option --encodr", "did you mean --encoder?"]),
    "an unknown short option": ("serve -x", 2, ["no option -x;", "`vitrove serve --help`"]),
    "an unknown short option with its value": ("ls -q4", 2, ["no option -q;"]),
    "a limit below zero": ("ls --limit -1", 2, ["--limit: '-1' is less than 0"]),
    "an epoch below zero": ("serve --encoder {STUB} --epoch -1", 2, [
        "--epoch: '-1' is less than 0; see"]),
    "pixels below zero": ("serve --encoder {STUB} --max-processed-pixels -1", 2, [
        "--max-processed-pixels: '-1' is less than 0"]),
    "no seconds at all": ("serve --encoder {STUB} --max-video-seconds 0", 2, [
        "--max-video-seconds: '0' is not a number above 0; see"]),
    "an endless clip": ("serve --encoder {STUB} --max-video-seconds inf", 2, ["'inf' is not a"]),
    "a count below zero": ("bench store {EMPTY} --count -1", 2, ["--count: '-1' is less than 0"]),
    "both server and encoder": ("encode {PNG} --encoder {STUB} --server {DEAD}", 2, [
        "--server", "excludes", "--encoder"]),
    "a mistyped --help": ("--hepl", 2, ["did you mean --help?"]),
    "an option of a group": ("bench store --colour", 2, ["`vitrove bench store --help`"]),
    "a wrong size": ("doctor --pool-size much", 2, ["--pool-size", "much"]),
    "a wrong unit of a size": ("serve --encoder {STUB} --pool-size 12XB", 2, [
        "--pool-size: '12XB' is not a size", "B, KiB, MiB, GiB, TiB, kB, MB, GB or TB"]),
    "a wrong unit of a time": ("serve --encoder {STUB} --request-timeout 5y", 2, [
        "--request-timeout: '5y' is not a duration", "us, ms, s, min, h or d"]),
    "a wrong rate": ("serve --encoder {STUB} --store-min-bandwidth 2m/s", 2, [
        "--store-min-bandwidth: '2m/s' is not a rate", "MB/s"]),
    "a port beyond all": ("serve --encoder {STUB} --port 99999", 2, ["--port", "99999", "65535"]),
    "a modality that is none": ("encode {PNG} --encoder {STUB} --modality smell", 2, [
        "--modality", "smell", "image,video,audio"]),
    "a wrong number": ("ls --limit x", 2, ["--limit", "x"]),
    "a wrong scope": ("flush --scope everything", 2, ["--scope", "everything"]),
    "no output": ("get {KEY}", 2, ["--output is required"]),
    "a missing file": ("encode {FOLDER}/b.png --encoder {STUB}", 2, [
        "{FOLDER}/b.png: No such file or directory"]),
    "neither server nor encoder": ("encode {PNG}", 2, ["--server URL, or --encoder DIR"]),
    "a missing model": ("encode {PNG} --encoder {FOLDER}/model --store none", 2, ["model"]),
    "kwargs that are none": ("encode {PNG} --encoder {STUB} --mm-processor-kwargs [1]", 2,
                             ["--mm-processor-kwargs is not a JSON object"]),
    "a missing trace": ("bench trace {FOLDER}/trace", 2, ["{FOLDER}/trace", "does not exist"]),
    "a missing configuration": ("ls --config {FOLDER}/x.toml", 2, ["{FOLDER}/x.toml"]),
    "a key of wrong form": ("stat xyz --store {EMPTY}", 2, ["'xyz' is not a key",
                                                           "`vitrove ls`"]),
    "a key of wrong form for get": ("get vt1-12 -o x --server {DEAD}", 2, ["'vt1-12' is not"]),
    "an empty store": ("ls --store=", 2, ["--store", "is empty"]),
    "an empty word for a store": ("ls --store EMPTY_WORD", 2, ["--store", "is empty"]),
    "no store": ("ls --store none", 2, ["'none' is no store to look into"]),
    "an unknown store": ("ls --store nosuch://x", 2, ["unknown store 'nosuch'", "file"]),
    "an unknown option of a store": ("ls --store file:///x?colour=1", 2, ["'colour'",
                                                                         "capacity"]),
    "a folder for a store": ("ls {FOLDER}", 2, ["this is a folder", "file://{FOLDER}"]),
    "a folder for a server's store": ("serve --encoder {STUB} --store {FOLDER}", 2, [
        "this is a folder", "file://{FOLDER}"]),
    "a folder that holds no store": ("ls file://{FOLDER}", 4, ["the directory holds no store",
                                                              "{FOLDER}"]),
    "a store that is not there": ("ls --store {EMPTY}", 4, ["the directory does not exist",
                                                           "{FOLDER}/empty"]),
    "a locked store": ("ls --store file://{FOLDER}/locked/store", 4, ["Permission denied"]),
    "an engine that is away": ("ls --store {NO_REDIS}", 4, ["Connection refused",
                                                           "does the server run"]),
    "stat at an engine that is away": ("stat {KEY} --store {NO_REDIS}", 4, ["Connection refused"]),
    "bench of an engine that is away": ("bench store {NO_REDIS} --quiet --timeout 1s", 4,
                                        ["Connection refused", "does the server run"]),
    "a server that is away": ("stats --server {DEAD}", 4, ["no answer from {DEAD}",
                                                          "does a server run there?"]),
    "flush of it": ("flush --server {DEAD}", 4, ["no answer from {DEAD}"]),
    "get from it": ("get {KEY} -o {FOLDER}/x --server {DEAD}", 4, ["no answer from {DEAD}"]),
    "rm at it": ("rm {KEY} --server {DEAD}", 4, ["no answer from {DEAD}"]),
    "a wrong scheme": ("stats --server redis://127.0.0.1:1", 2,
                       ["a server's address is expected, such as http://127.0.0.1:8090",
                        "redis://127.0.0.1:1"]),
    "two servers": ("stats {DEAD} --server {PAGE}", 2, [
        "two are given where one is expected: {DEAD}, and --server {PAGE}"]),
    "two servers in the other order": ("stats --server {PAGE} {DEAD}", 2, ["two are given"]),
    "a server that is away as a word": ("stats {DEAD}", 4, ["no answer from {DEAD}"]),
    "a store for a server": ("stats redis://x", 2, ["a server's address is expected"]),
    "two stores": ("ls {EMPTY} --store {NO_REDIS}", 2, ["two are given where one is expected"]),
    "two stores to measure": ("bench store {EMPTY} --store {NO_REDIS}", 2, ["two are given"]),
    "a word too many": ("stats {DEAD} -- [x]", 2, ["not expected:", " [x]; see"]),
    "a wrong scheme for encode": ("encode {PNG} --server ftp://x", 2, ["and not ftp://x"]),
    "a stranger's 404": ("stats --server {STRANGE}", 4, ["{STRANGE}", "error 404 of its own",
                                                        "no Vitrove server"]),
    "a stranger's page": ("stats --server {PAGE}", 4, ["{PAGE}", "no Vitrove server"]),
    "flush of a stranger": ("flush --server {PAGE}", 4, ["no Vitrove server"]),
    "get from a stranger": ("get {KEY} -o {FOLDER}/x --server {STRANGE}", 4, ["no Vitrove server"]),
    "rm at a stranger": ("rm {KEY} --server {PAGE}", 4, ["no Vitrove server"]),
}


def run_words(text, places, *more, **options):
    words = ["" if word == "EMPTY_WORD" else word.format(**places) for word in text.split()]
    return run_cli(*words, *more, **options)


@pytest.mark.parametrize("name", WRONG)
def test_an_error_is_one_line_that_says_what_to_do(places, name, tmp_path):
    words, code, says = WRONG[name]
    options = {"cwd": "/"}
    if "locked" in words:
        options["launcher"] = without_licence()
    result = run_words(words, places, **options)
    assert result.returncode == code, result.stderr
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert result.stderr.startswith("vitrove: ") and "exception" not in result.stderr
    for part in says:
        assert part.format(**places) in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("name", [
    name for name in WRONG if WRONG[name][0] and not WRONG[name][0].startswith("serve")])
def test_with_json_an_error_is_one_object(places, name):
    words, code, says = WRONG[name]
    options = {"launcher": without_licence()} if "locked" in words else {}
    result = run_words(words, places, "--json", **options)
    assert result.returncode == code, result.stderr
    error = json.loads(result.stdout)["error"]
    assert set(error) == {"code", "message"}
    for part in says:
        if "--help" not in part:  # which of two options is named first is the parser's business
            assert part.format(**places) in error["message"]


def test_what_cannot_be_written_or_read_says_why(places, tmp_path):
    locked = tmp_path / "locked.png"
    locked.write_bytes(png(1))
    locked.chmod(0)
    reads = run_cli("encode", locked, "--encoder", STUB, "--store", "none",
                    launcher=without_licence())
    assert reads.returncode == 1
    assert f"cannot read {locked}: Permission denied" in reads.stdout
    writes = run_cli("encode", places["PNG"], "--encoder", STUB, "--store", "none", "-o",
                     tmp_path / "none" / "out.safetensors")
    assert writes.returncode == 1
    assert "out.safetensors: No such file or directory" in writes.stderr


def test_doctor_of_a_stranger_is_not_good(places):
    for place in ("STRANGE", "PAGE", "DEAD"):
        result = run_cli("doctor", "--server", places[place], "--json")
        assert result.returncode == 1
        found = json.loads(result.stdout)["findings"][0]
        assert found["state"] == "bad" and places[place] in found["says"]


def test_a_key_that_nobody_has_is_3_everywhere(start, tmp_path, store_folder):
    server = start(store=file_store(store_folder))
    server.encode_ok([png_url(1)])
    wait_for_puts(server)
    here = ["--server", f"http://127.0.0.1:{server.port}"]
    there = ["--store", file_store(store_folder)]
    for words in (["stat", KEY, *there], ["rm", KEY, *there], ["rm", KEY, *here],
                  ["get", KEY, "-o", tmp_path / "x", *there],
                  ["get", KEY, "-o", tmp_path / "x", *here]):
        result = run_cli(*words, "--json")
        assert result.returncode == 3, (words, result.stderr)
        assert json.loads(result.stdout)["error"]["code"] == "not_found"
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("command", ["", "serve", "encode", "ls", "stat", "get", "rm", "flush",
                                     "stats", "doctor", "bench", "bench store", "bench trace"])
def test_every_help_tells_the_exit_codes(command):
    result = run_cli(*command.split(), "--help")
    assert result.returncode == 0
    for part in ("0 done", "1 it failed", "2 wrong usage", "3 no such key", "4 a server or store",
                 "5 some of the files", "128+N"):
        assert part in " ".join(result.stdout.split())


def test_what_looks_like_an_option_may_be_a_value_or_come_after_two_dashes(tmp_path):
    (tmp_path / "--odd.png").write_bytes(png(1))
    result = run_cli("encode", "--encoder", STUB, "--store", "none", "-o", "--pol-size", "--",
                     "--odd.png", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "--pol-size").exists()
    assert run_cli("serve", "--pol-size", "--help").returncode == 0, "who asks is told"


def test_two_dashes_end_the_options_wherever_they_stand(tmp_path):
    for name in ("a.png", "--odd.png"):
        (tmp_path / name).write_bytes(png(1))
    result = run_cli("encode", "a.png", "--encoder", STUB, "--store", "none", "--json", "--",
                     "--odd.png", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert [item["file"] for item in json.loads(result.stdout)["items"]] == ["a.png", "--odd.png"]


def test_a_name_that_no_option_can_have_is_a_files_name(tmp_path):
    names = ["- a.png", "-!x.png", "++", "[a,b].png"]
    for name in names:
        (tmp_path / name).write_bytes(png(1))
    for words in (names, ["--", *names]):
        result = run_cli("encode", "--encoder", STUB, "--store", "none", "--json", *words, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert [item["file"] for item in json.loads(result.stdout)["items"]] == names


def test_a_short_options_value_is_taken_as_it_is_written(tmp_path):
    (tmp_path / "a.png").write_bytes(png(1))
    for name in ("run=[a].safetensors", "[a].safetensors"):
        result = run_cli("encode", "a.png", "--encoder", STUB, "--store", "none", "-o" + name, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert (tmp_path / name).exists(), list(tmp_path.iterdir())


def test_a_number_below_zero_is_refused_with_blanks_before_it_too(places):
    result = run_cli("serve", "--encoder", STUB, "--port", places["PORT"], env={"VITROVE_EPOCH": " -1"})
    assert result.returncode == 2, result.stderr
    assert "--epoch: ' -1' is less than 0" in result.stderr
    assert run_cli("ls", places["EMPTY"], "--limit", "-0").returncode == 4, "which is 0"


def test_what_is_wrong_with_a_servers_address_is_told(places):
    for odd, says in ((places["DEAD"] + " ", "ends with a blank"), (places["DEAD"] + "\n", "ends with a"),
                      (" " + places["DEAD"], "begins with a blank")):
        result = run_cli("stats", odd)
        assert result.returncode == 2 and says in result.stderr, result.stderr


def test_stats_takes_the_server_as_a_word(start):
    server = start()
    url = f"http://127.0.0.1:{server.port}"
    for words in ([url], ["--server", url], [url, "--server", url]):
        result = run_cli("stats", *words, "--json")
        assert result.returncode == 0, result.stderr
        assert "pool" in json.loads(result.stdout)
    elsewhere = run_cli("stats", url, env={"VITROVE_SERVER": "http://127.0.0.1:1"})
    assert elsewhere.returncode == 0, elsewhere.stderr
    assert "SERVER" in run_cli("stats", "--help").stdout


@pytest.mark.parametrize("command", ["serve", "encode", "bench store"])
def test_help_says_what_a_time_without_a_unit_is(command):
    told = " ".join(run_cli(*command.split(), "--help").stdout.split())
    assert "TIME: a number with us, ms, s, min, h or d; without a unit it is seconds" in told
    assert "TIME: " not in run_cli("ls", "--help").stdout


def test_the_version_is_told_whatever_follows():
    for words in (["serve", "--port", "1"], ["--frobnicate"], ["frobnicate"]):
        result = run_cli("--version", *words)
        assert result.returncode == 0 and result.stdout.startswith("vitrove "), result.stderr


def test_several_stores_or_servers_of_a_variable_are_not_taken_for_one(tmp_path):
    """One variable may serve all commands: those that take several take them apart."""
    stores = {"VITROVE_STORE": f"file://{tmp_path}/a file://{tmp_path}/b"}
    for words in (["ls"], ["stat", KEY], ["bench", "store", "--count", "1", "--quiet"]):
        result = run_cli(*words, env=stores)
        assert result.returncode == 2, result.stderr
        assert "one store is expected and not 2" in result.stderr
        assert "VITROVE_STORE" in result.stderr
    assert not list(tmp_path.iterdir())
    (tmp_path / "a b").mkdir()
    named = run_cli("ls", f"file://{tmp_path}/a b", env=stores)
    assert named.returncode == 4 and "holds no store" in named.stderr, "a path may have blanks"
    result = run_cli("stats", env={"VITROVE_SERVER": "http://127.0.0.1:1 http://127.0.0.1:2"})
    assert result.returncode == 2 and "not several words" in result.stderr, result.stderr


def test_of_server_and_encoder_the_one_that_is_given_counts(places):
    local = run_cli("encode", places["PNG"], "--encoder", STUB, "--store", "none",
                    env={"VITROVE_SERVER": places["DEAD"]})
    assert local.returncode == 0, local.stdout + local.stderr
    away = run_cli("encode", places["PNG"], "--server", places["DEAD"],
                   env={"VITROVE_ENCODER": STUB})
    assert away.returncode == 4, away.stdout + away.stderr


def test_what_a_server_cannot_have_at_its_start_is_4_as_the_tables_say(places):
    start = ["serve", "--encoder", STUB, "--store", "none"]
    taken = run_cli(*start, "--pool-size", "64MiB", "--port", places["PORT"])
    assert taken.returncode == 4
    assert taken.stderr.splitlines()[-1] == f"vitrove: port {places['PORT']} is in use"
    large = run_cli(*start, "--pool-size", "512TiB", "--page-size", "16MiB", "--port", "0")
    assert large.returncode == 4 and "no memory for a pool of 512.0 TiB" in large.stderr
    told = " ".join(run_cli("serve", "--help").stdout.split())
    assert "4 a server or store could not be reached" in told
    assert "a port is in use, or there is no memory for the pool" in told
    table = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
    line = next(line for line in table.splitlines() if line.startswith("| 4 |"))
    assert "a port that is in use" in line and "no memory for a pool" in line


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_interrupted_ends_by_the_signal(places, number):
    """For a shell that is 130 or 143, as the table says."""
    process = subprocess.Popen(
        [str(VITROVE), "encode", places["PNG"], "--store", "none", "--encoder",
         STUB + ",delay_ms=600000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: threads_of(process) > 1, 60, "it to be at work")
        process.send_signal(number)
        assert process.wait(seconds(60)) == -number
    finally:
        process.kill()
        process.wait()


def threads_of(process):
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("Threads:"))
