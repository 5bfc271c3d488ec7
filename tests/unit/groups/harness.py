"""One shard of the group coordinator on a fake clock.

Its journal commits appended records immediately, or when the test calls `commit`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quorate.broker.groups.group import Group
from quorate.broker.groups.joining import Join
from quorate.broker.groups.records import GroupRecord, decode_record, encode_record
from quorate.broker.groups.reply import Reply
from quorate.broker.groups.responses import join_refused
from quorate.broker.groups.settings import GroupSettings
from quorate.broker.groups.shard import Shard
from quorate.broker.groups.state import State
from quorate.quorum.incremental_work import finished
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.schemas import group_offsets as schemas
from quorate.quorum.protocol.schemas.group_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from quorate.quorum.protocol.wire import Message
from tests.unit.rpc.kafka.fakes import FakeClock

GROUP = "g"
SESSION_MS = 10_000
REBALANCE_MS = 60_000
TOPIC = "t"


class MemoryJournal:
    """A journal in memory. With `refusal`, appends fail; with `held`, they are committed by
    `commit`."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes | None]] = []
        self.refusal = ErrorCode.NONE
        self.held = False
        self._waiting: list[Callable[[ErrorCode], None]] = []

    def append(self, records: Sequence[GroupRecord]) -> ErrorCode:
        if not self.refusal:
            self.records += map(encode_record, records)
        return self.refusal

    def when_committed(self, done: Callable[[ErrorCode], None]) -> None:
        if self.held:
            self._waiting.append(done)
        else:
            done(ErrorCode.NONE)

    def commit(self) -> None:
        """Commit all records, and those that are appended later."""
        self.held = False
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            done(ErrorCode.NONE)


class Asked:
    """Keeps the responses that a shard sends through `reply`."""

    def __init__(self, refusal: Callable[[ErrorCode], Message]) -> None:
        self.answers: list[Message] = []
        self.reply = Reply(self.answers.append, refusal)


class AskedJoin(Asked):
    """Keeps the response of one JoinGroup request."""

    def __init__(self, member_id: str) -> None:
        super().__init__(lambda error: join_refused(error, member_id))
        self.member_id = member_id

    @property
    def answer(self) -> JoinGroupResponse:
        (answer,) = self.answers
        assert isinstance(answer, JoinGroupResponse)
        return answer


class AskedSync(Asked):
    """Keeps the response of one SyncGroup request."""

    def __init__(self) -> None:
        super().__init__(lambda error: SyncGroupResponse(error_code=error, assignment=b""))

    @property
    def answer(self) -> SyncGroupResponse:
        (answer,) = self.answers
        assert isinstance(answer, SyncGroupResponse)
        return answer


