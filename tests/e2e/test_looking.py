"""Commands that only look: they change nothing in a store, whatever its URL says, and tell a store
that is empty from a directory that is none."""

import json
import os

import pytest
from support import file_store, png, run_cli, stored_values, without_licence

SMALL = "1MiB"  # of a capacity, and less than the store below holds
BIG_VALUES = "stub:dim=1024,tokens=64,seed=1"


@pytest.fixture
def full(tmp_path, store_folder):
    """A store of 3 MiB."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    for seed in range(12):
        (folder / f"{seed:02}.png").write_bytes(png(seed))
    result = run_cli("encode", folder, "--encoder", BIG_VALUES, "--store", file_store(store_folder),
                     "--json")
    assert result.returncode == 0, result.stderr
    return store_folder, [item["key"] for item in json.loads(result.stdout)["items"]]


def everything(folder):
    """Names, times and contents of all there is."""
    return {path: (os.lstat(path).st_mtime_ns, path.read_bytes() if path.is_file() else None)
            for path in sorted(folder.rglob("*"))}


def test_a_look_with_a_smaller_capacity_evicts_nothing(full, tmp_path):
    folder, keys = full
    before = everything(folder)
    url = file_store(folder, SMALL)
    for words in (["ls", url], ["ls", "--store", url], ["stat", keys[0], "--store", url],
                  ["get", keys[0], "--store", url, "-o", tmp_path / "out.safetensors"]):
        result = run_cli(*words)
        assert result.returncode == 0, result.stderr
        assert everything(folder) == before, words


def test_doctor_of_a_store_with_a_smaller_capacity_evicts_nothing_and_says_what_would(full):
    folder, _ = full
    before = [path.name for path in stored_values(folder)]
    result = run_cli("doctor", file_store(folder, SMALL), "--pool-size", "16MiB")
    assert result.returncode == 0, result.stdout
    assert result.stdout.startswith("warning")
    assert "would evict what the store holds beyond that" in result.stdout
    assert "put, get and remove work" in result.stdout
    assert [path.name for path in stored_values(folder)] == before


def test_rm_with_a_smaller_capacity_removes_one_value_and_no_other(full):
    folder, keys = full
    before = {path.name for path in stored_values(folder)}
    assert run_cli("rm", keys[0], "--store", file_store(folder, SMALL)).returncode == 0
    assert before - {path.name for path in stored_values(folder)} == {keys[0]}


def test_bench_store_evicts_nothing_either(full):
    folder, _ = full
    before = stored_values(folder)
    result = run_cli("bench", "store", file_store(folder, SMALL), "--quiet", "--size", "4KiB",
                     "--count", 4, "--time", "10ms")
    assert result.returncode == 2
    assert "would lose what is beyond a capacity of 1.0 MiB" in result.stderr
    assert stored_values(folder) == before


def test_ls_tells_a_store_with_nothing_from_a_directory_that_is_none(tmp_path):
    empty = tmp_path / "empty"
    (empty / "v1").mkdir(parents=True)
    result = run_cli("ls", f"file://{empty}")
    assert result.returncode == 0
    assert "holds nothing yet" in result.stdout
    nothing = json.loads(run_cli("ls", f"file://{empty}", "--json").stdout)
    assert (nothing["embeddings"], nothing["aliases"], nothing["values"]) == (0, 0, [])

    missing = tmp_path / "missing"
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("dear")
    for folder, says in ((missing, "the directory does not exist"), (other, "holds no store"),
                         (other / "letter.txt", "it is no directory")):
        for words in (["ls"], ["stat", "vt1-" + 64 * "0"], ["rm", "vt1-" + 64 * "0"]):
            result = run_cli(*words, "--store", f"file://{folder}")
            assert result.returncode == 4, (words, result.stderr)
            assert says in result.stderr and str(folder) in result.stderr
    assert not missing.exists() and len(list(other.iterdir())) == 1


def test_ls_says_what_an_alias_is(full):
    folder, _ = full
    shown = run_cli("ls", "--store", file_store(folder)).stdout.splitlines()[-1]
    assert "12 embeddings, 12 aliases of them" in shown
    text = " ".join(run_cli("ls", "--help").stdout.split())
    assert "aliases, which are further keys of the same embeddings" in text


def finding(*words, **options):
    result = run_cli("doctor", *words, "--json", **options)
    report = json.loads(result.stdout)
    assert result.returncode == (1 if report["state"] == "bad" else 0)
    return report["findings"][0]


def test_doctor_says_that_the_capacity_is_more_than_the_disk_has(full):
    folder, _ = full
    for store in (folder, folder.parent / "pictures"):
        found = finding(f"file://{store}?capacity=900TiB", "--pool-size", "16MiB")
        assert found["state"] == "warning"
        assert "capacity of 900.0 TiB is above what the file system has free" in found["says"]


def test_doctor_says_that_the_directory_is_not_there(tmp_path):
    found = finding(file_store(tmp_path / "mistyped" / "store", SMALL), "--pool-size", "16MiB")
    assert found["state"] == "warning"
    assert "the directory does not exist" in found["says"]
    assert f"would make it in {tmp_path}, which can be written to" in found["says"]
    assert list(tmp_path.iterdir()) == []


def test_doctor_names_the_directory_of_the_default_store(tmp_path):
    """Which is another for root; whether it is there is this machine's business."""
    found = finding("--pool-size", "16MiB", env={"XDG_CACHE_HOME": str(tmp_path)})
    folder = "/var/lib" if os.geteuid() == 0 else tmp_path
    assert found["what"] == f"store file://{folder}/vitrove (default)"


def test_doctor_says_that_a_directory_cannot_be_made(tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    found = finding(file_store(locked / "store", SMALL), launcher=without_licence())
    assert found["state"] == "bad"
    assert f"does not exist, and cannot be made in {locked}: Permission denied" in found["says"]


def test_doctor_says_that_the_directory_is_something_else(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("dear")
    found = finding(file_store(other, SMALL))
    assert (found["state"], "holds other things" in found["says"]) == ("warning", True)
    found = finding(file_store(other / "letter.txt", SMALL))
    assert (found["state"], "is a file, and no directory" in found["says"]) == ("bad", True)
    assert [path.name for path in other.iterdir()] == ["letter.txt"]


def test_doctor_says_that_values_on_a_tmpfs_live_in_memory():
    """/dev/shm is one wherever there is glibc."""
    found = finding("file:///dev/shm/vitrove-no-such-folder?capacity=1MiB")
    assert "it is on a tmpfs: values there take memory" in found["says"]


def test_doctor_says_that_the_pool_is_more_than_the_memory():
    result = run_cli("doctor", "memory:", "--pool-size", "900TiB", "--json")
    pool = json.loads(result.stdout)["findings"][1]
    assert result.returncode == 1
    assert pool["state"] == "bad" and "more than all the memory there is" in pool["says"], pool
