"""Checks the directory of a stopped node: identity, vote, metadata log, snapshots and partitions.

The check reads the files that a node would read, and notes those that no node reads. It changes
nothing; `storage_repair.py` repairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from quorate.quorum.ids import METADATA_TOPIC
from quorate.quorum.log.checking.check_result import CheckResult, Kind
from quorate.quorum.log.checking.verify import FROM_PEERS, LogCheck, LogExpectations
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.errors import CorruptCheckpoint
from quorate.quorum.log.files.flushed_marker import FLUSHED_MARKER_NAME
from quorate.quorum.log.files.names import (
    CLEANED_SUFFIX,
    DAMAGED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    PART_SUFFIX,
    PRODUCER_SNAPSHOT_SUFFIX,
    SEGMENT_SUFFIXES,
    STRAY_DIRECTORY_SUFFIX,
    SWAP_SUFFIX,
    TEMPORARY_SUFFIX,
    PartitionName,
    is_deleted_directory,
    offset_of,
    partition_of,
)
from quorate.quorum.log.files.offset_gaps import GAPS_NAME
from quorate.quorum.log.snapshots.snapshots import snapshot_of
from quorate.quorum.node.opening.bootstrap_file import BOOTSTRAP_FILE
from quorate.quorum.node.opening.data_directory import LOCK_FILE
from quorate.quorum.node.opening.meta_properties import (
    META_COPY,
    META_FILE,
    StorageError,
    attempt,
    decode,
    decode_copy,
    read_meta,
)
from quorate.quorum.node.replica.metadata_mark import (
    CATCHING_UP_NAME,
    MARK_NAME,
    DirectoryContents,
)
from quorate.quorum.offline.metadata_check import (
    BEFORE_ALL,
    WAY_OUT,
    check_election,
    check_generation,
    check_mark,
    check_snapshot,
    check_snapshots,
)
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import COPY_NAME, KAFKA_NAME
from quorate.quorum.raft.generation import FILE_NAME as GENERATION_NAME
from quorate.quorum.seams import Disk

METADATA = PartitionName(METADATA_TOPIC, 0)
OFFSETS_NAMES = (
    checkpoints.HIGH_WATERMARKS_NAME,
    checkpoints.RECOVERY_POINTS_NAME,
    checkpoints.START_OFFSETS_NAME,
    checkpoints.CLEANER_OFFSETS_NAME,
)
"""The checkpoints with one offset for each partition."""
ROOT_FILES = (
    META_FILE,
    META_COPY,
    MARK_NAME,
    LOCK_FILE,
    BOOTSTRAP_FILE,
    checkpoints.CLEAN_SHUTDOWN_NAME,
)
"""The other files that belong into a node's directory."""
LOG_FILES = (
    checkpoints.EPOCHS_NAME,
    checkpoints.PARTITION_METADATA_NAME,
    FLUSHED_MARKER_NAME,
    KAFKA_NAME,
    COPY_NAME,
    GENERATION_NAME,
    CATCHING_UP_NAME,
)
"""The files that belong into a log's directory, apart from segments and snapshots."""
LEFTOVER_SUFFIXES = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, TEMPORARY_SUFFIX, PART_SUFFIX)
"""The suffixes of files that a crash leaves in a log's directory."""


@dataclass(slots=True)
class CheckedLog:
    """One log of the directory, with the results of the check of its segments and leader epochs."""

    directory: str
    expected: LogExpectations
    results: list[CheckResult]
    wrong_indexes: list[int]
    """Base offsets of undamaged segments whose indexes contradict them."""

    @property
    def damaged(self) -> bool:
        """True if the log has a result of kind DAMAGED. A repair does not change such a log."""
        return any(each.kind is Kind.DAMAGED for each in self.results)


@dataclass(slots=True)
class Verification:
    """The results of the check of one node's directory, or of the directory of one log."""

    results: list[CheckResult] = field(default_factory=list)
    logs: list[CheckedLog] = field(default_factory=list)
    batches: int = 0
    """The number of valid batches."""

    @property
    def sound(self) -> bool:
        """True if all results are notes. A torn end or a wrong index is no note."""
        return all(each.kind is Kind.NOTE for each in self.results)


def verify(disk: Disk, directory: str, *, whole_producers: Callable[[bytes], bool]) -> Verification:
    """Check a node's directory, or the directory of a single log. Block, and change nothing.

    A directory with at least one segment file is a single log. Any other one is a node's directory.
    `whole_producers` returns True if the bytes are a valid producer snapshot. Raise OSError, and
    CorruptCheckpoint for a file that is too large."""
    check = _Check(disk, directory, whole_producers)
    names = disk.list(directory)
    if any(name.endswith(LOG_SUFFIX) and offset_of(name) is not None for name in names):
        check.lone_log(names)
    else:
        check.root(names)
    return check.result


