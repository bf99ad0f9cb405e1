"""./run itself: what it prints, and that nothing stays outside the checkout."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import run_bench  # noqa: E402
import run_tests  # noqa: E402

# What stands in for set-up, compiler and programs: each says a line and leaves things in the
# temporary folder, one of them locked.
LEAVES = 'mkdir -p "$TMPDIR/node-compile-cache"; mktemp -d >/dev/null\n'
SETUP = f'{LEAVES}echo "setup: up to date"\n'
CMAKE = f'#!/bin/sh\n{LEAVES}echo "ninja: no work to do."\n'
PYTHON = ('#!/bin/sh\n' + LEAVES + 'mkdir -m 0 "$TMPDIR/locked"\n'
          'printf \'{"telemetry_off": "%s", "ccache": "%s"}\\n\' "$ORT_DISABLE_TELEMETRY" "$CCACHE_DIR"\n'
          'exit "${ENDS_WITH:-0}"\n')


@pytest.fixture
def places(tmp_path):
    """Where people keep theirs: empty folders, which must be empty afterwards."""
    folders = {"HOME": tmp_path / "home", "TMPDIR": tmp_path / "tmp"}
    for folder in folders.values():
        folder.mkdir()
    yield {name: str(folder) for name, folder in folders.items()}
    for folder in folders.values():
        assert list(folder.iterdir()) == []


@pytest.fixture
def run(tmp_path, places):
    """run(*words, **environment) runs ./run in a checkout where all is a stand-in but ./run."""
    tree = tmp_path / "tree"
    programs = {"scripts/setup.sh": SETUP, "bin/cmake": CMAKE, "build/venv/bin/python": PYTHON,
                "build/release/build.ninja": "", "bench/bench_digest.cpp": "",
                "bench/bench_http.cpp": ""}
    for name, text in programs.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    for name in ("run", "scripts/run.sh"):
        shutil.copy(ROOT / name, tree / name)

    def call(*words, **environment):
        return subprocess.run([tree / "run", *words], capture_output=True, text=True, timeout=120,
                              stdin=subprocess.DEVNULL, env={
                                  "PATH": f"{tree}/bin:{os.environ['PATH']}", **places,
                                  **environment})

    return call


def test_a_benchmark_with_json_prints_json_and_nothing_else(run):
    result = run("bench", "digest", "--json")
    assert result.returncode == 0, result.stderr
    json.loads(result.stdout)
    assert "setup: up to date" in result.stderr and "ninja" in result.stderr


@pytest.mark.parametrize("words, status, says", [
    (["--list"], 0, "digest\nhttp\nstores\n"),
    (["--help"], 0, "usage: ./run bench"), (["digest", "-h"], 0, "--json"),
    (["digets"], 2, "unknown benchmark 'digets'; there are: digest http stores"),
    (["http", "dig"], 2, "unknown benchmark 'dig'"), (["--jsno"], 2, "unknown option '--jsno'")])
def test_what_is_asked_of_bench_is_told_without_building_anything(run, words, status, says):
    result = run("bench", *words)
    assert result.returncode == status
    assert says in (result.stdout if status == 0 else result.stderr)
    assert "setup" not in result.stderr and "ninja" not in result.stderr


def test_the_names_of_benchmarks_are_those_that_there_are():
    """What `bench --list` reads from names of sources, the script that runs them has too."""
    listed = subprocess.run([ROOT / "run", "bench", "--list"], capture_output=True, text=True,
                            check=True).stdout.split()
    assert sorted(listed) == sorted(run_bench.programs(ROOT / "build" / "release"))


@pytest.mark.parametrize("command", ["demo", "bench"])
def test_nothing_stays_in_home_or_temporary_folder_however_it_ends(run, command, tmp_path):
    """`places` looks."""
    for status in (0, 3):
        result = run(command, ENDS_WITH=str(status))
        assert result.returncode == status, result.stderr
        said = json.loads(next(line for line in result.stdout.splitlines() if line[0] == "{"))
        assert said == {"telemetry_off": "1", "ccache": f"{tmp_path}/tree/build/.ccache"}


@pytest.mark.parametrize("what", ["build", "sample"])
def test_set_up_that_was_done_before_leaves_nothing_either(places, what):
    """The real one."""
    subprocess.run([ROOT / "run", "setup", what], check=True, capture_output=True, timeout=600,
                   stdin=subprocess.DEVNULL, env=os.environ | places)


TESTS = """
def test_of_a_module(tmp_path_factory):
    (tmp_path_factory.mktemp("module") / "file").write_text("x")

