"""An administrator of the quorum, which adds and removes voters while faults happen.

It asks the controllers directly, as `quorate metadata-quorum` does: first for the leader and the
voters, then for one change. It asks the electorate which changes cannot lose the quorum.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from quorate.quorum.ids import METADATA_TOPIC, ZERO_UUID, ReplicaKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.cluster import (
    DescribeQuorumRequest,
    QuorumPartition,
    QuorumPartitionState,
    QuorumReplicaState,
    QuorumTopic,
)
from quorate.quorum.protocol.schemas.raft_voters import (
    AddRaftVoterRequest,
    RaftVoterListener,
    RemoveRaftVoterRequest,
)
from quorate.quorum.protocol.schemas.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)
from quorate.quorum.protocol.wire import Message
from quorate.quorum.raft.voter_changes import KRAFT_VERSION
from tests.sim.checks.electorate import Electorate
from tests.sim.checks.quorum_history import QuorumHistory, Voting, added, removed, upgraded
from tests.sim.clients.answers import Step
from tests.sim.clients.clients import Client, Unreachable
from tests.sim.world.cluster import CONTROLLER_PORT, Machine, SimCluster
from tests.sim.world.shape import Quorum

TIMEOUT_MS = 1200
MOST_VOTERS = 5
UNSETTLED = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER)
"""The errors for a change that the leader may have appended, or that another leader may have
made."""


class QuorumAdmin(Client):
    def __init__(
        self,
        cluster: SimCluster,
        electorate: Electorate,
        history: QuorumHistory,
        name: str = "voters",
    ) -> None:
        super().__init__(cluster, name)
        self._history = history
        self.stopping = False
        self.changes = 0
        self._electorate = electorate
        self._addresses = cluster.controller_addresses()
        self._upgraded = cluster.shape.quorum is Quorum.DYNAMIC
        self._task: asyncio.Task[None] | None = None

    def start(self, pace_s: float) -> None:
        self._task = self.spawn(self._churn(pace_s))

    async def stop(self) -> None:
        self.stopping = True
        if self._task is not None:
            await self._task

    async def _churn(self, pace_s: float) -> None:
        while not self.stopping:
            await self.pause(pace_s)
            with contextlib.suppress(Unreachable):
                state = await self.describe()
                # No change may begin after the electorate was asked for a majority.
                if state is None or self.stopping:
                    continue
                if not self._upgraded:
                    await self._upgrade(state.leader_id)
                else:
                    await self._change(state)

    async def describe(self) -> QuorumPartitionState | None:
        """Return the state of the quorum, or None if the node that answers does not lead."""
        topic = QuorumTopic(
            topic_name=METADATA_TOPIC, partitions=(QuorumPartition(partition_index=0),)
        )
        start_s = self._now_s()
        answer = await self.ask_any(DescribeQuorumRequest(topics=(topic,)))
        if answer.error_code:
            return None
        (state,) = answer.topics[0].partitions
        found: QuorumPartitionState = state
        if found.error_code:
            return None
        self._history.described(
            map(self._key, found.current_voters), found.leader_id, start_s, self._now_s()
        )
        return found

    def _key(self, voter: QuorumReplicaState) -> ReplicaKey:
        """Return the key of a voter. Static voters have no directory ids in the log, but their
        directories never change."""
        if voter.replica_directory_id != ZERO_UUID:
            return ReplicaKey(voter.replica_id, voter.replica_directory_id)
        return next(each.key for each in self._cluster.controllers if each.id == voter.replica_id)

    def _now_s(self) -> float:
        return self._cluster.loop.time()

    async def _upgrade(self, leader_id: int) -> None:
        update = FeatureUpdateKey(feature=KRAFT_VERSION, max_version_level=1)
        request = UpdateFeaturesRequest(timeout_ms=TIMEOUT_MS, feature_updates=(update,))
        answer = await self._change_of("upgrade", upgraded, None, leader_id, request)
        self._upgraded = answer.error_code == ErrorCode.NONE
        self._note("upgrade", answer.error_code)

    async def _change_of(
        self,
        what: str,
        step: Step[Voting],
        key: ReplicaKey | None,
        leader_id: int,
        request: Message,
    ) -> Any:
        """Send a change to the leader, and record it with its answer, also if no answer comes."""
        start_s, told = self._now_s(), None
        try:
            answer = await self.ask(leader_id, request)
            told = answer.error_code, answer.error_message or ""
            return answer
        finally:
            self._history.told(what, step, key, leader_id, start_s, self._now_s(), told)

    async def _change(self, state: QuorumPartitionState) -> None:
        voters = [
            ReplicaKey(each.replica_id, each.replica_directory_id) for each in state.current_voters
        ]
        ids = {each.id for each in voters}
        absent = [each for each in self._cluster.controllers if each.id not in ids]
        lost = [each for each in voters if each in self._electorate.lost]
        if lost and self.random.getrandbits(1):
            await self.remove(state.leader_id, self.random.choice(lost))
        elif absent and len(voters) < MOST_VOTERS and self.random.randrange(0, 5) > 1:
            machine = self.random.choice(absent)
            if self._electorate.may_add(machine):
                await self.add(state.leader_id, machine)
        elif len(voters) > 1:
            key = self.random.choice(voters)
            if self._electorate.may_remove(key):
                await self.remove(state.leader_id, key)

    async def add(self, leader_id: int, machine: Machine) -> int | None:
        """Add a voter. Return the error code, or None if the outcome is unknown."""
        key = machine.key
        listener = RaftVoterListener(name="CONTROLLER", host=machine.name, port=CONTROLLER_PORT)
        request = AddRaftVoterRequest(
            cluster_id=self._cluster.cluster_id,
            timeout_ms=TIMEOUT_MS,
            voter_id=key.id,
            voter_directory_id=key.directory_id,
            listeners=(listener,),
        )
        unsettled = self._electorate.unsettled_adds
        unsettled[key] = None
        answer = await self._change_of(f"add {key}", added(key), key, leader_id, request)
        return self._settle(f"add {machine.name}", key, answer.error_code, unsettled)

    async def remove(self, leader_id: int, key: ReplicaKey) -> int | None:
        request = RemoveRaftVoterRequest(
            cluster_id=self._cluster.cluster_id,
            voter_id=key.id,
            voter_directory_id=key.directory_id,
        )
        unsettled = self._electorate.unsettled_removals
        unsettled[key] = None
        answer = await self._change_of(f"remove {key}", removed(key), key, leader_id, request)
        return self._settle(f"remove c{key.id}", key, answer.error_code, unsettled)

    def _settle(
        self, what: str, key: ReplicaKey, error: int, unsettled: dict[ReplicaKey, None]
    ) -> int | None:
        self._note(what, error)
        if error in UNSETTLED:
            return None
        unsettled.pop(key, None)
        return error

    def _note(self, what: str, error: int) -> None:
        self.changes += error == ErrorCode.NONE
        self._cluster.note(f"{self.name}: {what}: {ErrorCode.of(error).name}")
