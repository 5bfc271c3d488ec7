"""The invariants that hold at every moment, whatever fails.

They are checked when an event may break them, or in a sweep every few virtual ms.

| invariant | checked when |
|---|---|
| one leader per Raft epoch | a node becomes leader |
| a committed metadata batch is always the same on every node (log matching) | it is committed |
| ... and is on the disks of a majority of the voters if its leader committed it | it is committed |
| a leader commits it first, through a record of its own epoch (`commits.py`) | it is committed |
| records that a controller counts as durable are on its disk (`commits.py`) | sweep |
| a controller that is cut off keeps its epoch, and resigns (`cut_off.py`) | sweep |
| snapshots are the same on every node, and equal the replayed image (`snapshots.py`) | sweep |
| Raft epoch and high watermark never fall while a process lives | it is committed; sweep |
| a saved vote never changes (`persisted_votes.py`) | a node dies or starts; sweep |
| a leader has the saved votes of a majority | a node becomes leader |
| a node without its metadata does not vote before it has caught up (`silence.py`) | sweep |
| two logs with the same batch are the same before it (`log_matching.py`) | a node dies; sweep |
| a new leader was in the ISR; epochs of brokers only grow (`rulings.py`) | it is committed |
| an unclean election chooses the longest log; its cause is true (`unclean_elections.py`) | same |
| a partition's epochs only grow; its leader is in its ISR (`claims.py`) | a delta is replayed |
| one leader per (partition, leader epoch), the one that the metadata log names | touched, delta |
| a leader's ISR is in the metadata log, so it changes only through this log | touched, delta |
| a replica's high watermark never falls while its process lives | touched |
| ... is in the log of every ISR member, and no restart raises it (`watermarks.py`) | touched |
| each electable replica has all records below the highest one | touched; it is committed |
| a leader counts only records that its followers have (`follower_progress.py`) | sweep |
| records below a high watermark, and those that consumers read, never change | touched, fetch |

A replica is touched when its high watermark, role, epoch or ISR changes. A sweep finds new
replicas. All checks are incremental: their cost grows with the number of changes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from quorate.broker.partition.isr_states import Committed
from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.quorum.ids import Uuid, uuid_to_text
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.metadata.batches import MetadataBatch, metadata_batches
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.difference import difference
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.loader import Loader
from quorate.quorum.metadata.records import PartitionChangeRecord
from quorate.quorum.raft.effects import Role, RoleChanged
from tests.sim.checks.claims import PartitionClaims, claim
from tests.sim.checks.commits import Commits
from tests.sim.checks.committed_log import CommittedLog, Violation
from tests.sim.checks.compacted_log import CompactedLog
from tests.sim.checks.durable import not_durable
from tests.sim.checks.follower_progress import FollowerProgress
from tests.sim.checks.log_matching import LogMatching
from tests.sim.checks.persisted_votes import PersistedVotes
from tests.sim.checks.proposals import Proposals
from tests.sim.checks.rulings import Rulings
from tests.sim.checks.snapshots import Snapshots
from tests.sim.checks.unclean_elections import UncleanElections
from tests.sim.checks.watermarks import Watermarks
from tests.sim.faults.cut_off import CutOff
from tests.sim.faults.silence import Silence
from tests.sim.world.cluster import Machine, Process, SimCluster
from tests.sim.world.disk import PowerCut
from tests.sim.world.seen import Seen, looks_of
from tests.sim.world.shape import FAST
from tests.sim.world.touched import Touched

__all__ = ["Election", "Invariants", "Violation"]

READ_BYTES = 1 << 20
FAST_MIN_ISR = FAST["min.insync.replicas"]
UNCONFIGURED = ("data", "loose")
"""The topics whose min.insync.replicas never changes."""
SNAPSHOT_SWEEPS = 10
"""The number of sweeps between two checks of the snapshots. A node keeps a snapshot for longer."""
LOG_SWEEPS = 50
"""The number of sweeps between two comparisons of all logs."""


@dataclass(frozen=True, slots=True)
class Election:
    at_s: float
    epoch: int
    leader_id: int


class Invariants:
    def __init__(self, cluster: SimCluster, coverage: Counter[str] | None = None) -> None:
        self.coverage: Counter[str] = Counter() if coverage is None else coverage
        """The number of times that each transition, record and cause was seen."""
        self.metadata = CommittedLog("__cluster_metadata")
        self.partitions: dict[Key, CommittedLog] = {}
        self.elections: list[Election] = []
        self.snapshots = Snapshots()
        self.claims = PartitionClaims(cluster.note)
        self.generation = 0
        """The generation of the quorum. A node of an older one no longer belongs to this cluster,
        and is not checked."""
        self.doubts_expected = False
        """True if a node of this cluster lies, so that others may refuse its claims."""
        self._oracle = Loader(MetadataImage())
        """Gets every batch once, when it is first seen committed."""
        self.proposals = Proposals()
        self.unclean_topics: dict[str, None] = {}
        """The topics that allow unclean elections, by name. Their records may be lost."""
        self.compacted_topics: dict[str, None] = {}
        """The topics whose cleaners run, by name."""
        least = int(cluster.shape.overrides.get("min.insync.replicas", FAST_MIN_ISR))
        self._min_isr = dict.fromkeys(UNCONFIGURED, least)
        self._cluster = cluster
        self._rulings = self._rulings_from(self._oracle.image)
        self.votes = PersistedVotes(cluster)
        self.logs = LogMatching(cluster, self.compacted_topics)
        self.commits = Commits()
        self.silence = Silence(lambda: self.metadata.end.offset)
        cluster.losing.append(self.silence.losing)
        self.cut_off = CutOff(cluster)
        self.watermarks = Watermarks(cluster, self._is_trusted, self._min_isr, self.is_unclean)
        self.progress = FollowerProgress(cluster, self._is_trusted)
        self.unclean = UncleanElections(cluster, self._is_trusted, self.elections)
        self._sweeps = 0
        self._raft_leaders: dict[int, str] = {}
        self._seen: dict[str, Seen] = {}
        self._rejoined: dict[tuple[str, int, Key], None] = {}
        cluster.started += [self._watch, self.proposals.watch, self._look_at_disk]
        cluster.dying += [self._sweep_readable, self._look_at_disk]

    @property
    def raft_epochs(self) -> int:
        """Return the number of epochs that had a leader."""
        return len(self._raft_leaders)

    @property
    def image(self) -> MetadataImage:
        """Return the image of all records that were seen committed."""
        return self._oracle.image

    def committed(self, key: Key) -> CommittedLog:
        log = self.partitions.get(key)
        if log is None:
            topic = self._oracle.image.topics.get(key[0])
            compacted = topic is not None and topic.name in self.compacted_topics
            kind = CompactedLog if compacted else CommittedLog
            log = self.partitions[key] = kind(f"{uuid_to_text(key[0])}-{key[1]}")
        return log

    def rebuilt(self, generation: int, lost_from: int | None) -> MetadataImage:
        """Forget the committed records that a rebuilt quorum lacks: those from `lost_from` on, or
        none if it is None. Return the image that included them."""
        self.generation = generation
        self.logs.rebuilt()
        known = self._oracle.image
        if lost_from is None:
            return known
        self.metadata.forget_from(lost_from)
        kept = self.snapshots.forget_from(lost_from)
        self._oracle, self._rulings = Loader(kept), self._rulings_from(kept)
        for topic, partition_id, change in difference(kept, known).partitions():
            self.claims.forget_after((topic.id, partition_id), change.old)
        for seen in self._seen.values():
            seen.looks.clear()
        return known

    def _is_past(self, process: Process) -> bool:
        return len(process.core.generations.rebuilds) < self.generation

    def sweep(self) -> None:
        self._sweeps += 1
        if self.unclean_topics:
            self.unclean.sessions.look()
        for machine in self._cluster.machines.values():
            if machine.process is not None:
                self._sweep_readable(machine, machine.process)

    # -- the metadata log ------------------------------------------------------------------------

    def _watch(self, machine: Machine, process: Process) -> None:
        def look(hosted: HostedPartition) -> None:
            if machine.process is process and not hosted.gone and not self._is_past(process):
                self._look_at(machine, seen, hosted)

        seen = self._seen[machine.name] = Seen(Touched(self._cluster.loop, look))
        roles = ["start"]

        def role(effect: RoleChanged) -> None:
            self.coverage[f"raft {roles[-1]} > {effect.role.value}"] += 1
            roles.append(effect.role.value)
            if effect.role is Role.LEADER:
                self._cluster.note(f"{machine.name} leads raft epoch {effect.epoch}")
                now_s = self._cluster.loop.time()
                self.elections.append(Election(now_s, effect.epoch, machine.id))
                claim(self._raft_leaders, effect.epoch, machine.name, "raft leader of epoch")
                require(self.votes.elected(machine, process, effect.epoch))

        def image(image: MetadataImage, delta: ImageDelta) -> None:
            if self._is_past(process):
                return
            for topic, partition_id, change in delta.partitions():
                name = f"{topic.name}-{partition_id}"
                self.claims.changed((topic.id, partition_id), name, change)

        def committed(high_watermark: int) -> None:
            self._committed(machine, process, seen, high_watermark)

        process.core.listeners.role.insert(0, role)
        process.core.listeners.committed.insert(0, committed)
        process.core.listeners.image.insert(0, image)

    def _committed(
        self, machine: Machine, process: Process, seen: Seen, high_watermark: int
    ) -> None:
        if high_watermark < seen.raft_high_watermark:
            raise Violation(
                f"{machine.name}: raft high watermark {high_watermark} after "
                f"{seen.raft_high_watermark}"
            )
        seen.raft_high_watermark = high_watermark
        if self._is_past(process):
            return
        log = process.core.log
        seen.metadata_offset = max(seen.metadata_offset, log.start_offset)
        while seen.metadata_offset < high_watermark:
            data = log.read(seen.metadata_offset, READ_BYTES, end=high_watermark)
            if problem := not_durable(self._cluster, process, data, self.metadata.batches):
                raise Violation(f"{machine.name}: {problem}")
            known = self.metadata.batches
            leader = self._raft_leaders.get(process.core.replica.raft.epoch)
            if problem := self.commits.committed(
                machine, process, data, known, high_watermark, leader
            ):
                raise Violation(f"{machine.name}: {problem}")
            seen.metadata_offset = self.metadata.holds(machine.name, data, high_watermark)
            if seen.metadata_offset <= self._oracle.position:
                continue
            for batch in metadata_batches(data):
                if batch.base_offset == self._oracle.position:
                    if problem := self._rulings.take(batch.records):
                        raise Violation(f"{machine.name} at {batch.base_offset}: {problem}")
                    before = self._oracle.image
                    self._oracle.feed([batch])
                    require(self.unclean.committed(batch.records, before, self._oracle.image))
                    for each in batch.records:
                        if isinstance(each, PartitionChangeRecord):
                            self._may_be_elected((each.topic_id, each.partition_id))
                    self._cover(batch)
                    self.snapshots.replayed[self._oracle.position] = self._oracle.image

    def _cover(self, batch: MetadataBatch) -> None:
        for record in batch.records:
            self.coverage[f"record {type(record).__name__}"] += 1
            if cause := getattr(record, "cause", ""):
                self.coverage[f"cause {cause}"] += 1

    def _may_be_elected(self, key: Key) -> None:
        require(self.watermarks.electable(key, self._oracle.image.partition(*key)))

    # -- partitions ------------------------------------------------------------------------------

    def _sweep_process(self, machine: Machine, process: Process) -> None:
        seen = self._seen[machine.name]
        raft = process.core.replica.raft
        if raft.refused_claims and not self.doubts_expected:
            raise Violation(f"{machine.name} refuses a claim: {raft.last_refused_claim}")
        epoch = raft.epoch
        if epoch < seen.raft_epoch:
            raise Violation(f"{machine.name}: raft epoch {epoch} after {seen.raft_epoch}")
        seen.raft_epoch = epoch
        if self._is_past(process):
            return
        if machine.is_controller:
            require(self.silence.look(machine))
            if not self.doubts_expected:
                require(self.cut_off.look(machine, process))
        if self._sweeps % SNAPSHOT_SWEEPS == 0:
            self.snapshots.look(machine, process, seen)
            require(self.votes.look(machine))
            if problem := self.commits.look(machine):
                raise Violation(f"{machine.name}: {problem}")
        if self._sweeps % LOG_SWEEPS == 0:
            require(self.logs.look(machine))
        if process.broker is not None:
            for hosted in process.broker.replicas.registry:
                require(self.progress.look(hosted))
                if looks_of(hosted.partition) != seen.looks.get(hosted):
                    self._sweep_partition(machine, seen, hosted)

    def _sweep_readable(self, machine: Machine, process: Process) -> None:
        """Sweep a process as far as its disk can be read. A disk that fails may raise OSError, and
        that of a process that ends in the middle of a call raises PowerCut. The sweep of the other
        processes must not depend on it."""
        try:
            self._sweep_process(machine, process)
        except (OSError, PowerCut):
            if not is_unreadable(machine):
                raise

    def _look_at(self, machine: Machine, seen: Seen, hosted: HostedPartition) -> None:
        try:
            self._sweep_partition(machine, seen, hosted)
        except Violation as violation:
            self._cluster.fail(violation)
        except (OSError, PowerCut):
            if not is_unreadable(machine):
                raise

    def _sweep_partition(self, machine: Machine, seen: Seen, hosted: HostedPartition) -> None:
        partition, key = hosted.partition, hosted.key
        self.watermarks.note(hosted)
        if machine.power_losses and not self._has_rejoined(machine, key):
            return
        seen.looks[hosted] = looks_of(partition)
        # the replica was moved away and back, and begins anew
        if seen.hosted.get(key) is not hosted:
            seen.hosted[key] = hosted
            seen.high_watermarks[key] = seen.checked[key] = 0
            seen.touched.watch(hosted)
        high_watermark = partition.high_watermark
        before = seen.high_watermarks[key]
        # the replica was truncated to the new leader's log
        if high_watermark < before and self.is_unclean(key):
            seen.high_watermarks[key] = high_watermark
        elif high_watermark < before:
            raise Violation(f"{machine.name} {hosted}: high watermark {high_watermark} < {before}")
        leadership = partition.leadership
        if leadership is not None:
            self.claims.leads(key, leadership.epoch, machine.id, str(hosted))
            if isinstance(leadership.isr, Committed):
                self.claims.has_isr(key, leadership.partition_epoch, leadership.isr.committed)
        if high_watermark > before:
            seen.high_watermarks[key] = high_watermark
            if self.is_unclean(key):
                return
            require(self.watermarks.moved(machine, hosted))
            self._may_be_elected(key)
            try:
                self._read_on(machine, seen, hosted, high_watermark)
            except CorruptLog as damage:
                if not machine.scarred:
                    raise Violation(f"{machine.name}: {damage}") from damage

    def _read_on(self, machine: Machine, seen: Seen, hosted: HostedPartition, end: int) -> None:
        """Check the log of a replica, from the end of the last check."""
        key, log = hosted.key, hosted.log
        committed = self.committed(key)
        offset = max(seen.checked[key], log.start_offset)
        while offset < end and (data := log.read(offset, READ_BYTES, end=end)):
            offset = seen.checked[key] = committed.holds(machine.name, data, end)

    def _has_rejoined(self, machine: Machine, key: Key) -> bool:
        """Return True if the replica was in the ISR after the last power loss of its machine.
        Before that, the records below its checkpointed high watermark prove nothing, because a
        truncation may be undone."""
        rejoined = (machine.name, machine.power_losses, key)
        if rejoined not in self._rejoined and self._cluster.is_registered(machine):
            value = self._cluster.newest_image().partition(*key)
            if value is not None and machine.id in value.isr:
                self._rejoined[rejoined] = None
        return rejoined in self._rejoined

    def _look_at_disk(self, machine: Machine, process: Process) -> None:
        """Check the disk of a machine when a process starts or ends."""
        try:
            self._look_at_readable(machine, process)
        except (OSError, PowerCut):
            if not is_unreadable(machine):
                raise

    def _look_at_readable(self, machine: Machine, process: Process) -> None:
        if self._is_past(process):
            return
        if machine.is_broker:
            self.watermarks.dying(machine)
            if machine.process is process and self._is_trusted(machine):
                require(self.watermarks.restarted(machine))
        if machine.is_controller:
            require(self.votes.look(machine))
        require(self.logs.look(machine))

    def _is_trusted(self, machine: Machine, key: Key | None = None) -> bool:
        """Return True if nothing took records from the replica of that machine since it joined the
        ISR."""
        if machine.scarred or machine.lying or machine.may_fail:
            return False
        return key is None or not machine.power_losses or self._has_rejoined(machine, key)

    def is_unclean(self, key: Key) -> bool:
        """Return True if the topic of the partition allows unclean elections."""
        topic = self._oracle.image.topics.get(key[0])
        return topic is not None and topic.name in self.unclean_topics

    def _rulings_from(self, image: MetadataImage) -> Rulings:
        def unclean(topic_id: Uuid) -> bool:
            return self.is_unclean((topic_id, 0))

        return Rulings(
            image,
            self.proposals.asked,
            unclean,
            self.coverage,
            lambda incarnation_id: incarnation_id in self._cluster.after_kills,
            self._min_isr,
        )

    def checks(self) -> Counter[str]:
        """Return the number of checks of each kind that compared something."""
        found = self.votes.checks + self.logs.checks + self.watermarks.checks
        found += self.commits.checks + self.cut_off.checks + self.silence.checks
        return found + self.unclean.checks + self.progress.checks


def is_unreadable(machine: Machine) -> bool:
    """Return True if a part of the machine's disk fails, or its process is ending in the middle of
    a call."""
    return machine.may_fail or machine.disk.dead or bool(machine.disk.failed)


def require(problem: str) -> None:
    """Raise Violation if there is a problem."""
    if problem:
        raise Violation(problem)
