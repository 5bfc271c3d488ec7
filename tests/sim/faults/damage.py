"""Damage to stored bytes: flipped bits, lost and misdirected writes, and failed fsyncs.

No node notices the damage when it happens. A node starts with everything that it had, repairs the
damage, or refuses to start. A node may also stop when it reads damaged bytes, and is then started
again. If it stops a second time, an administrator restores the bytes that the disk should hold, as
the error message demands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from quorate.quorum.ids import METADATA_TOPIC
from quorate.quorum.log.batches.batch import PREFIX_BYTES, batches
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.errors import CorruptBatch, CorruptCheckpoint, CorruptLog
from quorate.quorum.log.files.names import LOG_SUFFIX, SEGMENT_SUFFIXES
from tests.sim.checks.committed_log import Violation
from tests.sim.faults.disk_faults import DISK_FAULTS, DISK_LIES
from tests.sim.faults.effects import Effects
from tests.sim.faults.limits import Limits
from tests.sim.world.cluster import Machine, Process, SimCluster
from tests.sim.world.disk import SimDisk

if TYPE_CHECKING:
    from tests.sim.faults.faults import Fault

Undo = Callable[[], None]
RESTART_S = 0.2
CHECK_UP_S = 2.0
EVERYWHERE = "/"
"""The directory with all files of a machine."""
QUORUM_STATE = "quorum-state"


@dataclass(frozen=True, slots=True)
class Backup:
    """The metadata log of a running controller, as its disk should hold it."""

    directory: str
    losses: tuple[int, int]
    """The wipes and the losses of a metadata directory that the machine had before the backup.
    After one more, the machine is another replica, or it knows that it has lost its log."""
    epoch: int
    flushed: int
    files: dict[str, bytes]


def backup_of(machine: Machine) -> Backup | None:
    if machine.process is None:
        return None
    log, disk = machine.process.core.log, machine.disk
    inodes = {path: disk.inode(path) for path in disk.files(log.directory)}
    files = {
        path: bytes(each.durable if each.true is None else each.true)
        for path, each in inodes.items()
    }
    return Backup(log.directory, losses_of(machine), log.last_epoch, log.flushed_offset, files)


def losses_of(machine: Machine) -> tuple[int, int]:
    """Return the number of wipes and of lost metadata directories of a machine."""
    return machine.wipes, machine.metadata_losses


def has_offline_directory(process: Process) -> bool:
    """Return True if a log directory has failed and the broker continues with the others."""
    return process.broker is not None and bool(process.broker.replicas.logs.offline)


def is_in_an_epoch(content: bytes, position: int) -> bool:
    """Return True if the position is in the leader epoch of a batch, or behind earlier damage."""
    try:
        for at, header in batches(content, verify=False):
            if position < at + header.size_bytes:
                return at + PREFIX_BYTES <= position < at + PREFIX_BYTES + 4
    except CorruptBatch:
        return True
    return False


def was_synced(disk: SimDisk, path: str) -> bool:
    """Return True if some of the partition's log was synced and a checkpoint of its log directory
    records that."""
    log_dir, name, _ = path.rsplit("/", 2)
    try:
        points = checkpoints.read_offsets(disk, log_dir, checkpoints.RECOVERY_POINTS_NAME)
    except CorruptCheckpoint:
        return False
    return any(str(each) == name and offset > 0 for each, offset in points.items())


def durable_logs(machine: Machine) -> list[str]:
    """Return the files of partitions' logs of which some bytes are durable."""
    return [
        path
        for path in machine.disk.files(EVERYWHERE)
        if path.endswith(LOG_SUFFIX)
        and METADATA_TOPIC not in path
        and machine.disk.inode(path).durable
    ]


