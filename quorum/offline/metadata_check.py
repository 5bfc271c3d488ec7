"""Checking what stands beside the metadata log: the vote and the snapshots, for `storage verify`.

The judgement is that of the start: `raft/quorum_state.py` for the vote, `metadata_storage.py` for
snapshots. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quorate.quorum.ids import METADATA_TOPIC, EpochOffset
from quorate.quorum.log import checkpoints
from quorate.quorum.log.check_result import CheckResult, Kind
from quorate.quorum.log.snapshots import SnapshotFiles, is_behind, snapshot_name
from quorate.quorum.log.verify import LogCheck
from quorate.quorum.metadata.errors import UnknownRecord
from quorate.quorum.metadata.snapshot_file import CorruptSnapshot, read_snapshot
from quorate.quorum.node.metadata_mark import MARK_NAME, DirectoryContents, read_mark, why_lost
from quorate.quorum.node.metadata_mark import WAY_OUT as MARK_WAY_OUT
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import COPY_NAME, KAFKA_NAME
from quorate.quorum.raft.errors import ElectionFileError, GenerationFileError
from quorate.quorum.raft.generation import GenerationFile
from quorate.quorum.raft.quorum_state import (
    Damaged,
    choose_election,
    decode_copy,
    decode_kafka,
    read_saved_election,
)
from quorate.quorum.seams import Disk

BEFORE_ALL = EpochOffset(0, 0)
WAY_OUT = (
    "the other nodes have it. A broker: `storage verify --repair` with its --config, and it "
    "fetches everything again. A controller: move this metadata directory out of the data "
    "directory, keep the rest, and start it; it catches up before it votes. Or restore this file "
    "from a backup"
)
SET_ASIDE = "the log still has what it stands for: the next start sets it aside"

Found = Callable[[CheckResult], None]


def check_mark(disk: Disk, parent: str, metadata: DirectoryContents, found: Found) -> None:
    """Report what the metadata directory lost according to the mark beside it."""
    directory, mark = f"{parent}/{METADATA_TOPIC}-0", read_mark(disk, parent)
    if mark is not None:
        lost = why_lost(mark, metadata)
        if lost:
            found(CheckResult(Kind.DAMAGED, directory, lost, MARK_WAY_OUT))
        return
    path = f"{parent}/{MARK_NAME}"
    if disk.exists(path):
        again = "the next start of a controller writes it again"
        found(CheckResult(Kind.DERIVED, path, "is damaged", again))
    if metadata.has_flag:
        found(CheckResult(Kind.DAMAGED, directory, why_lost(mark, metadata), MARK_WAY_OUT))


def check_election(
    disk: Disk, directory: str, found: Found, *, has_records: bool
) -> Election | None:
    """Return the election that the next start believes, or None if it believes none."""
    kafka, kafka_says = read_saved_election(disk, f"{directory}/{KAFKA_NAME}", decode_kafka)
    copy, copy_says = read_saved_election(disk, f"{directory}/{COPY_NAME}", decode_copy)
    files = {KAFKA_NAME: kafka_says, COPY_NAME: copy_says}
    try:
        election = choose_election(
            files[KAFKA_NAME], files[COPY_NAME], directory, has_records=has_records
        )
    except ElectionFileError as error:
        found(CheckResult(Kind.DAMAGED, f"{directory}/{KAFKA_NAME}", str(error)))
        return None
    for name, content in files.items():
        path = f"{directory}/{name}"
        if isinstance(content, Damaged):
            again = "the next start writes it again from the other"
            found(CheckResult(Kind.DERIVED, path, content.reason, again))
        elif content is None and kafka != copy:
            found(
                CheckResult(Kind.NOTE, path, "is missing: the next start writes it from the other")
            )
    return election


def check_generation(disk: Disk, directory: str, found: Found) -> None:
    file = GenerationFile(disk, directory)
    try:
        file.load()
    except GenerationFileError as error:
        found(CheckResult(Kind.DAMAGED, file.path, str(error)))


def check_snapshots(disk: Disk, directory: str, log: LogCheck, found: Found) -> None:
    """`log` was run already."""
    files = SnapshotFiles(disk, directory, disk.list(directory))
    whole: list[EpochOffset] = []
    for snapshot in files:
        path = files.path(snapshot)
        problem = _misnamed(snapshot, log)
        if not problem:
            problem = check_snapshot(snapshot, path, files.chunks(snapshot), found)
        if not problem:
            whole.append(snapshot)
            continue
        before = whole[-1].offset if whole else 0
        held = log.start_offset <= before and snapshot.offset <= log.end_offset
        kind, way_out = (Kind.DERIVED, SET_ASIDE) if held else (Kind.DAMAGED, WAY_OUT)
        found(CheckResult(kind, path, problem, way_out, offset=snapshot.offset))
    formatted = f"{directory}/{snapshot_name(BEFORE_ALL)}"
    content = checkpoints.read_small(disk, formatted)
    if content is not None:
        problem = check_snapshot(BEFORE_ALL, formatted, [content], found)
        if problem:
            way_out = "restore it from a backup: it says who votes in a new quorum"
            found(CheckResult(Kind.DAMAGED, formatted, problem, way_out, offset=0))
    start = log.start_offset
    if start > 0 and not any(each.offset >= start for each in whole):
        what = "the log starts here, but no whole snapshot says what was before"
        found(CheckResult(Kind.DAMAGED, directory, what, WAY_OUT, offset=start))
    sound = all(each.kind is not Kind.DAMAGED for each in log.results)
    if sound and whole and _is_replaced(log, whole[-1]):
        what = f"it replaces the log, which ends at {log.end_offset}: the next start does so"
        found(CheckResult(Kind.NOTE, files.path(whole[-1]), what))


def check_snapshot(snapshot: EpochOffset, path: str, chunks: Iterable[bytes], found: Found) -> str:
    """What is wrong with its content; empty when nothing is."""
    try:
        read_snapshot(snapshot, chunks)
    except CorruptSnapshot as error:
        if not isinstance(error.__cause__, UnknownRecord):
            return str(error)
        found(CheckResult(Kind.NOTE, path, f"was written by another version: {error}"))
    return ""


def _is_replaced(log: LogCheck, snapshot: EpochOffset) -> bool:
    end = EpochOffset(log.epochs.latest, log.end_offset)
    return log.start_offset < snapshot.offset and is_behind(end, snapshot)


def _misnamed(snapshot: EpochOffset, log: LogCheck) -> str:
    if snapshot.offset <= log.start_offset or _is_replaced(log, snapshot):
        return ""
    epoch = log.epochs.epoch_at(snapshot.offset - 1)
    if epoch == snapshot.epoch:
        return ""
    return f"its name says epoch {snapshot.epoch}, the log {epoch} at that offset"