def test_that_may_fail(tmp_path):
    import tempfile
    open(tempfile.mkstemp()[1], "w").close()
    (tmp_path / "trace").write_text("x")
    (tmp_path / "locked").mkdir(mode=0)
    assert {good}
"""


@pytest.mark.parametrize("good", [True, False])
def test_python_tests_leave_their_files_only_where_they_fail_and_there_below_build(
        places, tmp_path, monkeypatch, good):
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_two.py").write_text(TESTS.format(good=good))
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    for name, value in places.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("tempfile.tempdir", None)  # it is asked for once, and kept
    tally = run_tests.Tally()
    run_tests.run_pytest(tally, "label", folder, tmp_path / "build", {}, 120)
    assert (tally.passed, len(tally.failures)) == ((2, 0) if good else (1, 1))
    kept = tmp_path / "build" / "test-logs" / "label" / "tests-files"
    assert len(list(kept.rglob("trace"))) == (0 if good else 1)


# Each run of these leaves a mark; what fails depends on them.
UNSTEADY = """
import pathlib
import pytest

mark = pathlib.Path({mark!r})

@pytest.mark.parametrize("case", ["[a::b]", "c"])
def test_that_fails_in_some_runs(case):
    mine = mark.with_name(f"mark{{len(case)}}")
    with open(mine, "a") as file:
        file.write("x")
    print({says!r})
    assert mine.stat().st_size not in {fails}

def test_that_fails_always():
    assert {always}

def test_that_passes():
    pass
"""


@pytest.mark.parametrize("label, says, fails, always, passed, failed", [
    ("tsan", "", [1], True, 4, 0),  # what passes alone has passed
    ("tsan", "", [1], False, 3, 1),
    ("tsan", "WARNING: ThreadSanitizer: data race", [1], True, 2, 2),  # a report is final
    ("asan", "x.cpp:1:2: runtime error: shift", [1], True, 2, 2),
    ("release", "", [1], True, 2, 2),  # nothing is repeated there
], ids=["passes-alone", "fails-twice", "a-race", "undefined", "release"])
def test_a_failure_under_a_sanitizer_without_its_report_is_looked_at_again_and_told(
        tmp_path, monkeypatch, capfd, label, says, fails, always, passed, failed):
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_it.py").write_text(UNSTEADY.format(mark=str(tmp_path / "mark"), says=says,
                                                       fails=fails, always=always))
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    tally = run_tests.Tally()
    run_tests.run_pytest(tally, label, folder, tmp_path / "build", {}, 120)
    assert (tally.passed, len(tally.failures)) == (passed, failed), tally.failures
    assert capfd.readouterr().out.count("UNSTEADY") == (2 if passed > 2 else 0)


def outcome_of(code, passed, failed, places=()):
    outcome = run_tests.Outcome(code, places)
    outcome.passed, outcome.failed = list(passed), list(failed)
    return outcome


def test_many_failures_a_bad_end_and_none_at_all_get_no_second_look(tmp_path):
    def looks(label, *outcome):
        return run_tests.second_look.is_allowed(label, outcome_of(*outcome))

    assert looks("tsan", 1, "xyz", "a")
    assert not looks("tsan", 1, "xyz", "abcdef")
    assert not looks("release", 1, "xyz", "a")
    assert not looks("tsan", 1, "xyz", "")
    assert not looks("tsan", 1, "", "a"), "nothing works"
    for crashed in (-11, 66, None):
        assert not looks("tsan", crashed, "xyz", "a")
    folder = tmp_path / "files"
    (folder / "below").mkdir(parents=True)
    os.mkfifo(folder / "pipe")  # nobody reads it for ever
    assert looks("tsan", 1, "xyz", "a", [folder])
    (folder / "below" / "server.log").write_text("ok\n==7==ERROR: AddressSanitizer: heap-use\n")
    assert not looks("asan", 1, "xyz", "a", [folder]), "the server's report"


def test_what_passes_in_a_program_that_ends_badly_is_not_steady(tmp_path):
    steady = run_tests.second_look.steady
    log = tmp_path / "program.log"
    log.write_text("SUMMARY: AddressSanitizer: 7 byte(s) leaked\n")
    assert steady(outcome_of(0, "ab", "")) == {"a", "b"}
    assert steady(outcome_of(1, "a", "b")) == {"a"}
    assert steady(outcome_of(1, "ab", "")) == set(), "it leaks at its end"
    assert steady(outcome_of(-11, "a", "b")) == set()
    assert steady(outcome_of(None, "a", "b")) == set()
    assert steady(outcome_of(0, "ab", "", [log])) == set()
