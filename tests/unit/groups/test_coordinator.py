"""The shards of a broker, while leadership of the partitions of __consumer_offsets changes."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from quorate.broker.groups.coordinator import MAX_LOADING_WAIT_MS, GroupCoordinator
from quorate.broker.groups.expiration import Expiration
from quorate.broker.groups.group import Group
from quorate.broker.groups.loading import RETRY_MS
from quorate.broker.groups.member import Member
from quorate.broker.groups.member_memory import MEMBER_BYTES
from quorate.broker.groups.partition_of import partition_of
from quorate.broker.groups.records import (
    GroupRecord,
    OffsetKey,
    OffsetValue,
    encode_record,
)
from quorate.broker.groups.settings import GroupSettings
from quorate.broker.groups.shard import Shard
from quorate.broker.groups.shard_context import ShardContext
from quorate.broker.kafka.groups.group_membership import GroupMembershipHandler
from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files.errors import OutOfFiles
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.internal_topics import OFFSETS_TOPIC
from quorate.quorum.metadata.records import (
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorate.quorum.metadata.replay import replay
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.hot import ProducePartition, ProducePartitionResult
from quorate.quorum.protocol.schemas.group_membership import HeartbeatRequest, HeartbeatResponse
from quorate.quorum.rpc.kafka.server import RequestContext
from tests.attacks.batches import records, sealed
from tests.unit.partition.memory_log import MemoryPartitionLog
from tests.unit.rpc.kafka.fakes import FakeClock

ME, OTHER = 1, 2
TOPIC_ID = Uuid(b"\x05" * 16)
GROUP = "g"
COUNT = 2
MINE = partition_of(GROUP, COUNT)


@dataclass
class FakePartition:
    leadership: object = True
    behind: bool = False

    def acks_all_error(self, offset: int) -> ErrorCode | None:
        return None if self.behind else ErrorCode.NONE


@dataclass
class FakeHosted:
    log: MemoryPartitionLog = field(default_factory=MemoryPartitionLog)
    partition: FakePartition = field(default_factory=FakePartition)
    waiting: list[Any] = field(default_factory=list)

    def await_acks(self, offset: int, waiting: Any, index: int) -> None:
        self.waiting.append(waiting)


class FakeReplicas:
    def __init__(self) -> None:
        self.hosted = FakeHosted()
        self.settled: list[Callable[[], None]] = []
        self.disk_errors: list[BaseException] = []
        self.is_dispensable = True
        self.held: list[Callable[[ErrorCode], None]] | None = None

    def survives(self, error: BaseException) -> bool:
        self.disk_errors.append(error)
        return self.is_dispensable

    @property
    def registry(self) -> FakeReplicas:
        return self

    def get(self, key: Key) -> HostedPartition | None:
        return cast(HostedPartition, self.hosted) if key == (TOPIC_ID, MINE) else None

    def append(
        self,
        appends: Sequence[ProducePartition],
        acks: int,
        timeout_ms: int,
        done: Callable[[Sequence[ProducePartitionResult]], None],
        *,
        internal: bool = False,
    ) -> None:
        def answer(error: ErrorCode) -> None:
            done(
                [
                    ProducePartitionResult(each.topic, each.topic_id, each.partition, error)
                    for each in appends
                ]
            )

        if self.held is None:
            answer(ErrorCode.NONE)
        else:
            self.held.append(answer)

    def when_settled(self, callback: Callable[[], None]) -> None:
        self.settled.append(callback)


class World:
    def __init__(self, settings: GroupSettings | None = None) -> None:
        self.clock = FakeClock()
        self.replicas = FakeReplicas()
        self.coordinator = GroupCoordinator(
            self.clock, random.Random(1), settings or GroupSettings(), self.replicas, ME
        )
        self.image = MetadataImage()
        self.said: list[int | ErrorCode] = []

    def apply(self, *records: MetadataRecord) -> None:
        last = EpochOffset(1, self.image.last.offset + len(records))
        self.image, delta = replay(self.image, records, last, 0)
        self.coordinator.apply(self.image, delta)

    def create(self, leader: int = ME) -> None:
        partitions = [
            PartitionRecord(
                partition_id=each,
                topic_id=TOPIC_ID,
                replicas=(ME, OTHER),
                isr=(ME, OTHER),
                leader=leader if each == MINE else OTHER,
            )
            for each in range(COUNT)
        ]
        self.apply(TopicRecord(name=OFFSETS_TOPIC, topic_id=TOPIC_ID), *partitions)

    def led_by(self, leader: int) -> None:
        self.apply(PartitionChangeRecord(partition_id=MINE, topic_id=TOPIC_ID, leader=leader))

    def settle(self) -> None:
        callbacks, self.replicas.settled = self.replicas.settled, []
        for callback in callbacks:
            callback()

    def load(self) -> None:
        self.settle()
        for _ in range(10):
            self.clock.advance(0)

    def write(self, offset: int) -> None:
        """Append a commit of the group to the log, as an earlier leader did."""
        log = self.replicas.hosted.log
        value = OffsetValue(offset=offset, metadata="", commit_timestamp=0)
        record = GroupRecord(OffsetKey(group=GROUP, topic="t", partition=0), value)
        batch = build_batch([Record(log.end_offset, 0, *encode_record(record))], leader_epoch=0)
        log.append(batch, wall_ms=0)

    def ask(self) -> None:
        """Record the committed offset of the group, or the error."""

        def committed(context: ShardContext) -> None:
            held = context.shard.offsets.of(GROUP)
            self.said.append(held["t", 0].offset if held else -1)

        self.coordinator.find(GROUP, committed, self.said.append)


def test_requests_wait_while_the_log_is_read_and_find_its_last_word() -> None:
    world = World()
    for offset in (3, 4, 5):
        world.write(offset)
    world.create()
    world.ask()
    assert world.said == []
    world.load()
    assert world.said == [5]
    world.ask()
    assert world.said == [5, 5]


def test_a_request_that_waits_too_long_must_be_retried() -> None:
    world = World()
    world.create()
    world.ask()
    world.clock.advance(MAX_LOADING_WAIT_MS)
    assert world.said == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]


def test_a_heartbeat_succeeds_while_the_log_is_read() -> None:
    """As in Kafka: the load gives every member a new session, and aiokafka's consumer ends with an
    exception after COORDINATOR_LOAD_IN_PROGRESS."""
    world = World()
    world.create()
    answers: list[HeartbeatResponse] = []

    class Context:
        respond = answers.append

    request = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="m")
    handler = GroupMembershipHandler(world.coordinator)
    handler.heartbeat(cast(RequestContext, Context), request)
    assert not answers
    world.clock.advance(MAX_LOADING_WAIT_MS)
    assert [each.error_code for each in answers] == [ErrorCode.NONE]
    world.led_by(OTHER)
    handler.heartbeat(cast(RequestContext, Context), request)
    assert answers[-1].error_code == ErrorCode.NOT_COORDINATOR


def test_nothing_is_told_before_the_end_of_the_log_is_committed() -> None:
    """Otherwise a client could read a commit that the next leader does not have."""
    world = World()
    world.write(3)
    world.replicas.hosted.partition.behind = True
    world.create()
    world.load()
    world.ask()
    assert world.said == []
    (waiting,) = world.replicas.hosted.waiting
    waiting.acknowledged(0, ErrorCode.NONE)
    world.clock.advance(0)
    assert world.said == [3]


def test_another_broker_coordinates_what_it_leads() -> None:
    world = World()
    world.ask()
    world.create(OTHER)
    world.ask()
    assert world.said == [ErrorCode.NOT_COORDINATOR] * 2


def test_leadership_that_goes_takes_the_groups_along_and_wakes_who_waits() -> None:
    world = World()
    world.create()
    world.ask()
    world.led_by(OTHER)
    world.ask()
    assert world.said == [ErrorCode.NOT_COORDINATOR] * 2
    world.load()
    assert len(world.said) == 2


def test_leadership_that_went_and_came_back_unseen_is_loaded_anew() -> None:
    """Both changes are in one delta. The other leader may have taken commits in between."""
    world = World()
    world.write(3)
    world.create()
    world.load()
    world.write(4)
    other = PartitionChangeRecord(partition_id=MINE, topic_id=TOPIC_ID, leader=OTHER)
    me = PartitionChangeRecord(partition_id=MINE, topic_id=TOPIC_ID, leader=ME)
    world.apply(other, me)
    world.load()
    world.ask()
    assert world.said == [4]


def test_a_log_that_cannot_be_read_leaves_its_groups_without_a_coordinator() -> None:
    world = World()
    log = world.replicas.hosted.log
    log.append(build_batch([Record(0, 0, b"\x00\x02", b"")], leader_epoch=0), wall_ms=0)
    world.create()
    world.ask()
    world.load()
    world.ask()
    assert world.said == [ErrorCode.NOT_COORDINATOR] * 2


@pytest.mark.parametrize("is_dispensable", [True, False])
def test_a_disk_that_fails_during_the_loading_takes_its_directory_offline(
    monkeypatch: pytest.MonkeyPatch, is_dispensable: bool
) -> None:
    """Another replica then leads the partition. Without that, the groups would have no coordinator
    for as long as this broker runs."""
    world = World()
    world.replicas.is_dispensable = is_dispensable
    failure = OSError(errno.EIO, "EIO", "/a/__consumer_offsets-0/0.log")

    def read(*arguments: Any) -> bytes:
        raise failure

    monkeypatch.setattr(world.replicas.hosted.log, "read", read)
    world.create()
    world.ask()
    if is_dispensable:
        world.load()
        assert world.said == [ErrorCode.NOT_COORDINATOR]
    else:
        with pytest.raises(OSError, match="EIO"):
            world.load()
    assert world.replicas.disk_errors == [failure]


def test_a_loading_waits_for_a_file_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shard stayed without a coordinator until its partition had another leader."""
    world = World()
    world.write(3)
    world.create()
    world.ask()

    def read(*arguments: Any) -> bytes:
        raise OutOfFiles(errno.EMFILE, "Too many open files", "/a/__consumer_offsets-0/0.log")

    with monkeypatch.context() as patched:
        patched.setattr(world.replicas.hosted.log, "read", read)
        world.load()
    assert world.said == []
    world.clock.advance(RETRY_MS)
    world.load()
    assert world.said == [3]
    assert not world.replicas.disk_errors and not world.coordinator.failed_shards


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"\xff" * 40, id="garbage"),
        pytest.param(b"", id="nothing"),
        pytest.param(records(1)[:-1], id="cut"),
    ],
)
@pytest.mark.parametrize("codec", range(8))
def test_a_batch_that_cannot_be_read_fails_its_shard_and_not_the_node(
    payload: bytes, codec: int
) -> None:
    world = World()
    world.write(3)
    poison = sealed(payload, base_offset=1, leader_epoch=0, attributes=codec)
    world.replicas.hosted.log.append(poison, wall_ms=0)
    world.create()
    world.ask()
    world.load()
    assert world.said == [ErrorCode.NOT_COORDINATOR]
    assert world.coordinator.failed_shards == 1


