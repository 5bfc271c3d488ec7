"""A controller's mark: facts about the metadata log, stored outside of the metadata directory.

A voter that lost its log or its vote must not vote again as if it were new (`raft/catching_up.py`).
An empty metadata directory alone does not show whether anything was lost. Therefore a file in its
parent directory, `quorate-metadata-mark`, says what the metadata directory must hold:

- the directory id that the mark belongs to, so that a new directory id makes the disk a new one;
- the last epoch in which this node may have voted or acknowledged;
- whether the log ever held records that were flushed;
- whether the node has to catch up with the leader before it votes.

Invariants:

- The mark never says more than the metadata directory holds, unless that has lost something. The
  election and the records are durable before the mark says so. Nothing that rests on them leaves
  the node before both are durable.
- A node that has to catch up says so in two files, `quorate-metadata-mark` and, in the metadata
  directory, `quorate-catching-up`. The loss of either one does not lift the restriction.

Brokers have no mark: they do not vote, and fetch a lost log again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from crc32c import crc32c

from quorate.quorum.ids import ReplicaKey, Uuid, uuid_from_text, uuid_to_text
from quorate.quorum.log.files.checkpoints import read_small
from quorate.quorum.log.files.checkpoints import replace as replace_file
from quorate.quorum.log.files.errors import CorruptCheckpoint
from quorate.quorum.raft.election import Election
from quorate.quorum.seams import Disk

MARK_NAME = "quorate-metadata-mark"
CATCHING_UP_NAME = "quorate-catching-up"
MAX_MARK_BYTES = 4096
MAX_EPOCH = (1 << 31) - 1
VERSION = 0
"""The version of the mark's format. A mark of another version counts as damaged."""

