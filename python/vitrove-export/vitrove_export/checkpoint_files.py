"""Which files of a checkpoint hold a tower's tensors."""

import json

from vitrove_export.errors import ExportError


def own_name(name, names):
    """The tower's own name of a tensor, or None for one of another part of the model. `names` maps the beginnings of
    the checkpoint's names to those of the tower's."""
    for beginning, own in names.items():
        if name.startswith(beginning):
            return own + name.removeprefix(beginning)
    return None


def safetensors_files(directory, names):
    """Those that hold the tower's tensors: of a large checkpoint the others need not be there."""
    index = directory / "model.safetensors.index.json"
    if index.is_file():
        weight_map = json.loads(index.read_text())["weight_map"]
        named = {file for tensor, file in weight_map.items() if own_name(tensor, names) is not None}
        files = [directory / name for name in sorted(named)]
    else:
        files = [directory / "model.safetensors"]
    for file in files:
        if not file.is_file():
            raise ExportError(f"{file.name} is missing; weights are read from safetensors files")
    return files
