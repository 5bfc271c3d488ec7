"""The log directories of a broker: the logs of all of them behind one interface.

`log_directory.py` does the work of one directory. Each has its own checkpoint files, recovery
points, clean shutdown file and flushes, as in Kafka. This module finds the directory of a log, and
chooses one for a new log (`directory_choice.py`).

A directory that fails is taken offline (`take_offline`): the manager closes its logs and touches it
no more until the process ends. Logs in the other directories are not affected.

A partition has one log. `found_logs.py` decides if the start finds several, and `future_logs.py`
has the copies that moves between directories make.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from quorate.broker.logs.directory_choice import Candidate, chosen_directory, failed_directory
from quorate.broker.logs.found_logs import FoundLogs, LogMayBeOffline
from quorate.broker.logs.future_logs import FutureLogs
from quorate.broker.logs.log_directory import LogDirectory
from quorate.broker.logs.log_opening import LogOpenParameters
from quorate.broker.partition.producer_state import ProducerStates
from quorate.quorum.directory_ids import UNASSIGNED
from quorate.quorum.histogram import Histogram
from quorate.quorum.ids import Uuid
from quorate.quorum.log.disks.disk_failures import explained
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.seams import Seams

logger = logging.getLogger("quorate.broker.replication")


class LogManager:
    """The owner of a broker's log directories.

    Life: `start` lists the directories. For each partition the caller takes `open_parameters`,
    opens the log (`log_opening.py`), and hands it over with `take_over`. `close` makes everything
    durable. The event loop owns the manager; the disk's thread does the periodic flushes, the
    removals and the final close.

    Invariant: a log is open at most once, under its partition's name."""

    def __init__(
        self,
        seams: Seams,
        log_dirs: Sequence[str],
        *,
        directory_ids: Mapping[str, Uuid] | None = None,
        metadata_dir: str = "",
        file_delete_delay_ms: int,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """`log_dirs` are the configured directories. `directory_ids` has the ids of those that are
        online, or is None if all of them are and the ids do not matter. `metadata_dir` is the
        directory of the metadata log. `on_failure` gets an error of a disk, and may be called
        again, for other work in progress."""
        self.log_dirs = tuple(log_dirs)
        self._metadata_dir = metadata_dir
        self.ids: dict[str, Uuid] = dict(directory_ids or {})
        self.sole_id = (
            next(iter(self.ids.values())) if len(self.log_dirs) == 1 == len(self.ids) else None
        )
        """The id of the only log directory, or None if there are several or it does not matter."""
        self._on_failure = on_failure
        self._online: dict[str, LogDirectory] = {
            path: LogDirectory(
                seams, path, file_delete_delay_ms=file_delete_delay_ms, on_failure=on_failure
            )
            for path in self.log_dirs
            if directory_ids is None or path in directory_ids
        }
        self.found = FoundLogs(self.ids)
        self._homes: dict[PartitionName, LogDirectory] = {}
        """The directory of each open log, and of each log that is being opened."""
        self.futures = FutureLogs(seams, self._homes, self.found.leave, on_failure)
        self.preferred: dict[PartitionName, str] = {}
        """The directories that AlterReplicaLogDirs has named for logs that do not exist yet."""
        self._failing: dict[str, None] = {}
        """The directories that have failed, while their partitions are being removed."""

    def start(self) -> None:
        """List the log directories and read the checkpoints. Blocks, before the broker serves;
        opens no log. Remove the clean shutdown files, so that a crash from now on is noticed. A
        directory that cannot be read is offline. Raise its OSError if the node needs it."""
        for directory in list(self._online.values()):
            try:
                directory.start()
            except OSError as error:
                if self.failed_directory(error) != directory.path:
                    raise
                del self._online[directory.path]
                logger.error("log directory %s is offline: %s", directory.path, explained(error))
                continue
            for name in directory.unopened:
                self.found.add(name, directory)
        self.found.compare(name for each in self._online.values() for name in each.futures)

    # --- directories

    @property
    def directories(self) -> tuple[LogDirectory, ...]:
        """Return the online directories, in the order of log.dirs."""
        return tuple(self._online.values())

    @property
    def online(self) -> tuple[str, ...]:
        """Return the paths of the online directories."""
        return tuple(each for each in self._online if each not in self._failing)

    @property
    def ids_online(self) -> set[Uuid]:
        """Return the ids of the online directories."""
        return {self.ids[each] for each in self.online if each in self.ids}

    @property
    def offline(self) -> tuple[str, ...]:
        """Return the paths of the directories that are offline or have failed."""
        online = self.online
        return tuple(each for each in self.log_dirs if each not in online)

    def failed_directory(self, error: BaseException) -> str | None:
        """Return the path of the directory that `error` takes offline, or that is offline already,
        or None if the node must stop (`directory_choice.py`)."""
        return failed_directory(error, self.log_dirs, self.online, self._metadata_dir)

    def begin_failure(self, path: str) -> None:
        """Flush and checkpoint nothing more in a directory, and place no log there. The caller
        removes its partitions and then calls `take_offline`."""
        self._failing[path] = None
        self._online[path].stop()

    @property
    def previous_broker_epoch(self) -> int:
        """Return the broker epoch of the last clean shutdown, or -1 if records may be missing:
        after a crash, if the epoch is unknown, if the directories differ (one may be a new disk) or
        one is offline, or if a log is gone and only its future log is there."""
        epochs = {each.previous_broker_epoch for each in self._online.values()}
        whole = len(epochs) == 1 and not self.offline and not self.found.lacks_log
        return epochs.pop() if whole else -1

    def home_of(self, name: PartitionName) -> str | None:
        """Return the path of the directory of an open log, or None."""
        directory = self._homes.get(name)
        return None if directory is None else directory.path

    def id_of(self, name: PartitionName) -> Uuid | None:
        """Return the id of the directory of an open log, or None if it is not known."""
        return self.ids.get(self.home_of(name) or "")

    def directory(self, path: str) -> LogDirectory:
        """Return an online directory."""
        return self._online[path]

    def is_usable(self, name: PartitionName) -> bool:
        """Return True if the log is open and its directory is online."""
        path = self.home_of(name)
        return path in self._online and path not in self._failing

    def take_offline(self, path: str) -> list[PartitionName]:
        """Take a directory offline, and return the names of its logs that were open or being
        opened. The caller has removed their partitions."""
        directory = self._online.pop(path)
        self._failing.pop(path, None)
        self.futures.take_offline(directory)
        names = [name for name, home in self._homes.items() if home is directory]
        for name in names:
            del self._homes[name]
        directory.take_offline()
        return names

    # --- one log

    @property
    def unopened_count(self) -> int:
        """Return the number of logs that the start found and that are not open yet."""
        return sum(len(list(each.unopened)) for each in self._online.values())

    def place(
        self,
        name: PartitionName,
        topic_id: Uuid,
        assigned: Uuid = UNASSIGNED,
        *,
        peers_have_it: bool,
        may_exist: bool = False,
    ) -> str | None:
        """Return the path of the directory in which the log of a partition is, or is to be made, or
        None if that directory is offline (`found_logs.py`, `directory_choice.py`). Block for small
        files, never in a directory that is offline. Raise DuplicateLog, CorruptCheckpoint or
        OSError."""
        if len(self.log_dirs) == 1:
            self._homes[name] = self.directories[0]
            return self.log_dirs[0]
        online, hidden = self.online, bool(self.offline)
        try:
            found = self.found.home(
                name,
                topic_id,
                assigned,
                [self._online[path] for path in online],
                any_offline=hidden,
                peers_have_it=peers_have_it,
            )
        except LogMayBeOffline:
            return None
        path = None if found is None else found.path
        if path is None:
            candidates = self.candidates()
            path = chosen_directory(candidates, assigned, any_offline=hidden, may_exist=may_exist)
            preferred = self.preferred.pop(name, None)
            if path is not None and preferred in online:
                path = preferred
        if path is not None:
            self._homes[name] = self._online[path]
        return path

    def candidates(self) -> list[Candidate]:
        """Return the online directories, in the order of log.dirs."""
        online = self._online
        return [Candidate(each, self.ids.get(each), online[each].log_count) for each in self.online]

    def open_parameters(
        self,
        name: PartitionName,
        topic_id: Uuid,
        settings: LogSettings,
        *,
        leader_epoch: int,
        peers_have_it: bool,
    ) -> LogOpenParameters:
        """Return the parameters with which `open_log` opens the log of a partition, in the
        directory that `place` returned (`LogDirectory.open_parameters`)."""
        return self._homes[name].open_parameters(
            name, topic_id, settings, leader_epoch=leader_epoch, peers_have_it=peers_have_it
        )

    def take_over(
        self,
        parameters: LogOpenParameters,
        log: Log,
        producers: Callable[[], ProducerStates | None],
    ) -> None:
        """Take over an open log (`LogDirectory.take_over`)."""
        self._homes[parameters.name].take_over(parameters, log, producers)
        self.found.opened(parameters.name)

    def set_aside_strays(self) -> None:
        """Rename the directories that belong to no replica of this broker to `-stray`
        (`LogDirectory.set_aside_strays`). An error of a directory goes to `on_failure`."""
        for each in self.directories:
            self._guarded(partial(each.set_aside_strays, self.found.hidden))
        self.found.clear()

    def delete(self, name: PartitionName, done: Callable[[], None]) -> None:
        """Delete a log and its future log. Call `done` when a new topic may use the name. That is
        immediately if no log of this name is open, also in a directory that is offline."""
        self.futures.discard(name)
        home = self._homes.pop(name, None)
        if home is None:
            self.futures.when_free(name, done)
        else:
            home.delete(name, lambda: self.futures.when_free(name, done))

    def apply_retention(self, log: Log, high_watermark: int) -> bool:
        """Remove the segments that retention no longer keeps (`LogDirectory.apply_retention`)."""
        return self._of(log).apply_retention(log, high_watermark)

    def remove_renamed(self, log: Log, paths: list[str]) -> None:
        """Remove renamed files of segments later (`LogDirectory.remove_renamed`)."""
        self._of(log).remove_renamed(log, paths)

    def truncated(self, name: PartitionName, offset: int) -> None:
        """Remove the producer snapshots above `offset`, the log end after a truncation, or -1 if
        the log restarts. Call it before the next append. Blocks."""
        home = self._homes.get(name)
        if home is not None:
            home.truncated(name, offset)

    def distrust(self, damage: CorruptLog) -> None:
        """Lower the recovery point of a damaged log, so that the next start finds the damage
        (`LogDirectory.distrust`). Start no flush and no checkpoint in any directory afterwards."""
        for each in self.directories:
            each.distrust(damage)

    def _of(self, log: Log) -> LogDirectory:
        """Return the directory of an open log. One that is gone is as good as any other, because
        nothing is removed there."""
        parent, _, _ = log.directory.rpartition("/")
        return self._online.get(parent) or next(iter(self._online.values()))

    def _guarded(self, work: Callable[[], None]) -> None:
        """Do the work of one directory. An OSError goes to `on_failure`, and other directories go
        on."""
        try:
            work()
        except OSError as error:
            self._on_failure(error)

    # --- checkpoints

    def checkpoint_high_watermarks(self, offsets: Iterable[tuple[PartitionName, int]]) -> None:
        """Write the high watermarks in the disk's thread, if they have changed."""
        for directory, of_directory in self._divided(offsets):
            directory.checkpoint_high_watermarks(of_directory)

    def checkpoint_starts(self) -> None:
        """Write the log start offsets in the disk's thread, if they have changed."""
        for each in self.directories:
            each.checkpoint_starts()

    def cleaner_offset(self, name: PartitionName) -> int | None:
        """Return the offset up to which the log was compacted, or None if it never was."""
        home = self._homes.get(name)
        return None if home is None else home.cleaner_offset(name)

    def checkpoint_cleaned(self, name: PartitionName, offset: int) -> None:
        """Note that the log is compacted up to `offset`, and write it in the disk's thread. The
        compacted segments are durably in place. Ignore a log that is gone."""
        home = self._homes.get(name)
        if home is not None:
            home.checkpoint_cleaned(name, offset)

    def checkpoint_flushed(self) -> None:
        """Flush the logs in the disk's thread, then write the recovery points. Skip a directory
        with an earlier run in progress."""
        for each in self.directories:
            each.flusher.run()

    def flush_overdue(self) -> None:
        """Flush the logs whose last flush is flush.ms old, in the disk's thread. Skip a directory
        with an earlier run in progress."""
        for each in self.directories:
            each.flusher.run_overdue()

    def flush(self, name: PartitionName, done: Callable[[], None]) -> None:
        """Flush one open log in the disk's thread. Call `done` when everything that was appended so
        far is durable or truncated, or the log is gone; never after a failure of the node or
        `close`. Do nothing if the directory is offline already."""
        home = self._homes.get(name)
        if home is not None:
            home.flusher.flush(name, done)

    @property
    def flush_times(self) -> Histogram:
        """Return the flushes of logs in the online directories, from the submission to the end."""
        times = Histogram()
        for each in self.directories:
            times.add(each.flusher.times)
        return times

    def _divided(
        self, offsets: Iterable[tuple[PartitionName, int]]
    ) -> Iterable[tuple[LogDirectory, Iterable[tuple[PartitionName, int]]]]:
        """Return the offsets of each directory."""
        if len(self._online) == 1:
            return [(self.directories[0], offsets)]
        divided: dict[LogDirectory, list[tuple[PartitionName, int]]] = {
            each: [] for each in self.directories
        }
        for name, offset in offsets:
            home = self._homes.get(name)
            if home in divided:
                divided[home].append((name, offset))
        return divided.items()

    # --- the end

    def close(
        self,
        broker_epoch: int,
        high_watermarks: Iterable[tuple[PartitionName, int]],
        done: Callable[[BaseException | None], None],
    ) -> None:
        """Flush and close the logs of all online directories (`LogDirectory.close`). Call `done`
        when all of them are closed, with the first error that the node cannot survive, or None. A
        directory that fails has no clean shutdown file then."""
        divided = list(self._divided(high_watermarks))
        left = len(divided)
        errors: list[BaseException] = []

        def closed(directory: LogDirectory, error: BaseException | None) -> None:
            nonlocal left
            left -= 1
            if error is not None:
                logger.error("cannot close the logs in %s: %s", directory.path, error)
                if self.failed_directory(error) is None:
                    errors.append(error)
            if left == 0:
                done(errors[0] if errors else None)

        for directory, of_directory in divided:
            directory.close(broker_epoch, of_directory, partial(closed, directory))
