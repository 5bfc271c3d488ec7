"""An administrator that changes topics while faults happen.

It creates, grows, configures and deletes topics, elects leaders and moves replicas. The history
records all answers, and it must be linearizable.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from quorate.quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from quorate.quorum.protocol.schemas.elect_leaders import ElectLeadersRequest
from quorate.quorum.protocol.schemas.reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from quorate.quorum.protocol.schemas.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from quorate.quorum.protocol.wire import Message
from quorate.quorum.seams import Address
from tests.sim.checks.admin_history import (
    DEFAULTS,
    RETENTION,
    TOPIC_RETENTION,
    State,
    configured,
    created,
    deleted,
    grown,
)
from tests.sim.clients.answers import Step
from tests.sim.clients.clients import Client, Unreachable
from tests.sim.clients.history import History
from tests.sim.world.cluster import SimCluster

TIMEOUT_MS = 1000
NAMES = ("churn1", "churn2", "churn3")
"""Few names, so that the administrators' requests conflict."""
MAX_PARTITIONS = 4
REASSIGNED = ("data", "loose", *NAMES)


class Admin(Client):
    def __init__(
        self,
        cluster: SimCluster,
        history: History,
        name: str = "admin",
        addresses: dict[int, Address] | None = None,
    ) -> None:
        super().__init__(cluster, name)
        self._addresses = addresses or self._addresses
        self.stopping = False
        self._history = history
        self._task: asyncio.Task[None] | None = None
        self._steps: tuple[Callable[[], Coroutine[Any, Any, None]], ...] = (
            self._create,
            self._create,
            self._delete,
            self._grow,
            self._configure,
            self._configure,
            self._elect,
            self._reassign,
        )
        if not cluster.brokers:
            self._steps = (self._configure_brokers,)

    async def create(self, name: str, partitions: int) -> int | None:
        """Create a topic. Return the error code, or None if no answer came."""
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=3, assignments=(), configs=()
        )
        return await self._do(CreateTopicsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS))

    async def create_once(self, name: str, partitions: int) -> None:
        work = self.create(name, partitions)
        await self._recorded(name, f"create {partitions}", created(partitions), work)

    async def create_surely(self, name: str, partitions: int) -> None:
        """Create a topic on a cluster that is healthy or will be. Return when the topic exists."""
        while name not in self.topics:
            await self.create(name, partitions)
            await self.refresh()

    async def configure_surely(self, topic: str, key: str, value: int) -> None:
        while await self.configure(TOPIC_RESOURCE, topic, key, value) != 0:
            await self.refresh()

    async def configure(self, resource_type: int, name: str, key: str, value: int) -> int | None:
        config = IncrementalAlterableConfig(name=key, config_operation=0, value=str(value))
        resource = IncrementalAlterConfigsResource(
            resource_type=resource_type, resource_name=name, configs=(config,)
        )
        return await self._do(
            IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        )

    async def _do(self, request: Message) -> int | None:
        """Send a change to any node. Return the error code, or None if the outcome is unknown: no
        answer came, or a node that belongs to the quorum before a rebuild has sent it. That quorum
        may still decide (docs/protocol/rebuilding-a-quorum.md, rule 12), but the rebuilt quorum
        does not know its decisions (seed 1690)."""
        node_id = self.random.choice(sorted(self._addresses))
        past = self._cluster.is_past(node_id)
        try:
            answer: Any = await self.ask(node_id, request)
        except Unreachable:
            return None
        if past or self._cluster.is_past(node_id):
            return None
        results: Any = next(
            value
            for value in (
                getattr(answer, name, None) for name in ("topics", "results", "responses")
            )
            if value is not None
        )
        error: int = results[0].error_code
        self._history.admin_done += error == ErrorCode.NONE
        return error

    async def _recorded(
        self, name: str, what: str, step: Step[State], work: Coroutine[Any, Any, int | None]
    ) -> None:
        start_s = self._cluster.loop.time()
        error = await work
        end_s = self._cluster.loop.time()
        answer = "no answer" if error is None else ErrorCode.of(error).name
        self._cluster.note(f"{self.name}: {what} {name}: {answer}")
        self._history.admin.record(name, what, step, start_s, end_s, error)

    # -- churn -----------------------------------------------------------------------------------

    def start(self, pace_s: float) -> None:
        self._task = self.spawn(self._churn(pace_s))

    async def stop(self) -> None:
        self.stopping = True
        if self._task is not None:
            await self._task

    async def _churn(self, pace_s: float) -> None:
        while not self.stopping:
            await self.pause(pace_s)
            await self.random.choice(self._steps)()

    async def _create(self) -> None:
        name = self.random.choice(NAMES)
        await self.create_once(name, self.random.randrange(1, 3))

    async def _delete(self) -> None:
        name = self.random.choice(NAMES)
        request = DeleteTopicsRequest(topics=(DeleteTopicState(name=name),), timeout_ms=TIMEOUT_MS)
        await self._recorded(name, "delete", deleted, self._do(request))

    async def _grow(self) -> None:
        name = self.random.choice(NAMES)
        count = self.random.randrange(1, MAX_PARTITIONS + 1)
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
        request = CreatePartitionsRequest(
            topics=(topic,), timeout_ms=TIMEOUT_MS, validate_only=False
        )
        await self._recorded(name, f"grow to {count}", grown(count), self._do(request))

    async def _configure(self) -> None:
        name, value = self.random.choice(NAMES), self.random.randrange(10**9, 2 * 10**9)
        work = self.configure(TOPIC_RESOURCE, name, TOPIC_RETENTION, value)
        await self._recorded(name, f"set {value}", configured(value), work)

    async def _configure_brokers(self) -> None:
        value = self.random.randrange(10**9, 2 * 10**9)
        work = self.configure(BROKER_RESOURCE, DEFAULTS, RETENTION, value)
        await self._recorded(DEFAULTS, f"set {value}", configured(value), work)

    async def _elect(self) -> None:
        """Elect the preferred leaders of all partitions."""
        request = ElectLeadersRequest(topic_partitions=None, timeout_ms=TIMEOUT_MS)
        with contextlib.suppress(Unreachable):
            answer = await self.ask_any(request)
            self._cluster.note(f"{self.name}: elect: {ErrorCode.of(answer.error_code).name}")

    async def _reassign(self) -> None:
        """Assign a partition to any three brokers in any order, or cancel its reassignment."""
        brokers = [each.id for each in self._cluster.brokers]
        replicas = tuple(self.random.sample(brokers, 3)) if self.random.randrange(0, 4) else None
        place = ReassignablePartition(partition_index=0, replicas=replicas)
        topic = ReassignableTopic(name=self.random.choice(REASSIGNED), partitions=(place,))
        request = AlterPartitionReassignmentsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS)
        with contextlib.suppress(Unreachable):
            answer = await self.ask_any(request)
            code = answer.error_code or answer.responses[0].partitions[0].error_code
            moved = ErrorCode.of(code).name
            self._cluster.note(f"{self.name}: move {topic.name}-0 to {replicas}: {moved}")
