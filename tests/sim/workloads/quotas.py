"""A client with quotas that ignores its throttle times (KIP-219).

A broker enforces the quota: it does not read the client's connection during a throttle time. A
muted connection loses no request, and the broker reads it again in time. In half of the seeds the
CPU time of the client's requests is bounded, too. The CPU clock of each node then advances with
each call. The default quota of all client ids is much higher, so the quota of this client id
decides. `impolite.py` has two more clients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.client_quotas import (
    AlterationData,
    AlterClientQuotasRequest,
    AlteredEntityData,
    OpData,
)
from quorate.quorum.protocol.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from quorate.quorum.protocol.wire import Message
from quorate.quorum.seams import TransportError
from tests.sim.clients.clients import Unreachable
from tests.sim.workloads.impolite import FASTEST, PACE_S, WINDOWS, Changer, Dialer, Impolite
from tests.sim.workloads.workload import BACKOFF_S, Workload, require
from tests.sim.world.cluster import Machine, Process

NAME = "quotas"
PARTITIONS = 3
BYTES_PER_S = {"producer_byte_rate": 600.0, "consumer_byte_rate": 1500.0}
DEFAULT_BYTES_PER_S = 1e9
REQUEST_PERCENTAGE = 0.5
CPU_STEP_MS = 1.0
"""The CPU time, in ms, that each call of a CPU clock adds. A request makes at least one call."""
PATIENCE_MS = 9000
"""The longest wait for an answer. It exceeds all throttle times."""
BURST = 4
EARLY, LATE_S = 0.95, 1.0
"""The tolerance of the check. Clocks run up to 2 % slow or fast, and an answer takes at most a
second on a healthy cluster."""
SHORTEST_S = 0.1
"""Shorter throttle times are not checked, because they are too close to the time of an answer."""
PROBES = 4


class Quotas(Workload):
    name_of = "quotas"
    keys: ClassVar[Mapping[str, str]] = {
        "quota.window.num": str(WINDOWS),
        "controller.quota.window.num": str(WINDOWS),
    }

    def __init__(self, stage: Any) -> None:
        super().__init__(stage)
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.sent_bytes: Counter[int] = Counter()
        """The bytes of the records that each broker has accepted."""
        self._lives: Counter[int] = Counter()
        self._since_s = 0.0
        self._number = 0
        self._throttle_ms, self._answerer = 0, -1
        """The throttle time of the latest answer, and the broker that sent it."""
        self.bounds_cpu = bool(self.random.getrandbits(1))
        self.answers: Counter[int] = Counter()
        """The requests that each broker has answered."""
        self.others: tuple[Impolite, ...] = (Changer(stage), Dialer(stage))
        stage.cluster.started.append(self._started)
        for machine in stage.cluster.machines.values():
            if machine.process is not None:
                self._measures_cpu(machine.process)

    def _started(self, machine: Machine, process: Process) -> None:
        """Count the processes of a broker. A new process does not know the client's earlier
        usage."""
        self._lives[machine.id] += 1
        self._measures_cpu(process)

    def _measures_cpu(self, process: Process) -> None:
        process.clock.cpu_step_ms = CPU_STEP_MS if self.bounds_cpu else 0.0

    async def prepare(self) -> None:
        while NAME not in self.topics or len(self.topics[NAME].leaders) < PARTITIONS:
            await self.create(NAME, PARTITIONS)
            await self.refresh()
        await self._alter(remove=False)
        self._since_s = self.stage.loop.time()
        for each in self.others:
            await each.spawn(each.prepare())

    def start(self, pace_s: float) -> None:
        super().start(pace_s)
        for each in self.others:
            each.start(PACE_S)

    async def stop(self) -> None:
        await super().stop()
        for each in self.others:
            await each.spawn(each.stop())

    def quotas(self) -> Sequence[tuple[str, str | None, Mapping[str, float]]]:
        """Return the type and the name of each entity, and its quotas."""
        own = dict(BYTES_PER_S)
        if self.bounds_cpu:
            own["request_percentage"] = REQUEST_PERCENTAGE
        return [
            ("client-id", self.name, own),
            ("client-id", None, dict.fromkeys(BYTES_PER_S, DEFAULT_BYTES_PER_S)),
            *((*each.entity, each.quotas) for each in self.others),
        ]

    async def _alter(self, *, remove: bool) -> None:
        """Set all quotas, or remove them."""
        entries = tuple(
            AlterationData(
                entity=(AlteredEntityData(entity_type=kind, entity_name=name),),
                ops=tuple(OpData(key=key, value=each, remove=remove) for key, each in ops.items()),
            )
            for kind, name, ops in self.quotas()
        )
        request = AlterClientQuotasRequest(entries=entries, validate_only=False)
        while True:
            try:
                answer = await self.ask_any(request)
            except Unreachable:
                continue
            if all(each.error_code == ErrorCode.NONE for each in answer.entries):
                return
            await self.pause(BACKOFF_S)

    async def ask(
        self,
        broker_id: int,
        request: Message,
        version: int | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> Any:
        """Send a request, wait for as long as a muted connection may take, and record the throttle
        time."""
        answer = await super().ask(broker_id, request, version, timeout_ms=PATIENCE_MS)
        self._throttle_ms, self._answerer = answer.throttle_time_ms, broker_id
        self.answers[broker_id] += 1
        if self._throttle_ms:
            self.count("throttled answers")
        return answer

    async def step(self) -> None:
        for _ in range(BURST):
            await self._write(self.random.randrange(0, PARTITIONS))
        await self._fetch(self.random.randrange(0, PARTITIONS))

    async def _write(self, partition: int) -> None:
        self._number += 1
        value = b"quota:%d:%s" % (self._number, b"x" * 100)
        found = self.known_leader(NAME, partition)
        done = await self.produce(NAME, partition, value)
        if done is not None and found is not None:
            self.acknowledged[partition, done[1]] = value
            self.sent_bytes[found[1]] += len(value)

    async def _fetch(self, partition: int) -> None:
        found = self.known_leader(NAME, partition)
        if found is None:
            await self.refresh()
            return
        asked = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1000)
        topic = FetchTopic(topic_id=found[0], partitions=(asked,))
        await self.ask(found[1], FetchRequest(max_wait_ms=0, min_bytes=0, topics=(topic,)))

    # -- the end ---------------------------------------------------------------------------------

    async def check(self) -> None:
        self.check_rate()
        for each in self.others:
            await each.spawn(each.check())
            self.stage.coverage[f"workload {NAME}: {each.name} was let"] += each.used
            self.stage.coverage[f"workload {NAME}: {each.name} was refused"] += each.refused
        await self._is_muted_and_read_again()
        await self._alter(remove=True)
        for partition in range(PARTITIONS):
            found = dict(await self.read(NAME, partition, 0))
            for (where, offset), value in self.acknowledged.items():
                require(
                    where != partition or found.get(offset) == value,
                    f"{NAME}-{partition}: {value[:20]!r} is not at {offset}",
                )

    def check_rate(self) -> None:
        """Check that no broker took more than the quotas and the bursts that the windows allow."""
        self._check_use(self.sent_bytes, BYTES_PER_S["producer_byte_rate"], "bytes")
        if self.bounds_cpu:
            per_s = REQUEST_PERCENTAGE * 10 / CPU_STEP_MS  # one percent is 10 ms in a second
            self._check_use(self.answers, per_s, "requests")

    def _check_use(self, used: Mapping[int, int], rate: float, what: str) -> None:
        elapsed_s = (self.stage.loop.time() - self._since_s) * FASTEST
        for broker, count in used.items():
            lives = 1 + self._lives[broker]
            require(
                count <= rate * (elapsed_s + (WINDOWS + 1) * lives),
                f"{NAME}: broker {broker} took {count} {what} in {elapsed_s:.0f} s and {lives} "
                f"lives",
            )

    async def _is_muted_and_read_again(self) -> None:
        """Check that the answer after a throttled one comes when the throttle time is over."""
        seen = 0
        while seen < PROBES:
            found = self.known_leader(NAME, 0)
            if found is None:
                await self.refresh()
                continue
            try:
                link = await self.link(found[1])
                await self._write(0)
                throttle_s, start_s = self._throttle_ms / 1000, self.stage.loop.time()
                throttled_by = self._answerer
                await self._fetch(0)
            except (Unreachable, TransportError):
                await self.refresh()
                continue
            waited_s = self.stage.loop.time() - start_s
            if throttle_s < SHORTEST_S or self._links.get(found[1]) is not link:
                continue
            if not throttled_by == self._answerer == found[1]:
                continue  # the leader has moved, and another broker muted nothing
            way = self.stage.cluster.network.path(self._addresses[found[1]].host, self.name)
            # the throttle time began when the throttled answer was sent
            waited_s += way.usual.max_latency_ms / 1000
            require(
                throttle_s * EARLY <= waited_s <= throttle_s + LATE_S,
                f"{NAME}: the connection was read {waited_s:.2f} s after an answer with a throttle "
                f"time of {throttle_s:.2f} s",
            )
            seen += 1
            self.count("muted connections that were read again")
