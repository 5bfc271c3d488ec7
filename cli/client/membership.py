"""One member of a consumer group (classic protocol), for as long as somebody asks `alive` between
two polls: it joins, shares partitions out when the group makes it the leader, beats, commits and
leaves. The assignor is Kafka's range."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Mapping, Sequence

from quorate.cli.client.admin import Admin, check
from quorate.cli.client.groups import Groups, Member, Place, assigned
from quorate.cli.errors import Refused
from quorate.quorum.rpc.kafka.errors import ErrorCode
from quorate.quorum.rpc.kafka.schemas import group_membership as schemas

SESSION_TIMEOUT_MS = 45_000
REBALANCE_TIMEOUT_MS = 60_000
HEARTBEAT_INTERVAL_S = 3.0
PROTOCOL_TYPE, ASSIGNOR = "consumer", "range"
AGAIN = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)


class Membership:
    def __init__(self, admin: Admin, group: str, topic: str) -> None:
        self._admin = admin
        self._groups = Groups(admin)
        self._group = group
        self._topic = topic
        self._member = Member()
        self._next_beat_at = 0.0

    def join(self) -> list[int]:
        """The partitions of the topic that are this member's now."""
        while True:
            joined = self._groups.ask(
                self._group, self._join_request(), schemas.JoinGroupResponse, error_of
            )
            error = ErrorCode.of(joined.error_code)
            if error == ErrorCode.MEMBER_ID_REQUIRED:
                self._member = Member(id=joined.member_id)
                continue
            if error in AGAIN:
                self._member = Member()
                continue
            check(error, None, f"group {self._group}")
            self._member = Member(joined.member_id, joined.generation_id)
            synced = self._groups.ask(
                self._group, self._sync_request(joined), schemas.SyncGroupResponse, error_of
            )
            if synced.error_code in AGAIN:
                continue
            check(synced.error_code, None, f"group {self._group}")
            self._next_beat_at = time.monotonic() + HEARTBEAT_INTERVAL_S
            places = assigned(bytes(synced.assignment))
            return [partition for topic, partition in places if topic == self._topic]

    def alive(self) -> bool:
        """False: the group rebalances, so join again."""
        if time.monotonic() < self._next_beat_at:
            return True
        self._next_beat_at = time.monotonic() + HEARTBEAT_INTERVAL_S
        request = schemas.HeartbeatRequest(
            group_id=self._group, generation_id=self._member.generation, member_id=self._member.id
        )
        answer = self._groups.ask(self._group, request, schemas.HeartbeatResponse, error_of)
        if answer.error_code not in AGAIN:
            check(answer.error_code, None, f"group {self._group}")
        return not answer.error_code

    def committed(self) -> dict[int, int]:
        offsets = self._groups.offsets(self._group)
        return {
            number: offset for (topic, number), offset in offsets.items() if topic == self._topic
        }

    def commit(self, offsets: Mapping[int, int]) -> None:
        """What a rebalance refuses is read again by whoever has the partition then."""
        places = {(self._topic, number): offset for number, offset in offsets.items()}
        error = self._groups.try_commit(self._group, places, self._member)
        if error not in AGAIN:
            check(error, None, f"group {self._group}")

    def leave(self) -> None:
        identity = schemas.MemberIdentity(member_id=self._member.id)
        request = schemas.LeaveGroupRequest(
            group_id=self._group, member_id=self._member.id, members=(identity,)
        )
        self._groups.ask(self._group, request, schemas.LeaveGroupResponse, error_of)

    def _join_request(self) -> schemas.JoinGroupRequest:
        protocol = schemas.JoinGroupRequestProtocol(
            name=ASSIGNOR, metadata=subscription([self._topic])
        )
        return schemas.JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self._member.id,
            protocol_type=PROTOCOL_TYPE,
            protocols=(protocol,),
        )

    def _sync_request(self, joined: schemas.JoinGroupResponse) -> schemas.SyncGroupRequest:
        """Only the leader is told who the members are, and says who gets what."""
        shares: dict[str, list[Place]] = {}
        if joined.leader == joined.member_id:
            wanted = {each.member_id: topics_of(bytes(each.metadata)) for each in joined.members}
            names = sorted({topic for topics in wanted.values() for topic in topics})
            found = self._admin.metadata(names).topics if names else ()
            counts = {each.name or "": len(each.partitions) for each in found}
            shares = range_shares(wanted, counts)
        return schemas.SyncGroupRequest(
            group_id=self._group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=ASSIGNOR,
            assignments=tuple(
                schemas.SyncGroupRequestAssignment(member_id=each, assignment=assignment(places))
                for each, places in shares.items()
            ),
        )


def error_of(
    answer: schemas.JoinGroupResponse
    | schemas.SyncGroupResponse
    | schemas.HeartbeatResponse
    | schemas.LeaveGroupResponse,
) -> Iterable[int]:
    return [answer.error_code]


def range_shares(
    wanted: Mapping[str, Sequence[str]], counts: Mapping[str, int]
) -> dict[str, list[Place]]:
    """Of each topic a run of partitions for each member that wants it; the first get one more."""
    shares: dict[str, list[Place]] = {member: [] for member in sorted(wanted)}
    for topic, count in sorted(counts.items()):
        members = [member for member in shares if topic in wanted[member]]
        if not members:
            continue
        each, more = divmod(count, len(members))
        start = 0
        for index, member in enumerate(members):
            end = start + each + (index < more)
            shares[member] += [(topic, number) for number in range(start, end)]
            start = end
    return shares


# The consumer protocol's bytes, version 0: topics, and no user data.


def subscription(topics: Sequence[str]) -> bytes:
    return b"".join((struct.pack(">hi", 0, len(topics)), *map(packed, topics), NO_USER_DATA))


def topics_of(metadata: bytes) -> list[str]:
    try:
        _, count = struct.unpack_from(">hi", metadata)
        topics, position = [], 6
        for _ in range(count):
            (size,) = struct.unpack_from(">h", metadata, position)
            topics.append(metadata[position + 2 : position + 2 + size].decode())
            position += 2 + size
    except (struct.error, UnicodeDecodeError) as error:
        raise Refused(f"a subscription of the group cannot be read: {error}") from None
    return topics


def assignment(places: Iterable[Place]) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, partition in places:
        topics.setdefault(topic, []).append(partition)
    parts = [struct.pack(">hi", 0, len(topics))]
    for topic, partitions in topics.items():
        count = len(partitions)
        parts += [packed(topic), struct.pack(f">i{count}i", count, *partitions)]
    return b"".join((*parts, NO_USER_DATA))


def packed(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


NO_USER_DATA = struct.pack(">i", -1)
