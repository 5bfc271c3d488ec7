"""Fetches of consumers, in a session or without (KIP-227): the answers tell what has changed.

A session remembers the partitions, in the order in which they are read; every fetch reads all of
them as `fetches.py` reads any. A partition is told when it has records, an error, another high
watermark or another log start than the consumer was told last. One whose records were told goes to
the end of the order, so that a full answer starves nobody.

Ids, epochs and slots are `session_cache.py`'s. Without a free slot the session id is 0: the
consumer goes on with full fetches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeGuard

from quorate.broker.replication.consumer_fetches import (
    SLICED_ABOVE,
    Client,
    ConsumerFetches,
    Done,
    Fetch,
)
from quorate.broker.replication.partition_registry import PartitionRegistry
from quorate.broker.replication.replica_sessions import Respond
from quorate.broker.replication.session_cache import (
    FINAL_EPOCH,
    FIRST_EPOCH,
    NO_SESSION,
    SessionCache,
    after,
)
from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot.fetch_request import FetchPartition, FetchRequest, Forgotten
from quorate.quorum.protocol.hot.fetch_response import FetchPartitionResult
from quorate.quorum.protocol.hot.primitives import chunks
from quorate.quorum.steps import Steps

MAX_PARTITIONS = 200_000
"""Of one session. Kafka has no bound."""
NEVER_TOLD = (-1, -1)

Named = tuple[str, Uuid, int]
"""A partition as requests name it: by topic id since v13, by name before."""


class ConsumerSession:
    """A `Session` of the cache."""

    of_follower = False

    def __init__(self, *, uses_topic_ids: bool) -> None:
        self.id = NO_SESSION
        self.next_epoch = after(FIRST_EPOCH)
        self.uses_topic_ids = uses_topic_ids
        self.wanted: dict[Named, FetchPartition] = {}
        self._told: dict[Named, tuple[int, int]] = {}  # (high watermark, log start)

    def __len__(self) -> int:
        return len(self.wanted)

    def end(self) -> None:
        """Do nothing: requests of the session are answered all the same."""

    def want(self, partitions: Sequence[FetchPartition]) -> None:
        """Add partitions at the end of the order. Known ones keep their place, with the new
        offset."""
        for partition in partitions:
            name = named(partition)
            known = self.wanted.get(name)
            if known is not None and known.topic:
                partition = partition._replace(topic=known.topic)
            self.wanted[name] = partition

    def forget(self, topic: str, topic_id: Uuid, partition: int) -> None:
        name = ("" if self.uses_topic_ids else topic, topic_id, partition)
        self.wanted.pop(name, None)
        self._told.pop(name, None)

    def news(self, results: Sequence[FetchPartitionResult]) -> list[FetchPartitionResult]:
        """Return the results that the consumer has not received, and note them as sent."""
        told = self._told
        news = []
        for result in results:
            name = named(result)
            if name not in self.wanted:  # forgotten while it was read
                continue
            now = (result.high_watermark, result.log_start_offset)
            if result.error:
                told[name] = NEVER_TOLD  # once the error is gone, all is told again
            elif now == told.get(name, NEVER_TOLD):
                if not len(result.records) and result.diverging is None:
                    continue
            else:
                told[name] = now
            news.append(result)
            if len(result.records):
                self.wanted[name] = self.wanted.pop(name)
        return news


def named(partition: FetchPartition | FetchPartitionResult) -> Named:
    by_id = partition.topic_id != ZERO_UUID
    return "" if by_id else partition.topic, partition.topic_id, partition.partition


class ConsumerSessions:
    def __init__(
        self, fetches: ConsumerFetches, registry: PartitionRegistry, cache: SessionCache
    ) -> None:
        self._fetches = fetches
        self._registry = registry
        self._cache = cache

    def fetch(
        self,
        request: FetchRequest,
        max_bytes: int,
        respond: Respond,
        *,
        uses_topic_ids: bool,
        client: Client | None = None,
    ) -> None:
        """Answer a Fetch on a client port: call `respond` exactly once, or never if `client` goes.

        `max_bytes` bounds the response. `client` runs the work of large requests in slices."""
        partitions = request.partitions
        if not _is_large(client, partitions):
            if request.session_epoch != FINAL_EPOCH:
                partitions = [self._with_name(each) for each in partitions]
            self._with_names(request, max_bytes, respond, uses_topic_ids, client, partitions)
        else:
            go_on = partial(self._with_names, request, max_bytes, respond, uses_topic_ids, client)
            client.run(self._name_steps(partitions, go_on))

    def _name_steps(
        self, partitions: list[FetchPartition], go_on: Callable[[list[FetchPartition]], None]
    ) -> Steps[None]:
        named: list[FetchPartition] = []
        for some in chunks(partitions):
            named += [self._with_name(each) for each in some]
            yield
        go_on(named)

    def _with_names(
        self,
        request: FetchRequest,
        max_bytes: int,
        respond: Respond,
        uses_topic_ids: bool,
        client: Client | None,
        partitions: list[FetchPartition],
    ) -> None:
        """Find the session. `partitions` are the request's, with the names of their topics."""
        read = partial(self._read, request, max_bytes, client)
        if request.session_epoch in (FIRST_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                self._end(request.session_id)
            if request.session_epoch == FINAL_EPOCH:
                read(request.partitions, partial(respond, ErrorCode.NONE, NO_SESSION))
            else:
                read(partitions, partial(self._begin, partitions, uses_topic_ids, respond, client))
            return
        session, error = self._cache.find(
            request.session_id,
            request.session_epoch,
            of_follower=False,
            uses_topic_ids=uses_topic_ids,
        )
        if session is None:
            respond(error, NO_SESSION, ())
            return
        assert isinstance(session, ConsumerSession)
        if not _is_large(client, partitions) and not _is_large(client, request.forgotten):
            session.want(partitions)
            for each in request.forgotten:
                session.forget(*each)
            self._go_on(session, read, respond, client)
        else:
            go_on = partial(self._go_on, session, read, respond, client)
            assert client is not None
            client.run(_want_steps(session, partitions, request.forgotten, go_on))

    def _go_on(
        self,
        session: ConsumerSession,
        read: Callable[[Sequence[FetchPartition], Done], None],
        respond: Respond,
        client: Client | None,
    ) -> None:
        """Read the partitions of a session that has those of the request."""
        if self._cache.get(session.id) is not session:  # it ended between two steps
            respond(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, NO_SESSION, ())
        elif not len(session):
            self._cache.remove(session.id)
            read((), partial(respond, ErrorCode.NONE, NO_SESSION))
        elif len(session) > MAX_PARTITIONS or not self._cache.resized(session):
            self._cache.remove(session.id)
            respond(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, NO_SESSION, ())
        else:
            tell = partial(_tell, session, session.next_epoch, respond, client)
            read(list(session.wanted.values()), tell)

    def _read(
        self,
        request: FetchRequest,
        max_bytes: int,
        client: Client | None,
        wanted: Sequence[FetchPartition],
        done: Callable[[Sequence[FetchPartitionResult]], None],
    ) -> None:
        fetch = Fetch(
            partitions=wanted,
            replica_id=request.replica_id,
            max_wait_ms=request.max_wait_ms,
            min_bytes=request.min_bytes,
            max_bytes=min(request.max_bytes, max_bytes),
            client=client,
        )
        self._fetches.fetch(fetch, done)

    def _begin(
        self,
        wanted: Sequence[FetchPartition],
        uses_topic_ids: bool,
        respond: Respond,
        client: Client | None,
        results: Sequence[FetchPartitionResult],
    ) -> None:
        """Begin a session. The first answer tells everything."""
        session = ConsumerSession(uses_topic_ids=uses_topic_ids)
        if _is_large(client, wanted):
            client.run(self._begin_steps(session, wanted, respond, results))
            return
        session.want(wanted)
        if len(session) <= MAX_PARTITIONS and self._cache.add(session):
            session.news(results)
        respond(ErrorCode.NONE, session.id, results)

    def _begin_steps(
        self,
        session: ConsumerSession,
        wanted: Sequence[FetchPartition],
        respond: Respond,
        results: Sequence[FetchPartitionResult],
    ) -> Steps[None]:
        for some in chunks(wanted):
            session.want(some)
            yield
        if len(session) <= MAX_PARTITIONS and self._cache.add(session):
            for told in chunks(results):
                session.news(told)
                yield
        respond(ErrorCode.NONE, session.id, results)

    def _end(self, session_id: int) -> None:
        session = self._cache.get(session_id)
        if session is not None and not session.of_follower:
            self._cache.remove(session_id)

    def _with_name(self, wanted: FetchPartition) -> FetchPartition:
        """Return the partition with the name that its topic has now. If the topic is created anew,
        its id will be inconsistent."""
        if wanted.topic_id == ZERO_UUID:
            return wanted
        topic = self._registry.image.topics.get(wanted.topic_id)
        return wanted if topic is None else wanted._replace(topic=topic.name)


def _is_large(client: Client | None, items: Sequence[object]) -> TypeGuard[Client]:
    """Return True if `client` runs the work on `items` in steps."""
    return client is not None and len(items) > SLICED_ABOVE


def _want_steps(
    session: ConsumerSession,
    partitions: Sequence[FetchPartition],
    forgotten: Sequence[Forgotten],
    go_on: Callable[[], None],
) -> Steps[None]:
    for some in chunks(partitions):
        session.want(some)
        yield
    for gone in chunks(forgotten):
        for each in gone:
            session.forget(*each)
        yield
    go_on()


def _tell(
    session: ConsumerSession,
    epoch: int,
    respond: Respond,
    client: Client | None,
    results: Sequence[FetchPartitionResult],
) -> None:
    if session.next_epoch != epoch:  # the consumer did not wait for this answer
        respond(ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.id, ())
    elif _is_large(client, results):
        client.run(_tell_steps(session, respond, results))
    else:
        respond(ErrorCode.NONE, session.id, session.news(results))


def _tell_steps(
    session: ConsumerSession, respond: Respond, results: Sequence[FetchPartitionResult]
) -> Steps[None]:
    news: list[FetchPartitionResult] = []
    for some in chunks(results):
        news += session.news(some)
        yield
    respond(ErrorCode.NONE, session.id, news)
