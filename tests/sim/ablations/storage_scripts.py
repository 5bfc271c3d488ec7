"""Power cuts on simulated disks, at every call of a script. The directory that is opened again must
hold everything that was flushed, and nothing that was never written."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.sim.world.disk import SimDisk
from tests.unit.log import test_recovery as recovery
from tests.unit.log import test_segment_keys as segment_keys
from tests.unit.node import test_metadata_storage as storage
from tests.unit.raft import test_election_file as elections
from tests.unit.replication import test_damage as damage
from tests.unit.replication import test_damaged_reads as damaged_reads
from tests.unit.replication import test_flush_keys as flush_keys
from tests.unit.replication.cluster import ReplicaCluster


def election_after_a_power_cut() -> None:
    old, new = elections.election(4, 2), elections.election(5, 1, 1)
    for seed in range(40):
        disk = SimDisk(random.Random(seed))
        disk.make_dirs(elections.DIRECTORY)
        elections.election_file(disk).save(old)
        elections.election_file(disk).save(new)
        found = elections.election_file(disk.crash()).load()
        assert found == new, f"after a power cut the vote of {new} is {found}"


def power_cuts_while_a_log_is_written() -> None:
    recovery.test_a_crash_at_every_disk_call_loses_nothing_flushed(recovery.METADATA, SimDisk.crash)


def power_cuts_while_snapshots_are_taken() -> None:
    storage.test_a_power_cut_at_any_disk_call(storage.history)


def on_brokers(script: Callable[[Callable[..., ReplicaCluster]], Any]) -> None:
    made: list[ReplicaCluster] = []

    def make(**settings: Any) -> ReplicaCluster:
        made.append(ReplicaCluster(**settings))
        return made[-1]

    try:
        script(make)
    finally:
        for cluster in made:
            cluster.close()


def crashes_while_a_partition_is_cut() -> None:
    on_brokers(damage.test_the_recovery_point_is_lowered_before_a_truncation)


def damage_below_the_recovery_point_is_read() -> None:
    on_brokers(
        partial(
            damaged_reads.test_a_leader_that_reads_damage_stops_and_is_repaired, reader="consumer"
        )
    )


def power_cuts_after_acknowledged_flushes() -> None:
    """Cut the power of every replica after records were acknowledged under flush.messages=1."""
    for seed in range(6):
        on_brokers(
            partial(
                flush_keys.test_what_is_acknowledged_after_a_flush_survives_power_cuts_everywhere,
                seed=seed,
            )
        )


def power_cuts_after_preallocated_segments_rolled() -> None:
    """Flush segments while they have their preallocated size. They are trimmed later."""
    for seed in range(8):
        segment_keys.test_the_trimmed_size_of_a_flushed_segment_survives_a_power_cut(seed)
