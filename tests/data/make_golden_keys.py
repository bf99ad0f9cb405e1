#!/usr/bin/env python3
"""Writes golden_keys.json: what keys and digests must be, for ever.

This is the encoding of docs/value-format.md ("Keys") written a second time, so that the C++ code and
this script check each other. Run it to add cases; digests of existing cases must never change:
`--check` fails when they would.
"""

import hashlib
import json
import math
import pathlib
import struct
import sys

TARGET = pathlib.Path(__file__).with_name("golden_keys.json")
FORMS = {"media_bytes": 1, "features": 2, "host_id": 3}
MODALITIES = {"image": 1, "video": 2, "audio": 3}
DTYPES = {"float32": 1, "float16": 2, "bfloat16": 3}


def head(tag, number):
    return tag + struct.pack("<Q", number)


def boolean(value):
    return b"b\x01" if value else b"b\x00"


def natural(value):
    return head(b"u", value)


def integer(value):
    return b"i" + struct.pack("<q", value)


def real(value):
    assert not math.isnan(value)
    return b"f" + struct.pack("<d", value + 0.0 if value else 0.0)


def octets(value):
    return head(b"y", len(value)) + value


def text(value):
    encoded = value.encode()
    return head(b"s", len(encoded)) + encoded


def sequence(items):
    return head(b"l", len(items)) + b"".join(items)


def mapping(pairs):
    ordered = sorted((name.encode(), item) for name, item in pairs.items())
    body = b"".join(head(b"s", len(name)) + name + item for name, item in ordered)
    return head(b"m", len(ordered)) + body


def typed(value):
    kind, raw = value["type"], value["value"]
    if kind == "bool":
        return boolean(raw)
    if kind == "int":
        return integer(raw)
    if kind == "real":
        return real(float.fromhex(raw))
    if kind == "text":
        return text(raw)
    return sequence([real(float.fromhex(item)) for item in raw])


def params(values):
    return mapping({name: typed(value) for name, value in values.items()})


def sha(data):
    return hashlib.sha256(data).hexdigest()


def key(case):
    steps = sorted({(name.encode(), version) for name, version in case["pipeline"]})
    pipeline = head(b"l", len(steps)) + b"".join(
        head(b"s", len(name)) + name + natural(version) for name, version in steps)
    encoded = b"".join([
        text("vitrove.key"),
        natural(1),
        natural(FORMS[case["form"]]),
        octets(bytes.fromhex(case["content"])),
        natural(MODALITIES[case["modality"]]),
        octets(bytes.fromhex(case["model_fingerprint"])),
        pipeline,
        params(case["preprocessing"]),
        natural(DTYPES[case["dtype"]]),
        natural(case["dim"]),
        text(case["row_meaning"]),
        natural(case["epoch"]),
        text(case["tenant"]),
    ])
    return "vt1-" + sha(encoded)


def features(case):
    tensors = [
        text(tensor["name"]) + text(tensor["dtype"])
        + sequence([integer(extent) for extent in tensor["shape"]])
        + octets(bytes.fromhex(tensor["bytes"])) for tensor in case["tensors"]
    ]
    side = octets(bytes.fromhex(case["side_data"]))
    return sha(text("vitrove.features") + natural(1) + sequence(tensors) + side)


def tenant(case):
    if not case["tenant"]:
        return "00" * 32
    return sha(text("vitrove.tenant") + natural(1) + text(case["tenant"]))


def fingerprint(case):
    files = mapping({role: octets(bytes.fromhex(digest)) for role, digest in case["files"].items()})
    settings = mapping({name: text(value) for name, value in case["settings"].items()})
    return sha(text("vitrove.model") + natural(1) + files + settings)


def r(value):
    return {"type": "real", "value": float(value).hex()}


def i(value):
    return {"type": "int", "value": value}


def s(value):
    return {"type": "text", "value": value}


def b(value):
    return {"type": "bool", "value": value}


def reals(*values):
    return {"type": "reals", "value": [float(value).hex() for value in values]}


PARAMS = {
    "none": {},
    "one of each": {"flag": b(True), "count": i(-7), "scale": r(1 / 255), "filter": s("bicubic"),
                    "mean": reals(0.485, 0.456, 0.406)},
    "one as integer": {"v": i(1)},
    "one as real": {"v": r(1)},
    "one as text": {"v": s("1")},
    "true": {"v": b(True)},
    "one in a list": {"v": reals(1)},
    "empty list": {"v": reals()},
    "empty text and empty name": {"": s("")},
    "extremes": {"least": i(-2**63), "most": i(2**63 - 1), "huge": r(math.inf),
                 "low": r(-math.inf), "tiny": r(5e-324), "zero": r(-0.0)},
    "names that are not ASCII": {"größe": s("weiß"), "z": i(1), "ä": i(2)},
    "text with a zero byte": {"v": s("a\0b")},
}

