"""The state of the whole cluster at one offset or time of its history.

The metadata log is replayed in this process, without Spark. A record takes effect unless it is part
of an aborted or unfinished metadata transaction (KIP-868). Nothing is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate.quorum.analytics.log.errors import OutOfHistory
from quorate.quorum.analytics.log.text import RESOURCES, clock
from quorate.quorum.analytics.log.walk import Logged, never, walk
from quorate.quorum.ids import EpochOffset, uuid_to_text
from quorate.quorum.metadata.errors import ReplayError
from quorate.quorum.metadata.image import Broker, MetadataImage, Partition, quota_order
from quorate.quorum.metadata.record_text import type_name
from quorate.quorum.metadata.records import Endpoint, MetadataRecord
from quorate.quorum.metadata.replay import REPLAY, replay
from quorate.quorum.raft.control_records import LeaderChangeMessage, VotersRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The state of the cluster after the record at `offset`."""

    offset: int
    """The offset that the caller of `moment` named. If it named none, the offset of the last record
    that took effect."""
    epoch: int
    """The epoch of the last record that took effect, even if `offset` is that of a later
    record."""
    timestamp_ms: int
    """The wall time of the last record that took effect, in ms since 1970."""
    leader: int | None
    """The leader of the quorum, or None if the history begins after its election."""
    voters: tuple[int, ...]
    """The sorted ids of the voters, or () if the history names none."""
    image: MetadataImage
    skipped: dict[str, int]
    """The number of records of each type that the image does not represent.

    These are ACLs, SCRAM credentials, delegation tokens, and types of a newer Kafka."""


def moment(
    directory: Path | str, *, offset: int | None = None, time_ms: int | None = None
) -> Moment:
    """Return the cluster after the record at `offset`, or at the time `time_ms`. Without either,
    return the cluster at the end of the log.

    `time_ms` is in ms since 1970. The replay ends before the first record with a later timestamp.
    A time after the end of the log means its end. If both arguments are given, `time_ms` is
    ignored. The call blocks while it reads the log.

    Errors:

    - OutOfHistory: the log is empty, it ends before `offset`, or its first record is later than
      `offset` or `time_ms`.
    - OutOfHistory: older segments were deleted, their snapshot is missing, and a record changes an
      object of the snapshot. If no record does, the missing snapshot is not noticed, and the image
      lacks its objects.
    - NoMetadataLog: the directory holds no metadata log.
    - DamagedLog: bytes of the log that are not its torn end cannot be read.
    - MalformedRecord, DecodeError or CorruptBatch: a record cannot be decoded (`walk.py`)."""
    leader: int | None = None
    voters: tuple[int, ...] = ()
    first: Logged | None = None
    last: Logged | None = None
    records: list[MetadataRecord] = []
    skipped: Counter[str] = Counter()
    for logged in walk(directory, past=_past(offset, time_ms)):
        first, last, message = first or logged, logged, logged.message
        if isinstance(message, LeaderChangeMessage):
            leader, voters = message.leader_id, _ids(message)
        elif isinstance(message, VotersRecord):
            voters = _ids(message)
        elif isinstance(message, MetadataRecord) and type(message) in REPLAY:
            records.append(message)
        elif not logged.of_raft:
            skipped[type_name(message)] += 1
    if first is None or last is None:
        raise OutOfHistory(f"{directory}: the history begins later: {_first(directory)}")
    if offset is not None and last.offset < offset:
        _refuse_beyond_the_end(directory, offset)
    end = EpochOffset(last.epoch, last.offset if offset is None else offset)
    try:
        image, _ = replay(MetadataImage(), records, end, last.timestamp_ms)
    except ReplayError as error:
        raise OutOfHistory(
            f"{directory}: the log begins at offset {first.offset} and the snapshot that it stands "
            f"on is missing ({error})"
        ) from None
    return Moment(
        offset=end.offset,
        epoch=last.epoch,
        timestamp_ms=last.timestamp_ms,
        leader=leader,
        voters=voters,
        image=image,
        skipped=dict(skipped),
    )


