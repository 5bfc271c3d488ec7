"""One member of a consumer group in the classic protocol.

The member joins, computes the assignment if the coordinator makes it the leader, sends heartbeats,
commits and leaves. It runs in the thread of its caller, which must call `alive` between two polls.
The assignor is Kafka's range assignor."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Mapping, Sequence

from quorate.cli.client.admin import Admin, check
from quorate.cli.client.errors import NotReachable, Refused
from quorate.cli.client.groups import RETRY_DELAY_MS, Groups, Member, Place, assigned
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import group_membership as schemas

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
"""Errors after which the member must join again."""


class Membership:
    """The membership of one consumer in one group for one topic.

    No thread sends heartbeats. The member loses its place if `alive` is not called within
    the session timeout."""

    def __init__(
        self,
        admin: Admin,
        group: str,
        topic: str,
        *,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        heartbeat_s: float = HEARTBEAT_INTERVAL_S,
    ) -> None:
        self._admin = admin
        self._session_timeout_ms = session_timeout_ms
        self._heartbeat_s = heartbeat_s
        self._groups = Groups(admin)
        self._group = group
        self._topic = topic
        self._member = Member()
        self._next_beat_at = 0.0

    def join(self) -> list[int]:
        """Join the group and return this member's partitions of the topic, which may be none.

        The call blocks until the coordinator has assigned partitions. It joins again as often as a
        rebalance interrupts it. The timeout of the Admin bounds the wait for the first answer. That
        timeout and REBALANCE_TIMEOUT_MS together bound the whole call, because a coordinator holds
        the answer until the other members have joined. Raise NotReachable when the time is over,
        and Refused on an error that a new attempt cannot fix."""
        patience_s = (self._admin.timeout_ms + REBALANCE_TIMEOUT_MS) / 1000
        deadline = time.monotonic() + patience_s
        while True:
            error, partitions = self._try_join(deadline)
            if error == ErrorCode.NONE:
                self._next_beat_at = time.monotonic() + self._heartbeat_s
                return partitions
            if time.monotonic() >= deadline:
                raise NotReachable(
                    f"group {self._group}: the coordinator assigned no partitions within "
                    f"{patience_s:g} s; its last answer was {error.name}"
                )
            self._admin.wait(RETRY_DELAY_MS / 1000)

    def _try_join(self, deadline: float) -> tuple[ErrorCode, list[int]]:
        """Join once. Return NONE and the partitions, or the error after which to join again."""
        joined = self._join_request_answered(deadline)
        error = ErrorCode.of(joined.error_code)
        if error == ErrorCode.MEMBER_ID_REQUIRED:
            self._member = Member(id=joined.member_id)
            joined = self._join_request_answered(deadline)
            error = ErrorCode.of(joined.error_code)
        if error in AGAIN or error == ErrorCode.MEMBER_ID_REQUIRED:
            self._member = Member()
            return error, []
        check(error, None, f"group {self._group}")
        self._member = Member(joined.member_id, joined.generation_id)
        synced = self._groups.ask(
            self._group,
            self._sync_request(joined),
            schemas.SyncGroupResponse,
            error_of,
            patience_s=max(0.0, deadline - time.monotonic()),
        )
        error = ErrorCode.of(synced.error_code)
        if error in AGAIN:
            return error, []
        check(error, None, f"group {self._group}")
        places = assigned(bytes(synced.assignment))
        return error, [partition for topic, partition in places if topic == self._topic]

    def _join_request_answered(self, deadline: float) -> schemas.JoinGroupResponse:
        """Return the answer to one JoinGroup request.

        A coordinator answers a request without a member id immediately (KIP-394)."""
        patience_s = max(0.0, deadline - time.monotonic())
        if not self._member.id:
            patience_s = min(patience_s, self._admin.timeout_ms / 1000)
        return self._groups.ask(
            self._group,
            self._join_request(),
            schemas.JoinGroupResponse,
            error_of,
            patience_s=patience_s,
        )

    def alive(self) -> bool:
        """Send a heartbeat if one is due.

        Return False if the caller must join again, because the group rebalances or has removed this
        member. True may mean only that no heartbeat was due.

        The call blocks while the coordinator moves. Raise NotReachable if that takes longer than
        the timeout of the Admin, and Refused on any other error."""
        if time.monotonic() < self._next_beat_at:
            return True
        self._next_beat_at = time.monotonic() + self._heartbeat_s
        request = schemas.HeartbeatRequest(
            group_id=self._group, generation_id=self._member.generation, member_id=self._member.id
        )
        answer = self._groups.ask(self._group, request, schemas.HeartbeatResponse, error_of)
        if answer.error_code not in AGAIN:
            check(answer.error_code, None, f"group {self._group}")
        return not answer.error_code

    def committed(self) -> dict[int, int]:
        """Return the group's committed offset of each partition of the topic that has one."""
        offsets = self._groups.offsets(self._group)
        return {
            number: offset for (topic, number), offset in offsets.items() if topic == self._topic
        }

    def commit(self, offsets: Mapping[int, int]) -> bool:
        """Commit the offsets of this member. Return True if they are committed.

        Return False if the coordinator refuses the commit because of a rebalance, or because it has
        removed this member. The next owner of the partition then reads these records again. Raise
        Refused on any other error."""
        places = {(self._topic, number): offset for number, offset in offsets.items()}
        error = self._groups.try_commit(self._group, places, self._member)
        if error in AGAIN:
            return False
        check(error, None, f"group {self._group}")
        return True

    def leave(self) -> None:
        """Leave the group, so that the coordinator rebalances before the session timeout.

        Ignore errors in the response. Raise NotReachable if the coordinator does not answer."""
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
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self._member.id,
            protocol_type=PROTOCOL_TYPE,
            protocols=(protocol,),
        )

    def _sync_request(self, joined: schemas.JoinGroupResponse) -> schemas.SyncGroupRequest:
        """Return the SyncGroup request.

        Only the group's leader sees the members and sends an assignment."""
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
    """Return the error code of a group response as the list that `Groups.ask` checks."""
    return [answer.error_code]


