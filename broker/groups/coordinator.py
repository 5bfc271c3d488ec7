"""The shards of this broker: one for each partition of __consumer_offsets that it leads.

The coordinator follows the committed metadata image. When this broker becomes leader of a
partition, the coordinator loads the shard in the background. When the broker loses the partition,
the coordinator drops the shard immediately and answers NOT_COORDINATOR. If the leader epoch
changed, the coordinator loads the shard again, because another broker may have led the partition in
between.

Requests wait while their shard is loading, for up to MAX_LOADING_WAIT_MS. The alternative, the
error COORDINATOR_LOAD_IN_PROGRESS, costs every client a backoff, and librdkafka's admin client does
not retry after it.

A shard that cannot be loaded stays failed until the leader epoch of its partition changes. Its
requests get NOT_COORDINATOR. A shard whose work raises an unexpected exception is dropped and
loaded again (`guarded.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from quorate.broker.groups.background import Background
from quorate.broker.groups.expiration import Expiration
from quorate.broker.groups.guarded import Guard, GuardedClock
from quorate.broker.groups.loading import Loading
from quorate.broker.groups.member import cancel
from quorate.broker.groups.member_memory import MemberMemory
from quorate.broker.groups.partition_of import partition_of
from quorate.broker.groups.relief import Relief
from quorate.broker.groups.replicated_journal import Append, ReplicatedJournal
from quorate.broker.groups.settings import GroupSettings
from quorate.broker.groups.shard import Shard
from quorate.broker.groups.shard_context import (
    ShardContext,
    WaitingRequest,
    not_coordinator,
    still_loading,
)
from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.quorum.ids import random_uuid, uuid_to_text
from quorate.quorum.incremental_work import IncrementalWork, finished
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.internal_topics import OFFSETS_TOPIC
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.seams import Clock, Random, Timer

MAX_LOADING_WAIT_MS = 1000
"""The maximum time that a request waits for its shard to load, in ms."""
MAX_WAITING = 1000
"""The maximum number of waiting requests per shard."""

logger = logging.getLogger("quorate.broker.groups")


class Registry(Protocol):
    """The replicas on this broker."""

    @property
    def survives(self) -> Callable[[BaseException], bool]:
        """Return a function that takes a log directory offline after an error of its disk. It
        returns False if the node must stop because of the error."""
        ...

    def get(self, key: Key) -> HostedPartition | None:
        """Return the open replica of the partition, or None."""
        ...


class Replicas(Protocol):
    """The part of the replica manager that the coordinator needs."""

    @property
    def registry(self) -> Registry:
        """Return the registry of open replicas."""
        ...

    @property
    def append(self) -> Append:
        """Return the function that appends to partitions which this broker leads."""
        ...

    def when_settled(self, callback: Callable[[], None]) -> None:
        """Call back when every partition that the metadata has named so far is open."""
        ...


class GroupCoordinator:
    """Owns the shards of this broker and routes requests to them.

    It runs on the broker's event loop. Invariant: after `apply`, there is one shard for each
    offsets partition that the image says this broker leads, with the leader epoch of the image.
    `rebuilt_shards` counts the shards that were dropped after an unexpected exception."""

    def __init__(
        self,
        clock: Clock,
        random: Random,
        settings: GroupSettings,
        replicas: Replicas,
        broker_id: int,
    ) -> None:
        self.settings = settings
        self._expiry_interval_ms = settings.offsets_retention_check_interval_ms
        self._clock = clock
        self._random = random
        self._replicas = replicas
        self._broker_id = broker_id
        self._image = MetadataImage()
        self._shards: dict[Key, ShardContext] = {}
        self._background = Background(clock)
        self.memory = MemberMemory()
        self._relief = Relief(clock, self.memory, self._shards.values)
        self.rebuilt_shards = 0
        self._failures = LogLimit(clock)
        self._expiry: Timer | None = None

    @property
    def failed_shards(self) -> int:
        """Return the number of present shards that could not be loaded."""
        return sum(context.failed for context in self._shards.values())

    def loaded_shards(self) -> Iterator[Shard]:
        """Yield the shards that are ready. The caller must consume them before they change."""
        return (each.shard for each in self._shards.values() if each.ready)

    def start(self) -> None:
        """Start the periodic scans for expired offsets."""
        self._expiry = self._clock.call_later(self._expiry_interval_ms, self._expire)

    def close(self) -> None:
        """Stop the scans and drop all shards, in one step. All waiting requests get
        NOT_COORDINATOR.
        """
        cancel(self._expiry)
        self._relief.close()
        for key in list(self._shards):
            finished(self._drop(key).close())

    # --- routing

    def find(
        self,
        group_id: str,
        work: Callable[[ShardContext], None],
        refuse: Callable[[ErrorCode], None],
    ) -> None:
        """Call `work` with the shard that coordinates the group, when it is loaded, or else call
        `refuse`. Either call may come before this method returns.

        The errors are NOT_COORDINATOR if this broker has no such shard, its loading failed, or it
        was dropped. COORDINATOR_LOAD_IN_PROGRESS means that the loading takes longer than
        MAX_LOADING_WAIT_MS or that MAX_WAITING requests wait. If `work` raises KafkaError, `refuse`
        gets its code. If `work` raises another exception, `refuse` gets UNKNOWN_SERVER_ERROR and
        the shard is loaded again. StateInDoubt is the exception to this rule: it is raised and
        stops the node.
        """
        topic = self._image.topic(OFFSETS_TOPIC)
        context = None
        if topic is not None:
            partition = partition_of(group_id, len(topic.partitions))
            context = self._shards.get((topic.id, partition))
        if context is None or context.failed:
            refuse(ErrorCode.NOT_COORDINATOR)
        elif context.ready:
            self._run(context, work, refuse)
        elif len(context.waiting) < MAX_WAITING:
            if not context.waiting:
                self._clock.call_later(
                    MAX_LOADING_WAIT_MS, partial(context.answer_waiting, still_loading)
                )
            context.waiting.append(WaitingRequest(work, refuse))
        else:
            refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def ready_shards(self) -> Iterator[ShardContext]:
        """Return all ready shards. A shard that failed to load is left out.

        Raise KafkaError (COORDINATOR_LOAD_IN_PROGRESS) if any shard is loading or waits for its
        replica, because a list would be incomplete. The caller must consume the iterator before
        the shards change.
        """
        if any(not context.ready and not context.failed for context in self._shards.values()):
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return (context for context in self._shards.values() if context.ready)

    # --- the image

    def apply(self, image: MetadataImage, delta: ImageDelta) -> None:
        """Follow a newly committed image. The replicas must have applied it before.

        If the offsets topic changed, drop and load shards. If topics were deleted, remove their
        committed offsets from the ready shards. In other shards such offsets stay until they
        expire.
        """
        self._image = image
        topic_id = image.topic_id(OFFSETS_TOPIC)
        if topic_id in delta.topics or any(
            topic.name == OFFSETS_TOPIC for topic in delta.deleted.values()
        ):
            self._follow_leadership(image)
        if delta.deleted:
            names = [topic.name for topic in delta.deleted.values()]
            self._expire_in_all(lambda expiration: expiration.topics_deleted(names))

    def _follow_leadership(self, image: MetadataImage) -> None:
        """Drop the shards that this broker no longer leads, and load those that it leads now."""
        topic = image.topic(OFFSETS_TOPIC)
        mine: dict[Key, int] = {}
        if topic is not None:
            for partition_id in topic.partition_ids():
                partition = topic.partitions[partition_id]
                if partition.leader == self._broker_id:
                    mine[topic.id, partition_id] = partition.leader_epoch
        for key in list(self._shards):
            if self._shards[key].leader_epoch != mine.get(key):
                self._drop_in_background(key)
        new = [key for key in mine if key not in self._shards]
        for key in new:
            self._shards[key] = self._opened(key, mine[key])
        if new:
            self._replicas.when_settled(self._load)

    def _opened(self, key: Key, leader_epoch: int) -> ShardContext:
        """Return a new, empty shard with its journal and guard."""
        guard = Guard(partial(self._rebuild, key, leader_epoch))
        journal = ReplicatedJournal(self._clock, self._replicas.append, *key, guard=guard)
        clock = GuardedClock(self._clock, guard)
        shard = Shard(self.settings, clock, journal, self._new_member_id, self.memory)
        return ShardContext(leader_epoch=leader_epoch, shard=shard, journal=journal, guard=guard)

    def _load(self) -> None:
        """Start to load every shard whose replica is open."""
        for key, context in self._shards.items():
            if context.ready or context.failed or context.loading is not None:
                continue
            hosted = self._replicas.registry.get(key)
            if hosted is None or hosted.partition.leadership is None:
                continue  # The log directory of the replica is offline.
            context.loading = Loading(
                self._clock,
                hosted,
                context.shard,
                partial(self._loaded, key[1], context),
                self._replicas.registry.survives,
            )
            context.loading.start()

    def _loaded(self, partition: int, context: ShardContext, error: Exception | None) -> None:
        """Start the sessions in the background, or refuse all requests if the loading failed."""
        context.loading = None
        if error is None:
            steps = self._start_serving(partition, context)
            self._background.add(context.shard, context.guard, steps)
        else:
            context.failed = True
            context.answer_waiting(not_coordinator)
            logger.error(
                "%s-%d cannot be loaded: %r. Its groups have no coordinator until the partition "
                "has another leader. `quorate dump-log` shows the record.",
                OFFSETS_TOPIC,
                partition,
                error,
            )

    def _start_serving(self, partition: int, context: ShardContext) -> IncrementalWork[None]:
        """Start the sessions of all members, in steps, and then serve the waiting requests."""
        yield from context.shard.loaded()
        context.ready = True
        count = len(context.shard.groups)
        if count:
            logger.info("%s-%d: loaded %d groups", OFFSETS_TOPIC, partition, count)
        context.answer_waiting(lambda each: self._run(context, each.work, each.refuse))

    def _drop(self, key: Key) -> Shard:
        """Remove a shard and return it. Its waiting requests get NOT_COORDINATOR.

        The caller must close the shard, which answers the waiting members.
        """
        context = self._shards.pop(key)
        self._background.cancel(context.shard)
        if context.loading is not None:
            context.loading.cancel()
        context.answer_waiting(not_coordinator)
        context.journal.close()
        context.guard.closed = True
        return context.shard

    def _drop_in_background(self, key: Key) -> None:
        """Remove a shard, and close it in the background."""
        shard = self._drop(key)
        self._background.add(shard, Guard(partial(self._not_closed, key, shard)), shard.close())

    def _not_closed(self, key: Key, shard: Shard, error: Exception) -> None:
        """Log that a dropped shard could not be closed. Its waiting members time out."""
        shard.release()
        left_out = self._failures.passes((key, type(error)))
        if left_out is not None:
            logger.error(
                "%s-%d: the groups of a former coordinator were not closed: %r%s",
                OFFSETS_TOPIC,
                key[1],
                error,
                left_out,
                exc_info=error,
            )

    # --- work in a shard

    def _run(
        self,
        context: ShardContext,
        work: Callable[[ShardContext], None],
        refuse: Callable[[ErrorCode], None],
    ) -> None:
        """Run `work`, which answers or refuses the request. If it raises, or if the shard was
        dropped, refuse the request."""
        if context.guard.closed:
            refuse(ErrorCode.NOT_COORDINATOR)
            return
        error: ErrorCode | None = ErrorCode.UNKNOWN_SERVER_ERROR

        def run() -> None:
            nonlocal error
            try:
                work(context)
            except KafkaError as refused:
                error = refused.code
            else:
                error = None

        context.guard.run(run)
        if error is not None:
            refuse(error)

    def _expire_in_all(self, request: Callable[[Expiration], None]) -> None:
        """Request a removal in every ready shard, and run it in the background."""
        for context in self._shards.values():
            if context.ready:
                expiration = context.shard.expiration
                request(expiration)
                self._background.add(context.shard, context.guard, expiration.steps())

    def _rebuild(self, key: Key, leader_epoch: int, error: Exception) -> None:
        """Drop a shard whose state is in doubt, and load it again from its log."""
        self.rebuilt_shards += 1
        left_out = self._failures.passes((key, type(error)))
        if left_out is not None:
            logger.error(
                "%s-%d: a request or timer of a group failed with %r; the coordinator loads the "
                "groups again%s",
                OFFSETS_TOPIC,
                key[1],
                error,
                left_out,
                exc_info=error,
            )
        context = self._shards.get(key)
        if context is not None and context.leader_epoch == leader_epoch:
            self._drop_in_background(key)
            self._shards[key] = self._opened(key, leader_epoch)
            self._replicas.when_settled(self._load)

    # --- timers and member ids

    def _expire(self) -> None:
        """Remove expired offsets in all shards, and schedule the next scan."""
        self._expiry = self._clock.call_later(self._expiry_interval_ms, self._expire)
        self._expire_in_all(Expiration.expire)

    def _new_member_id(self, prefix: str) -> str:
        return f"{prefix}-{uuid_to_text(random_uuid(self._random))}"
