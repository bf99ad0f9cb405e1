"""Failed tests of a sanitizer build, once more and alone: behind `./run test --all`.

Under a sanitizer a program is four to ten times slower and shares the machine with the tests beside it, so
that now and then a wait of a test is too short, which says nothing about the code. What sanitizers are there
for is their reports: a failure with one in its log is final, and so is a program that ended badly, and more
failures than a few. Any other is repeated with nothing beside it. What passes then is told as "unsteady" and
counts as passed; what fails twice has failed. On the release build nothing is repeated.
"""

import os
import re
import stat
from pathlib import Path

MOST = 5
REPORT = re.compile(rb"(ERROR|WARNING): \w*Sanitizer|SUMMARY: \w*Sanitizer|runtime error: ")


def is_allowed(label, good, passed, failed, places):
    """Whether the failed tests of one program may be repeated. `places`: logs, and folders of logs."""
    if label == "release" or good or passed == 0 or not 0 < len(failed) <= MOST:
        return False
    return not any(holds_report(file) for place in places for file in files_of(place))


def files_of(place):
    if not place.is_dir():
        return [place]
    return [Path(folder) / name for folder, _, names in os.walk(place) for name in names]


def holds_report(path):
    try:
        if not stat.S_ISREG(path.lstat().st_mode):  # a pipe, which nobody writes to
            return False
        with open(path, "rb") as file:
            return any(REPORT.search(line) for line in file)
    except OSError:  # what a test has locked
        return False

