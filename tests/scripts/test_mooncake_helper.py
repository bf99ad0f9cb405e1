"""src/stores/mooncake/gathering.py and what the Mooncake helper does with it: which gets go together,
and that nobody suffers from his company. The protocol has tests of its own (tests/unit/mooncake)."""

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "src" / "stores" / "mooncake"


@pytest.fixture
def modules(monkeypatch):
    """(gathering, helper)"""
    monkeypatch.setattr(sys, "path", ["", str(FOLDER), *sys.path])  # helper.py drops the first
    for name in ("frames", "gathering", "helper"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import gathering
    import helper
    yield gathering, helper
    for name in ("frames", "gathering", "helper"):
        sys.modules.pop(name, None)


def question(gathering, call, *keys, size=100):
    return gathering.Question(call, [(key, [(0, 0, size)]) for key in keys])


def calls(questions):
    return [one.call for one in questions]


def test_a_lone_caller_waits_for_nobody(modules):
    gathering, _ = modules
    all_of_them = gathering.Gathering()
    for call in range(3):
        assert calls(all_of_them.begin(question(gathering, call, "a"))) == [call]
        assert all_of_them.patience() is None
        assert all_of_them.next() == []


def test_what_comes_during_a_call_goes_together_after_it(modules):
    gathering, _ = modules
    all_of_them = gathering.Gathering()
    assert calls(all_of_them.begin(question(gathering, 1, "a"))) == [1]
    for call in (2, 3, 4):
        assert all_of_them.begin(question(gathering, call, f"k{call}")) is None
    assert 0 <= all_of_them.patience() <= gathering.PATIENCE
    assert calls(all_of_them.next()) == [2, 3, 4]
    assert all_of_them.begin(question(gathering, 5, "k2")) is None, "that call is under way"
    assert calls(all_of_them.next()) == [5]
    assert all_of_them.next() == []
    assert calls(all_of_them.begin(question(gathering, 6, "a"))) == [6], "nobody comes back"


@pytest.mark.parametrize("odd", ["the same key", "a large value", "too many keys", "too many bytes"])
def test_what_does_not_fit_in_is_asked_for_by_itself(modules, odd):
    gathering, _ = modules
    all_of_them = gathering.Gathering()
    all_of_them.begin(question(gathering, 1, "a"))
    assert all_of_them.begin(question(gathering, 2, "b")) is None
    if odd == "the same key":
        other = question(gathering, 3, "c", "b")
    elif odd == "a large value":
        other = question(gathering, 3, "c", size=gathering.LARGEST_QUESTION + 1)
    elif odd == "too many keys":
        other = question(gathering, 3, *(f"k{i}" for i in range(gathering.MOST_ITEMS)))
    else:
        size = gathering.LARGEST_QUESTION
        for call in range(10, 10 + gathering.LARGEST_BATCH // size - 1):
            assert all_of_them.begin(question(gathering, call, f"k{call}", size=size)) is None
        other = question(gathering, 3, "c", size=size)
    assert calls(all_of_them.begin(other)) == [3]
    assert calls(all_of_them.next())[0] == 2, "whoever ends first takes what waits"
    assert all_of_them.next() == []
    assert all_of_them.next() == []
    assert calls(all_of_them.begin(question(gathering, 4, "a"))) == [4]


def test_who_waits_long_enough_waits_no_longer(modules):
    gathering, _ = modules
    all_of_them = gathering.Gathering()
    all_of_them.begin(question(gathering, 1, "a"))
    all_of_them.begin(question(gathering, 2, "b"))
    assert calls(all_of_them.take_over()) == [2]
    assert all_of_them.take_over() == [] and all_of_them.patience() is None
    assert all_of_them.next() == [], "the one that took over is done"
    assert all_of_them.begin(question(gathering, 3, "c")) is None, "the first is not"
    assert calls(all_of_them.next()) == [3]


class Client:
    """Of Mooncake: knows the keys of one letter, and is spoilt by "bad"."""

    def __init__(self, spoilt):
        self.spoilt, self.batches = spoilt, []

    def batch_get_into_multi_buffers(self, keys, _pointers, sizes):
        self.batches.append(list(keys))
        if "bad" in keys and self.spoilt == "throws":
            raise RuntimeError("no")
        codes = [sum(size) if len(key) == 1 else -704 for key, size in zip(keys, sizes)]
        return codes[:-1] if "bad" in keys else codes

    def get_size(self, _key):
        return -704


class Memory:
    address, size = 4096, 1 << 20


@pytest.fixture
def helper_of(modules):
    """helper_of(client) -> a helper that is set up, without a socket."""
    _, helper = modules

    def make(client):
        one = helper.Helper.__new__(helper.Helper)
        one.store, one.regions, one.ready = client, {0: Memory}, True
        return one

    return make


def test_answers_go_to_whom_they_belong(modules, helper_of):
    gathering, _ = modules
    client = Client(None)
    together = [question(gathering, 1, "a", "none"), question(gathering, 2, "b", size=7)]
    assert helper_of(client).answers_together(together) == [[(100, 0), (-704, 0)], [(7, 0)]]
    assert client.batches == [["a", "none", "b"]]


@pytest.mark.parametrize("spoilt", ["throws", "answers too few"])
def test_one_that_spoils_the_batch_spoils_his_own(modules, helper_of, spoilt):
    gathering, _ = modules
    client = Client(spoilt)
    together = [question(gathering, 1, "a"), question(gathering, 2, "bad"),
                question(gathering, 3, "b")]
    assert helper_of(client).answers_together(together) == [[(100, 0)], [(-1, 0)], [(100, 0)]]
    assert client.batches == [["a", "bad", "b"], ["a"], ["bad"], ["b"]]
