"""What the tests of real files share: our decoder over many files at once, and where the files are."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("VITROVE_BUILD", ROOT / "build" / "release"))
FILES = ROOT / "build" / "real-files"
SECONDS = 300  # that one file may take, on any machine

sys.path.append(str(FILES / "python"))  # readers to compare with


def files_of(*packages):
    """Name below build/real-files -> path, sorted."""
    found = [path for package in packages for path in (FILES / package).rglob("*") if path.is_file()]
    return {str(path.relative_to(FILES)): path for path in sorted(found)}


class Decoded:
    """What Vitrove makes of a file: `line` says what, `values` has the pixels or samples."""

    def __init__(self, line, path):
        self.line = line
        self.path = path

    @property
    def refused(self):
        return "message" in self.line

    @property
    def why(self):
        return f"{self.line['status']} {self.line['message']} ({self.line['detail']})"

    def values(self):
        return self.path.read_bytes()

    def forget(self):
        self.path.unlink()


def decode(requests, folder):
    """`requests` are pairs of a kind (image, video, audio:RATE) and a path. One process decodes them all, so
    that a crash of one file is seen, and what it leaves behind too."""
    text = "".join(f"{kind} {path}\n" for kind, path in requests)
    program = BUILD / "tests" / "decode_files"
    done = subprocess.run([program, folder], input=text, capture_output=True, text=True,
                          timeout=5 * SECONDS, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and len(lines) == len(requests), (
        f"ended with {done.returncode} after {len(lines)} files, at {requests[len(lines):][:1]}: {done.stderr[-2000:]}")
    return [Decoded(line, Path(folder) / str(number)) for number, line in enumerate(lines)]
