"""Stored values as docs/value-format.md describes them, to read and to forge.

    value = StoredValue(path.read_bytes())
    value.set("rows", 2**32 - 1)
    path.write_bytes(value.sealed())     # with checksums that hold
"""

import ctypes
import struct

HEADER = 256
FIELDS = {
    "magic": (0, "8s"), "version": (8, "<H"), "min_reader": (10, "<H"), "kind": (12, "B"),
    "modality": (13, "B"), "dtype": (14, "B"), "codec": (15, "B"), "rows": (16, "<I"),
    "dim": (20, "<I"), "payload_bytes": (24, "<Q"), "raw_bytes": (32, "<Q"),
    "side_bytes": (40, "<I"), "algorithm": (44, "B"), "reserved": (45, "3s"),
    "created": (48, "<Q"), "cost": (56, "<Q"), "key": (64, "32s"), "model": (96, "32s"),
    "tenant": (128, "32s"), "checksum": (160, "16s"), "more_reserved": (176, "40s"),
    "mac": (216, "32s"), "header_checksum": (248, "<Q"),
}


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


xxhash = ctypes.CDLL("libxxhash.so.0")
for name, result in (("XXH3_64bits", ctypes.c_uint64), ("XXH3_128bits", Hash128)):
    function = getattr(xxhash, name)
    function.argtypes, function.restype = [ctypes.c_char_p, ctypes.c_size_t], result


def payload_checksum(data):
    digest = xxhash.XXH3_128bits(data, len(data))
    return struct.pack(">QQ", digest.high, digest.low)


class StoredValue:
    def __init__(self, content):
        self.header = bytearray(content[:HEADER])
        self.payload = bytes(content[HEADER:])  # rows, then side data

    def get(self, field):
        offset, form = FIELDS[field]
        return struct.unpack_from(form, self.header, offset)[0]

    def set(self, field, value):
        offset, form = FIELDS[field]
        struct.pack_into(form, self.header, offset, value)
        return self

    @property
    def rows(self):
        return self.payload[:self.get("payload_bytes")]

    def is_sound(self):
        return (self.get("checksum") == payload_checksum(self.payload)
                and self.get("header_checksum") == self.header_hash())

    def header_hash(self):
        return xxhash.XXH3_64bits(bytes(self.header[:248]), 248)

    def sealed(self):
        """The bytes, with both checksums made to hold."""
        self.set("checksum", payload_checksum(self.payload))
        self.set("header_checksum", self.header_hash())
        return bytes(self.header) + self.payload
