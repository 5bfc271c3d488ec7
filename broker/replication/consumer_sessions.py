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

from quorate.broker.replication.fetches import Abandon, Fetch, Fetches
from quorate.broker.replication.registry import Registry
from quorate.broker.replication.session_cache import (
    FINAL_EPOCH,
    FIRST_EPOCH,
    NO_SESSION,
    SessionCache,
    after,
)
from quorate.broker.replication.sessions import Respond
from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.rpc.kafka.errors import ErrorCode
from quorate.quorum.rpc.kafka.hot.fetch_request import FetchPartition, FetchRequest
from quorate.quorum.rpc.kafka.hot.fetch_response import FetchedPartition

MAX_PARTITIONS = 200_000
"""Of one session. Kafka has no bound."""
NEVER_TOLD = (-1, -1)

Named = tuple[str, Uuid, int]
"""A partition as requests name it: by topic id since v13, by name before."""


class ConsumerSession:
    """A `Session` of the cache."""

    of_follower = False

    def __init__(self, wanted: Sequence[FetchPartition], *, uses_topic_ids: bool) -> None:
        self.id = NO_SESSION
        self.next_epoch = after(FIRST_EPOCH)
        self.uses_topic_ids = uses_topic_ids
        self.wanted: dict[Named, FetchPartition] = {}
        self._told: dict[Named, tuple[int, int]] = {}  # (high watermark, log start)
        for each in wanted:
            self.want(each)

    def __len__(self) -> int:
        return len(self.wanted)

    def end(self) -> None:
        """What was asked of it is answered all the same."""

    def want(self, partition: FetchPartition) -> None:
        """New at the end of the order; known where it stands, with its new offset."""
        name = named(partition)
        known = self.wanted.get(name)
        if known is not None and known.topic:
            partition = partition._replace(topic=known.topic)
        self.wanted[name] = partition

    def forget(self, topic: str, topic_id: Uuid, partition: int) -> None:
        name = ("" if self.uses_topic_ids else topic, topic_id, partition)
        self.wanted.pop(name, None)
        self._told.pop(name, None)

    def news(self, results: Sequence[FetchedPartition]) -> list[FetchedPartition]:
        """What of `results` the consumer has not been told; told now."""
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


def named(partition: FetchPartition | FetchedPartition) -> Named:
    by_id = partition.topic_id != ZERO_UUID
    return "" if by_id else partition.topic, partition.topic_id, partition.partition


class ConsumerSessions:
    def __init__(self, fetches: Fetches, registry: Registry, cache: SessionCache) -> None:
        self._fetches = fetches
        self._registry = registry
        self._cache = cache

    def fetch(
        self, request: FetchRequest, max_bytes: int, respond: Respond, *, uses_topic_ids: bool
    ) -> Abandon | None:
        """Answer a Fetch on a client port: call `respond` exactly once. `max_bytes` bounds the
        response.

        Return None if `respond` has been called. Otherwise return the function that discards the
        request instead, for a client that has gone."""
        read = partial(self._read, request, max_bytes)
        if request.session_epoch in (FIRST_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                self._end(request.session_id)
            if request.session_epoch == FINAL_EPOCH:
                return read(request.partitions, partial(respond, ErrorCode.NONE, NO_SESSION))
            wanted = [self._with_name(each) for each in request.partitions]
            return read(wanted, partial(self._begin, wanted, uses_topic_ids, respond))
        session, error = self._cache.find(
            request.session_id,
            request.session_epoch,
            of_follower=False,
            uses_topic_ids=uses_topic_ids,
        )
        if session is None:
            respond(error, NO_SESSION, ())
            return None
        assert isinstance(session, ConsumerSession)
        for each in request.partitions:
            session.want(self._with_name(each))
        for forgotten in request.forgotten:
            session.forget(*forgotten)
        if not 0 < len(session) <= MAX_PARTITIONS:
            self._cache.remove(session.id)
            if not len(session):
                return read((), partial(respond, ErrorCode.NONE, NO_SESSION))
            respond(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, NO_SESSION, ())
            return None
        if not self._cache.resized(session):
            respond(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, NO_SESSION, ())
            return None
        tell = partial(_tell, session, session.next_epoch, respond)
        return read(list(session.wanted.values()), tell)

    def _read(
        self,
        request: FetchRequest,
        max_bytes: int,
        wanted: Sequence[FetchPartition],
        done: Callable[[Sequence[FetchedPartition]], None],
    ) -> Abandon | None:
        fetch = Fetch(
            partitions=wanted,
            replica_id=request.replica_id,
            max_wait_ms=request.max_wait_ms,
            min_bytes=request.min_bytes,
            max_bytes=min(request.max_bytes, max_bytes),
        )
        return self._fetches.fetch(fetch, done)

    def _begin(
        self,
        wanted: Sequence[FetchPartition],
        uses_topic_ids: bool,
        respond: Respond,
        results: Sequence[FetchedPartition],
    ) -> None:
        """The first answer tells everything."""
        session = ConsumerSession(wanted, uses_topic_ids=uses_topic_ids)
        if len(session) <= MAX_PARTITIONS and self._cache.add(session):
            session.news(results)
        respond(ErrorCode.NONE, session.id, results)

    def _end(self, session_id: int) -> None:
        session = self._cache.get(session_id)
        if session is not None and not session.of_follower:
            self._cache.remove(session_id)

    def _with_name(self, wanted: FetchPartition) -> FetchPartition:
        """What the topic is called now. If it is created anew, its id will be inconsistent."""
        if wanted.topic_id == ZERO_UUID:
            return wanted
        topic = self._registry.image.topics.get(wanted.topic_id)
        return wanted if topic is None else wanted._replace(topic=topic.name)


def _tell(
    session: ConsumerSession, epoch: int, respond: Respond, results: Sequence[FetchedPartition]
) -> None:
    if session.next_epoch != epoch:  # the consumer did not wait for this answer
        respond(ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.id, ())
    else:
        respond(ErrorCode.NONE, session.id, session.news(results))
