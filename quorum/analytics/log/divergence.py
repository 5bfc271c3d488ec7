"""Places where the logs of two nodes of one cluster have different records.

A log is compared with the one that is read for its cluster. The comparison uses the epochs of both
logs, the names of snapshots, and the checksums of the first and the last common batch. It does not
read all records.

- Records of different epochs at one offset are a conflict that Raft resolves: it keeps the records
  of one node, and all committed records.
- Committed records that differ are an error: a snapshot holds committed records only, and two
  records with the same offset and epoch are the same record (log matching, Raft, section 5.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from quorate.quorum.analytics.log.agreement import LogEnd, common_end
from quorate.quorum.analytics.log.commits import log_end_of
from quorate.quorum.analytics.log.damage import CONFLICT, DIVERGENCE, Damage
from quorate.quorum.analytics.log.places import NodeLog, by_cluster
from quorate.quorum.analytics.log.seek import batch_at, epoch_at
from quorate.quorum.analytics.log.segments import SNAPSHOT_NAME, files_named, log_start_offset


def divergences(logs: Iterable[NodeLog]) -> dict[str, tuple[Damage, ...]]:
    """Return the differences of each log from the one that is read for its cluster, by directory.

    Logs without differences are left out. Block."""
    found: dict[str, tuple[Damage, ...]] = {}
    for each in by_cluster(logs):
        (best,) = (log for log in each if log.is_chosen)
        end = log_end_of(best.directory) if len(each) > 1 else None
        for log in each:
            if end is not None and log is not best and (differ := _between(log, best, end)):
                found[log.directory] = differ
    return found


def _between(log: NodeLog, best: NodeLog, best_end: LogEnd) -> tuple[Damage, ...]:
    end = log_end_of(log.directory)
    start = max(log_start_offset(log.directory), log_start_offset(best.directory))
    last = min(end.end_offset, best_end.end_offset)
    common = min(common_end(end, best_end), last)
    found = [*_snapshots(log, best), *_contents(log, best, start, common)]
    if start < last and common < last and not found:
        at = max(common, start)
        found.append(
            Damage(
                CONFLICT,
                at,
                end.end_offset,
                f"From offset {at} on, {_name(log)} has records of another epoch than "
                f"{_name(best)}. Raft keeps the records of one of them, and all committed records.",
            )
        )
    return tuple(found)


def _snapshots(log: NodeLog, best: NodeLog) -> Iterator[Damage]:
    """Yield the snapshots of a node that end in another epoch than the log that is read."""
    for path, end_offset, _ in files_named(log.directory, SNAPSHOT_NAME):
        match = SNAPSHOT_NAME.search(path)
        epoch, offset = epoch_at(best.directory, end_offset - 1), end_offset - 1
        if match is not None and epoch is not None and epoch != int(match[2]):
            yield Damage(
                DIVERGENCE,
                offset,
                None,
                f"The snapshot {path} ends in epoch {int(match[2])}, but {_name(best)} has epoch "
                f"{epoch} at offset {offset}, so committed records differ.",
            )


def _contents(log: NodeLog, best: NodeLog, start: int, common: int) -> Iterator[Damage]:
    """Yield the first of two places where records with the same epoch differ."""
    for offset in dict.fromkeys((start, common - 1)):
        if not start <= offset < common:
            continue
        one, other = (batch_at(each.directory, offset) for each in (log, best))
        if one is None or other is None:
            continue
        if (one.base_offset, one.crc) != (other.base_offset, other.crc):
            yield Damage(
                DIVERGENCE,
                offset,
                None,
                f"At offset {offset}, {_name(log)} and {_name(best)} have different records of the "
                f"same epoch {one.leader_epoch}, so they are of different histories.",
            )
            return


def _name(log: NodeLog) -> str:
    return f"the log of node {log.origin.node_id}"
