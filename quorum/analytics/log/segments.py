"""The files of a metadata log, cut into slices that can be read independently of each other.

The first pass (`first_pass.py`) chooses batch boundaries as slice boundaries. A batch belongs to
the slice that contains its first byte. If the log was truncated and rewritten since the first pass,
a slice searches for its first batch: the first position of a whole batch with a correct CRC-32C.

The log may be in use:

- Its size is read once. The last segment may end in an incomplete batch, which is still being
  written, or was torn by a crash and never acknowledged. The batches before it are the result.
- A damaged batch anywhere else is an error.
- Records above the high watermark may be read. Uncommitted records may still be replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from quorate.quorum.analytics.log.damage import Damage
from quorate.quorum.analytics.log.errors import MissingBase, NoMetadataLog
from quorate.quorum.analytics.log.files import (
    absolute,
    below,
    files_in,
    local_path,
    name_of,
)
from quorate.quorum.analytics.log.first_pass import (
    FOREVER,
    Border,
    Pass,
    Undone,
    overlapping,
    pass_over,
    undone,
)
from quorate.quorum.ids import METADATA_TOPIC

PARTITION_DIR = f"{METADATA_TOPIC}-0"
SEGMENT_NAME = re.compile(r"(\d{20})\.log")
SNAPSHOT_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
SLICE_BYTES = 4 << 20
"""The default maximum size of a slice."""


@dataclass(frozen=True, slots=True)
class SnapshotId:
    """The end offset and epoch of a snapshot.

    `end_offset` is exclusive: the snapshot contains the records below it."""

    end_offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Origin:
    """The cluster and the node that a log belongs to.

    `cluster_id` is never null, because it is a key of all tables. Without a meta.properties it is
    the path of the log. `node_id` is then None."""

    cluster_id: str = ""
    node_id: int | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """The part of a log that is committed: the records below `end_offset`.

    If `rest_is_known`, all others are not committed. Otherwise nothing is known about them."""

    end_offset: int = 0
    rest_is_known: bool = False


@dataclass(frozen=True, slots=True)
class Slice:
    """A range of bytes of one file that one reader reads.

    The reader of the slice must skip records below `first_offset`. `read_batches` skips only whole
    batches below it. `end_offset` is the offset at which the next slice began when the slices were
    planned."""

    path: str
    start: int
    end: int
    size_bytes: int  # Size of the file when the slices were planned.
    may_be_torn: bool = False
    """True if the slice belongs to the last segment, whose end may be an incomplete batch."""
    snapshot: SnapshotId | None = None
    first_offset: int = 0
    end_offset: int = FOREVER  # exclusive
    undone: tuple[Undone, ...] = ()
    """Transactions without effect that overlap this slice."""
    only_named: bool = False
    """True for a snapshot whose content is not read. Its name proves that the records below its end
    offset are committed."""
    origin: Origin = Origin()
    committed: Committed = Committed()
    before: int = FOREVER
    """Records at this offset and above are left out. `read_batches` does not know it."""
    newest_ms: int = FOREVER
    """No record of the slice has a later timestamp."""
    differences: tuple[Damage, ...] = ()
    """Differences between nodes, which the reader of this slice reports (`divergence.py`)."""


class StoredFile(NamedTuple):
    """A file of a log: its path or URL, the offset in its name, and its size when it was listed."""

    path: str
    offset: int
    size_bytes: int


class Placed(NamedTuple):
    """A segment of a log, and the first offset of the next one, FOREVER if it is the last one."""

    segment: StoredFile
    end_offset: int


def partition_dir(location: str) -> str | None:
    """Return the path of the metadata partition, or None if the location holds none.

    The location is this directory, or a node's log directory that contains it. It may be a URL."""
    for each in (below(location, PARTITION_DIR), location):
        if any(SEGMENT_NAME.fullmatch(name) for name in files_in(each)):
            return each
    return None


def metadata_dir(directory: str) -> Path:
    """Return the local directory of the metadata partition.

    `directory` is either this directory, or a node's log directory that contains it. A prefix
    `file:` is ignored. Raise NoMetadataLog if neither holds segments."""
    given = local_path(directory)
    found = None if given is None else partition_dir(given)
    if found is None:
        raise NoMetadataLog(no_log_in(directory if given is None else given))
    return Path(found)


def no_log_in(location: str) -> str:
    """Return the sentence about a location that holds no metadata log."""
    return (
        f"{absolute(location)} holds no metadata log: give a node's log directory (the one that "
        f"contains {PARTITION_DIR}) or that {PARTITION_DIR} directory itself"
    )


Passes = Callable[[Sequence[StoredFile], int], list[Pass]]
"""Returns the passes over segments, with borders that are this number of bytes apart."""


def passes_here(segments: Sequence[StoredFile], slice_bytes: int) -> list[Pass]:
    """Return the passes over whole segments, one after the other in this process."""
    return [pass_over(each.path, each.size_bytes, slice_bytes) for each in segments]


