"""`quorate storage repair-epoch`: lowers a controller's epoch that a false request raised.

A false vote request can raise a node's epoch so far that no higher epoch is left for an election.
Older versions even saved epochs beyond 2^31-1, in which no record can be written. The repair sets
the epoch to the last epoch of the log plus EPOCH_MARGIN, or to one that the operator names. The
node then has no vote and knows no leader. The epochs above the new one are abandoned.

The operator must run the repair on every voter while all of them are stopped. It is safe then:

- No log has records of the abandoned epochs, because the new epoch is above the last one of the
  log.
- No voter has a vote in the abandoned epochs any more, and therefore no election can use one.
- The margin covers epochs that other voters reached shortly before.

A voter on which the repair was not run is left behind: the others reject its epoch as implausible.
"""

from __future__ import annotations

from dataclasses import replace

from quorate.config.node_config import NodeConfig
from quorate.quorum.ids import METADATA_TOPIC
from quorate.quorum.node.replica.metadata_mark import read_mark, write_mark
from quorate.quorum.node.replica.metadata_storage import MetadataStorage
from quorate.quorum.node.replica.node_settings import metadata_log_settings
from quorate.quorum.offline.force_voters import EPOCH_MARGIN
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import ElectionFile
from quorate.quorum.raft.epoch_limits import MAX_EPOCH, MAX_EPOCH_JUMP
from quorate.quorum.seams import Disk


class EpochKept(Exception):
    """The epoch is not changed; the message says why. A torn end of the log may have been cut."""


def repair_epoch(
    disk: Disk, config: NodeConfig, wall_ms: int, epoch: int | None = None
) -> tuple[int, int]:
    """Return the epoch that the directory held and the one that it holds now. Block.

    The new epoch is `epoch`, or the last one of the log plus EPOCH_MARGIN. The election with this
    epoch is durable on return. The epoch of the mark (`quorate-metadata-mark`) is lowered with it.
    A torn end of the log is cut off, as by the next start. The directory must be formatted, and no
    node may run on it.

    Raise EpochKept if the held epoch is at most MAX_EPOCH_JUMP above the last one of the log. Raise
    it also if the new epoch is not above the last one of the log, or is too high. Raise
    ElectionFileError, LogError or OSError."""
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
    if mark is not None:  # first, because its epoch must not exceed the election's
        write_mark(disk, parent, replace(mark, epoch=min(mark.epoch, chosen)))
    file.save(Election(chosen, None, pinned=held.pinned))
    return held.epoch, chosen


def _check(directory: str, held: Election, last_epoch: int, chosen: int) -> None:
    """Raise EpochKept unless the held epoch is implausible and the chosen one is possible."""
    if held.epoch <= last_epoch + MAX_EPOCH_JUMP:
        raise EpochKept(
            f"{directory}: epoch {held.epoch} is plausible, because the log ends in epoch "
            f"{last_epoch}. The epoch was not changed: a node that loses its vote could vote twice"
        )
    if not last_epoch < chosen <= min(MAX_EPOCH, last_epoch + MAX_EPOCH_JUMP):
        raise EpochKept(
            f"{directory}: the new epoch {chosen} is not possible. Give an epoch above "
            f"{last_epoch}, in "
            f"which the log ends, and at most {min(MAX_EPOCH, last_epoch + MAX_EPOCH_JUMP)}"
        )
