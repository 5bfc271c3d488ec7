"""The log lines about ISRs that shrink and expand while their leaders stay.

Kafka's leaders log each such change. Here one line has all partitions of a decision with the same
cause. Leaders ask for these changes as often as a follower falls behind and catches up, so the log
limits the lines of the same brokers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.event_texts import (
    NAMED,
    ClusterEvent,
    because,
    brokers,
    by_cause,
    counted,
    named,
    partition_of,
)
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import NO_LEADER, PartitionChangeRecord

ASKED_BY_LEADERS = frozenset({Cause.ISR_SHRINK_LAG, Cause.ISR_SHRINK_BROKER, Cause.ISR_EXPAND})
"""The causes of AlterPartition requests, which a follower repeats without an operator's action."""


def isr_events(
    records: Sequence[PartitionChangeRecord], before: MetadataImage, after: MetadataImage
) -> Iterator[ClusterEvent]:
    """Yield for each cause the event of the ISRs that shrank, and that of those that expanded."""
    for cause, several in by_cause(records).items():
        yield from _resized(several, cause, before, after)


def _resized(
    records: Sequence[PartitionChangeRecord],
    cause: str,
    before: MetadataImage,
    after: MetadataImage,
) -> Iterator[ClusterEvent]:
    left: Counter[int] = Counter()
    joined: Counter[int] = Counter()
    shrank: list[PartitionChangeRecord] = []
    expanded: list[PartitionChangeRecord] = []
    for record in records:
        partition, isr = partition_of(before, record), record.isr or ()
        old = () if partition is None else partition.isr
        gone = [broker for broker in old if broker not in isr]
        new = [broker for broker in isr if broker not in old]
        if gone:
            left.update(gone)
            shrank.append(record)
        if new:
            joined.update(new)
            expanded.append(record)
    for verb, several, moved in (("shrank", shrank, left), ("expanded", expanded, joined)):
        if several:
            yield _event(verb, several, moved, cause, after)


def _event(
    verb: str,
    records: Sequence[PartitionChangeRecord],
    moved: Counter[int],
    cause: str,
    after: MetadataImage,
) -> ClusterEvent:
    found = (partition_of(after, record) for record in records)
    leaders = Counter(NO_LEADER if each is None else each.leader for each in found)
    text = (
        f"{verb} the ISR of {counted(len(records), 'partition')} ({named(records, after)}) "
        f"by {brokers(moved)}, led by {brokers(leaders)}{because(cause)}"
    )
    kind = f"isr-{verb}"
    if cause not in ASKED_BY_LEADERS:
        return ClusterEvent(kind, text)
    return ClusterEvent(kind, text, f"{kind} {sorted(moved)[:NAMED]} {sorted(leaders)[:NAMED]}")
