#!/usr/bin/env python3
"""Makes a vision transformer so small that a test can run it hundreds of times a second.

    scripts/make_tiny_vit.py                            build/sample/tiny-vit, seed 1
    scripts/make_tiny_vit.py --seed 2 --out DIRECTORY   the same shapes with other weights: another model

Why: the tokens layout, batching, model changes and the fingerprint need a transformer, not a good one. The
weights are random. Two layers, four heads, 64 x 64 pixels in patches of 16: 16 patches and a class token in
front, 17 rows of 32.

The bytes of model.onnx depend on the seed alone, not on the machine or NumPy's version: the random numbers and
all that is done to them are exact in IEEE arithmetic.

Leaves: DIRECTORY/model.onnx                 pixel_values [N,3,64,64] -> last_hidden_state [N,17,32]
        DIRECTORY/preprocessor_config.json   as CLIP's, for 64 pixels
        DIRECTORY/vitrove.json
"""

import argparse
from pathlib import Path

import setup_lib as lib

lib.run_in_venv()

IMAGE, PATCH, DIM, LAYERS, HEADS, MLP = 64, 16, 32, 2, 4, 64
PATCHES = (IMAGE // PATCH) ** 2
TOKENS = PATCHES + 1
HEAD_DIM = DIM // HEADS

PREPROCESSOR = {
    "image_processor_type": "CLIPImageProcessor",
    "do_convert_rgb": True,
    "do_resize": True,
    "size": {"shortest_edge": IMAGE},
    "resample": 3,
    "do_center_crop": True,
    "crop_size": {"height": IMAGE, "width": IMAGE},
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}


class Graph:
    def __init__(self, seed):
        import numpy as np
        from onnx import helper, numpy_helper
        self.np, self.helper, self.numpy_helper = np, helper, numpy_helper
        self.random = np.random.RandomState(seed)  # frozen by NumPy's promise, unlike default_rng
        self.nodes, self.initializers = [], []

    def constant(self, name, array):
        self.initializers.append(self.numpy_helper.from_array(self.np.asarray(array), name))
        return name

    def weight(self, name, shape, fan_in):
        """Uniform numbers of variance 1 / fan_in."""
        np = self.np
        bound = np.sqrt(np.float64(3) / fan_in)
        return self.constant(name, ((2 * self.random.random_sample(shape) - 1) * bound).astype(np.float32))

    def add(self, op, inputs, output, **attributes):
        self.nodes.append(self.helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def linear(self, name, x, inputs, outputs):
        product = self.add("MatMul", [x, self.weight(f"{name}.weight", (inputs, outputs), inputs)], f"{name}.product")
        return self.add("Add", [product, self.weight(f"{name}.bias", (outputs,), inputs)], name)

    def norm(self, name, x, output=None):
        np = self.np
        scale = self.constant(f"{name}.weight", np.ones(DIM, np.float32))
        bias = self.weight(f"{name}.bias", (DIM,), DIM)
        return self.add("LayerNormalization", [x, scale, bias], output or name, axis=-1, epsilon=1e-5)

    def gelu(self, name, x):
        scaled = self.add("Mul", [x, "sqrt_half"], f"{name}.scaled")
        erf = self.add("Erf", [scaled], f"{name}.erf")
        one_more = self.add("Add", [erf, "one"], f"{name}.one_more")
        half = self.add("Mul", [x, "half"], f"{name}.half")
        return self.add("Mul", [half, one_more], name)

    def heads(self, name, x, axes):
        """[N, tokens, dim] to one matrix a head."""
        split = self.add("Reshape", [x, "split_heads"], f"{name}.split")
        return self.add("Transpose", [split], f"{name}.heads", perm=axes)

    def attention(self, name, x):
        query = self.heads(f"{name}.query", self.linear(f"{name}.q", x, DIM, DIM), [0, 2, 1, 3])
        key = self.heads(f"{name}.key", self.linear(f"{name}.k", x, DIM, DIM), [0, 2, 3, 1])
        value = self.heads(f"{name}.value", self.linear(f"{name}.v", x, DIM, DIM), [0, 2, 1, 3])
        scores = self.add("MatMul", [query, key], f"{name}.scores")
        scaled = self.add("Mul", [scores, "head_scale"], f"{name}.scaled")
        weights = self.add("Softmax", [scaled], f"{name}.weights", axis=-1)
        mixed = self.add("MatMul", [weights, value], f"{name}.mixed")
        back = self.add("Transpose", [mixed], f"{name}.back", perm=[0, 2, 1, 3])
        joined = self.add("Reshape", [back, "join_heads"], f"{name}.joined")
        return self.linear(f"{name}.out", joined, DIM, DIM)

    def build(self):
        np = self.np
        self.constant("sqrt_half", np.float32(0.7071067811865476))
        self.constant("half", np.float32(0.5))
        self.constant("one", np.float32(1))
        self.constant("head_scale", np.float32(1 / np.sqrt(np.float64(HEAD_DIM))))
        self.constant("split_heads", np.array([0, TOKENS, HEADS, HEAD_DIM], np.int64))  # 0: as it is
        self.constant("join_heads", np.array([0, TOKENS, DIM], np.int64))
        self.constant("flat_patches", np.array([0, DIM, PATCHES], np.int64))
        # One row of zeros in front of the patches. The class token itself is row 0 of the positions.
        self.constant("room_for_class", np.array([0, 1, 0, 0, 0, 0], np.int64))

        fan_in = 3 * PATCH * PATCH
        x = self.add("Conv", ["pixel_values", self.weight("patch.weight", (DIM, 3, PATCH, PATCH), fan_in),
                              self.weight("patch.bias", (DIM,), fan_in)], "patch",
                     kernel_shape=[PATCH, PATCH], strides=[PATCH, PATCH])
        x = self.add("Reshape", [x, "flat_patches"], "patch.flat")
        x = self.add("Transpose", [x], "patch.rows", perm=[0, 2, 1])
        x = self.add("Pad", [x, "room_for_class"], "patch.padded")
        x = self.add("Add", [x, self.weight("positions", (1, TOKENS, DIM), 4)], "embedded")
        for i in range(LAYERS):
            name = f"layer{i}"
            x = self.add("Add", [x, self.attention(f"{name}.attention", self.norm(f"{name}.norm1", x))], f"{name}.attended")
            y = self.linear(f"{name}.mlp.wide", self.norm(f"{name}.norm2", x), DIM, MLP)
            y = self.linear(f"{name}.mlp.narrow", self.gelu(f"{name}.mlp.gelu", y), MLP, DIM)
            x = self.add("Add", [x, y], f"{name}.out")
        self.norm("final_norm", x, output="last_hidden_state")


def make_model(seed):
    """Returns the bytes of model.onnx."""
    import onnx
    from onnx import TensorProto, helper

    graph = Graph(seed)
    graph.build()
    model = helper.make_model(
        helper.make_graph(
            graph.nodes, "tiny-vit",
            [helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["N", 3, IMAGE, IMAGE])],
            [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["N", TOKENS, DIM])],
            graph.initializers),
        producer_name="vitrove", opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString(deterministic=True)


def main():
    parser = argparse.ArgumentParser(description="Makes a tiny vision transformer with random weights.")
    parser.add_argument("--seed", type=int, default=1, help="of the weights (default: 1)")
    parser.add_argument("--out", type=Path, default=lib.BUILD / "sample" / "tiny-vit",
                        help="the model directory, replaced as a whole (default: build/sample/tiny-vit)")
    args = parser.parse_args()
    if not 0 <= args.seed < 2**32:
        parser.error("--seed must be between 0 and 2^32 - 1")
    if args.out.exists() and not (args.out / "vitrove.json").exists() and any(args.out.iterdir()):
        parser.error(f"{args.out} exists and is not a model directory")

    def build(directory):
        model = make_model(args.seed)
        (directory / "model.onnx").write_bytes(model)
        lib.write_json(directory / "preprocessor_config.json", PREPROCESSOR)
        lib.write_json(directory / "vitrove.json", {
            "modality": "image",
            "input": "pixel_values",
            "output": "last_hidden_state",
            "layout": "tokens",
            "dtype": "float32",
            "name": "tiny-vit",
            "revision": f"seed-{args.seed}",
        })
        lib.say(f"model.onnx of seed {args.seed}: {len(model)} bytes, SHA-256 {lib.sha256(model)}")

    key = lib.key_of(Path(__file__), lib.SCRIPTS / "setup_lib.py", lib.SCRIPTS / "requirements.txt", args.seed)
    lib.make_directory(args.out.resolve(), key, build)


if __name__ == "__main__":
    main()
