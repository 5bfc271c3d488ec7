"""Runs `quorate metadata-quorum force-voters` on the disks of simulated machines.

The simulation knows the committed records, which the tool cannot know. It checks the tool's output
and result against them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import batches
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.log.files.names import LOG_SUFFIX
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.node.opening.data_directory import METADATA_DIRECTORY
from quorate.quorum.node.opening.meta_properties import read_meta
from quorate.quorum.offline.force_voters import (
    LogComparison,
    Plan,
    carry_out,
    complete_interrupted,
    locked,
    plan,
)
from quorate.quorum.raft.voter_history import key_of
from quorate.quorum.seams import Disk
from tests.sim.checks.committed_log import Print, Violation
from tests.sim.checks.quorum_history import Voting
from tests.sim.run import Simulation
from tests.sim.world.clock import WALL_EPOCH_MS
from tests.sim.world.cluster import Machine, SimCluster
from tests.sim.world.disk import PowerCut
from tests.sim.world.mounts import Mounts
from tests.sim.world.shape import Quorum, node_config

Stored = dict[int, Print]
"""The batches of a metadata log, by their first offsets."""


class Operator:
    """The administrator: runs the tool with the directories of stopped machines, and follows its
    instructions."""

    def __init__(self, stage: Simulation) -> None:
        self._stage = stage
        self._random = stage.cluster.random("operator")

    def rebuild(
        self, given: Sequence[Machine], controllers: Sequence[Machine], *, cut_at: int = 0
    ) -> Plan:
        """Rebuild the quorum from the directories of `given`, with `controllers` as the voters.
        With `cut_at`, the first new controller loses power at that call to its disk, and the tool
        runs again."""
        stage, cluster = self._stage, self._stage.cluster
        machines = {each.name: each for each in (*given, *controllers)}
        for machine in machines.values():
            assert machine.process is None, f"{machine.name} runs"
            machine.disk = machine.disk.restart()
        victim = controllers[0]
        if cut_at:
            victim.disk.die_at = victim.disk.calls + cut_at
        try:
            planned, stored = self._run(given, controllers)
        except PowerCut:
            cluster.note(f"power loss {victim.name}, while the tool runs")
            victim.disk = victim.disk.crash()
            return self.rebuild(list(machines.values()), controllers)
        victim.disk.die_at = None
        # If the chosen log was rebuilt by an interrupted run, that rebuild is the first of the two.
        # A rebuilt log that was not chosen has no rebuild in this list.
        *_, rebuild = planned.quorum.rebuilds[: stage.invariants.generation + 1]
        lost_from = given_up_from(stage, rebuild.end, stored)
        cluster.note(
            f"generation {planned.generation}, {[each.name for each in controllers]}, goes on from "
            f"{rebuild.end}; committed and lost: from {lost_from}"
        )
        known = stage.invariants.rebuilt(planned.generation, lost_from)
        voters = frozenset(key_of(each.voter) for each in planned.controllers)
        stage.voting.begin_anew(Voting(1, voters))
        if lost_from is not None:
            stage.history.admin.given_up(known, planned.chosen.image, stage.loop.time())
        self._configure(planned)
        return planned

    def _run(self, given: Sequence[Machine], controllers: Sequence[Machine]) -> tuple[Plan, Stored]:
        disk = Mounts({each.name: each.disk for each in (*given, *controllers)})
        directories = [each.config.log_dir for each in given]
        configs = [each.config for each in controllers]
        with locked(disk, directories, configs):
            complete_interrupted(disk, directories, configs)
            formatted = [each for each in directories if read_meta(disk, each) is not None]
            planned = plan(disk, formatted, configs, self._random)
            stored = {each: batches_of(disk, each) for each in formatted}
            check(self._stage, planned, stored)
            backup = f"{METADATA_DIRECTORY}.before-{self._random.getrandbits(32):08x}"
            now_ms = WALL_EPOCH_MS + int(1000 * self._stage.loop.time())
            carry_out(disk, planned, wall_ms=now_ms, backup=backup)
        return planned, stored[planned.chosen.directory]

    def _configure(self, planned: Plan) -> None:
        """Follow the instructions of the tool: the files of the new controllers and of every broker
        name these controllers as bootstrap servers. Running nodes continue with the files that they
        have read."""
        cluster = self._stage.cluster
        endpoints = [each.voter.endpoints[0] for each in planned.controllers]
        servers = ",".join(f"{each.host}:{each.port}" for each in endpoints)
        overrides = {**cluster.shape.overrides, "controller.quorum.bootstrap.servers": servers}
        cluster.shape = replace(cluster.shape, quorum=Quorum.DYNAMIC, overrides=overrides)
        keys = {each.voter.voter_id: key_of(each.voter) for each in planned.controllers}
        for machine in cluster.machines.values():
            machine.key = keys.get(machine.id, machine.key)
            if machine.is_broker or machine.id in keys:
                reconfigure(cluster, machine)


def reconfigure(cluster: SimCluster, machine: Machine) -> None:
    """Give the machine the configuration of the cluster's present shape."""
    role = "broker" if machine.is_broker else "controller"
    machine.config = node_config(machine.id, role, cluster.shape)


