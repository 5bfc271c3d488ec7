"""The garbage collector's setting in a worker that Spark reuses."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition

from quorate.quorum.analytics.spark import source_rows
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


@pytest.mark.parametrize(("context", "expected"), [(None, 0), (object(), 1)])
def test_only_a_worker_freezes_its_modules_and_only_once(
    monkeypatch: pytest.MonkeyPatch, context: object, expected: int
) -> None:
    frozen: list[int] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(1))
    monkeypatch.setattr(TaskContext, "_taskContext", context)
    source_rows._freeze_modules.cache_clear()
    for number in range(2):
        empty = InputPartition(number)
        assert not list(source_rows.rows_of_slice(empty, (), with_json=False, strict=False))
    source_rows._freeze_modules.cache_clear()
    assert len(frozen) == expected
