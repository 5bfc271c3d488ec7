"""The log end offsets of replicas, as ListOffsets returns them: one request per broker."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.cli.client.admin import Admin
from quorate.cli.client.groups import Place
from quorate.cli.console.views.answers import Notes, answers_of
from quorate.quorum.protocol.schemas import list_offsets as schemas

CONSUMER = -1
"""The replica id of a consumer, to which a leader returns the high watermark."""
LATEST = -1


def ends_of(
    admin: Admin, replicas: Iterable[tuple[int, Place]], notes: Notes, replica_id: int = CONSUMER
) -> dict[tuple[int, Place], int]:
    """Return the log end offset of each (broker, partition).

    A replica whose broker does not answer, or answers with an error, is left out. Raise Refused if
    a broker does not serve ListOffsets."""
    wanted: dict[int, dict[str, list[int]]] = {}
    for broker, (topic, partition) in replicas:
        wanted.setdefault(broker, {}).setdefault(topic, []).append(partition)
    requests = {broker: request_of(topics, replica_id) for broker, topics in wanted.items()}
    answers = answers_of(admin, requests, schemas.ListOffsetsResponse, notes)
    return {
        (broker, (topic.name, each.partition_index)): each.offset
        for broker, answer in answers.items()
        for topic in answer.topics
        for each in topic.partitions
        if not each.error_code and each.offset >= 0
    }


def request_of(topics: dict[str, list[int]], replica_id: int) -> schemas.ListOffsetsRequest:
    """Return the request for the ends of some partitions of each topic."""
    return schemas.ListOffsetsRequest(
        replica_id=replica_id,
        topics=tuple(
            schemas.ListOffsetsTopic(
                name=topic,
                partitions=tuple(
                    schemas.ListOffsetsPartition(partition_index=each, timestamp=LATEST)
                    for each in partitions
                ),
            )
            for topic, partitions in topics.items()
        ),
    )
