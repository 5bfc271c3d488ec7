"""Conditions on the offset skip whole segments, and one first pass serves all logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("pyarrow", reason="analytics needs `pip install 'quorate[spark]'`")
pytest.importorskip("pyspark", reason="needs `pip install 'quorate[spark]'`")

from quorate.quorum.analytics.log.first_pass import FOREVER, Pass
from quorate.quorum.analytics.log.plan import Choice, planned
from quorate.quorum.analytics.log.segments import StoredFile, passes_here
from quorate.quorum.analytics.spark import planning
from quorate.quorum.analytics.spark.rows import Request, arrow_batches
from quorate.quorum.log.batches.batch import read_header
from quorate.quorum.metadata.batches import metadata_batches
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.loader import Loader
from tests.unit.analytics.logs import SCRIPT, batches, write_segment
from tests.unit.analytics.test_moment import put_snapshot

MADE = batches([(record,) for step in SCRIPT for record in step])
"""Each record is a batch, so that transactions have several ones."""
END_OFFSET = read_header(MADE[-1]).next_offset
READ = ("offset", "type", "effective")


class Passes:
    """The passes of this process, with the segments that were read."""

    def __init__(self) -> None:
        self.calls: list[list[StoredFile]] = []

    def __call__(self, segments: Sequence[StoredFile], slice_bytes: int) -> list[Pass]:
        self.calls.append([*segments])
        return passes_here(segments, slice_bytes)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with one segment for each batch, and a snapshot wherever a controller may write one."""
    loader = Loader(MetadataImage())
    for made, batch in zip(MADE, metadata_batches(b"".join(MADE)), strict=True):
        write_segment(tmp_path, read_header(made).base_offset, made)
        loader.feed([batch])
        if loader.image.last.offset + 1 == read_header(made).next_offset:
            put_snapshot(tmp_path, loader.image.last.offset + 1, b"", batch.last.epoch)
    return tmp_path


def rows(log: Path, first: int, last: int, passes: Passes) -> list[dict[str, Any]]:
    choice = Choice(locations=(str(log),), first_offset=first, last_offset=last)
    found = [
        row
        for piece in planned(choice, passes_over=passes)
        for batch in arrow_batches(piece, Request(READ, with_json=False))
        for row in batch.to_pylist()
    ]
    return [row for row in found if first <= row["offset"] <= last]


def test_every_range_has_its_rows_and_few_segments_are_read(log: Path) -> None:
    """Also of transactions that begin or end outside of the range."""
    everything = rows(log, 0, FOREVER, Passes())
    assert len(everything) == END_OFFSET and not all(row["effective"] for row in everything)
    for at in range(END_OFFSET):
        for first, last in ((at, at), (at, at + 2), (0, at), (at, FOREVER)):
            passes = Passes()
            expected = [row for row in everything if first <= row["offset"] <= last]
            assert rows(log, first, last, passes) == expected, (first, last)
            assert len(passes.calls) == 1
    passes = Passes()
    rows(log, END_OFFSET - 1, FOREVER, passes)
    assert len(passes.calls[0]) <= 2, "the newest record"
    passes = Passes()
    rows(log, 0, 0, passes)
    assert len(passes.calls[0]) <= 2, "the oldest record"


def test_without_snapshots_all_segments_count(tmp_path: Path) -> None:
    for made in MADE:
        write_segment(tmp_path, read_header(made).base_offset, made)
    passes = Passes()
    assert rows(tmp_path, END_OFFSET - 1, FOREVER, passes)
    assert len(passes.calls[0]) == len(MADE)


def test_one_first_pass_serves_all_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small logs are together as large as one large log."""
    places = [tmp_path / str(number) for number in range(5)]
    for place in places:
        write_segment(place, 0, b"".join(MADE))
    choice = Choice(locations=tuple(map(str, places)), include="base")
    passes = Passes()
    slices = planned(choice, passes_over=passes)
    assert [len(call) for call in passes.calls] == [5]
    alone = [planned(replace(choice, locations=(each,))) for each in choice.locations]
    assert slices == [piece for each in alone for piece in each]

    size, in_tasks = len(b"".join(MADE)), Passes()
    monkeypatch.setattr(planning, "passes_in_tasks", lambda spark, *about: in_tasks(*about))
    spark = cast(Any, None)
    for most_bytes, tasks in ((5 * size, 0), (5 * size - 1, 1)):
        monkeypatch.setattr(planning, "IN_TASKS_ABOVE_BYTES", most_bytes)
        assert planning.plan(spark, choice)
        assert len(in_tasks.calls) == tasks
