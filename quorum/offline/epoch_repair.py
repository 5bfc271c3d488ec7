"""`quorate storage repair-epoch`: a smaller epoch for a controller that a false one was sent to.

A false vote request can have raised a node's epoch so far that no election fits above it. Older
versions even saved epochs beyond 2^31-1, in which no record can be written. The repair sets the
epoch to the log's last one plus EPOCH_MARGIN, without a vote and without a leader.

It must be done on every voter while all of them are stopped. It is safe then:

- No log has records of the epochs that are given up: the new epoch is above the log's last.
- No voter remembers a vote in them, so the votes that are forgotten elect nobody.
- Epochs that other voters reached shortly before are covered by the margin.

A voter that is left out stays behind: the others refuse its epoch as implausible.
"""

from __future__ import annotations

from dataclasses import replace

from quorate.config.node_config import NodeConfig
from quorate.quorum.ids import METADATA_TOPIC
from quorate.quorum.node.metadata_mark import read_mark, write_mark
from quorate.quorum.node.metadata_storage import MetadataStorage
from quorate.quorum.node.node_settings import metadata_log_settings
from quorate.quorum.offline.force_voters import EPOCH_MARGIN
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import ElectionFile
from quorate.quorum.raft.epoch_limits import MAX_EPOCH, MAX_EPOCH_JUMP
from quorate.quorum.seams import Disk


class EpochKept(Exception):
    """The epoch is not changed; the message says why."""


def repair_epoch(
    disk: Disk, config: NodeConfig, wall_ms: int, epoch: int | None = None
) -> tuple[int, int]:
    """Return the epoch that the directory held and the one that it holds now. Blocks.

    No node runs on the directory. Durable on return. Raises EpochKept, ElectionFileError, LogError.
    A torn end of the log is cut, as the next start would do."""
    parent = config.metadata_log_dir
    directory = f"{parent}/{METADATA_TOPIC}-0"
    storage = MetadataStorage.open(disk, directory, metadata_log_settings(config), wall_ms=wall_ms)
    try:
        latest = storage.snapshots.latest
        last_epoch = max(storage.log.last_epoch, latest.epoch if latest else 0, 0)
        has_records = storage.log.end_offset > 0
        kraft_version = storage.history.latest.kraft_version
    finally:
        storage.close()
    voter_ids = [voter.id for voter in config.voters]
    file = ElectionFile(disk, directory, voter_ids, kraft_version=kraft_version)
    held = file.load(has_records=has_records, any_epoch=True)
    chosen = last_epoch + EPOCH_MARGIN if epoch is None else epoch
    _check(directory, held, last_epoch, chosen)
    mark = read_mark(disk, parent)
    if mark is not None:  # first, because it never says more than the election
        write_mark(disk, parent, replace(mark, epoch=min(mark.epoch, chosen)))
    file.save(Election(chosen, None, pinned=held.pinned))
    return held.epoch, chosen


def _check(directory: str, held: Election, last_epoch: int, chosen: int) -> None:
    if held.epoch <= last_epoch + MAX_EPOCH_JUMP:
        raise EpochKept(
            f"{directory}: epoch {held.epoch} is plausible, the log ends in {last_epoch}. It is "
            "kept, because a node that forgets its vote could vote twice"
        )
    if not last_epoch < chosen <= min(MAX_EPOCH, last_epoch + MAX_EPOCH_JUMP):
        raise EpochKept(
            f"{directory}: the log ends in epoch {last_epoch}; the new epoch must be above it, by "
            f"{MAX_EPOCH_JUMP} at most, and not above {MAX_EPOCH}: {chosen} is not"
        )
