"""The parts of the log lines about a decision: names, counts, causes and remedies.

All lists are clipped, so that no line grows with the number of records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from quorate.quorum.metadata.causes import Cause, describe
from quorate.quorum.metadata.image import MetadataImage, Partition
from quorate.quorum.metadata.records import NO_LEADER, PartitionChangeRecord

NAMED = 3
"""The number of partitions, topics or resources that a line names."""
MAX_CAUSES = 8
"""The number of causes of changed leaders, or of changed ISRs, of one decision that get their own
line."""

REMEDIES: dict[str, str] = {
    Cause.SESSION_EXPIRED: "Check that the broker runs and that it reaches this controller.",
    Cause.CONNECTION_LOST: "Its process has ended. Start the broker again.",
    Cause.UNREGISTERED: "It can only return as a new broker.",
}
"""The sentence for the operator after an event with this cause."""


class ClusterEvent(NamedTuple):
    """One line of the log. `kind` is a fixed name, such as "broker-fenced"."""

    kind: str
    text: str
    limited: str = ""
    """If not empty, only one line of these is logged in the interval of `LogLimit`."""


def because(cause: str, *, with_doc: bool = True) -> str:
    """Return the end of a sentence about a cause: its explanation, its name, and the remedy."""
    if not cause:
        return "."
    doc = f": {describe(cause)}" if with_doc else ""
    remedy = REMEDIES.get(cause, "")
    return f"{doc} [{cause}]{f' {remedy}' if remedy else ''}"


def counted(number: int, noun: str) -> str:
    """Return "1 partition" or "2 partitions"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def first_of(names: Sequence[str]) -> str:
    """Return the first NAMED names, and the count of the others."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def named(records: Sequence[PartitionChangeRecord], image: MetadataImage) -> str:
    """Return the names of the first NAMED partitions, and the count of the others."""
    topics = (image.topics.get(record.topic_id) for record in records[:NAMED])
    names = [
        f"{'?' if topic is None else topic.name}-{record.partition_id}"
        for topic, record in zip(topics, records, strict=False)
    ]
    more = f" and {len(records) - NAMED} more" if len(records) > NAMED else ""
    return ", ".join(names) + more


def brokers(counts: Counter[int]) -> str:
    """Return the brokers with the highest counts, and the count of the other brokers."""
    if len(counts) == 1:
        (broker,) = counts
        return "no leader" if broker == NO_LEADER else f"broker {broker}"
    parts = [
        f"{'no leader' if broker == NO_LEADER else f'broker {broker}'} ({count})"
        for broker, count in counts.most_common(NAMED)
    ]
    more = f" and {len(counts) - NAMED} more" if len(counts) > NAMED else ""
    return ", ".join(parts) + more


def partition_of(image: MetadataImage, record: PartitionChangeRecord) -> Partition | None:
    """Return the partition that a record changes, as it is in an image."""
    return image.partition(record.topic_id, record.partition_id)


def by_cause(
    records: Sequence[PartitionChangeRecord],
) -> dict[str, list[PartitionChangeRecord]]:
    """Return the records by the names of their causes. Those beyond MAX_CAUSES are UNKNOWN."""
    found: dict[str, list[PartitionChangeRecord]] = {}
    for record in records:
        name = record.cause.partition(" ")[0]
        if name not in found and len(found) >= MAX_CAUSES:
            name = Cause.UNKNOWN
        found.setdefault(name, []).append(record)
    return found
