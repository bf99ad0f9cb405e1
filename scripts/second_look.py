"""Failed tests of a sanitizer build, once more and alone: behind `./run test --all`.

Under a sanitizer a program is four to ten times slower and shares the machine with the tests beside it, so
that now and then a wait of a test is too short, which says nothing about the code. What sanitizers are there
for is their reports: a failure with one in its log is final, and so is a program that ended badly, and more
failures than a few. Any other is repeated with nothing beside it. What passes then is told as "unsteady", at
the end once more, and counts as passed, unless the program ends badly that time; what fails twice has failed.
On the release build nothing is repeated: what failed there now and then was most often a fault of the code.
"""

import os
import re
import stat
from pathlib import Path

MOST = 5  # of one program
TESTS_FAILED = 1  # what both test frameworks end with
REPORT = re.compile(rb"(ERROR|WARNING): \w*Sanitizer|SUMMARY: \w*Sanitizer|runtime error: ")


def is_allowed(label, outcome):
    """Whether the failed tests of one program may be repeated: it told of each and ended by itself."""
    if label == "release" or outcome.code != TESTS_FAILED or not outcome.passed:
        return False
    if not 0 < len(outcome.failed) <= MOST:
        return False
    return not has_reported(outcome)


def steady(outcome):
    """The tests that passed when they were repeated; none when the program then ended badly."""
    told = outcome.good or (outcome.code == TESTS_FAILED and outcome.failed)
    return set(outcome.passed) if told and not has_reported(outcome) else set()


def has_reported(outcome):
    return any(holds_report(file) for place in outcome.places for file in files_of(place))


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
    except OSError:  # what a test has locked; a log is none of those
        return path.suffix == ".log"

