"""Brokers that are killed, unregistered by an administrator, and started again.

An unregistered broker is in no ISR. When it returns it registers as another incarnation with a
larger epoch, and its replicas catch up.

A request that the network holds back may arrive late and remove a broker that runs again. As in
Kafka, such a broker repeats its heartbeats in vain, so the administrator restarts it.
"""

from __future__ import annotations

from typing import Any

from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.unregister_broker import UnregisterBrokerRequest
from tests.sim.workloads.workload import Workload, require
from tests.sim.world.cluster import Machine

ONE_IN = 12
"""One of so many steps unregisters a broker."""
AWAY_S = 0.3


class Unregistered(Workload):
    name_of = "unregistered"
    kills = True

    def __init__(self, stage: Any) -> None:
        super().__init__(stage)
        self.incarnations: dict[int, object] = {}
        """The incarnation of each broker at the time of its last unregistration."""

    async def step(self) -> None:
        for machine in self.stage.cluster.brokers:
            if is_forgotten(machine, self.stage.cluster.newest_image()):
                self.stage.cluster.kill(machine)
                self.stage.cluster.start(machine)
                self.count("brokers that were removed late")
        if self.random.randrange(0, ONE_IN) or self._is_over():
            return
        machine = self.random.choice(self.stage.cluster.brokers)
        if not self._may_be_unregistered(machine):
            return
        if machine.process is not None:
            self.stage.cluster.kill(machine)
        try:
            await self._unregister(machine)
            await self.pause(AWAY_S)
        finally:
            if machine.process is None and not (machine.may_fail or self._is_over()):
                self.stage.cluster.start(machine)

    def _is_over(self) -> bool:
        """Return True if the faults have ended. The simulation starts the brokers then."""
        return self.stage.quorum_admin.stopping

    def _may_be_unregistered(self, machine: Machine) -> bool:
        """Return True if the broker is healthy and the fault model does not protect it. A protected
        broker may be the only one that keeps the data that another broker has lost."""
        return (
            not (machine.stopping or machine.may_fail or machine.lying or machine.scarred)
            and machine.name not in self.stage.faults.limits.protected()
        )

    async def _unregister(self, machine: Machine) -> None:
        before = self.stage.cluster.newest_image().brokers.get(machine.id)
        answer = await self.ask_any(UnregisterBrokerRequest(broker_id=machine.id))
        code = ErrorCode.of(answer.error_code)
        if code is ErrorCode.BROKER_ID_NOT_REGISTERED:
            return
        if code is not ErrorCode.NONE:
            require(code.retriable, f"UnregisterBroker {machine.id}: {code.name}")
            return
        if machine.process is None:  # the image of a node may be older (seed 30918)
            require_gone(self.stage.invariants.image, machine.id)
        if before is not None:
            self.incarnations[machine.id] = before.incarnation_id
        self.count("unregistered brokers")

    async def check(self) -> None:
        image = self.stage.cluster.newest_image()
        for machine in self.stage.cluster.brokers:
            found = image.brokers.get(machine.id)
            require(
                found is not None and found.incarnation_id != self.incarnations.get(machine.id),
                f"{machine.name} did not register again",
            )


def is_forgotten(machine: Machine, image: MetadataImage) -> bool:
    """Return True if a running broker had registered and is not registered any more."""
    process = machine.process
    if process is None or machine.stopping or process.host.paused or process.broker is None:
        return False
    lifecycle = process.broker.lifecycle
    return (
        lifecycle is not None
        and 0 <= lifecycle.broker_epoch <= image.last.offset
        and machine.id not in image.brokers
    )


def require_gone(image: MetadataImage, broker_id: int) -> None:
    """Raise Violation if a broker that was unregistered is registered or in an ISR."""
    require(broker_id not in image.brokers, f"broker {broker_id} is still registered")
    for topic, partition_id, partition in image.all_partitions():
        require(
            broker_id not in partition.isr,
            f"{topic.name}-{partition_id}: {broker_id} is in the ISR {partition.isr}, and is "
            "not registered",
        )
