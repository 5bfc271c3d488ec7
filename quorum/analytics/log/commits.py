"""The committed part of each log, as far as the files prove it, and the log that is read.

- A snapshot holds only committed records.
- If the logs of all voters are given, the records that no election can remove are committed, or
  will be as soon as a leader is elected. All others are not committed (`agreement.py`).

If only some logs are given, the records above the last snapshot may or may not be committed. The
same holds while the last change of the voters may be uncommitted and its two sets disagree. The
logs of a running cluster are read one after the other, so the result may lag behind the cluster.

Of the voters' logs the one is read that certainly has every committed record, and the fewest
others. If half of the voters' logs or more are missing, it is the most up-to-date log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from quorate.quorum.analytics.log.agreement import LogEnd, agreement, common_end
from quorate.quorum.analytics.log.leaders import electorates
from quorate.quorum.analytics.log.places import NodeLog, by_cluster
from quorate.quorum.analytics.log.seek import Before, batches_from, last_batch, last_before
from quorate.quorum.analytics.log.segments import (
    SEGMENT_NAME,
    SNAPSHOT_NAME,
    Committed,
    StoredFile,
    files_named,
)


def with_commits(logs: Iterable[NodeLog]) -> list[NodeLog]:
    """Return the logs with their `committed` parts and `is_chosen`, cluster by cluster. Block."""
    return [log for each in by_cluster(logs) for log in _of_one_cluster(each)]


def _of_one_cluster(logs: list[NodeLog]) -> list[NodeLog]:
    ends = {log.directory: log_end_of(log.directory) for log in logs}
    in_order = sorted(logs, key=lambda log: ends[log.directory].rank, reverse=True)
    newest = in_order[0]
    # Of two copies of one node's log the newer one counts.
    by_node = {
        log.origin.node_id: log for log in reversed(in_order) if log.origin.node_id is not None
    }
    facts = agreement(
        {node: ends[log.directory] for node, log in by_node.items()},
        electorates(newest.directory),
    )
    best = newest if facts.complete is None else by_node[facts.complete]
    snapshot_end = max(
        (file.offset for log in logs for file in files_named(log.directory, SNAPSHOT_NAME)),
        default=0,
    )
    proved = max(snapshot_end, facts.decided_end)
    return [
        replace(
            log,
            committed=Committed(
                min(proved, common_end(ends[log.directory], ends[best.directory])),
                facts.rest_is_known,
            ),
            is_chosen=log is best,
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
