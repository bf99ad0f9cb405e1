#!/usr/bin/env python3
"""Brings real photographs and pictures, in colour, grey and with transparency, as PNG and JPEG files.

Why: decoders, preprocessing and the sample model are to be tested on what cameras and people make, not on
noise. The pictures come out of the scikit-image wheel, which is fetched but not installed; nothing is
converted. Always the same wheel is taken, whatever the machine, since only its data matters.

Leaves: build/sample/pictures/*.png, *.jpg and README.txt, which says of each where it comes from and what its
licence is.
"""

import zipfile
from pathlib import Path

import setup_lib as lib

lib.run_in_venv()

PACKAGE = "scikit-image==0.26.0"
WHEEL = "scikit_image-0.26.0-cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl"
WHEEL_SHA256 = "74aa5518ccea28121f57a95374581d3b979839adc25bb03f289b1bc9b99c58af"
PLATFORM = ("--python-version", "311", "--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_24_x86_64")

TARGET = lib.BUILD / "sample" / "pictures"

# What scikit-image's own documentation says of each.
UNSTATED = "no statement of its own; part of scikit-image (BSD-3-Clause)"
PICTURES = {
    "astronaut.png": ("Eileen Collins, NASA Great Images", "public domain"),
    "brick.png": ("brick wall, grey, CC0Textures", "CC0"),
    "camera.png": ("photographer with a camera, grey, by Lav Varshney", "CC0"),
    "cell.png": ("a cell, grey, from a digital hologram (Paul Müller and others)", "CC0"),
    "chelsea.png": ("Chelsea the cat, by Stefan van der Walt", "CC0"),
    "clock_motion.png": ("wall clock with motion blur, grey, by Stefan van der Walt", "public domain"),
    "coffee.png": ("a cup of coffee at Pikolo Espresso Bar, by Rachel Michetti", "CC0"),
    "coins.png": ("Greek coins from Pompeii, grey, Brooklyn Museum", "no known copyright restrictions"),
    "color.png": ("a colour wheel", UNSTATED),
    "grass.png": ("grass, grey, by linolafett", "CC0"),
    "gravel.png": ("gravel, grey, CC0Textures", "CC0"),
    "horse.png": ("silhouette of a horse with transparency, by Andreas Preuss", "CC0"),
    "hubble_deep_field.jpg": ("Hubble eXtreme Deep Field, NASA", "public domain"),
    "ihc.png": ("stained colonic glands, Center for Microscopy and Molecular Imaging", "no known copyright restrictions"),
    "logo.png": ("scikit-image's logo with transparency", UNSTATED),
    "moon.png": ("surface of the moon, grey", UNSTATED),
    "motorcycle_left.png": ("motorcycle, left view, Middlebury 2014 stereo benchmark (Scharstein and others)", UNSTATED),
    "motorcycle_right.png": ("the same, right view: alike but not equal", UNSTATED),
    "page.png": ("scanned page of text, grey", UNSTATED),
    "retina.jpg": ("human retina, by Mikael Häggström", "CC0"),
    "rocket.jpg": ("launch of DSCOVR on a Falcon 9, SpaceX", "public domain"),
    "text.png": ("handwritten text, grey, Wikipedia", "public domain"),
}


def build(directory):
    lib.say(f"fetching {PACKAGE} (14 MB) with pip, for its pictures only")
    wheel = lib.pip_download(directory.parent, PACKAGE, WHEEL, WHEEL_SHA256, *PLATFORM)
    lines = ["Pictures from PyPI's scikit-image 0.26.0, unchanged; what its documentation says of them.",
             "They are fetched for tests and examples and are no part of Vitrove.", ""]
    with zipfile.ZipFile(wheel) as archive:
        for name, (what, licence) in PICTURES.items():
            data = archive.read(f"skimage/data/{name}")
            (directory / name).write_bytes(data)
            lines += [f"{name}: {what}. Licence: {licence}.", f"    SHA-256 {lib.sha256(data)}"]
    (directory / "README.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    lib.say(f"{len(PICTURES)} pictures")


if __name__ == "__main__":
    lib.make_directory(TARGET, lib.key_of(Path(__file__), lib.SCRIPTS / "setup_lib.py"), build)
