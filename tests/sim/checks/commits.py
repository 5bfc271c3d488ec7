"""The rules by which Raft commits, checked from the bytes of the logs and from the disks.

- A leader commits through a record of its own epoch (Raft §5.4.2), before it adds a voter set.
- Only a leader may be the first node that considers a record committed.
- Records that a controller counts as durable are on its disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from quorate.quorum.ids import METADATA_TOPIC
from quorate.quorum.log.batches.batch import batches
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.log.files.names import LOG_SUFFIX, offset_of
from quorate.quorum.raft.states import Leader
from tests.sim.world.cluster import Machine, Process


class Commits:
    """Checks controllers and brokers when their high watermark rises, and disks in a sweep.

    `checks` counts the comparisons."""

    def __init__(self) -> None:
        self.checks: Counter[str] = Counter()
        self._began: set[tuple[str, int]] = set()
        """The leaders, by name and epoch, that have committed something."""

    def committed(
        self,
        machine: Machine,
        process: Process,
        data: bytes,
        known: Container[int],
        end: int,
        leader: str | None,
    ) -> str:
        """Return the fault of the new committed batches `data` of a process, or "".

        `known` are the base offsets of the batches that some leader has committed. `end` is the
        high watermark of the process. `leader` is the machine that won the process's epoch. It may
        have resigned meanwhile."""
        raft = process.core.replica.raft
        headers = [header for _, header in batches(data, verify=False)]
        if leader != machine.name:
            self.checks["committed by a leader first"] += 1
            unknown = [each.base_offset for each in headers if each.base_offset not in known]
            if unknown:
                return f"offset {unknown[0]} is called committed, and no leader has committed it"
            return ""
        if not headers or headers[-1].next_offset < end:
            return ""  # more batches follow
        self.checks["committed through the leader's own epoch"] += 1
        if headers[-1].leader_epoch != raft.epoch:
            return (
                f"offset {end - 1} of epoch {headers[-1].leader_epoch} is committed by the leader "
                f"of epoch {raft.epoch} without a record of its own"
            )
        return self._voters_after_a_commit(machine, process, end)

    def _voters_after_a_commit(self, machine: Machine, process: Process, end: int) -> str:
        """Return the fault of a leader that added a voter set before it committed a record of its
        epoch, or ""."""
        core = process.core.replica.raft._core
        began = (machine.name, core.election.epoch)
        state = core.state
        if began in self._began or not isinstance(state, Leader):
            return ""
        self._began.add(began)
        latest = core.history.latest_offset
        if state.epoch_start_offset == 0:  # the first leader writes the configured voter set
            return ""
        if state.epoch_start_offset < latest < end:
            return f"the voters change at {latest}, before a commit in epoch {began[1]}"
        return ""

    def look(self, machine: Machine) -> str:
        """Return the fault of the offset below which a controller counts its log as durable, or
        ""."""
        process = machine.process
        if process is None or not machine.is_controller or _proves_nothing(machine):
            return ""
        log, durable = process.core.log, process.core.replica.raft._core.durable_offset
        if durable <= log.start_offset:
            return ""
        self.checks["durable records"] += 1
        for base, path in _segments(machine, log.directory):
            if base >= durable:
                break
            inode = machine.disk.inode(path)
            if not inode.unsynced or inode.true is not None:  # the disk has failed or lied
                continue
            lost = _first_difference(bytes(inode.data), bytes(inode.durable))
            if lost is not None and lost < durable:
                return f"offset {lost} counts as durable, up to {durable}, and is not on the disk"
        return ""


def _first_difference(written: bytes, durable: bytes) -> int | None:
    """Return the base offset of the first batch that is not durable, or None."""
    try:
        for at, header in batches(written, verify=False):
            end = at + header.size_bytes
            if written[at:end] != durable[at:end]:
                return header.base_offset
    except CorruptBatch:
        return None
    return None


def _proves_nothing(machine: Machine) -> bool:
    return machine.may_fail or machine.lying or machine.scarred or machine.may_refuse


def _segments(machine: Machine, directory: str) -> list[tuple[int, str]]:
    prefix = f"{machine.config.metadata_log_dir}/{METADATA_TOPIC}-0/"
    found = []
    for path in machine.disk.files(directory):
        name = path.removeprefix(prefix)
        if name.endswith(LOG_SUFFIX) and (base := offset_of(name)) is not None:
            found.append((base, path))
    return sorted(found)
