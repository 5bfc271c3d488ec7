"""The replicas of one broker: makes the parts of replication, and owns their timers.

The rules are in the folders beside this file, the log directory in `broker/logs`, and the rules of
one replica in `broker/partition`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from quorate.broker.logs.log_cleaner import LogCleaner
from quorate.broker.logs.log_manager import LogManager
from quorate.broker.replication.appends.delayed_operations import (
    CoalescedCallbacks,
    DelayedOperations,
)
from quorate.broker.replication.appends.delete_records import DeleteRecords
from quorate.broker.replication.appends.produce import RecordAppender
from quorate.broker.replication.directories.offline_directories import (
    NO_DIRECTORIES,
    BrokerDirectories,
    OfflineDirectories,
)
from quorate.broker.replication.directories.replica_move import MoveContext
from quorate.broker.replication.directories.replica_moves import ReplicaMoves
from quorate.broker.replication.directories.replica_placement import ReplicaPlacement
from quorate.broker.replication.fetches.consumer_fetches import ConsumerFetches
from quorate.broker.replication.fetches.consumer_sessions import ConsumerSessions
from quorate.broker.replication.fetches.fetch_session_cache import SessionCache
from quorate.broker.replication.fetches.read_replicas import ReadReplicas
from quorate.broker.replication.fetches.replica_sessions import ReplicaSessions
from quorate.broker.replication.follower.partition_fetch_state import FetcherContext
from quorate.broker.replication.follower.replica_fetcher_manager import ReplicaFetcherManager
from quorate.broker.replication.metadata_applier import MetadataApplier
from quorate.broker.replication.partitions.compacted_partition import CompactedPartition
from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key, Propose
from quorate.broker.replication.partitions.partition_opener import PartitionOpener
from quorate.broker.replication.partitions.partition_registry import PartitionRegistry
from quorate.broker.replication.partitions.producer_loader import ProducerLoader
from quorate.broker.replication.partitions.replica_configuration import TopicSettingsOf
from quorate.broker.replication.partitions.replication_throttle import ReplicationThrottle
from quorate.broker.replication.partitions.settings import ReplicationSettings
from quorate.broker.replication.partitions.state_change_log import StateChangeLog
from quorate.quorum.ids import Uuid
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.log.files.settings import NEVER
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.replica_directories import replica_directory
from quorate.quorum.rpc.budget import Memory
from quorate.quorum.seams import Address, Clock, Seams, Timer

JOIN_CHECK_INTERVAL_MS = 500
"""The interval at which caught-up followers outside of the ISR are proposed again, and unsent
proposals are sent."""
RETAINED_PER_SLICE = 64
"""The number of logs to which retention is applied in one loop iteration."""


class ReplicaManager:
    """The replicas of one broker (Kafka's ReplicaManager). The event loop owns it.

    Life: `start` reads the log directory, `apply` makes the replicas of each committed image,
    `close` flushes and closes all logs, and `stop` ends all work without closing them.

    Its operations are methods of its parts, such as `append` of RecordAppender and `fetch` of
    ConsumerSessions."""

    def __init__(
        self,
        seams: Seams,
        settings: ReplicationSettings,
        broker_id: int,
        *,
        topic_settings: TopicSettingsOf,
        propose: Propose,
        broker_epoch: Callable[[], int],
        address_of: Callable[[int], Address | None],
        on_failure: Callable[[BaseException], None],
        on_link_lost: Callable[[int], None] = lambda broker_id: None,
        memory: Memory | None = None,
        directories: BrokerDirectories = NO_DIRECTORIES,
    ) -> None:
        """Make the parts. `memory` bounds responses and sessions. `topic_settings` returns a
        topic's settings, `address_of` the node port of a broker in the latest image. `on_failure`
        gets errors of disks. Unless `survives`, the node must stop."""
        clock, disk = seams.clock, seams.disk
        self.registry = PartitionRegistry()
        self.logs = log_manager(seams, settings, directories, on_failure)
        self.survives = self.registry.survives = OfflineDirectories(
            clock, self.registry, self.logs, self._take_offline, self._directory_failed
        ).survives
        self._clock, self._settings, self._broker_epoch = clock, settings, broker_epoch
        self._delayed_operations = delayed_operations = DelayedOperations(clock)
        callbacks, memory = CoalescedCallbacks(clock), memory or Memory(clock)
        room = memory.responses.room
        self.consumer_fetches = ConsumerFetches(
            delayed_operations,
            callbacks,
            self.registry,
            settings.max_delayed_fetches,
            room,
            ReadReplicas(clock, self.registry, broker_id, settings.replica_selector),
        )
        self.session_cache = cache = SessionCache(
            clock, seams.random, settings.max_fetch_sessions, memory.limits.session_bytes
        )
        self.leader_throttle, self.follower_throttle = replication_throttles(clock, settings)
        self.replica_sessions = ReplicaSessions(
            clock, delayed_operations, callbacks, self.registry, cache, self.leader_throttle, room
        )
        self._producer_loader = loader = ProducerLoader(disk, on_failure)
        self.load_producers = loader.load
        appender = RecordAppender(
            clock, delayed_operations, self.registry, loader.load, self._flush, disk, on_failure
        )
        self.append, self.recompressions = appender.append, appender.recompressions
        self.delete_records = DeleteRecords(delayed_operations, self.registry).delete_records
        sessions = ConsumerSessions(self.consumer_fetches, self.registry, cache)
        self.fetch_as_consumer, self.withdraw_fetch = sessions.fetch, sessions.withdraw
        context = self._fetcher_context(broker_id, on_failure, on_link_lost)
        self.fetchers = ReplicaFetcherManager(seams, settings, context, address_of)
        opening = PartitionOpener(seams, self.registry, self.logs, broker_id, propose)
        placement = ReplicaPlacement(
            self.registry, self.logs, opening, broker_id, directories.assign
        )
        self._applier = self._metadata_applier(
            seams, broker_id, opening, placement, topic_settings, on_failure
        )
        self.cleaner = LogCleaner(seams, settings.cleaner, self.logs, self._compacted, on_failure)
        self.moves = self._replica_moves(seams, broker_id, directories, on_failure)
        self._timers: dict[str, Timer] = {}

    def _fetcher_context(
        self,
        broker_id: int,
        on_failure: Callable[[BaseException], None],
        on_link_lost: Callable[[int], None],
    ) -> FetcherContext:
        return FetcherContext(
            broker_id=broker_id,
            broker_epoch=self._broker_epoch,
            truncated=self._truncated,
            load_producers=self.load_producers,
            flush=self._flush,
            throttle=self.follower_throttle,
            on_disk_failure=on_failure,
            link_lost=on_link_lost,
        )

    def _metadata_applier(
        self,
        seams: Seams,
        broker_id: int,
        opening: PartitionOpener,
        placement: ReplicaPlacement,
        topic_settings: TopicSettingsOf,
        on_failure: Callable[[BaseException], None],
    ) -> MetadataApplier:
        return MetadataApplier(
            seams,
            self.registry,
            self.fetchers,
            self.replica_sessions,
            self.logs,
            opening,
            topic_settings,
            broker_id,
            on_failure,
            placement,
            StateChangeLog(
                seams.clock, self.registry, every_partition=self._settings.state_change_log
            ),
        )

    def _replica_moves(
        self,
        seams: Seams,
        broker_id: int,
        directories: BrokerDirectories,
        on_failure: Callable[[BaseException], None],
    ) -> ReplicaMoves:
        settings = self._settings
        self._on_offline = directories.on_offline
        self.move_throttle = ReplicationThrottle(
            seams.clock, settings.move_quota_windows, settings.move_quota_window_seconds * 1000
        )

        def recorded(key: Key) -> Uuid | None:
            value = self.registry.image.partition(*key)
            return None if value is None else replica_directory(value, broker_id)

        context = MoveContext(
            clock=seams.clock,
            disk=seams.disk,
            logs=self.logs,
            throttle=self.move_throttle,
            assign=directories.assign,
            recorded=recorded,
            take_offline=self._take_offline,
            swapped=lambda old, new: self.cleaner.moved(old, new),
            on_failure=on_failure,
            backoff_ms=settings.replica_fetch_backoff_ms,
        )
        moves = ReplicaMoves(context, self.registry, broker_id)
        self._applier.on_removed, self._applier.on_offline = moves.removed, moves.taken_offline
        self._applier.on_settled = moves.resume
        return moves

    # --- life

    def start(self) -> None:
        """List the log directory and start the timers. Blocks for the listing; the logs are opened
        when metadata names them."""
        self.logs.start()
        settings = self._settings
        self._every("lag", settings.replica_lag_time_max_ms // 2, self._check_lag)
        self._every("joins", JOIN_CHECK_INTERVAL_MS, self._check_joins)
        self._every(
            "watermarks",
            settings.high_watermark_checkpoint_interval_ms,
            lambda: self.logs.checkpoint_high_watermarks(self._high_watermarks()),
        )
        self._every("flush", settings.flush_checkpoint_interval_ms, self.logs.checkpoint_flushed)
        self._every(
            "starts", settings.start_offset_checkpoint_interval_ms, self.logs.checkpoint_starts
        )
        if settings.flush_scheduler_interval_ms != NEVER:
            self._every("overdue", settings.flush_scheduler_interval_ms, self.logs.flush_overdue)
        self._every("retention", settings.retention_check_interval_ms, self._apply_retention)
        self._every(
            "producers", settings.producer_expiration_check_interval_ms, self._expire_producers
        )
        self.cleaner.start()

    def apply(self, image: MetadataImage, delta: ImageDelta) -> None:
        """Apply a committed image. `delta` has its differences from the image before.

        The first image must be one with which the broker has caught up, and its delta must name
        everything that this broker hosts."""
        self._applier.apply(image, delta)

    def limit_replication(self, leader_rate: int, follower_rate: int, move_rate: int) -> None:
        """Set the rates of the replication throttles, and that of moves between log directories, in
        bytes per second. What was held back is tried again."""
        self.follower_throttle.limit = follower_rate
        self.move_throttle.limit = move_rate
        if leader_rate != self.leader_throttle.limit:
            self.leader_throttle.limit = leader_rate
            self.replica_sessions.throttle_changed()

    @property
    def unopened(self) -> int:
        """Return the number of partitions that metadata assigns to this broker and that are not
        open yet."""
        return self._applier.unopened

    @property
    def acted_offset(self) -> int:
        """Return the end of the metadata records that this broker has acted on."""
        return self._applier.acted_offset

    def follow_acted(self, on_acted: Callable[[int], None]) -> None:
        """Call `on_acted` with the end of the metadata records that this broker has acted on, after
        each image and each opening (`MetadataApplier.acted_offset`)."""
        self._applier.on_acted = on_acted

    def when_settled(self, callback: Callable[[], None]) -> None:
        """Call back once, when every partition that metadata has named is open and every deleted
        one has freed its name. Call it only after the first `apply`."""
        self._applier.when_settled(callback)

    def close(self, done: Callable[[BaseException | None], None]) -> None:
        """Stop, flush and close all logs, and write the clean shutdown file (`LogManager.close`).
        `done` gets the error, or None. After an earlier failure, nothing is written and `done` gets
        None."""
        self.stop()
        self.logs.close(self._broker_epoch(), self._high_watermarks(), done)

    def node_failed(self, error: BaseException) -> None:
        """Note the damage that stops the node, so that its next start finds it. Blocks. Do nothing
        if `error` is not a CorruptLog."""
        if isinstance(error, CorruptLog):
            self.logs.distrust(error)

    def _directory_failed(self, path: str) -> None:
        self.moves.directory_failed(path)
        self._on_offline(path)

    def _take_offline(self, hosted: HostedPartition) -> None:
        self._applier.take_offline(hosted)

    def stop(self) -> None:
        """Cancel all timers, fetches and waiting requests. The waiting fetches of followers are
        answered; no other request is answered any more. It may be called again."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self.cleaner.stop()
        self.moves.close()
        self._applier.close()
        self._producer_loader.close()
        self.fetchers.close()
        self.replica_sessions.close()
        self.session_cache.clear()
        self.recompressions.close()
        self._delayed_operations.close()

    def _every(self, name: str, interval_ms: int, action: Callable[[], None]) -> None:
        """Call `action` every `interval_ms`, or once if that is 0, as Kafka's scheduler does."""

        def run() -> None:
            if interval_ms > 0:
                self._timers[name] = self._clock.call_later(interval_ms, run)
            action()

        self._timers[name] = self._clock.call_later(interval_ms, run)

    def _truncated(self, hosted: HostedPartition, offset: int) -> None:
        self.logs.truncated(hosted.name, offset)

    def _flush(self, hosted: HostedPartition, done: Callable[[], None]) -> None:
        self.logs.flush(hosted.name, done)

    # --- periodic

    def _check_lag(self) -> None:
        self.replica_sessions.end_idle()
        now_ms = self._clock.now_ms()
        for hosted in self.registry:
            hosted.partition.check_followers(now_ms)
            hosted.settle()

    def _check_joins(self) -> None:
        for hosted in self.registry.take_incomplete():
            hosted.partition.check_joining(self._clock.now_ms())
            hosted.settle()

    def _apply_retention(self) -> None:
        self._retain(iter(list(self.registry)))

    def _retain(self, remaining: Iterator[HostedPartition]) -> None:
        """Apply retention to the next few logs. It opens segment files to learn their age."""
        if not self._timers:
            return  # stopped; the disk's thread may be closing these logs
        some = list(islice(remaining, RETAINED_PER_SLICE))
        for hosted in some:
            if not (hosted.gone or hosted.moving) and self.logs.apply_retention(
                hosted.log, hosted.partition.high_watermark
            ):
                self.fetchers.start_moved(hosted)
        if len(some) == RETAINED_PER_SLICE:
            self._clock.call_soon(lambda: self._retain(remaining))

    def _expire_producers(self) -> None:
        wall_ms = self._clock.wall_ms()
        for hosted in self.registry:
            producers = hosted.partition.producers.loaded
            if producers is not None:
                expiration_ms = hosted.partition.settings.producer_id_expiration_ms
                producers.expire(wall_ms, expiration_ms)

    def _compacted(self) -> list[CompactedPartition]:
        return [
            CompactedPartition(each, self.load_producers)
            for each in self.registry
            if each.partition.settings.compacted
        ]

    def _high_watermarks(self) -> Iterator[tuple[PartitionName, int]]:
        return ((each.name, each.partition.high_watermark) for each in self.registry)


def log_manager(
    seams: Seams,
    settings: ReplicationSettings,
    directories: BrokerDirectories,
    on_failure: Callable[[BaseException], None],
) -> LogManager:
    """Return the manager of a broker's log directories."""
    return LogManager(
        seams,
        settings.log_dirs,
        directory_ids=directories.ids,
        metadata_dir=directories.metadata_dir,
        file_delete_delay_ms=settings.file_delete_delay_ms,
        on_failure=on_failure,
    )


def replication_throttles(
    clock: Clock, settings: ReplicationSettings
) -> tuple[ReplicationThrottle, ReplicationThrottle]:
    """Return the throttles of a broker as a leader and as a follower, without limits."""
    windows = settings.replication_quota_windows
    window_ms = settings.replication_quota_window_seconds * 1000
    leader = ReplicationThrottle(clock, windows, window_ms)
    return leader, ReplicationThrottle(clock, windows, window_ms)
