"""Stored values by somebody who can write to the store: field case B86.

Beside everything that must fail stands the nearest thing that must work, so that a server that
refuses all does not pass.
"""

import hashlib
import random
import struct

import pytest

from bystander import Bystander
from stored_value import FIELDS, StoredValue, payload_checksum
from support import MEMORY_FACTOR, file_store, png_url, stored_values, wait_for_puts

FLAT = (64 << 20) * MEMORY_FACTOR

SIDE_GRID = struct.pack("<HHI", 1, 0, 12) + struct.pack("<III", 1, 5, 7)


def with_side(value, side):
    value.payload = value.rows + side
    return value.set("side_bytes", len(side))


def self_alias(value):
    target = struct.pack("<HHI", 4, 0, 32) + value.get("key")
    value.payload = target
    return (value.set("kind", 2).set("rows", 0).set("payload_bytes", 0).set("raw_bytes", 0)
            .set("side_bytes", len(target)))


def dangling_alias(value):
    key = value.get("key")
    return with_target(self_alias(value), hashlib.sha256(key).digest())


def with_target(value, digest):
    value.payload = struct.pack("<HHI", 4, 0, 32) + digest
    return value


def not_finite(value, word):
    value.payload = word + value.payload[4:]
    return value


def resized(value, rows, dim):
    """Sizes that agree with each other; the object is as long as it ever was."""
    size = min(rows * dim * 4, 2**64 - 1)
    return value.set("rows", rows).set("dim", dim).set("payload_bytes", size).set("raw_bytes", size)


HOSTILE = {
    "rows of 2^32 - 1": lambda v: v.set("rows", 2**32 - 1),
    "no rows": lambda v: v.set("rows", 0),
    "no dim": lambda v: v.set("dim", 0),
    "dim of 2^32 - 1": lambda v: v.set("dim", 2**32 - 1),
    "four tebibytes": lambda v: resized(v, 2**30, 2**10),
    "all of 64 bits": lambda v: resized(v, 2**32 - 1, 2**32 - 1),
    "payload of 2^63": lambda v: v.set("payload_bytes", 2**63),
    "raw bytes of 2^63": lambda v: v.set("raw_bytes", 2**63),
    "side data of 2^32 - 1": lambda v: v.set("side_bytes", 2**32 - 1),
    "side data that is not there": lambda v: v.set("side_bytes", 100),
    "dtype 99": lambda v: v.set("dtype", 99),
    "dtype 0": lambda v: v.set("dtype", 0),
    "kind 99": lambda v: v.set("kind", 99),
    "modality 99": lambda v: v.set("modality", 99),
    "a codec": lambda v: v.set("codec", 7),
    "another checksum algorithm": lambda v: v.set("algorithm", 9),
    "another magic": lambda v: v.set("magic", b"VITROVE!"),
    "a future version": lambda v: v.set("version", 9).set("min_reader", 9),
    "version 0": lambda v: v.set("version", 0).set("min_reader", 0),
    "a reserve that is used": lambda v: v.set("more_reserved", b"\1" * 40),
    "NaN": lambda v: not_finite(v, b"\0\0\xc0\x7f"),
    "infinity": lambda v: not_finite(v, b"\0\0\x80\x7f"),
    "side data of noise": lambda v: with_side(v, b"\xff" * 24),
    "side data that overruns": lambda v: with_side(
        v, struct.pack("<HHI", 1, 0, 2**32 - 1) + bytes(12)),
    "side data twice": lambda v: with_side(v, SIDE_GRID * 2),
    "an alias of itself": self_alias,
    "an alias of nothing": dangling_alias,
}


def plant(folder, items, forge):
    """Rewrites the value of each item; returns how many."""
    by_name = {path.name: path for path in stored_values(folder)}
    for number, item in enumerate(items):
        path = by_name[item["key"]]
        value = StoredValue(path.read_bytes())
        assert value.is_sound()
        planted = forge(number, value)
        path.write_bytes(planted)


