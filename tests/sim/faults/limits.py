"""The fault model: the nodes that may lose promised data, and when. After any other loss, a failure
would be no bug.

The records of a partition are promised while another member of the ISR keeps them and stays
unfenced. A broker therefore loses data only if every ISR that contains it has such a keeper. If an
ISR is empty, one of its last members leads next, so none of them may lose data. Other nodes may be
dead, paused or cut off meanwhile. No fault hits a keeper until the broker has registered again,
which removes it from the ISRs.

A controller may lose unsynced data at any time, and synced data only while all other controllers
have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from quorate.quorum.log.files.names import DAMAGED_SUFFIX
from quorate.quorum.metadata.image import MetadataImage, Partition
from tests.sim.checks.electorate import Electorate
from tests.sim.world.cluster import Machine, SimCluster
from tests.sim.world.sessions import FRESH_MS, has_renewed, session_left_ms

if TYPE_CHECKING:
    from tests.sim.faults.faults import Fault

BESIDE = (
    "kill",
    "lose_power",
    "wipe",
    "stop",
    "partition",
    "partition_one_way",
    "isolate",
    "bridge",
    "break_links",
    "refuse",
    "step_clock",
    "sync_fails",
    "io_errors",
    "read_only",
    "full",
    "flip",
    "flip_data",
    "crash_at_call",
    "lost_writes",
    "misdirected_writes",
)
"""The faults that may be under way while a broker loses data. Other faults delay the active
controller, which may then fence a keeper."""


class Limits:
    """Decides which machines may lose data now. `under_way` returns the faults that have not
    ended."""

    def __init__(
        self,
        cluster: SimCluster,
        electorate: Electorate,
        under_way: Callable[[], Iterable[Fault]],
    ) -> None:
        self.together = 0
        """The number of times that a broker lost data while another node had a fault."""
        self._cluster = cluster
        self._electorate = electorate
        self._under_way = under_way
        self._fragile: dict[str, tuple[str, ...]] = {}
        """The brokers that lost data and have not registered since, each with its keepers."""
        self._granted: dict[str, tuple[str, ...]] = {}

    def look(self) -> None:
        """Remove the protection of keepers that is no longer needed, and the scars that are healed.

        The sweep calls this, and so does each fault before it hits anything. A keeper that is free
        then may be hit, and must not count as a keeper of the same loss later. The methods that
        only ask change nothing, because a replay of the faults does not repeat the questions that
        were asked to draw them."""
        for machine in self._cluster.machines.values():
            if machine.name in self._fragile and self._cluster.is_registered(machine):
                del self._fragile[machine.name]
            machine.scarred = machine.scarred and self.is_scarred(machine)

    def protected(self) -> dict[str, None]:
        """Return the names of the keepers, which no fault may hit now."""
        return dict.fromkeys(
            keeper
            for name, keepers in self._fragile.items()
            if self._is_fragile(name)
            for keeper in keepers
        )

    def _is_fragile(self, name: str) -> bool:
        """Return True if the broker lost data and has not registered since."""
        return name in self._fragile and not self._cluster.is_registered(
            self._cluster.machines[name]
        )

    def lost_data(self, machine: Machine) -> None:
        """Protect the keepers of the data that the machine just lost, until it has registered
        again.

        A Fetch that the machine sent before may still bring it into an ISR (seed 30827). Therefore
        the leaders of all its partitions are keepers, too."""
        if not machine.is_broker:
            return
        brokers = {each.id: each.name for each in self._cluster.brokers if each is not machine}
        leaders = [
            brokers[partition.leader]
            for _, _, partition in self._cluster.newest_image().all_partitions()
            if machine.id in partition.replicas and partition.leader in brokers
        ]
        granted = self._granted.pop(machine.name, tuple(brokers.values()))
        self._fragile[machine.name] = tuple(dict.fromkeys((*granted, *leaders)))
        self.together += any(
            {*fault.names, *fault.others} - {machine.name} for fault in self._under_way()
        )

    def may_lose_unsynced(self, machine: Machine) -> bool:
        """Return True if the caller may take unsynced data from the machine now. The brokers that
        keep this data are protected when `lost_data` is called."""
        if not self._needs_keepers(machine):
            return self.could_lose_unsynced(machine)
        keepers = self._keepers_of(machine)
        if keepers is not None:
            self._granted[machine.name] = keepers
        return keepers is not None

    def could_lose_unsynced(self, machine: Machine) -> bool:
        """Return what `may_lose_unsynced` would return, and change nothing."""
        if self._needs_keepers(machine):
            return self._keepers_of(machine) is not None
        # The keepers of a dead broker that lost data are still protected. An earlier fault may have
        # let their sessions expire, so this broker may be the last of an ISR.
        return not (machine.is_broker and is_last_of_an_isr(self._cluster, machine))

    def _needs_keepers(self, machine: Machine) -> bool:
        return machine.is_broker and (
            machine.process is not None or not self._is_fragile(machine.name)
        )

    def is_scarred(self, machine: Machine) -> bool:
        """Return True until the damage is repaired durably. Files that the node has set aside do
        not count."""
        return machine.scarred and any(
            not each.endswith(DAMAGED_SUFFIX) for each in machine.disk.scars()
        )

    def may_lose_synced(self, machine: Machine) -> bool:
        if machine.is_broker and not self.may_lose_unsynced(machine):
            return False
        return not machine.is_controller or self._electorate.others_have(machine)

    def _keepers_of(self, machine: Machine) -> tuple[str, ...] | None:
        """Return the brokers that keep the data of this one, or None if some ISR has no such
        broker."""
        image = settled_image(self._cluster)
        faults = list(self._under_way())
        protected = self.protected()
        if (
            image is None
            or machine.name in protected
            or isr_changes_under_way(self._cluster)
            or any(fault.kind not in BESIDE for fault in faults)
        ):
            return None
        hit = {name for fault in faults for name in (*fault.names, *fault.others)}
        safe = {
            each.id: each.name
            for each in self._cluster.brokers
            if each is not machine and each.name not in hit and self._is_safe(each, image)
        }
        keepers: dict[str, None] = {}
        for _, _, partition in image.all_partitions():
            if machine.id in holders_of(partition):
                found = keepers_of(partition, machine.id, safe)
                if not found:
                    return None
                keepers.update(dict.fromkeys(found))
        return tuple(keepers)

    def _is_safe(self, machine: Machine, image: MetadataImage) -> bool:
        """Return True if the broker has all its data and a session that was renewed recently."""
        broker = image.brokers.get(machine.id)
        return (
            machine.process is not None
            and not machine.process.host.paused
            and not (machine.stopping or machine.may_fail or machine.lying)
            and not self.is_scarred(machine)
            and machine.disk_delay_s == 0
            and not self._is_fragile(machine.name)
            and self._cluster.is_registered(machine)
            and broker is not None
            and broker.active
            and has_renewed(machine)
            and session_left_ms(self._cluster.active_controllers()[0], machine.id) >= FRESH_MS
        )


def holders_of(partition: Partition) -> tuple[int, ...]:
    """Return the replicas that may be elected and have all acknowledged records: the ISR. If the
    ISR is empty, these are the eligible leader replicas and the last known leader (KIP-966). The
    last known leader leads if the others turn out to have stopped uncleanly."""
    return partition.isr or (*partition.elr, *partition.last_known_elr)


def keepers_of(partition: Partition, losing: int, safe: dict[int, str]) -> list[str]:
    """Return the keepers of one partition, empty if there are too few.

    The leader is enough, because only it removes others from the ISR. If the leader loses the data,
    every other member of the ISR may lead next, so all of them must be safe."""
    if partition.leader in safe:
        return [safe[partition.leader]]
    others = [each for each in partition.isr if each != losing]
    if partition.leader != losing or any(each not in safe for each in others):
        return []
    return [safe[each] for each in others]


def settled_image(cluster: SimCluster) -> MetadataImage | None:
    """Return the image of the only active controller, if its log has nothing uncommitted."""
    active = cluster.active_controllers()
    if len(active) != 1 or active[0].process is None:
        return None
    core = active[0].process.core
    if core.end_offset != core.replica.raft.high_watermark:
        return None
    return core.committed_image.image


def is_last_of_an_isr(cluster: SimCluster, broker: Machine) -> bool:
    partitions = cluster.newest_image().all_partitions()
    return any(
        broker.id in holders_of(partition) if not partition.isr else partition.isr == (broker.id,)
        for _, _, partition in partitions
    )


def isr_changes_under_way(cluster: SimCluster) -> bool:
    return any(
        hosted.partition.leadership is not None and hosted.partition.leadership.isr.in_flight
        for machine in cluster.brokers
        if machine.process is not None and machine.process.broker is not None
        for hosted in machine.process.broker.replicas.registry
    )