def log_slices(
    directory: Path | str,
    slice_bytes: int = SLICE_BYTES,
    *,
    from_offset: int = 0,
    passes_over: Passes = passes_here,
    segments: Sequence[Placed] | None = None,
) -> list[Slice]:
    """Return the slices of all segments, in the order of the log.

    Slices below `from_offset` are left out, and `first_offset` of the others is at least this
    offset. The first pass reads every segment whole. `directory` is that of `metadata_dir`. With
    `segments`, return the slices of these ones (`segments_of`)."""
    placed = segments_of(directory) if segments is None else segments
    passes = passes_over([each.segment for each in placed], slice_bytes)
    without_effect = undone(marker for each in passes for marker in each.markers)
    slices: list[Slice] = []
    for (segment, last), passed in zip(placed, passes, strict=True):
        borders = passed.borders or [Border(0, segment.offset)]
        size = segment.size_bytes
        ends = [*((each.position, each.base_offset) for each in borders[1:]), (size, last)]
        slices += [
            Slice(
                segment.path,
                border.position,
                end,
                size,
                may_be_torn=last == FOREVER,
                first_offset=max(border.base_offset, from_offset),
                end_offset=end_offset,
                undone=overlapping(without_effect, border.base_offset, end_offset),
                newest_ms=border.newest_ms,
            )
            for border, (end, end_offset) in zip(borders, ends, strict=True)
            if size and end_offset > from_offset
        ]
    return slices


def segments_of(
    directory: Path | str, first_offset: int = 0, last_offset: int = FOREVER
) -> list[Placed]:
    """Return the segments that decide about the records from `first_offset` to `last_offset`.

    A record may be part of a metadata transaction, whose begin and end are in other segments. No
    snapshot ends inside a transaction. The names of the segments and snapshots thus tell which
    segments matter, and the others are not read."""
    ends = [0, *(each.offset for each in files_named(directory, SNAPSHOT_NAME)), FOREVER]
    begin = max(each for each in ends if each <= first_offset)
    end = min((each for each in ends if each > last_offset), default=FOREVER)
    segments = files_named(directory, SEGMENT_NAME)
    return [
        Placed(segment, FOREVER if following is None else following.offset)
        for segment, following in zip_longest(segments, segments[1:])
        if segment.offset < end and (following is None or following.offset > begin)
    ]


def snapshot_slices(directory: Path | str, *, only_base: bool = False) -> list[Slice]:
    """Return one slice per snapshot, or only that of the base snapshot if there is one (see
    `base_snapshot`). A snapshot is not divided."""
    if only_base:
        base = base_snapshot(directory)
        return [] if base is None else [base]
    slices = []
    for path, end_offset, size in files_named(directory, SNAPSHOT_NAME):
        epoch = int(name_of(path).split("-")[1].split(".")[0])
        slices.append(Slice(path, 0, size, size, snapshot=SnapshotId(end_offset, epoch)))
    return slices


def history_slices(
    directory: Path | str,
    slice_bytes: int = SLICE_BYTES,
    *,
    passes_over: Passes = passes_here,
    segments: Sequence[Placed] | None = None,
) -> list[Slice]:
    """Return the slices of the whole known history: the base snapshot, if there is one, the log
    after it, and the names of all snapshots. `segments` is that of `log_slices`.

    If the base snapshot is missing, the history begins in the middle, without an error."""
    base = base_snapshot(directory)
    names = [
        replace(piece, end=0, size_bytes=0, only_named=True) for piece in snapshot_slices(directory)
    ]
    from_offset = 0 if base is None or base.snapshot is None else base.snapshot.end_offset
    log = log_slices(
        directory,
        slice_bytes,
        from_offset=from_offset,
        passes_over=passes_over,
        segments=segments,
    )
    return [*([] if base is None else [base]), *log, *names]


def base_snapshot(directory: Path | str) -> Slice | None:
    """Return the snapshot that the log starts from.

    Return None if the log starts at offset 0, or if no such snapshot is in the directory. If older
    segments were deleted, it is the first snapshot that reaches the first segment. The snapshot may
    end inside this segment or after it, because Kafka deletes only whole segments."""
    start = log_start_offset(directory)
    for piece in snapshot_slices(directory) if start else ():
        if piece.snapshot is not None and piece.snapshot.end_offset >= start:
            return piece
    return None


def refuse_missing_base(directory: Path | str) -> None:
    """Raise MissingBase if older segments were deleted and no snapshot holds their records."""
    if (start := log_start_offset(directory)) and base_snapshot(directory) is None:
        raise MissingBase(
            f"{directory}: the log begins at offset {start}, and no snapshot holds the records "
            "before it: copy the snapshots (*.checkpoint) too, or read the copy of another node"
        )


def log_start_offset(directory: Path | str) -> int:
    """Return the first offset of the first segment, which is in its file name. There must be a
    segment."""
    return files_named(directory, SEGMENT_NAME)[0].offset


def files_named(directory: Path | str, pattern: re.Pattern[str]) -> list[StoredFile]:
    """Return the files whose names match, in the order of the offsets in their names."""
    return [
        StoredFile(below(str(directory), name), int(match[1]), size)
        for name, size in sorted(files_in(str(directory)).items())
        if (match := pattern.fullmatch(name))
    ]
