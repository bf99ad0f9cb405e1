"""Comparing pictures by what a server makes of them."""

import numpy

from support import data_url

# Every picture of the stub gets as many rows as it has patches of 14 x 14, so that the number of
# rows tells the grid.
STUB_BY_SIZE = "stub:dim=64,tokens=1-4096,seed=1"


def rows_of(server, file, **fields):
    return server.embeddings([data_url(file)], **fields).item(0)


def same_rows(server, first, second):
    return rows_of(server, first).tobytes() == rows_of(server, second).tobytes()


def distance(vit, first, second):
    """Relative, of what a network makes of two pictures."""
    a, b = rows_of(vit, first), rows_of(vit, second)
    return float(numpy.linalg.norm(a - b) / numpy.linalg.norm(a))


def item_of(server, file):
    return server.encode_ok([data_url(file)])["items"][0]
