"""Makes the replicas of this broker match the metadata: start, lead, follow, stop, delete.

A change of leadership takes effect immediately for all open partitions. New directories are made
and old ones removed in slices, and partitions to lead come first. The disk's thread opens the
directories that the start found (`partition_opener.py`). When a partition has been opened, it takes
its role from the latest image, so earlier changes of its role need no work. If a directory of the
same name is being deleted, a new directory waits until the old one is renamed.

When the partitions of the first image are open, all other directories that the start found are set
aside. The first image must therefore be one with which the broker has caught up. An older image may
lack partitions of this broker.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from quorate.broker.logs.log_manager import LogManager
from quorate.broker.replication.directories.missing_logs import missing_logs_warning
from quorate.broker.replication.directories.replica_placement import ReplicaPlacement
from quorate.broker.replication.fetches.replica_sessions import ReplicaSessions
from quorate.broker.replication.follower.replica_fetcher_manager import ReplicaFetcherManager
from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.broker.replication.partitions.partition_opener import OpenRequest, PartitionOpener
from quorate.broker.replication.partitions.partition_registry import PartitionRegistry
from quorate.broker.replication.partitions.replica_configuration import (
    ReplicaConfiguration,
    TopicSettingsOf,
)
from quorate.broker.replication.partitions.state_change_log import StateChangeLog
from quorate.quorum.log.files.errors import LogError
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.metadata import image as images
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.seams import Seams

logger = logging.getLogger("quorate.broker.replication")

OPENED_PER_SLICE = 16
"""Maximum number of partitions opened in one loop iteration, or in one batch of the disk's
thread."""
DELETED_PER_SLICE = 4
"""Maximum number of partitions whose deletion begins in one loop iteration."""


class MetadataApplier:
    """The application of images on one broker. The event loop owns it.

    Invariant: each partition of the image with a replica here is open, being opened, or queued in
    `_to_lead` or `_to_follow`."""

    def __init__(
        self,
        seams: Seams,
        registry: PartitionRegistry,
        fetchers: ReplicaFetcherManager,
        sessions: ReplicaSessions,
        logs: LogManager,
        opening: PartitionOpener,
        topic_settings: TopicSettingsOf,
        broker_id: int,
        on_failure: Callable[[BaseException], None],
        placement: ReplicaPlacement,
        state_changes: StateChangeLog,
    ) -> None:
        """Apply images to the partitions of `registry`. `topic_settings` returns a topic's
        effective settings.
        `on_failure` gets the error of a failed opening or deletion. The node must stop then,
        because the work in the background has ended."""
        self._clock = seams.clock
        self._registry = registry
        self._no_image = registry.image
        self._fetchers = fetchers
        self._sessions = sessions
        self._logs = logs
        self._opening = opening
        self._configuration = ReplicaConfiguration(seams.clock, registry, topic_settings)
        self._broker_id = broker_id
        self._on_failure = on_failure
        self._placement = placement
        self._state_changes = state_changes
        self.on_removed: Callable[[HostedPartition], None] = lambda hosted: None
        """Called with a replica that is removed, before its log is deleted."""
        self.on_offline: Callable[[HostedPartition], None] = lambda hosted: None
        """Called with a replica whose log directory has failed."""
        self.on_settled: Callable[[], None] = lambda: None
        """Called when the partitions of the first image are open."""
        self._unacted: dict[Key, int] = {}
        """The partitions that are not open yet, in both queues or being opened. The value is the
        end of the image before the one that named the partition first. The values rise."""
        self._to_lead: dict[Key, None] = {}
        """The partitions to open."""
        self._to_follow: dict[Key, None] = {}
        self._being_opened: dict[Key, None] = {}
        """The partitions whose logs the disk's thread is opening."""
        self.on_acted: Callable[[int], None] = lambda end_offset: None
        """Called with `acted_offset` after each image and after each opening."""
        self._to_delete: deque[PartitionName] = deque()
        self._deleting: set[PartitionName] = set()
        self._scheduled = False
        self._first = True
        self._at_start: set[Key] = set()
        """The partitions of the first image, until they are open."""
        self._applied_end = 0
        """The end of the image before the present one."""
        self._closed = False
        self._when_settled: list[Callable[[], None]] = []

    def apply(self, image: MetadataImage, delta: ImageDelta) -> None:
        """Apply an image. `delta` has its differences from the image applied before, or from an
        empty image at first.

        On return, open partitions have their new roles and the configs of their topics, and removed
        replicas have left the registry. Openings, deletions, and settings that the node gives go on
        in the background. A higher min.insync.replicas is in effect on return."""
        before = self._registry.image
        self._applied_end = before.last.offset + 1
        self._registry.image = image
        self._apply_delta(image, delta)
        if before is self._no_image:
            self._at_start = {*self._to_lead, *self._to_follow}
            self._warn_of_missing_logs(image)
        if self._first or delta.brokers or delta.topics or delta.deleted:
            self._sessions.metadata_applied()
            self._fetchers.metadata_applied()
            self._schedule()
        self.on_acted(self.acted_offset)

    def _warn_of_missing_logs(self, image: MetadataImage) -> None:
        missing = []
        for topic_id, partition_id in (*self._to_lead, *self._to_follow):
            topic = image.topics[topic_id]
            name = PartitionName(topic.name, partition_id)
            if not self._logs.found.is_unopened(name):
                missing.append((name, topic.partitions[partition_id]))
        assigned = len(self._at_start)
        warning = missing_logs_warning(missing, assigned, self._broker_id, self._logs.offline)
        if warning is not None:
            logger.warning("%s", warning, extra={"event": "logs-missing"})

    def when_settled(self, callback: Callable[[], None]) -> None:
        """Call `callback` once, in a later loop iteration, when no opening and no deletion is left.
        It is not called after `close`.

        Call this method only after the first `apply`. Before it there is nothing to open, so the
        openings would count as complete, and every directory would be set aside."""
        self._when_settled.append(callback)
        self._schedule()

    def close(self) -> None:
        """Stop the work in the background. No callback of `when_settled` is called any more."""
        self._closed = True
        self._state_changes.close()
        self._opening.close()

    # --- what changed

    def _apply_delta(self, image: MetadataImage, delta: ImageDelta) -> None:
        settings_of = self._configuration.settings_of(image)
        self._configuration.raise_min_isrs(image, delta, settings_of)
        for topic_id, topic in delta.deleted.items():
            for partition_id in topic.partition_ids():
                self._remove((topic_id, partition_id))
                self._registry.offline.pop((topic_id, partition_id), None)
        for topic, partition_id, change in delta.partitions():
            if change.new is not None:
                self._apply_partition((topic.id, partition_id), change.new)
            else:
                self._remove((topic.id, partition_id))
        if delta.brokers:
            now_ms = self._clock.now_ms()
            for hosted in self._registry.take_incomplete():
                hosted.partition.check_joining(now_ms)
                hosted.settle()
        if self._configuration.configure(image, delta, settings_of):
            self._schedule()

    @property
    def unopened(self) -> int:
        """Return the number of partitions that metadata assigns to this broker and that are not
        open yet."""
        return len(self._to_lead) + len(self._to_follow) + len(self._being_opened)

    @property
    def acted_offset(self) -> int:
        """Return the end of the metadata records that this broker has acted on: every replica that
        they name here is open and has its role. Removed directories may still exist."""
        return next(iter(self._unacted.values()), self._registry.image.last.offset + 1)

    def _apply_partition(self, key: Key, value: images.Partition) -> None:
        if self._broker_id not in value.replicas:
            self._remove(key)
            self._registry.offline.pop(key, None)
            return
        if self._placement.stays_offline(key, value):
            self._unacted.pop(key, None)
            return
        hosted = self._registry.get(key)
        if hosted is not None:
            # A truncation that failed may be half done, so a log that is about to be removed must
            # neither lead nor follow.
            if self._logs.is_usable(PartitionName(hosted.topic, key[1])):
                self._take_role(hosted, value)
            return
        if key in self._being_opened:  # `_batch_opened` takes the role of the latest image
            return
        leads = value.leader == self._broker_id
        wanted, other = (self._to_lead, self._to_follow)[:: 1 if leads else -1]
        other.pop(key, None)
        wanted.setdefault(key, None)
        self._unacted.setdefault(key, self._applied_end)

    def _take_role(self, hosted: HostedPartition, value: images.Partition) -> None:
        partition = hosted.partition
        self._placement.check(hosted, value)
        hosted.adding = self._broker_id in value.adding
        hosted.in_isr = self._broker_id in value.isr
        if value.leader == self._broker_id:
            self._fetchers.unfollow(hosted.key)
            new_epoch = partition.make_leader(value, self._clock.now_ms())
            hosted.changed()
        else:
            new_epoch = partition.make_follower(value)
            if new_epoch:
                hosted.changed()
                self._fetchers.follow(hosted)
        end_offset = self._registry.image.last.offset + 1
        self._state_changes.role_taken(hosted, value, end_offset, new_epoch=new_epoch)

    def take_offline(self, hosted: HostedPartition) -> None:
        """Remove a partition whose log directory has failed. It stays assigned to this broker."""
        self._fetchers.unfollow(hosted.key)
        self._registry.take_offline(hosted)
        self.on_offline(hosted)

    def _remove(self, key: Key) -> None:
        """Remove a replica immediately. Its directory is deleted in the background."""
        self._to_lead.pop(key, None)
        self._to_follow.pop(key, None)
        self._unacted.pop(key, None)
        hosted = self._registry.get(key)
        if hosted is None:
            return
        self._fetchers.unfollow(key)
        self._registry.remove(hosted)
        self._state_changes.removed(hosted, self._registry.image.last.offset + 1)
        hosted.gone = True
        hosted.changed()
        self.on_removed(hosted)
        name = PartitionName(hosted.topic, key[1])
        self._to_delete.append(name)
        self._deleting.add(name)

    # --- in the background

    def _schedule(self) -> None:
        if not self._scheduled and not self._closed:
            self._scheduled = True
            self._clock.call_soon(self._slice)

    def _slice(self) -> None:
        self._scheduled = False
        if self._closed:
            return
        try:
            self._delete_some()
            self._configuration.configure_some()
            opened = self._open_some()
        except (LogError, OSError) as error:
            self._on_failure(error)
            return
        if opened or self._to_delete or self._configuration.left:
            self._schedule()
            return
        if self._deleting or self._being_opened:
            return  # `_deleted` or `_batch_opened` continues
        if self._first:
            self._first = False
            self._at_start.clear()
            self._logs.set_aside_strays()
            self.on_settled()
        callbacks, self._when_settled = self._when_settled, []
        for callback in callbacks:
            callback()

    def _delete_some(self) -> None:
        for _ in range(min(DELETED_PER_SLICE, len(self._to_delete))):
            name = self._to_delete.popleft()
            self._logs.delete(name, partial(self._deleted, name))

    def _deleted(self, name: PartitionName) -> None:
        self._deleting.discard(name)
        self._schedule()

    def _open_some(self) -> bool:
        image = self._registry.image
        settings_of = self._configuration.settings_of(image)
        found: dict[Key, None] = {}
        requests = []
        keys = list(self._next_to_open())
        for key in keys:
            self._to_lead.pop(key, None)
            self._to_follow.pop(key, None)
            topic = image.topics[key[0]]
            value = topic.partitions[key[1]]
            wanted = OpenRequest(key, topic.name, settings_of(topic.name), value)
            try:
                if self._placement.is_available(wanted, is_new=key not in self._at_start):
                    if self._opening.is_unopened(wanted):
                        found[key] = None
                        requests.append(wanted)
                    else:
                        self._host(self._opening.open(wanted), value)
                else:
                    self._unacted.pop(key, None)
            except OSError as error:
                self._open_elsewhere([wanted], error)
        if found:
            self._being_opened = found
            try:
                self._opening.open_existing(requests, self._batch_opened)
            except OSError as error:
                self._being_opened = {}
                self._open_elsewhere(requests, error)
        if keys:
            self._sessions.metadata_applied()
            self.on_acted(self.acted_offset)
        return bool(keys)

    def _open_elsewhere(self, wanted: Iterable[OpenRequest], error: OSError) -> None:
        """Queue partitions again whose log directory has just failed. Raise `error` if the node
        cannot do without it."""
        if not self._registry.survives(error):
            raise error
        for each in wanted:
            self._apply_partition(each.key, each.value)

    def _host(self, hosted: HostedPartition, value: images.Partition) -> None:
        self._registry.add(hosted)
        self._unacted.pop(hosted.key, None)
        self._take_role(hosted, value)

    def _batch_opened(self, opened: list[HostedPartition], error: BaseException | None) -> None:
        """Give each opened partition the role of the latest image, or delete it if the image has no
        replica here any more."""
        image = self._registry.image
        settings_of = self._configuration.settings_of(image)
        left = dict.fromkeys(self._being_opened)
        self._being_opened = {}
        for hosted in opened:
            del left[hosted.key]
            value = image.partition(*hosted.key)
            if value is None or self._broker_id not in value.replicas:
                self._registry.add(hosted)
                self._remove(hosted.key)
            else:
                self._configuration.configure_one(hosted, settings_of(hosted.topic))
                self._host(hosted, value)
        self._sessions.metadata_applied()
        if error is not None and not self._registry.survives(error):
            self._on_failure(error)
            return
        for key in left:  # a log directory has failed
            value = image.partition(*key)
            if value is None:
                self._unacted.pop(key, None)
            else:
                self._apply_partition(key, value)
        self.on_acted(self.acted_offset)
        self._schedule()

    def _next_to_open(self) -> Iterator[Key]:
        """Yield the partitions to open next.

        A name that a deleted topic still uses is left out. Nothing is yielded while the disk's
        thread opens others."""
        left = 0 if self._being_opened else OPENED_PER_SLICE
        for keys in (self._to_lead, self._to_follow):
            for key in keys:
                if left == 0:
                    return
                name = PartitionName(self._registry.image.topics[key[0]].name, key[1])
                if not self._deleting or name not in self._deleting:
                    left -= 1
                    yield key
