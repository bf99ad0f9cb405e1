"""`vitrove encode FOLDER`: what people see while it runs, and at the end."""

import json

import pytest

from clips import clip, wav
from pixels import STUB_BY_SIZE
from support import encoded, on_a_terminal, picture, png, run_cli

GOOD = {"clip.mp4": clip("h264.mp4"), "photo.jpg": encoded(picture(1), "JPEG"),
        "deep/sound.wav": clip("plain.wav"), "deep/song.m4a": clip("cover.m4a"),
        "deep/picture.png": png(2)}
# Name -> (content, the code and a part of the reason).
BAD = {
    "cut.png": (png(3)[:-40], "invalid_argument", "the png file is damaged or incomplete"),
    "deep/empty.png": (b"", "invalid_argument", "empty"),
    "notes.txt": (b"not a picture\n", "unsupported_format", "text"),
    "half.mp4": (clip("h264.mp4")[:1500], "invalid_argument", "damaged or incomplete"),
    "nan.wav": (wav([0.0, float("nan")]), "invalid_argument", "no finite numbers"),
    "large.png": (png(4, 400, 400), "too_large", "limit of 90000 pixels"),
}
OPTIONS = ["--encoder", STUB_BY_SIZE, "--store", "none", "--max-image-pixels", "90000"]
SUMMARY = f"{len(GOOD) + len(BAD)} files: {len(GOOD)} encoded, 0 hits"


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "media", GOOD | {name: bad[0] for name, bad in BAD.items()})


def check_summary(text, folder):
    lines = text.splitlines()
    for name in GOOD:
        row = next(line for line in lines if line.startswith(f"{folder}/{name} "))
        assert "encoded" in row and "vt1-" in row
    for name, (_, code, reason) in BAD.items():
        row = next(line for line in lines if line.startswith(f"{folder}/{name} "))
        assert code in row and reason in row, row
    assert lines[-1].startswith(SUMMARY)
    assert lines[-1].endswith(f"{len(BAD)} refused")


def test_the_summary_names_what_was_refused_and_why(folder):
    result = run_cli("encode", folder, *OPTIONS)
    assert result.returncode == 5, result.stderr
    check_summary(result.stdout, folder)


def test_a_server_gives_the_same_reasons(start, folder):
    server = start("--max-image-pixels", "90000", encoder=STUB_BY_SIZE)
    result = run_cli("encode", folder, "--server", f"http://127.0.0.1:{server.port}")
    assert result.returncode == 5, result.stderr
    check_summary(result.stdout, folder)


def test_without_a_terminal_progress_is_plain_lines(folder):
    result = run_cli("encode", folder, *OPTIONS)
    lines = result.stderr.splitlines()
    total = len(GOOD) + len(BAD)
    assert f"{total} of {total} done" in lines
    assert len([line for line in lines if line.endswith(" done")]) >= 5
    assert "\033" not in result.stderr and "\r" not in result.stderr


def test_on_a_terminal_progress_is_a_bar_that_goes_away(folder):
    seen, out = on_a_terminal("encode", folder, *OPTIONS)
    total = len(GOOD) + len(BAD)
    for done in range(1, total + 1):
        assert f"] {done}/{total} " in seen
    assert f"[{'=' * 30}] {total}/{total}" in seen
    assert seen.endswith("\r\033[K")
    check_summary(out, folder)


def encode_one(name, content, tmp_path, *more):
    path = tmp_path / name
    path.write_bytes(content)
    result = run_cli("encode", path, *more, "--json")
    facts = json.loads(result.stdout)
    return result.returncode, facts["items"][0]


@pytest.fixture(params=["here", "a server"])
def places(request, start):
    """places(encoder): words that have a file encoded by it."""
    def words(encoder):
        if request.param == "here":
            return ["--encoder", encoder, "--store", "none"]
        return ["--server", f"http://127.0.0.1:{start(encoder=encoder).port}"]

    return words


