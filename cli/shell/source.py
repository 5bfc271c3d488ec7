"""What the metadata shell reads: a snapshot, a segment, or a log directory; Kafka's or ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from quorate.cli.errors import Refused
from quorate.cli.history_source import ARCHIVES, history_in
from quorate.cli.shell.foreign_state import RULES, ForeignState
from quorate.quorum.analytics.errors import AnalyticsError
from quorate.quorum.analytics.segments import Slice, history_slices, metadata_dir
from quorate.quorum.analytics.walk import Logged, logged, never, settled
from quorate.quorum.ids import EpochOffset
from quorate.quorum.metadata.errors import MetadataError, ReplayError
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.metadata.replay import REPLAY, replay
from quorate.quorum.readable import type_name

BEFORE_ANY = EpochOffset(-1, -1)


@dataclass(frozen=True, slots=True)
class Contents:
    image: MetadataImage
    foreign: ForeignState
    unknown: dict[str, int]
    """Records of a newer Kafka's, by type: what they say is not shown."""


def contents_of(given: Path, offset: int | None) -> Contents:
    """At the end, or after the record at `offset`. A file's records are numbered as they stand in
    it, which in a snapshot is not where they once stood in the log."""
    if given.is_dir() or given.name.endswith(ARCHIVES):
        with history_in(given) as directory:
            return _contents(given, history_slices(metadata_dir(str(directory))), offset)
    try:
        size = given.stat().st_size
        whole = Slice(str(given), 0, size, size, may_be_torn=given.suffix == ".log")
        return _contents(given, [whole], offset)
    except (OSError, AnalyticsError, MetadataError) as error:
        raise Refused(str(error)) from None


def _contents(given: Path, slices: list[Slice], offset: int | None) -> Contents:
    past = never if offset is None else lambda each: each.offset > offset
    records: list[MetadataRecord] = []
    foreign, unknown = ForeignState(), Counter[str]()
    last, timestamp_ms = BEFORE_ANY, -1
    for at, effective in settled(_known(slices), past=past):
        last, timestamp_ms = EpochOffset(at.epoch, at.offset), at.timestamp_ms
        for message in (each.message for each in effective):
            if type(message) in REPLAY:
                assert isinstance(message, MetadataRecord)
                records.append(message)
            elif type(message) in RULES:
                assert isinstance(message, MetadataRecord)
                foreign.replay(message)
            else:
                unknown[type_name(message)] += 1
    if last == BEFORE_ANY:
        raise Refused(f"{given}: there is no metadata record in it up to what was asked for")
    try:
        image, _ = replay(MetadataImage(), records, last, timestamp_ms)
    except ReplayError as error:
        raise Refused(
            f"{given}: it stands on a snapshot or on segments before it: give the log directory "
            f"instead ({error})"
        ) from None
    return Contents(image, foreign, dict(unknown))


def _known(slices: list[Slice]) -> Iterator[Logged]:
    """Without Raft's own records, which say nothing of the cluster's state."""
    return (each for each in logged(slices) if not each.of_raft)
