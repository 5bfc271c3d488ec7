"""Clients that ignore the quotas of their changes and of their connection rate.

The changer creates and deletes a topic over a new connection each time. No muted connection
therefore delays it, and only the controller's quota bounds it (KIP-599). The dialer connects to one
broker from an address of its own. The broker refuses connections that exceed the quota (KIP-612).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.metadata import MetadataRequest
from quorate.quorum.rpc.kafka.client import ClientError, ClientSettings, KafkaClient
from quorate.quorum.seams import TransportError
from tests.sim.clients.clients import CONNECT_TIMEOUT_MS
from tests.sim.workloads.workload import Workload, require
from tests.sim.world.cluster import Machine, Process

WINDOWS = 3
"""The value of quota.window.num and of controller.quota.window.num."""
FASTEST = 1.02
"""The rate of the fastest clock. Clocks run up to 2 % slow or fast."""
TOPIC = "changed"
PARTITIONS = 2
ADDRESS = "192.0.2.1"
PACE_S = 0.05
ANSWER_MS = 500
"""The time within which an accepted connection gets its answer, in most cases."""


class Impolite(Workload):
    """A client of the workload of quotas. `used` is the usage that the cluster has permitted since
    `_since_s`."""

    quotas: ClassVar[Mapping[str, float]]
    entity: ClassVar[tuple[str, str]]
    """The type and the name of the entity that has the quotas."""

    def __init__(self, stage: Any) -> None:
        super().__init__(stage)
        stage.clients.append(self)
        self.used = self.refused = 0
        self._since_s = 0.0

    async def prepare(self) -> None:
        self._since_s = self.stage.loop.time()

    async def check(self) -> None:
        (rate,) = self.quotas.values()
        elapsed_s = (self.stage.loop.time() - self._since_s) * FASTEST
        require(
            self.used <= self.allowed(rate, elapsed_s),
            f"{self.name} used {self.used} in {elapsed_s:.0f} s, at a quota of {rate:g}",
        )

    def allowed(self, rate: float, elapsed_s: float) -> float:
        """Return the most that the client may use in `elapsed_s`."""
        raise NotImplementedError


class Changer(Impolite):
    name_of = "changer"
    quotas: ClassVar[Mapping[str, float]] = {"controller_mutation_rate": 1.0}
    entity = ("client-id", name_of)

    def __init__(self, stage: Any) -> None:
        super().__init__(stage)
        self._exists = False
        self._leaders = 0

    async def prepare(self) -> None:
        await super().prepare()
        self._leaders = self.stage.invariants.raft_epochs

    async def step(self) -> None:
        for link in self._links.values():
            link.close()
        self._links.clear()
        error = await (self.delete(TOPIC) if self._exists else self.create(TOPIC, PARTITIONS))
        if error == ErrorCode.NONE:
            self.used += PARTITIONS
            self._exists = not self._exists
        elif error == ErrorCode.THROTTLING_QUOTA_EXCEEDED:
            self.refused += 1
        elif error == ErrorCode.TOPIC_ALREADY_EXISTS:
            self._exists = True
        elif error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._exists = False
        elif error != ErrorCode.INVALID_REPLICATION_FACTOR:  # brokers are unregistered
            code = ErrorCode.of(error)
            require(code.retriable, f"{TOPIC}: {code.name}")

    def allowed(self, rate: float, elapsed_s: float) -> float:
        """Return the most that the client may use. Each leader of the quorum begins with a full
        token bucket, and the last change that the bucket permits makes a debt."""
        leaders = 1 + self.stage.invariants.raft_epochs - self._leaders
        return rate * elapsed_s + leaders * (WINDOWS * rate + PARTITIONS)


class Dialer(Impolite):
    name_of = ADDRESS
    quotas: ClassVar[Mapping[str, float]] = {"connection_creation_rate": 1.0}
    entity = ("ip", ADDRESS)

    def __init__(self, stage: Any) -> None:
        super().__init__(stage)
        self._broker = self.random.choice(sorted(self._addresses))
        self._lives = 1
        stage.cluster.started.append(self._started)

    def _started(self, machine: Machine, process: Process) -> None:
        """Count the processes of the broker. A new process does not know the client's earlier
        usage."""
        self._lives += machine.id == self._broker

    async def step(self) -> None:
        settings = ClientSettings(client_id=self.name, connect_timeout_ms=CONNECT_TIMEOUT_MS)
        address = self._addresses[self._broker]
        try:
            link = await KafkaClient.connect(self._transport, self._clock, address, settings)
        except (ClientError, TransportError):
            return
        try:
            await link.call(MetadataRequest(topics=()), timeout_ms=ANSWER_MS)
            self.used += 1
        except (ClientError, TransportError):
            self.refused += 1
        finally:
            link.close()

    def allowed(self, rate: float, elapsed_s: float) -> float:
        return rate * (elapsed_s + (WINDOWS + 1) * self._lives)