WAY_OUT = (
    "Until the leader has brought its log up to date, this controller neither votes nor "
    "acknowledges. If the others elect no leader without it, restore the directory from a backup "
    "taken after this node last stopped, or start a controller that has the records. Only if this "
    "disk never held the cluster's metadata: `quorate storage declare --new -c FILE`"
)
"""The end of the message about a loss: the consequence and the ways out for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The content of `quorate-metadata-mark`."""

    directory_id: Uuid
    """The directory id to which the mark belongs."""
    epoch: int = 0
    """The last epoch in which this node may have voted or acknowledged, or 0 if there is none."""
    has_records: bool = False
    """True if the metadata log has had flushed records."""
    catching_up: bool = False
    """True if this node must catch up with the leader before it votes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryContents:
    """The contents of the metadata directory at a start or an offline check."""

    election: Election
    is_empty: bool
    """True if there is neither a record nor a snapshot with records."""
    was_cut: bool = False
    """True if a torn end was cut from the log, and no flushed marker shows what was flushed."""
    has_flag: bool = False
    """True if `quorate-catching-up` exists."""


def encode(mark: Mark) -> bytes:
    """Return one line of JSON and one line with its CRC-32C."""
    state = {
        "directoryId": uuid_to_text(mark.directory_id),
        "epoch": mark.epoch,
        "hasRecords": mark.has_records,
        "catchingUp": mark.catching_up,
        "version": VERSION,
    }
    body = json.dumps(state, separators=(",", ":")).encode()
    return b"%b\n%08x\n" % (body, crc32c(body))


def decode(content: bytes) -> Mark | None:
    """Return the mark in `content`, or None if that is damaged."""
    body, _, checksum = content.partition(b"\n")
    if checksum != b"%08x\n" % crc32c(body):
        return None
    try:
        return _mark(json.loads(body))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _mark(state: Any) -> Mark:
    flags = state["hasRecords"], state["catchingUp"]
    epoch = state["epoch"]
    if state["version"] != VERSION or type(epoch) is not int or not 0 <= epoch <= MAX_EPOCH:
        raise ValueError(f"version {state['version']!r}, epoch {epoch!r}")
    if not all(type(each) is bool for each in flags):
        raise ValueError(f"flags {flags}")
    return Mark(
        directory_id=uuid_from_text(state["directoryId"]),
        epoch=epoch,
        has_records=flags[0],
        catching_up=flags[1],
    )


def read_mark(disk: Disk, parent: str) -> Mark | None:
    """Return the mark in the directory `parent`, or None if it is missing or damaged. Block."""
    try:
        content = read_small(disk, f"{parent}/{MARK_NAME}", max_bytes=MAX_MARK_BYTES)
    except CorruptCheckpoint:
        return None
    return None if content is None else decode(content)


def write_mark(disk: Disk, parent: str, mark: Mark) -> None:
    """Replace the mark in `parent`. It is durable on return. Block."""
    replace_file(disk, f"{parent}/{MARK_NAME}", encode(mark))


def remove_mark(disk: Disk, parent: str) -> None:
    """Remove the mark, if there is one. The removal is durable when the caller has synced
    `parent`."""
    if disk.exists(f"{parent}/{MARK_NAME}"):
        disk.remove(f"{parent}/{MARK_NAME}")


def why_lost(mark: Mark | None, found: DirectoryContents) -> str:
    """Return what the directory lost, as the rest of a sentence that begins with its path; empty if
    the node may vote."""
    epoch = found.election.epoch
    if mark is None:
        if found.is_empty and epoch == 0:
            return f"is empty, and no {MARK_NAME} says that this disk is new"
        return "was being restored from the leader" if found.has_flag else ""
    if mark.has_records and found.is_empty:
        return "lost all records of its metadata log"
    if mark.epoch > epoch:
        return f"lost this node's vote: it took part in epoch {mark.epoch}, not only {epoch}"
    if mark.catching_up or found.has_flag:
        return "was being restored from the leader"
    if mark.has_records and found.was_cut:
        return "lost the marker of what was flushed, and the end of the log was torn"
    return ""


def settled(mark: Mark | None, found: DirectoryContents, me: ReplicaKey) -> tuple[Mark, Election]:
    """Return the mark and the election to start with. Write nothing.

    The mark restricts the node if `why_lost` finds a loss. If the vote of the mark's epoch is lost,
    the election contains a vote of this node for itself in that epoch. The node then votes for no
    other candidate there."""
    lost = bool(why_lost(mark, found))
    if mark is None:
        mark = Mark(directory_id=me.directory_id)
    election = found.election
    if mark.epoch > election.epoch:
        election = Election(mark.epoch, me, pinned=election.pinned)
    return (
        replace(
            mark,
            epoch=election.epoch,
            has_records=mark.has_records or not found.is_empty,
            catching_up=lost,
        ),
        election,
    )


class MarkFile:
    """The mark of a node. `mark` is its content on the disk.

    The methods block, so a running node calls them on the disk's thread. Only `begin_catching_up`
    is called at the start. What they write is durable on return."""

    def __init__(self, disk: Disk, parent: str, directory: str, mark: Mark) -> None:
        """`mark` is the mark on the disk, and `directory` is the metadata directory."""
        self.mark = mark
        self._disk = disk
        self._parent = parent
        self._flag = f"{directory}/{CATCHING_UP_NAME}"
        self._directory = directory

    def begin_catching_up(self) -> None:
        """Create the second file that restricts this node, if it does not exist."""
        if not self._disk.exists(self._flag):
            replace_file(self._disk, self._flag, b"")

    def voted(self, epoch: int) -> None:
        """Note that an election of `epoch` is durable. Write only if the epoch is new."""
        if epoch > self.mark.epoch:
            self._write(replace(self.mark, epoch=epoch))

    def flushed(self) -> None:
        """Note that records are durable. Write only the first time."""
        if not self.mark.has_records:
            self._write(replace(self.mark, has_records=True))

    def caught_up(self) -> None:
        """Lift the restriction in both files. A crash in between leaves it in force."""
        self._write(replace(self.mark, has_records=True, catching_up=False))
        if self._disk.exists(self._flag):
            self._disk.remove(self._flag)
        self._disk.sync_dir(self._directory)  # also if an earlier try has removed the file

    def _write(self, mark: Mark) -> None:
        write_mark(self._disk, self._parent, mark)
        self.mark = mark
