"""Checks the files beside the metadata log, for `storage verify`: mark, vote, generation,
snapshots.

The rules are those of a start: `raft/quorum_state.py` for the vote, `node/metadata_mark.py` for the
mark, `node/metadata_storage.py` for snapshots. Nothing is changed. All functions block. They raise
OSError, and some CorruptCheckpoint for a file that is too large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quorate.quorum.ids import METADATA_TOPIC, EpochOffset
from quorate.quorum.log.checking.check_result import CheckResult, Kind
from quorate.quorum.log.checking.verify import LogCheck
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.snapshots.snapshots import SnapshotFiles, is_behind, snapshot_name
from quorate.quorum.metadata.errors import UnknownRecord
from quorate.quorum.metadata.snapshot_file import CorruptSnapshot, read_snapshot
from quorate.quorum.node.replica.metadata_mark import (
    MARK_NAME,
    DirectoryContents,
    read_mark,
    why_lost,
)
from quorate.quorum.node.replica.metadata_mark import WAY_OUT as MARK_WAY_OUT
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
"""The snapshot with the initial voters, which `storage format` writes. `bootstrap.checkpoint` has
the same end offset and epoch."""
WAY_OUT = (
    "the other nodes have the metadata. On a broker, run `storage verify --repair` with its "
    "--config; "
    "it fetches the metadata again. On a controller, move this metadata directory out of the data "
    "directory, keep all other files, and start the node; it catches up before it votes. Or "
    "restore this file from a backup"
)
"""The advice for damage of the metadata log or of a snapshot."""
SET_ASIDE = "the log still has its records; the next start sets it aside"
"""The advice for a damaged snapshot that a start can do without."""

Report = Callable[[CheckResult], None]
"""Receives one result."""


def check_mark(disk: Disk, parent: str, metadata: DirectoryContents, report: Report) -> None:
    """Compare the mark in the data directory `parent` with the contents of the metadata directory.

    Report as DAMAGED that the metadata directory lost records or a vote, or that the node has to
    catch up before it votes. A damaged mark is DERIVED. A missing one is no fault, unless the
    metadata directory says that the node has to catch up."""
    directory, mark = f"{parent}/{METADATA_TOPIC}-0", read_mark(disk, parent)
    if mark is not None:
        lost = why_lost(mark, metadata)
        if lost:
            report(CheckResult(Kind.DAMAGED, directory, lost, MARK_WAY_OUT))
        return
    path = f"{parent}/{MARK_NAME}"
    if disk.exists(path):
        again = "the next start of a controller rewrites it"
        report(CheckResult(Kind.DERIVED, path, "is damaged", again))
    if metadata.has_flag:
        report(CheckResult(Kind.DAMAGED, directory, why_lost(mark, metadata), MARK_WAY_OUT))


def check_election(
    disk: Disk, directory: str, report: Report, *, has_records: bool
) -> Election | None:
    """Return the election that the next start will believe, None if the start will be refused.

    The refusal is reported as DAMAGED. A fault of one file that the other one makes good is
    reported as DERIVED or as a note. `has_records` says that the log has records: a missing vote is
    damage then, otherwise the node never voted."""
    kafka, kafka_says = read_saved_election(disk, f"{directory}/{KAFKA_NAME}", decode_kafka)
    copy, copy_says = read_saved_election(disk, f"{directory}/{COPY_NAME}", decode_copy)
    files = {KAFKA_NAME: kafka_says, COPY_NAME: copy_says}
    try:
        election = choose_election(
            files[KAFKA_NAME], files[COPY_NAME], directory, has_records=has_records
        )
    except ElectionFileError as error:
        report(CheckResult(Kind.DAMAGED, f"{directory}/{KAFKA_NAME}", str(error)))
        return None
    for name, content in files.items():
        path = f"{directory}/{name}"
        if isinstance(content, Damaged):
            again = "the next start rewrites it from the other copy"
            report(CheckResult(Kind.DERIVED, path, content.reason, again))
        elif content is None and kafka != copy:
            report(
                CheckResult(
                    Kind.NOTE, path, "is missing; the next start rewrites it from the other copy"
                )
            )
    return election


def check_generation(disk: Disk, directory: str, report: Report) -> None:
    """Report a damaged file of the quorum's generations. A missing file is no fault."""
    file = GenerationFile(disk, directory)
    try:
        file.load()
    except GenerationFileError as error:
        report(CheckResult(Kind.DAMAGED, file.path, str(error)))


