"""The files of the election: Kafka's `quorum-state`, and a copy with a checksum next to it.

Each file is replaced as a whole. Both are durable when `save` returns. A crash in between leaves
two valid files, and `load` takes the newer one. Either would be safe, because no message that rests
on the newer one has left the node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quorate.quorum.log.files.names import TEMPORARY_SUFFIX
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.quorum_state import (
    COPY_NAME,
    KAFKA_NAME,
    choose_election,
    decode_copy,
    decode_kafka,
    encode_copy,
    encode_v0,
    encode_v1,
    read_saved_election,
)
from quorate.quorum.seams import Disk

__all__ = ["COPY_NAME", "KAFKA_NAME", "ElectionFile"]


class ElectionFile:
    """The two files of one directory. All calls block, so `save` runs on the disk's thread."""

    def __init__(
        self, disk: Disk, directory: str, voter_ids: Sequence[int], *, kraft_version: int = 0
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._voter_ids = tuple(voter_ids)
        self.kraft_version = kraft_version
        """The latest kraft.version. From 1 on, Kafka's file holds the directory id of the vote."""
        self.on_saved: Callable[[int], None] = lambda epoch: None
        """Called with the epoch at the end of `save`. It may block."""

    def load(self, *, has_records: bool = False, any_epoch: bool = False) -> Election:
        """Return the last saved election, or an empty one if no file exists and none is lost. If a
        file exists, both files hold the election on return.

        `has_records` says that the log has records, so missing files mean a loss. `any_epoch`
        accepts an epoch beyond Kafka's range. Raise ElectionFileError if the last vote cannot be
        known, and OSError if the disk fails.
        """
        kafka, kafka_says = read_saved_election(self._disk, self._path(KAFKA_NAME), decode_kafka)
        copy, copy_says = read_saved_election(self._disk, self._path(COPY_NAME), decode_copy)
        election = choose_election(
            kafka_says, copy_says, self._directory, has_records=has_records, any_epoch=any_epoch
        )
        found = {KAFKA_NAME: kafka, COPY_NAME: copy}
        if any(found.values()) and found != self._contents(election):
            self.save(election)
        return election

    def saved_epoch(self) -> int | None:
        """Return the higher of the epochs that the two files hold, or None if neither file is
        valid. Change nothing. Raise OSError if the disk fails."""
        _, kafka = read_saved_election(self._disk, self._path(KAFKA_NAME), decode_kafka)
        _, copy = read_saved_election(self._disk, self._path(COPY_NAME), decode_copy)
        return max(
            (each.epoch for each in (kafka, copy) if isinstance(each, Election)), default=None
        )

    def save(self, election: Election) -> None:
        """Write the election to both files. It is durable on return. Raise OSError if the disk
        fails."""
        contents = self._contents(election)
        for name, content in contents.items():
            file = self._disk.open(self._path(name) + TEMPORARY_SUFFIX, create=True)
            try:
                file.truncate(0)
                file.pwrite(content, 0)
                file.sync()
            finally:
                file.close()
        for name in contents:
            self._disk.rename(self._path(name) + TEMPORARY_SUFFIX, self._path(name))
        self._disk.sync_dir(self._directory)
        self.on_saved(election.epoch)

    def _contents(self, election: Election) -> dict[str, bytes]:
        dynamic = self.kraft_version > 0
        kafka = encode_v1(election) if dynamic else encode_v0(election, self._voter_ids)
        # The copy comes first, because only the copy holds everything.
        return {COPY_NAME: encode_copy(election), KAFKA_NAME: kafka}

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"