def test_a_record_whose_replay_raises_fails_its_shard_and_not_the_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def raises(shard: Shard, record: GroupRecord) -> None:
        raise KeyError("a member that is not there")

    monkeypatch.setattr(Shard, "replay", raises)
    world = World()
    world.write(3)
    world.create()
    world.load()
    assert world.coordinator.failed_shards == 1


def test_the_offsets_of_a_deleted_topic_are_forgotten() -> None:
    world = World()
    world.write(3)
    world.create()
    world.load()
    other = Uuid(b"\x06" * 16)
    partition = PartitionRecord(topic_id=other, partition_id=0, replicas=(2,), isr=(2,), leader=2)
    world.apply(TopicRecord(name="t", topic_id=other), partition)
    world.apply(RemoveTopicRecord(topic_id=other))
    world.clock.advance(0)
    world.ask()
    assert world.said == [-1]


def broken(context: ShardContext) -> None:
    """Change the shard, then raise."""
    context.shard.offsets.of(GROUP).clear()
    raise ZeroDivisionError


def test_work_that_raises_is_refused_and_its_shard_is_loaded_again() -> None:
    world = World()
    world.write(3)
    world.create()
    world.load()
    world.coordinator.find(GROUP, broken, world.said.append)
    assert world.said == [ErrorCode.UNKNOWN_SERVER_ERROR]
    world.ask()
    world.load()
    assert world.said[1:] == [3], "what is in the log counts, not what was half changed"
    assert world.coordinator.rebuilt_shards == 1


