"""The progress of followers as their leaders count it, compared with the followers' logs.

A Fetch at an offset acknowledges everything below it, and the leader commits by that (KIP-101). A
Fetch that outlives a truncation, or the process that sent it, acknowledges records that the
follower no longer has (KIP-320, KIP-903).

Invariant: a member of a leader's maximal ISR has every record that the leader counts for it. This
does not hold for a member that knows a later leader epoch, or whose restart the leader does not
know yet.
"""

from __future__ import annotations

from collections import Counter

from quorate.broker.replication.partitions.hosted_partition import HostedPartition
from tests.sim.checks.watermarks import Trusted, knows_process
from tests.sim.world.cluster import SimCluster


class FollowerProgress:
    """Compares the followers for which `trusted` returns True. Power losses and bad disks take
    records from the others."""

    def __init__(self, cluster: SimCluster, trusted: Trusted) -> None:
        self.checks: Counter[str] = Counter()
        self._trusted = trusted
        self._brokers = {each.id: each for each in cluster.brokers}

    def look(self, hosted: HostedPartition) -> str:
        """Return the fault of the progress that a leader counts for its followers, or ""."""
        leadership = hosted.partition.leadership
        if leadership is None:
            return ""
        maximal = leadership.isr.maximal
        for follower_id, progress in leadership.replicas.items():
            process = self._brokers[follower_id].process
            if progress.end_offset < 0 or process is None or follower_id not in maximal:
                continue
            if not knows_process(leadership, self._brokers[follower_id]):
                continue
            assert process.broker is not None
            follower = process.broker.replicas.registry.get(hosted.key)
            if follower is None or follower.partition.leader_epoch > leadership.epoch:
                continue
            self.checks["progress of a follower"] += 1
            end, machine = follower.log.end_offset, self._brokers[follower_id]
            if end < progress.end_offset and self._trusted(machine, hosted.key):
                return (
                    f"{hosted}: the leader counts {machine.name} up to {progress.end_offset}, and "
                    f"its log ends at {end}"
                )
        return ""
