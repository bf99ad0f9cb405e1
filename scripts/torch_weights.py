"""Reads the tensors of a PyTorch checkpoint in its first file format, without PyTorch.

Such a file is five pickles (magic number, protocol, machine, the state dictionary, the order of the storages)
followed by the storages themselves, each a little-endian element count and the raw elements. The state
dictionary holds no numbers: each tensor refers to a storage by key, offset, shape and strides.

A pickle can name any function and have it called. This reader knows four harmless names and refuses a file that
asks for anything else, so an unknown checkpoint cannot run code.
"""

import collections
import io
import pickle
import struct

import numpy as np

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001
_MAX_ELEMENTS = 1 << 28  # far above any checkpoint read here, far below what would hurt

_Storage = collections.namedtuple("_Storage", "dtype key count")
_Tensor = collections.namedtuple("_Tensor", "storage offset shape strides")


class NotACheckpoint(ValueError):
    pass


def _rebuild_tensor(storage, offset, shape, strides, _requires_grad=False, _hooks=None, *_unused):
    return _Tensor(storage, offset, tuple(shape), tuple(strides))


_ALLOWED = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    ("torch", "FloatStorage"): np.dtype("<f4"),
    ("torch", "LongStorage"): np.dtype("<i8"),
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise NotACheckpoint(f"refusing {module}.{name}, which no plain checkpoint needs") from None

    def persistent_load(self, pid):
        kind, dtype, key, _location, count, view = pid
        if kind != "storage" or view is not None or not isinstance(dtype, np.dtype):
            raise NotACheckpoint("a storage of an unknown kind")
        if not 0 <= count <= _MAX_ELEMENTS:
            raise NotACheckpoint("a storage of an impossible size")
        return _Storage(dtype, key, count)


def _array(tensor, storages):
    data, shape, strides = storages[tensor.storage.key], tensor.shape, tensor.strides
    if len(shape) != len(strides) or min(shape + strides + (tensor.offset,)) < 0:
        raise NotACheckpoint("a tensor of an impossible shape")
    if 0 in shape:
        return np.empty(shape, data.dtype)
    last = tensor.offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    if last >= len(data):
        raise NotACheckpoint("a tensor outside its storage")
    # Weights that came from TensorFlow are stored in its order of axes and viewed in PyTorch's.
    steps = [stride * data.itemsize for stride in strides]
    view = np.lib.stride_tricks.as_strided(data[tensor.offset:], shape, steps, writeable=False)
    return np.ascontiguousarray(view).reshape(shape)


def read(data):
    """data: the file's bytes. Returns {name: array}."""
    file = io.BytesIO(data)
    if _Unpickler(file).load() != _MAGIC or _Unpickler(file).load() != _PROTOCOL:
        raise NotACheckpoint("not a checkpoint in PyTorch's first format")
    if not _Unpickler(file).load().get("little_endian"):
        raise NotACheckpoint("written on a big-endian machine")
    tensors = _Unpickler(file).load()
    order = _Unpickler(file).load()

    kinds = {tensor.storage.key: tensor.storage for tensor in tensors.values()}
    storages = {}
    for key in order:
        storage = kinds[key]
        (count,) = struct.unpack("<q", file.read(8))
        raw = file.read(count * storage.dtype.itemsize) if count == storage.count else b""
        if len(raw) != storage.count * storage.dtype.itemsize:
            raise NotACheckpoint("the file ends early")
        storages[key] = np.frombuffer(raw, storage.dtype)
    if file.read(1):
        raise NotACheckpoint("bytes after the last storage")
    return {name: _array(tensor, storages) for name, tensor in tensors.items()}