@pytest.fixture
def planted(start, store_folder):
    """planted(seeds, forge) -> (a server over the forged store, the true replies)."""
    def make(seeds, forge):
        writer = start(store=file_store(store_folder))
        golden = [writer.embeddings([png_url(seed)]) for seed in seeds]
        assert writer.stop() == 0
        plant(store_folder, [reply.metadata["items"][0] for reply in golden], forge)
        return start(store=file_store(store_folder)), golden

    return make


def test_hostile_values_are_misses_and_cost_nothing(planted):
    """B86: each field driven out of its range, under checksums that hold."""
    names = list(HOSTILE)
    server, golden = planted(range(860, 860 + len(names)),
                             lambda number, value: HOSTILE[names[number]](value).sealed())
    server.reset_peak()
    before = server.memory()
    with Bystander(server):
        for number, name in enumerate(names):
            reply = server.embeddings([png_url(860 + number)])
            assert reply.metadata["items"][0]["source"] == "encoded", name
            assert reply.raw == golden[number].raw, name
    assert server.memory("VmHWM") - before < FLAT
    rejected = server.metrics().sum("vitrove_rejected_values_total")
    assert rejected >= len(names) - 2, "an alias without a target is a miss like any other"
    wait_for_puts(server)
    server.post("/flush?scope=local")
    again = [server.embeddings([png_url(860 + number)]) for number in range(len(names))]
    left = {name for name, reply in zip(names, again)
            if reply.metadata["items"][0]["source"] != "store"}
    assert not left, "all are mended"


def test_two_hundred_fuzzed_values_are_misses(planted):
    """B86: random damage, half of it under checksums that hold."""
    choose = random.Random(86)
    # Any cost or time may be true, checksums are made to hold, and a value of a later version that
    # asks for no later reader may differ in what this reader ignores.
    fields = [name for name in FIELDS if name not in (
        "cost", "created", "checksum", "header_checksum", "version", "min_reader")]

    def forge(number, value):
        kind = number % 4
        if kind == 0:  # a field or three of noise
            for field in choose.sample(fields, choose.randint(1, 3)):
                offset, form = FIELDS[field]
                old = bytes(value.header[offset:offset + struct.calcsize(form)])
                new = choose.randbytes(len(old))
                value.header[offset:offset + len(old)] = new if new != old else bytes(len(old))
            return value.sealed()
        whole = bytearray(value.sealed())
        if kind == 1:  # a few bytes anywhere
            for _ in range(choose.randint(1, 8)):
                whole[choose.randrange(len(whole))] ^= choose.randint(1, 255)
        elif kind == 2:  # another length
            keep = choose.randrange(len(whole))
            is_cut = number % 8 == 2
            return bytes(whole[:keep] if is_cut else whole + choose.randbytes(keep + 1))
        else:  # noise all over
            return choose.randbytes(choose.choice([0, 1, 255, 256, 257, 4096, 100_000]))
        return bytes(whole)

    seeds = range(1000, 1200)
    server, golden = planted(seeds, forge)
    server.reset_peak()
    before = server.memory()
    with Bystander(server):
        for number, seed in enumerate(seeds):
            reply = server.embeddings([png_url(seed)])
            assert reply.raw == golden[number].raw, number
            assert reply.metadata["items"][0]["source"] == "encoded", number
    assert server.memory("VmHWM") - before < FLAT


def test_a_forger_of_checksums_gets_rows_and_nothing_else(planted):
    """B86: the tool of these tests can write values that are believed, so their refusal means
    something; docs/value-format.md says that whoever may write to a store is trusted."""
    def other_rows(_, value):
        value.payload = bytes(len(value.rows)) + value.payload[len(value.rows):]
        return value.sealed()

    server, golden = planted([900], other_rows)
    with Bystander(server):
        reply = server.embeddings([png_url(900)])
    assert reply.metadata["items"][0]["source"] == "store"
    assert not reply.rows().any()
    assert reply.shapes == golden[0].shapes
    assert payload_checksum(b"") != payload_checksum(b"\0")