class Damage:
    """Carries out the faults that damage stored bytes. An undo that is passed to `later` is a part
    of its fault, so it also runs when the faults are healed."""

    def __init__(
        self,
        cluster: SimCluster,
        limits: Limits,
        effects: Effects,
        later: Callable[[Undo, float, Fault], None],
    ) -> None:
        self.kinds: dict[str, Callable[[Fault], Undo | None]] = {
            "flip": self._flip,
            "flip_data": self._flip_data,
            **dict.fromkeys(DISK_LIES, self._lie),
            "sync_fails": self._sync_fails,
        }
        self._cluster = cluster
        self._limits = limits
        self._effects = effects
        self._later = later
        self._stops: dict[str, int] = {}
        self._met: dict[tuple[str, int, int, str], None] = {}
        """The damage of partitions for which running brokers have stopped: the machine with the
        numbers of its power losses and wipes, and the error."""
        cluster.found_damage = self._found

    def _bring_back(self, machine: Machine) -> None:
        self._cluster.note(f"{machine.name}: brought back from a backup")
        machine.disk.mend()
        machine.scarred = False
        self._stops[machine.name] = 0

    def failing(self, machine: Machine, fault: Fault) -> Undo:
        """Make the disk fail, with errors, until the returned function mends it. That function
        kills a broker that continued without a log directory. The caller starts a machine that does
        not run."""
        machine.may_fail = True
        disk = machine.disk
        mend = DISK_FAULTS[fault.kind](disk, Random(fault.seed))
        self._limits.lost_data(machine)

        def mended() -> None:
            self._cluster.note(f"disk of {machine.name} is good")
            mend()
            machine.may_fail = False
            self._effects.mark(fault, disk.hurt)
            if machine.process is not None and has_offline_directory(machine.process):
                # the caller starts it, and it opens its log directories again
                self._cluster.kill(machine)

        return mended

    def may_scar(self, machine: Machine) -> bool:
        return machine.process is not None and self._limits.may_lose_unsynced(machine)

    def could_scar(self, machine: Machine) -> bool:
        """Return what `may_scar` would return, and change nothing."""
        return machine.process is not None and self._limits.could_lose_unsynced(machine)

    def cut_power(self, machine: Machine) -> None:
        """Cut the power. Data that the disk lied about is lost with the page cache if the fault
        model permits this. Otherwise the disk is mended first."""
        lied, machine.lying = machine.lying, False
        if lied and not self._limits.may_lose_synced(machine):
            machine.disk.mend()
        backup = backup_of(machine) if lied and not machine.is_broker else None
        self._cluster.lose_power(machine)
        # a controller with an honest disk still has everything that it promised
        if lied or machine.is_broker:
            self._note_scars(machine)
        if backup is not None:
            self._at(CHECK_UP_S, self.check_up, machine, backup)

    def _note_scars(self, machine: Machine) -> None:
        machine.scarred = True
        if self._limits.is_scarred(machine):
            self._cluster.note(f"scars: {' '.join(machine.disk.scars())}")

    def _found(self, machine: Machine, error: BaseException | None) -> None:
        if isinstance(error, CorruptLog) and METADATA_TOPIC not in error.path:
            self.met_once(machine, error)
        self._limits.lost_data(machine)
        stops = self._stops[machine.name] = self._stops.get(machine.name, 0) + 1
        if stops > 1:
            self._bring_back(machine)
        self._at(RESTART_S, self._start, machine)

    def met_once(self, machine: Machine, damage: CorruptLog) -> None:
        """Check that a broker does not stop twice for the same damage. The start after the first
        time repairs it, or refuses the log."""
        met = (machine.name, machine.power_losses, machine.wipes, str(damage))
        if met in self._met:
            self._cluster.fail(Violation(f"{machine.name} stops again for known damage: {damage}"))
        self._met[met] = None

    def check_up(self, machine: Machine, backup: Backup) -> None:
        """Restore the log of a voter that lost the end of the records that it had acknowledged.

        The voter cannot detect this. Its leader refuses its fetches with an error that names the
        voter (KAFKA-12181), so an administrator restores its log. Its votes stay as they are."""
        if losses_of(machine) != backup.losses:
            return
        if machine.process is None:
            self._at(CHECK_UP_S, self.check_up, machine, backup)
            return
        log = machine.process.core.log
        if log.end_offset >= backup.flushed or log.last_epoch > backup.epoch:
            return
        self._cluster.kill(machine)
        self._bring_back(machine)
        disk = machine.disk = machine.disk.restart()
        for path in disk.files(backup.directory):
            if path not in backup.files and QUORUM_STATE not in path:
                disk.remove(path)
        for path, content in backup.files.items():
            if QUORUM_STATE not in path:
                file = disk.open(path, create=True)
                file.truncate(0)
                file.pwrite(content, 0)
                file.sync()
        disk.sync_dir(backup.directory)
        self._start(machine)

    def _at(self, delay_s: float, callback: Callable[..., None], *arguments: object) -> None:
        loop = self._cluster.loop
        loop.call_at(loop.time() + delay_s, callback, *arguments)

    def _start(self, machine: Machine) -> None:
        if machine.process is None:
            self._cluster.start(machine)

    def _machine(self, fault: Fault) -> Machine:
        (name,) = fault.names
        return self._cluster.machines[name]

    # -- kinds -----------------------------------------------------------------------------------

    def _flip(self, fault: Fault) -> Undo | None:
        """Flip a bit of a metadata file while the machine is off. The node starts with everything
        that was durable, or refuses to start. Then the bit is restored."""
        machine = self._machine(fault)
        if machine.process is None:
            return None
        durable = machine.process.core.log.flushed_offset
        self._cluster.kill(machine)
        files = [each for each in machine.disk.files(EVERYWHERE) if METADATA_TOPIC in each]
        random = Random(fault.seed)
        files = [each for each in files if machine.disk.content(each)]
        if not files:
            return partial(self._start, machine)
        path = random.choice(files)
        position = random.randrange(0, len(machine.disk.content(path)))
        mask = 1 << random.randrange(0, 8)
        machine.disk.flip(path, position, mask)
        damaged = bytes(machine.disk.content(path))
        self._cluster.note(f"flip {path} at {position}")
        self._effects.mark(fault)
        self._start_damaged(machine, durable)
        disk = machine.disk
        if path in disk.files(EVERYWHERE):
            content = bytes(disk.content(path))
            # A segment may have grown. Any other file that differs was rewritten (seed 30737).
            end = position + 1 if path.endswith(SEGMENT_SUFFIXES) else None
            if content[:end] == damaged[:end]:
                disk.flip(path, position, mask)
        return partial(self._start, machine)

    def _start_damaged(self, machine: Machine, durable: int) -> None:
        machine.may_refuse = True
        self._cluster.start(machine)
        if machine.process is None:
            machine.may_refuse = False
            return
        end = machine.process.core.log.end_offset
        if end < durable:
            raise AssertionError(f"{machine.name}: {durable} was durable, {end} is left")
        self._cluster.kill(machine)
        machine.may_refuse = False

    def _flip_data(self, fault: Fault) -> Undo | None:
        """Flip a bit of a partition's log while its broker is off. Leave the leader epochs of a log
        that was never synced as they are: they are outside of the CRC, so nothing could detect the
        damage."""
        machine = self._machine(fault)
        if not machine.is_broker or not self.may_scar(machine):
            return None
        self._cluster.kill(machine)
        machine.disk = machine.disk.restart()  # the disk of the dead process cannot be read
        disk, random = machine.disk, Random(fault.seed)
        files = durable_logs(machine)
        path = random.choice(files) if files else ""
        position = random.randrange(0, len(disk.inode(path).durable)) if files else 0
        if files and (was_synced(disk, path) or not is_in_an_epoch(disk.content(path), position)):
            self._cluster.note(f"flip {path} at {position}")
            self._effects.mark(fault)
            disk.scar(path, position, 1 << random.randrange(0, 8))
        self._note_scars(machine)
        self._limits.lost_data(machine)
        return partial(self._start, machine)

    def _lie(self, fault: Fault) -> Undo | None:
        """Let the disk lie about some writes, and cut the power at the end, which reveals the
        lie."""
        machine = self._machine(fault)
        if not self.may_scar(machine):
            return None
        machine.lying = True
        disk = machine.disk
        mend = DISK_LIES[fault.kind](disk, Random(fault.seed))

        def undo() -> None:
            mend()
            self._effects.mark(fault, disk.hurt)
            if not self._limits.may_lose_unsynced(machine):  # the disk writes everything after all
                machine.lying = False
                machine.disk.mend()
                self._start(machine)
                return
            self.cut_power(machine)
            self._limits.lost_data(machine)
            self._start(machine)

        return undo

    def _sync_fails(self, fault: Fault) -> Undo | None:
        """Let one fsync fail. The node stops immediately, and its machine loses power. Some nodes
        run once more before the power loss. They can read the pages of the failed fsync, although
        these are not on the disk and the next fsync does not write them."""
        machine = self._machine(fault)
        if not self.may_scar(machine):
            return None
        mended = self.failing(machine, fault)

        def undo() -> None:
            mended()
            if machine.process is None and Random(fault.seed).getrandbits(1):
                self._cluster.note(f"{machine.name} goes on with what is in its page cache")
                self._start(machine)
                self._later(cut_power, fault.lasts_s, fault)
            else:
                cut_power()

        def cut_power() -> None:
            if self._limits.may_lose_unsynced(machine):
                self.cut_power(machine)
                self._limits.lost_data(machine)
            self._start(machine)

        return undo
