"""Opens the metadata directory of a node at its start: log, snapshots, election file and mark.

The mark is a small file outside of the metadata directory. It shows whether the directory lost
records or the controller's vote (`metadata_mark.py`). After such a loss the controller starts
nevertheless, but it catches up with the leader before it votes (`raft/catching_up.py`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from quorate.config.node_config import NodeConfig
from quorate.quorum.ids import METADATA_TOPIC, ReplicaKey, Uuid
from quorate.quorum.log.files.flushed_marker import FLUSHED_MARKER_NAME, FlushedMarker
from quorate.quorum.log.opening.recovery import ANY_EPOCH
from quorate.quorum.node.opening.meta_properties import META_COPY
from quorate.quorum.node.replica.metadata_mark import (
    CATCHING_UP_NAME,
    MARK_NAME,
    WAY_OUT,
    DirectoryContents,
    Mark,
    MarkFile,
    read_mark,
    settled,
    why_lost,
    write_mark,
)
from quorate.quorum.node.replica.metadata_storage import MetadataStorage
from quorate.quorum.node.replica.node_settings import metadata_log_settings
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import ElectionFile
from quorate.quorum.seams import Disk

logger = logging.getLogger("quorate.quorum.storage")


@dataclass(frozen=True, slots=True)
class OpenedMetadata:
    """An opened metadata directory."""

    storage: MetadataStorage
    election_file: ElectionFile
    election: Election
    mark: MarkFile | None
    """None on a broker."""
    lost: str
    """The loss that keeps this controller from voting, for the operator. Empty if it may vote."""


def open_metadata(disk: Disk, config: NodeConfig, me: ReplicaKey, wall_ms: int) -> OpenedMetadata:
    """Open the metadata directory of the replica `me`. Blocks.

    If a controller's directory lost records or the vote, the order to catch up is durable on
    return. The flushed marker exists durably, so that a later power cut does not remove it.
    Raise CorruptLog, ArchiveRefused or ElectionFileError if the directory is damaged beyond
    repair."""
    parent = config.metadata_log_dir
    directory = f"{parent}/{METADATA_TOPIC}-0"
    had_marker = disk.exists(f"{directory}/{FLUSHED_MARKER_NAME}")
    election_file = ElectionFile(disk, directory, [voter.id for voter in config.voters])
    # This node saves an epoch before it appends records of it, so a later epoch is damage.
    saved_epoch = election_file.saved_epoch()
    storage = MetadataStorage.open(
        disk,
        directory,
        metadata_log_settings(config),
        wall_ms=wall_ms,
        latest_unsaved_epoch=ANY_EPOCH if saved_epoch is None else saved_epoch,
    )
    log = storage.log
    election_file.kraft_version = storage.history.latest.kraft_version
    election = election_file.load(has_records=log.end_offset > 0)
    mark, lost = None, ""
    if config.is_controller:
        found = DirectoryContents(
            election=election,
            is_empty=log.end_offset == 0,
            was_cut=log.recovery.cut_at_offset is not None and not had_marker,
            has_flag=disk.exists(f"{directory}/{CATCHING_UP_NAME}"),
        )
        mark, election, lost = _mark(disk, parent, directory, found, me)
        election_file.on_saved = mark.voted
    if not had_marker:
        # Only now: a missing marker and a torn end together are a loss, which is durable here.
        FlushedMarker(disk, directory).create()
    return OpenedMetadata(storage, election_file, election, mark, lost)


def _mark(
    disk: Disk, parent: str, directory: str, found: DirectoryContents, me: ReplicaKey
) -> tuple[MarkFile, Election, str]:
    """Bring the mark up to date. A restriction of this controller is durable on return."""
    on_disk = mark = read_mark(disk, parent)
    if mark is not None and mark.directory_id != me.directory_id:
        # An operator declared the disk a new one by a new directory id.
        mark, found = Mark(directory_id=me.directory_id), replace(found, has_flag=False)
    lost = why_lost(mark, found)
    changed, election = settled(mark, found, me)
    file = MarkFile(disk, parent, directory, changed)
    if lost:
        lost = f"{directory} {lost}. {WAY_OUT}"
        logger.error("%s", lost)
        file.begin_catching_up()
    if changed != on_disk:
        write_mark(disk, parent, changed)
    return file, election, lost


def adopt(disk: Disk, config: NodeConfig, directory_id: Uuid) -> None:
    """Write the mark of a new controller whose directory Apache Kafka formatted.

    Do nothing for a broker, or if a node of Quorate has run on the directory. Such a directory has
    a mark, or the copy of meta.properties that the first start of a node writes. The mark is
    durable on return.
    """
    if config.is_controller and not is_used(disk, config):
        write_mark(disk, config.metadata_log_dir, Mark(directory_id=directory_id))


def is_used(disk: Disk, config: NodeConfig) -> bool:
    """Return True if a node of Quorate has run on these directories. Block. Raise OSError."""
    parent = config.metadata_log_dir
    known = (
        f"{config.log_dir}/{META_COPY}",
        f"{parent}/{MARK_NAME}",
        f"{parent}/{METADATA_TOPIC}-0/{CATCHING_UP_NAME}",
    )
    return any(disk.exists(each) for each in known)


def declare_new(disk: Disk, config: NodeConfig, me: ReplicaKey) -> None:
    """Let a controller vote again, because an operator says that the disk lost nothing.

    No node may run on the directory. The mark may name a later epoch than the election file. Then
    this function records a vote for this node in that epoch, so that it votes for no other node
    there. The new mark says that the disk never had records. The change is durable on return.

    Raise ElectionFileError if the last vote cannot be known."""
    parent = config.metadata_log_dir
    directory = f"{parent}/{METADATA_TOPIC}-0"
    disk.make_dirs(directory)
    mark = read_mark(disk, parent) or Mark(directory_id=me.directory_id)
    file = ElectionFile(disk, directory, [voter.id for voter in config.voters])
    election = file.load()
    if mark.directory_id == me.directory_id and mark.epoch > election.epoch:
        election = Election(mark.epoch, me, pinned=election.pinned)
        file.save(election)
    write_mark(disk, parent, Mark(directory_id=me.directory_id, epoch=election.epoch))
    if disk.exists(f"{directory}/{CATCHING_UP_NAME}"):
        disk.remove(f"{directory}/{CATCHING_UP_NAME}")
        disk.sync_dir(directory)


def declare_lost(disk: Disk, config: NodeConfig, me: ReplicaKey) -> None:
    """Make a controller catch up with the leader before it votes again, from its next start on.

    No node may run on the directory. This function changes only the mark; the next start creates
    the second file of the restriction. The change is durable on return."""
    parent = config.metadata_log_dir
    mark = read_mark(disk, parent)
    if mark is None or mark.directory_id != me.directory_id:
        mark = Mark(directory_id=me.directory_id)
    write_mark(disk, parent, replace(mark, catching_up=True))
