"""A small metadata log of our own, with everything in it that the real Kafka's fixture lacks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import CONTROL, build_batch, build_value_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.metadata.causes import Cause, with_ends
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    EndTransactionRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from quorate.quorum.metadata.snapshot import snapshot_records
from quorate.quorum.protocol.codec import encode
from quorate.quorum.raft.control_records import (
    ControlType,
    KRaftVersionFeature,
    LeaderChangeMessage,
    LeaderChangeVoter,
    Voter,
    VotersRecord,
    control_key,
)

A, B = Uuid(b"A" * 16), Uuid(b"B" * 16)
START_MS = 1_800_000_000_000
STEP_MS = 1_000
SECOND_EPOCH_AFTER = 12


def register(broker: int, epoch: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker,
        incarnation_id=A,
        broker_epoch=epoch,
        end_points=(),
        cause=Cause.REGISTERED,
    )


def fencing(broker: int, epoch: int, fenced: int, cause: str) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=broker, broker_epoch=epoch, fenced=fenced, cause=cause
    )


def created(topic_id: Uuid, partition_id: int, leader: int) -> PartitionRecord:
    return PartitionRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        replicas=(1, 2, 3),
        isr=(1, 2, 3),
        leader=leader,
        leader_epoch=0,
        partition_epoch=0,
        cause=Cause.TOPIC_CREATED,
    )


def change(
    topic_id: Uuid,
    partition_id: int,
    cause: str,
    isr: tuple[int, ...] | None = None,
    leader: int = -2,
) -> PartitionChangeRecord:
    return PartitionChangeRecord(
        partition_id=partition_id, topic_id=topic_id, isr=isr, leader=leader, cause=cause
    )


def min_isr(topic: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(
        resource_type=2 if topic else 4,
        resource_name=topic,
        name="min.insync.replicas",
        value=value,
    )


BEGIN, END, ABORT = (
    BeginTransactionRecord(name="x"),
    EndTransactionRecord(),
    AbortTransactionRecord(),
)

SCRIPT: tuple[tuple[MetadataRecord, ...], ...] = (
    (BEGIN, min_isr("", "2"), END),
    tuple(register(broker, 10 + broker) for broker in (1, 2, 3)),
    tuple(fencing(broker, 10 + broker, -1, Cause.BROKER_UNFENCED) for broker in (1, 2, 3)),
    (TopicRecord(name="a", topic_id=A), created(A, 0, 1), created(A, 1, 2)),
    (BEGIN, TopicRecord(name="never", topic_id=B), created(B, 0, 1), ABORT),
    (change(A, 1, Cause.ISR_SHRINK_LAG, isr=(2, 1)),),
    (
        fencing(2, 12, 1, Cause.SESSION_EXPIRED),
        change(A, 0, Cause.SESSION_EXPIRED, isr=(1, 3)),
        change(A, 1, Cause.SESSION_EXPIRED, isr=(1,), leader=1),
    ),
    (min_isr("a", "1"), change(A, 1, Cause.ISR_EXPAND, isr=(1, 3))),
    (
        fencing(1, 11, 1, Cause.CONNECTION_LOST),
        change(A, 0, Cause.CONNECTION_LOST, isr=(3,), leader=3),
        change(A, 1, Cause.CONNECTION_LOST, isr=(3,), leader=-1),
    ),
    (min_isr("a", None), fencing(2, 12, -1, Cause.BROKER_UNFENCED)),
    (change(A, 0, Cause.ISR_EXPAND, isr=(3, 2)),),
    (change(A, 1, with_ends(Cause.UNCLEAN_ELECTION, 130, 120), isr=(2,), leader=2),),
    (register(3, 30), change(A, 0, Cause.UNCLEAN_RESTART, isr=(2,), leader=2)),
    (BrokerRegistrationChangeRecord(
        broker_id=2, broker_epoch=12, in_controlled_shutdown=1, cause=Cause.CONTROLLED_SHUTDOWN
    ),),
    (fencing(2, 12, 1, Cause.SHUTDOWN_COMPLETE), fencing(3, 30, -1, Cause.BROKER_UNFENCED)),
    (UnregisterBrokerRecord(broker_id=3, broker_epoch=30, cause=Cause.UNREGISTERED),),
    (TopicRecord(name="b", topic_id=B), created(B, 0, 1)),
    (RemoveTopicRecord(topic_id=A),),
    (BEGIN, change(B, 0, Cause.ISR_SHRINK_LAG, isr=())),
)  # fmt: skip


def batches(script: Sequence[Sequence[MetadataRecord]] = SCRIPT) -> list[bytes]:
    """Return one batch per entry, a second apart, with a control record first in each epoch."""
    made = [leadership_of(1, epoch=1, offset=0, at_ms=START_MS)]
    offset = 1
    for step, records in enumerate(script, 1):
        epoch = 1 if step <= SECOND_EPOCH_AFTER else 2
        if step == SECOND_EPOCH_AFTER + 1:
            at_ms = START_MS + SECOND_EPOCH_AFTER * STEP_MS + 250
            made.append(leadership_of(3, epoch=2, offset=offset, at_ms=at_ms))
            offset += 1
        made.append(
            bytes(
                build_value_batch(
                    [encode_record(record) for record in records],
                    base_offset=offset,
                    leader_epoch=epoch,
                    timestamp_ms=START_MS + step * STEP_MS,
                )
            )
        )
        offset += len(records)
    return made


def leadership_of(
    controller: int, *, epoch: int, offset: int, at_ms: int, voters: Sequence[int] = ()
) -> bytes:
    named = tuple(
        LeaderChangeVoter(voter_id=voter, voter_directory_id=A) for voter in voters or (controller,)
    )
    message = LeaderChangeMessage(
        version=0, leader_id=controller, voters=named, granting_voters=named
    )
    return control_batch(ControlType.LEADER_CHANGE, message, epoch, offset, at_ms)


def voters_of(voters: Sequence[int], *, epoch: int, offset: int, at_ms: int) -> bytes:
    versions = KRaftVersionFeature(min_supported_version=0, max_supported_version=1)
    named = tuple(
        Voter(voter_id=voter, voter_directory_id=A, endpoints=(), k_raft_version_feature=versions)
        for voter in voters
    )
    message = VotersRecord(version=0, voters=named)
    return control_batch(ControlType.KRAFT_VOTERS, message, epoch, offset, at_ms)


def control_batch(kind: ControlType, message: object, epoch: int, offset: int, at_ms: int) -> bytes:
    record = Record(offset, at_ms, control_key(kind), encode(message, 0))
    return bytes(build_batch([record], leader_epoch=epoch, flags=CONTROL))


def snapshot_of(image: MetadataImage) -> bytes:
    """Return the bytes of a snapshot, without header and footer."""
    values = [encode_record(record) for record in snapshot_records(image)]
    return bytes(
        build_value_batch(
            values,
            base_offset=0,
            leader_epoch=image.last.epoch,
            timestamp_ms=image.last_timestamp_ms,
        )
    )


def write_segment(directory: Path, base_offset: int, data: bytes) -> Path:
    partition = directory / "__cluster_metadata-0"
    partition.mkdir(parents=True, exist_ok=True)
    path = partition / f"{base_offset:020d}.log"
    path.write_bytes(data)
    return path
