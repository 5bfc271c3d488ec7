"""Pure partitions on logs in memory with scripted metadata, for the tests of this folder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quorate.broker.partition.partition import FollowerFetch, Partition
from quorate.broker.partition.producer_state import ProducerStates
from quorate.broker.partition.settings import PartitionSettings
from quorate.quorum.controller.state.messages import IsrChange, IsrChangeResult
from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.metadata import image
from tests.unit.partition.memory_log import MemoryPartitionLog

TOPIC = Uuid(bytes(15) + b"\x07")


def batch(count: int = 1, value: bytes = b"v", **producer: Any) -> bytearray:
    records = [Record(index, 1_000, None, value) for index in range(count)]
    return build_batch(records, leader_epoch=0, **producer)


def value(
    leader: int, leader_epoch: int, isr: tuple[int, ...], partition_epoch: int = -1
) -> image.Partition:
    epoch = leader_epoch if partition_epoch < 0 else partition_epoch
    return image.Partition(
        replicas=(1, 2, 3),
        isr=isr,
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=epoch,
    )


class Brokers:
    """The registrations of brokers 1 to 3. Their broker epochs are 100 + id."""

    def __init__(self) -> None:
        self.brokers = {
            each: image.Broker(
                id=each, epoch=100 + each, incarnation_id=TOPIC, endpoints=(), fenced=False
            )
            for each in (1, 2, 3)
        }

    def __call__(self, broker_id: int) -> image.Broker | None:
        return self.brokers.get(broker_id)

    def change(self, broker_id: int, **fields: Any) -> None:
        self.brokers[broker_id] = replace(self.brokers[broker_id], **fields)


def partition(
    broker_id: int,
    brokers: Brokers | None = None,
    log: MemoryPartitionLog | None = None,
    **settings: Any,
) -> Partition:
    return Partition(
        TOPIC,
        0,
        broker_id,
        log or MemoryPartitionLog(),
        PartitionSettings(**settings),
        brokers=brokers or Brokers(),
        producers=ProducerStates(),
    )


def leader_of(isr: tuple[int, ...], brokers: Brokers | None = None, **settings: Any) -> Partition:
    leader = partition(1, brokers, **settings)
    assert leader.make_leader(value(1, 5, isr), now_ms=0)
    return leader


def isr_of(leader: Partition) -> tuple[tuple[int, ...], tuple[int, ...]]:
    assert leader.leadership is not None
    return leader.leadership.isr.committed, leader.leadership.isr.maximal


def proposal_of(leader: Partition) -> object:
    assert leader.leadership is not None
    return leader.leadership.proposal


def append(leader: Partition, count: int = 1, *, acks: int = -1, now_ms: int = 0) -> int:
    return leader.append_as_leader(batch(count), acks, now_ms=now_ms, wall_ms=1_000).base_offset


def fetch(
    leader: Partition,
    replica_id: int,
    offset: int,
    *,
    last_fetched_epoch: int = -1,
    broker_epoch: int | None = None,
    now_ms: int = 0,
) -> EpochOffset | None:
    sent = FollowerFetch(
        replica_id,
        100 + replica_id if broker_epoch is None else broker_epoch,
        leader.leader_epoch,
        offset,
        last_fetched_epoch,
        0,
    )
    return leader.follower_fetched(sent, now_ms)


def result(change: IsrChange, error: int = 0, **fields: Any) -> IsrChangeResult:
    defaults: dict[str, Any] = {
        "topic_id": change.topic_id,
        "partition_id": change.partition_id,
        "error": error,
        "leader_epoch": change.leader_epoch,
        "partition_epoch": change.partition_epoch + 1,
        "isr": tuple(each for each, _ in change.isr),
    }
    return IsrChangeResult(**{**defaults, **fields})


def take_proposal(leader: Partition) -> IsrChange:
    assert leader.leadership is not None
    change, leader.leadership.proposal = leader.leadership.proposal, None
    assert change is not None
    return change


def copy_once(leader: Partition, follower: Partition, replica_id: int, *, now_ms: int = 0) -> None:
    """Do one fetch of a follower, without a network."""
    log = follower.log
    diverging = fetch(
        leader,
        replica_id,
        log.end_offset,
        last_fetched_epoch=log.last_epoch,
        now_ms=now_ms,
    )
    if diverging is not None:
        follower.truncate(diverging)
        return
    data = leader.log.read(log.end_offset, 1 << 20)
    if data:
        follower.append_as_follower(data, wall_ms=1_000)
    follower.leader_high_watermark(leader.high_watermark)