class _Check:
    """One check; `result` grows with it."""

    def __init__(
        self, disk: Disk, directory: str, whole_producers: Callable[[bytes], bool]
    ) -> None:
        self.result = Verification()
        self._disk = disk
        self._directory = directory
        self._whole_producers = whole_producers
        self._offsets: dict[str, dict[PartitionName, int]] = {}
        self._clean = False
        self._metadata_found: DirectoryContents | None = DirectoryContents(
            election=Election(), is_empty=True
        )
        """None if the vote cannot be read."""

    # -- directories -----------------------------------------------------------------------------

    def lone_log(self, names: list[str]) -> None:
        """Check the directory of a single log, which is the metadata log if any file in it is."""
        own_name = partition_of(self._directory.rpartition("/")[2])
        metadata = own_name == METADATA or any(
            name == KAFKA_NAME or snapshot_of(name) is not None for name in names
        )
        if META_FILE in names:
            self._identity()
        if metadata:
            self._metadata(self._directory, may_lack_election=True)
        else:
            self._partition(self._directory, own_name or PartitionName("", 0))

    def root(self, names: list[str]) -> None:
        """Check a node's directory."""
        self._identity()
        self._clean = checkpoints.CLEAN_SHUTDOWN_NAME in names
        for name in names:
            if name in OFFSETS_NAMES:
                self._read_offsets(name)
        for name in names:
            path = f"{self._directory}/{name}"
            partition = partition_of(name)
            if not self._disk.is_dir(path):
                self._root_file(name, path)
            elif partition == METADATA:
                self._metadata(path)
            elif partition is not None:
                self._partition(path, partition)
            elif is_deleted_directory(name):
                self._note(path, "belongs to a deleted partition; the next start removes it")
            elif name.endswith(STRAY_DIRECTORY_SUFFIX):
                self._note(path, "was set aside; no node reads it, and you may remove it")
            else:
                self._note(path, "is not the directory of a partition; no node reads it")
        if self._metadata_found is not None:
            check_mark(
                self._disk, self._directory, self._metadata_found, self.result.results.append
            )
        if self._clean:
            self._missing(names)

    def _missing(self, names: list[str]) -> None:
        """Report partitions that were there at the last clean shutdown and are missing."""
        for name, offset in self._offsets.get(checkpoints.RECOVERY_POINTS_NAME, {}).items():
            if offset > 0 and str(name) not in names:
                what = f"is missing, but was flushed up to offset {offset}"
                self._add(Kind.DAMAGED, f"{self._directory}/{name}", what, FROM_PEERS)

    def _root_file(self, name: str, path: str) -> None:
        if name == BOOTSTRAP_FILE:
            content = checkpoints.read_small(self._disk, path) or b""
            problem = check_snapshot(BEFORE_ALL, path, [content], self.result.results.append)
            if problem:
                way_out = "restore it from a backup; only the first start of a cluster reads it"
                self._add(Kind.DAMAGED, path, problem, way_out)
        elif name.endswith(TEMPORARY_SUFFIX):
            self._note(path, "was left by a crash; the next write of that file replaces it")
        elif name not in (*ROOT_FILES, *OFFSETS_NAMES):
            self._note(path, "is not a file of a node")

    def _identity(self) -> None:
        path = f"{self._directory}/{META_FILE}"
        try:
            meta = read_meta(self._disk, self._directory)
        except StorageError as error:
            self._add(Kind.DAMAGED, path, str(error), "")
            return
        if meta is None:
            self._add(Kind.DAMAGED, path, "is missing", "restore it, or format the directory")
            return
        for name, decoder in ((META_FILE, decode), (META_COPY, decode_copy)):
            path = f"{self._directory}/{name}"
            content = checkpoints.read_small(self._disk, path)
            if content is None:
                self._note(path, "is missing; the next start rewrites it from the other copy")
            elif attempt(content, path, decoder)[0] is None:
                again = "the next start rewrites it from the other copy"
                self._add(Kind.DERIVED, path, "is damaged", again)

    def _read_offsets(self, name: str) -> None:
        try:
            self._offsets[name] = checkpoints.read_offsets(self._disk, self._directory, name)
        except CorruptCheckpoint as error:
            way_out = "the next start ignores it, and reads and fetches more"
            self._add(Kind.DERIVED, f"{self._directory}/{name}", str(error), way_out)

    # -- logs ------------------------------------------------------------------------------------

    def _metadata(self, directory: str, *, may_lack_election: bool = False) -> None:
        """Check a metadata log. An archive, or a copy of the log alone, has no election."""
        check = self._log(directory, LogExpectations(metadata=True, way_out=WAY_OUT))
        found = self.result.results.append
        has_records = check.end_offset > 0 and not may_lack_election
        election = check_election(self._disk, directory, found, has_records=has_records)
        names = self._disk.list(directory)
        snapshots = [each for each in map(snapshot_of, names) if each and each.offset > 0]
        self._metadata_found = None
        if election is not None:
            self._metadata_found = DirectoryContents(
                election=election,
                is_empty=check.end_offset == 0 and not snapshots,
                has_flag=CATCHING_UP_NAME in names,
            )
        check_generation(self._disk, directory, found)
        check_snapshots(self._disk, directory, check, found)

    def _partition(self, directory: str, name: PartitionName) -> None:
        trusted = self._offsets.get(checkpoints.RECOVERY_POINTS_NAME, {}).get(name, 0)
        expected = LogExpectations(
            metadata=False,
            trusted_offset=trusted,
            start_offset=self._offsets.get(checkpoints.START_OFFSETS_NAME, {}).get(name, 0),
            clean=self._clean,
            compacted=name in self._offsets.get(checkpoints.CLEANER_OFFSETS_NAME, {})
            or self._disk.exists(f"{directory}/{GAPS_NAME}"),
        )
        check = self._log(directory, expected)
        if expected.start_offset > check.end_offset:
            self._begins_beyond_end(directory, expected.start_offset, check.end_offset)
        try:
            checkpoints.read_partition_metadata(self._disk, directory)
        except CorruptCheckpoint as error:
            path = f"{directory}/{checkpoints.PARTITION_METADATA_NAME}"
            self._add(Kind.DAMAGED, path, str(error), "restore it; it holds the topic id")
        self._producers(directory, check.end_offset)

    def _begins_beyond_end(self, directory: str, start_offset: int, end_offset: int) -> None:
        what = (
            f"the log ends at offset {end_offset}, but {checkpoints.START_OFFSETS_NAME} says "
            f"that it begins at offset {start_offset}"
        )
        kind, way_out = (
            Kind.DERIVED,
            "the next start begins an empty log there, as Apache Kafka does",
        )
        if self._clean:
            kind = Kind.DAMAGED
            way_out = f"{FROM_PEERS}. If the checkpoint is wrong, remove the line of this log"
        self._add(kind, directory, what, way_out, end_offset)

    def _log(self, directory: str, expected: LogExpectations) -> LogCheck:
        check = LogCheck(self._disk, directory, expected)
        check.run()
        self.result.results += check.results
        self.result.batches += check.batches
        self.result.logs.append(CheckedLog(directory, expected, check.results, check.wrong_indexes))
        names = self._disk.list(directory)
        logs = {name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)}
        for name in names:
            self._log_file(name, f"{directory}/{name}", logs, expected)
        return check

    def _log_file(self, name: str, path: str, logs: set[str], expected: LogExpectations) -> None:
        stem, dot, suffix = name.rpartition(".")
        if name.endswith(LEFTOVER_SUFFIXES):
            self._note(path, "was left by a crash; the next start removes or restores it")
        elif name.endswith(DAMAGED_SUFFIX):
            self._note(path, "was set aside as damaged; no node reads it, and you may remove it")
        elif dot + suffix in SEGMENT_SUFFIXES and offset_of(name) is not None:
            if stem not in logs:
                self._note(path, "has no segment; the next start removes it")
        elif not (
            name in LOG_FILES
            or (name.endswith(PRODUCER_SNAPSHOT_SUFFIX) and offset_of(name) is not None)
            or (expected.metadata and snapshot_of(name) is not None)
            or (path.startswith(f"{self._directory}/{name}") and name in ROOT_FILES)
        ):
            self._note(path, "is not a file of a log")

    def _producers(self, directory: str, end_offset: int) -> None:
        for name in self._disk.list(directory):
            offset = offset_of(name)
            if offset is None or not name.endswith(PRODUCER_SNAPSHOT_SUFFIX):
                continue
            path = f"{directory}/{name}"
            if offset > end_offset:
                self._note(path, "lies after the log end; the next start removes it")
            elif not self._whole_producers(checkpoints.read_small(self._disk, path) or b""):
                way_out = "the next start ignores it and reads the log instead"
                self._add(Kind.DERIVED, path, "is not a valid producer snapshot", way_out)

    def _note(self, path: str, what: str) -> None:
        self.result.results.append(CheckResult(Kind.NOTE, path, what))

    def _add(self, kind: Kind, path: str, what: str, way_out: str, offset: int = -1) -> None:
        self.result.results.append(CheckResult(kind, path, what, way_out, offset=offset))
