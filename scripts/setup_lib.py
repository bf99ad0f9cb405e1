"""What the Python set-up scripts share; the counterpart of setup_lib.sh.

run_in_venv() must come before any import of a package: it re-starts the script in build/venv, so that
`scripts/make_tiny_vit.py` works from any shell, and the interpreter on PATH does not matter.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent
ROOT = SCRIPTS.parent
BUILD = ROOT / "build"
VENV = BUILD / "venv"
_NAME = Path(sys.argv[0]).stem


def say(text):
    print(f"{_NAME}: {text}", flush=True)


def die(text):
    sys.exit(f"{_NAME}: error: {text}")


def run_in_venv():
    """Continues in build/venv's interpreter, or explains how to make it."""
    if Path(sys.prefix).resolve() == VENV.resolve():
        return
    python = VENV / "bin" / "python"
    if not python.exists():
        die("build/venv is missing; scripts/setup_python.sh makes it")
    os.execv(python, [str(python), *sys.argv])


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def key_of(*parts):
    """One digest for the pins and scripts that a result was made from: paths by content, words as they are."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else str(part).encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def pip_download(directory, requirement, file_name, expected, *options):
    """Fetches one wheel, without its dependencies, and returns its path once its SHA-256 is right."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input",
               "--no-deps", "--only-binary", ":all:", *options, "--dest", str(directory), requirement]
    if subprocess.run(command, check=False).returncode != 0:
        die(f"pip could not fetch {requirement} (its own words are above)")
    path = Path(directory) / file_name
    if not path.exists():
        die(f"pip fetched {requirement}, but not as {file_name}")
    got = sha256(path.read_bytes())
    if got != expected:
        die(f"{file_name} has SHA-256 {got}, expected {expected}; nothing was installed")
    return path


@contextlib.contextmanager
def _lock(path):
    with open(path, "w", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another run to finish")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make_directory(target, key, build):
    """Has build(directory) fill a new directory and puts it in place of target as a whole.

    Does nothing when target was made for the same key and still holds every file of it; two runs at the same
    time make it once; a run that dies leaves the old target alone.
    """
    target = Path(target)
    stamp = target / ".stamp"

    def up_to_date():
        try:
            made = json.loads(stamp.read_text())
        except (OSError, ValueError):
            return False
        return made["key"] == key and all((target / name).exists() for name in made["files"])

    if up_to_date():
        say("up to date")
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = (BUILD if target.is_relative_to(BUILD) else target.parent) / f".lock-{target.name}"
    with _lock(lock):
        if up_to_date():
            say("up to date")
            return
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as tmp:
            new = Path(tmp) / "new"
            new.mkdir()
            build(new)
            files = sorted(path.name for path in new.iterdir())
            (new / ".stamp").write_text(json.dumps({"key": key, "files": files}) + "\n")
            if target.exists():
                shutil.rmtree(target)
            new.rename(target)
    say(f"{display(target)} is ready")


def display(path):
    """A path as people know it: relative to the project where it is inside."""
    path = Path(path).resolve()
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")
