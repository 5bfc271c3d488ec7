"""The fault model: which node may lose promised data, and when. A loss beyond it would be no bug.

The records of a partition are promised while another member of the ISR keeps them. A broker
therefore loses data only when the cluster is healthy and no other broker's disk is known to be bad.
No other fault comes until the broker has registered again, and so has left the ISRs. A controller
may lose unsynced data at any time, and synced data only while all other controllers have it.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.quorum.log.names import DAMAGED_SUFFIX
from tests.sim.cluster import Machine, SimCluster
from tests.sim.electorate import Electorate


class Limits:
    def __init__(
        self,
        cluster: SimCluster,
        electorate: Electorate,
        healthy: Callable[[], bool],
        under_way: Callable[[], int],
    ) -> None:
        self._cluster = cluster
        self._electorate = electorate
        self._healthy = healthy
        self._under_way = under_way
        self._fragile: Machine | None = None  # the broker that lost data last

    @property
    def is_fragile(self) -> bool:
        broker = self._fragile
        if broker is not None and self._cluster.is_registered(broker):
            self._fragile = None
        return self._fragile is not None

    def lost_data(self, machine: Machine) -> None:
        if machine.is_broker:
            self._fragile = machine

    def may_lose_unsynced(self, machine: Machine) -> bool:
        if not machine.is_broker:
            return True
        if self._fragile is machine and machine.process is None:
            # No other fault has come since it lost data, but sessions may have ended of one before.
            return not is_last_of_an_isr(self._cluster, machine)
        return (
            not self._under_way()
            and self._healthy()
            and not isr_changes_under_way(self._cluster)
            and not any(
                self.is_scarred(each) for each in self._cluster.brokers if each is not machine
            )
        )

    def is_scarred(self, machine: Machine) -> bool:
        """Until it is repaired, and that is durable. What was set aside does not count."""
        if machine.scarred:
            scars = machine.disk.scars()
            machine.scarred = any(not each.endswith(DAMAGED_SUFFIX) for each in scars)
        return machine.scarred

    def may_lose_synced(self, machine: Machine) -> bool:
        if machine.is_broker:
            return self.may_lose_unsynced(machine)
        return self._electorate.others_have(machine)


def is_last_of_an_isr(cluster: SimCluster, broker: Machine) -> bool:
    partitions = cluster.newest_image().all_partitions()
    return any(partition.isr == (broker.id,) for _, _, partition in partitions)


def isr_changes_under_way(cluster: SimCluster) -> bool:
    return any(
        hosted.partition.leadership is not None and hosted.partition.leadership.isr.in_flight
        for machine in cluster.brokers
        if machine.process is not None and machine.process.broker is not None
        for hosted in machine.process.broker.replicas.registry
    )
