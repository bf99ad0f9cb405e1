"""SGLang's own EmbeddingCacheController, for bench_controller to measure beside ours.

Reads one command a line and answers one number a line, nanoseconds of processor time an operation:

    fill ENTRIES DIM PAGE_BYTES    a new cache of one-page entries without rows; answers 0
    hit N                          N lookups in shuffled order: get_pool_views, release_pool_views
    full PAGES ROWS DIM PAGE_BYTES a new cache of PAGES pages, full of entries of one page
    insert N                       N new entries, each of which evicts one

What is stubbed: the packages above the module and the two modules it imports from SGLang (the enum
Modality, and the answer "one rank" of get_parallel), since the real ones import the whole engine.
Pinned memory is off. Rows are inserted from host memory: `_copy_tensor_to_pool`, which would copy from
a GPU on a stream, is one plain copy here, and rows say "cuda" where they are asked for their device. The page
size is set, so that both sides have the same pages. All of this favours SGLang, if anybody: its
server also asks batch_is_exist() through an event loop before each of these calls.
"""

import enum
import hashlib
import importlib.util
import logging
import random
import sys
import time
import types
from pathlib import Path

import torch

logging.disable(logging.CRITICAL)  # it logs every eviction


class Modality(enum.Enum):
    IMAGE = 1
    VIDEO = 2
    AUDIO = 3


def stub(name, **members):
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module
    return module


def load_controller_module():
    folder = Path(importlib.util.find_spec("sglang").origin).parent
    for name in ("sglang", "sglang.srt", "sglang.srt.managers", "sglang.srt.mem_cache"):
        stub(name).__path__ = [str(folder.joinpath(*name.split(".")[1:]))]
    one_rank = types.SimpleNamespace(tp_size=1, tp_rank=0,
                                     tp_group=types.SimpleNamespace(cpu_group=None))
    stub("sglang.srt.managers.schedule_batch", Modality=Modality)
    stub("sglang.srt.runtime_context", get_parallel=lambda: one_rank)
    import sglang.srt.mem_cache.embedding_cache_controller as module
    return module


sglang = load_controller_module()


class OnDevice:
    """Rows that lie in host memory and pass for a tensor on a GPU."""

    device = types.SimpleNamespace(type="cuda")

    def __init__(self, rows):
        self.rows, self.ndim, self.shape = rows, rows.ndim, rows.shape


class HostController(sglang.EmbeddingCacheController):
    def _create_pools(self, pin_memory):
        return super()._create_pools(pin_memory=False)

    def _copy_tensor_to_pool(self, tensor, entry, pool):
        self._copy_embedding_page_runs(tensor.rows, pool.tensor, entry, pool, src_is_pool=False)
        return sglang.AsyncCopyHandle(event=None, entry_hash=entry.hash)


def make_controller(pages, dim, page_bytes):
    sglang.TARGET_PAGE_BYTES = page_bytes
    store = types.SimpleNamespace(register_buffer=lambda tensor: None)
    pool_bytes = (pages + 1) * page_bytes / sglang.VISION_POOL_RATIO
    return HostController(store, max_pool_size_gb=pool_bytes / 1024**3,
                          hidden_dims={Modality.IMAGE: dim})


def key(number):
    return hashlib.sha256(b"bench/%d" % number).hexdigest()


class Side:
    def fill(self, entries, dim, page_bytes):
        self.cache = make_controller(entries, dim, page_bytes)
        pool = self.cache.vision_pool
        self.keys = [key(number) for number in range(entries)]
        with self.cache.lock:
            for name in self.keys:
                entry = sglang.EmbeddingCacheEntry(
                    hash=name, modality=Modality.IMAGE, num_tokens=1, dim=dim,
                    page_runs=self.cache._allocate_with_eviction(pool, 1),
                    state=sglang.EntryState.FILLING)
                self.cache.entries[name] = entry
                self.cache._mark_ready(entry)
        random.Random(1).shuffle(self.keys)
        return 0

    def hit(self, count):
        views, release, keys = self.cache.get_pool_views, self.cache.release_pool_views, self.keys
        started = time.thread_time_ns()
        for i in range(count):
            name = [keys[i % len(keys)]]
            found = views(name)
            assert found[0] is not None
            release(name)
        return (time.thread_time_ns() - started) / count

    def full(self, pages, rows, dim, page_bytes):
        self.cache = make_controller(pages, dim, page_bytes)
        self.rows = OnDevice(torch.full((rows, dim), 0.5))
        self.inserted = 0
        self.insert(pages + 1)
        return 0

    def insert(self, count):
        cache = self.cache
        names = [key(self.inserted + i) for i in range(count)]
        self.inserted += count
        started = time.thread_time_ns()
        for name in names:
            handles = cache.store_to_pool_async([name], [self.rows], Modality.IMAGE)
            assert handles
            cache.wait_store_to_pool(handles)
        return (time.thread_time_ns() - started) / count


def main():
    torch.set_num_threads(1)
    side = Side()
    for line in sys.stdin:
        command, *numbers = line.split()
        print(getattr(side, command)(*map(int, numbers)), flush=True)


if __name__ == "__main__":
    main()
