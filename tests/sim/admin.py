"""An administrator: creates, grows, configures and deletes topics while things fail.

A request whose outcome is unknown is neither a promise nor none; what is known to be done must
still be so when everything is healed.
"""

from __future__ import annotations

import asyncio
import enum
from typing import Any

from quorate.quorum.metadata.image import TOPIC_RESOURCE, MetadataImage
from quorate.quorum.rpc.kafka.errors import ErrorCode
from quorate.quorum.rpc.kafka.schemas.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from quorate.quorum.rpc.kafka.schemas.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from quorate.quorum.rpc.kafka.wire import Message
from tests.sim.clients import Client, Unreachable
from tests.sim.cluster import Cluster
from tests.sim.history import History
from tests.sim.invariants import Violation

TIMEOUT_MS = 1000
RETENTION = "retention.ms"


class Outcome(enum.Enum):
    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"


# What the controller says when it provably did nothing.
REFUSALS = (
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INVALID_REPLICATION_FACTOR,
    ErrorCode.INVALID_PARTITIONS,
)


class Admin(Client):
    def __init__(self, cluster: Cluster, history: History, name: str = "admin") -> None:
        super().__init__(cluster, name)
        self.stopping = False
        self._history = history
        self._known: dict[str, dict[str, int]] = {}  # topic -> what is surely so
        self._gone: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None

    async def create(self, name: str, partitions: int, **configs: str) -> Outcome:
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=3,
            assignments=(),
            configs=tuple(
                CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ),
        )
        return await self._do(CreateTopicsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS))

    async def create_surely(self, name: str, partitions: int) -> None:
        """Of a cluster that is well, or will be."""
        while name not in self.topics:
            await self.create(name, partitions)
            await self.refresh()

    async def grow(self, name: str, count: int) -> Outcome:
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
        return await self._do(
            CreatePartitionsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS, validate_only=False)
        )

    async def delete(self, name: str) -> Outcome:
        state = DeleteTopicState(name=name)
        return await self._do(DeleteTopicsRequest(topics=(state,), timeout_ms=TIMEOUT_MS))

    async def set_retention(self, name: str, value: int) -> Outcome:
        config = IncrementalAlterableConfig(name=RETENTION, config_operation=0, value=str(value))
        resource = IncrementalAlterConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=name, configs=(config,)
        )
        return await self._do(
            IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        )

    async def _do(self, request: Message) -> Outcome:
        try:
            answer: Any = await self.ask_any(request)
        except Unreachable:
            return Outcome.UNKNOWN
        (result,) = next(
            value
            for value in (
                getattr(answer, name, None) for name in ("topics", "results", "responses")
            )
            if value is not None
        )
        if result.error_code == ErrorCode.NONE:
            self._history.admin_done += 1
            return Outcome.DONE
        return Outcome.REFUSED if result.error_code in REFUSALS else Outcome.UNKNOWN

    # -- churn -----------------------------------------------------------------------------------

    def start(self, pace_s: float) -> None:
        self._task = self.spawn(self._churn(pace_s))

    async def stop(self) -> None:
        self.stopping = True
        if self._task is not None:
            await self._task

    async def _churn(self, pace_s: float) -> None:
        number = 0
        while not self.stopping:
            await self.pause(pace_s)
            names = sorted(self._known)
            step = self.random.randrange(0, 4) if names else 0
            if step == 0:
                number += 1
                await self._churn_create(f"churn{number}")
                continue
            name = self.random.choice(names)
            if step == 1:
                del self._known[name]
                if await self.delete(name) is Outcome.DONE:
                    self._gone[name] = None
            elif step == 2:
                await self._churn_set(
                    name, "partitions", self._known[name].get("partitions", 1) + 1
                )
            else:
                await self._churn_set(name, RETENTION, self.random.randrange(10**9, 2 * 10**9))

    async def _churn_create(self, name: str) -> None:
        if await self.create(name, 1) is Outcome.DONE:
            self._cluster.note(f"admin: created {name}")
            self._known[name] = {"partitions": 1}

    async def _churn_set(self, name: str, what: str, value: int) -> None:
        known = self._known[name]
        set_to = self.grow if what == "partitions" else self.set_retention
        outcome = await set_to(name, value)
        if outcome is Outcome.DONE:
            known[what] = value
        elif outcome is Outcome.UNKNOWN:
            known.pop(what, None)

    def check(self, image: MetadataImage) -> None:
        """What was answered is so, in the healed cluster."""
        for name in self._gone:
            if image.topic(name) is not None:
                raise Violation(f"topic {name} was deleted and is there")
        for name, known in self._known.items():
            topic = image.topic(name)
            if topic is None:
                raise Violation(f"topic {name} was created and is not there")
            count = known.get("partitions")
            if count is not None and len(topic.partitions) != count:
                raise Violation(f"{name} has {len(topic.partitions)} partitions, not {count}")
            value = image.config(TOPIC_RESOURCE, name).get(RETENTION)
            if RETENTION in known and value != str(known[RETENTION]):
                raise Violation(f"{name}: {RETENTION} is {value}, not {known[RETENTION]}")
