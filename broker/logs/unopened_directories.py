"""The partition directories that a start finds and that are not open yet.

`partition.metadata` names the topic of a directory. The file is not synced when the directory is
made, so a power loss may remove it, and it may be damaged. An id that differs from the topic's in
one character is damaged, too. A directory of another topic is renamed to `-stray`, never deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterator

from quorate.quorum.ids import Uuid, uuid_to_text
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.errors import CorruptCheckpoint, CorruptLog
from quorate.quorum.log.files.names import PartitionName, stray_directory_name
from quorate.quorum.seams import Disk

logger = logging.getLogger("quorate.broker.replication")


class UnopenedDirectories:
    """The unopened partition directories of a log directory, by name."""

    def __init__(
        self,
        disk: Disk,
        log_dir: str,
        unique: Callable[[], str],
        forget: Callable[[PartitionName], None],
    ) -> None:
        """Begin empty. `unique` returns a random text for the name of a stray (a directory that
        belongs to no replica of this broker). `forget` gets the name of a directory that was set
        aside, to remove its checkpointed offsets."""
        self._disk = disk
        self._log_dir = log_dir
        self._unique = unique
        self._forget = forget
        self._names: dict[PartitionName, None] = {}

    def __iter__(self) -> Iterator[PartitionName]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: PartitionName) -> bool:
        return name in self._names

    def add(self, name: PartitionName) -> None:
        """Add a directory that the start found."""
        self._names[name] = None

    def adopt(self, name: PartitionName, topic_id: Uuid, *, peers_have_it: bool) -> bool:
        """Return True if the start found a directory `name` of the topic `topic_id`, as `topic_of`
        decides. Set a directory of another or an unknown topic aside, and return False. The
        directory stays unopened until `opened`.

        Raise CorruptCheckpoint if its topic is unreadable, unless peers have the records.
        Blocks."""
        if name not in self._names:
            return False
        directory = f"{self._log_dir}/{name}"
        if topic_of(self._disk, directory, topic_id, peers_have_it=peers_have_it) == topic_id:
            return True
        self.set_aside(name)
        return False

    def topic_id_of(self, name: PartitionName) -> Uuid | None:
        """Return the topic id of a directory, or None if it is unknown. Blocks."""
        return known_topic(self._disk, f"{self._log_dir}/{name}")

    def opened(self, name: PartitionName) -> None:
        """Remove a directory whose log is open now."""
        self._names.pop(name, None)

    def set_aside_all(self, kept: Container[PartitionName]) -> None:
        """Set all remaining directories aside, but those of `kept`. Blocks."""
        for name in [each for each in self._names if each not in kept]:
            self.set_aside(name)

    def set_aside(self, name: PartitionName) -> None:
        """Set one directory aside. Blocks."""
        target = stray_directory_name(name, self._unique())
        logger.warning(
            "directory %s in %s is not the log of a replica of this broker and is renamed to %s",
            name,
            self._log_dir,
            target,
        )
        self._disk.rename(f"{self._log_dir}/{name}", f"{self._log_dir}/{target}")
        self._forget(name)
        del self._names[name]


def known_topic(disk: Disk, directory: str) -> Uuid | None:
    """Return the topic id of a directory, or None if it is missing or unreadable. Blocks."""
    try:
        return checkpoints.read_partition_metadata(disk, directory)
    except CorruptCheckpoint:
        return None


def topic_of(disk: Disk, directory: str, expected: Uuid, *, peers_have_it: bool) -> Uuid | None:
    """Return the topic id of a directory, or None if it is unknown and the replica may start empty.

    If `partition.metadata` is missing or damaged, the topic may have been deleted and created again
    while this broker was away. A broker in the ISR (`peers_have_it` is False) cannot have missed
    that. For it a missing file means the topic `expected`, and the file is written again; a damaged
    one raises CorruptCheckpoint. Blocks."""
    try:
        found = checkpoints.read_partition_metadata(disk, directory)
        if found is not None:
            _require_whole(directory, found, expected)
    except CorruptCheckpoint as error:
        if not peers_have_it:
            raise
        logger.warning("%s. Peers have the records, so the replica starts empty", error)
        return None
    if found is None and not peers_have_it:
        checkpoints.write_partition_metadata(disk, directory, expected)
        return expected
    return found


def _require_whole(directory: str, found: Uuid, expected: Uuid) -> None:
    """Raise CorruptCheckpoint if the topic id `found` is `expected` with another character.

    The file has no checksum. Topic ids are random, so two of them differ in many characters. If the
    id of the directory differs in one, a byte of the file is damaged."""
    one, other = uuid_to_text(found), uuid_to_text(expected)
    if sum(a != b for a, b in zip(one, other, strict=True)) == 1:
        reason = (
            f"the topic id {one} differs from {other}, that of the topic of this name, in one "
            f"character, so it is damaged. Write {other} instead"
        )
        raise CorruptCheckpoint(f"{directory}/{checkpoints.PARTITION_METADATA_NAME}", 2, reason)


def require_none_lost(directory: str, recovery_point: int) -> None:
    """Raise CorruptLog if the log of a missing `directory` held records.

    Call it if this broker is in the ISR and was shut down cleanly. A recovery point above 0 shows
    that the log had records, and the cluster has not deleted them."""
    if recovery_point > 0:
        reason = (
            f"the directory is gone, and was flushed up to offset {recovery_point}. Restore it, or "
            f"remove its line from {checkpoints.RECOVERY_POINTS_NAME} to give up its records"
        )
        raise CorruptLog(directory, 0, 0, reason)
