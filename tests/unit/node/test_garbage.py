"""Full collections stay short however large the image is."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

from quorate.quorum.controller.state.partition_index import Keys, packed
from quorate.quorum.ids import Uuid
from quorate.quorum.node import garbage


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    callbacks, thresholds = list(gc.callbacks), gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.callbacks[:] = callbacks


def test_what_made_a_collection_long_is_not_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    garbage.keep_collections_short()
    monkeypatch.setattr(garbage, "LONG_S", 1e9)
    gc.collect()
    frozen = gc.get_freeze_count()
    kept = [[number] for number in range(1000)]
    monkeypatch.setattr(garbage, "LONG_S", 0.0)
    gc.collect()
    assert gc.get_freeze_count() - frozen >= len(kept)


def test_garbage_that_came_later_is_still_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    garbage.keep_collections_short()
    monkeypatch.setattr(garbage, "LONG_S", 0.0)
    gc.collect()
    make_cycles(101)
    assert gc.collect() >= 100


def make_cycles(count: int) -> None:
    for _ in range(count):
        cycle: list[object] = []
        cycle.append(cycle)


def test_young_collections_freeze_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such collections are short, and the objects that survive them may soon be garbage."""
    garbage.keep_collections_short()
    monkeypatch.setattr(garbage, "LONG_S", 0.0)
    gc.collect()
    frozen = gc.get_freeze_count()
    kept = [[number] for number in range(100)]
    gc.collect(0)
    gc.collect(1)
    # Frozen objects may be freed meanwhile, so there may be fewer.
    assert gc.get_freeze_count() <= frozen and kept


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python 3.14 tracks every dict")
def test_no_collection_looks_at_an_index() -> None:
    """The collector would visit all tuples of an index that is being built for a snapshot."""
    keys = Keys()
    for number in range(1000):
        keys.add(packed((Uuid(number.to_bytes(16, "big")), 0)))
    assert len(keys) == 1000
    assert not any(gc.is_tracked(part) for part in keys._parts)


def test_a_node_collects_young_objects_once_in_ten_thousand() -> None:
    """A collection of the young ones for each 700 took a tenth of the CPU of a busy controller."""
    garbage.keep_collections_short()
    gc.collect()
    collections = gc.get_stats()[0]["collections"]
    kept = [[number] for number in range(garbage.YOUNG_OBJECTS - 1000)]
    assert gc.get_stats()[0]["collections"] == collections, "it has collected too early"
    kept += [[number] for number in range(5000)]
    assert gc.get_stats()[0]["collections"] > collections, "it has not collected"
