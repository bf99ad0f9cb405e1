"""Exported towers through a running server: pictures of many sizes, clips and sounds have the rows that PyTorch gives
(tests/data/towers)."""

import json
import re

import numpy
import pytest

from support import ROOT, data_url

TOWERS = ROOT / "tests" / "data" / "towers"
DESCRIBED = {tower["name"]: tower for tower in json.loads((TOWERS / "towers.json").read_text())["towers"]}


def media_url(name):
    return data_url((TOWERS / "media" / name).read_bytes(), "application/octet-stream")


def items_of(tower):
    """The requests' items, and the reference's rows of each."""
    numbers = numpy.fromfile(TOWERS / tower / "rows.bin", "<f4")
    items, rows = [], []
    for case in DESCRIBED[tower]["cases"]:
        items.append({"url": media_url(case["media"]), "modality": case["modality"]})
        rows.append(numbers[:case["rows"] * case["dim"]].reshape(case["rows"], case["dim"]))
        numbers = numbers[rows[-1].size:]
    return items, rows


def relative_error(rows, reference):
    return numpy.abs(rows - reference).max() / numpy.abs(reference).max()


@pytest.mark.parametrize("tower", sorted(DESCRIBED))
def test_a_request_of_all_kinds_of_items_has_the_reference_rows(start, tower):
    server = start(encoder=TOWERS / tower)
    items, references = items_of(tower)
    reply = server.embeddings(items)
    cases = DESCRIBED[tower]["cases"]
    for index, (case, reference) in enumerate(zip(cases, references, strict=True)):
        told = reply.metadata["items"][index]
        assert told["tokens"] == case["rows"]
        assert told["grid"] == case["grid"]
        assert relative_error(reply.item(index), reference) <= 1e-4, case
    assert server.sources(items) == ["local"] * len(items)


def test_the_towers_that_the_readme_serves_are_there(start):
    named = re.findall(r"--encoder (tests/data/\S+)", (ROOT / "README.md").read_text())
    assert named
    for folder in named:
        server = start(encoder=ROOT / folder)
        assert server.sources([media_url("square.jpg")]) == ["encoded"]
