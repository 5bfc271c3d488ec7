"""The committed part of each log, as far as the files prove it.

- A snapshot holds only committed records.
- If the logs of all voters are given, the records that no election can remove are committed, or
  will be as soon as a leader is elected. All others are not committed (`agreement.py`).

If only some logs are given, the records above the last snapshot may or may not be committed. The
logs of a running cluster are read one after the other, so the result may lag behind the cluster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from quorate.quorum.analytics.log.agreement import LogEnd, common_end, decided_end
from quorate.quorum.analytics.log.places import NodeLog, best_of, voters_of
from quorate.quorum.analytics.log.seek import Before, batches_from, last_batch, last_before
from quorate.quorum.analytics.log.segments import (
    SEGMENT_NAME,
    SNAPSHOT_NAME,
    Committed,
    StoredFile,
    files_named,
)


def with_commits(logs: Iterable[NodeLog]) -> list[NodeLog]:
    """Return the logs with their `committed` parts, cluster by cluster. Block."""
    clusters: defaultdict[str, list[NodeLog]] = defaultdict(list)
    for log in logs:
        clusters[log.origin.cluster_id].append(log)
    return [log for each in clusters.values() for log in _of_one_cluster(each)]


def _of_one_cluster(logs: list[NodeLog]) -> list[NodeLog]:
    voters = voters_of(logs)
    ends = {log.directory: log_end_of(log.directory) for log in logs}
    of_voters = [ends[log.directory] for log in logs if log.origin.node_id in voters]
    decided = decided_end(of_voters, len(voters)) if voters else None
    best = ends[best_of(logs).directory]
    snapshot_end = max(
        (file.offset for log in logs for file in files_named(log.directory, SNAPSHOT_NAME)),
        default=0,
    )
    proved = max(snapshot_end, decided or 0)
    return [
        replace(
            log,
            committed=Committed(
                min(proved, common_end(ends[log.directory], best)), decided is not None
            ),
        )
        for log in logs
    ]


def log_end_of(directory: str) -> LogEnd:
    """Return the epochs of a log and its end offset, found by bisection."""
    starts: list[tuple[int, int]] = []
    for segment in files_named(directory, SEGMENT_NAME):
        position: int | None = 0
        while position is not None:
            first = next(batches_from(segment, position), None)
            if first is None:
                break
            header = first[1]
            if not starts or header.leader_epoch > starts[-1][0]:
                starts.append((header.leader_epoch, header.base_offset))
            position = _after(segment, up_to_epoch(starts[-1][0]))
    last = last_batch(directory)
    return LogEnd(tuple(starts), 0 if last is None else last.next_offset)


def up_to_epoch(epoch: int) -> Before:
    """Return a condition for bisection: the batch has this leader epoch or an earlier one."""
    return lambda header: header.leader_epoch <= epoch


def _after(segment: StoredFile, before: Before) -> int | None:
    """Return the position of the first batch for which `before` is false, or None."""
    position = last_before(segment, before)
    following = [
        at for at, header in islice(batches_from(segment, position), 2) if not before(header)
    ]
    return following[0] if following else None