def range_shares(
    wanted: Mapping[str, Sequence[str]], counts: Mapping[str, int]
) -> dict[str, list[Place]]:
    """Return the partitions of each member by the range assignor.

    `wanted` are the subscribed topics of each member, `counts` the number of partitions of each
    topic. Each member gets a contiguous range of each of its topics. The first members, by id, get
    one partition more if the division leaves a remainder."""
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


# The consumer protocol in version 0: topics, without user data.


def subscription(topics: Sequence[str]) -> bytes:
    """Return the encoded subscription to the topics."""
    return b"".join((struct.pack(">hi", 0, len(topics)), *map(packed, topics), NO_USER_DATA))


def topics_of(metadata: bytes) -> list[str]:
    """Return the topics of an encoded subscription. Raise Refused if the bytes are malformed."""
    try:
        _, count = struct.unpack_from(">hi", metadata)
        topics, position = [], 6
        for _ in range(count):
            (size,) = struct.unpack_from(">h", metadata, position)
            topics.append(metadata[position + 2 : position + 2 + size].decode())
            position += 2 + size
    except (struct.error, UnicodeDecodeError) as error:
        raise Refused(f"the group has a subscription that cannot be decoded: {error}") from None
    return topics


def assignment(places: Iterable[Place]) -> bytes:
    """Return the encoded assignment of the partitions."""
    topics: dict[str, list[int]] = {}
    for topic, partition in places:
        topics.setdefault(topic, []).append(partition)
    parts = [struct.pack(">hi", 0, len(topics))]
    for topic, partitions in topics.items():
        count = len(partitions)
        parts += [packed(topic), struct.pack(f">i{count}i", count, *partitions)]
    return b"".join((*parts, NO_USER_DATA))


def packed(text: str) -> bytes:
    """Return a string of the protocol: its length in bytes as int16, then UTF-8."""
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


NO_USER_DATA = struct.pack(">i", -1)