class World:
    """A shard, its journal and its clock, with a method for each request of a client to GROUP."""

    def __init__(self, settings: GroupSettings | None = None) -> None:
        self.clock = FakeClock()
        self.journal = MemoryJournal()
        self.settings = settings or GroupSettings()
        self._ids = 0
        self.shard = self._shard()

    def _shard(self) -> Shard:
        return Shard(self.settings, self.clock, self.journal, self._new_id)

    def _new_id(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}-{self._ids}"

    @property
    def group(self) -> Group:
        return self.shard.groups[GROUP]

    def state(self) -> State:
        return self.group.state

    def take_over(self) -> None:
        """Replace the shard by one that another broker loads from the log."""
        finished(self.shard.close())
        self.shard = self._shard()
        for key, value in self.journal.records:
            record = decode_record(key, value)
            assert record is not None
            self.shard.replay(record)
        finished(self.shard.loaded())

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        protocols: Sequence[str] = ("range",),
        protocol_type: str = "consumer",
        known: bool = True,
        metadata: bytes = b"\x00\x00\x00\x00\x00\x01\x00\x01t",
        skip: bool = True,
        group: str = GROUP,
    ) -> AskedJoin:
        """Send a JoinGroup request.

        If `known` is true, the request has a version (v4 or later) in which a dynamic member
        without an id gets MEMBER_ID_REQUIRED."""
        asked = AskedJoin(member_id)
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=tuple(
                JoinGroupRequestProtocol(name=each, metadata=metadata) for each in protocols
            ),
        )
        self.shard.join(
            Join(
                request=request,
                reply=asked.reply,
                client_id="c",
                client_host="/h",
                rebalance_timeout_ms=REBALANCE_MS,
                member_id_required=known,
                can_skip_assignment=skip,
            )
        )
        return asked

    def new_member(self, **options: str) -> AskedJoin:
        """Request a member id, and join with it."""
        return self.join(self.join().answer.member_id)

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        instance: str | None = None,
        protocol: str | None = None,
    ) -> AskedSync:
        """Send a SyncGroup request, with assignments by member id if the leader sends it."""
        asked = AskedSync()
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_name=protocol,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=each, assignment=data)
                for each, data in (assignments or {}).items()
            ),
        )
        try:
            self.shard.sync(request, asked.reply)
        except KafkaError as error:
            asked.reply.fail(error.code)
        return asked

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None) -> ErrorCode:
        """Send a Heartbeat and return its error."""
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
        )
        try:
            return self.shard.heartbeat(request)
        except KafkaError as error:
            return error.code

    def leave(self, *identities: MemberIdentity) -> list[int]:
        """Send a LeaveGroup request and return the error of each member."""
        return [each.error_code for each in self.shard.leave(GROUP, identities)]

    def stable(self, count: int = 2) -> list[str]:
        """Return the member ids of a stable group with `count` members, the leader first.

        Each member is assigned its own id as bytes."""
        joins = [self.new_member() for _ in range(count)]
        self.clock.advance(0)
        generation = joins[0].answer.generation_id
        ids = [each.answer.member_id for each in joins]
        followers = [self.sync(each, generation) for each in ids[1:]]
        leader = self.sync(ids[0], generation, {each: each.encode() for each in ids})
        for member_id, asked in zip(ids, [leader, *followers], strict=True):
            assert asked.answer.assignment == member_id.encode()
        assert self.state() is State.STABLE
        return ids

    # --- offsets

    def commit(
        self,
        offset: int,
        member_id: str = "",
        generation: int = -1,
        *,
        metadata: str = "",
        topic: str = TOPIC,
        version: int = 9,
        retention_ms: int = -1,
    ) -> ErrorCode:
        """Commit one offset of partition 0, and return the error of the request or of the
        partition."""
        partition = schemas.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=metadata
        )
        request = schemas.OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            retention_time_ms=retention_ms,
            topics=(schemas.OffsetCommitRequestTopic(name=topic, partitions=(partition,)),),
        )

        def refuse(asked: schemas.OffsetCommitRequestTopic, partition_id: int) -> ErrorCode:
            known = asked.name != "unknown"
            return ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

        try:
            response = self.shard.offset_requests.commit(request, version, refuse)
        except KafkaError as error:
            return error.code
        return ErrorCode.of(response.topics[0].partitions[0].error_code)

    def fetched(self, topic: str = TOPIC) -> int:
        wanted = schemas.OffsetFetchRequestGroup(
            group_id=GROUP,
            topics=(schemas.OffsetFetchRequestTopics(name=topic, partition_indexes=(0,)),),
        )
        return self.shard.offset_requests.fetch(wanted).topics[0].partitions[0].committed_offset

    def delete_offset(self, topic: str = TOPIC) -> ErrorCode:
        request = schemas.OffsetDeleteRequest(
            group_id=GROUP,
            topics=(
                schemas.OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=(schemas.OffsetDeleteRequestPartition(partition_index=0),),
                ),
            ),
        )
        try:
            response = self.shard.offset_requests.delete(
                request, lambda _topic, _partition: ErrorCode.NONE
            )
        except KafkaError as error:
            return error.code
        return ErrorCode.of(response.topics[0].partitions[0].error_code)

    def expire(self) -> None:
        """Remove all expired offsets and empty groups."""
        self.shard.expiration.expire()
        finished(self.shard.expiration.steps())

    def delete(self) -> ErrorCode:
        try:
            while not self.shard.delete(GROUP):
                pass
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE
