#!/usr/bin/env python3
"""Runs every test of a build and counts them: behind `./run test`.

Unit programs (GoogleTest), the soak of the cache, fuzz corpora, the consumer project and the real-process tests (pytest)
on the release build; with --all also the same programs under sanitizers, the crash test at full
length, fuzzing, formatting and static analysis. The last line is "N passed, N failed"; a skipped
test counts as failed, since nothing here may be switched off. Exits 0 only when none failed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import leak_budget
import namespaces
import second_look

ROOT = Path(__file__).resolve().parent.parent
FUZZ_SECONDS = 600  # of all targets together; as many run side by side as there are cores
CRASH_KILLS = 400
SOAK_SECONDS = 20
# With --all, five minutes in all: each kind of build finds what the others do not.
SOAK_SECONDS_OF_ALL = {"release": 120, "asan": 90, "tsan": 90}
# Most tests wait for processes, deadlines and disks more than they compute: about a third of two
# cores. Files of real-process tests run side by side, and so do unit programs.
PYTEST_PROCESSES = 3
UNIT_PROGRAMS_AT_ONCE = 2
SANITIZER_ENV = {
    "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": f"halt_on_error=1:second_deadlock_stack=1:suppressions={ROOT}/scripts/tsan.supp",
    "LSAN_OPTIONS": f"suppressions={ROOT}/scripts/lsan.supp",
}


class Tally:
    """What has passed and failed so far; programs that run side by side add to it."""

    def __init__(self):
        self.passed = 0
        self.failures = []
        self.unsteady = []
        self._lock = threading.Lock()

    def add(self, name, passed, failed_names, seconds, log=None):
        state = "ok  " if not failed_names else "FAIL"
        with self._lock:
            self.passed += passed
            self.failures += [f"{name}: {failure}" for failure in failed_names]
            print(f"{state} {name:<44} {passed:>5} passed {len(failed_names):>3} failed "
                  f"{seconds:7.1f} s", flush=True)
            if failed_names and log:
                show_tail(log)


def run(command, log, timeout, env=None, cwd=ROOT):
    """Runs a command into a log file; what it ended with, None when that was not in time."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "wb") as out:
        try:
            return subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, cwd=cwd,
                                  stdin=subprocess.DEVNULL, timeout=timeout,
                                  env={**os.environ, **(env or {})}).returncode
        except subprocess.TimeoutExpired:
            out.write(f"\nended after {timeout} s\n".encode())
            return None


def show_tail(log, lines=120):
    text = log.read_text(errors="replace").splitlines()[-lines:]
    print("\n".join(f"    {line}" for line in text), flush=True)


def run_command(tally, name, command, timeout, env=None):
    """A step that counts as one test."""
    started = time.monotonic()
    log = ROOT / "build" / "test-logs" / f"{name.replace(' ', '-').replace('/', '-')}.log"
    good = run(command, log, timeout, env) == 0
    tally.add(name, int(good), [] if good else ["see the log above"], time.monotonic() - started,
              log)
    return good


class Outcome:
    """Of one run of one program: which tests passed, which did not, and where it left its words."""

    def __init__(self, code, places):
        self.code = code
        self.good = code == 0
        self.places = places
        self.passed = []
        self.failed = []


def read_gtest(report, code, places):
    outcome = Outcome(code, places)
    if not report.exists():
        return outcome
    for suite in json.loads(report.read_text())["testsuites"]:
        for case in suite["testsuite"]:
            bad = case.get("failures") or case.get("result") != "COMPLETED"
            (outcome.failed if bad else outcome.passed).append(f"{suite['name']}.{case['name']}")
    return outcome


def read_pytest(report, code, places):
    outcome = Outcome(code, places)
    if not report.exists():
        return outcome
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{case.get('file')}::{case.get('name')}"
        bad = any(child.tag in ("failure", "error", "skipped") for child in case)
        (outcome.failed if bad else outcome.passed).append(name)
    return outcome


