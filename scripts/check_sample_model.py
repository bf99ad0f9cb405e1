#!/usr/bin/env python3
"""Runs the sample models the way other people's software does, and compares with tests/data.

    python scripts/check_sample_model.py           does everything still agree with tests/data?
    python scripts/check_sample_model.py --write   writes those files anew

Why: the C++ tests compare Vitrove's decoders, preprocessing and encoder with numbers that were not made by
Vitrove. These are they: pictures decoded and resized by Pillow, the steps Hugging Face's CLIPImageProcessor
takes, and ONNX Runtime's own Python package. It is a tool for developers, needed only when a model or a
picture changes, and so ONNX Runtime for Python is not in requirements.txt. In an environment of its own:

    pip install numpy==2.4.6 pillow==13.0.0 onnxruntime==1.29.0

Reads:  build/sample (scripts/setup.sh sample)
Writes: tests/data/imagenet_labels_excerpt.json   the sample model on every picture
        tests/data/tiny_vit_reference.json        the tiny transformer, seed 1
Both also hold the answer to an input that needs no picture: element i of the [1,3,H,W] tensor, counted from 0
in memory order, is ((i * 7919) mod 255 - 127) / 128.

Pictures with an alpha channel lose it here, as in Hugging Face's code: colours below transparent pixels count.
"""

import argparse
import json
import sys
from pathlib import Path

try:
    import numpy as np
    import onnxruntime
    import PIL
    from PIL import Image
except ImportError as error:
    sys.exit(f"check_sample_model: error: {error}; the head of this file says what to install")

import setup_lib as lib

SAMPLE = lib.BUILD / "sample"
DATA = lib.ROOT / "tests" / "data"

LABELS = {  # of ImageNet-1k, those that a person would agree with
    281: "tabby cat", 282: "tiger cat", 283: "Persian cat", 284: "Siamese cat", 285: "Egyptian cat",
    657: "missile", 665: "moped", 670: "motor scooter", 744: "projectile", 872: "tripod",
    967: "espresso", 968: "cup",
}
# One of these classes must be the first for the picture; of the others the numbers alone are recorded.
EXPECTED = {
    "chelsea.png": [281, 282, 285],
    "coffee.png": [967, 968],
    "camera.png": [872],
    "motorcycle_left.png": [665, 670],
    "motorcycle_right.png": [665, 670],
    "rocket.jpg": [657, 744],
}
TOP = 5
TOLERANCE = 2e-3  # other processors round differently


