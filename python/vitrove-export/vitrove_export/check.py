"""Does an exported graph give what its tower gives?"""

import numpy as np
import onnxruntime
import torch

from vitrove_export.errors import ExportError
from vitrove_export.families import aux_params
from vitrove_export.grid_inputs import aux_inputs
from vitrove_export.towers import reference_rows

# Of the largest number of an item's rows.
MAX_RELATIVE_ERROR = 1e-4


def check_grids(source):
    """Pictures and clips that show what could go wrong: unequal sizes, several steps, windows cut at borders."""
    params = aux_params(source.family, source.settings)
    merge = params["spatial_merge_size"]
    window = params["window_size"] // merge // params["patch_size"] if "window_size" in params else 2
    return [(1, merge * (window + 1), merge * 2), (3, merge * 2, merge * (window + 2)), (1, merge, merge)]


def patch_length(source):
    projection = source.tower.patch_embed.proj
    return projection.weight[0].numel()


def feature_shape(source):
    """Of one item of a stacked tower."""
    config = source.config
    if source.model_type == "whisper":
        return (config.num_mel_bins, 2 * config.max_source_positions)
    return (config.num_channels, config.image_size, config.image_size)


def example_features(source, items, grids=None):
    generator = torch.Generator().manual_seed(7)
    if grids is None:
        return torch.randn((items, *feature_shape(source)), generator=generator)
    patches = sum(t * h * w for t, h, w in grids)
    return torch.randn((patches, patch_length(source)), generator=generator)


def graph_inputs(source, features, grids=None):
    """All inputs of the graph by name, as arrays."""
    inputs = {source.family.input: features.numpy()}
    if grids is not None:
        inputs |= aux_inputs(source.family.aux_inputs, aux_params(source.family, source.settings), grids)
    return inputs


def relative_error(rows, reference):
    return float(np.abs(rows - reference).max() / np.abs(reference).max())


def check_graph(path, source, feature_layer=None):
    """The largest relative error of some items, run together and one by one."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    errors = packed_errors(session, source) if source.family.layout == "packed" else stacked_errors(
        session, source, feature_layer)
    worst = max(errors)
    if not worst <= MAX_RELATIVE_ERROR:  # also when it is no number
        raise ExportError(f"the exported graph differs from PyTorch by {worst:.2g} of the largest number "
                          f"(allowed: {MAX_RELATIVE_ERROR:g}); nothing was written")
    return worst


def packed_errors(session, source):
    grids = check_grids(source)
    features = example_features(source, len(grids), grids)
    patches = [t * h * w for t, h, w in grids]
    parts = torch.split(features, patches)
    references = [reference_rows(source, part, [grid]).numpy() for part, grid in zip(parts, grids)]
    together = session.run(None, graph_inputs(source, features, grids))[0]
    ends = np.cumsum([len(rows) for rows in references])[:-1]
    for rows, reference in zip(np.split(together, ends), references, strict=True):
        yield relative_error(rows, reference)
    for part, grid, reference in zip(parts, grids, references, strict=True):
        yield relative_error(session.run(None, graph_inputs(source, part, [grid]))[0], reference)


def stacked_errors(session, source, feature_layer):
    for items in (1, 2):
        features = example_features(source, items)
        reference = reference_rows(source, features, feature_layer=feature_layer).numpy()
        yield relative_error(session.run(None, graph_inputs(source, features))[0], reference)