BASE_KEY = {
    "form": "media_bytes", "content": sha(b"a picture"), "modality": "image",
    "model_fingerprint": sha(b"a model"), "pipeline": [["jpeg", 1], ["clip", 1]],
    "preprocessing": PARAMS["one of each"], "dtype": "float16", "dim": 1024,
    "row_meaning": "tokens", "epoch": 0, "tenant": "",
}
KEYS = {
    "a plain picture": {},
    "the same, pipeline in another order": {"pipeline": [["clip", 1], ["jpeg", 1]]},
    "the same, a pipeline step named twice": {"pipeline": [["clip", 1], ["jpeg", 1], ["clip", 1]]},
    "a later decoder": {"pipeline": [["jpeg", 2], ["clip", 1]]},
    "no pipeline": {"pipeline": []},
    "features": {"form": "features"},
    "an identifier of a host": {"form": "host_id"},
    "a video": {"modality": "video", "row_meaning": "packed"},
    "a sound": {"modality": "audio"},
    "float32": {"dtype": "float32"},
    "bfloat16": {"dtype": "bfloat16"},
    "the widest rows": {"dim": 2**32 - 1},
    "a feature map": {"row_meaning": "chw"},
    "an epoch": {"epoch": 2**64 - 1},
    "a tenant": {"tenant": "acme"},
    "a tenant with a name that is not ASCII": {"tenant": "büro-東京"},
    "no parameters": {"preprocessing": {}},
}

SOUND = {
    "feature_size": i(80), "sampling_rate": i(16000), "hop_length": i(160), "n_fft": i(400),
    "chunk_length": i(30), "padding_value": r(0), "return_attention_mask": b(False),
}
WHISPER = {"feature_extractor_type": "WhisperFeatureExtractor"}
QWEN2_AUDIO = {**WHISPER, "processor_class": "Qwen2AudioProcessor", "feature_size": 128}


def sound(config, kwargs=None, family="whisper", **resolved):
    """What a family makes of its file and a request's parameters (tests/unit/preprocess), and the
    key of that. The versions of FFmpeg, which are in real keys too, are those of a host."""
    return {"config": config, "kwargs": kwargs or {}, "pipeline": [["audio", 3], [family, 2]],
            "preprocessing": {**SOUND, **resolved}}


BASE_SOUND = {**BASE_KEY, "content": sha(b"a sound"), "modality": "audio", "dtype": "float32",
              "dim": 1280}
SOUNDS = {
    "whisper": sound(WHISPER),
    "whisper, all told": sound(
        {**WHISPER, "feature_size": 80, "sampling_rate": 16000, "hop_length": 160, "n_fft": 400,
         "chunk_length": 30, "padding_value": 0.0, "padding_side": "right", "dither": 0.0},
        {"chunk_length": 30, "padding_value": 0}),
    "whisper of 128 mels": sound({**WHISPER, "feature_size": 128}, feature_size=i(128)),
    "whisper, five seconds": sound(WHISPER, {"chunk_length": 5}, chunk_length=i(5)),
    "whisper, other padding": sound(WHISPER, {"padding_value": 0.25}, padding_value=r(0.25)),
    "whisper with a mask": sound(WHISPER, {"return_attention_mask": True},
                                 return_attention_mask=b(True)),
    "qwen2-audio": sound(QWEN2_AUDIO, family="qwen2_audio", feature_size=i(128),
                         return_attention_mask=b(True)),
    "qwen2-audio, whatever it says of the mask": sound(
        {**QWEN2_AUDIO, "return_attention_mask": False}, family="qwen2_audio",
        feature_size=i(128), return_attention_mask=b(True)),
}

ONES = "0000803f" * 6
FEATURES = {
    "nothing": {"tensors": [], "side_data": ""},
    "two by three": {"tensors": [{"name": "pixel_values", "dtype": "float32", "shape": [2, 3],
                                  "bytes": ONES}], "side_data": ""},
    "three by two": {"tensors": [{"name": "pixel_values", "dtype": "float32", "shape": [3, 2],
                                  "bytes": ONES}], "side_data": ""},
    "with side data": {"tensors": [{"name": "pixel_values", "dtype": "float32", "shape": [2, 3],
                                    "bytes": ONES}],
                       "side_data": "010000000c000000010000000200000003000000"},
    "a scalar and a second tensor": {
        "tensors": [{"name": "n", "dtype": "int64", "shape": [], "bytes": "0300000000000000"},
                    {"name": "pixel_values", "dtype": "float32", "shape": [6], "bytes": ONES}],
        "side_data": ""},
}
TENANTS = {"none": {"tenant": ""}, "one": {"tenant": "acme"}, "long": {"tenant": "t" * 300}}
FINGERPRINTS = {
    "empty": {"files": {}, "settings": {}},
    "a graph": {"files": {"model.onnx": sha(b"graph"), "model.onnx.data": sha(b"weights")},
                "settings": {"output": "last_hidden_state", "provider": "CPU", "precision": "fp32"}},
}


def group(cases, answer_name, answer, base=None):
    listed = []
    for name, fields in cases.items():
        case = {"name": name, **(base or {}), **fields}
        case[answer_name] = answer(case)
        listed.append(case)
    return listed


def golden():
    return {
        "params": group({name: {"values": values} for name, values in PARAMS.items()},
                        "canonical", lambda case: params(case["values"]).hex()),
        "keys": group(KEYS, "key", key, BASE_KEY),
        "sounds": group(SOUNDS, "key", key, BASE_SOUND),
        "features": group(FEATURES, "digest", features),
        "tenants": group(TENANTS, "digest", tenant),
        "fingerprints": group(FINGERPRINTS, "digest", fingerprint),
    }


def main():
    rendered = json.dumps(golden(), indent=1, ensure_ascii=True) + "\n"
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if TARGET.read_text() == rendered else "golden_keys.json would change")
    TARGET.write_text(rendered)


if __name__ == "__main__":
    main()
