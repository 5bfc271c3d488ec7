"""A topic whose replication is throttled (KIP-73) while its replicas lag and move.

Members of the ISR are exempt: acks=all is answered in time although the throttle is exceeded, and
no member leaves the ISR because of the throttle.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from quorate.broker.replication.replica_manager import ReplicaManager
from quorate.quorum.metadata.image import BROKER_RESOURCE
from tests.sim.clients.clients import Unreachable
from tests.sim.workloads.workload import BACKOFF_S, Workload, require

NAME = "throttled"
CONFIGS = {
    "leader.replication.throttled.replicas": "*",
    "follower.replication.throttled.replicas": "*",
}
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
RATE = 10_000
"""The rate during the faults, in bytes per second."""
LOWEST = 1
UNLIMITED = 1 << 40
ANSWER_S = 1.0
"""The longest time of a write with acks=all on a healthy cluster."""
LAG_S = 2.0
"""A time that is longer than replica.lag.time.max.ms."""


class Throttled(Workload):
    name_of = "throttled"

    def __init__(self, stage: Any) -> None:
        super().__init__(stage)
        self.acknowledged: dict[int, bytes] = {}
        self._number = 0
        self._lifted = False

    async def prepare(self) -> None:
        while NAME not in self.topics:
            await self.create(NAME, 1, CONFIGS)
            await self.refresh()
        await self._set_rates(RATE)

    async def _set_rates(self, rate: int) -> None:
        """Set the rates of all brokers, and wait until the brokers apply them."""
        admin = self.stage.admin
        for broker in sorted(self._addresses):
            for name in RATES:
                work = admin.configure(BROKER_RESOURCE, str(broker), name, rate)
                while await admin.spawn(work) != 0:
                    work = admin.configure(BROKER_RESOURCE, str(broker), name, rate)
        while any(each.leader_throttle.limit != rate for each in self._managers().values()):
            await self.pause(BACKOFF_S)

    def _managers(self) -> Mapping[int, ReplicaManager]:
        return {
            each.id: each.process.broker.replicas
            for each in self.stage.cluster.brokers
            if each.process is not None and each.process.broker is not None
        }

    async def step(self) -> None:
        if self.stage.quorum_admin.stopping and not self._lifted:  # replicas must catch up in time
            self._lifted = True
            await self._set_rates(UNLIMITED)
        for _ in range(2):
            await self._write()
        managers = self._managers().values()
        if any(
            each.leader_throttle.exceeded or each.follower_throttle.exceeded for each in managers
        ):
            self.count("times the throttle was exceeded")
            if len(self.stage.isr_of((NAME, 0))) < 3:
                self.count("times a lagging replica was throttled")

    async def _write(self) -> bool:
        self._number += 1
        value = b"throttled:%d:%s" % (self._number, b"x" * 300)
        done = await self.produce(NAME, 0, value)
        if done is not None:
            self.acknowledged[done[1]] = value
            self.count("writes")
        return done is not None

    async def check(self) -> None:
        found = dict(await self.read(NAME, 0, 0))
        for offset, value in self.acknowledged.items():
            require(found.get(offset) == value, f"{NAME}: {value[:20]!r} is not at {offset}")
        while len(self.stage.isr_of((NAME, 0))) < 3:  # a broker has found damage, and is back
            await self.pause(BACKOFF_S)
        await self._set_rates(LOWEST)
        start_s = self.stage.loop.time()
        exceeded, processes = 0, self._processes()
        while self.stage.loop.time() < start_s + LAG_S:
            took_s = await self._write_surely()
            if self._processes() != processes:  # a broker has found damage, and left the ISR
                break
            self.check_exempt(took_s, self.stage.isr_of((NAME, 0)))
            exceeded += self.leader_exceeds()
            await self.pause(BACKOFF_S)
        else:
            require(exceeded, f"{NAME}: the throttle is not exceeded")
        await self._set_rates(UNLIMITED)

    def _processes(self) -> list[object]:
        return [each.process for each in self.stage.cluster.brokers]

    def leader_exceeds(self) -> bool:
        """Return True if the throttle of the present leader is exceeded. The throttle of a new
        leader is not exceeded until its followers have fetched, and a preferred leader may be
        elected at any time."""
        leader = self.stage.leader_of((NAME, 0))
        return leader is not None and self._managers()[leader.id].leader_throttle.exceeded

    async def _write_surely(self) -> float:
        """Write a record until it is acknowledged. Return the time that it took, in seconds."""
        start_s = self.stage.loop.time()
        while True:
            with suppress(Unreachable):  # a broker that found damage restarts
                if await self._write():
                    return self.stage.loop.time() - start_s
            await self.refresh()

    def check_exempt(self, took_s: float, isr: tuple[int, ...]) -> None:
        """Check that a write was acknowledged in time and the ISR is complete, although the
        throttle is exceeded."""
        require(took_s < ANSWER_S, f"{NAME}: acks=all took {took_s:.1f} s beside a throttle")
        require(len(isr) == 3, f"{NAME}: a throttle removed a replica from the ISR {isr}")
        self.count("writes of an exempt ISR")
