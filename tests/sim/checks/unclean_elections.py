"""The unclean elections, and the losses that each of them allows.

The cause of such an election states where the new leader's log ends, and the largest end that a
replica has reported (KIP-966, part 2). The check compares this with the logs at the moment of the
commit, before the new leader knows of its election. A leader that was elected for its log has the
longest log. The check compares only replicas that were unfenced before the partition lost its
leader, and that answer the active controller without delay.

A hint that a broker is dead never makes such an election earlier. The election waits until the
sessions of all killed brokers that may have all committed records would have ended
(`quorum/controller/state/hints.py`).

An acknowledged record may only be lost to a later election whose leader did not have it. Either the
record is at or behind the end that the cause states, or the new leader's log had diverged before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from quorate.broker.replication.partitions.hosted_partition import Key
from quorate.quorum.log.batches.batch import batches
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import TOPIC_RESOURCE, MetadataImage
from quorate.quorum.metadata.records import (
    NO_LEADER,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from tests.sim.checks.watermarks import hosted_by
from tests.sim.world.cluster import Machine, SimCluster
from tests.sim.world.sessions import FRESH_MS, Sessions, session_left_ms

CAUSES = (Cause.UNCLEAN_ELECTION, Cause.LAST_KNOWN_LEADER)
LINKED_S = 0.5
"""After this time, a new active controller has links to all brokers that it can reach."""
CLOCKS_DIFFER_S = 0.1
"""The clock of a controller runs up to 2 % fast, and a session lasts 2 s."""
READ_BYTES = 1 << 20
End = tuple[int, int]
"""The last leader epoch of a log, and its end offset."""


class HasTime(Protocol):
    """An election of the quorum."""

    @property
    def at_s(self) -> float:
        """The virtual time at which the node became the leader."""
        ...


@dataclass(frozen=True, slots=True)
class Election:
    """One unclean election. `stated_end` is the end of the new leader's log in the cause, or None.
    `epochs` has the leader epoch of each offset of that log, or is None if the broker does not
    run."""

    leader: int
    leader_epoch: int
    stated_end: int | None
    epochs: Mapping[int, int] | None

    def may_lose(self, offset: int, epoch: int) -> bool:
        """Return True if the election allows the loss of a record that a leader appended in that
        epoch."""
        if epoch >= self.leader_epoch:
            return False
        if self.epochs is None:
            return True
        found = self.epochs.get(offset)
        behind = self.stated_end is None or offset >= self.stated_end
        return found != epoch and (behind or found is not None)


class UncleanElections:
    """All unclean elections that were committed. `checks` counts the comparisons.

    `trusted` returns True if the replica of a machine still has all records that it ever had.
    `leaders` has the elections of the quorum."""

    def __init__(
        self,
        cluster: SimCluster,
        trusted: Callable[[Machine, Key], bool],
        leaders: Sequence[HasTime],
    ) -> None:
        self.checks: Counter[str] = Counter()
        self._cluster = cluster
        self._trusted = trusted
        self._leaders = leaders
        self._elections: dict[Key, list[Election]] = {}
        self._leaderless_s: dict[Key, float] = {}
        """The time at which each partition lost its leader last."""
        self.sessions = Sessions(cluster)
        self._changed_s: dict[int, float] = {}
        """The time at which each broker was registered, fenced or unfenced last."""

    def committed(
        self, records: Iterable[MetadataRecord], before: MetadataImage, image: MetadataImage
    ) -> str:
        """Record the elections among newly committed records. `before` and `image` are the images
        before and after them. Return the fault of an election or of its cause, or ""."""
        problem, now_s = "", self._cluster.loop.time()
        for record in records:
            if isinstance(record, RegisterBrokerRecord | BrokerRegistrationChangeRecord):
                self._changed_s[record.broker_id] = now_s
            if not isinstance(record, PartitionChangeRecord):
                continue
            key = (record.topic_id, record.partition_id)
            if record.leader == NO_LEADER:
                self._leaderless_s[key] = now_s
            name, _, ends = record.cause.partition(" ")
            if name in CAUSES and record.leader >= 0:
                problem = problem or self._note(key, record.leader, ends, image)
                if not problem and (name == Cause.UNCLEAN_ELECTION or allows(before, key)):
                    problem = self._is_longest(key, record.leader, image)
                if not problem and name == Cause.UNCLEAN_ELECTION:
                    problem = self._is_early(key, record.leader, before)
        return problem

    def _note(self, key: Key, leader: int, ends: str, image: MetadataImage) -> str:
        partition = image.partition(*key)
        if partition is None:
            return ""
        machine = self._machine(leader)
        epochs = epochs_of(machine, key)
        old, _, new = ends.partition(" ")
        stated = int(new) if new.isdecimal() else None
        election = Election(leader, partition.leader_epoch, stated, epochs)
        self._elections.setdefault(key, []).append(election)
        end = end_of(machine, key)
        if end is None or not self._trusted(machine, key):
            return ""
        self.checks["unclean elections"] += 1
        if stated is not None and end[1] < stated:
            return f"{key}: {machine.name} leads with a log up to {end}, the cause states {ends}"
        if stated is not None and old.isdecimal() and int(old) < stated:
            return f"{key}: the cause states the ends {ends}"
        return ""

    def _is_longest(self, key: Key, leader: int, image: MetadataImage) -> str:
        """Return the fault if another replica has a longer log, or ""."""
        elected = self._machine(leader)
        partition, end = image.partition(*key), end_of(elected, key)
        if partition is None or end is None or not self._trusted(elected, key):
            return ""
        active = self._cluster.active_controllers()
        since_s = self._leaderless_s.get(key, 0.0)
        if len(active) != 1 or not self._leaders or self._leaders[-1].at_s > since_s - LINKED_S:
            return ""
        for machine in self._cluster.brokers:
            if machine is elected or machine.id not in partition.replicas:
                continue
            broker = image.brokers.get(machine.id)
            asked = broker is not None and broker.active and self._is_well(machine, active[0])
            other = end_of(machine, key) if asked else None
            if other is None or self._changed_s.get(machine.id, since_s) >= since_s:
                continue
            self.checks["logs of replicas that were not elected"] += 1
            if other > end:
                return (
                    f"{key}: {elected.name} was elected uncleanly with a log up to {end}, "
                    f"{machine.name} has one up to {other}"
                )
        return ""

    def _is_early(self, key: Key, leader: int, before: MetadataImage) -> str:
        """Return the fault if the session of a killed broker that may have all committed records
        has not ended, or ""."""
        partition = before.partition(*key)
        if partition is None:
            return ""
        for each in (*partition.isr, *partition.elr, *partition.last_known_elr):
            machine = self._machine(each)
            if each == leader or machine.process is not None or not machine.killed:
                continue
            self.checks["sessions before an unclean election"] += 1
            if (left_s := self.sessions.left_s(each)) > CLOCKS_DIFFER_S:
                return (
                    f"{key}: broker {leader} was elected uncleanly, {left_s:.2f} s before the "
                    f"session of {machine.name} would have ended"
                )
        return ""

    def _machine(self, broker_id: int) -> Machine:
        return next(each for each in self._cluster.brokers if each.id == broker_id)

    def _is_well(self, machine: Machine, active: Machine) -> bool:
        """Return True if the broker answers the active controller without delay."""
        network, process = self._cluster.network, machine.process
        paths = [network.path(machine.name, active.name), network.path(active.name, machine.name)]
        return (
            process is not None
            and not (process.host.paused or machine.stopping or machine.disk_delay_s)
            and machine.disk.slow_calls is None
            and self._cluster.is_registered(machine)
            and session_left_ms(active, machine.id) >= FRESH_MS
            and not any(
                each.blocked or each.unread or each.settings is not each.usual for each in paths
            )
        )

    def may_lose(self, key: Key, offset: int, epoch: int) -> bool:
        """Return True if some election allows the loss of an acknowledged record."""
        return any(each.may_lose(offset, epoch) for each in self._elections.get(key, ()))

    def of(self, key: Key) -> list[Election]:
        """Return the unclean elections of a partition, in their order."""
        return self._elections.get(key, [])


def allows(image: MetadataImage, key: Key) -> bool:
    """Return True if the topic allows unclean elections. Otherwise the last known leader leads as
    soon as it is active, whatever the others have."""
    topic = next((each for each in image.topics.values() if each.id == key[0]), None)
    configs = {} if topic is None else image.config(TOPIC_RESOURCE, topic.name)
    enabled = configs.get("unclean.leader.election.enable") == "true"
    return enabled or configs.get("unclean.recovery.strategy") in ("aggressive", "balanced")


def epochs_of(machine: Machine, key: Key) -> dict[int, int] | None:
    """Return the leader epoch of each offset in the log of an open replica, or None. A disk that
    fails or has lied is not read."""
    hosted = hosted_by(machine).get(key)
    if hosted is None or machine.may_fail or machine.lying or machine.scarred:
        return None
    found: dict[int, int] = {}
    offset, end = hosted.log.start_offset, hosted.log.end_offset
    while offset < end and (data := hosted.log.read(offset, READ_BYTES, end=end)):
        for _, header in batches(data, verify=False):
            found.update(
                dict.fromkeys(range(header.base_offset, header.next_offset), header.leader_epoch)
            )
            offset = header.next_offset
    return found


def end_of(machine: Machine, key: Key) -> End | None:
    """Return the end of the log of an open replica, or None."""
    hosted = hosted_by(machine).get(key)
    return None if hosted is None else (hosted.log.last_epoch, hosted.log.end_offset)