def run_gtest(tally, label, program, env, timeout):
    """One program, every test of it counted."""
    started = time.monotonic()
    logs = ROOT / "build" / "test-logs" / label

    def once(name, arguments):
        report = logs / f"{name}.json"
        report.unlink(missing_ok=True)
        log = logs / f"{name}.log"
        code = run([program, f"--gtest_output=json:{report}", "--gtest_brief=1", *arguments], log,
                   timeout, env)
        outcome = read_gtest(report, code, [log])
        outcome.failed += leak_budget.excesses(log.read_text(errors="replace"))
        return outcome

    log = logs / f"{program.name}.log"
    outcome = once(program.name, [])
    if second_look.is_allowed(label, outcome):
        look_again(tally, label, outcome, lambda names: once(f"{program.name}-alone",
                                                             [f"--gtest_filter={':'.join(names)}"]))
    finish(tally, f"{label} {program.name}", outcome, log, started)


def run_pytest(tally, label, folder, build, env, timeout):
    """One folder of Python tests, with mounts and networks of its own. Their files lie where paths
    are short enough for sockets; those of tests that fail are kept beside the log."""
    started = time.monotonic()
    logs = ROOT / "build" / "test-logs" / label
    logs.mkdir(parents=True, exist_ok=True)
    env = {**env, "VITROVE_BUILD": str(build), "PYTHONDONTWRITEBYTECODE": "1",
           "ORT_DISABLE_TELEMETRY": "1"}
    launcher = namespaces.launcher(env)
    if launcher is None:
        print(f"note: {namespaces.NEEDED}", flush=True)
    as_the_tests = launcher or []  # what they have made may be theirs alone

    def once(name, tests, processes):
        report = logs / f"{name}.xml"
        report.unlink(missing_ok=True)
        log = logs / f"{name}.log"
        kept = logs / f"{name}-files"
        temporary = tempfile.mkdtemp(prefix="py")
        run([*as_the_tests, "rm", "-rf", kept], log, 300)
        command = [*as_the_tests, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                   f"--numprocesses={processes}", "--dist=loadfile",
                   f"--maxfail={20 if launcher else 1000}", f"--junitxml={report}",
                   "--override-ini=junit_family=xunit1",  # which names the files
                   f"--rootdir={ROOT}", f"--basetemp={temporary}/t", *tests]
        code = run(command, log, timeout, {**env, "TMPDIR": temporary})
        tidy_up = ["rm", "-rf", temporary] if code == 0 else ["mv", temporary, kept]
        run([*as_the_tests, *tidy_up], logs / f"{name}-tidy-up.log", 300)
        return read_pytest(report, code, [log, kept])

    outcome = once(folder.name, [folder], PYTEST_PROCESSES)
    log = logs / f"{folder.name}.log"
    if second_look.is_allowed(label, outcome):
        look_again(tally, label, outcome, lambda names: once(f"{folder.name}-alone",
                                                             [ROOT / name for name in names], 0))
    finish(tally, f"{label} tests/{folder.name} (pytest)", outcome, log, started)


def look_again(tally, label, outcome, once):
    """Whatever does not pass alone has failed; what the second run has not run at all, too."""
    first = outcome.failed
    steady = second_look.steady(once(first))
    outcome.failed = [name for name in first if name not in steady]
    for name in first:
        if name not in outcome.failed:
            outcome.passed.append(name)
            tally.unsteady.append(f"{label} {name}")
            print(f"UNSTEADY {label} {name}: failed beside other tests, without a sanitizer's report, "
                  "and passed alone", flush=True)
    outcome.good = not outcome.failed


def finish(tally, name, outcome, log, started):
    """A program that ended badly, or ran nothing, has failed whatever its report says."""
    failed = list(outcome.failed)
    if not outcome.good and not failed:
        failed.append("did not end well")
    if not outcome.passed and not failed:
        failed.append("ran no test")
    tally.add(name, len(outcome.passed), failed, time.monotonic() - started, log)


