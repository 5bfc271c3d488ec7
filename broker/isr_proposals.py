"""The ISR proposals of a broker that have no result yet, for /v1/stages and /metrics.

A proposal waits while an earlier request is in flight, or while no active controller answers. The
partition's leader meanwhile waits for its maximal ISR, so an old proposal can delay acks=all.
"""

from __future__ import annotations

from typing import Any

from quorate.broker.controller.alter_partition_sender import AlterPartitionSender
from quorate.quorum.ids import uuid_to_text
from quorate.quorum.metadata.image import MetadataImage

MAX_LISTED = 100
"""Maximum number of proposals that one response of /v1/stages lists, the oldest first."""


def proposals(sender: AlterPartitionSender, image: MetadataImage) -> dict[str, Any]:
    """Return the counts of the proposals without a result, and the oldest of them. `image` gives
    the names of their topics."""
    return {
        "waiting": sender.pending,
        "in_flight": sender.in_flight,
        "oldest_ms": sender.oldest_ms,
        "repeated_requests": sender.repeated,
        "oldest": [
            {
                "topic": None
                if (topic := image.topics.get(change.topic_id)) is None
                else topic.name,
                "topic_id": uuid_to_text(change.topic_id),
                "partition": change.partition_id,
                "isr": [broker_id for broker_id, _ in change.isr],
                "cause": change.cause,
                "age_ms": age_ms,
            }
            for change, age_ms in sender.oldest(MAX_LISTED)
        ],
    }
