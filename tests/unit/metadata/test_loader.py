"""Metadata transactions (KIP-868): each takes effect as a whole or not at all, with any batches."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.metadata.batches import MetadataBatch
from quorate.quorum.metadata.errors import ReplayError
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.loader import Loader
from quorate.quorum.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    TopicRecord,
)

BEGIN, END, ABORT = (
    BeginTransactionRecord(name="test"),
    EndTransactionRecord(),
    AbortTransactionRecord(reason="test"),
)


def topic(name: str) -> TopicRecord:
    return TopicRecord(name=name, topic_id=Uuid(name.encode().rjust(16)))


def cut(records: list[MetadataRecord], cuts: list[int]) -> list[MetadataBatch]:
    edges = sorted({0, len(records), *cuts})
    return [
        MetadataBatch(start, EpochOffset(1, end - 1), 1000 + end, 100, records[start:end])
        for start, end in pairwise(edges)
    ]


SCRIPT: list[MetadataRecord] = [
    topic("a"),
    BEGIN,
    topic("b"),
    topic("c"),
    END,
    topic("d"),
    BEGIN,
    topic("lost"),
    ABORT,
    topic("e"),
    BEGIN,
    topic("open"),
]


@settings(max_examples=100)
@given(st.lists(st.integers(0, len(SCRIPT))), st.integers(0, len(SCRIPT)))
def test_wherever_batches_and_feeds_are_cut(cuts: list[int], feeds: int) -> None:
    batches = cut(SCRIPT, cuts)
    loader = Loader(MetadataImage())
    created: list[str] = []
    for part in (batches[:feeds], batches[feeds:]):
        delta = loader.feed(part)
        created += [change.topic.name for change in delta.topics.values()]
    assert loader.image.topic_names() == created == ["a", "b", "c", "d", "e"]
    assert loader.image.last == EpochOffset(1, 9), "the last stable offset"
    assert loader.position == len(SCRIPT)
    assert loader.in_transaction


def test_the_image_stays_at_the_last_stable_offset() -> None:
    loader = Loader(MetadataImage())
    loader.feed(cut(SCRIPT[:4], []))
    assert (loader.image.last.offset, loader.image.topic_names()) == (0, ["a"])
    ended = MetadataBatch(4, EpochOffset(1, 4), 1005, 100, [END])
    assert [each.topic.name for each in loader.feed([ended]).topics.values()] == ["b", "c"]
    assert loader.image.last.offset == 4


def test_control_batches_move_the_offset() -> None:
    loader = Loader(MetadataImage())
    assert not loader.feed([MetadataBatch(0, EpochOffset(3, 0), 7, 100, [])])
    assert loader.image.last == EpochOffset(3, 0)


@pytest.mark.parametrize(
    "records", [[END], [ABORT], [BEGIN, BEGIN]], ids=["end", "abort", "begin twice"]
)
def test_markers_out_of_place(records: list[MetadataRecord]) -> None:
    with pytest.raises(ReplayError, match=r"transaction|never began"):
        Loader(MetadataImage()).feed(cut(records, []))


def test_a_gap_in_the_log_is_refused() -> None:
    with pytest.raises(ReplayError, match="without gaps"):
        Loader(MetadataImage()).feed([MetadataBatch(1, EpochOffset(1, 1), 1, 100, [topic("a")])])