@pytest.mark.parametrize(
    ("error", "rebuilt"),
    [
        (ErrorCode.REQUEST_TIMED_OUT, 1),
        (ErrorCode.NOT_ENOUGH_REPLICAS, 1),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0),
    ],
)
def test_an_append_that_is_never_committed_rebuilds_the_shard(
    error: ErrorCode, rebuilt: int
) -> None:
    """The replica manager gives every append up after ten minutes. The journal was then closed, and
    its groups had no coordinator before the partition had another leader."""
    world = World()
    world.write(3)
    world.create()
    world.load()
    held = world.replicas.held = []
    record = GroupRecord(OffsetKey(group=GROUP, topic="t", partition=0), None)
    contexts: list[ShardContext] = []
    world.coordinator.find(GROUP, contexts.append, world.said.append)
    for _ in range(2):
        assert contexts[0].journal.append([record]) == ErrorCode.NONE
    contexts[0].journal.when_committed(world.said.append)
    for answer in held:
        answer(error)
    assert world.said == [ErrorCode.NOT_COORDINATOR]
    assert world.coordinator.rebuilt_shards == rebuilt
    if rebuilt:
        world.replicas.held = None
        world.load()
        world.ask()
        assert world.said[1:] == [3]


def test_work_that_waited_for_the_loading_is_refused_the_same_way() -> None:
    world = World()
    world.create()
    world.coordinator.find(GROUP, broken, world.said.append)
    world.load()
    assert world.said == [ErrorCode.UNKNOWN_SERVER_ERROR]


