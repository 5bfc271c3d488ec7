"""Checks that committed records are on the disks of a majority of the voters.

The check reads the bytes that a power cut would leave, and ignores the beliefs of the nodes. For a
disk that lies, or whose sync failed, it reads the bytes that the disk should hold. A voter that has
got another disk since counts as one that had the records. So does a voter that had flushed them and
lost its metadata directory since: it does not vote before it has them again (`silence.py`).
"""

from __future__ import annotations

from collections.abc import Container

from quorate.quorum.ids import METADATA_TOPIC
from quorate.quorum.log.batches.batch import batches
from quorate.quorum.log.files.names import LOG_SUFFIX, offset_of
from quorate.quorum.raft.effects import Role
from tests.sim.world.cluster import Machine, Process, SimCluster


def not_durable(cluster: SimCluster, process: Process, data: bytes, known: Container[int]) -> str:
    """Return the fault of the batches of `data`, which the process considers committed, or "".

    Batches at `known` offsets are skipped. The result is "" if the process does not lead, because
    the leader is the first to declare a record committed."""
    raft = process.core.replica.raft
    if raft.role is not Role.LEADER:
        return ""
    voters = raft._core.voters
    machines = {each.id: each for each in cluster.controllers}
    for position, header in batches(data, verify=False):
        offset = header.base_offset
        if offset in known:
            continue
        batch = data[position : position + header.size_bytes]
        holders = [
            voter_id
            for voter_id in voters.ids
            if machines[voter_id].key not in voters
            or offset < machines[voter_id].lost_below
            or _holds(machines[voter_id], offset, batch)
        ]
        if len(holders) < voters.majority:
            return (
                f"offset {offset} is called committed but durable only on {holders} of {voters.ids}"
            )
    return ""


def _holds(machine: Machine, offset: int, batch: bytes) -> bool:
    disk = machine.disk
    directory = f"{machine.config.metadata_log_dir}/{METADATA_TOPIC}-0/"
    bases = {
        base: path
        for path in disk.files(machine.config.metadata_log_dir)
        if path.startswith(directory)
        and path.endswith(LOG_SUFFIX)
        and (base := offset_of(path.removeprefix(directory))) is not None
    }
    before = [base for base in bases if base <= offset]
    if not before:
        return False
    inode = disk.inode(bases[max(before)])
    content = inode.durable if inode.true is None else inode.true
    return content.rfind(batch) >= 0