def _past(offset: int | None, time_ms: int | None) -> Callable[[Logged], bool]:
    if offset is not None:
        return lambda logged: logged.offset > offset
    if time_ms is not None:
        return lambda logged: logged.timestamp_ms > time_ms
    return never


def _first(directory: Path | str) -> str:
    for logged in walk(directory):
        return f"at offset {logged.offset}, {clock(logged.timestamp_ms)} UTC"
    return "it is empty"


def _refuse_beyond_the_end(directory: Path | str, offset: int) -> None:
    """Raise OutOfHistory if the log ends before `offset`.

    A smaller last offset is not enough: the record at `offset` may be part of a metadata
    transaction without effect."""
    end = -1

    def seen(logged: Logged) -> bool:
        nonlocal end
        end = logged.offset
        return end >= offset

    for _ in walk(directory, past=seen):
        pass
    if end < offset:
        raise OutOfHistory(f"{directory}: the log ends at offset {end}, before {offset}")


def _ids(message: LeaderChangeMessage | VotersRecord) -> tuple[int, ...]:
    return tuple(sorted(voter.voter_id for voter in message.voters))


# --------------------------------------------------------------------------------------- as JSON


def as_json(at: Moment) -> dict[str, Any]:
    """Return the moment as an object that `json.dumps` accepts. The order is the same at every
    call: ids and names are sorted."""
    image = at.image
    return {
        "offset": at.offset,
        "epoch": at.epoch,
        "timestamp_ms": at.timestamp_ms,
        "time": clock(at.timestamp_ms),
        "quorum": {"leader": at.leader, "epoch": at.epoch, "voters": list(at.voters)},
        "features": {name: image.features[name] for name in sorted(image.features)},
        "controllers": [
            {"id": each, "endpoints": _endpoints(image.controllers[each].endpoints)}
            for each in sorted(image.controllers)
        ],
        "brokers": [_broker(image.brokers[each]) for each in image.broker_ids()],
        "topics": [_topic(image, name) for name in image.topic_names()],
        "configs": [
            {
                "resource_type": RESOURCES.get(kind, str(kind)),
                "resource_name": name,
                "configs": dict(sorted(image.config(kind, name).items())),
            }
            for kind, name in sorted(image.configs)
        ],
        "client_quotas": [
            {"entity": dict(entity), "quotas": dict(sorted(image.client_quotas[entity].items()))}
            for entity in sorted(image.client_quotas, key=quota_order)
        ],
        "next_producer_id": image.next_producer_id,
        "skipped": at.skipped,
    }


def standing(broker: Broker) -> str:
    """Return the state of a broker as a word for people: "fenced", else "shutting down" during a
    controlled shutdown, else "active"."""
    if broker.fenced:
        return "fenced"
    return "shutting down" if broker.in_controlled_shutdown else "active"


def _broker(broker: Broker) -> dict[str, Any]:
    return {
        "id": broker.id,
        "epoch": broker.epoch,
        "standing": standing(broker),
        "rack": broker.rack,
        "endpoints": _endpoints(broker.endpoints),
    }


def _endpoints(endpoints: tuple[Endpoint, ...]) -> list[str]:
    return [f"{each.name}://{each.host}:{each.port}" for each in endpoints]


def _topic(image: MetadataImage, name: str) -> dict[str, Any]:
    topic = image.topics[image.topic_ids[name]]
    return {
        "name": name,
        "id": uuid_to_text(topic.id),
        "partitions": [_partition(each, topic.partitions[each]) for each in topic.partition_ids()],
    }


def _partition(partition_id: int, partition: Partition) -> dict[str, Any]:
    return {
        "partition": partition_id,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "elr": list(partition.elr),
        "last_known_elr": list(partition.last_known_elr),
        "adding_replicas": list(partition.adding),
        "removing_replicas": list(partition.removing),
        "leader_recovery_state": partition.leader_recovery_state,
    }