def preprocess(image, config):
    image = image.convert("RGB")
    width, height = image.size
    short = config["size"]["shortest_edge"]
    size = (short, short * height // width) if width < height else (short * width // height, short)
    image = image.resize(size, config["resample"])
    crop_height, crop_width = config["crop_size"]["height"], config["crop_size"]["width"]
    left, top = (size[0] - crop_width) // 2, (size[1] - crop_height) // 2
    pixels = np.asarray(image)[top:top + crop_height, left:left + crop_width].astype(np.float64)
    pixels = pixels * config["rescale_factor"]
    pixels = (pixels - np.array(config["image_mean"])) / np.array(config["image_std"])
    return np.ascontiguousarray(pixels.astype(np.float32).transpose(2, 0, 1))[None]


def formula(size):
    i = np.arange(3 * size * size, dtype=np.int64)
    return (((i * 7919) % 255 - 127) / 128).astype(np.float32).reshape(1, 3, size, size)


def numbers(array):
    return [round(float(x), 5) for x in np.ravel(array)]


def open_model(directory):
    model = (directory / "model.onnx").read_bytes()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session, lib.sha256(model)


def describe_features(feature_map):
    """feature_map [1, C, 7, 7] in Vitrove's rows: row y * 7 + x holds the C channels of that place."""
    rows = feature_map[0].reshape(feature_map.shape[1], -1).T
    return {
        "mean": numbers(rows.mean(dtype=np.float64))[0],
        "row_means": numbers(rows.mean(axis=1, dtype=np.float64)),
        "row24_strongest": [[int(c), round(float(rows[24, c]), 5)] for c in np.argsort(-rows[24], kind="stable")[:8]],
    }


def describe_scores(logits):
    scores = logits[0].astype(np.float64)
    probabilities = np.exp(scores - scores.max())
    probabilities /= probabilities.sum()
    order = np.argsort(-scores, kind="stable")[:TOP]
    return [{"class": int(c), "logit": round(float(scores[c]), 5), "probability": round(float(probabilities[c]), 5)}
            for c in order]


def sample_model():
    session, digest = open_model(SAMPLE / "model")
    config = json.loads((SAMPLE / "model" / "preprocessor_config.json").read_text())
    pictures = []
    for path in sorted((SAMPLE / "pictures").iterdir()):
        if path.suffix not in (".png", ".jpg"):
            continue
        image = Image.open(path)
        features, logits = session.run(["feature_map", "logits"], {"pixel_values": preprocess(image, config)})
        pictures.append({
            "file": path.name, "sha256": lib.sha256(path.read_bytes()), "width": image.width, "height": image.height,
            "mode": image.mode, "expected": EXPECTED.get(path.name, []), "top": describe_scores(logits),
            "features": describe_features(features),
        })
    features, logits = session.run(["feature_map", "logits"], {"pixel_values": formula(224)})
    return {
        "made_by": f"scripts/check_sample_model.py --write, Pillow {PIL.__version__}, onnxruntime {onnxruntime.__version__}",
        "model_sha256": digest,
        "labels": {str(number): name for number, name in LABELS.items()},
        "formula": {"top": describe_scores(logits), "features": describe_features(features)},
        "pictures": pictures,
    }


def tiny_vit():
    session, digest = open_model(SAMPLE / "tiny-vit")
    (rows,) = session.run(["last_hidden_state"], {"pixel_values": formula(64)})
    config = json.loads((SAMPLE / "tiny-vit" / "preprocessor_config.json").read_text())
    (cat,) = session.run(["last_hidden_state"],
                         {"pixel_values": preprocess(Image.open(SAMPLE / "pictures" / "chelsea.png"), config)})
    return {
        "made_by": f"scripts/check_sample_model.py --write, onnxruntime {onnxruntime.__version__}",
        "model_sha256": digest,
        "formula": {"rows": [numbers(row) for row in rows[0]]},
        "chelsea.png": {"rows": [numbers(row) for row in cat[0]]},
    }


def check_expected(result):
    """What a person knows; it must hold whatever tests/data says."""
    for picture in result["pictures"]:
        first = picture["top"][0]
        if picture["expected"] and first["class"] not in picture["expected"]:
            lib.die(f"{picture['file']} is called class {first['class']}, not one of {picture['expected']}")
        name = LABELS.get(first["class"], f"class {first['class']}")
        lib.say(f"{picture['file']:<22} {first['probability']:6.3f}  {name}")


def differences(found, expected, where=""):
    """Yields where two trees of JSON values differ by more than rounding."""
    if isinstance(expected, dict) and isinstance(found, dict) and found.keys() == expected.keys():
        for key in expected:
            if key != "made_by":
                yield from differences(found[key], expected[key], f"{where}/{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        for i, (a, b) in enumerate(zip(found, expected, strict=True)):
            yield from differences(a, b, f"{where}/{i}")
    elif isinstance(expected, float) and isinstance(found, float | int):
        if abs(found - expected) > TOLERANCE:
            yield f"{where}: {found} instead of {expected}"
    elif found != expected:
        yield f"{where}: {found} instead of {expected}"


def dump(value):
    """JSON with one picture or one row of numbers a line, so that a change reads well in a diff."""
    lines = []
    for key, item in value.items():
        if key == "pictures":
            inner = ",\n".join(f"    {json.dumps(entry)}" for entry in item)
            lines.append(f'  "{key}": [\n{inner}\n  ]')
        elif isinstance(item, dict) and "rows" in item:
            inner = ",\n".join(f"    {json.dumps(entry)}" for entry in item["rows"])
            lines.append(f'  "{key}": {{"rows": [\n{inner}\n  ]}}')
        else:
            lines.append(f'  "{key}": {json.dumps(item)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main():
    parser = argparse.ArgumentParser(description="Compares the sample models with tests/data.")
    parser.add_argument("--write", action="store_true", help="write the files in tests/data anew")
    args = parser.parse_args()
    if not (SAMPLE / "model" / "model.onnx").exists():
        lib.die("build/sample is missing; scripts/setup.sh sample makes it")

    sample = sample_model()
    check_expected(sample)
    failed = False
    for name, result in (("imagenet_labels_excerpt.json", sample), ("tiny_vit_reference.json", tiny_vit())):
        path = DATA / name
        if args.write:
            path.write_text(dump(result))
            lib.say(f"{lib.display(path)} is written")
            continue
        found = list(differences(result, json.loads(path.read_text())))
        for line in found[:10]:
            lib.say(f"{name}{line}")
        failed = failed or bool(found)
    if failed:
        lib.die("the results differ from tests/data")
    if not args.write:
        lib.say("everything agrees with tests/data")


if __name__ == "__main__":
    main()
