"""The input of the metadata shell: a snapshot, a segment or a log directory, also Kafka's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from quorate.cli.client.errors import Refused
from quorate.cli.history.source import ARCHIVES, history_in
from quorate.cli.shell.foreign_state import RULES, ForeignState
from quorate.quorum.analytics.log.errors import AnalyticsError
from quorate.quorum.analytics.log.segments import Slice, history_slices, metadata_dir
from quorate.quorum.analytics.log.walk import Logged, logged, settled
from quorate.quorum.ids import EpochOffset
from quorate.quorum.metadata.errors import MetadataError, ReplayError
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.record_text import type_name
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.metadata.redaction import redacted
from quorate.quorum.metadata.replay import REPLAY, replay

BEFORE_ANY = EpochOffset(-1, -1)
"""The position before the first metadata record."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The metadata in the input: Quorate's image, and the state that only Kafka uses."""

    image: MetadataImage
    foreign: ForeignState
    unknown: dict[str, int]
    """The number of records of each unknown type, such as those of a newer Kafka.

    They are not shown."""


def contents_of(given: Path, offset: int | None, *, show_secrets: bool = False) -> Contents:
    """Return the metadata at the end of the input, or after the record at `offset`, without its
    secrets unless `show_secrets`.

    `given` may also be an archive of a log directory. In a snapshot, offsets are positions in the
    snapshot, not offsets of the log. Raise Refused if the input is no metadata log, cannot be read,
    needs the segments before it, holds no metadata record, or ends before `offset`."""
    if given.is_dir() or given.name.endswith(ARCHIVES):
        with history_in(given) as directory:
            slices = history_slices(metadata_dir(str(directory)))
            return _contents(given, slices, offset, show_secrets)
    try:
        size = given.stat().st_size
        whole = Slice(str(given), 0, size, size, may_be_torn=given.suffix == ".log")
        return _contents(given, [whole], offset, show_secrets)
    except (OSError, AnalyticsError) as error:
        raise Refused(str(error)) from None


def _contents(given: Path, slices: list[Slice], offset: int | None, show_secrets: bool) -> Contents:
    try:
        return _replayed(given, logged(slices), offset, show_secrets)
    except ReplayError as error:
        raise Refused(
            f"{given}: it continues an earlier snapshot or segment; give the log directory "
            f"instead ({error})"
        ) from None
    except MetadataError as error:
        raise Refused(f"{given} is no metadata log: {error}") from None


def _replayed(
    given: Path, records: Iterable[Logged], offset: int | None, show_secrets: bool
) -> Contents:
    end = -1

    def past(each: Logged) -> bool:
        nonlocal end
        end = each.offset
        return offset is not None and end > offset

    known: list[MetadataRecord] = []
    foreign, unknown = ForeignState(), Counter[str]()
    last, timestamp_ms = BEFORE_ANY, -1
    for at, effective in settled(records, past=past):
        if at.of_raft:  # a control record of Raft is no metadata
            continue
        last, timestamp_ms = EpochOffset(at.epoch, at.offset), at.timestamp_ms
        for message in (each.message for each in effective):
            if isinstance(message, MetadataRecord) and type(message) in REPLAY:
                known.append(message if show_secrets else redacted(message))
            elif isinstance(message, MetadataRecord) and type(message) in RULES:
                foreign.replay(message)
            else:
                unknown[type_name(message)] += 1
    if offset is not None and end < offset:
        raise Refused(f"{given}: it ends at offset {end}, before {offset}")
    if last == BEFORE_ANY:
        raise Refused(f"{given}: it contains no metadata record up to the given offset")
    image, _ = replay(MetadataImage(), known, last, timestamp_ms)
    return Contents(image, foreign, dict(unknown))
