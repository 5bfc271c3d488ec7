"""The future logs of a broker: the copies that moves between log directories make (KIP-113).

A future log is in a directory `<topic>-<partition>.<unique>-future` of the target. It is flushed
and checkpointed there like every other log. At the end of a move it takes the place of the current
log (`swap`). On the disk the following happens, in this order:

1. The metadata names the target as the directory of the replica, committed. The caller has waited
   for that.
2. The future log has the same records as the current one, and as much of it is flushed. Its log
   start is durable.
3. The future directory is renamed to that of the partition. From here on the future log counts.
4. The rename is made durable.
5. The directory of the earlier log is renamed for deletion, and removed later.

| crash         | the next start finds             | the next start                            |
|---------------|----------------------------------|-------------------------------------------|
| before step 3 | the current log and a future one | continues the move                        |
| before step 5 | two logs of the partition        | takes the one in the directory that the   |
|               |                                  | metadata names, which has every record    |
| after step 5  | the log in the target            | opens it                                  |

Appends go to the new log immediately after step 3, in the same iteration of the event loop. If the
power fails before step 4, the next start may find what it finds before step 3. The current log then
has every record that was flushed, because a flush of the new log makes the rename durable, too.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from functools import partial

from quorate.broker.logs.log_directory import LogDirectory
from quorate.broker.logs.log_flusher import ManagedLog
from quorate.broker.logs.log_opening import LogOpenParameters, parameters_of
from quorate.broker.partition.producer_state import ProducerStates
from quorate.quorum.ids import Uuid, random_uuid
from quorate.quorum.log.files.names import PartitionName, future_directory_name
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.seams import Seams


class FutureLogs:
    """The future logs in all log directories. The event loop owns it.

    Invariant: a partition has at most one future log, in another directory than its current
    log."""

    def __init__(
        self,
        seams: Seams,
        homes: MutableMapping[PartitionName, LogDirectory],
        stale: Callable[[PartitionName, LogDirectory], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """`homes` has the directory of each current log. `stale` gets a directory whose log was
        released but is still there under its name. `on_failure` gets an error of the disk."""
        self._clock, self._disk, self._random = seams.clock, seams.disk, seams.random
        self._homes = homes
        self._stale = stale
        self._on_failure = on_failure
        self._futures: dict[PartitionName, LogDirectory] = {}
        self._leaving: dict[PartitionName, int] = {}
        """The number of logs that are about to be deleted, beside the one in `homes`, or that are
        being opened. No further log of the name is opened in a directory that they may have."""
        self._waits: dict[PartitionName, list[Callable[[], None]]] = {}

    def home_of(self, name: PartitionName) -> str | None:
        """Return the path of the log directory of a future log, or None."""
        directory = self._futures.get(name)
        return None if directory is None else directory.path

    # --- one future log

    def open_parameters(
        self,
        name: PartitionName,
        directory: LogDirectory,
        topic_id: Uuid,
        settings: LogSettings,
        leader_epoch: int,
    ) -> LogOpenParameters:
        """Return the parameters with which `open_log` opens the future log of a partition: the one
        that the start found in `directory`, or a new one. Blocks for small files."""
        found = directory.futures.get(name)
        unique = random_uuid(self._random).hex()
        return parameters_of(
            directory.offsets,
            name,
            topic_id,
            settings,
            found or f"{directory.path}/{future_directory_name(name, unique)}",
            existed=found is not None,
            clean=directory.clean,
            wall_ms=self._clock.wall_ms(),
            leader_epoch=leader_epoch,
            peers_have_it=True,  # the current log has the records
        )

    def begin_opening(self, name: PartitionName) -> None:
        """Note that a future log is being opened. Until `end_opening`, its name is not free: the
        move may end meanwhile, and a further one must not open the same directory."""
        self._leaving[name] = self._leaving.get(name, 0) + 1

    def end_opening(self, name: PartitionName) -> None:
        """Note that the log is open and has an owner, was deleted, or cannot be opened."""
        self._left(name)

    def take_over(self, parameters: LogOpenParameters, directory: LogDirectory, log: Log) -> None:
        """Take over an open future log (`LogDirectory.take_over`). Raise OSError."""
        name = parameters.name
        assert name not in self._futures and self._homes.get(name) is not directory
        directory.take_over(parameters, log, lambda: None)
        directory.futures.pop(name, None)
        self._futures[name] = directory

    def flush(self, name: PartitionName, done: Callable[[], None]) -> None:
        """Flush a future log in the disk's thread, and call `done` (`LogFlusher.flush`). Its log
        start is durable then, too, because that of the current log may be: deleted records must not
        come back after a crash."""
        directory = self._futures[name]
        directory.checkpoint_starts()
        directory.flusher.flush(name, done)

    def discard(self, name: PartitionName) -> None:
        """Delete the future log of a partition, if there is one."""
        directory = self._futures.pop(name, None)
        managed = directory and directory.release(name)
        if directory and managed:
            self.remove(name, directory, managed.log)

    def remove(self, name: PartitionName, directory: LogDirectory, log: Log) -> None:
        """Delete an open future log that was released, or not taken over."""
        directory.futures.pop(name, None)
        self._leaving[name] = self._leaving.get(name, 0) + 1
        directory.remove_log(log, partial(self._left, name))

    def keep(self, name: PartitionName) -> None:
        """Close a future log, and leave its directory to the next start, because the directory of
        the current log has failed. It is durable when it is closed."""

        def flushed() -> None:
            directory = self._futures.pop(name, None)
            managed = directory and directory.release(name)
            if managed:
                self._disk.submit(managed.log.close, lambda _, error: None)

        if name in self._futures:
            self.flush(name, flushed)

    def take_offline(self, directory: LogDirectory) -> None:
        """Remove the future logs of a directory that has failed. It closes their files."""
        for name in [each for each, home in self._futures.items() if home is directory]:
            del self._futures[name]

    # --- the end of a move

    def swap(
        self,
        name: PartitionName,
        high_watermark: int,
        producers: Callable[[], ProducerStates | None],
    ) -> None:
        """Let the future log take the place of the current one. Block for one rename. The caller
        appends to the future log from now on; no flush of it may be in flight.

        Raise OSError if the rename fails. It may have happened then, so that neither log may be
        used before the next start: both were released."""
        target, source = self._futures.pop(name), self._homes.pop(name)
        managed, cleaned = target.managed(name), source.cleaner_offset(name)
        old = source.release(name)
        assert managed is not None and not managed.flushing and old is not None
        directory = f"{target.path}/{name}"
        try:
            self._disk.rename(managed.log.directory, directory)
        except OSError:
            self._stale(name, source)
            raise
        managed.log.moved_to(directory)
        managed.producers = producers
        managed.snapshot_offset = -1
        self._homes[name] = target
        target.checkpoint_high_watermarks([(name, high_watermark)])
        if cleaned is not None:
            target.checkpoint_cleaned(name, cleaned)
        waits, old.waits = old.waits, []
        for _, _, done in waits:
            target.flusher.flush(name, done)
        self._leaving[name] = self._leaving.get(name, 0) + 1
        old.log.mark_deleted()
        self._disk.submit(
            lambda: self._disk.sync_dir(target.path), partial(self._renamed, name, source, old)
        )

    def _renamed(
        self,
        name: PartitionName,
        source: LogDirectory,
        old: ManagedLog,
        _: None,
        error: BaseException | None,
    ) -> None:
        """Delete the earlier log when the new one has its name durably."""
        if error is None:
            source.remove_log(old.log, partial(self._left, name))
            return
        old.log.discard()
        self._stale(name, source)
        self._on_failure(error)
        self._left(name)

    # --- names

    def when_free(self, name: PartitionName, done: Callable[[], None]) -> None:
        """Call `done` when no deleted log of this partition has its name any more, and no future
        log of it is being opened, perhaps before this returns."""
        if name in self._leaving:
            self._waits.setdefault(name, []).append(done)
        else:
            done()

    def stop_waiting(self, name: PartitionName, done: Callable[[], None]) -> None:
        """Do not call `done` any more."""
        waits = self._waits.get(name, [])
        if done in waits:
            waits.remove(done)

    def _left(self, name: PartitionName) -> None:
        self._leaving[name] -= 1
        if not self._leaving[name]:
            del self._leaving[name]
            for done in self._waits.pop(name, ()):
                done()
