"""Towers of the Qwen family with their Python loops over grids taken out.

Each module holds the original tower and runs its own layers, so that no weight is touched. What the original
computes from grids comes in as inputs (grid_inputs.py). Attention stays within a segment (a temporal step of an
item) or a window of it, so that any number of items can be packed one after the other.
"""

import importlib

import torch
from torch import nn

# Rows of queries that are scored at a time: bounds memory to this many times the keys of the largest segment.
QUERIES_AT_ONCE = 1024


@torch.jit.script
def attend_segments(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, ends: torch.Tensor,
                    scaling: float, at_once: int) -> torch.Tensor:
    """[heads, patches, size] each; `ends` are cu_seqlens. Scripted, since tracing would freeze the loop."""
    parts: list[torch.Tensor] = []
    for segment in range(ends.size(0) - 1):
        begin = int(ends[segment])
        end = int(ends[segment + 1])
        keys = key[:, begin:end].transpose(1, 2)
        values = value[:, begin:end]
        for first in range(begin, end, at_once):
            scores = torch.matmul(query[:, first:min(first + at_once, end)], keys) * scaling
            parts.append(torch.matmul(torch.softmax(scores, dim=-1), values))
    return torch.cat(parts, dim=1)


class Windows:
    """Where the patches of each window stand, when windows of unequal sizes are computed as equal ones.

    Patches are in window order. Every window is given the room of a full one; places without a patch are
    masked as keys and left out of the result.
    """

    def __init__(self, segment_ids, position_ids, side):
        room = side * side
        where = torch.cat([segment_ids[:, None], torch.div(position_ids, side, rounding_mode="floor")], dim=1)
        changes = (where[1:] != where[:-1]).to(torch.int64).sum(1) > 0
        begins = torch.cat([torch.ones_like(segment_ids[:1]) > 0, changes])
        patch = torch.cumsum(torch.ones_like(segment_ids), 0) - 1
        window = torch.cumsum(begins.to(torch.int64), 0) - 1
        first = torch.nonzero(begins)[:, 0]
        last = torch.cat([first[1:] - 1, patch[-1:]])
        place = first[:, None] + torch.arange(room)
        self.source = torch.minimum(place, patch[-1:])
        self.is_missing = (place > last[:, None])[:, None, None, :]
        self.target = window * room + patch - first[window]

    def attend(self, query, key, value, scaling):
        """[patches, heads, size] each."""
        query, key, value = (tensor[self.source].transpose(1, 2) for tensor in (query, key, value))
        scores = torch.matmul(query, key.transpose(2, 3)) * scaling
        scores = scores.masked_fill(self.is_missing, float("-inf"))
        mixed = torch.matmul(torch.softmax(scores, dim=-1), value).transpose(1, 2)
        return mixed.flatten(2).flatten(0, 1)[self.target]


class PackedTower(nn.Module):
    def __init__(self, tower):
        super().__init__()
        self.tower = tower
        # The original's own function, which lives beside its class.
        module = importlib.import_module(type(tower).__module__)
        self.apply_rotary = module.apply_rotary_pos_emb_vision

    def embed(self, pixel_values):
        """A convolution whose stride is its kernel is a product of matrices."""
        projection = self.tower.patch_embed.proj
        return nn.functional.linear(pixel_values, projection.weight.flatten(1), projection.bias)

    def rotary(self, position_ids):
        angles = position_ids[:, :, None].to(torch.float32) * self.tower.rotary_pos_emb.inv_freq
        angles = angles.flatten(1)
        angles = torch.cat([angles, angles], dim=1)
        return angles.cos(), angles.sin()

    def block(self, block, hidden, rotary, attend):
        attention = block.attn
        heads = attention.qkv(block.norm1(hidden)).unflatten(1, (3, attention.num_heads, -1))
        query, key = self.apply_rotary(heads[:, 0], heads[:, 1], *rotary)
        mixed = attend(query, key, heads[:, 2], attention.scaling)
        hidden = hidden + attention.proj(mixed)
        return hidden + block.mlp(block.norm2(hidden))

    def within_segments(self, cu_seqlens):
        def attend(query, key, value, scaling):
            query, key, value = (tensor.transpose(0, 1) for tensor in (query, key, value))
            mixed = attend_segments(query, key, value, cu_seqlens, scaling, QUERIES_AT_ONCE)
            return mixed.transpose(0, 1).flatten(1)
        return attend


class Qwen2VLTower(PackedTower):
    def forward(self, pixel_values, cu_seqlens, position_ids):
        attend = self.within_segments(cu_seqlens)
        rotary = self.rotary(position_ids)
        hidden = self.embed(pixel_values)
        for block in self.tower.blocks:
            hidden = self.block(block, hidden, rotary, attend)
        return self.tower.merger(hidden)


class Qwen2_5VLTower(PackedTower):
    """Most blocks attend within windows, for which blocks of patches are put into window order."""

    def forward(self, pixel_values, cu_seqlens, position_ids, segment_ids, window_index):
        tower = self.tower
        merge = tower.spatial_merge_size
        side = tower.window_size // merge // tower.patch_size * merge
        position_ids = self.in_window_order(position_ids, window_index)
        windows = Windows(self.in_window_order(segment_ids, window_index), position_ids, side)
        within_segments = self.within_segments(cu_seqlens)  # which window order leaves where they are
        rotary = self.rotary(position_ids)
        hidden = self.in_window_order(self.embed(pixel_values), window_index)
        for number, block in enumerate(tower.blocks):
            attend = within_segments if number in tower.fullatt_block_indexes else windows.attend
            hidden = self.block(block, hidden, rotary, attend)
        rows = torch.cumsum(torch.ones_like(window_index), 0) - 1
        where_each_went = torch.zeros_like(window_index).scatter(0, window_index, rows)
        return tower.merger(hidden)[where_each_went]

    def in_window_order(self, tensor, window_index):
        of_blocks = tensor.unflatten(0, (-1, self.tower.spatial_merge_unit))
        return of_blocks[window_index].flatten(0, 1)


class Qwen3VLTower(PackedTower):
    """A row is the merged patch and, after it, what each deepstack layer adds for the language model's layers."""

    def forward(self, pixel_values, cu_seqlens, position_ids, pos_embed_index, pos_embed_weight):
        tower = self.tower
        attend = self.within_segments(cu_seqlens)
        rotary = self.rotary(position_ids)
        hidden = self.embed(pixel_values) + self.learned_positions(pos_embed_index, pos_embed_weight)
        deepstack = []
        for number, block in enumerate(tower.blocks):
            hidden = self.block(block, hidden, rotary, attend)
            if number in tower.deepstack_visual_indexes:
                merger = tower.deepstack_merger_list[tower.deepstack_visual_indexes.index(number)]
                deepstack.append(merger(hidden))
        return torch.cat([tower.merger(hidden), *deepstack], dim=1)

    def learned_positions(self, index, weight):
        corners = [self.tower.pos_embed(index[corner]) * weight[corner][:, None] for corner in range(4)]
        return corners[0] + corners[1] + corners[2] + corners[3]


MODULES = {
    "Qwen2VisionTransformerPretrainedModel": Qwen2VLTower,
    "Qwen2_5_VisionTransformerPretrainedModel": Qwen2_5VLTower,
    "Qwen3VLVisionModel": Qwen3VLTower,
}
