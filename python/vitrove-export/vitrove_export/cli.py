"""vitrove-export MODEL_DIR OUT_DIR"""

import argparse
import sys
from pathlib import Path

from vitrove_export.errors import ExportError
from vitrove_export.families import FAMILIES


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="vitrove-export",
        description="Turns the vision or audio tower of a local Hugging Face model directory into a Vitrove model "
                    f"directory. Model types: {', '.join(FAMILIES)}.",
        epilog="Nothing is fetched. The graph is compared with PyTorch before OUT_DIR appears. "
               "Exit codes: 0 written, 1 the model cannot be exported, 2 wrong arguments.")
    parser.add_argument("model", type=Path, metavar="MODEL_DIR",
                        help="config.json, preprocessor_config.json and safetensors files")
    parser.add_argument("target", type=Path, metavar="OUT_DIR", help="must not exist, or be empty")
    parser.add_argument("--dtype", choices=["float32", "float16", "bfloat16"], default="float32",
                        help="of the cached rows; the graph computes in float32 (default: float32)")
    parser.add_argument("--feature-layer", type=int, metavar="N",
                        help="cache hidden state N (as in hidden_states[N]; -2 for LLaVA) instead of the last; for "
                             "CLIP, SigLIP and Whisper")
    parser.add_argument("--name", help="for people (default: the name of MODEL_DIR)")
    parser.add_argument("--revision", default="", help="for people, such as the commit of the checkpoint")
    return parser.parse_args(arguments)


def main(arguments=None):
    args = parse(arguments)
    try:
        if not args.model.is_dir():
            raise ExportError(f"{args.model} is no directory")
        from vitrove_export.export import Settings, export  # PyTorch takes seconds to load
        report = export(args.model, args.target, Settings(
            name=args.name or args.model.resolve().name, revision=args.revision, dtype=args.dtype,
            feature_layer=args.feature_layer))
    except (ExportError, OSError) as error:  # a disk that is full says so in one line, too
        print(f"vitrove-export: error: {error}", file=sys.stderr)
        return 1
    print(f"{args.target}: {report['tower']} of {args.model}")
    print(f"largest relative error against PyTorch: {report['max_relative_error']:.2g}")
    print(f"fingerprint: {report['fingerprint']}")
    return 0