def test_what_a_file_is_may_be_said(places, tmp_path):
    """A GIF is a picture to an encoder that takes pictures first, and a clip where that is asked for."""
    words = places(STUB_BY_SIZE)
    gif = clip("moving.gif")
    _, picture_of_it = encode_one("a.gif", gif, tmp_path, *words)
    assert picture_of_it["modality"] == "image"
    for modality in ("image", "video"):
        code, item = encode_one("a.gif", gif, tmp_path, *words, "--modality", modality)
        assert (code, item["modality"]) == (0, modality)
        assert (item["key"] == picture_of_it["key"]) == (modality == "image")
    code, item = encode_one("a.gif", gif, tmp_path, *words, "--modality", "audio")
    assert code == 1 and item["error"]["code"] == "unsupported_format"


def test_a_container_is_what_it_holds_unless_another_is_said(places, tmp_path):
    words = places(STUB_BY_SIZE)
    sound = clip("aac.m4a")
    sound = sound[:8] + b"isom" + sound[12:]  # as programs write it that know no M4A
    code, item = encode_one("a.mp4", sound, tmp_path, *words)
    assert (code, item["modality"]) == (0, "audio")
    code, said = encode_one("a.mp4", sound, tmp_path, *words, "--modality", "audio")
    assert (code, said["key"]) == (0, item["key"])
    code, said = encode_one("a.mp4", sound, tmp_path, *words, "--modality", "video")
    assert code == 1 and said["error"]["code"] == "unsupported_format"


def test_singular_and_plural(tmp_path):
    for count in (1, 2):
        (tmp_path / f"{count}.png").write_bytes(png(count))
        said = run_cli("encode", tmp_path, *OPTIONS).stdout
        assert f"{count} file{'s' if count > 1 else ''}: {count} encoded, 0 hits" in said


def test_scripts_get_neither(folder):
    result = run_cli("encode", folder, *OPTIONS, "--json")
    facts = {item["file"]: item for item in json.loads(result.stdout)["items"]}
    assert len(facts) == len(GOOD) + len(BAD)
    for name, (_, code, reason) in BAD.items():
        error = facts[f"{folder}/{name}"]["error"]
        assert error["code"] == code and reason in error["message"]
    assert "done" not in result.stderr
    seen, _ = on_a_terminal("encode", folder, *OPTIONS, "--json")
    assert "[=" not in seen


def test_a_name_cannot_steer_the_terminal(tmp_path):
    write(tmp_path / "media", {"a\033[2Jb\n.png": png(5), "c\033]0;d\007.png": b"none"})
    seen, out = on_a_terminal("encode", tmp_path / "media", *OPTIONS)
    assert "\033[2J" not in seen + out and "\033]" not in seen + out
    assert "a?[2Jb?.png" in out and "c?]0;d?.png" in out


def test_a_folder_of_nothing_is_no_error(tmp_path):
    result = run_cli("encode", tmp_path, *OPTIONS)
    assert result.returncode == 0
    assert "0 files" in result.stdout


def test_hidden_files_of_a_folder_are_left_alone(tmp_path):
    folder = write(tmp_path / "media", {"a.png": png(1), ".stamp": b"not a picture"})
    result = run_cli("encode", folder, *OPTIONS, "--json")
    assert result.returncode == 0, result.stderr
    assert len(json.loads(result.stdout)["items"]) == 1


@pytest.mark.parametrize("through_server", [True, False])
def test_options_that_are_repeated_take_no_file_for_their_own(start, tmp_path, through_server):
    """As a shell writes `--server URL *.png`: every file is encoded, wherever the option stands."""
    folder = write(tmp_path / "media", {f"{number}.png": png(number) for number in range(3)})
    files = sorted(str(path) for path in folder.iterdir())
    if through_server:
        option = ["--server", f"http://127.0.0.1:{start().port}"]
        more = []
    else:
        option = ["--store", "none"]
        more = ["--encoder", STUB_BY_SIZE]
    for words in ([*option, *files], [files[0], *option, *files[1:]]):
        result = run_cli("encode", *more, *words, "--json")
        assert result.returncode == 0, result.stderr
        assert len(json.loads(result.stdout)["items"]) == 3
