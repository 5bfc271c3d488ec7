"""The garbage collector's setting in a worker that Spark reuses."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark")

from quorate.quorum.analytics.spark.source_rows import GC_THRESHOLD, _with_rare_collections


def test_the_setting_holds_while_a_batch_is_made_and_is_restored() -> None:
    before = gc.get_threshold()
    seen: list[int] = []

    def batches() -> Iterator[Any]:
        for number in range(3):
            seen.append(gc.get_threshold()[0])
            yield number

    made = []
    for batch in _with_rare_collections(batches()):
        assert gc.get_threshold() == before, "the worker's own work runs with its own setting"
        made.append(batch)
    assert made == [0, 1, 2]
    assert seen == [GC_THRESHOLD] * 3
    assert gc.get_threshold() == before


def test_the_setting_is_restored_after_an_error() -> None:
    before = gc.get_threshold()

    def broken() -> Iterator[Any]:
        yield 1
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        list(_with_rare_collections(broken()))
    assert gc.get_threshold() == before