def run_soak(tally, label, build, env, factor, seconds):
    """Two thirds of the time with puts at once and claims, the rest with puts behind."""
    behind = max(seconds // 3, 15)
    for name, length, more in (("soak", max(seconds - behind, 15), []),
                               ("soak, writes behind,", behind, ["--write-behind"])):
        run_command(tally, f"{label} {name} {length} s",
                    [build / "tests" / "soak", "--seconds", str(length), *more],
                    length + 300 * factor, env)


def run_build_tests(tally, label, build, env, factor, soak_seconds):
    """Unit programs and real processes of one build."""
    programs = [program for program in (build / "tests").glob("unit_*")
                if os.access(program, os.X_OK) and program.is_file()]
    # The soak, whose stores are slow, runs beside them. The large ones, which last, go first.
    with ThreadPoolExecutor(1) as beside, ThreadPoolExecutor(UNIT_PROGRAMS_AT_ONCE) as pool:
        soak = beside.submit(run_soak, tally, label, build, env, factor, soak_seconds)
        list(pool.map(lambda program: run_gtest(tally, label, program, env, 300 * factor),
                      sorted(programs, key=lambda program: -program.stat().st_size)))
        soak.result()
    run_pytest(tally, label, ROOT / "tests" / "e2e", build,
               {**env, "VITROVE_TIME_FACTOR": str(factor)}, 600 * factor)


def replay_corpora(tally, build):
    for program in sorted((build / "tests").glob("fuzz_*")):
        if os.access(program, os.X_OK) and program.is_file():
            run_command(tally, f"corpus {program.name}",
                        [program, ROOT / "tests" / "fuzz" / "corpus" / program.name], 300)


def run_consumer(tally, build):
    run_command(tally, "consumer project", ["bash", "scripts/test_consumer.sh", str(build)], 900)


def run_all_checks(tally):
    run_command(tally, "lint", ["bash", "scripts/lint.sh", "--quick"], 3000)
    for preset, factor in (("asan", 4), ("tsan", 6)):
        if run_command(tally, f"build {preset}", ["./run", "build", preset], 3000):
            run_build_tests(tally, preset, ROOT / "build" / preset, SANITIZER_ENV, factor,
                            SOAK_SECONDS_OF_ALL[preset])
    if run_command(tally, "build fuzz", ["./run", "build", "fuzz"], 3000):
        run_command(tally, f"fuzz {FUZZ_SECONDS} s",
                    ["bash", "scripts/fuzz.sh", str(FUZZ_SECONDS)], FUZZ_SECONDS * 2 + 300)


def minutes(seconds):
    return f"{seconds // 60} min {seconds % 60:02d} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--set-up-seconds", type=int, default=0,
                        help="what installing and building took before this")
    args = parser.parse_args()
    started = time.monotonic()
    build = args.build.resolve()
    tally = Tally()

    crash = {"VITROVE_CRASH_KILLS": str(CRASH_KILLS)} if args.all else {}
    run_build_tests(tally, "release", build, crash, 1,
                    SOAK_SECONDS_OF_ALL["release"] if args.all else SOAK_SECONDS)
    run_pytest(tally, "release", ROOT / "tests" / "scripts", build, {}, 300)
    replay_corpora(tally, build)
    run_consumer(tally, build)
    if args.all:
        run_pytest(tally, "release", ROOT / "tests" / "real", build, {}, 1800)
        run_pytest(tally, "release", ROOT / "tests" / "export", build, {}, 1800)
        run_all_checks(tally)

    for name in tally.unsteady:
        print(f"UNSTEADY {name}")
    for failure in tally.failures:
        print(f"FAILED {failure}")
    tests = int(time.monotonic() - started)
    print(f"set-up and build took {minutes(args.set_up_seconds)}, tests {minutes(tests)}, "
          f"the whole {minutes(args.set_up_seconds + tests)}")
    print(f"{tally.passed} passed, {len(tally.failures)} failed", flush=True)
    return 0 if not tally.failures and tally.passed else 1


if __name__ == "__main__":
    sys.exit(main())
