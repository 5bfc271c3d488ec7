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

from quorate.broker.replication.fetches import SLICED_ABOVE, Client, Fetch, Fetches
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
from quorate.quorum.rpc.kafka.hot.primitives import STEP_PARTITIONS
from quorate.quorum.steps import Steps, finished

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

    def want(self, partitions: Sequence[FetchPartition]) -> Steps[None]:
        """Add partitions at the end of the order. Known ones keep their place, with the new
        offset."""
        for at, partition in enumerate(partitions, 1):
            name = named(partition)
            known = self.wanted.get(name)
            if known is not None and known.topic:
                partition = partition._replace(topic=known.topic)
            self.wanted[name] = partition
            if at % STEP_PARTITIONS == 0:
                yield

    def forget(self, topic: str, topic_id: Uuid, partition: int) -> None:
        name = ("" if self.uses_topic_ids else topic, topic_id, partition)
        self.wanted.pop(name, None)
        self._told.pop(name, None)

    def news(self, results: Sequence[FetchedPartition]) -> Steps[list[FetchedPartition]]:
        """Return the results that the consumer has not been told, and note that they are told."""
        told = self._told
        news = []
        for at, result in enumerate(results, 1):
            if at % STEP_PARTITIONS == 0:
                yield
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
        steps = self._steps(request, max_bytes, respond, uses_topic_ids, client)
        _run(client, len(request.partitions) + len(request.forgotten), steps)

    def _steps(
        self,
        request: FetchRequest,
        max_bytes: int,
        respond: Respond,
        uses_topic_ids: bool,
        client: Client | None,
    ) -> Steps[None]:
        read = partial(self._read, request, max_bytes, client)
        partitions = yield from self._with_names(request.partitions)
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
        yield from session.want(partitions)
        for forgotten in request.forgotten:
            session.forget(*forgotten)
        if self._cache.get(session.id) is not session:  # ended between two steps
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
        done: Callable[[Sequence[FetchedPartition]], None],
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
        results: Sequence[FetchedPartition],
    ) -> None:
        """Begin a session. The first answer tells everything."""
        _run(client, len(wanted), self._begin_steps(wanted, uses_topic_ids, respond, results))

    def _begin_steps(
        self,
        wanted: Sequence[FetchPartition],
        uses_topic_ids: bool,
        respond: Respond,
        results: Sequence[FetchedPartition],
    ) -> Steps[None]:
        session = ConsumerSession(uses_topic_ids=uses_topic_ids)
        yield from session.want(wanted)
        if len(session) <= MAX_PARTITIONS and self._cache.add(session):
            yield from session.news(results)
        respond(ErrorCode.NONE, session.id, results)

    def _end(self, session_id: int) -> None:
        session = self._cache.get(session_id)
        if session is not None and not session.of_follower:
            self._cache.remove(session_id)

    def _with_names(self, partitions: list[FetchPartition]) -> Steps[list[FetchPartition]]:
        """Return the partitions with the names that their topics have now. If a topic is created
        anew, its id will be inconsistent."""
        named = []
        for at, wanted in enumerate(partitions, 1):
            if wanted.topic_id != ZERO_UUID:
                topic = self._registry.image.topics.get(wanted.topic_id)
                if topic is not None:
                    wanted = wanted._replace(topic=topic.name)
            named.append(wanted)
            if at % STEP_PARTITIONS == 0:
                yield
        return named


def _tell(
    session: ConsumerSession,
    epoch: int,
    respond: Respond,
    client: Client | None,
    results: Sequence[FetchedPartition],
) -> None:
    if session.next_epoch != epoch:  # the consumer did not wait for this answer
        respond(ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.id, ())
    else:
        _run(client, len(results), _tell_steps(session, respond, results))


def _tell_steps(
    session: ConsumerSession, respond: Respond, results: Sequence[FetchedPartition]
) -> Steps[None]:
    news = yield from session.news(results)
    respond(ErrorCode.NONE, session.id, news)


def _run(client: Client | None, partitions: int, steps: Steps[None]) -> None:
    """Run `steps`, which handle so many partitions: in slices if they are many."""
    if client is None or partitions <= SLICED_ABOVE:
        finished(steps)
    else:
        client.run(steps)
