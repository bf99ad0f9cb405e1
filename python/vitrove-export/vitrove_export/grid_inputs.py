"""The auxiliary inputs of packed towers, from grids: what Vitrove computes, in numpy.

The export checks its graph with these, so they follow the same description (docs/export.md) as the C++
that serves it, and not the model's own Python.
"""

import numpy as np

from vitrove_export.errors import ExportError


def aux_inputs(kinds, params, grids):
    """A dict from each kind to its array, for items of `grids` [(t, h, w), ...] one after the other."""
    makers = {
        "cu_seqlens": lambda: cu_seqlens(grids),
        "segment_ids": lambda: segment_ids(grids),
        "position_ids": lambda: position_ids(grids, params["spatial_merge_size"]),
        "window_index": lambda: window_index(grids, params["spatial_merge_size"], window_side(params)),
        "pos_embed_index": lambda: stretched(grids, params)[0],
        "pos_embed_weight": lambda: stretched(grids, params)[1],
    }
    return {kind: makers[kind]() for kind in kinds}


def window_side(params):
    """Blocks of a window's side."""
    return params["window_size"] // params["spatial_merge_size"] // params["patch_size"]


def segment_sizes(grids):
    return [h * w for t, h, w in grids for _ in range(t)]


def cu_seqlens(grids):
    return np.cumsum([0] + segment_sizes(grids), dtype=np.int64)


def segment_ids(grids):
    sizes = segment_sizes(grids)
    return np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)


def block_order(grid, merge):
    """Rows and columns of one temporal step's patches, in the order of preprocessing."""
    _, height, width = grid
    if height % merge or width % merge:
        raise ExportError(f"a grid of {height} by {width} patches does not divide into blocks of {merge}")
    blocks = np.indices((height, width)).reshape(2, height // merge, merge, width // merge, merge)
    return blocks.transpose(0, 1, 3, 2, 4).reshape(2, -1)


def position_ids(grids, merge):
    steps = [np.tile(block_order(grid, merge).T, (grid[0], 1)) for grid in grids]
    return np.concatenate(steps).astype(np.int64)


def window_index(grids, merge, side):
    parts, first = [], 0
    for t, h, w in grids:
        height, width = h // merge, w // merge
        rows, columns = np.divmod(np.arange(height * width), width)
        # Stable: inside a window blocks stay in reading order.
        order = np.lexsort((columns // side, rows // side))
        for _ in range(t):
            parts.append(first + order)
            first += height * width
    return np.concatenate(parts).astype(np.int64)


def stretched(grids, params):
    """pos_embed_index and pos_embed_weight, each [4, patches]."""
    side, merge = params["num_grid_per_side"], params["spatial_merge_size"]
    index, weight = [], []
    for grid in grids:
        rows, columns = block_order(grid, merge)
        top, bottom, down = neighbours(grid[1], side)
        left, right, along = neighbours(grid[2], side)
        down, along = down[rows], along[columns]
        corners = [(top, left), (top, right), (bottom, left), (bottom, right)]
        step_index = np.stack([row[rows] * side + column[columns] for row, column in corners])
        step_weight = np.stack([(1 - down) * (1 - along), (1 - down) * along, down * (1 - along), down * along])
        index.append(np.tile(step_index, (1, grid[0])))
        weight.append(np.tile(step_weight, (1, grid[0])))
    return np.concatenate(index, axis=1).astype(np.int64), np.concatenate(weight, axis=1).astype(np.float32)


def neighbours(count, side):
    """For `count` places spread over `side` learned ones: the one before, the one after, and the way between."""
    at = np.linspace(0, side - 1, count, dtype=np.float32)
    low = at.astype(np.int64)
    return low, np.minimum(low + 1, side - 1), at - low.astype(np.float32)