def check_snapshots(disk: Disk, directory: str, log: LogCheck, report: Report) -> None:
    """Report damaged snapshots, and a log that begins after the records of all whole snapshots.

    A damaged snapshot is DERIVED if the log still has its records, otherwise DAMAGED. A snapshot
    with another epoch in its name than the log has is damaged. A snapshot that will replace the log
    is reported as a note. The check `log` must have run."""
    files = SnapshotFiles(disk, directory, disk.list(directory))
    whole: list[EpochOffset] = []
    for snapshot in files:
        path = files.path(snapshot)
        problem = _misnamed(snapshot, log)
        if not problem:
            problem = check_snapshot(snapshot, path, files.chunks(snapshot), report)
        if not problem:
            whole.append(snapshot)
            continue
        before = whole[-1].offset if whole else 0
        held = log.start_offset <= before and snapshot.offset <= log.end_offset
        kind, way_out = (Kind.DERIVED, SET_ASIDE) if held else (Kind.DAMAGED, WAY_OUT)
        report(CheckResult(kind, path, problem, way_out, offset=snapshot.offset))
    formatted = f"{directory}/{snapshot_name(BEFORE_ALL)}"
    content = checkpoints.read_small(disk, formatted)
    if content is not None:
        problem = check_snapshot(BEFORE_ALL, formatted, [content], report)
        if problem:
            way_out = "restore it from a backup; it holds the initial voters"
            report(CheckResult(Kind.DAMAGED, formatted, problem, way_out, offset=0))
    start = log.start_offset
    if start > 0 and not any(each.offset >= start for each in whole):
        what = "the log starts here, but no complete snapshot has the records before it"
        report(CheckResult(Kind.DAMAGED, directory, what, WAY_OUT, offset=start))
    sound = all(each.kind is not Kind.DAMAGED for each in log.results)
    if sound and whole and _is_replaced(log, whole[-1]):
        what = (
            f"it is ahead of the log, which ends at offset {log.end_offset}; the next start "
            "replaces the log"
        )
        report(CheckResult(Kind.NOTE, files.path(whole[-1]), what))


def check_snapshot(
    snapshot: EpochOffset, path: str, chunks: Iterable[bytes], report: Report
) -> str:
    """Return the fault of a snapshot's content, empty if there is none.

    `snapshot` is the end offset and epoch that the content must have. `path` is only for the
    report. A record type of another version is reported as a note, and the rest of the content is
    not checked."""
    try:
        read_snapshot(snapshot, chunks)
    except CorruptSnapshot as error:
        if not isinstance(error.__cause__, UnknownRecord):
            return str(error)
        report(CheckResult(Kind.NOTE, path, f"was written by another version of Quorate: {error}"))
    return ""


def _is_replaced(log: LogCheck, snapshot: EpochOffset) -> bool:
    """Return True if the next start replaces the log by this snapshot."""
    end = EpochOffset(log.epochs.latest, log.end_offset)
    return log.start_offset < snapshot.offset and is_behind(end, snapshot)


def _misnamed(snapshot: EpochOffset, log: LogCheck) -> str:
    """Return the fault of a snapshot's name, empty if its epoch is that of the log."""
    if snapshot.offset <= log.start_offset or _is_replaced(log, snapshot):
        return ""
    epoch = log.epochs.epoch_at(snapshot.offset - 1)
    if epoch == snapshot.epoch:
        return ""
    return f"its name has epoch {snapshot.epoch}, but the log has epoch {epoch} at that offset"
