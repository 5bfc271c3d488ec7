"""A member of a consumer group. It joins, owns partitions, commits offsets, leaves and returns."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.find_coordinator import FindCoordinatorRequest
from quorate.quorum.protocol.schemas.group_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from quorate.quorum.protocol.schemas.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from quorate.quorum.protocol.wire import Message
from tests.sim.checks.committed_log import Violation
from tests.sim.clients.clients import Client, Unreachable
from tests.sim.workloads.group_book import GroupBook
from tests.sim.world.cluster import SimCluster

TOPIC = "data"
PARTITIONS = (0, 1, 2)
SESSION_MS = 1500
REBALANCE_MS = 1500
JOIN_TIMEOUT_MS = 5000
"""The longest wait for an answer to JoinGroup and SyncGroup."""
HEARTBEAT_S = 0.2
BACKOFF_S = 0.05
AWAY_S = 2.0
"""A member that vanishes stays away for about its session."""
VERSIONS = {"find": 3, "join": 9, "sync": 5, "heartbeat": 4, "leave": 5, "commit": 8, "fetch": 7}
NOT_A_MEMBER = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
JOIN_AGAIN = (ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS)
SUBSCRIPTION = struct.pack(">hih", 0, 1, len(TOPIC)) + TOPIC.encode() + struct.pack(">i", -1)


def encoded(partitions: frozenset[int]) -> bytes:
    return bytes(sorted(partitions))


class JoinAgain(Exception):
    """Raised if the member has to join again."""


class GroupMember(Client):
    """A member of the group, with a loop of its own. `calm` makes it stay, and `ending` ends the
    loop."""

    def __init__(
        self,
        cluster: SimCluster,
        name: str,
        book: GroupBook,
        count: Callable[[str], None],
        *,
        static: bool,
    ) -> None:
        """`count` counts what happens to the member, by kind. A static member has its name as its
        instance id (KIP-345)."""
        super().__init__(cluster, name)
        self.calm = self.ending = False
        self.generation = -1
        self.owned: frozenset[int] = frozenset()
        """The partitions of this generation, empty while the member has none."""
        self._book = book
        self._count = count
        self._instance_id = name if static else None
        self._member_id = ""
        self._coordinator: int | None = None

    @property
    def owner(self) -> str:
        """Return the name of the member in the book."""
        return self._instance_id or self._member_id

    async def run(self) -> None:
        while not self.ending:
            try:
                await self._take_part()
            except (JoinAgain, Unreachable) as error:
                if isinstance(error, Unreachable):
                    self._coordinator = None
                await self.pause(BACKOFF_S)
            finally:
                self.generation, self.owned = -1, frozenset()

    async def _take_part(self) -> None:
        """Join the group, and stay a member until it leaves, vanishes or has to join again."""
        joined = await self._join()
        await self._sync(joined)
        for partition in sorted(self.owned):
            await self.fetch(partition)
        while not self.ending:
            await self.pause(HEARTBEAT_S)
            chance = 1 if self.calm else self.random.randrange(0, 40)
            if chance == 0:
                await self._leave()
                return
            if chance == 2:
                await self._vanish()
                return
            for partition in sorted(self.owned):
                await self._commit(partition)
            await self._heartbeat()

    # -- membership ------------------------------------------------------------------------------

    async def _join(self) -> JoinGroupResponse:
        protocol = JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)
        request = JoinGroupRequest(
            group_id=self._book.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
            protocol_type="consumer",
            protocols=(protocol,),
        )
        answer: JoinGroupResponse = await self._ask(request, "join")
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
            raise JoinAgain
        self._refuse("join", answer.error_code)
        self._member_id, self.generation = answer.member_id, answer.generation_id
        return answer

    async def _sync(self, joined: JoinGroupResponse) -> None:
        """Get the partitions of this member. The leader sends the assignment of all members."""
        assignments = []
        if joined.leader == self._member_id and not joined.skip_assignment:
            owners = {
                each.group_instance_id or each.member_id: each.member_id for each in joined.members
            }
            names = sorted(owners)
            parts = {name: frozenset(PARTITIONS[i :: len(names)]) for i, name in enumerate(names)}
            self._book.leader_sends(self.generation, parts)
            assignments = [
                SyncGroupRequestAssignment(member_id=owners[name], assignment=encoded(part))
                for name, part in parts.items()
            ]
        request = SyncGroupRequest(
            group_id=self._book.group,
            generation_id=self.generation,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=tuple(assignments),
        )
        answer = await self._ask(request, "sync")
        self._refuse("sync", answer.error_code)
        self.owned = frozenset(bytes(answer.assignment))
        self._book.synced(self.generation, self.owner, self.owned)
        self._cluster.note(f"{self.name} owns {sorted(self.owned)} in generation {self.generation}")
        self._count("assignments")

    async def _heartbeat(self) -> None:
        request = HeartbeatRequest(
            group_id=self._book.group,
            generation_id=self.generation,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
        )
        self._refuse("heartbeat", (await self._ask(request, "heartbeat")).error_code)

    async def _leave(self) -> None:
        """Leave the group. A static member sends the request by which an administrator would remove
        it."""
        member = MemberIdentity(member_id=self._member_id, group_instance_id=self._instance_id)
        request = LeaveGroupRequest(group_id=self._book.group, members=(member,))
        self._member_id = ""
        answer = await self._ask(request, "leave")
        self._refuse("leave", answer.error_code or answer.members[0].error_code)
        self._count("departures")
        await self.pause(AWAY_S / 4)

    async def _vanish(self) -> None:
        """Stop without a LeaveGroup request. Half of the members return as if they had only been
        slow."""
        if self.random.getrandbits(1):
            self._member_id = ""
        self._count("absences")
        await self.pause(AWAY_S)

    # -- offsets ---------------------------------------------------------------------------------

    async def _commit(self, partition: int) -> None:
        book, generation = self._book, self.generation
        offset = book.next_commit(generation, partition)
        wanted = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=book.group,
            generation_id_or_member_epoch=generation,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
            topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(wanted,)),),
        )
        answer = await self._ask(request, "commit")
        error = answer.topics[0].partitions[0].error_code
        if error in (*NOT_A_MEMBER, *JOIN_AGAIN):
            book.commit_refused(partition, offset)
            self._count("refused commits")
        self._refuse("commit", error)
        book.commit_acknowledged(generation, partition, offset)
        self._count("commits")

    async def finds_offset(self, partition: int) -> bool:
        """Fetch the committed offset. Return False if the coordinator does not answer yet."""
        try:
            await self.fetch(partition)
        except (JoinAgain, Unreachable):
            self._coordinator = None
            return False
        return True

    async def fetch(self, partition: int) -> None:
        """Fetch the committed offset of a partition that this member owns."""
        generation = self.generation
        topic = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=(partition,))
        request = OffsetFetchRequest(group_id=self._book.group, topics=(topic,))
        answer = await self._ask(request, "fetch")
        found = answer.topics[0].partitions[0] if answer.topics else None
        self._refuse("fetch", answer.error_code or (found.error_code if found else 0))
        assert found is not None
        if self._book.fetched(generation, partition, found.committed_offset):
            self._count("offsets found")

    # -- requests --------------------------------------------------------------------------------

    async def _ask(self, request: Message, kind: str) -> Any:
        """Send a request to the coordinator. Raise Unreachable if there is none."""
        coordinator = self._coordinator
        if coordinator is None:
            broker = self.random.choice(sorted(self._addresses))
            find = FindCoordinatorRequest(key=self._book.group)
            answer = await self.ask(broker, find, VERSIONS["find"])
            if answer.error_code:
                raise Unreachable(f"no coordinator: {answer.error_code}")
            coordinator = self._coordinator = answer.node_id
        waits = kind in ("join", "sync")
        timeout_ms = JOIN_TIMEOUT_MS if waits else None
        return await self.ask(coordinator, request, VERSIONS[kind], timeout_ms=timeout_ms)

    def _refuse(self, kind: str, error: int) -> None:
        """Raise JoinAgain or Unreachable for an error that a member has to expect, and Violation
        for any other error."""
        code = ErrorCode.of(error)
        if code is ErrorCode.NONE:
            return
        self._cluster.note(f"{self.name}: {kind} in generation {self.generation}: {code.name}")
        if code in NOT_A_MEMBER:
            self._member_id = ""
            raise JoinAgain
        if code in JOIN_AGAIN:
            raise JoinAgain
        if code.retriable:
            raise Unreachable(code.name)
        raise Violation(f"{self.name}: {kind}: {code.name}")