def given_up_from(stage: Simulation, end: EpochOffset, chosen: Stored) -> int | None:
    """Return the first offset of the committed records that are not in the rebuilt log, or None if
    it has all of them."""
    committed = stage.invariants.metadata.batches
    lost = (
        offset
        for offset, batch in committed.items()
        if offset >= end.offset or chosen.get(offset, batch) != batch
    )
    return min(lost, default=None)


def batches_of(disk: Disk, directory: str) -> Stored:
    """Read the batches of a log in the simplest way: without snapshot, marker or index."""
    found: Stored = {}
    path = f"{directory}/{METADATA_DIRECTORY}"
    names = disk.list(path) if disk.is_dir(path) else []
    for name in sorted(each for each in names if each.endswith(LOG_SUFFIX)):
        file = disk.open(f"{path}/{name}", writable=False)
        try:
            for _, header in batches(file.pread(file.size(), 0)):
                at = header.base_offset
                found[at] = Print(header.next_offset, header.leader_epoch, header.crc)
        except CorruptBatch:
            break  # a torn tail
        finally:
            file.close()
    return found


# -- the output of the tool ----------------------------------------------------------------------


def check(stage: Simulation, planned: Plan, stored: dict[str, Stored]) -> None:
    """Check that the chosen log has every committed record that some given log has. Check also
    which records each other log lacks or has alone, as the tool states it."""
    chosen, end = stored[planned.chosen.directory], planned.chosen.end
    committed = stage.invariants.metadata.batches
    for directory, log in stored.items():
        for offset, batch in log.items():
            has = batch.next_offset <= end.offset and chosen.get(offset, batch) == batch
            if committed.get(offset) == batch and not has:
                raise Violation(
                    f"{planned.chosen.directory} was chosen and lacks what is committed at {offset}"
                    f", {directory} has it"
                )
    for comparison in planned.others:
        _check_comparison(stage, planned, comparison, stored[comparison.source.directory], chosen)


def _check_comparison(
    stage: Simulation, planned: Plan, comparison: LogComparison, other: Stored, chosen: Stored
) -> None:
    end = max((found.next_offset for found in chosen.values()), default=0)
    same = [each.next_offset for at, each in other.items() if chosen.get(at) == each]
    if other and chosen and (same or min(other) == min(chosen)):
        agreed = max(same, default=min(other))
        own_end = max(each.next_offset for each in other.values())
        told = (comparison.missing, comparison.surplus)
        if told != (range(agreed, end), range(agreed, own_end)):
            raise Violation(f"{comparison.source.directory}: told {told}; agrees up to {agreed}")
    committed = stage.invariants.metadata.batches
    ours = [at for at in comparison.surplus if at in other and committed.get(at) == other[at]]
    if ours and comparison.never_committed:
        raise Violation(
            f"{comparison.source.directory}: {ours} were committed, it is told otherwise"
        )
    created = topics_of(planned.chosen.image) - topics_of(comparison.source.image)
    deleted = topics_of(comparison.source.image) - topics_of(planned.chosen.image)
    for kind, names in (("topics created", created), ("topics deleted", deleted)):
        if sorted(comparison.changes.get(kind, ())) != sorted(name for _, name in names):
            raise Violation(
                f"{comparison.source.directory}: {kind}: {comparison.changes}, it is {names}"
            )


def topics_of(image: MetadataImage) -> set[tuple[object, str]]:
    return {(each.id, each.name) for each in image.topics.values()}
