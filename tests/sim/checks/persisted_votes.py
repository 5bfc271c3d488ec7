"""Checks of the votes on the disks of the controllers, independent of the memory of the nodes.

A replica votes once in an epoch, also across restarts and power losses. A leader of an epoch has
the durable votes of a majority of its voters. The check reads the bytes that a power cut would
leave. A disk that lied, or whose sync failed, proves nothing and is skipped.
"""

from __future__ import annotations

from collections import Counter

from quorate.quorum.ids import METADATA_TOPIC, ZERO_UUID, ReplicaKey
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.quorum_state import COPY_NAME, decode_copy
from tests.sim.world.cluster import Machine, Process, SimCluster


class PersistedVotes:
    """All votes that were ever seen on a disk, by replica and epoch."""

    def __init__(self, cluster: SimCluster) -> None:
        self.checks: Counter[str] = Counter()
        self._cluster = cluster
        self._votes: dict[tuple[ReplicaKey, int], ReplicaKey] = {}
        self._epochs: dict[ReplicaKey, int] = {}
        self._latest: dict[ReplicaKey, int] = {}
        """The latest epoch that was seen on the disk of a replica, with or without a vote."""
        self._doubted: dict[ReplicaKey, None] = {}

    def look(self, machine: Machine) -> str:
        """Return the fault of the election on the disk of a machine, or ""."""
        found = durable_election(machine)
        if is_doubtful(machine):
            self._doubted[machine.key] = None
        if found is not None:
            self._latest[machine.key] = max(found.epoch, self._latest.get(machine.key, 0))
        if found is None or found.voted is None:
            return ""
        self.checks["persisted vote"] += 1
        known = self._votes.setdefault((machine.key, found.epoch), found.voted)
        if machine.lost_metadata and _is_same(found.voted, machine.key):
            return ""  # with a vote for itself it can vote for no other replica
        if not _is_same(known, found.voted):
            return f"{machine.name} voted in epoch {found.epoch} for {known} and {found.voted}"
        latest = self._epochs.get(machine.key, 0)
        if found.epoch < latest:
            return f"{machine.name}: its saved election goes back from epoch {latest} to {found}"
        self._epochs[machine.key] = found.epoch
        return ""

    def elected(self, machine: Machine, process: Process, epoch: int) -> str:
        """Return the fault of an election that this process has won, or ""."""
        voters = process.core.replica.raft._core.voters
        machines = {each.id: each for each in self._cluster.controllers}
        voted = [
            voter_id
            for voter_id in voters.ids
            if (
                self._may_have_voted(machines[voter_id], machine.key, epoch)
                if machines[voter_id].key in voters
                else self._had_voted(voters.key(voter_id), machine.key, epoch)
            )
        ]
        self.checks["votes of a leader"] += 1
        if len(voted) >= voters.majority:
            return ""
        return f"{machine.name} leads epoch {epoch} with the saved votes of {voted} of {voters.ids}"

    def _had_voted(self, voter: ReplicaKey, leader: ReplicaKey, epoch: int) -> bool:
        """Return True if a replica whose directory is lost may have voted for the leader before. A
        replica with its id and another directory is no voter (KAFKA-12181)."""
        voted = self._votes.get((voter, epoch))
        return (
            voter in self._doubted
            or voter.directory_id == ZERO_UUID
            or self._latest.get(voter, 0) > epoch
            or (voted is not None and voted.id == leader.id)
        )

    def _may_have_voted(self, voter: Machine, leader: ReplicaKey, epoch: int) -> bool:
        """Return True if the voter may have voted for the leader. A disk that proves nothing counts
        as a vote."""
        if is_doubtful(voter):
            return True
        if voter.lost_metadata and self._had_voted(voter.key, leader, epoch):
            return True
        found = durable_election(voter)
        if found is None:
            return False
        return found.epoch > epoch or (
            found.epoch == epoch and found.voted is not None and found.voted.id == leader.id
        )


def _is_same(one: ReplicaKey, other: ReplicaKey) -> bool:
    """Return True if both keys may name the same replica. Kafka's file of kraft.version 0 has no
    directory id, and a node reads it if the copy with the id is lost."""
    unknown = ZERO_UUID in (one.directory_id, other.directory_id)
    return one == other or (unknown and one.id == other.id)


def durable_election(machine: Machine) -> Election | None:
    """Return the election that a power cut would leave. Return None if there is none, or if the
    disk proves nothing."""
    path = f"{machine.config.metadata_log_dir}/{METADATA_TOPIC}-0/{COPY_NAME}"
    inode = machine.disk.durable_inode(path)
    if inode is None or inode.true is not None:
        return None
    found = decode_copy(bytes(inode.durable))
    return found if isinstance(found, Election) else None


def is_doubtful(machine: Machine) -> bool:
    path = f"{machine.config.metadata_log_dir}/{METADATA_TOPIC}-0/{COPY_NAME}"
    inode = machine.disk.durable_inode(path)
    return machine.may_fail or machine.lying or (inode is not None and inode.true is not None)