def test_work_that_waited_behind_work_that_raises_does_not_reach_the_dropped_shard() -> None:
    """Work that raised in the dropped shard would drop the rebuilt shard, too."""
    world = World()
    world.create()
    for _ in range(3):
        world.coordinator.find(GROUP, broken, world.said.append)
    world.load()
    assert world.said == [
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_COORDINATOR,
    ]
    assert world.coordinator.rebuilt_shards == 1


def test_a_shard_that_cannot_be_closed_holds_no_memory() -> None:
    """The bytes of its members would count until the broker stops, and cost other groups theirs."""
    world = World()
    world.create()
    world.load()
    memory = world.coordinator.memory
    contexts: list[ShardContext] = []
    world.coordinator.find(GROUP, contexts.append, world.said.append)
    groups = contexts[0].shard.groups
    for number in range(3):
        group = groups[f"{number}"] = Group(f"{number}", memory=memory)
        group.add(
            Member(
                id="m",
                instance_id=None,
                client_id="c",
                client_host="h",
                rebalance_timeout_ms=1,
                session_timeout_ms=1,
                protocols={},
                session=cast(Any, "no timer" if number == 1 else None),
            ),
            "consumer",
        )
    assert memory.used_bytes > 3 * MEMBER_BYTES
    world.coordinator.find(GROUP, broken, world.said.append)
    world.load()
    assert memory.used_bytes == 0


@pytest.mark.parametrize("later", [False, True])
def test_a_timer_of_a_group_that_raises_rebuilds_the_shard(later: bool) -> None:
    world = World()
    world.write(3)
    world.create()
    world.load()
    timers: list[ShardContext] = []
    world.coordinator.find(GROUP, timers.append, world.said.append)
    clock = timers[0].shard._clock
    if later:
        clock.call_later(50, lambda: broken(timers[0]))
    else:
        clock.call_soon(lambda: broken(timers[0]))
    world.clock.advance(50)
    world.load()
    world.ask()
    assert world.said == [3]
    assert world.coordinator.rebuilt_shards == 1


def test_timers_of_a_dropped_shard_do_nothing() -> None:
    """A timer of the old shard that raised would otherwise drop the rebuilt shard, too."""
    world = World()
    world.create()
    world.load()
    timers: list[ShardContext] = []
    world.coordinator.find(GROUP, timers.append, world.said.append)
    for delay_ms in (0, 50):
        timers[0].shard._clock.call_later(delay_ms, lambda: broken(timers[0]))
    world.clock.advance(0)
    world.load()
    world.clock.advance(50)
    assert world.coordinator.rebuilt_shards == 1


def test_an_error_of_kafka_is_passed_on_and_rebuilds_nothing() -> None:
    world = World()
    world.create()
    world.load()

    def refuse(context: ShardContext) -> None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)

    world.coordinator.find(GROUP, refuse, world.said.append)
    assert world.said == [ErrorCode.GROUP_ID_NOT_FOUND]
    assert not world.coordinator.rebuilt_shards


def test_expired_offsets_are_searched_in_their_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(GroupSettings(offsets_retention_check_interval_ms=1000))
    searches: list[int] = []
    monkeypatch.setattr(Expiration, "expire", lambda self: searches.append(world.clock.now_ms()))
    world.create()
    world.settle()
    world.coordinator.start()
    begin_ms = world.clock.now_ms()
    for _ in range(25):
        world.clock.advance(100)
    assert [at_ms - begin_ms for at_ms in searches] == [1000, 2000]
