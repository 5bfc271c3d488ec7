"""The high watermarks of partitions, compared with the logs of the ISR and with earlier processes.

A record below a high watermark is in the log of every ISR member (KIP-101), and of every eligible
leader replica (KIP-966). The high watermark of a leader is therefore at most the smallest log end
offset of its ISR. A replica joins the ISR only when it has everything below the highest high
watermark. A process starts with the checkpoint of the process before, which is at most the highest
high watermark that any replica ever had. After the faults have ended, the leader reaches the
highest one again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from quorate.broker.partition.leadership import Leadership
from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.quorum.log.files import checkpoints
from quorate.quorum.metadata.image import Partition
from tests.sim.world.cluster import Machine, SimCluster

Trusted = Callable[[Machine, Key], bool]
"""Returns True if the replica of a machine still has all that it ever acknowledged."""


class Watermarks:
    """Compares the ISR members for which `trusted` returns True. Power losses and bad disks take
    records from the others."""

    def __init__(
        self,
        cluster: SimCluster,
        trusted: Trusted,
        min_isr: Mapping[str, int] | None = None,
        unclean: Callable[[Key], bool] = lambda key: False,
    ) -> None:
        """`min_isr` has the min.insync.replicas of the topics for which it is known. `unclean`
        returns True if a partition allows unclean elections, which may lose records."""
        self._min_isr = min_isr or {}
        self._unclean = unclean
        self.checks: Counter[str] = Counter()
        self._cluster = cluster
        self._trusted = trusted
        self._highest: dict[Key, int] = {}
        self._highest_of_name: dict[str, int] = {}
        self._ends: dict[tuple[str, Key], int] = {}
        """The highest log end that was seen of each replica, even if it was truncated later."""
        self._last_ends: dict[tuple[str, Key], int] = {}
        """The log end of each replica when its process ended last."""

    def restarted(self, machine: Machine) -> str:
        """Return the fault of the checkpoint with which a broker starts, or ""."""
        path = f"{machine.config.log_dir}/{checkpoints.HIGH_WATERMARKS_NAME}"
        if path not in machine.disk.files(machine.config.log_dir):
            return ""
        for line in machine.disk.content(path).decode().splitlines()[2:]:
            topic, partition, saved = line.split()
            name = f"{topic}-{partition}"
            self.checks["high watermark after a restart"] += 1
            highest = self._highest_of_name.get(name, 0)
            if int(saved) > highest:
                return f"{machine.name}: {name} restarts with {saved}, the highest was {highest}"
        return ""

    def note(self, hosted: HostedPartition) -> None:
        """Record the present high watermark of a replica."""
        key, high_watermark = hosted.key, hosted.partition.high_watermark
        self._highest[key] = max(self._highest.get(key, 0), high_watermark)
        name = f"{hosted.topic}-{key[1]}"
        self._highest_of_name[name] = max(self._highest_of_name.get(name, 0), high_watermark)

    def highest(self, key: Key) -> int:
        """Return the highest high watermark that any replica of a partition ever had."""
        return self._highest.get(key, 0)

    def moved(self, machine: Machine, hosted: HostedPartition) -> str:
        """Return the fault of the present high watermark of a replica, or ""."""
        key, high_watermark = hosted.key, hosted.partition.high_watermark
        self.note(hosted)
        leadership = hosted.partition.leadership
        if leadership is None:
            return ""
        if problem := self._is_held(machine, hosted):
            return problem
        for other in self._cluster.brokers:
            if other.id not in leadership.isr.committed or not self._trusted(other, key):
                continue
            if not knows_process(leadership, other):
                continue
            end = log_end(other, key)
            if end is None:
                continue
            self.checks["high watermark and ISR"] += 1
            if end < high_watermark:
                return (
                    f"{hosted}: high watermark {high_watermark}, but the log of ISR member "
                    f"{other.name} ends at {end}"
                )
        return ""

    def electable(self, key: Key, partition: Partition | None) -> str:
        """Return the fault of a replica that may be elected and lacks a record below the highest
        high watermark, or "". `partition` is the committed state. Members of its ISR and of its ELR
        may be elected."""
        if partition is None or self._unclean(key):
            return ""
        highest = self.highest(key)
        for other in self._cluster.brokers:
            eligible = other.id in partition.elr
            if not (eligible or other.id in partition.isr) or not self._trusted(other, key):
                continue
            end = log_end(other, key)
            if other.process is None:
                end = self._last_ends.get((other.name, key))
            if end is None:
                continue
            self.checks["log of an eligible leader replica"] += eligible
            self.checks["log of a member of the ISR"] += not eligible
            if end < highest:
                return (
                    f"{key}: the log of {other.name} ends at {end}, below the highest high "
                    f"watermark {highest}, and it may be elected: ISR {partition.isr}, "
                    f"ELR {partition.elr}"
                )
        return ""

    def _is_held(self, machine: Machine, hosted: HostedPartition) -> str:
        """Return the fault if fewer than min.insync.replicas replicas have had the records below a
        leader's high watermark, or "". With ELR the high watermark waits for them (KIP-966)."""
        key, high_watermark = hosted.key, hosted.partition.high_watermark
        partition = self._cluster.newest_image().partition(*key)
        if hosted.topic not in self._min_isr or partition is None:
            return ""
        least = min(self._min_isr[hosted.topic], len(partition.replicas))
        holders = []
        for each in self._cluster.brokers:
            self.saw_end(each, key)
            if self._ends.get((each.name, key), 0) >= high_watermark:
                holders.append(each.name)
        self.checks["high watermark and min ISR"] += 1
        if len(holders) >= least:
            return ""
        return f"{hosted}: high watermark {high_watermark}, and only {holders} ever had the records"

    def saw_end(self, machine: Machine, key: Key) -> None:
        """Record the present log end offset of a replica."""
        end = log_end(machine, key)
        if end is not None:
            self._ends[machine.name, key] = max(end, self._ends.get((machine.name, key), 0))

    def dying(self, machine: Machine) -> None:
        """Record the log ends of a process that is about to end."""
        for key, hosted in hosted_by(machine).items():
            self.saw_end(machine, key)
            self._last_ends[machine.name, key] = hosted.log.end_offset

    def at_the_end(self) -> str:
        """Return the fault of the leaders of a healed cluster, or ""."""
        for machine in self._cluster.brokers:
            for key, hosted in hosted_by(machine).items():
                if hosted.partition.leadership is None or self._unclean(key):
                    continue
                self.checks["high watermark at the end"] += 1
                highest = self._highest.get(key, 0)
                if hosted.partition.high_watermark < highest:
                    return (
                        f"{machine.name} leads {hosted} with high watermark "
                        f"{hosted.partition.high_watermark}, it was {highest} before"
                    )
        return ""


def knows_process(leadership: Leadership, follower: Machine) -> bool:
    """Return True if the leader knows the present process of a follower.

    A restart may cut off unflushed records that the rest of the ISR has. The broker has then left
    the ISR. A leader that does not know this yet counts the records that the broker had before."""
    known = leadership._brokers(follower.id)
    return (
        known is not None
        and follower.process is not None
        and known.incarnation_id == follower.process.core.incarnation
    )


def hosted_by(machine: Machine) -> dict[Key, HostedPartition]:
    """Return the open replicas of a machine."""
    if machine.process is None or machine.process.broker is None:
        return {}
    return {each.key: each for each in machine.process.broker.replicas.registry}


def log_end(machine: Machine, key: Key) -> int | None:
    """Return the log end offset of an open replica, or None if the machine has none."""
    hosted = hosted_by(machine).get(key)
    return None if hosted is None else hosted.log.end_offset
